"""Finds lists, algorithms and tables in a text, each with its introduction or caption. Pure.

An algorithm whose span is known (papers/sections.py) is only split into its lines, see `algorithm`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from folio.text import stripped

_STEP = re.compile(
    r"[ ]*(?:(?:step[ ]+)?\(?\d{1,3}(?:[.)][ ]+|[ ]?:(?!\d)[ ]*)\S|step[ ]+\d"
    r"|[•▪‣*–-][ ]+\S|\(?(?:[a-z]|[ivx]{1,4})\)[ ]+\S"
    r"|(?:require|ensure|input|output)s?[ ]?:|(?:for|while|if|else[ ]?if|until)\b.{0,70}(?:\bdo|\bthen|:)[ ]*$"
    r"|(?:else|repeat|end(?:[ ]?(?:for|while|if))?|return\b.{0,40})[ ]*$)",
    re.I,
)
# A line of an algorithm, "12: return x", has no continuation lines.
_LINE_OF_CODE = re.compile(r"[ ]*\d{1,3}[ ]?:")
_NUMBERED = re.compile(r"[ ]*(?:step[ ]+)?\(?\d{1,3}(?:[ ]?[:.)](?!\d)|(?=[ ]|$))", re.I)
_LABEL = re.compile(
    r"[ ]*(?:algorithm|alg\.|listing|procedure|pseudo-?code|protocol|program|code|snippet|function|subroutine)\b", re.I
)
_MOST_INPUTS = 12  # lines of description, inputs and outputs before the steps of an algorithm
# A line with a gap between two cells. Two blanks after the end of a sentence are no gap.
_ROW = re.compile(r"[ ]*\S.*?(?<![.!?:;,])(?<![.!?:;,][\"”’)\]])[ ]{2,}\S")
# A line between table rows that names the rows after it.
_GROUP_LABEL = re.compile(r"[ ]*[^\W\d_]{3}[^.]{0,37}$")
_TABLE = re.compile(r"[ ]*table[ ]*[\dIVX]", re.I)
_LEADS_IN = re.compile(r"[ ]*(?:table|algorithm|listing|box|procedure)[ ]*\d|.*:[ ]*$", re.I)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
# Maximum characters between the starts of two items of a list, and with a paragraph such as a formula in between
_ITEM_GAP, _PARAGRAPH_GAP = 500, 200
_CAPTION_LINES = 4  # maximum lines of a caption above its table


@dataclass(frozen=True, slots=True)
class Unit:
    """A list, table, item or row to keep whole: the span [start, end)."""

    start: int
    end: int
    begins: bool = True  # False if it may begin before the text
    ends: bool = True  # False if it may continue after the text


@dataclass(frozen=True, slots=True)
class Structure:
    """A list or table: its span [start, end) with introduction or caption, and the spans of its items or rows."""

    kind: Literal["list", "table", "algorithm"]
    start: int
    end: int
    items: tuple[tuple[int, int], ...]
    is_bibliography: bool = False


def lists_and_tables(text: str, begins: bool, ends: bool) -> Iterator[Unit]:
    """The lists, algorithms and tables of a text as wholes, then their items and rows.

    begins, ends: whether the text begins or ends where the paper does; if not, a list may continue beyond it.
    """
    wholes = list(structures(text))
    for whole in wholes:
        if not whole.is_bibliography:  # single entries are enough
            is_last = len(text) - whole.end <= _ITEM_GAP
            yield Unit(whole.start, whole.end, begins or whole.start > _ITEM_GAP, ends or not is_last)
    for whole in wholes:
        yield from (Unit(start, end) for start, end in whole.items)


def structures(text: str) -> Iterator[Structure]:
    """The lists and algorithms of a text, then its tables."""
    lines = [stripped(text, *match.span()) for match in re.finditer(r"[^\n]*\S[^\n]*", text)]
    for first, last, items in _lists(text, lines):
        parts = _parts(lines, last, items)
        years = sum(bool(_YEAR.search(text, *part)) for part in parts)
        is_bibliography = 2 * years > len(items) > 1 and not _ROW.match(text, *lines[items[0]])
        yield Structure("list", lines[first][0], lines[last][1], parts, is_bibliography)
    for first, last, items in _tables(text, lines):
        yield Structure("table", lines[first][0], lines[last][1], _parts(lines, last, items))


def algorithm(text: str, start: int, end: int) -> Structure:
    """The algorithm in this span, with its steps: its numbered lines, or all lines without numbers.

    The label and lines of description stand before the steps; or the label stands after them.
    """
    lines = [stripped(text, *match.span()) for match in re.compile(r"[^\n]*\S[^\n]*").finditer(text, start, end)]
    numbered = [number for number, line in enumerate(lines) if _NUMBERED.match(text, *line)]
    first = 1 if _LABEL.match(text, *lines[0]) and len(lines) > 1 else 0
    starts = numbered if 2 * len(numbered) > len(lines) - first - _MOST_INPUTS and len(numbered) > 1 else []
    return Structure("algorithm", start, end, _parts(lines, len(lines) - 1, starts or list(range(first, len(lines)))))


def _parts(lines: Sequence[tuple[int, int]], last: int, items: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The spans of the items that begin in these lines."""
    return tuple((lines[item][0], lines[after - 1][1]) for item, after in pairwise((*items, last + 1)))


