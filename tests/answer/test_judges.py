"""A chat model judges statements only if it tells true ones from false; else the paper's words are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from folio.answer.trials import LEAST_RIGHT, trials
from folio.answer.verifier import LlmVerifier
from folio.answer_types import Sentence
from folio.errors import ModelServerError
from folio.models.ollama import OllamaServer
from tests.helpers.factories import evidence_on
from tests.helpers.ollama_models import yes_to
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.replies import CHAT, Make

TRUE = {claim.statement: is_true for claim, is_true in trials()}
QUOTE = "Mussels on the shaded pilings grew faster than the others in both years."
OWN = "In both years, those that were shaded grew faster."
SAID = f"Quote: {QUOTE}\nAnswer: {OWN}"


def says(right: int) -> Callable[[list[dict[str, Any]]], str]:
    """A model that is right on the first trials, and wrong on the others."""
    known = list(TRUE)

    def reply(messages: list[dict[str, Any]]) -> str:
        asked = messages[-1]["content"]
        claim = next((each for each in known if f"<statement>\n{each}" in asked), None)
        if claim is None:
            return "yes" if "<statement>" in asked else SAID
        return "yes" if TRUE[claim] == (known.index(claim) < right) else "no"

    return reply


def judge(server: OllamaStandIn, kept: Path) -> LlmVerifier:
    return LlmVerifier(OllamaServer(server.url, 30), "llama3.1:8b", kept=kept)


def test_there_are_forty_trials_half_of_them_true() -> None:
    assert (len(TRUE), sum(TRUE.values())) == (40, 20)


@pytest.mark.parametrize(("right", "is_judge"), [(40, True), (LEAST_RIGHT, True), (LEAST_RIGHT - 1, False), (0, False)])
def test_a_model_is_tried_once(ollama_server: OllamaStandIn, tmp_path: Path, right: int, is_judge: bool) -> None:
    kept = tmp_path / "judges.json"
    ollama_server.judges_badly = True
    ollama_server.reply = says(right)
    assert judge(ollama_server, kept).is_judge() is is_judge
    asked = len(ollama_server.bodies(CHAT))
    assert asked <= 40  # it ends when the outcome is certain
    assert judge(ollama_server, kept).is_judge() is is_judge
    assert len(ollama_server.bodies(CHAT)) == asked
    assert list(json.loads(kept.read_text()).values()) == [is_judge]


@pytest.mark.parametrize("damage", ["", "[1]", '{"a": 3}', "\0"])
def test_a_damaged_file_of_trials_is_made_again(ollama_server: OllamaStandIn, tmp_path: Path, damage: str) -> None:
    kept = tmp_path / "judges.json"
    kept.write_text(damage)
    ollama_server.judges_badly = True
    ollama_server.reply = says(40)
    assert judge(ollama_server, kept).is_judge()
    assert list(json.loads(kept.read_text()).values()) == [True]


def test_a_trial_that_the_server_ends_is_not_kept(ollama_server: OllamaStandIn, tmp_path: Path) -> None:
    ollama_server.judges_badly = True  # so that faults concern its trials
    ollama_server.faults.fails = 3
    with pytest.raises(ModelServerError):
        judge(ollama_server, tmp_path / "judges.json").is_judge()
    assert not (tmp_path / "judges.json").exists()


@pytest.mark.parametrize(
    ("right", "shown"),
    [
        (40, ("reworded", OWN, "llama3.1:8b (Ollama)")),
        (0, ("quoted", QUOTE, "")),
    ],
)
def test_words_that_nobody_can_judge_are_replaced_by_the_papers(
    ollama_server: OllamaStandIn, make: Make, tmp_path: Path, right: int, shown: tuple[str, str, str]
) -> None:
    ollama_server.judges_badly = True
    ollama_server.reply = says(right)
    verifier = judge(ollama_server, tmp_path / "judges.json")
    answerer = make(answer_format="quote", verifier=verifier)
    ollama_server.stated = yes_to("Mussels")
    evidence = evidence_on(f"{QUOTE} The water was equally warm everywhere.")
    found = list(answerer.sentences("Which mussels on the pilings grew faster?", evidence))
    sentences = [part for part in found if isinstance(part, Sentence)]
    assert [(part.outcome, part.text, part.verified_by) for part in sentences] == [shown]
