"""The rows of tables: put together where a table was drawn by column, and kept together. No PDF library.

Some programs draw a table's first column from top to bottom, then the second one beside it. Its cells stand on common
baselines and in straight columns, so the rows are put together by place. Columns of prose stand on common baselines,
too; they are never joined, nor are the columns of an index, in which each line is an entry. Rows that stand far apart
are blocks of their own for MuPDF; those whose cells stand under each other become one block again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from folio.pdf.order import LABEL, Box

# Cells of one row differ in height by less than this share of theirs, and rows by at least so much: pieces of formulas
# stand closer. Lines of a row overlap by less than this share.
_SAME_ROW, _NEXT_ROW, _OVERLAP = 0.3, 0.8, 0.3
# The share of the cells of a column that stand beside cells of the columns before
_MIN_BESIDE = 0.6
# Fewest rows of a table that was drawn by column
_MIN_ROWS = 3
# The median line of a column of prose has at least this many characters. Beside it, cells have at most so many.
_PROSE, _SHORT = 30, 12
# A table has a column of which this share of the cells has more digits and signs than letters.
_MIN_VALUES = 0.5
_NO_DIGITS = frozenset("✓✔✗✘×-–—−")
# Pieces of a row are cells if they are this far apart, and rows of one table at most so far, in heights of a line.
_CELL_GAP, _ROW_GAP = 1.0, 1.5
# A row with this many cells, of which one but the first is a value, is the row of a table.
_MIN_CELLS = 3
# A name that stands between the two rows of a table's head is this far from both, in heights of a line; the lower row
# has at least this many cells.
_BETWEEN, _MIN_HEADS = 0.85, 3
# The share of the cells of a row, of the two the one with fewer, that stand under or over cells of the other
_MIN_UNDER = 0.6


def in_rows(blocks: Sequence[Sequence[Box]]) -> Sequence[Sequence[Box]]:
    """The lines of a page, by block, in which the rows of each table are one block.

    blocks: lists of lines; both in the order they were drawn.
    """
    whole = _with_whole_tables(rows_in_order(blocks))
    tables = [_with_whole_rows(_with_one_head(block)) if _has_rows(block) else block for block in whole]
    return tables if any(table is not block for table, block in zip(tables, whole, strict=True)) else whole


def _has_rows(block: Sequence[Box]) -> bool:
    """Whether some lines of a block were drawn to the right of the line before, as cells are."""
    return len(block) > _MIN_HEADS and any(box[0] > last[2] for last, box in pairwise(block))


def rows_in_order(blocks: Sequence[Sequence[Box]]) -> Sequence[Sequence[Box]]:
    """The blocks in which each table that was drawn by column is one block, row by row; `blocks` without any.

    The boxes stay the same objects.
    """
    lines = [box for block in blocks for box in block if box.text.strip()]
    # The first cell of a column stands above the last one of the column before, and to the right of it.
    if not any(box[1] < last[1] and box[0] > last[2] for last, box in pairwise(lines)):
        return blocks
    tables = list(_tables(lines))
    if not tables:
        return blocks
    # Boxes are compared by identity, because text drawn twice gives equal ones.
    first = {id(lines[start]): _by_row(columns) for start, columns in tables}
    cells = {id(box) for _, columns in tables for column in columns for box in column}
    arranged: list[list[Box]] = []
    for block in blocks:
        rest: list[Box] = []
        for box in block:
            if table := first.get(id(box)):
                arranged += [rest, table] if rest else [table]
                rest = []
            elif id(box) not in cells:
                rest.append(box)
        if rest:
            arranged.append(rest)
    return arranged


def _tables(lines: Sequence[Box]) -> Iterator[tuple[int, list[list[Box]]]]:
    """The tables among these lines: the index of the first cell, and the cells by column, in the order drawn."""
    columns = list(_columns(lines))
    if len(columns) < 2:
        return
    number = 0
    while number < len(columns) - 1:
        start, column = columns[number]
        table = [column]
        rows = [box.middle for box in column]
        number += 1
        while number < len(columns):
            begin, column = columns[number]
            upper = [box for box in column if box.middle < rows[-1] + _height(box) / 2]
            if not upper or not _stands_beside(table, upper, rows):
                break
            if len(table) == 1:  # what stands above the table was drawn before it
                table = [[box for box in table[0] if box.middle > upper[0].middle - _height(box) / 2]]
                start += len(rows) - len(table[0])
                rows = [box.middle for box in table[0]]
            table.append(upper)
            for box in upper:
                if not _is_near(box, rows):
                    insort(rows, box.middle)
            if len(upper) < len(column):  # what stands below it was drawn after it
                columns[number] = begin + len(upper), column[len(upper) :]
                break
            number += 1
        if len(rows) >= _MIN_ROWS and len(table) > 1 and _is_table(table):
            yield start, table


def _columns(lines: Sequence[Box]) -> Iterator[tuple[int, list[Box]]]:
    """Lines that were drawn one below the other, with the index of the first."""
    column: list[Box] = []
    left = right = 0.0
    for number, box in enumerate(lines):
        if (
            column
            and box.level
            and column[-1].level
            and box.middle > column[-1].middle + _NEXT_ROW * _height(box)
            and box.x0 < right
            and box.x1 > left
        ):
            column.append(box)
            left, right = min(left, box.x0), max(right, box.x1)
        else:
            if column:
                yield number - len(column), column
            column, left, right = [box], box.x0, box.x1
    if column:
        yield len(lines) - len(column), column


def _stands_beside(table: Sequence[Sequence[Box]], column: Sequence[Box], rows: Sequence[float]) -> bool:
    """Whether a column continues a table to the right. rows: the middles of the table's rows, sorted."""
    top = column[0].middle - _height(column[0]) / 2
    last = [box for box in table[-1] if box.middle > top] if len(table) == 1 else table[-1]
    if not last or not column[0].level or not last[0].level:
        return False
    if min(box.x0 for box in column) - max(box.x1 for box in last) < _CELL_GAP * _height(column[0]):
        return False
    if (_is_prose(last) and not _is_short(column)) or (_is_prose(column) and not _is_short(last)):
        return False
    beside = sum(_is_near(box, rows) for box in column)
    count = len(rows) - bisect_left(rows, top)
    return beside >= 2 and beside >= _MIN_BESIDE * min(len(column), count)


