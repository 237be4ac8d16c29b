"""Sets of questions from rated answers of the query log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from folio.answer_types import REFUSAL
from folio.evaluate.dataset import Gold, Question
from folio.evaluate.log_set import questions_from_log
from folio.store.query_log import LogEntry, LoggedSource

pytestmark = pytest.mark.fast

FILES = {"a" * 64: "alps/renamed.pdf"}
QUOTE = "The glacier is 23 km long."
GOOD = LogEntry(
    asked="2026-01-02T03:04:05+00:00",
    question="And how long is it?",
    standalone_question="How long is the Aletsch glacier?",
    chunks=(1,),
    answer=QUOTE,
    sources=(LoggedSource("a" * 64, "alps/glaciers.pdf", 3, QUOTE),),
    timings_ms={},
    model="extractive",
    feedback="good",
)
REFUSED = replace(GOOD, standalone_question="Who lent the money?", answer=REFUSAL, sources=())


def test_good_answers_become_gold_and_good_refusals_unanswerable() -> None:
    made = questions_from_log([(8, REFUSED), (3, GOOD)], FILES)
    assert made.questions == (
        Question(
            "q3", "How long is the Aletsch glacier?", "logged", True, QUOTE, (Gold("alps/renamed.pdf", 3, QUOTE),)
        ),
        Question("q8", "Who lent the money?", "logged", answerable=False),
    )
    assert (made.bad, made.without_gold) == ((), ())


def test_unrated_answers_are_left_out_and_named() -> None:
    def asks(question: str, **others: object) -> LogEntry:
        return replace(GOOD, standalone_question=question, **others)  # type: ignore[arg-type]

    gone = LoggedSource("b" * 64, "gone.pdf", 1, QUOTE)
    entries = [
        (9, asks("Not rated?", feedback="")),
        (7, asks("Bad?", feedback="bad")),
        (6, asks("Refused wrongly?", feedback="bad", answer=REFUSAL, sources=())),
        (5, asks("How many papers are there?", answer="Two.", sources=())),
        (4, asks("Of a paper that is gone?", sources=(gone,))),
        (2, asks("Of two papers?", sources=(gone, *GOOD.sources))),
    ]
    made = questions_from_log(entries, FILES)
    assert [(question.id, len(question.gold)) for question in made.questions] == [("q2", 1)]
    assert (made.bad, made.without_gold) == ((7, 6), (5, 4))


def test_the_newest_rating_of_a_question_counts() -> None:
    again = replace(GOOD, standalone_question="how long is the aletsch glacier", feedback="bad")
    unrated = replace(again, feedback="")
    assert questions_from_log([(9, unrated), (5, again), (3, GOOD)], FILES).bad == (5,)
    made = questions_from_log([(9, unrated), (5, GOOD), (3, again)], FILES)
    assert ([question.id for question in made.questions], made.bad) == (["q5"], ())
