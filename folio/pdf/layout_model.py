"""The regions of a page, as pymupdf4llm's layout model sees them, and the page's text by region: headings and tables.

The text itself is that of the fast parser: the same lines, without what no reader can see, with their spaces. The
model says only what each part of the page is and in which order they are read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from folio.pdf.mupdf import layout_parser
from folio.pdf.raster import Rect
from folio.pdf.reading_order import Box, join_paragraphs, page_text

# A line belongs to the region that holds this share of it at least.
_HELD = 0.3
# Type this long is no heading, whatever the model says.
_LONGEST_HEADING = 200
_BROKEN = re.compile(r"(?<=[a-z])[-\xad][ ]*\n\s*(?=[a-z])")
_MARKS = {"title": "# ", "section-header": "## "}
# A table with fewer cells filled than this share is none that anybody would print.
_FILLED = 0.3


class Region(NamedTuple):
    """A part of a page."""

    kind: str  # as the model calls it: "title", "section-header", "text", "list-item", "table", "page-header", ...
    rect: Rect  # points from the left and the top of the page
    rows: tuple[float, ...] = ()  # of a table, where each begins, from the top
    columns: tuple[float, ...] = ()  # and where each column does, from the left


class Letter(NamedTuple):
    """A character and the middle of its box."""

    text: str
    x: float
    y: float


# For each line of each block the letters that can be seen
Letters = Callable[[], Sequence[Sequence[Sequence[Letter]]]]


def regions(document: Any, index: int) -> list[Region]:
    """The regions of page `index`, from 0, of a document of PyMuPDF, in reading order. The page must not be turned.

    Raises whatever the model does.
    """
    parsed = layout_parser()(document, pages=[index], use_ocr=False)
    return [_region(box) for box in parsed.pages[0].boxes]


def _region(box: Any) -> Region:
    rows = box.table and box.table.get("cells")
    if not rows:
        return Region(box.boxclass, (box.x0, box.y0, box.x1, box.y1))
    x0, y0, x1, y1 = box.table["bbox"]
    return Region(box.boxclass, (x0, y0, x1, y1), tuple(row[0][1] for row in rows), tuple(cell[0] for cell in rows[0]))


def text_of(found: Sequence[Region], blocks: Sequence[Sequence[Box]], letters: Letters) -> str:
    """The text of a page region by region: headings marked as in Markdown, tables written in it.

    blocks are made of lines, in the order they were drawn; letters is asked when there is a table. No line is left out:
    those of no region come after the one that was drawn before them.
    """
    parts: list[str] = []
    list_goes_on = False
    for region, places in _shared_out(found, blocks):
        text = _written(region, places, blocks, letters)
        if not text:
            continue
        is_item = region is not None and region.kind == "list-item"
        if is_item and list_goes_on:
            parts[-1] += "\n" + text
        else:
            parts.append(text)
        list_goes_on = is_item
    return join_paragraphs(parts)


_Places = dict[int, list[int]]  # block -> the numbers of its lines


def _shared_out(found: Sequence[Region], blocks: Sequence[Sequence[Box]]) -> Iterator[tuple[Region | None, _Places]]:
    """Each region with the lines that belong to it; None with those that belong to none."""
    own: list[_Places] = [{} for _ in found]
    loose: dict[int, _Places] = {}  # by the region of the line before; -1 at the beginning
    last = -1
    for number, block in enumerate(blocks):
        for place, line in enumerate(block):
            if not line.text.strip():
                continue
            region = _home(line, found)
            if region is None:
                loose.setdefault(last, {}).setdefault(number, []).append(place)
            else:
                own[region].setdefault(number, []).append(place)
                last = region
    if -1 in loose:
        yield None, loose[-1]
    for number, region_found in enumerate(found):
        yield region_found, own[number]
        if number in loose:
            yield None, loose[number]


def _home(line: Box, found: Sequence[Region]) -> int | None:
    """The number of the region that holds most of a line, the smallest of those that hold as much; None for none."""
    area = max((line.x1 - line.x0) * (line.y1 - line.y0), 1e-9)
    best: tuple[float, float, int] | None = None
    for number, region in enumerate(found):
        x0, y0, x1, y1 = region.rect
        width, height = min(x1, line.x1) - max(x0, line.x0), min(y1, line.y1) - max(y0, line.y0)
        if width <= 0 or height <= 0 or (share := width * height / area) < _HELD:
            continue
        key = (round(share, 1), -(x1 - x0) * (y1 - y0), number)
        best = key if best is None else max(best, key)
    return best[2] if best else None


def _written(region: Region | None, places: _Places, blocks: Sequence[Sequence[Box]], letters: Letters) -> str:
    """The text of one region."""
    if region and len(region.rows) > 1 and len(region.columns) > 1:
        all_letters = letters()
        if table := _table(region, [all_letters[block][place] for block, held in places.items() for place in held]):
            return table
    text = page_text([blocks[block][place] for place in held] for block, held in places.items())
    mark = _MARKS.get(region.kind, "") if region else ""
    rows = text.split("\n")
    # A word that is broken at a line's end is put together later, which needs the line's end.
    if not mark or len(text) > _LONGEST_HEADING or any(row.rstrip().endswith(("-", "\xad")) for row in rows[:-1]):
        return text
    return mark + " ".join(text.split()) if any(map(str.isalpha, text)) else text


def _table(region: Region, lines: Sequence[Sequence[Letter]]) -> str:
    """A table in Markdown; "" where it has one row or column, or mostly empty cells.

    Two spaces part a cell from the bars, as cells without bars are parted in all other text.
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
    if min(len(rows), len(used)) < 2 or filled < _FILLED * len(rows) * len(used):
        return ""
    return "\n".join(_row(row) for row in (rows[0], ["---"] * len(used), *rows[1:]))


def _cell(text: str) -> str:
    """The lines of a cell as one. Narrow as cells are, a hyphen between small letters at a line's end breaks a word."""
    return " ".join(_BROKEN.sub("", text).split()).replace("|", r"\|")


def _row(cells: Sequence[str]) -> str:
    return "|  " + "  |  ".join(cells) + "  |"
