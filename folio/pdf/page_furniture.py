"""Page furniture: margin stamps, line numbers, running heads and watermarks around the text of a page.

Position and repetition decide, never a list of publishers' words: a thesis may write about "Copy BibTeX". arXiv's stamp
is recognised by its place and form. Other furniture must be repeated: line numbers on most pages, and other lines at
the same place on several pages, where they run up the page or a gap separates them from the text. Before this,
cleaning.py removes lines that many pages repeat among their first and last lines. Pure geometry, no PDF library.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from folio.pdf.reading_order import Box
from folio.text import one_line

# arXiv prints its number up the left margin of the first page.
_ARXIV_STAMP = re.compile(r"arXiv:\S{6,30}\s+(?:\[[\w.-]{2,30}\]\s+)?\d{1,2} \w{3} \d{4}")
# Shorter lines, in characters, do not show how wide the text of a page is.
_TEXT_LINE = 20
# Step of the line numbers -> how many a draft's page has at least; tables of contents and listings have fewer.
_MIN_NUMBERED = {1: 20, 5: 5}
# The share of the height of a page's text that is numbered
_MIN_NUMBERED_HEIGHT = 0.7
_NUMBER = re.compile(r"\d{1,4}")
# A line is furniture if this many pages repeat it within this distance, in points.
_MIN_PAGES, _NEAR = 3, 2.0
# The gap between a running head or foot and the text, as a share of its height
_MIN_GAP = 0.6
# The share of all pages that have a running head or foot at the same height
_MIN_SHARE = 0.3
# Letters that a running head must have
_MIN_LETTERS = 4
# At most this many lines of a page are compared with other pages: enough for a stamp, a head and a foot.
_MAX_LINES = 12
_PAGE_NUMBER = re.compile(r"(?:[\[(|–—-]\s*)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*[\])|–—-])?")


class EdgeLine(NamedTuple):
    """A line that may be furniture: its text without a page number, and its place on the page."""

    text: str
    side: str  # "top", "bottom", or "across" for a line that does not run from left to right
    x: float
    y: float


def without_stamp(blocks: Sequence[Sequence[Box]]) -> list[Sequence[Box]]:
    """The lines of a first page, by block, without the stamp that arXiv prints up its margin."""
    left = min((line.x0 for line in _text_lines(blocks)), default=0.0)
    return [
        [line for line in block if line.level or line.x1 > left or not _ARXIV_STAMP.match(line.text.strip())]
        for block in blocks
    ]


def without_line_numbers(blocks: Sequence[Sequence[Box]]) -> list[Sequence[Box]] | None:
    """The lines of a page, by block, without line numbers; None if there are no line numbers."""
    level = _text_lines(blocks)
    left = min((line.x0 for line in level), default=0.0)
    height = max((line.y1 for line in level), default=0.0) - min((line.y0 for line in level), default=0.0)
    dropped = _line_numbers(blocks, left, height)
    return [[line for line in block if id(line) not in dropped] for block in blocks] if dropped else None


def _text_lines(blocks: Sequence[Sequence[Box]]) -> list[Box]:
    return [line for block in blocks for line in block if line.level and len(line.text) >= _TEXT_LINE]


def _line_numbers(blocks: Sequence[Sequence[Box]], left: float, height: float) -> set[int]:
    """The ids of the line numbers: one column to the left of the text. left, height: of the text, in points."""
    numbers = [
        line
        for block in blocks
        for line in block
        if line.x1 <= left and line.level and _NUMBER.fullmatch(line.text.strip())
    ]
    columns: dict[tuple[str, int], list[Box]] = defaultdict(list)
    for line in numbers:
        columns["left", round(line.x0)].append(line)
        columns["right", round(line.x1)].append(line)
    for column in sorted(columns.values(), key=len, reverse=True):
        column.sort(key=lambda line: line.y0)
        if column[-1].y1 - column[0].y0 < _MIN_NUMBERED_HEIGHT * height:
            continue
        steps = Counter(int(below.text) - int(above.text) for above, below in pairwise(column))
        for step, fewest in _MIN_NUMBERED.items():
            if len(column) >= fewest and steps[step] >= 0.9 * (len(column) - 1):
                return {id(line) for line in column}
    return set()


def edge_lines(blocks: Sequence[Sequence[Box]]) -> list[EdgeLine]:
    """The lines of a page that may be furniture."""
    lines = [line for block in blocks for line in block if line.text.strip()]
    level = [line for line in lines if line.level]
    edges = [EdgeLine(key, "across", line.x0, line.y0) for line in lines if not line.level and (key := _key(line.text))]
    if len(edges) > _MAX_LINES:  # a rotated page, or a figure
        edges = []
    if level:
        edges += _edge_row(level, top=True)
        edges += _edge_row(level, top=False)
    return edges[:_MAX_LINES]


def _edge_row(level: Sequence[Box], top: bool) -> Iterator[EdgeLine]:
    """The pieces of the first or last row of a page, if a gap separates it from the text."""
    edge = min(level, key=lambda line: line.y0) if top else max(level, key=lambda line: line.y1)
    height = edge.y1 - edge.y0
    row = [line for line in level if abs(line.middle - edge.middle) < 0.5 * height]
    other_lines = [line for line in level if abs(line.middle - edge.middle) >= 0.5 * height]
    if not other_lines or len(row) > _MAX_LINES // 3:
        return
    if top:
        gap = min(line.y0 for line in other_lines) - max(line.y1 for line in row)
    else:
        gap = min(line.y0 for line in row) - max(line.y1 for line in other_lines)
    if gap > _MIN_GAP * height:
        for line in row:
            if key := _key(line.text):
                yield EdgeLine(key, "top" if top else "bottom", line.x0, line.y0)


def repeated(pages: Sequence[Sequence[EdgeLine]]) -> list[tuple[str, ...]]:
    """For each page, its lines that other pages repeat at the same place: their texts without page numbers."""
    places: dict[tuple[str, str], list[tuple[int, EdgeLine]]] = defaultdict(list)
    heights: Counter[tuple[str, int]] = Counter()
    for number, lines in enumerate(pages):
        heights.update({(line.side, round(line.y)) for line in lines})
        for line in lines:
            places[line.text, line.side].append((number, line))
    needed = max(_MIN_PAGES, _MIN_SHARE * len(pages))
    furniture: list[set[str]] = [set() for _ in pages]
    for (text, side), occurrences in places.items():
        for number, line in occurrences:
            near = {
                other_number
                for other_number, other in occurrences
                if abs(other.y - line.y) <= _NEAR and (side != "across" or abs(other.x - line.x) <= _NEAR)
            }
            at_this_height = sum(heights[side, round(line.y) + offset] for offset in (-1, 0, 1))
            # A running head is often the title, which must stay on the first page.
            if (
                len(near) >= _MIN_PAGES
                and (side == "across" or at_this_height >= needed)
                and not (side == "top" and not number)
            ):
                furniture[number].add(text)
    return [tuple(sorted(texts)) for texts in furniture]


def without_lines(text: str, furniture: Sequence[str]) -> str:
    """A page's text without these lines. Of each, only the occurrence nearest to the page's beginning or end goes."""
    lines = text.split("\n")
    dropped = set()
    for unwanted in furniture:
        places = [place for place, line in enumerate(lines) if _key(line) == unwanted]
        if places:
            dropped.add(min(places, key=lambda place: min(place, len(lines) - place)))
    if not dropped:
        return text
    return "\n".join(line for place, line in enumerate(lines) if place not in dropped)


def _key(text: str) -> str:
    """A line's text without a page number at either end; "" if it has too few letters for a running head."""
    words = one_line(text)
    head, _, tail = words.partition(" ")
    if tail and _PAGE_NUMBER.fullmatch(head):
        words = tail
    head, _, tail = words.rpartition(" ")
    if head and _PAGE_NUMBER.fullmatch(tail):
        words = head
    return words if sum(map(str.isalpha, words)) >= _MIN_LETTERS else ""
