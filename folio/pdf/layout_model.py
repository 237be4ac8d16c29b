"""Page regions from pymupdf4llm's layout model, and the page's text by region, with headings and tables.

The text comes from the fast parser: the same lines, without hidden text, with their spaces. The model only gives the
kinds of the parts of a page and their reading order.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from folio.pdf.contrast import Rect
from folio.pdf.mupdf import layout_parser
from folio.pdf.order import Box, join_paragraphs, page_text
from folio.text import one_line

# A line belongs to a region that covers at least this share of it.
_MIN_OVERLAP = 0.3
# Longer text is not a heading, whatever the model says.
_MAX_HEADING = 200
_BROKEN = re.compile(r"(?<=[a-z])[-\xad][ ]*\n\s*(?=[a-z])")
_MARKS = {"title": "# ", "section-header": "## "}
# A table with a smaller share of filled cells is a false detection.
_MIN_FILLED = 0.3


class Region(NamedTuple):
    """A part of a page."""

    kind: str  # the model's label: "title", "section-header", "text", "list-item", "table", "page-header", ...
    rect: Rect  # in points from the left and the top of the page
    rows: tuple[float, ...] = ()  # of a table: the top of each row
    columns: tuple[float, ...] = ()  # of a table: the left edge of each column


class Letter(NamedTuple):
    """A character and the centre of its box."""

    text: str
    x: float
    y: float


# The visible letters of each line of each block
Letters = Callable[[], Sequence[Sequence[Sequence[Letter]]]]


def find_regions(document: Any, index: int) -> list[Region]:
    """The regions of page `index` (from 0) of a PyMuPDF document, in reading order. The page must not be rotated.

    Raises whatever the model raises.
    """
    parsed = layout_parser()(document, pages=[index], use_ocr=False)
    return [_region(box) for box in parsed.pages[0].boxes]


def _region(box: Any) -> Region:
    rows = box.table and box.table.get("cells")
    if not rows:
        return Region(box.boxclass, (box.x0, box.y0, box.x1, box.y1))
    x0, y0, x1, y1 = box.table["bbox"]
    return Region(box.boxclass, (x0, y0, x1, y1), tuple(row[0][1] for row in rows), tuple(cell[0] for cell in rows[0]))


def page_text_by_region(regions: Sequence[Region], blocks: Sequence[Sequence[Box]], letters: Letters) -> str:
    """The text of a page, region by region, with headings and tables in Markdown.

    blocks: lists of lines, in the order they were drawn. letters: called only if there is a table. No line is left out:
    a line outside all regions follows the region of the line drawn before it.
    """
    parts: list[str] = []
    after_item = False
    for region, lines in _assign_lines(regions, blocks):
        text = _region_text(region, lines, blocks, letters)
        if not text:
            continue
        is_item = region is not None and region.kind == "list-item"
        if is_item and after_item:
            parts[-1] += "\n" + text
        else:
            parts.append(text)
        after_item = is_item
    return join_paragraphs(parts)


_LineNumbers = dict[int, list[int]]  # block -> its lines


def _assign_lines(
    regions: Sequence[Region], blocks: Sequence[Sequence[Box]]
) -> Iterator[tuple[Region | None, _LineNumbers]]:
    """Each region with its lines; None with lines outside all regions."""
    inside: list[_LineNumbers] = [{} for _ in regions]
    loose: dict[int, _LineNumbers] = {}  # by the region of the previous line; -1 at the beginning
    last = -1
    for number, block in enumerate(blocks):
        for line_number, line in enumerate(block):
            if not line.text.strip():
                continue
            region = _region_of(line, regions)
            if region is None:
                loose.setdefault(last, {}).setdefault(number, []).append(line_number)
            else:
                inside[region].setdefault(number, []).append(line_number)
                last = region
    if -1 in loose:
        yield None, loose[-1]
    for number, lines_region in enumerate(regions):
        yield lines_region, inside[number]
        if number in loose:
            yield None, loose[number]


def _region_of(line: Box, regions: Sequence[Region]) -> int | None:
    """The number of the region that covers most of a line, the smallest if several do; None if none does."""
    area = max((line.x1 - line.x0) * (line.y1 - line.y0), 1e-9)
    best: tuple[float, float, int] | None = None
    for number, region in enumerate(regions):
        x0, y0, x1, y1 = region.rect
        width, height = min(x1, line.x1) - max(x0, line.x0), min(y1, line.y1) - max(y0, line.y0)
        if width <= 0 or height <= 0 or (share := width * height / area) < _MIN_OVERLAP:
            continue
        key = (round(share, 1), -(x1 - x0) * (y1 - y0), number)
        best = key if best is None else max(best, key)
    return best[2] if best else None


def _region_text(region: Region | None, lines: _LineNumbers, blocks: Sequence[Sequence[Box]], letters: Letters) -> str:
    """The text of one region."""
    if region and len(region.rows) > 1 and len(region.columns) > 1:
        all_letters = letters()
        if table := _table(region, [all_letters[block][line] for block, numbers in lines.items() for line in numbers]):
            return table
    text = page_text([blocks[block][line] for line in numbers] for block, numbers in lines.items())
    mark = _MARKS.get(region.kind, "") if region else ""
    rows = text.split("\n")
    # Words broken at the end of a line are joined later, which needs the line break.
    if not mark or len(text) > _MAX_HEADING or any(row.rstrip().endswith(("-", "\xad")) for row in rows[:-1]):
        return text
    return mark + one_line(text) if any(map(str.isalpha, text)) else text


def _table(region: Region, lines: Sequence[Sequence[Letter]]) -> str:
    """A table in Markdown; "" if it has only one row or column, or mostly empty cells.

    Two spaces separate cells from the bars, because two spaces separate cells in all other text.
    """
    cells = [["" for _ in region.columns] for _ in region.rows]
    for line in lines:
        touched = set()
        for text, x, y in line:
            row, column = max(0, bisect_right(region.rows, y) - 1), max(0, bisect_right(region.columns, x) - 1)
            cells[row][column] += text
            touched.add((row, column))
        for row, column in touched:
            cells[row][column] += "\n"
    rows = [[_cell(cell) for cell in row] for row in cells]
    used = [number for number in range(len(region.columns)) if any(row[number] for row in rows)]
    rows = [[row[number] for number in used] for row in rows if any(row)]
    filled = sum(bool(cell) for row in rows for cell in row)
    if min(len(rows), len(used)) < 2 or filled < _MIN_FILLED * len(rows) * len(used):
        return ""
    return "\n".join(_row(row) for row in (rows[0], ["---"] * len(used), *rows[1:]))


def _cell(text: str) -> str:
    """The lines of a cell as one line, with words rejoined that a hyphen breaks at the end of a line."""
    return one_line(_BROKEN.sub("", text)).replace("|", r"\|")


def _row(cells: Sequence[str]) -> str:
    return "|  " + "  |  ".join(cells) + "  |"
