"""The sentence that reports an effect is found by the outcome that it names and the difference that it states."""

from __future__ import annotations

import pytest

from folio.papers.metadata import simple_metadata
from folio.papers.model import PageMap, Paper
from folio.table.effects import Effect
from folio.table.paper_words import PaperWords, text_of

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
