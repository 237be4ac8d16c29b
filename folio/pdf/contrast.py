"""Whether text stands out from a picture of its page: first all text at once in NumPy arrays, which must be fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]  # red, green, blue, each 0 to 255
Rect = tuple[float, float, float, float]  # left, top, right, bottom, in points from the page's upper left corner
Pixels = npt.NDArray[np.uint8]  # height x width x 3: red, green, blue
PixelRect = tuple[int, int, int, int]  # left, top, right, bottom in pixels, the last two exclusive
Boxes = npt.NDArray[np.int64]  # many PixelRects: 4 x count

class Span(NamedTuple):
    """Text drawn in one style."""

    rect: Rect
    text: str
    size: float  # points
    colour: Colour
    opacity: int  # 0 to 255
    painted: bool  # False: drawn in a mode that leaves no ink
    solid: bool = True  # False: outlined or filled with a pattern, so its colour is not what a reader sees


class Picture(NamedTuple):
    """A page, or a part of it, as a reader sees it."""

    pixels: Pixels
    scale: float  # pixels per point
    corner: tuple[float, float] = (0.0, 0.0)  # of the part: left and top on the page, in points


# Colours closer than this, of 255 levels, look the same: white on 94 % grey cannot be read.
SAME_COLOUR = 16
# A span is checked in pieces of this many times its type size, because a dark box may cover only part of it.
_PIECE = 10
# In the first check, text is visible if its pixels differ by this many levels, and their mean by this many from its
# colour.
MIN_IMAGE_CONTRAST, _MIN_DISTANCE = 48, 140
# Text may have the colour of its background if this share of the (blurred) pixels around its box has that colour.
_MIN_FRAME_SHARE = 0.4
# Rows of text farther apart than this, in points, are drawn separately: there may be a picture between them.
_ROW_GAP = 12.0
# Pixels to draw around a box, because its coordinates are rounded.
_MARGIN = 2
# Pixels to process at once; each takes about ten bytes.
_BATCH = 1_000_000


def not_clearly_visible(spans: Sequence[tuple[int, Span]], picture: Picture) -> list[tuple[int, Span]]:
    """The spans that are not clearly visible, with their indexes.

    A span is clearly visible if one row of pixels through it has contrast and is far from the span's colour on average.
    Only the green channel is used. This check runs on every span, so it must be fast; it need not be complete.
    """
    if not spans:
        return []
    values = [(span.colour[1], _piece_count(span), span.solid and span.opacity > 127) for _, span in spans]
    green, count, is_opaque = np.array(values, np.int64).T
    x0, y0, x1, y1 = _inner_boxes(np.array([span.rect for _, span in spans]), picture)
    length = x1 - x0
    step = np.maximum(2, -(-length // count))
    parts = np.maximum(1, -(-(length - step // 2) // step))
    owner = np.repeat(np.arange(len(spans)), parts)
    first = _starts(parts)
    begin = (np.arange(len(owner)) - first[owner]) * step[owner]
    row = (y0 + y1) // 2 * picture.pixels.shape[1] + x0
    sizes = np.minimum(begin + step[owner], length[owner]) - begin
    levels = picture.pixels[:, :, 1].ravel()[_runs(row[owner] + begin, sizes)].astype(np.int64)
    begins = _starts(sizes)
    spread = np.maximum.reduceat(levels, begins) - np.minimum.reduceat(levels, begins)
    distance = np.abs(np.add.reduceat(levels, begins) / sizes - green[owner])
    is_clear = (spread > MIN_IMAGE_CONTRAST) & (distance > _MIN_DISTANCE)
    visible = np.logical_and.reduceat(is_clear, first) & (is_opaque > 0) & (length > 1)
    return [entry for entry, is_visible in zip(spans, visible.tolist(), strict=True) if not is_visible]


def find_doubtful(spans: Sequence[tuple[int, Span]], picture: Picture, take: Callable[[int], bool]) -> list[int]:
    """The indexes of the spans with too little contrast, or on a background of their own colour: check these closely.

    take: called before a number of pixels is compared; the check stops early if it returns False.
    """
    parts = [(index, span, piece) for index, span in spans for piece in split_span(span)]
    doubtful: dict[int, None] = {}  # an ordered set
    if not parts:
        return []
    rects = np.array([piece for *_, piece in parts])
    inner, outer = _inner_boxes(rects, picture), outer_boxes(rects, picture)
    areas = np.cumsum((inner[2] - inner[0]) * (inner[3] - inner[1]))
    begin = 0
    while begin < len(parts):
        # in batches, to limit memory
        before = int(areas[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(areas, before + _BATCH)))
        if not take(int(areas[end - 1]) - before):
            break
        batch = parts[begin:end]
        faint = _contrasts(inner[:, begin:end], picture) < MIN_IMAGE_CONTRAST / 2
        alike = _frames_alike([span for _, span, _ in batch], outer[:, begin:end], picture) >= _MIN_FRAME_SHARE
        is_solid = np.array([span.solid for _, span, _ in batch])
        doubtful.update((batch[n][0], None) for n in np.flatnonzero(faint | (is_solid & alike)).tolist())
        begin = end
    return list(doubtful)


def _contrasts(boxes: Boxes, picture: Picture) -> npt.NDArray[np.int64]:
    """The largest difference between the pixels of each box, in red, green or blue levels."""
    x0, y0, x1, y1 = boxes
    rows = y1 - y0
    owner = np.repeat(np.arange(len(rows)), rows)
    line = np.arange(len(owner)) - _starts(rows)[owner] + y0[owner]
    width = picture.pixels.shape[1]
    pixels = picture.pixels.reshape(-1, 3)[_runs(line * width + x0[owner], (x1 - x0)[owner])]
    starts = _starts(rows * (x1 - x0))
    most, least = np.maximum.reduceat(pixels, starts), np.minimum.reduceat(pixels, starts)
    contrasts: npt.NDArray[np.int64] = (most.astype(np.int64) - least).max(axis=1)
    return contrasts


def _frames_alike(spans: Sequence[Span], boxes: Boxes, picture: Picture) -> npt.NDArray[np.float64]:
    """The share of pixels along the edges of each span's box that have the span's colour."""
    x0, y0, x1, y1 = boxes
    line = picture.pixels.shape[1]
    wide, high = x1 - x0, y1 - y0
    corner = y0 * line + x0
    begins = np.stack([corner, (y1 - 1) * line + x0, corner, corner + wide - 1], axis=1).ravel()
    sizes = np.stack([wide, wide, high, high], axis=1).ravel()
    strides = np.tile([1, 1, line, line], len(spans))
    pixels = picture.pixels.reshape(-1, 3)[_runs(begins, sizes, strides)].astype(np.int16)
    around = 2 * (wide + high)
    colours = np.array([(*span.colour, span.opacity) for span in spans], np.int16).repeat(around, axis=0)
    alike = np.abs(pixels - colours[:, :3]).max(axis=1) * (colours[:, 3] / 255) < SAME_COLOUR
    shares: npt.NDArray[np.float64] = np.add.reduceat(alike.astype(np.int64), _starts(around)) / around
    return shares


def _starts(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The start of each run when runs of these sizes are concatenated."""
    return np.cumsum(sizes) - sizes


