"""The value of a cell is in its quote, or there is none."""

from __future__ import annotations

import pytest

from folio.answer.about import own_sentences
from folio.answer_types import Quote
from folio.papers.metadata import simple_metadata
from folio.papers.model import PageMap, Paper
from folio.question.question import Question
from folio.table.cell import Column, Finding
from folio.table.headings import asked
from folio.table.paper_words import PaperWords
from folio.table.values import disagree, said_of, value_in

pytestmark = pytest.mark.fast

DOSE = Column("Dose", "Which dose was given?", "number", "mg")
DESIGN = Column("Design", kind="choice", choices=("RCT", "cohort", "case cohort", "other"))
BLIND = Column("Blinded", "Was the trial blinded?", "yes_no")


@pytest.mark.parametrize(
    ("column", "quote", "value"),
    [
        (DOSE, "Patients took 1.5 g of aspirin each day.", ("1.5 g", 1500.0)),
        (DOSE, "Patients took 75 mg of aspirin, and 75 mg more after surgery.", ("75 mg", 75.0)),
        (DOSE, "Patients took 75 mg of aspirin, later 100 mg.", None),
        (DOSE, "Patients took aspirin for 2 weeks.", None),
        (DESIGN, "This cohort was followed for a year.", ("cohort", None)),
        (DESIGN, "This case cohort was followed.", ("case cohort", None)),
        (DESIGN, "An RCT and a cohort were compared.", None),
        (DESIGN, "We followed patients.", None),
        (BLIND, "The trial was double-blinded.", ("yes", None)),
        (BLIND, "The trial was not blinded.", ("no", None)),
        (BLIND, "The trial had two arms.", None),
        (Column("Method"), "We used glue.", ("", None)),
    ],
)
def test_a_value_is_in_its_quote(column: Column, quote: str, value: tuple[str, float | None] | None) -> None:
    assert value_in(column, Question(asked(column)), quote) == value


def said(column: Column, *sentences: str) -> list[tuple[str, str]]:
    text = " ".join(sentences)
    paper = Paper("a", "a", simple_metadata("Otters"), PageMap((0,), ("",)), len(text), 1)
    found = said_of(column, Question(asked(column)), PaperWords(paper, text), own_sentences(paper, text))
    return [(one.value, one.quote.quote) for one in found]


OURS = "Our trial was double-blinded by the hospital and its own pharmacy."
NOT_OURS = "In this trial the nurses of the hospital were not blinded at all."
FREE = "A blinded trial is one in which nobody knows what the patients get."


def test_yes_or_no_is_said_of_the_papers_own_work_and_both_where_it_disagrees() -> None:
    assert said(BLIND, FREE, OURS) == [("yes", OURS)]
    assert said(BLIND, OURS, NOT_OURS) == [("yes", OURS), ("no", NOT_OURS)]
    assert said(BLIND, FREE) == []
    assert said(DESIGN, "We followed a cohort of nurses of the hospital for two years.") == [
        ("cohort", "We followed a cohort of nurses of the hospital for two years.")
    ]


def test_two_numbers_of_the_same_thing_disagree() -> None:
    def finding(text: str) -> Finding:
        paper = Paper("a", "a", simple_metadata("A"), PageMap((0,), ("",)), len(text), 1)
        value = value_in(DOSE, Question(asked(DOSE)), text)
        assert value is not None
        return Finding(Quote(paper, 0, len(text), text), *value)

    low, high, same = map(finding, ("They took 75 mg of it.", "They took 0.15 g of it.", "They took 75 mg again."))
    assert (disagree(low, high), disagree(low, same)) == (True, False)
