"""Body text flows on: puts a sentence together that a figure, a table, its caption, a note or a page's edge interrupts.

Typesetters put what floats at the top of a page or column, and notes at its foot, so a paragraph often ends behind
them. Here what floats comes after the paragraph that it interrupts. Where a paragraph goes on on the next page, notes
come before it, and what floats at the top of the next page after its end. Text never leaves its page.

Two paragraphs are joined only if everything says that one goes on in the other: the first stops in mid-sentence, the
next word had no room in its last line, both have one size and face and stand equally far from the edge of their column,
the second does not begin as a new paragraph, and all between them is a caption, a float, a note or furniture. In doubt
nothing moves. Pure geometry and punctuation, no PDF library.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from folio.pdf.order import Box, continues

# furniture: a running head or foot, or a page number; margin: what else stands at the edges; other: headings, formulas
Kind = Literal["body", "caption", "footnote", "float", "furniture", "margin", "other"]

# Sizes of type that differ by more than this, in points, are different.
_SAME_SIZE = 0.35
# Notes and captions are at least this much smaller than body text, in points.
_SMALLER = 0.6
# Lines as far from the edge of their column as this share of the type size are equally far: an indent is wider.
_SAME_EDGE = 0.55
# A last line ends so near the edge, in type sizes, that a word had no room. Ragged lines are measured by the next word.
_FULL = 1.3
# A column's line has at least this many characters.
_LINE = 20
# Blank space between furniture and text, as a share of the height of the furniture
_MIN_GAP = 0.5
# Lines at the edge of this many pages within this distance, in points, are furniture.
_MIN_PAGES, _NEAR = 3, 2.5
# Share of the letters among the characters of prose that are not spaces
_MIN_LETTERS = 0.5
# So many characters show whether a paragraph is prose.
_SAMPLE = 300
# The most paragraphs between the two halves of a sentence: the labels of a large figure
_MOST_BETWEEN = 150

# At most this many edges of lines are tried as those of columns.
_MOST_EDGES = 24
# The most columns of a page: also an abstract, and lists that end elsewhere than the text
_MOST_COLUMNS = 8

_CAPTION = re.compile(
    r"\s*(?:supplementary |extended data )?(?:fig(?:ure|\.)?s?|tab(?:le|\.)?|listing|algorithm|alg\.|scheme|box|chart"
    r"|plate|exhibit|diagram|code|program)[ ]*(?:[A-Z]{0,2}[-.]?\d{1,3}(?:[.–-]\d{1,3})*|[IVX]{1,6})"
    r"(?P<after>[ ]?[.:|—–]|\s*$|\s*\n|[ ]{2,})?",
    re.I,
)
_NOTE = re.compile(r"\s*(?:[\d¹²³⁴⁵⁶⁷⁸⁹⁰]{1,3}|[*∗⋆†‡§¶#]{1,3}|\([\da-z]\)|\^\S+)[.)]?\s?\S")
_PAGE_NUMBER = re.compile(r"\W*\d{1,4}\W*")
_ROMAN = re.compile(r"[ivxlc]{1,7}")
# The beginning of a list item, a step or an entry
_ITEM = re.compile(r"\s*(?:\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5})[.):]\s|[•▪‣◦·–—*-]\s|\[\w{1,12}\]\s)")
# A word with a capital letter and others, as at the beginning of a sentence; words in lower case
_TITLED, _LOWER = re.compile(r"[\"“‘(\[]*([A-Z][a-z]*)\b"), re.compile(r"\b[a-z]+\b")
_OPENING = "\"“‘(["
_HYPHENS = "-\u2010\u00ad"
# The end of a sentence: its mark, and then perhaps quotes, the mark of a note, a citation, or the end of a proof
_END = re.compile(
    r"[.!?:…。！？][\"'”’)\]»]*(?:\s*[¹²³⁰-⁹,*∗⋆†‡§]{1,6}|\s+[\d□■∎♦�]{1,2}|\s*\[[\d,;–\s-]{1,16}\])?$"
)
_END_CHARACTERS = 30
_MATHS = re.compile(r"^(?:CM(?:MI|SY|EX|BSY)|MSAM|MSBM|EU[FRS]M|.*math|.*symbol)", re.I)
_FORMULA = re.compile(r"[=≤≥≈∑∏∫√→∀∃∈⊆⊂]|\(\d{1,3}(?:\.\d{1,3})?\)\s*$")


@dataclass(slots=True)
class Paragraph:
    """Lines that follow each other in one size of type."""

    lines: Sequence[Box]
    glued: bool = False  # the block of the paragraph before it goes on in it
    kind: Kind = "other"
    # Left, top, right and bottom, in points from the upper left corner of the page
    box: tuple[float, float, float, float] = field(init=False)
    text: str = field(init=False)
    size: float = field(init=False)  # of most of its characters, in points
    font: str = field(init=False)

    def __post_init__(self) -> None:
        lines = self.lines
        if len(lines) == 1:
            line = lines[0]
            self.box, self.text, self.size, self.font = line[:4], line.text.strip(), line.size, line.font
            return
        x0, y0, x1, y1, texts, _, sizes, fonts = zip(*lines, strict=True)
        self.box, self.text = (min(x0), min(y0), max(x1), max(y1)), "\n".join(texts).strip()
        characters: dict[tuple[float, str], int] = {}
        for text, *style in zip(texts, sizes, fonts, strict=True):
            key = style[0], style[1]
            characters[key] = characters.get(key, 0) + len(text)
        self.size, self.font = max(characters, key=characters.__getitem__)


class _Column(NamedTuple):
    """The edges of the lines of a column."""

    left: float
    right: float


class Arranged(NamedTuple):
    """The text of a page in the order in which people read it."""

    text: str
    goes_on: bool  # whether its last sentence goes on at the beginning of the next page
    furniture: tuple[str, ...]  # the running heads and feet that would stand within a sentence


def arrange(pages: Mapping[int, Sequence[Sequence[Box]]]) -> dict[int, Arranged]:
    """The pages whose text changes, or goes on on the next one.

    pages: index -> the lines of each paragraph in the order of order.page_paragraphs; only pages whose text comes from
    the file. A page that lacks here interrupts what is on both sides of it.
    """
    blocks = {
        index: [Paragraph(filled) for lines in paragraphs if (filled := _filled(lines))]
        for index, paragraphs in pages.items()
    }
    edges = {index: {side: list(_edge_rows(page, side)) for side in _SIDES} for index, page in blocks.items()}
    document = _Document.of(blocks, edges)
    read = {index: _Page(index, page, edges[index], document) for index, page in blocks.items()}
    for index, page in read.items():
        page.link()
        before = read.get(index - 1)
        if before is not None:
            _link_pages(before, page)
    return {index: arranged for index, page in read.items() if (arranged := page.arranged()) is not None}


def _link_pages(before: _Page, after: _Page) -> None:
    """Notes whether the last body paragraph of a page goes on in the first one of the next page."""
    tail, head = before.last_body(), after.first_body()
    if tail is None or head is None:
        return
    top = before.paragraphs[tail].box[1]
    # What stands above it was drawn later, and is not between.
    between = [paragraph for paragraph in before.paragraphs[tail + 1 :] if paragraph.box[3] > top]
    between += after.paragraphs[:head]
    if _goes_on(before, tail, after, head) and _may_interrupt(between, after.paragraphs[head]):
        before.tail, after.head = tail, head


class _Document(NamedTuple):
    """What the pages of a document have in common."""

    size: float  # of its body text
    font: str
    tolerance: float  # sizes that differ by less are the same
    indents: bool  # whether paragraphs begin with an indent
    edges: Counter[tuple[str, str | int]]  # what stands at the edges of pages, see _edge_keys -> on how many

    @staticmethod
    def of(pages: Mapping[int, Sequence[Paragraph]], rows: Mapping[int, _Edges]) -> _Document:
        characters: dict[tuple[float, str], int] = {}
        edges: Counter[tuple[str, str | int]] = Counter()
        indented = 0
        for index, paragraphs in pages.items():
            for paragraph in paragraphs:
                for line in paragraph.lines:
                    if line.level:
                        style = line.size, line.font
                        characters[style] = characters.get(style, 0) + len(line.text)
                indented += len(paragraph.lines) > 2 and _is_indented(*paragraph.lines[:3])
            for side, found in rows[index].items():
                edges.update({key for row in found for part in row for key in _edge_keys(part, side, index)})
                edges.update({(side, f"y{round(row[0].box[1])}") for row in found})
        sizes: Counter[float] = Counter()
        for (size, _), count in characters.items():
            sizes[round(size, 1)] += count
        size = max(sizes, key=sizes.__getitem__, default=0.0)
        near = sum(count for other, count in sizes.items() if abs(other - size) <= _SAME_SIZE)
        usual = [style for style in characters if abs(style[0] - size) <= _SAME_SIZE]
        font = max(usual, key=characters.__getitem__, default=(0.0, ""))[1]
        is_scan = near < 0.4 * sizes.total()
        return _Document(size, font, 0.12 * size if is_scan else _SAME_SIZE, indented > len(pages), edges)


def _filled(lines: Sequence[Box]) -> list[Box]:
    return [line for line in lines if line.text and not line.text.isspace()]


_SIDES = "top", "bottom"
# Side of the page -> its rows at that edge
_Edges = Mapping[str, Sequence[Sequence[Paragraph]]]


def _extent(part: Paragraph) -> tuple[float, float]:
    """Top and bottom of a paragraph. A dot between the pieces of a running head may be much higher than they are."""
    if len(part.lines) > 3:
        return part.box[1], part.box[3]
    lines = [line for line in part.lines if any(map(str.isalnum, line.text))] or part.lines
    return min(line.y0 for line in lines), max(line.y1 for line in lines)


def _edge_rows(parts: Sequence[Paragraph], side: str) -> Iterator[list[Paragraph]]:
    """The first or last rows of a page, if a gap separates them from the text: at most two."""
    rest = [(part, *_extent(part)) for part in parts if part.lines[0].level]
    last: float | None = None
    for _ in range(2):
        if len(rest) < 2:
            return
        is_top = side == "top"
        edge, y0, y1 = min(rest, key=lambda item: item[1]) if is_top else max(rest, key=lambda item: item[2])
        height = edge.lines[0].y1 - edge.lines[0].y0
        row = [item for item in rest if min(item[2], y1) - max(item[1], y0) > 0.3 * min(item[2] - item[1], y1 - y0)]
        inside = {id(item[0]) for item in row}
        rest = [item for item in rest if id(item[0]) not in inside]
        low, high = min(item[1] for item in row), max(item[2] for item in row)
        if not rest or high - low > 2.5 * height:
            return
        gap = min(item[1] for item in rest) - high if is_top else low - max(item[2] for item in rest)
        is_number = all(_PAGE_NUMBER.fullmatch(item[0].text) for item in row)
        if gap < (-0.3 if is_number else _MIN_GAP) * height:
            return
        if last is not None and abs((low if is_top else high) - last) > 3 * height:  # a note, or a title
            return
        last = high if is_top else low
        yield [item[0] for item in row]


def _edge_keys(part: Paragraph, side: str, index: int) -> set[tuple[str, str | int]]:
    """What other pages have at their edge if a paragraph there is furniture: its words, or a number that counts pages.

    index: of the page, from 0.
    """
    keys: set[tuple[str, str | int]] = set()
    for line in part.lines:
        words = line.text.split()
        for word in {*words[:1], *words[-1:]}:
            number = word.strip("[]()|–—-.,")
            if number.isdecimal() and len(number) <= 4:
                keys.add((side, int(number) - index))
            elif _ROMAN.fullmatch(number):
                keys.add((side, "ivx"))
        letters = "".join(filter(str.isalpha, line.text)).casefold()
        if len(letters) >= 4:
            keys.add((side, letters))
    return keys


def _is_indented(first: Box, second: Box, third: Box) -> bool:
    """Whether the first or the second of three lines begins further to the right than the others, by an indent."""
    low, high = 0.7 * first.size, 3 * first.size
    if abs(second.x0 - third.x0) < 0.3 * first.size:
        return low < first.x0 - second.x0 < high
    return abs(first.x0 - third.x0) < 0.3 * first.size and low < second.x0 - first.x0 < high


class _Page:
    """The paragraphs of a page, with their kinds, and which of them go on in which."""

    def __init__(self, index: int, blocks: Sequence[Paragraph], rows: _Edges, document: _Document) -> None:
        self.index, self.document = index, document
        self.size = self._body_size(blocks)
        edges = self._edges(rows)
        within = [line for block in blocks if id(block) not in edges for line in block.lines]
        body = [line for line in within if self._is_body_type(line)]
        # The labels of figures are often in another typeface.
        self.columns = _columns([line for line in body if line.font[:2] == document.font[:2]]) or _columns(body)
        lowest = self._lowest(within)
        self.paragraphs: list[Paragraph] = []
        for block in blocks:
            kind = edges.get(id(block))
            for part in [block] if kind else _split(block):
                part.kind = kind or self._kind(part, lowest)
                self.paragraphs.append(part)
        self.links: dict[int, int] = {}
        self.head: int | None = None  # the paragraph that goes on from the page before
        self.tail: int | None = None  # the paragraph that goes on on the next page

    def _body_size(self, blocks: Sequence[Paragraph]) -> float:
        sizes: dict[float, int] = {}
        for block in blocks:
            for line in block.lines:
                sizes[line.size] = sizes.get(line.size, 0) + len(line.text)
        usual = self.document.size
        here = sum(count for size, count in sizes.items() if abs(size - usual) <= self.document.tolerance)
        return usual if here > 0.15 * sum(sizes.values()) else max(sizes, key=sizes.__getitem__, default=usual)

    def _is_body_type(self, line: Box) -> bool:
        return line.level and abs(line.size - self.size) <= self.document.tolerance

    def _edges(self, rows: _Edges) -> dict[int, Kind]:
        """The ids of the running heads, running feet and page numbers, and of what else stands at the edges."""
        found: dict[int, Kind] = {}
        edges = self.document.edges
        for side, row in ((side, row) for side, found_rows in rows.items() for row in found_rows):
            repeated = max((edges[key] for part in row for key in _edge_keys(part, side, self.index)), default=0)
            at_height = max(edges[side, f"y{round(row[0].box[1]) + offset}"] for offset in (-1, 0, 1))
            if side == "bottom" and any(_NOTE.match(part.text) and part.text.count(" ") > 3 for part in row):
                continue
            if repeated >= _MIN_PAGES or (repeated > 1 and at_height >= _MIN_PAGES):
                found.update({id(part): "furniture" for part in row})
            elif all(part.size < self.size - _SMALLER and len(part.lines) <= 3 for part in row):
                found.update({id(part): "margin" for part in row})
        return found

    def _lowest(self, lines: Sequence[Box]) -> list[tuple[_Column, float]]:
        """Each column and the bottom of its last line of body type."""
        body = [line for line in lines if self._is_body_type(line)]
        return [
            (column, max((line.y1 for line in body if line.x0 < column.right and line.x1 > column.left), default=0.0))
            for column in self.columns
        ]

    def column_of(self, line: Box) -> _Column:
        """The column that shares most of its width with a line; the line's own edges if there is none."""
        overlapping = [c for c in self.columns if min(c.right, line.x1) > max(c.left, line.x0)]
        return min(overlapping, key=lambda c: _misfit(line, c), default=_Column(line.x0, line.x1))

    def has_body(self, column: _Column, *, below: float = math.inf, above: float = 0.0) -> bool:
        """Whether body text stands in a column below or above a height."""
        highest, lowest = self._body_extents.get(column, (math.inf, 0.0))
        return lowest > below - 1 or highest < above + 1

    @cached_property
    def _body_extents(self) -> dict[_Column, tuple[float, float]]:
        """Column -> the bottom of the first and the top of the last line of body text in it."""
        extents: dict[_Column, tuple[float, float]] = {}
        for paragraph in self.paragraphs:
            for line in paragraph.lines if paragraph.kind == "body" else ():
                if len(line.text) < _LINE:
                    continue
                for column in self.columns:
                    if abs(line.x0 - column.left) < 4 * self.size and line.x1 < column.right + 2 * self.size:
                        highest, lowest = extents.get(column, (math.inf, 0.0))
                        extents[column] = min(highest, line.y1), max(lowest, line.y0)
        return extents

    def _kind(self, part: Paragraph, lowest: Sequence[tuple[_Column, float]]) -> Kind:
        first, text = part.lines[0], part.text
        if not any(line.level for line in part.lines):
            x0, _, x1, _ = part.box
            is_beside = all(x1 <= column.left or x0 >= column.right for column in self.columns)
            return "margin" if is_beside else "other"
        is_body_size = abs(part.size - self.size) <= self.document.tolerance
        if (caption := _CAPTION.match(text)) and (
            caption["after"] is not None
            or not is_body_size
            or first.font != self.document.font
            or (len(part.lines) == 1 and not _is_finished(text) and first.x1 < self.column_of(first).right - self.size)
        ):
            return "caption"
        is_small = part.size < self.size - _SMALLER
        if is_small or (is_body_size and part.font != self.document.font and _NOTE.match(text)):
            x0, y0, x1, y1 = part.box
            reach = y0 + 2 if is_small else y1 + 2
            if all(bottom <= reach for column, bottom in lowest if x0 < column.right and x1 > column.left):
                return "footnote"
        if is_body_size and self._is_prose(part):
            return "body"
        if is_small:
            return "float"
        if is_body_size or part.size > self.size or _MATHS.match(first.font):
            return "other"
        return "float"

    def _is_prose(self, part: Paragraph) -> bool:
        sample = part.text[:_SAMPLE].replace(" ", "")
        if sum(map(str.isalpha, sample)) < _MIN_LETTERS * len(sample):
            return False
        if _MATHS.match(part.font):
            return False
        cells = sum("  " in line.text.strip() for line in part.lines)
        if cells > 0.34 * len(part.lines) and (cells > 1 or len(part.lines) == 1):  # one may be a heading in its line
            return False
        column = self.column_of(part.lines[0])
        if part.box[2] > column.right - self.size:
            return True
        is_usual = part.font[:2] == self.document.font[:2] or len(part.lines) > 2
        return is_usual and part.box[0] - column.left < 3 * self.size

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the page that are in lower case."""
        return frozenset(word for paragraph in self.paragraphs for word in _LOWER.findall(paragraph.text))

    def first_body(self) -> int | None:
        return next((index for index, paragraph in enumerate(self.paragraphs) if paragraph.kind == "body"), None)

    def last_body(self) -> int | None:
        numbers = reversed(range(len(self.paragraphs)))
        return next((index for index in numbers if self.paragraphs[index].kind == "body"), None)

    def link(self) -> None:
        """Finds the paragraphs of the page that go on in others."""
        for index, paragraph in enumerate(self.paragraphs[:-1]):
            if paragraph.kind != "body" or _is_finished(paragraph.text):
                continue
            after = index + 1
            if self.paragraphs[after].glued:
                continue
            while after < len(self.paragraphs) and self.paragraphs[after].kind != "body":
                after += 1
            if after == len(self.paragraphs) or after - index > _MOST_BETWEEN:
                continue
            between = self.paragraphs[index + 1 : after]
            if _goes_on(self, index, self, after) and _may_interrupt(between, self.paragraphs[after]):
                self.links[index] = after

    def arranged(self) -> Arranged | None:
        """The page's text in order; None if nothing changes."""
        moves = any(after > index + 1 for index, after in self.links.items())
        moves = moves or (self.head is not None and any(p.kind != "furniture" for p in self.paragraphs[: self.head]))
        if self.tail is not None:
            moves = moves or any(p.kind != "furniture" for p in self.paragraphs[self.tail + 1 :])
        joins = [
            (before, after)
            for before, after in self.links.items()
            if after == before + 1 and not continues(self.paragraphs[before].text, self.paragraphs[after].text)
        ]
        if not moves and not joins and self.tail is None and self.head is None:
            return None
        if moves:
            self._make_room()
        order = self._order() if moves else list(range(len(self.paragraphs)))
        return Arranged(self._text(order), self.tail is not None, tuple(self._inside()))

    def _inside(self) -> Iterator[str]:
        """The lines of furniture that would stand within a sentence."""
        before = self.paragraphs[: self.head] if self.head is not None else []
        after = self.paragraphs[self.tail + 1 :] if self.tail is not None else []
        for paragraph in (*before, *after):
            if paragraph.kind == "furniture":
                yield from (line.text for line in paragraph.lines)

    def _make_room(self) -> None:
        """Divides a paragraph after a sentence, if one runs over the whole page: what floats stands there then."""
        if self.head is None or self.tail is None or any(map(self._ends_at, range(self.head, self.tail))):
            return
        for index in range(self.head, self.tail + 1):
            paragraph = self.paragraphs[index]
            for number, (line, after) in enumerate(pairwise(paragraph.lines), start=1):
                if paragraph.kind == "body" and _is_finished(line.text) and not after.text.lstrip()[0].islower():
                    halves = paragraph.lines[:number], paragraph.lines[number:]
                    first, second = (Paragraph(lines, kind="body") for lines in halves)
                    first.glued, second.glued = paragraph.glued, True
                    self.paragraphs[index : index + 1] = first, second
                    self.links = {
                        before + (before >= index): to + (to > index) for before, to in self.links.items()
                    }
                    self.tail += 1
                    return

    def _order(self) -> list[int]:
        """The paragraphs' numbers in their new order."""
        first = self.head if self.head is not None else 0
        end = self.tail + 1 if self.tail is not None else len(self.paragraphs)
        inside = {between for before, after in self.links.items() for between in range(before + 1, after)}
        order = [index for index in range(first) if self.paragraphs[index].kind == "furniture"]
        waiting = [index for index in range(first) if self.paragraphs[index].kind != "furniture"]
        room = len(order) if self.head is None else None  # the last place between two sentences
        for index in range(first, end):
            if index in inside:
                waiting.append(index)
                continue
            order.append(index)
            if index == self.tail or not self._ends_at(index):
                continue
            order += waiting
            waiting = []
            room = len(order)
        waiting += [index for index in range(end, len(self.paragraphs)) if self.paragraphs[index].kind != "furniture"]
        place = len(order) if room is None or self.tail is None else room
        feet = [index for index in range(end, len(self.paragraphs)) if self.paragraphs[index].kind == "furniture"]
        return [*order[:place], *waiting, *order[place:], *feet]

    def _ends_at(self, index: int) -> bool:
        """Whether what floats may stand after a paragraph: no sentence goes on."""
        if index in self.links:
            return False
        paragraph = self.paragraphs[index]
        if _is_finished(paragraph.text) or paragraph.kind != "body":
            return paragraph.kind != "other" or _is_finished(paragraph.text)
        after = self.paragraphs[index + 1] if index + 1 < len(self.paragraphs) else None
        return after is not None and after.kind != "other" and not after.glued and not after.text[0].islower()

    def _text(self, order: Sequence[int]) -> str:
        parts: list[str] = []
        for before, index in pairwise([-1, *order]):
            paragraph = self.paragraphs[index]
            if parts:
                is_next = index == before + 1
                if self.links.get(before) == index or (is_next and paragraph.glued):
                    parts.append("\n")
                else:
                    goes_on = is_next and not self._differ(before, index) and continues(parts[-1], paragraph.text)
                    parts.append("\n" if goes_on else "\n\n")
            parts.append(paragraph.text)
        return "".join(parts)

    def _differ(self, before: int, index: int) -> bool:
        """Whether of two paragraphs one is body text and the other a caption or a note."""
        kinds = {self.paragraphs[before].kind, self.paragraphs[index].kind}
        return "body" in kinds and bool(kinds & {"caption", "footnote"})


