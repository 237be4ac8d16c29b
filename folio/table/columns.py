"""The columns of a table: read from a list of questions, and what each one asks of a paper. Pure."""

from __future__ import annotations

import re

from folio.errors import UsageError
from folio.grounding.quantities import is_unit
from folio.table.cell import Column
from folio.text import one_line

MOST_COLUMNS = 50
LONGEST_NAME, LONGEST_QUESTION = 80, 500  # characters
FORMAT = (
    'Write one column a line: "Sample size", "Drug: Which drug was given?", "Dose [number, mg]", "Blinded [yes/no]"'
    ' or "Design [one of: RCT; cohort; other]".'
)
_KIND = re.compile(r"\s*\[(?P<kind>[^\[\]]*)\]$")
_NUMBER = re.compile(r"number(?:,\s*(?P<unit>.+))?", re.I)
_CHOICES = re.compile(r"one of:(?P<choices>.*)", re.I)
_YES_NO = re.compile(r"yes\s*/\s*no", re.I)


def read_columns(text: str) -> tuple[Column, ...]:
    """The columns of a list, one a line; empty lines and those that begin with # are left out.

    A line is a heading, "heading: question" or a question, and may end with its kind in square brackets. Raises
    UsageError for a line that is none of these, for no column and for too many.
    """
    columns: list[Column] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        column = parse_column(line, where=f"Line {number}")
        if any(column.name.casefold() == other.name.casefold() for other in columns):
            happened = f'Line {number} has the heading "{column.name}" again.'
            raise UsageError(happened, "Give each column its own heading.")
        columns.append(column)
    if not columns:
        raise UsageError("The list has no columns.", FORMAT)
    if len(columns) > MOST_COLUMNS:
        raise UsageError(f"The list has {len(columns)} columns.", f"A table has at most {MOST_COLUMNS}.")
    return tuple(columns)


def parse_column(line: str, *, where: str = "A column") -> Column:
    """The column of one line. where: begins the sentence of an error. Raises UsageError."""
    plain = one_line(line)
    suffix = _KIND.search(plain)
    asked = plain[: suffix.start()] if suffix else plain
    name, colon, question = (part.strip() for part in asked.partition(":"))
    if not colon and name.endswith("?"):
        question = name
    if not any(map(str.isalnum, name)):
        raise UsageError(f"{where} has no heading.", FORMAT)
    if len(name) > LONGEST_NAME and name != question:
        raise UsageError(f"{where} has a heading of {len(name)} characters.", f"At most {LONGEST_NAME} fit.")
    if len(question) > LONGEST_QUESTION:
        raise UsageError(f"{where} has a question of {len(question)} characters.", f"At most {LONGEST_QUESTION} fit.")
    return _with_kind(Column(name, question), suffix["kind"].strip() if suffix else "text", where)


def _with_kind(column: Column, kind: str, where: str) -> Column:
    """The column with the kind in square brackets. Raises UsageError for a kind or unit that is not known."""
    name, question = column.name, column.question
    if kind.casefold() == "text":
        return column
    if _YES_NO.fullmatch(kind):
        return Column(name, question, "yes_no")
    if number := _NUMBER.fullmatch(kind):
        unit = (number["unit"] or "").strip()
        if unit and not is_unit(unit):
            raise UsageError(f'{where} has an unknown unit, "{unit}".', 'Use one such as "mg", "km/h", "%" or "weeks".')
        return Column(name, question, "number", unit)
    if listed := _CHOICES.fullmatch(kind):
        choices = tuple(dict.fromkeys(choice.strip() for choice in listed["choices"].split(";") if choice.strip()))
        if len(choices) < 2:
            raise UsageError(f"{where} has fewer than two choices.", 'Separate them with ";": [one of: RCT; cohort].')
        return Column(name, question, "choice", choices=choices)
    raise UsageError(f'{where} has an unknown kind, "[{kind}]".', FORMAT)


def written(column: Column) -> str:
    """The line that `parse_column` reads as this column."""
    kinds = {
        "text": "",
        "number": f" [number, {column.unit}]" if column.unit else " [number]",
        "yes_no": " [yes/no]",
        "choice": f" [one of: {'; '.join(column.choices)}]",
    }
    asked = f": {column.question}" if column.question and column.question != column.name else ""
    return f"{column.name}{asked}{kinds[column.kind]}"