def _is_near(box: Box, rows: Sequence[float]) -> bool:
    """Whether a row, of which `rows` has the middles, is at the height of a line."""
    stray = _SAME_ROW * _height(box)
    place = bisect_left(rows, box.middle - stray)
    return place < len(rows) and rows[place] <= box.middle + stray


def _height(box: Box) -> float:
    return box.y1 - box.y0


def _is_prose(column: Sequence[Box]) -> bool:
    return median(len(box.text) for box in column) >= _PROSE


def _is_short(column: Sequence[Box]) -> bool:
    return median(len(box.text) for box in column) <= _SHORT


def _is_table(columns: Sequence[Sequence[Box]]) -> bool:
    """Whether one of these columns holds values."""
    return any(sum(_is_value(box.text) for box in column) >= _MIN_VALUES * len(column) for column in columns)


def _is_value(text: str) -> bool:
    digits = sum(map(str.isdigit, text))
    return digits >= max(1, sum(map(str.isalpha, text))) or text.strip() in _NO_DIGITS


def _by_row(columns: Sequence[Sequence[Box]]) -> list[Box]:
    """The cells of a table from top to bottom, those of a row from left to right."""
    rows: list[list[Box]] = []
    for box in sorted((box for column in columns for box in column), key=lambda box: box.middle):
        if rows and box.middle - rows[-1][0].middle < _SAME_ROW * _height(box):
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row, key=lambda box: box.x0)]


def _with_whole_tables(blocks: Sequence[Sequence[Box]]) -> Sequence[Sequence[Box]]:
    """The blocks in which consecutive blocks are one if they are rows of a table."""
    whole: list[list[Box]] = []
    changed = False
    for block in blocks:
        if whole and block and _is_next_row(_last_row(whole[-1]), block):
            whole[-1] += block
            changed = True
        else:
            whole.append(list(block))
    return whole if changed else blocks


def _is_next_row(above: Sequence[Box], block: Sequence[Box]) -> bool:
    """Whether the first row of a block continues the table that ends in the row `above`."""
    if len(above) < 2 or len(block) < 2 or not _are_cells(above):
        return False
    height = _height(block[0])
    if not -_OVERLAP * height < block[0].y0 - max(box.y1 for box in above) < _ROW_GAP * height:
        return False
    row = _last_row(block[::-1])[::-1]
    if len(row) < 2 or not _are_cells(row):
        return False
    fewer, more = sorted((above, row), key=len)
    if len(fewer) == 2 and not (_is_value(row[-1].text) and row[-1].text[:1] != "("):
        return False  # headings and references with their numbers, and equations with theirs, have two pieces, too
    under = sum(any(box.x0 < other.x1 and other.x0 < box.x1 for other in more) for box in fewer)
    return under >= _MIN_UNDER * len(fewer)