def _runs(
    begins: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], strides: npt.NDArray[np.int64] | int = 1
) -> npt.NDArray[np.int64]:
    """The numbers begin, begin + stride, ... of each run, concatenated."""
    inside = np.arange(int(sizes.sum())) - np.repeat(_starts(sizes), sizes)
    runs: npt.NDArray[np.int64] = np.repeat(begins, sizes) + inside * np.repeat(strides * np.ones_like(sizes), sizes)
    return runs


def _piece_count(span: Span) -> int:
    """How many pieces a span is checked in."""
    x0, y0, x1, y1 = span.rect
    width, height = x1 - x0, y1 - y0
    return max(1, round(max(width, height) / (_PIECE * max(span.size, min(width, height)))))


def split_span(span: Span) -> list[Rect]:
    """A span's box, split into equal pieces along its line."""
    x0, y0, x1, y1 = span.rect
    width, height = x1 - x0, y1 - y0
    count = _piece_count(span)
    if count < 2:
        return [span.rect]
    if width > height:
        return [(x0 + width * n / count, y0, x0 + width * (n + 1) / count, y1) for n in range(count)]
    return [(x0, y0 + height * n / count, x1, y0 + height * (n + 1) / count) for n in range(count)]


def bands(boxes: Iterable[Rect], scale: float, page: PixelRect) -> list[PixelRect]:
    """The parts of a page, in pixels, that contain all these boxes (in points), from top to bottom.

    Drawing only these skips pictures and figures without text, which take the longest.
    """
    bands_in_points: list[Rect] = []
    for x0, y0, x1, y1 in sorted(boxes, key=lambda box: box[1]):
        if bands_in_points and y0 < bands_in_points[-1][3] + _ROW_GAP:
            left, top, right, bottom = bands_in_points[-1]
            bands_in_points[-1] = min(left, x0), top, max(right, x1), max(bottom, y1)
        else:
            bands_in_points.append((x0, y0, x1, y1))
    parts = []
    for x0, y0, x1, y1 in bands_in_points:
        left = min(max(math.floor(x0 * scale) - _MARGIN, page[0]), page[2] - 1)
        top = min(max(math.floor(y0 * scale) - _MARGIN, page[1]), page[3] - 1)
        right, bottom = min(math.ceil(x1 * scale) + _MARGIN, page[2]), min(math.ceil(y1 * scale) + _MARGIN, page[3])
        parts.append((left, top, max(right, left + 1), max(bottom, top + 1)))
    return parts


