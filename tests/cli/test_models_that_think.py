"""The commands with models that think: a question, a deep search, a chat, a judge and a writer of questions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers.cli_runner import CliRunner
from tests.helpers.loose_replies import LENGTH, STATEMENT, loose_reply
from tests.helpers.ollama_models import GPT_OSS, LLAMA, QWEN3, QWEN35, Json, Model
from tests.helpers.ollama_server import OllamaStandIn


@pytest.fixture(params=[QWEN3, QWEN35, GPT_OSS], ids=lambda model: model.name)
def thinker(request: pytest.FixtureRequest, filled: CliRunner, ollama_server: OllamaStandIn) -> CliRunner:
    return with_model(filled, ollama_server, request.param)


def with_model(desk: CliRunner, server: OllamaStandIn, model: Model) -> CliRunner:
    server.models[model.name] = model
    server.reply = loose_reply
    ollama = {"LLM": "ollama", "OLLAMA_HOST": server.url, "LLM_MODEL": model.name}
    desk.settings |= {"EMBEDDER": "builtin", **ollama}
    return desk


def test_a_deep_answer_loads_the_model_once(thinker: CliRunner, ollama_server: OllamaStandIn) -> None:
    found = thinker.query("--deep", "--json", LENGTH).object
    scores = {event["relevance"] for event in found["trace"]["events"] if event["event"] == "evidence"}
    assert scores == {9, 1}
    assert found["answer"].startswith(STATEMENT)
    assert found["sentences"][0]["verified_by"] == f"{thinker.settings['LLM_MODEL']} (Ollama)"
    assert found["notice"] == ""
    assert len(ollama_server.loads) == 1
    # The next question takes the model as it is loaded.
    assert thinker.query("--json", LENGTH).object["answer"].startswith(STATEMENT)
    assert len(ollama_server.loads) == 1


def test_the_reply_of_the_model_is_shown_as_it_came(thinker: CliRunner, ollama_server: OllamaStandIn) -> None:
    replies: list[str] = []

    def kept(messages: list[Json]) -> str:
        replies.append(f"{loose_reply(messages)}\n  And {{this}}: [1].\x1b[31m")
        return replies[-1]

    ollama_server.reply = kept
    shown = thinker.query("--show-raw", "--no-log", LENGTH).out
    raw = shown[shown.index("\nThe model's reply\n") :]
    assert raw.split("\n", 2)[2].rstrip("\n") in [reply.replace("\x1b", "") for reply in replies]
    assert "\x1b" not in shown
    chat = thinker.query("--no-log", typed=f"{LENGTH}\n/raw\n/quit\n")
    assert raw in chat.out
    assert "The model's reply" not in thinker.query("--no-log", LENGTH).out
    thinker.settings["LLM"] = "builtin"
    assert "\nThe model's reply\nNo model wrote a reply.\n" in thinker.query("--show-raw", "--no-log", LENGTH).out


def rewriting_reply(messages: list[Json]) -> str:
    return LENGTH if "Standalone question:" in str(messages[-1]["content"]) else loose_reply(messages)


def test_a_chat_and_a_judge_of_its_answers(thinker: CliRunner, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = rewriting_reply
    ran = thinker.query(typed="Which glacier is long?\nHow many kilometres is it?\n/good\n/quit\n")
    assert ran.out.count(STATEMENT) == 2
    assert f"Understood as: {LENGTH}" in ran.err
    judged = thinker.evaluate("--judge")
    assert "1 of 1 (100.0%)" in judged.out
    assert len(ollama_server.loads) == 1


DEEP_FIRST = f"/deep {LENGTH}\n/deep How many kilometres is it?\n/quit\n"  # rewrite, scores, answer
DEEP_LATER = f"{LENGTH}\n/deep {LENGTH}\nHow many kilometres is it?\n/quit\n"


@pytest.mark.parametrize(("typed", "tells"), [(DEEP_FIRST, True), (DEEP_LATER, True), (DEEP_LATER, False)])
def test_a_chat_asks_everything_with_one_context(
    ready: CliRunner, ollama_server: OllamaStandIn, typed: str, tells: bool
) -> None:
    asked = with_model(ready, ollama_server, LLAMA)
    ollama_server.reply = rewriting_reply
    if not tells:  # an old server does not say what is loaded
        ollama_server.faults.paths, ollama_server.faults.garbage = ("/api/ps",), "json"
    ran = asked.query(typed=typed)
    assert ran.out.count(STATEMENT) >= 2
    assert "Understood as" in ran.err
    assert len(ollama_server.loads) == 1


def test_a_loaded_context_is_used_where_it_is_enough(ready: CliRunner, ollama_server: OllamaStandIn) -> None:
    asked = with_model(ready, ollama_server, LLAMA)
    ollama_server.loaded[LLAMA.name], ollama_server.contexts[LLAMA.name] = LLAMA, 4096
    assert STATEMENT in asked.query(LENGTH).out
    assert ollama_server.loads == []
    asked.query(typed=f"{LENGTH}\n/deep {LENGTH}\n{LENGTH}\n/quit\n")
    assert ollama_server.loads == [(LLAMA.name, 8192)]


def test_a_model_found_to_think_is_loaded_once_more(ready: CliRunner, ollama_server: OllamaStandIn) -> None:
    stubborn = replace(QWEN3, name="stubborn:8b", architecture="stubborn", takes_levels_only=True)
    asked = with_model(ready, ollama_server, stubborn)
    found = asked.query("--json", LENGTH).object
    assert found["answer"].startswith(STATEMENT)
    assert found["sentences"][0]["verified_by"] == "stubborn:8b (Ollama)"
    # That it thinks was found when it was tried as a judge; the answer; the verifier
    assert [body["think"] for body in ollama_server.bodies("/api/chat")] == ["low", "low"]
    assert len(ollama_server.loads) <= 2


def test_a_model_that_only_thinks_is_named_with_the_remedy(ready: CliRunner, ollama_server: OllamaStandIn) -> None:
    endless = replace(QWEN3, thought=" ".join(f"thought{n}" for n in range(6000)))
    asked = with_model(ready, ollama_server, endless)
    asked.settings["THINK"] = "on"
    ran = asked.query(LENGTH)
    assert "23 kilometres" in ran.out
    said = " ".join(ran.err.split())
    assert "qwen3:8b only thought: 4,864 tokens were spent before it wrote an answer. Set THINK=off, or choose" in said
    assert "wrote nothing that the papers support" not in said


def test_ollama_is_told_how_long_to_keep_its_models(filled: CliRunner, ollama_server: OllamaStandIn) -> None:
    asked = with_model(filled, ollama_server, LLAMA)
    for setting, sent in (("", None), ("30m", "30m"), ("-1", -1), ("1h30m", "1h30m")):
        asked.settings["KEEP_ALIVE"] = setting
        asked.query(LENGTH)
        assert {body.get("keep_alive") for body in ollama_server.bodies("/api/chat")[-2:]} == {sent}
    asked.settings |= {"EMBEDDER": "ollama", "KEEP_ALIVE": "2h"}
    assert asked.ingest("--rebuild").code == 0
    assert {body.get("keep_alive") for body in ollama_server.bodies("/api/embed")} == {"2h"}
