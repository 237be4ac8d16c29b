"""The value of a cell is in its quote, or there is none."""

from __future__ import annotations

import pytest

from folio.question.question import Question
from folio.table.cell import Column
from folio.table.headings import asked
from folio.table.values import value_in

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