# First and last line of a list or table, and the lines where its items begin
_Run = tuple[int, int, list[int]]


def _lists(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[_Run]:
    """Lists and algorithms. The last item continues until its paragraph or sentence ends."""
    starts = [number for number, line in enumerate(lines) if _STEP.match(text, *line)]

    def together(one: int, two: int) -> bool:
        paragraphs = sum(text[lines[n][1] : lines[n + 1][0]].count("\n") > 1 for n in range(one, two))
        return lines[two][0] - lines[one][0] <= (_ITEM_GAP if paragraphs < 2 else _PARAGRAPH_GAP) and paragraphs < 3

    for items in _groups(starts, together):
        last = items[-1]
        continues = not _LINE_OF_CODE.match(text, *lines[last])
        while continues and last + 1 < len(lines) and lines[last][1] - lines[items[-1]][0] <= _ITEM_GAP:
            in_paragraph = text[lines[last][1] : lines[last + 1][0]].count("\n") == 1
            continues = in_paragraph and text[lines[last][1] - 1] not in ".!?"
            last += continues
        if len(items) > 1:
            before = items[0] - 1
            yield before if before >= 0 and _LEADS_IN.match(text, *lines[before]) else items[0], last, items


def _tables(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[_Run]:
    """Tables with the caption above or below."""
    rows = [number for number, line in enumerate(lines) if _ROW.match(text, *line)]

    def together(one: int, two: int) -> bool:
        names = _GROUP_LABEL.match(text, *lines[two - 1]) and text[lines[two - 1][1] : lines[two][0]].count("\n") == 1
        return two == one + 1 or (two == one + 2 and bool(names))

    for items in _groups(rows, together):
        if len(items) < 2:
            continue
        above = range(items[0] - 1, max(-1, items[0] - 1 - _CAPTION_LINES), -1)
        first = next((number for number in above if _TABLE.match(text, *lines[number])), items[0])
        if first == items[0] and first and _LEADS_IN.match(text, *lines[first - 1]):
            first -= 1
        below = items[-1] + 1
        is_caption = first == items[0] and below < len(lines) and _TABLE.match(text, *lines[below])
        yield first, below if is_caption else items[-1], items


def _groups(numbers: Sequence[int], together: Callable[[int, int], bool]) -> list[list[int]]:
    groups: list[list[int]] = []
    for number in numbers:
        if groups and together(groups[-1][-1], number):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups
