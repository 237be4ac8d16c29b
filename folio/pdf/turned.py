"""Turns text level that runs up or down its page, before anything else looks at it.

Landscape pages, sideways tables and vertical writing are drawn turned; some files turn the whole page back with
/Rotate, many do not. The direction of most of a page's text decides, not the file's word: the page is turned so that
this text is level, and then read as any other. A running head that stays upright over a sideways table becomes the head
of the turned page. A sideways table on a page whose other text is level is turned by itself, and read as one block.

Vertical writing, whose columns go from right to left, is level text from top to bottom once its page is turned.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple, TypeVar

from folio.pdf.contrast import Rect
from folio.pdf.mupdf import around, line_text
from folio.pdf.order import Box

# MuPDF's blocks, lines and spans, and the letters of a span
_Block = Mapping[str, Any]
_Line = Mapping[str, Any]
_Letters = Sequence[Mapping[str, Any]]
_T = TypeVar("_T")

# A line runs in one of the four directions of a page if this much of it does: the cosine of its angle.
_STRAIGHT = 0.9
# Characters of one column of vertical writing stand at most this far apart, in type sizes.
_MAX_STEP = 0.5
# Fewest characters in a column of vertical writing whose font does not say that it is vertical
_MIN_COLUMN = 4
_LATIN = "\u1100"  # letters before this one are narrow
# The middles of lines of one paragraph are at most this far apart, in heights of a line. Where text is turned, MuPDF
# makes a paragraph of each line. The columns of vertical writing stand further apart.
_MAX_LEADING, _MAX_COLUMN_LEADING = 1.1, 2.0
# A turned part of a page has at least this many lines, and this many that are long or share a row with others.
_MIN_LINES, _MIN_ROWS, _LONG = 3, 2, 20
# The share of level text, in characters, that may lie within a turned part: labels of a figure have more around them.
_MAX_INSIDE = 0.1
# Parts of a page that are looked at, the largest first
_MAX_PARTS = 20


class Turn(NamedTuple):
    """A page turned clockwise by `quarters` of a full turn. width, height: of the page before, in points."""

    quarters: int
    width: float
    height: float

    def point(self, x: float, y: float) -> tuple[float, float]:
        if self.quarters == 1:
            return self.height - y, x
        if self.quarters == 2:
            return self.width - x, self.height - y
        return (y, self.width - x) if self.quarters == 3 else (x, y)

    def direction(self, x: float, y: float) -> tuple[float, float]:
        return ((x, y), (-y, x), (-x, -y), (y, -x))[self.quarters]

    def rect(self, box: Rect) -> Rect:
        (x0, y0), (x1, y1) = self.point(*box[:2]), self.point(*box[2:])
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


class _Shift(NamedTuple):
    """Moves a running head or foot up or down, away from the text."""

    by: float

    def point(self, x: float, y: float) -> tuple[float, float]:
        return x, y + self.by

    def direction(self, x: float, y: float) -> tuple[float, float]:
        return x, y

    def rect(self, box: Rect) -> Rect:
        x0, y0, x1, y1 = box
        return x0, y0 + self.by, x1, y1 + self.by


class LevelPage(NamedTuple):
    """A page whose text is level: its blocks, and its size in points."""

    blocks: Sequence[_Block]
    width: float
    height: float
    # If the page was turned, the number of each span among those of the page as drawn, and how it moved
    moves: Sequence[tuple[int, Turn | _Shift]] = ()

    @property
    def is_turned(self) -> bool:
        return bool(self.moves)

    def letters(self, by_span: Sequence[_Letters]) -> Sequence[_Letters]:
        """The letters of each span of `blocks`. by_span: those of each span of the page as drawn."""
        if not self.moves:
            return by_span
        return [
            [{**one, "bbox": move.rect(one["bbox"]), "origin": move.point(*one["origin"])} for one in by_span[number]]
            for number, move in self.moves
        ]


def level_page(blocks: Sequence[_Block], width: float, height: float) -> LevelPage:
    """The page turned so that most of its text is level. blocks: its visible text, from MuPDF, not rotated."""
    lines = [line for block in blocks for line in block.get("lines", ())]
    upright: set[int] = set()
    if _may_be_vertical(lines):
        blocks, upright = _with_columns(blocks)
        lines = [line for block in blocks for line in block.get("lines", ())]
    elif all(line["dir"][0] > _STRAIGHT for line in lines):
        return LevelPage(blocks, width, height)
    characters: Counter[int | None] = Counter()
    for line in lines:
        count = sum(len(span["text"]) for span in line["spans"])
        characters[3 if id(line) in upright else _quarters(line)] += count
    quarters = max(characters, key=characters.__getitem__, default=0)
    if not quarters or 2 * characters[quarters] <= characters.total():
        return LevelPage(blocks, width, height)
    turn = Turn(quarters, width, height)
    moves = _moves(lines, turn, upright)
    starts = dict(zip(map(id, lines), accumulate((len(line["spans"]) for line in lines), initial=0), strict=False))
    if upright and _goes_right(lines, upright):
        lines = sorted(lines, key=lambda line: -line["bbox"][0])
        blocks = [{"lines": [line]} for line in lines]
    moved = (
        [_moved(line, moves[id(line)], id(line) in upright) for line in block["lines"]]
        for block in blocks
        if block.get("lines")
    )
    leading = _MAX_COLUMN_LEADING if upright else _MAX_LEADING
    paragraphs = _paragraphs(moved, lambda line: line["bbox"], leading)
    turned = [{"type": 0, "bbox": around(paragraph), "lines": paragraph} for paragraph in paragraphs]
    size = (height, width) if quarters % 2 else (width, height)
    order = [(starts[id(line)] + n, moves[id(line)]) for line in lines for n in range(len(line["spans"]))]
    return LevelPage(turned, *size, order)


def _goes_right(lines: Sequence[_Line], upright: Set[int]) -> bool:
    """Whether the columns of vertical writing were drawn from left to right, against their reading order."""
    steps = [
        line["bbox"][0] - last["bbox"][0]
        for last, line in pairwise(line for line in lines if id(line) in upright)
        if min(last["bbox"][3], line["bbox"][3]) > max(last["bbox"][1], line["bbox"][1])
    ]
    return bool(2 * sum(step > 0 for step in steps) > len(steps))


def _paragraphs(
    blocks: Iterable[list[_T]], box_of: Callable[[_T], Rect], leading: float = _MAX_LEADING
) -> list[list[_T]]:
    """The lines of turned blocks by paragraph. box_of: returns the box of a line, which is level now."""
    paragraphs: list[list[_T]] = []
    for block in blocks:
        if paragraphs and _goes_on(box_of(paragraphs[-1][-1]), box_of(block[0]), leading):
            paragraphs[-1] += block
        else:
            paragraphs.append(list(block))
    return paragraphs


def _goes_on(last: Rect, line: Rect, leading: float) -> bool:
    """Whether a line is the next one of a paragraph, also after a line in the column to the right."""
    height = min(last[3] - last[1], line[3] - line[1])
    down = (line[1] + line[3] - last[1] - last[3]) / 2
    return line[0] < last[2] and 0 < down < leading * height


def level_box(line: _Line) -> Box:
    """A line from MuPDF turned level, in points from any place of its page."""
    quarters = _quarters(line)
    box = Turn(quarters or 0, 0.0, 0.0).rect(line["bbox"])
    return Box(*box, line_text(line), level=quarters is not None)


def _quarters(line: _Line) -> int | None:
    """The quarter turns that make a line level; None if it runs aslant."""
    x, y = line["dir"]
    if abs(x) > _STRAIGHT:
        return 0 if x > 0 else 2
    return None if abs(y) < _STRAIGHT else 1 if y < 0 else 3


def _moves(lines: Sequence[_Line], turn: Turn, upright: Set[int]) -> dict[int, Turn | _Shift]:
    """How each line moves, by its id. Upright lines above and below the turned text become its head and its foot."""
    moves: dict[int, Turn | _Shift] = {id(line): turn for line in lines}
    if turn.quarters == 2:
        return moves
    main = [line for line in lines if id(line) in upright or _quarters(line) == turn.quarters]
    others = [line for line in lines if id(line) not in upright and _quarters(line) == 0]
    _, top, _, bottom = around(main)
    head = [line for line in others if line["bbox"][3] <= top + 1]
    foot = [line for line in others if line["bbox"][1] >= bottom - 1]
    _, top, _, bottom = turn.rect(around(main))
    if head:
        _, y0, _, y1 = around(head)
        moves.update(dict.fromkeys(map(id, head), _Shift(min(0.0, top - (y1 - y0) - y1))))
    if foot:
        _, y0, _, y1 = around(foot)
        moves.update(dict.fromkeys(map(id, foot), _Shift(max(0.0, bottom + (y1 - y0) - y0))))
    return moves


def _moved(line: _Line, move: Turn | _Shift, is_upright: bool) -> _Line:
    """A line in its new place. is_upright: whether its letters stand, as in vertical writing."""
    return {
        **line,
        "bbox": move.rect(line["bbox"]),
        "dir": (1.0, 0.0) if is_upright else move.direction(*line["dir"]),
        "spans": [
            {**span, "bbox": move.rect(span["bbox"]), "origin": move.point(*span["origin"])} for span in line["spans"]
        ],
    }


def _may_be_vertical(lines: Sequence[_Line]) -> bool:
    """Whether some lines are vertical writing by their font, or most are one letter that may be."""
    single = 0
    for line in lines:
        if line["wmode"]:
            return True
        spans = line["spans"]
        single += len(spans) == 1 and len(spans[0]["text"]) == 1 and spans[0]["text"] > _LATIN
    return len(lines) >= _MIN_COLUMN and 2 * single > len(lines)


def _is_letter(line: _Line) -> bool:
    spans = line["spans"]
    text = spans[0]["text"].strip() if len(spans) == 1 else ""
    return len(text) == 1 and unicodedata.east_asian_width(text) in "WF"


def _with_columns(blocks: Sequence[_Block]) -> tuple[list[_Block], set[int]]:
    """The blocks with the columns of vertical writing as lines, and the ids of these lines.

    MuPDF makes a line of each of their characters.
    """
    upright: set[int] = set()
    columned: list[_Block] = []
    for block in blocks:
        lines: list[_Line] = []
        for characters in _columns(block.get("lines", ())):
            is_vertical = characters[0]["wmode"] == 1
            if not is_vertical and (len(characters) < _MIN_COLUMN or not all(map(_is_letter, characters))):
                lines += characters
                continue
            spans = [span for line in characters for span in line["spans"]]
            lines.append({**characters[0], "bbox": around(characters), "spans": spans})
            upright.add(id(lines[-1]))
        columned.append({**block, "lines": lines} if lines else block)
    return columned, upright


def _columns(lines: Sequence[_Line]) -> list[list[_Line]]:
    """The lines of a block by columns: each stands under the one before."""
    columns: list[list[_Line]] = []
    for line in lines:
        if columns and _is_below(columns[-1][-1], line):
            columns[-1].append(line)
        else:
            columns.append([line])
    return columns


def _is_below(last: _Line, line: _Line) -> bool:
    if line["wmode"] != last["wmode"] or not (line["wmode"] or (_is_letter(last) and _is_letter(line))):
        return False
    (x0, _, x1, bottom), (left, top, right, _) = last["bbox"], line["bbox"]
    size = max(x1 - x0, right - left)
    return bool(abs(x0 + x1 - left - right) < size and abs(top - bottom) < _MAX_STEP * size)


def with_level_parts(
    blocks: Sequence[_Block], boxes: list[list[Box]], read: Callable[[list[list[Box]]], str]
) -> list[list[Box]]:
    """The lines of a page, by block, with each turned table and text on it as one box; `boxes` itself without any.

    blocks: from MuPDF. boxes: their lines. read: returns the text of lines that are level.
    """
    turned = [box for block in boxes for box in block if not box.level]
    if len(turned) < _MIN_LINES:
        return boxes
    parts = sorted(_parts(blocks, boxes), key=lambda part: -len(part.lines))[:_MAX_PARTS]
    level = [box for block in boxes for box in block if box.level]
    found: dict[int, Box] = {}
    dropped: set[int] = set()
    for part in parts:
        if text := _read_part(part, level, read):
            x0, y0, x1, y1, *_ = zip(*part.lines, strict=True)
            around = min(x0), min(y0), max(x1), max(y1)
            found[id(part.lines[0])] = Box(*around, text, *part.lines[0][5:])._replace(level=True)
            dropped |= {id(line) for line in part.lines[1:]}
    if not found:
        return boxes
    return [[found.get(id(box), box) for box in block if id(box) not in dropped] for block in boxes]


class _Part(NamedTuple):
    """Lines of a page that run in one direction, drawn one after the other."""

    quarters: int
    is_vertical: bool  # vertical writing, whose letters stand
    lines: list[Box]
    blocks: list[int]  # of each line


def _parts(blocks: Sequence[_Block], boxes: Sequence[Sequence[Box]]) -> Iterator[_Part]:
    lines = (
        ((0 if box.level else _quarters(line) or 0, bool(line["wmode"])), box, number)
        for number, (block, row) in enumerate(zip(blocks, boxes, strict=True))
        for line, box in zip(block.get("lines", ()), row, strict=True)
        if box.text.strip()
    )
    for (quarters, is_vertical), run in groupby(lines, key=lambda entry: entry[0]):
        if quarters and len(entries := list(run)) >= _MIN_LINES:
            yield _Part(quarters, is_vertical, [box for _, box, _ in entries], [number for *_, number in entries])


def _read_part(part: _Part, level: Sequence[Box], read: Callable[[list[list[Box]]], str]) -> str:
    """The text of a turned part of a page; "" if it is no table and no text, such as the labels of a figure."""
    x0, y0, x1, y1, *_ = zip(*part.lines, strict=True)
    left, top, right, bottom = min(x0), min(y0), max(x1), max(y1)
    inside = sum(
        len(box.text) for box in level if left < (box.x0 + box.x1) / 2 < right and top < box.middle < bottom
    )
    if inside > _MAX_INSIDE * sum(len(box.text) for box in part.lines):
        return ""
    turn = Turn(part.quarters, right, bottom)
    turned = [Box(*turn.rect(box[:4]), *box[4:])._replace(level=True) for box in part.lines]
    rows = sorted(turned, key=lambda box: box.middle)
    shared = sum(abs(above.middle - below.middle) < 0.3 * (below.y1 - below.y0) for above, below in pairwise(rows))
    if shared < _MIN_ROWS and sum(len(box.text) >= _LONG for box in turned) < _MIN_LINES:
        return ""
    numbered = groupby(zip(part.blocks, turned, strict=True), key=lambda entry: entry[0])
    leading = _MAX_COLUMN_LEADING if part.is_vertical else _MAX_LEADING
    return read(_paragraphs(([box for _, box in entries] for _, entries in numbered), lambda box: box[:4], leading))
