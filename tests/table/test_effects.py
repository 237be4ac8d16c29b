"""The sentence that reports an effect is found by the outcome that it names and the difference that it states."""

from __future__ import annotations

import pytest

from folio.papers.metadata import simple_metadata
from folio.papers.model import PageMap, Paper
from folio.table.abbreviations import abbreviations
from folio.table.effects import Effect, Signs
from folio.table.paper_words import PaperWords, text_of
from folio.text import tokenize

pytestmark = pytest.mark.fast
AIM = "The aim was to compare aspirin with placebo in patients with headache."
SAME = "There was no significant difference in pain between the aspirin and placebo groups (P = 0.41)."
NAUSEA = "Nausea was significantly more frequent with aspirin than with placebo (P = 0.02)."
OTHER = "The patients were recruited in two hospitals."
EFFECT = "What was the effect of aspirin compared with placebo on {}?"


def words(*sentences: str) -> PaperWords:
    text = " ".join(sentences)
    return PaperWords(Paper("a", "a", simple_metadata("A"), PageMap((0,), ("",)), len(text), 1), text)


@pytest.mark.parametrize(
    ("question", "effect"),
    [
        (EFFECT.format("pain"), Effect("aspirin", "placebo", "pain")),
        ("effect of tea on sleep", Effect("tea", "", "sleep")),
        ("Effect on blood pressure", Effect("", "", "blood pressure")),
        ("Does aspirin reduce pain compared to placebo?", Effect("aspirin", "placebo", "pain")),
        ("What is the capital of France?", None),
        ("Method", None),
    ],
)
def test_questions_about_effects_are_recognised(question: str, effect: Effect | None) -> None:
    assert Effect.asked(question) == effect


@pytest.mark.parametrize(("outcome", "sentence"), [("pain", SAME), ("nausea", NAUSEA)])
def test_the_sentence_with_the_outcome_and_the_difference_comes_first(outcome: str, sentence: str) -> None:
    paper = words(AIM, OTHER, NAUSEA, SAME, OTHER)
    effect = Effect.asked(EFFECT.format(outcome))
    assert effect is not None
    assert text_of(paper, next(effect.places(paper))) == sentence


def test_an_outcome_that_the_paper_does_not_have_is_not_found() -> None:
    effect = Effect.asked(EFFECT.format("blood glucose"))
    assert effect is not None
    assert list(effect.places(words(AIM, OTHER, NAUSEA, SAME))) == []


def test_an_outcome_is_known_by_the_abbreviation_that_the_paper_introduces() -> None:
    reported = "QoL was significantly better with aspirin than with placebo (P = 0.01)."
    effect = Effect.asked(EFFECT.format("quality of life"))
    assert effect is not None
    introduced = words("Quality of life (QoL) was measured in all patients.", OTHER, reported)
    assert Signs(effect, introduced).of(2)["outcome"] > 0.5
    assert Signs(effect, words("Life was measured in all patients.", OTHER, reported)).of(2)["outcome"] == 0


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("The quality of life (QoL) of patients", {"qol": {"quality", "life"}}),
        ("body mass index (BMI; kg/m2)", {"bmi": {"body", "mass", "index"}}),
        ("in two hospitals (Spain)", {}),
        ("of other things (QoL)", {}),
    ],
)
def test_abbreviations_are_read_with_what_they_stand_for(text: str, known: dict[str, set[str]]) -> None:
    stems = {short: frozenset(token for word in long for token in tokenize(word)) for short, long in known.items()}
    assert abbreviations(text) == stems