def _split(block: Paragraph) -> list[Paragraph]:
    """The lines of a block, split where the type changes, or a new paragraph or a caption begins."""
    left, _, right, _ = block.box
    cuts = [
        number
        for number, (last, line) in enumerate(pairwise(block.lines), start=1)
        if _separates(last, line, left, right)
    ]
    if not cuts:
        return [block]
    spans = pairwise([0, *cuts, len(block.lines)])
    return [Paragraph(block.lines[start:end], glued=start > 0) for start, end in spans]


def _separates(last: Box, line: Box, left: float, right: float) -> bool:
    if abs(last.size - line.size) > _SMALLER and min(len(last.text.strip()), len(line.text.strip())) >= 3:
        return True
    if line.font != last.font and line.y0 > last.y1 and _NOTE.match(line.text):
        return True
    if not _is_finished(last.text):
        caption = _CAPTION.match(line.text)
        return bool(caption and (caption["after"] or "").strip())
    size = line.size or line.y1 - line.y0
    return line.x0 > left + 0.6 * size >= last.x0 or last.x1 < right - 4 * size


def _misfit(line: Box, column: _Column) -> float:
    """How far the edges of a line are from those of a column, in points. Outside of it counts three times."""
    left, right = line.x0 - column.left, column.right - line.x1
    return max(left, -3 * left) + max(right, -3 * right)


