"""The columns of a table: read from a list of questions, and what each one asks of a paper. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Asked:
    """What a column asks of a paper."""

    question: str
    readings: tuple[str, ...] = ()  # other wordings to search with, such as a sentence that would answer


@dataclass(frozen=True, slots=True)
class _Known:
    """A heading that people give a column, which says little by itself, and what it asks."""

    names: str  # in lower case, separated by commas
    question: str
    readings: tuple[str, ...] = ()


# The headings of evidence tables. LOG.md has what each is worth against asking for the heading as it stands.
_KNOWN = (
    _Known("sample size, n, participants, number of participants", "How many participants or samples were there?"),
    _Known("method, methods, methodology, approach", "What method does this paper use?"),
    _Known("main result, main results, result, results, main finding, main findings, findings",
           "What are the main results of this paper?"),
    _Known("limits, limitations, limitation, weaknesses", "What are the limitations of this paper?"),
    _Known("data, dataset, data set, datasets, data sets, data source", "Which data set was used?"),
    _Known("conclusion, conclusions", "What does this paper conclude?"),
    _Known("contribution, contributions, main contribution", "What are the main contributions of this paper?"),
    _Known("aim, aims, objective, objectives, goal, purpose, research question", "What is the aim of this paper?"),
    _Known("population, patients", "Which patients or subjects were studied?"),
    _Known("intervention, treatment, exposure", "Which treatment did the intervention group receive?"),
    _Known("comparison, comparator, control", "What did the control group receive?"),
    _Known("outcome, outcomes, outcome measure, primary outcome", "What was the primary outcome measure?"),
)  # fmt: skip
_BY_NAME = {name.strip(): known for known in _KNOWN for name in known.names.split(",")}


def asked(column: Column) -> Asked:
    """What a column asks: its question; without one what its heading stands for, or the heading."""
    if column.question:
        return Asked(column.question)
    if known := _BY_NAME.get(column.name.casefold()):
        return Asked(known.question, known.readings)
    return Asked(f"What is the {column.name}?", (column.name,))


