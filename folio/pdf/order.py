"""The reading order of a page's text, from the positions of its lines. Pure geometry, no PDF library.

PDFs store text in the order it was drawn. That is nearly always the reading order, so it is kept unless a page has
columns and its text runs across them. Pieces on one row, such as the cells of a table, are joined into one line.

Page furniture is removed: margin stamps, running heads and watermarks. Position and repetition decide, never a list of
publishers' words: a thesis may write about "Copy BibTeX". arXiv's stamp is recognised by its place and form. Other
furniture must be repeated at the same place on several pages, where it runs up the page or a gap separates it from the
text. Before this, cleaning.py removes lines that many pages repeat among their first and last lines. For line numbers,
see line_numbers.py.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import NamedTuple

from folio.text import one_line

# A gutter is at least this wide, in points: LaTeX's default between columns is 10, and some lines stick out.
_MIN_GUTTER = 4
# A column has at least this many lines; fewer are a pair of captions, a table or a list of authors.
_MIN_LINES = 6
# In columns of prose, half of the lines span at least this share of the column. Table cells do not.
_MIN_FILL = 0.6
# Columns of prose have similar widths. Notes in the margin are not a column.
_MIN_BALANCE = 0.6
# Fewest characters in a column's median line. Columns of numbers and labels belong to tables and figures.
_MIN_CHARACTERS = 15
# Running heads and feet have at most this many lines or pieces.
_MAX_EDGE_LINES = 3
# A page has no columns if more than this share of its lines are wider than a column.
_MAX_WIDE = 0.75
# A page is reordered if more than this share of its lines are out of order: footnotes are often drawn last.
_MAX_DISPLACED = 0.1

# Pieces at least this long on both sides of a gap are columns of prose and not table cells.
_PROSE_PIECE = 30
# A gap wider than this share of the line height separates cells; a narrower one separates words of a justified line.
_CELL_GAP = 1.0
# The label of a list item or step: "1.", "(a)", "iv)", "3:", "•".
LABEL = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5})[.):]|[•▪‣◦–—*-]")


class Box(NamedTuple):
    """A line of text, or a block of lines, with its box in points from the left and the top of the page."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    level: bool = True  # whether it runs from left to right, and not up or down the page
    size: float = 0.0  # of most of its characters, in points; 0 if it is not known
    font: str = ""  # of most of its characters, without the prefix of a subset

    @property
    def lines(self) -> int:
        return self.text.count("\n", 0, len(self.text.rstrip())) + 1

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2


def page_text(blocks: Iterable[Sequence[Box]]) -> str:
    """The text of a page in reading order: newlines between lines, blank lines between paragraphs.

    blocks: as for page_paragraphs.
    """
    return text_of(page_paragraphs(blocks))


def text_of(paragraphs: Iterable[Sequence[Box]]) -> str:
    """The text of paragraphs, given as their lines."""
    return join_paragraphs("\n".join(line.text for line in paragraph) for paragraph in paragraphs)


def page_paragraphs(blocks: Iterable[Sequence[Box]]) -> list[list[Box]]:
    """The lines of each paragraph of a page, in reading order.

    blocks: lists of lines; both in the order they were drawn. The cells of a table row are joined into one line,
    separated by two spaces.
    """
    non_empty = [block for block in blocks if any(line.text.strip() for line in block)]
    boxes = [_block(block) for block in non_empty]
    cuts: tuple[float, ...] = ()
    if _may_need_reordering(boxes):
        whole_lines = _whole_lines(line for block in non_empty for line in block if line.text.strip())
        cuts = gutters(whole_lines)
        if cuts:
            regions = _regions(whole_lines, cuts)
            if _displaced(whole_lines, regions) > max(2.0, _MAX_DISPLACED * len(whole_lines)):
                return [paragraph for region in regions for paragraph in _paragraphs(region)]
    top, bottom = min((box.y0 for box in boxes), default=0), max((box.y1 for box in boxes), default=0)
    paragraphs = []
    for block, box in zip(non_empty, boxes, strict=True):
        rows = _rows(block, cuts)
        # Keep the lines of a running head or foot, which cleaning recognises line by line.
        is_edge = len(rows) == 1 and (box.y0 == top or box.y1 == bottom)
        paragraphs.append(list(block) if is_edge else rows)
    return paragraphs