def _columns(lines: Sequence[Box]) -> list[_Column]:
    """The columns of lines of body text."""
    by_left: defaultdict[int, list[Box]] = defaultdict(list)
    for line in lines:
        if len(line.text) >= _LINE:
            by_left[round(line.x0)].append(line)
    columns: list[_Column] = []
    for left in sorted(by_left, key=lambda left: -len(by_left[left]))[:_MOST_EDGES]:
        group = by_left[left]
        right, count = max(Counter(round(line.x1) for line in group).items(), key=lambda item: (item[1], item[0]))
        is_justified = count >= max(3, 0.25 * len(group))
        edge = float(right) if is_justified else max(line.x1 for line in group)
        column = _Column(min(line.x0 for line in group), edge)
        for place, other in enumerate(columns):
            shared = min(other.right, column.right) - max(other.left, column.left)
            is_own = is_justified and len(group) > 3 and abs(other.right - column.right) > 3  # an abstract, a quotation
            if shared > 0.3 * (column.right - column.left) and not is_own:
                # Lines that are indented, or stand further to the left than most
                if len(group) > 1 and abs(other.right - column.right) < 3 and column.left < other.left:
                    columns[place] = other._replace(left=column.left)
                break
        else:
            columns.append(column)
    return columns[:_MOST_COLUMNS]


