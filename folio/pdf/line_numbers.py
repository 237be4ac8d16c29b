"""The line numbers of manuscripts, found by their place beside lines of prose. Pure geometry, no PDF library.

Journals ask for manuscripts whose lines are numbered: in the left margin, the right one, both, or beside each column;
each line or each fifth; drawn before, with or after the text. Numbers that belong to the text look alike: the first
column of a table, the lines of a listing, the verses of a poem, the numbers of equations. A line number stands outside
the text, in a straight column that counts evenly down most of the page, beside lines that fill their measure; and a
manuscript numbers most of its pages.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from folio.pdf.order import Box

_NUMBER = re.compile(r"\d{1,5}")
# Shorter lines, in characters, do not show how wide the text of a page is.
_TEXT_LINE = 20
# Step of the line numbers -> how many a page has at least that shows by itself that its lines are numbered
_MIN_NUMBERED = {1: 12, 2: 8, 5: 4, 10: 3}
# The share of the height of a page's text that is numbered, and the share of the steps that are even
_MIN_HEIGHT, _MIN_EVEN = 0.7, 0.9
# A line of prose is at least this wide, as a share of the wide lines of its page; half of the lines of prose are, while
# the lines of listings and poems end anywhere.
_MIN_WIDTH, _MIN_FULL = 0.85, 0.5
# At most this share of the lines of text crosses a column of line numbers, such as a title that spans the gutter.
_MAX_CROSSING = 0.1
# How far the numbers of a column stray from it, in points
_STRAY = 1.5
# Columns of numbers that are looked at on one page, the longest first
_MAX_COLUMNS = 40
# Pages that are kept although nothing shows yet that the file is a manuscript
_MAX_KEPT = 40

_Blocks = Sequence[Sequence[Box]]
_Place = tuple[float, float]  # the left and the top of a line, in points
_Side = str  # the side by which the numbers of a column are aligned: "left", "right" or "middle"


class _Column(NamedTuple):
    """A straight column of numbers on a page, from the top."""

    side: _Side
    x: float
    lines: list[Box]


class LineNumbers:
    """The line numbers of one file, whose pages are added in order."""

    def __init__(self) -> None:
        self._kept: dict[int, _Blocks] = {}  # pages with lines that are only a number
        self._evident: dict[int, list[_Column]] = {}
        self._steps: Counter[int] = Counter()
        self._count = 0  # pages with text

    def add_page(self, index: int, blocks: _Blocks) -> frozenset[_Place]:
        """Add page `index` (from 0): its lines, by block. Returns the places of what seem to be line numbers."""
        self._count += 1
        numbers = [line for block in blocks for line in block if line.level and _NUMBER.fullmatch(line.text.strip())]
        if not numbers or len(self._kept) > 4 * len(self._evident) + _MAX_KEPT:
            return frozenset()
        self._kept[index] = blocks
        found = []
        text = [line for block in blocks for line in block if line.level and len(line.text) >= _TEXT_LINE]
        if text and len(numbers) >= min(_MIN_NUMBERED.values()):
            for column in _columns(numbers):
                if step := _step(column, text, blocks):
                    found.append(column)
                    self._steps[step] += 1
        if found:
            self._evident[index] = found
        elif 2 * len(self._evident) >= self._count - 1 > 0:
            places, step = self._places()
            found = list(_likely(blocks, places, step, {step}))
        return _places_of(found)

    def unnumbered(self) -> Iterator[tuple[int, list[list[Box]], frozenset[_Place]]]:
        """The pages of a manuscript: index, lines by block without line numbers, the place of each number."""
        if not self._evident:
            return
        numbered = list(self._numbered())
        if 2 * len(numbered) < self._count:
            return  # a listing numbers only its own lines
        for index, columns in numbered:
            dropped = {id(line) for column in columns for line in column.lines}
            yield (
                index,
                [[line for line in block if id(line) not in dropped] for block in self._kept[index]],
                _places_of(columns),
            )

    def _numbered(self) -> Iterator[tuple[int, list[_Column]]]:
        """The pages with line numbers, also those whose few lines show it only beside the other pages."""
        places, step = self._places()
        following: set[int] = {step}
        for index, blocks in sorted(self._kept.items()):
            columns = self._evident.get(index) or list(_likely(blocks, places, step, following))
            if columns:
                following = {step, *(int(column.lines[-1].text) + step for column in columns)}
                yield index, columns


    def _places(self) -> tuple[set[tuple[_Side, int]], int]:
        """Where the evident line numbers stand, and their step."""
        ((step, _),) = self._steps.most_common(1)
        return {(column.side, round(column.x)) for columns in self._evident.values() for column in columns}, step


def _places_of(columns: Iterable[_Column]) -> frozenset[_Place]:
    return frozenset((line.x0, line.y0) for column in columns for line in column.lines)


def _columns(numbers: Sequence[Box]) -> list[_Column]:
    """The straight columns of these lines; a line may be in several."""
    columns: dict[tuple[_Side, int], list[Box]] = defaultdict(list)
    for line in numbers:
        for side, x in _edges(line):
            columns[side, round(x)].append(line)
    longest = sorted(columns.items(), key=lambda column: -len(column[1]))[:_MAX_COLUMNS]
    return [
        _Column(side, x, sorted(lines, key=lambda line: line.y0))
        for (side, x), lines in longest
        if len(lines) >= min(_MIN_NUMBERED.values())
    ]


def _edges(line: Box) -> tuple[tuple[_Side, float], ...]:
    return ("left", line.x0), ("right", line.x1), ("middle", (line.x0 + line.x1) / 2)


def _step(column: _Column, text: Sequence[Box], blocks: _Blocks) -> int:
    """The step of a column of line numbers; 0 if it is none. text: the longer lines of the page."""
    lines = column.lines
    height = max(line.y1 for line in text) - min(line.y0 for line in text)
    if lines[-1].y1 - lines[0].y0 < _MIN_HEIGHT * height:
        return 0
    step, votes = Counter(int(below.text) - int(above.text) for above, below in pairwise(lines)).most_common(1)[0]
    if len(lines) < _MIN_NUMBERED.get(step, len(lines) + 1) or votes < _MIN_EVEN * (len(lines) - 1):
        return 0
    left, right = min(line.x0 for line in lines), max(line.x1 for line in lines)
    crossing = sum(line.x0 < right and line.x1 > left for line in text)
    if crossing > _MAX_CROSSING * len(text):
        return 0
    widths = sorted(line.x1 - line.x0 for line in text)
    wide = _MIN_WIDTH * widths[int(0.9 * (len(widths) - 1))]
    full = sum(line.x1 - line.x0 >= wide for line in _beside(lines, blocks))
    return step if full >= _MIN_FULL * len(lines) else 0


def _beside(numbers: Sequence[Box], blocks: _Blocks) -> Iterator[Box]:
    """For each number, the line nearest to it on its row, other numbers aside."""
    others = [line for block in blocks for line in block if line.level and not _NUMBER.fullmatch(line.text.strip())]
    others.sort(key=lambda line: line.middle)
    middles = [line.middle for line in others]
    for number in numbers:
        near = others[bisect_left(middles, number.y0) : bisect_left(middles, number.y1)]
        if near:
            yield min(near, key=lambda line: max(line.x0 - number.x1, number.x0 - line.x1))


def _likely(
    blocks: _Blocks, places: Set[tuple[_Side, int]], step: int, following: Set[int]
) -> Iterator[_Column]:
    """The line numbers of a page that has few of them, such as the last one, at the places of the other pages' numbers.

    following: the numbers with which the page may begin.
    """
    numbers = [line for block in blocks for line in block if line.level and _NUMBER.fullmatch(line.text.strip())]
    for side, place in places:
        column = [line for line in numbers if abs(dict(_edges(line))[side] - place) <= _STRAY]
        column.sort(key=lambda line: line.y0)
        even = {
            id(line)
            for above, below in pairwise(column)
            if int(below.text) - int(above.text) == step
            for line in (above, below)
        }
        if column and int(column[0].text) in following:
            even.add(id(column[0]))
        if even:
            yield _Column(side, place, [line for line in column if id(line) in even])