def join_paragraphs(paragraphs: Iterable[str]) -> str:
    """Paragraphs separated by a blank line, or by a newline where a sentence clearly continues in the next one."""
    parts: list[str] = []
    for paragraph in paragraphs:
        text = paragraph.strip()
        if not text:
            continue
        if parts:
            parts.append("\n" if continues(parts[-1], text) else "\n\n")
        parts.append(text)
    return "".join(parts)


def continues(before: str, after: str) -> bool:
    """Whether a sentence clearly continues in the next paragraph."""
    return after[0].islower() and (before[-1].isalpha() or before[-1] in ",-\u2010\u00ad")


def gutters(boxes: Sequence[Box]) -> tuple[float, ...]:
    """The positions that split the page into columns, in points from the left: two, one, or none."""
    if len(boxes) < 2:
        return ()
    width = max(box.x1 for box in boxes) - min(box.x0 for box in boxes)
    wide = sum(box.lines for box in boxes if box.x1 - box.x0 > 0.6 * width)
    if wide > _MAX_WIDE * sum(box.lines for box in boxes):
        return ()
    for columns in (3, 2):
        cuts = _cuts(boxes, columns)
        if cuts and _are_prose(boxes, cuts):
            return cuts
    return ()


def _block(lines: Sequence[Box]) -> Box:
    x0, y0, x1, y1, *_ = zip(*lines, strict=True)
    return Box(min(x0), min(y0), max(x1), max(y1), "\n".join(line.text for line in lines))


def _row(pieces: Sequence[Box]) -> Box:
    """The pieces of one row as one line."""
    if len(pieces) == 1:
        return pieces[0]
    x0, y0, x1, y1, *_ = zip(*pieces, strict=True)
    longest = max(pieces, key=lambda piece: len(piece.text))
    return longest._replace(x0=min(x0), y0=min(y0), x1=max(x1), y1=max(y1), text=_row_text(pieces))


def _rows(block: Sequence[Box], cuts: Sequence[float]) -> list[Box]:
    """The lines of a block; lines on one row are joined unless a gutter separates them.

    cuts: the gutters of the page. This function computes the block's own gutters.
    """
    gaps = [pair for pair in pairwise(block) if _follows(*pair)]
    middles = [(last.x1 + line.x0) / 2 for last, line in gaps if _are_long(last, line)]
    separators = [*cuts, *(x for x in middles if not any(line.x0 < x < line.x1 for line in block))]
    rows: list[list[Box]] = []
    for line in block:
        last = rows[-1][-1] if rows else None
        if last and _follows(last, line) and not any(last.x1 - 1 < x < line.x0 + 1 for x in separators):
            if line.text.strip():
                rows[-1].append(line)
        else:
            rows.append([line])
    return [_row(row) for row in rows]


def _follows(last: Box, line: Box) -> bool:
    """Whether a line is on the same row as the last one and to the right of it."""
    height = max(last.y1 - last.y0, line.y1 - line.y0)
    overlap = min(last.y1, line.y1) - max(last.y0, line.y0)
    return last.level and line.level and overlap > 0.5 * height and line.x0 > last.x1 - 0.1 * height


def _are_long(left: Box, right: Box) -> bool:
    return min(len(left.text.strip()), len(right.text.strip())) >= _PROSE_PIECE


def _row_text(row: Sequence[Box]) -> str:
    """The text of one row, from left to right: two spaces between cells, one after a label and between words."""
    text = row[0].text.strip()
    for last, piece in pairwise(row):
        is_cell = piece.x0 - last.x1 > _CELL_GAP * (piece.y1 - piece.y0) and not LABEL.fullmatch(text)
        text += ("  " if is_cell else " ") + piece.text.strip()
    return text


def _may_need_reordering(blocks: Sequence[Box]) -> bool:
    """Whether the blocks suggest columns that were not drawn one after the other."""
    across = sum(block.lines for block in blocks if _runs_across(block))
    if across > 0.25 * sum(block.lines for block in blocks):
        return True
    cuts = gutters(blocks)
    return bool(cuts) and _displaced(blocks, _regions(blocks, cuts)) > 0