def _may_interrupt(between: Sequence[Paragraph], after: Paragraph) -> bool:
    """Whether these may stand between the two halves of a sentence."""
    is_captioned = any(paragraph.kind == "caption" for paragraph in between)
    is_lower = after.text[0].islower()
    for paragraph in between:
        if paragraph.kind in ("caption", "footnote", "furniture", "margin"):
            continue
        if not is_captioned or (paragraph.kind == "other" and not is_lower):
            return False
    return not between or not _is_formula_above(between[-1], after)


def _is_formula_above(paragraph: Paragraph, after: Paragraph) -> bool:
    """Whether a paragraph is a formula directly above another one."""
    if paragraph.kind not in ("float", "other") or not _FORMULA.search(paragraph.text):
        return False
    x0, _, x1, y1 = paragraph.box
    return x0 < after.box[2] and x1 > after.box[0] and 0 <= after.box[1] - y1 + after.size < 3.5 * after.size


def _is_finished(text: str) -> bool:
    """Whether a text ends with a mark that ends a sentence, perhaps before the mark of a note or the end of a proof."""
    return not text.strip() or bool(_END.search(text[-_END_CHARACTERS:].rstrip()))


def _goes_on(page: _Page, index: int, after_page: _Page, after_index: int) -> bool:
    """Whether a paragraph goes on in another one."""
    before, after = page.paragraphs[index], after_page.paragraphs[after_index]
    return (
        _goes_on_in_words(before, after, page.document)
        and _goes_on_in_place(page, index, after_page, after_index)
        and not _begins_sentence(before.text, after.text, page, after_page)
    )


