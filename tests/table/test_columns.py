"""The columns of a table are read from a list of questions."""

from __future__ import annotations

import pytest

from folio.errors import UsageError
from folio.table.cell import Column
from folio.table.columns import parse_column, read_columns, written
from folio.table.headings import asked

pytestmark = pytest.mark.fast


def test_a_list_has_headings_questions_and_kinds() -> None:
    listed = """\ufeff# my columns
Sample size [number]

Dose: Which dose was given? [number, mg]
  Blinded [yes/no]
Design: What design has it?  [one of: RCT; cohort ; other]
Was it funded?
Note [text]
"""
    assert read_columns(listed) == (
        Column("Sample size", "", "number"),
        Column("Dose", "Which dose was given?", "number", "mg"),
        Column("Blinded", "", "yes_no"),
        Column("Design", "What design has it?", "choice", choices=("RCT", "cohort", "other")),
        Column("Was it funded?", "Was it funded?"),
        Column("Note"),
    )


def test_what_is_written_is_read_again() -> None:
    lines = ["Sample size", "Dose: Which? [number, mg]", "Blinded [yes/no]", "Design [one of: RCT; other]", "Why?"]
    assert [written(parse_column(line)) for line in lines] == lines


@pytest.mark.parametrize(
    ("listed", "happened"),
    [
        ("# nothing\n\n", "The list has no columns."),
        ("Dose [number, florps]", 'Line 1 has an unknown unit, "florps".'),
        ("Dose [one of: one]", "Line 1 has fewer than two choices."),
        ("Dose\nSize [big]", 'Line 2 has an unknown kind, "[big]".'),
        ("Dose\ndose: Which?", 'Line 2 has the heading "dose" again.'),
        (": Which?", "Line 1 has no heading."),
        ("x" * 81, "Line 1 has a heading of 81 characters."),
        ("a: " + "x" * 501, "Line 1 has a question of 501 characters."),
        ("\n".join(f"column {n}" for n in range(51)), "The list has 51 columns."),
    ],
)
def test_a_list_that_cannot_be_read_says_where_and_why(listed: str, happened: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_columns(listed)
    assert raised.value.happened == happened
    assert raised.value.remedy


def test_a_known_heading_asks_what_it_stands_for_and_a_question_asks_itself() -> None:
    assert asked(Column("limitations")) == "What are the limitations of this paper?"
    assert asked(Column("Limitations", "What failed?")) == "What failed?"
    assert asked(Column("Reagent")) == "Which reagent was used?"