def _last_row(block: Sequence[Box]) -> list[Box]:
    """The lines at the end of a block that stand on one row, in the order drawn."""
    row: list[Box] = []
    for box in reversed(block):
        if row and abs(box.middle - row[-1].middle) > _SAME_ROW * _height(box):
            break
        row.append(box)
    return row[::-1]


def _are_cells(row: Sequence[Box]) -> bool:
    """Whether the pieces of a row are cells of a table: level, apart, and not the lines of columns of prose."""
    if not all(box.level for box in row):
        return False
    gap = _CELL_GAP * _height(row[0])
    if not all(box.text.strip() for box in row):
        return False
    apart = all(right.x0 - left.x1 > gap for left, right in pairwise(row))
    return apart and sum(len(box.text) >= _PROSE for box in row) < 2


def _with_one_head(block: Sequence[Box]) -> Sequence[Box]:
    """The block in which names that stand between the two rows of a table's head belong to the lower one.

    The upper row has the names of groups of columns, and the lower one those of columns.
    """
    if not any(
        _SAME_ROW * _height(box) < abs(box.middle - last.middle) < _BETWEEN * _height(box)
        for last, box in pairwise(block)
    ):
        return block
    rows: list[list[Box]] = []
    for box in sorted(block, key=lambda box: (box.middle, box.x0)):
        if rows and box.middle - rows[-1][0].middle < _SAME_ROW * _height(box):
            rows[-1].append(box)
        else:
            rows.append([box])
    for upper, between, lower in zip(rows, rows[1:], rows[2:], strict=False):
        names = sorted([*between, *lower], key=lambda box: box.x0)
        if not _is_between(upper, between, lower) or not _are_cells(names):
            continue
        parts = {id(box) for box in (*upper, *names)}
        y0, y1 = lower[0].y0, lower[0].y1
        head = [*sorted(upper, key=lambda box: box.x0), *(box._replace(y0=y0, y1=y1) for box in names)]
        first = next(place for place, box in enumerate(block) if id(box) in parts)
        rest = [box for box in block if id(box) not in parts]
        return [*rest[:first], *head, *rest[first:]]
    return block


def _is_between(upper: Sequence[Box], between: Sequence[Box], lower: Sequence[Box]) -> bool:
    """Whether a row of names stands between the two rows of a head."""
    height = _height(between[0])
    near = between[0].middle - upper[0].middle, lower[0].middle - between[0].middle
    is_between = max(near) < _BETWEEN * height < sum(near)
    is_head = len(upper) < len(lower) >= _MIN_HEADS
    return is_between and is_head and not any(_is_value(box.text) for box in between)


def _with_whole_rows(block: Sequence[Box]) -> Sequence[Box]:
    """The block in which each row of values is one line, which no gutter of a page with columns of prose cuts."""
    rows: list[list[Box]] = []
    for box in block:
        last = rows[-1][-1] if rows else None
        if last and box.x0 > last.x1 and abs(box.middle - last.middle) < _SAME_ROW * _height(box):
            rows[-1].append(box)
        else:
            rows.append([box])
    whole = [len(row) >= _MIN_CELLS and _are_cells(row) for row in rows]
    has_values = [
        is_whole and any(_is_value(box.text) for box in row[1:]) for row, is_whole in zip(rows, whole, strict=True)
    ]
    if sum(has_values) < 2:
        return block
    first = has_values.index(True)
    # The head of the table stands above its values.
    joined = [
        is_whole and (values or number < first)
        for number, (is_whole, values) in enumerate(zip(whole, has_values, strict=True))
    ]
    return [box for row, is_row in zip(rows, joined, strict=True) for box in ([_joined(row)] if is_row else row)]


def _joined(row: Sequence[Box]) -> Box:
    _, y0, x1, y1, *_ = zip(*row, strict=True)
    texts = [text for box in row if (text := box.text.strip())]
    after = " " if LABEL.fullmatch(texts[0]) else "  "
    return row[0]._replace(y0=min(y0), x1=max(x1), y1=max(y1), text=after.join([texts[0], "  ".join(texts[1:])]))
