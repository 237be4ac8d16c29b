"""Tells pages that are pictures of print, with a line or two of text over them, from pages with a figure.

Libraries and courts print a stamp or a number on each page of a scan. So how much text a page has does not tell whether
it was read: what its picture shows beside the text does. Print is rows of ink, as wide as a column and no higher than a
line, with blank rows between them. Photographs have no paper between their lines, and diagrams few rows that are full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from folio.pdf.contrast import Rect
from folio.pdf.drawing import SearchWork, draw_page, images
from folio.pdf.order import Box

Blocks = Sequence[Sequence[Box]]

# A page with more letters and digits than this is read, whatever its pictures show.
_MOST_CHARACTERS = 1500
# The pictures of a scan cover at least this share of the page.
_MIN_COVER = 0.5
# The squares, in each direction, in which that is counted
_SQUARES = 48
# The height of the page as it is drawn, in pixels: that of a line of small print is eight
_HEIGHT = 900
# The tiles, in each direction, in which paper and ink are told apart. Paper has the commonest of 16 levels of grey, or
# one beside it, in this share of a tile; ink is this much darker.
_TILES, _MIN_PAPER, _INK = 12, 0.4, 48
# Letters closer than this share of the page's height are of one word or of neighbouring words.
_WORD_GAP = 0.008
# Rows are counted in this many strips side by side. A row of print fills this share of its strip; a blank one, less.
_STRIPS, _FULL, _BLANK = 6, 0.6, 0.35
# The height of a line of print, as shares of that of the page
_LOWEST, _HIGHEST = 0.003, 0.05
# Print has at least this many lines beside the text, on average over the strips, and this many for each line of text.
_MIN_LINES, _LINES_PER_LINE = 4.0, 4.0
# A page with less print than that is a scan, too, if most pages with such pictures are, and if it has a line at all
_ANY_LINE = 0.2
# A page with more bytes of drawing commands has more than a picture, and may be slow to draw.
_MOST_CONTENT = 100_000
# At most this many pages of a file are drawn; the others are like most of these.
_MOST_DRAWN = 60


class Scans:
    """Finds the pages of a file that are pictures of print with little text over them. Pages count from 0."""

    def __init__(self) -> None:
        self.lines: dict[int, Blocks] = {}  # of each such page, and of those that may be one: its text
        self.pages: set[int] = set()
        self._doubtful: list[int] = []  # with a picture as large, and too few lines of print in it to tell
        self._drawn = 0

    def add_page(self, page: Any, index: int, text: str, blocks: Blocks, work: SearchWork) -> bool:
        """Whether a page is such a picture. text, blocks: what stands over it."""
        if len(text) > 4 * _MOST_CHARACTERS or sum(map(str.isalnum, text)) > _MOST_CHARACTERS:
            return False
        if covers(images(page), tuple(page.rect)) < _MIN_COVER:
            return False
        self.lines[index], shown = blocks, 0.0
        lines = [line[:4] for block in blocks for line in block]
        if self._drawn < _MOST_DRAWN:
            self._drawn += 1
            shown = _print_beside(page, lines, work)
            if shown >= max(_MIN_LINES, _LINES_PER_LINE * _rows(lines)):
                self.pages.add(index)
                return True
        if shown > _ANY_LINE or self._drawn >= _MOST_DRAWN:
            self._doubtful.append(index)
        return False

    def take_others(self) -> list[int]:
        """The other pages with such pictures, if most of these pages are scans: the last page of a scanned paper."""
        if len(self.pages) < max(1, len(self._doubtful)):
            return []
        self.pages.update(self._doubtful)
        return self._doubtful


def with_text_over(read: Blocks, over: Blocks) -> Blocks:
    """The lines that OCR has read, with those of the text over the picture instead of what OCR has read there."""
    kept = [line for block in over for line in block if line.text.strip()]

    def is_over(line: Box) -> bool:
        x, y = (line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2
        return any(known.x0 <= x <= known.x1 and known.y0 <= y <= known.y1 for known in kept)

    return [*([line for line in block if not is_over(line)] for block in read), *over]


def _rows(lines: Sequence[Rect]) -> int:
    """How many lines stand below each other."""
    rows, bottom = 0, -math.inf
    for _, y0, _, y1 in sorted(lines, key=lambda line: line[1]):
        if (y0 + y1) / 2 > bottom:
            rows, bottom = rows + 1, y1
    return rows


def _print_beside(page: Any, lines: Sequence[Rect], work: SearchWork) -> float:
    """The lines of print that a page shows beside its text, level or upright; 0 if it cannot be drawn."""
    work.is_busy = work.is_busy or len(page.read_contents()) > _MOST_CONTENT
    drawn = draw_page(page, work, _HEIGHT / max(page.rect.height, 1.0))
    if drawn is None:
        return 0.0
    grey = drawn.pixels[:, :, 1]
    (left, top), scale = drawn.corner, drawn.scale
    texts = [
        (scale * (x0 - left), scale * (y0 - top), scale * (x1 - left), scale * (y1 - top)) for x0, y0, x1, y1 in lines
    ]
    upright = [(y0, x0, y1, x1) for x0, y0, x1, y1 in texts]
    return max(lines_of_print(grey, texts), lines_of_print(np.ascontiguousarray(grey.T), upright))


def covers(pictures: Sequence[Rect], page: Rect) -> float:
    """The share of a page that its pictures cover, 0 to 1."""
    left, top, right, bottom = page
    width, height = max(right - left, 1e-6), max(bottom - top, 1e-6)
    covered = np.zeros((_SQUARES, _SQUARES), bool)
    for x0, y0, x1, y1 in pictures:
        columns = slice(*_squares(x0 - left, x1 - left, width))
        covered[slice(*_squares(y0 - top, y1 - top, height)), columns] = True
    return float(covered.mean())


def _squares(low: float, high: float, size: float) -> tuple[int, int]:
    first, last = (min(max(round(_SQUARES * edge / size), 0), _SQUARES) for edge in (low, high))
    return first, last


def lines_of_print(picture: npt.NDArray[np.uint8], texts: Sequence[Rect] = ()) -> float:
    """How many lines of print a picture of a page shows beside its text, on average over the strips of the page.

    picture: height x width levels of grey. texts: the boxes of its text, in pixels.
    """
    ink = _ink(picture)
    for x0, y0, x1, y1 in texts:
        ink[max(0, int(y0)) : max(0, int(y1) + 1), max(0, int(x0)) : max(0, int(x1) + 1)] = False
    strips = np.array_split(_joined(ink), _STRIPS, axis=1)
    return sum(_lines(strip) for strip in strips if strip.size) / _STRIPS


def _ink(picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """The pixels that are darker than the paper around them, where there is paper: light may fall from one side."""
    ink = np.zeros(picture.shape, bool)
    edges = [np.linspace(0, size, _TILES + 1).astype(int).tolist() for size in picture.shape]
    for top, bottom in pairwise(edges[0]):
        for left, right in pairwise(edges[1]):
            place = np.s_[top:bottom, left:right]
            tile = picture[place]
            if not tile.size:
                continue
            counts = np.bincount((tile >> 4).ravel(), minlength=16)
            level = int(counts.argmax())
            if counts[max(0, level - 1) : level + 2].sum() >= _MIN_PAPER * tile.size:
                paper = int(np.median(tile[(tile >> 4) == level]))
                ink[place] = tile < paper - _INK
    return ink


def _joined(ink: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The ink with the gaps within and between words filled: pixels with ink within half a gap to the left or right."""
    reach = max(1, round(_WORD_GAP * ink.shape[0]))
    sums = np.cumsum(np.pad(ink, ((0, 0), (reach + 1, reach))), axis=1, dtype=np.int32)
    joined: npt.NDArray[np.bool_] = sums[:, 2 * reach + 1 :] > sums[:, : -2 * reach - 1]
    return joined


def _lines(strip: npt.NDArray[np.bool_]) -> int:
    """The rows of print in a strip: runs of full rows, between blank ones, as high as a line."""
    height = strip.shape[0]
    share = strip.mean(axis=1)
    inked = share > _BLANK
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inked, [False]]).astype(np.int8)))
    lines = 0
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        lines += _LOWEST * height <= last - first <= _HIGHEST * height and float(share[first:last].max()) > _FULL
    return lines