def _runs_across(block: Box) -> bool:
    """Whether a block has more lines than its height can hold, because its lines are next to each other.

    In ordinary text a line is about 1.2 times the type size high and a character 0.47 times as wide, so line height
    over character width is about 2.5. Two columns drawn row by row halve the first and double the second.
    """
    count, characters = block.lines, len(block.text)
    width = block.x1 - block.x0
    return count >= _MIN_LINES and width > 0 and (block.y1 - block.y0) * characters / (count * count * width) < 0.8


def _whole_lines(pieces: Iterable[Box]) -> list[Box]:
    """Lines, with pieces joined that were drawn in sequence with no more than a space between them."""
    lines: list[Box] = []
    for piece in pieces:
        last = lines[-1] if lines else None
        height = piece.y1 - piece.y0
        if (
            last
            and abs(last.middle - piece.middle) < 0.3 * height
            and -0.1 * height < piece.x0 - last.x1 < min(0.6 * height, _MIN_GUTTER + 3)
        ):
            text = f"{last.text.rstrip()} {piece.text.lstrip()}"
            longer = max(last, piece, key=lambda part: len(part.text))
            y0, y1 = min(last.y0, piece.y0), max(last.y1, piece.y1)
            lines[-1] = Box(last.x0, y0, piece.x1, y1, text, size=longer.size, font=longer.font)
        else:
            lines.append(piece)
    return lines


def _cuts(boxes: Sequence[Box], columns: int) -> tuple[float, ...]:
    """For each gutter between this many columns, the middle of the widest empty strip near it."""
    left, right = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
    width = right - left
    narrow = [(int(box.x0), int(box.x1), box.lines) for box in boxes if box.x1 - box.x0 < 1.15 * width / columns]
    allowed = 0.03 * sum(lines for _, _, lines in narrow)
    size = int(0.24 * width) + 1
    cuts = []
    for number in range(1, columns):
        start = int(left + width * (number / columns - 0.12))
        # The number of lines that cover each point, as differences between neighbouring points.
        changes = [0] * (size + 1)
        for x0, x1, lines in narrow:
            if x1 >= start and x0 < start + size:
                changes[max(0, x0 - start)] += lines
                changes[min(size, x1 + 1 - start)] -= lines
        best, run = (0, 0), 0
        for point, weight in enumerate(accumulate(changes[:size])):
            run = run + 1 if weight <= allowed else 0
            best = max(best, (run, point))
        if best[0] < _MIN_GUTTER:
            return ()
        cuts.append(start + best[1] + 1 - best[0] / 2)
    return tuple(cuts)


def _are_prose(boxes: Sequence[Box], cuts: Sequence[float]) -> bool:
    """Whether the cuts separate columns of running text that are next to each other."""
    columns: list[list[Box]] = [[] for _ in range(len(cuts) + 1)]
    for box in boxes:
        if not _is_full_width(box, cuts):
            columns[_column(box, cuts)].append(box)
    widths, tops, bottoms = [], [], []
    for column in columns:
        if sum(box.lines for box in column) < _MIN_LINES:
            return False
        width = max(box.x1 for box in column) - min(box.x0 for box in column)
        if median(_each_line([box.x1 - box.x0 for box in column], column)) < _MIN_FILL * width:
            return False
        if median(_each_line([len(box.text) / box.lines for box in column], column)) < _MIN_CHARACTERS:
            return False
        widths.append(width)
        tops.append(min(box.y0 for box in column))
        bottoms.append(max(box.y1 for box in column))
    shared = min(bottoms) - max(tops)
    shortest = min(bottom - top for top, bottom in zip(tops, bottoms, strict=True))
    return min(widths) >= _MIN_BALANCE * max(widths) and shared > 0.3 * shortest


def _each_line(values: Sequence[float], boxes: Sequence[Box]) -> list[float]:
    """Each box's value, once for each of its lines."""
    return [value for value, box in zip(values, boxes, strict=True) for _ in range(box.lines)]


