"""Finds a number in a statement that belongs to another row or column of its table. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from folio.grounding.attribution import Attribution
from folio.grounding.quantities import Quantity, quantities
from folio.grounding.sentences import is_row
from folio.grounding.words import matching_words, tokens_of

# Two spaces within a line separate table cells (pdf/reading_order.py).
_GAP = re.compile(r" {2,}")
# What separates the values of a statement: "2.4 m at Ellis, 1.1 m at Saltness"
_PARTS = re.compile(r"[,;](?=\s)|\b(?:and|but|while|whereas)\b", re.I)
# A value of a table begins with its number; a cell that begins with a word, or is a year, names a row or a column.
_NAME = re.compile(r"\W*[^\W\d]")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_Names = tuple[frozenset[str], ...]  # the words of each row's or column's name that are unique in the table


@dataclass(frozen=True, slots=True)
class _Table:
    """A table whose rows and columns have names.

    A row with missing or extra values has all its numbers in each column, because their columns are unknown.
    """

    rows: _Names
    columns: _Names
    cells: tuple[tuple[tuple[Quantity, ...], ...], ...]  # the numbers of each value, by row and column


def misplaced(statement: str, source: Attribution) -> Quantity | None:
    """The first number of a statement that the table has in another row or column than the one the statement names.

    Only tables with a header in the cited evidence count, and numbers that its prose does not also have.
    """
    texts = {sentence.evidence.text for sentence in source.sentences if is_row(sentence.text)}
    tables = [table for text in texts for table in _tables(text)]
    if not tables:
        return None
    prose = [number for s in source.sentences if not is_row(s.text) for number in quantities(s.text)]
    parts = _PARTS.split(statement)
    for part in parts:
        for number in quantities(part):
            if number.is_reference or number.is_spelled or number.is_among(prose):
                continue
            verdicts = [verdict for table in tables if (verdict := _belongs(number, part, parts, table)) is not None]
            if verdicts and not any(verdicts):
                return number
    return None


def _belongs(number: Quantity, part: str, parts: Sequence[str], table: _Table) -> bool | None:
    """Whether the table has a number in the row and column that the statement names; None if it has it nowhere.

    parts: those of the statement. part: the one with the number.
    """
    if any(tokens_of(number.written) == name for name in table.columns):
        return None  # it names a column: 2019, or the 1 of "Week 1"
    places = [
        (row, column)
        for row, values in enumerate(table.cells)
        for column, value in enumerate(values)
        if number.is_among(value)
    ]
    if not places:
        return None
    rows, columns = (_intended(names, part, parts) for names in (table.rows, table.columns))
    return any(row in rows and column in columns for row, column in places)


def _intended(names: _Names, part: str, parts: Sequence[str]) -> set[int]:
    """The rows or columns that a part of a statement gives its numbers for; all if it names none.

    "A and B have 1 and 2" names them separately from the numbers, so each number may belong to any of them.
    """
    if any(_named(names, other) and not _has_value(names, other) for other in parts):
        part = " ".join(parts)
    named = _named(names, part) or _named(names, " ".join(parts)) or set(range(len(names)))
    return named | {place for place, name in enumerate(names) if not name}


def _has_value(names: _Names, text: str) -> bool:
    """Whether a text has a number that is not the name of a row or column."""
    return any(tokens_of(number.written) not in names for number in quantities(text))


def _named(names: _Names, text: str) -> set[int]:
    """The rows or columns whose unique words are all in a text."""
    words = tokens_of(text)
    return {place for place, name in enumerate(names) if name and matching_words(name, words) == name}


@lru_cache(maxsize=64)
def _tables(text: str) -> tuple[_Table, ...]:
    """The tables of a text: consecutive lines with cells below a header."""
    return tuple(table for lines in _runs(text.splitlines()) if (table := _table(lines)))


def _runs(lines: Sequence[str]) -> Iterator[list[list[str]]]:
    """The cells of each run of consecutive lines with cells."""
    run: list[list[str]] = []
    for line in (*lines, ""):
        if is_row(line.strip()):
            run.append([cell for cell in _GAP.split(line.strip()) if cell])
        else:
            if len(run) > 1:
                yield run
            run = []


def _table(lines: Sequence[Sequence[str]]) -> _Table | None:
    header, *rows = lines
    widths = Counter(len(row) for row in rows if len(row) - len(header) in (0, 1))
    years = [_YEAR.fullmatch(cell) for cell in header]
    if not widths or not all(
        year or _NAME.match(cell) or not quantities(cell) for year, cell in zip(years, header, strict=True)
    ):
        return None
    width = max(widths, key=lambda each: (widths[each], each))
    if any(years) and any(all(map(_YEAR.fullmatch, row[1:])) for row in rows):
        return None  # years are the values here
    names = [tokens_of(row[0]) for row in rows] + [tokens_of(name) for name in header[len(header) - width + 1 :]]
    uses = Counter(word for words in names for word in words)
    unique = [frozenset(word for word in words if uses[word] == 1) for words in names]
    # "Treated (n = 12)" is called "treated", but "Week 1" next to "Week 2" is called "1".
    short = tuple(frozenset(word for word in words if len(word) > 1 and word.isalpha()) or words for words in unique)
    return _Table(short[: len(rows)], short[len(rows) :], tuple(_values(row[1:], width - 1) for row in rows))


def _values(cells: Sequence[str], columns: int) -> tuple[tuple[Quantity, ...], ...]:
    """The numbers of a row by column; all of them in each column if there are more or fewer cells than columns."""
    values = tuple(map(quantities, cells))
    return values if len(values) == columns else (tuple(chain.from_iterable(values)),) * columns
