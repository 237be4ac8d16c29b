"""What models are told about thinking, and how a thought is parted from an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.models.thinking import (
    FULL_ROOM,
    LOW_ROOM,
    NO_THINKING,
    Thinking,
    ThoughtSplitter,
    thinking_of,
    without_thoughts,
)

CAN = frozenset({"completion", "thinking"})
LOW, LEAST = Thinking("low", LOW_ROOM, "off"), Thinking("low", LOW_ROOM)
MEDIUM, FULL = Thinking("medium", FULL_ROOM, "low"), Thinking(True, FULL_ROOM, "off")


@pytest.mark.parametrize(
    ("name", "architecture", "told"),
    [
        ("qwen3:8b", "qwen3", [Thinking(False), Thinking(False), LOW, FULL]),
        ("gpt-oss:20b", "gptoss", [LEAST, LEAST, LEAST, MEDIUM]),
        ("mine:latest", "gptoss", [LEAST, LEAST, LEAST, MEDIUM]),
        ("unsloth/gpt-oss-20b:q4", "", [LEAST, LEAST, LEAST, MEDIUM]),
    ],
)
def test_the_thinking_setting_of_each_model(name: str, architecture: str, told: list[Thinking]) -> None:
    assert [thinking_of(setting, name, architecture, CAN) for setting in ("auto", "off", "low", "on")] == told
    for capabilities in (None, frozenset({"completion"})):  # true and any level would be a 400
        assert thinking_of("on", name, architecture, capabilities) == NO_THINKING


@pytest.mark.parametrize(
    ("template", "is_begun"),
    [
        ("{{ .Prompt }}", False),
        ("<|im_start|>assistant\n<think>\n", True),
        ("<Assistant>\n<Thinking>{{ end }}\n{{- end }}", True),
        ("<think>\n\n</think>\n\n", False),
        ("Write your thoughts between <think> and </think>. {{ .Prompt }}", False),
    ],
)
def test_a_template_that_writes_the_opening_tag(template: str, is_begun: bool) -> None:
    for capabilities in (None, frozenset({"completion"})):
        told = thinking_of("auto", "qwq:32b", "qwen2", capabilities, template)
        assert told == (Thinking(None, FULL_ROOM, is_begun=True) if is_begun else NO_THINKING)
    assert not thinking_of("auto", "qwen3:8b", "qwen3", CAN, template).is_begun  # the server parts it


def test_a_reply_that_begins_within_the_thought() -> None:
    for pieces in (["Hm. <b", "> </thi", "nk>\nyes"], [*"Hm. <b> </think>\nyes"]):
        splitter = ThoughtSplitter(is_begun=True)
        found = [*map(splitter.feed, pieces), splitter.end()]
        assert tuple(map("".join, zip(*found, strict=True))) == ("Hm. <b> ", "\nyes")


def parted(pieces: list[str]) -> tuple[str, str]:
    splitter = ThoughtSplitter()
    found = [*map(splitter.feed, pieces), splitter.end()]
    return "".join(thought for thought, _ in found), "".join(text for _, text in found)


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("yes", "", "yes"),
        ("<think>Hm.</think>\n\nyes", "Hm.", "\n\nyes"),
        ("\n<Thinking>a < b</thinking> yes", "a < b", " yes"),
        ("<think>Hm. Let me", "Hm. Let me", ""),
        ("<think>Hm.</thi", "Hm.</thi", ""),
        ("<thinker> is a tag", "", "<thinker> is a tag"),
        ("A <think>tag</think> within", "", "A <think>tag</think> within"),
        ("<thin", "", "<thin"),
        (" " * 40 + "<think>", "", " " * 40 + "<think>"),
    ],
)
def test_a_thought_in_tags_is_parted_however_it_arrives(text: str, thought: str, answer: str) -> None:
    assert parted([text]) == parted([*text]) == (thought, answer)


@given(st.lists(st.sampled_from(["<", "think", ">", "</", "a", "\n", "<think>", "</think>"]), max_size=12))
def test_pieces_make_no_difference(pieces: list[str]) -> None:
    assert parted(pieces) == parted([*"".join(pieces)])


def test_a_whole_reply_without_its_thought() -> None:
    assert without_thoughts("<think>Hm.</think>\nyes ") == "yes"
    assert without_thoughts("Hm.</think>\nyes") == "yes"
    assert without_thoughts("<think>Hm.") == ""
    assert without_thoughts("yes") == "yes"