def _is_full_width(box: Box, cuts: Sequence[float]) -> bool:
    """Whether a box spans a gutter, and does not just reach over its edge as an overlong line does."""
    margin = 0.15 * (box.x1 - box.x0)
    return any(min(cut - box.x0, box.x1 - cut) > margin for cut in cuts)


def _column(box: Box, cuts: Sequence[float]) -> int:
    return bisect_left(cuts, (box.x0 + box.x1) / 2)


def _regions(boxes: Sequence[Box], cuts: Sequence[float]) -> list[list[Box]]:
    """The boxes in reading order: boxes across the gutters split the page into bands, which are read by column."""
    regions: list[list[Box]] = []
    columns: list[list[Box]] = [[] for _ in range(len(cuts) + 1)]
    across: list[Box] = []
    ordered = sorted(boxes, key=lambda box: box.middle)
    head, foot = _edge_count(ordered, -1), len(ordered) - _edge_count(ordered[::-1], 1)
    for place, box in enumerate(ordered):
        if place < head or place >= foot or _is_full_width(box, cuts):
            regions += [column for column in columns if column]
            columns = [[] for _ in columns]
            across.append(box)
        else:
            if across:
                regions.append(across)
                across = []
            columns[_column(box, cuts)].append(box)
    regions += [column for column in (*columns, across) if column]
    return regions


def _edge_count(boxes: Sequence[Box], side: int) -> int:
    """How many boxes at one end of the page have a gap of about a line to all others: running heads and feet.

    boxes: from that end of the page inwards. side: -1 for the top, 1 for the bottom.
    """
    for count in range(min(_MAX_EDGE_LINES, len(boxes) - 1), 0, -1):
        ends, others = boxes[:count], boxes[count:]
        if side < 0:
            gap = min(box.y0 for box in others) - max(box.y1 for box in ends)
        else:
            gap = min(box.y0 for box in ends) - max(box.y1 for box in others)
        if gap > max(box.y1 - box.y0 for box in ends) * 0.8:
            return count
    return 0


def _displaced(drawn: Sequence[Box], regions: Sequence[Sequence[Box]]) -> float:
    """How many boxes would have to move for the drawn order to follow the regions."""
    # Keys are ids, because text drawn twice to look bold gives equal boxes.
    region_of = {id(box): number for number, region in enumerate(regions) for box in region}
    ends: list[int] = []  # ends[n]: the lowest region in which a rising run of n + 1 boxes can end
    for box in drawn:
        region = region_of[id(box)]
        place = bisect_left(ends, region + 1)
        ends[place : place + 1] = [region]
    return len(drawn) - len(ends)


def _paragraphs(region: Sequence[Box]) -> list[list[Box]]:
    """The paragraphs of a region: rows from top to bottom, split where more than half a row is blank."""
    rows: list[list[Box]] = []
    for box in sorted(region, key=lambda box: box.middle):
        last = rows[-1][-1] if rows else None
        if last and min(last.y1, box.y1) - max(last.y0, box.y0) > 0.5 * min(last.y1 - last.y0, box.y1 - box.y0):
            rows[-1].append(box)
        else:
            rows.append([box])
    paragraphs: list[list[Box]] = []
    bottom = 0.0
    for pieces in rows:
        row = _row(sorted(pieces, key=lambda box: box.x0))
        row = row._replace(text=row.text.strip())
        if paragraphs and row.y0 - bottom <= 0.5 * (row.y1 - row.y0):
            paragraphs[-1].append(row)
        else:
            paragraphs.append([row])
        bottom = row.y1
    return paragraphs


# arXiv prints its number up the left margin of the first page.
_ARXIV_STAMP = re.compile(r"arXiv:\S{6,30}\s+(?:\[[\w.-]{2,30}\]\s+)?\d{1,2} \w{3} \d{4}")
# Shorter lines, in characters, do not show how wide the text of a page is.
_TEXT_LINE = 20
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


def _text_lines(blocks: Sequence[Sequence[Box]]) -> list[Box]:
    return [line for block in blocks for line in block if line.level and len(line.text) >= _TEXT_LINE]


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
