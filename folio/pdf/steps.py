"""Puts the numbers of an algorithm's steps in front of their steps, where a PDF draws them apart. Pure geometry.

Typesetters draw "5:" and its step in any order: all numbers first, or a number after a step with large signs. A column
of numbers that count up shows where the steps are, and then the rows of that part of the page are read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from folio.pdf.order import Box

_NUMBER = re.compile(r"\(?(\d{1,3})[:.)](?:\s|$)")
_BARE = re.compile(r"\(?\d{1,3}[:.)]")
_COMMENT = re.compile(r"\s*(?:[▷▹⊳►]|//|/\*)")
_BARE_LENGTH = 8  # characters, with spaces around it
# Numbers of one column begin or end at places that differ by less than this, in points
_ALIGNED = 2.0
# Boxes are in one row if they share at least this part of the lower one's height.
_IN_ROW = 0.5
# A number and its step are at most so many heights of the number apart; the next column of text is further off.
_MOST_GAP = 12.0
_MOST_COLUMNS = 20  # of a page
_MOST_BLOCKS = 100  # of one algorithm


@dataclass(frozen=True, slots=True)
class _Place:
    """A box, and the block and place where it was drawn."""

    box: Box
    block: int
    place: int


def with_step_rows(blocks: list[list[Box]]) -> list[list[Box]]:
    """The blocks, with the rows of steps in order whose numbers were drawn apart; the same list if there are none."""
    if not any(len(box.text) <= _BARE_LENGTH and _is_bare(box) for block in blocks for box in block):
        return blocks
    done: set[Box] = set()
    for _ in range(_MOST_COLUMNS):
        apart = (
            column
            for column in _columns(_numbers(blocks))
            if column[0].box not in done and any(_is_apart(each, blocks, column) for each in column)
        )
        if (column := next(apart, None)) is None:
            break
        done.add(column[0].box)
        blocks = _by_rows(blocks, column)
    return blocks


def _numbers(blocks: Sequence[Sequence[Box]]) -> list[_Place]:
    """The boxes that begin with the number of a step, in the order they were drawn."""
    return [
        _Place(box, at, place)
        for at, block in enumerate(blocks)
        for place, box in enumerate(block)
        if box.level and _NUMBER.match(box.text)
    ]


def _columns(numbers: Sequence[_Place]) -> list[list[_Place]]:
    """The columns of numbers that count up by one from top to bottom, two or more each."""
    columns: list[list[_Place]] = []
    for each in numbers:
        last = columns[-1][-1] if columns else None
        if last and _value(each) == _value(last) + 1 and each.box.y0 > last.box.y0 and _is_below(last.box, each.box):
            columns[-1].append(each)
        else:
            columns.append([each])
    return [column for column in columns if len(column) > 1]


def _is_bare(box: Box) -> bool:
    """Whether a box is only the number of a step."""
    return bool(_BARE.fullmatch(box.text.strip()))


def _value(number: _Place) -> int:
    match = _NUMBER.match(number.box.text)
    return int(match[1]) if match else -1


def _is_below(one: Box, two: Box) -> bool:
    """Whether two numbers are aligned: at the left, or ten after nine, which begins further left."""
    return abs(one.x0 - two.x0) < _ALIGNED or 0 < one.x0 - two.x0 < one.y1 - one.y0


def _is_apart(number: _Place, blocks: Sequence[Sequence[Box]], column: Sequence[_Place]) -> bool:
    """Whether a bare number has a step in its row that was not drawn directly after it."""
    if not _is_bare(number.box):
        return False
    block = blocks[number.block]
    after = block[number.place + 1] if number.place + 1 < len(block) else None
    if after is not None and _in_row(number.box, after) and after.x0 >= number.box.x1 - 1:
        return False
    first, last = _reach(blocks, column)
    return any(
        _in_row(number.box, box) and 0 <= box.x0 - number.box.x1 + 1 <= _MOST_GAP * (number.box.y1 - number.box.y0)
        for block in blocks[first : last + 1]
        for box in block
    )


def _in_row(one: Box, two: Box) -> bool:
    shared = min(one.y1, two.y1) - max(one.y0, two.y0)
    return shared >= _IN_ROW * min(one.y1 - one.y0, two.y1 - two.y0)


def _reach(blocks: Sequence[Sequence[Box]], column: Sequence[_Place]) -> tuple[int, int]:
    """The first and the last block in which the steps of a column of numbers may be drawn: blocks beside it."""
    first, last = column[0].block, column[-1].block
    while last + 1 < len(blocks) and last - first < _MOST_BLOCKS and _is_beside(blocks[last + 1], column):
        last += 1
    return max(0, first - 1), last


def _is_beside(block: Sequence[Box], column: Sequence[_Place]) -> bool:
    """Whether a block has a box beside a column of numbers."""
    return any(column[0].box.y0 < box.middle < column[-1].box.y1 and box.x0 >= column[0].box.x0 for box in block)


def _by_rows(blocks: list[list[Box]], column: Sequence[_Place]) -> list[list[Box]]:
    """The blocks, with the part beside a column of numbers as one block, its boxes row by row."""
    first, last = _reach(blocks, column)
    top, bottom = column[0].box, column[-1].box
    left = min(each.box.x0 for each in column) - 1
    near = max(each.box.x1 for each in column) + _MOST_GAP * (top.y1 - top.y0)
    steps = [block for block in blocks[first : last + 1] if _is_beside(block, column)]
    right = max(box.x1 for block in steps if min(box.x0 for box in block) <= near for box in block)
    inside: list[Box] = []
    before: list[list[Box]] = []
    after: list[list[Box]] = []
    for block in blocks[first : last + 1]:
        kept: tuple[list[Box], list[Box]] = ([], [])
        for box in block:
            is_beside = box.level and left <= box.x0 and (box.x0 < right or bool(_COMMENT.match(box.text)))
            if is_beside and (top.y0 <= box.middle <= bottom.y1 or _in_row(top, box) or _in_row(bottom, box)):
                inside.append(box)
            else:
                kept[box.middle > bottom.y1 or box.x0 >= right].append(box)
        before += [kept[0]] if kept[0] else []
        after += [kept[1]] if kept[1] else []
    return [*blocks[:first], *before, _sorted(inside), *after, *blocks[last + 1 :]]


def _sorted(boxes: Sequence[Box]) -> list[Box]:
    """The boxes row by row, each from left to right, and then what is above or below others, as a sign on an arrow."""
    rows: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: box.y0 - box.y1):
        row = next((row for row in rows if _in_row(row[0], box)), None)
        if row is None:
            rows.append([box])
        else:
            row.append(box)
    rows.sort(key=lambda row: row[0].middle)
    return [
        box
        for row in rows
        for box in sorted(row, key=lambda box: (any(_is_over(box, other) for other in row), box.x0))
    ]


def _is_over(box: Box, other: Box) -> bool:
    """Whether a box lies between the ends of another one of its row."""
    return other is not box and other.x0 < box.x0 and box.x1 < other.x1