def _begins_sentence(before: str, after: str, *pages: _Page) -> bool:
    """Whether a text begins with a capital letter only because a sentence begins: the pages use the word without it.

    A word that follows another one with a capital letter may belong to a name.
    """
    first = _TITLED.match(after)
    if first is None or before.split()[-1].lstrip(_OPENING)[:1].isupper():
        return False
    return any(first.group(1).lower() in page.words for page in pages)


def _goes_on_in_words(before: Paragraph, after: Paragraph, document: _Document) -> bool:
    end, start = before.text[-1], after.text[0]
    if _ITEM.match(after.text):
        return False
    if start.islower():
        return not _is_finished(before.text)
    if _is_finished(before.text) or not (before.font == after.font and len(before.lines) > 1):
        return False
    if "/" in before.text.split()[-1]:  # an address may end a reference
        return False
    if len(after.lines) < 2 and not _is_finished(after.text):
        return False
    return end.islower() or end in _HYPHENS or end == "," or document.indents


def _goes_on_in_place(page: _Page, index: int, after_page: _Page, after_index: int) -> bool:
    before, after = page.paragraphs[index], after_page.paragraphs[after_index]
    last, first = before.lines[-1], after.lines[0]
    size = before.size
    if not _same_size(page, before, after_page, after):
        return False
    column, next_column = page.column_of(last), after_page.column_of(first)
    width, next_width = column.right - column.left, next_column.right - next_column.left
    if abs(width - next_width) > 0.15 * max(width, next_width):
        return False
    is_hyphened = before.text[-1] in _HYPHENS and after.text[0].islower()
    if not -2 * size < column.right - last.x1 < (math.inf if is_hyphened else _room(last, first)):
        return False
    if page is not after_page:
        if page.has_body(column, below=last.y1) or after_page.has_body(next_column, above=first.y0):
            return False
    elif column != next_column:
        if first.y0 > last.y0 - size or page.has_body(column, below=last.y1):
            return False
    elif first.y0 < last.y0 or (after_index == index + 1 and first.y0 - last.y1 > 0.6 * size):
        # Nothing between them was left out, and the lines of a sentence are not that far apart.
        return False
    indent, next_indent = last.x0 - column.left, first.x0 - next_column.left
    if len(before.lines) == 1 and abs(next_indent) < _SAME_EDGE * size:
        return True
    if abs(last.x0 - first.x0) < _SAME_EDGE * size and abs(column.right - next_column.right) < 3:
        return True
    return abs(indent - next_indent) < _SAME_EDGE * size


def _same_size(page: _Page, before: Paragraph, after_page: _Page, after: Paragraph) -> bool:
    """Whether two paragraphs have one size, or each the usual one of its page: in scans that is an estimate."""
    if abs(before.size - after.size) <= page.document.tolerance:
        return True
    is_usual = max(abs(before.size - page.size), abs(after.size - after_page.size)) < _SAME_SIZE
    return is_usual and abs(before.size - after.size) < 0.12 * after.size


def _room(last: Box, first: Box) -> float:
    """The room that the first word of the next line needs at the end of the last one, with some to spare."""
    words = first.text.split(maxsplit=1)
    width = (last.x1 - last.x0) / max(1, len(last.text))
    return 0.8 * last.size + (len(words[0]) + 1) * width * 1.15