def inner_pixels(rect: Rect, picture: Picture) -> PixelRect:
    """The pixels of a box without its edges, which neighbours and rules may touch. At least one pixel."""
    left, top, right, bottom = _inner_boxes(np.array([rect]), picture)[:, 0].tolist()
    return left, top, right, bottom


def _inner_boxes(rects: npt.NDArray[np.float64], picture: Picture) -> Boxes:
    """inner_pixels for many boxes (count x 4)."""
    x0, y0, x1, y1 = (rects - np.tile(picture.corner, 2)).T
    edge = 0.2 * np.minimum(x1 - x0, y1 - y0)
    height, width = picture.pixels.shape[:2]
    corners = np.stack([x0 + edge, y0 + edge, x1 - edge, y1 - edge]) * picture.scale
    left, top, right, bottom = corners.astype(np.int64)  # towards zero
    left, top = np.clip(left, 0, width - 1), np.clip(top, 0, height - 1)
    right, bottom = np.minimum(np.maximum(right, left) + 1, width), np.minimum(np.maximum(bottom, top) + 1, height)
    return np.stack([left, top, right, bottom])


def outer_boxes(rects: npt.NDArray[np.float64], picture: Picture) -> Boxes:
    """The pixels of many boxes (count x 4), edges included."""
    height, width = picture.pixels.shape[:2]
    x0, y0, x1, y1 = np.rint((rects - np.tile(picture.corner, 2)).T * picture.scale).astype(np.int64)
    x0, y0 = np.clip(x0, 0, width - 1), np.clip(y0, 0, height - 1)
    return np.stack([x0, y0, np.maximum(np.minimum(x1, width), x0 + 1), np.maximum(np.minimum(y1, height), y0 + 1)])


def crop(rect: PixelRect, picture: Picture) -> Pixels:
    x0, y0, x1, y1 = rect
    return picture.pixels[y0:y1, x0:x1]


def frame_pixels(rect: Rect, picture: Picture) -> npt.NDArray[np.uint8]:
    """The colours of the pixels along the edges of a box: count x 3."""
    x0, y0, x1, y1 = outer_boxes(np.array([rect]), picture)[:, 0].tolist()
    box = picture.pixels[y0:y1, x0:x1]
    return np.concatenate([box[0], box[-1], box[:, 0], box[:, -1]])


def contrast(pixels: Pixels) -> int:
    """The largest difference between the pixels, in red, green or blue levels."""
    colours = pixels.reshape(-1, 3)
    return int((colours.max(axis=0).astype(int) - colours.min(axis=0)).max())
