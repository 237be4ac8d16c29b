"""The first glance at a page's picture: which text is plainly seen.

All of it at once, in arrays, as every page is looked at so. And what a picture is and a piece of text on it, and where
the one lies in the other. Pure; no PDF library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]  # red, green, blue, each 0 to 255
Rect = tuple[float, float, float, float]  # left, top, right, bottom, in points from the page's upper left corner
Pixels = npt.NDArray[np.uint8]  # height x width x 3: red, green, blue
Place = tuple[int, int, int, int]  # left, top, right, bottom in pixels, the last two exclusive
Boxes = npt.NDArray[np.int64]  # many places: 4 x count


class Span(NamedTuple):
    """Text of one look, as it was drawn."""

    rect: Rect
    text: str
    size: float  # points
    colour: Colour
    opacity: int  # 0 to 255
    painted: bool  # False: drawn in a mode that leaves no ink
    plain: bool = True  # False: outlined, or cut out of a pattern, so that its colour is not what is seen


class Picture(NamedTuple):
    """A page, or a part of it, as a reader sees it."""

    pixels: Pixels
    scale: float  # pixels per point
    corner: tuple[float, float] = (0.0, 0.0)  # where it begins on the page, in points


# Levels of 255 that two colours differ by at least before they can be told apart: white on 94 % grey is not.
SAME_COLOUR = 16
# A span is judged piece by piece, each of so many times its type's size: it may lie on a dark box only in part.
_PIECE = 10
# At the first look text is plain where pixels differ by so many levels and are so far from its colour on average.
_PLAIN, _FAR = 48, 140
# And its colour is not that of its ground where less than this of its box's frame has it, blurred as it is.
_SOME_FRAME = 0.4
# Points between two rows of text, in which there may be a picture.
_BETWEEN = 12.0
# Pixels around a box that are drawn too: the looks at it round to whole ones.
_MARGIN = 2
# Pixels that are looked at in one go: each takes some ten bytes.
_AT_ONCE = 1_000_000


def not_plain(spans: Sequence[tuple[int, Span]], picture: Picture) -> list[tuple[int, Span]]:
    """Those that are not seen at first glance: in one row of pixels, the ground far from their colour, and ink on it.

    Only green is looked at, and only a row. It need not find everything, but must be quick: it sees every span.
    """
    if not spans:
        return []
    looks = [(span.colour[1], _count(span), span.plain and span.opacity > 127) for _, span in spans]
    green, count, can_tell = np.array(looks, np.int64).T
    x0, y0, x1, y1 = _inner_boxes(np.array([span.rect for _, span in spans]), picture)
    length = x1 - x0
    step = np.maximum(2, -(-length // count))
    parts = np.maximum(1, -(-(length - step // 2) // step))
    owner = np.repeat(np.arange(len(spans)), parts)
    first = _firsts(parts)
    begin = (np.arange(len(owner)) - first[owner]) * step[owner]
    row = (y0 + y1) // 2 * picture.pixels.shape[1] + x0
    sizes = np.minimum(begin + step[owner], length[owner]) - begin
    levels = picture.pixels[:, :, 1].ravel()[_runs(row[owner] + begin, sizes)].astype(np.int64)
    starts = _firsts(sizes)
    spread = np.maximum.reduceat(levels, starts) - np.minimum.reduceat(levels, starts)
    away = np.abs(np.add.reduceat(levels, starts) / sizes - green[owner])
    plain = np.logical_and.reduceat((spread > _PLAIN) & (away > _FAR), first) & (can_tell > 0) & (length > 1)
    return [found for found, is_plain in zip(spans, plain.tolist(), strict=True) if not is_plain]


def not_inked(spans: Sequence[tuple[int, Span]], picture: Picture, is_late: Callable[[], bool]) -> list[int]:
    """The places of those without ink enough where they stand, or on a ground of their colour, to look no closer."""
    parts = [(place, span, piece) for place, span in spans for piece in pieces_of(span)]
    found: dict[int, None] = {}
    if not parts:
        return []
    rects = np.array([piece for *_, piece in parts])
    inner, outer = _inner_boxes(rects, picture), _outer_boxes(rects, picture)
    areas = np.cumsum((inner[2] - inner[0]) * (inner[3] - inner[1]))
    begin = 0
    while begin < len(parts) and not is_late():
        # As many at a time as do not take much memory
        end = max(begin + 1, int(np.searchsorted(areas, (areas[begin - 1] if begin else 0) + _AT_ONCE)))
        some = parts[begin:end]
        faint = _contrasts(inner[:, begin:end], picture) < _PLAIN / 2
        alike = _frames_alike([span for _, span, _ in some], outer[:, begin:end], picture) >= _SOME_FRAME
        is_plain = np.array([span.plain for _, span, _ in some])
        found.update((some[n][0], None) for n in np.flatnonzero(faint | (is_plain & alike)).tolist())
        begin = end
    return list(found)


def _contrasts(boxes: Boxes, picture: Picture) -> npt.NDArray[np.int64]:
    """By how many levels the pixels of each box differ at most, in red, green or blue."""
    x0, y0, x1, y1 = boxes
    rows = y1 - y0
    owner = np.repeat(np.arange(len(rows)), rows)
    line = np.arange(len(owner)) - _firsts(rows)[owner] + y0[owner]
    width = picture.pixels.shape[1]
    pixels = picture.pixels.reshape(-1, 3)[_runs(line * width + x0[owner], (x1 - x0)[owner])]
    starts = _firsts(rows * (x1 - x0))
    most, least = np.maximum.reduceat(pixels, starts), np.minimum.reduceat(pixels, starts)
    contrasts: npt.NDArray[np.int64] = (most.astype(np.int64) - least).max(axis=1)
    return contrasts


def _frames_alike(spans: Sequence[Span], boxes: Boxes, picture: Picture) -> npt.NDArray[np.float64]:
    """The share of the pixels along the edges of each span's box that cannot be told from its colour."""
    x0, y0, x1, y1 = boxes
    line = picture.pixels.shape[1]
    wide, high = x1 - x0, y1 - y0
    corner = y0 * line + x0
    begins = np.stack([corner, (y1 - 1) * line + x0, corner, corner + wide - 1], axis=1).ravel()
    sizes = np.stack([wide, wide, high, high], axis=1).ravel()
    strides = np.tile([1, 1, line, line], len(spans))
    pixels = picture.pixels.reshape(-1, 3)[_runs(begins, sizes, strides)].astype(np.int16)
    around = 2 * (wide + high)
    looks = np.array([(*span.colour, span.opacity) for span in spans], np.int16).repeat(around, axis=0)
    alike = np.abs(pixels - looks[:, :3]).max(axis=1) * (looks[:, 3] / 255) < SAME_COLOUR
    shares: npt.NDArray[np.float64] = np.add.reduceat(alike.astype(np.int64), _firsts(around)) / around
    return shares


def _firsts(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each run of these sizes begins, when they stand one behind the other."""
    return np.cumsum(sizes) - sizes


def _runs(
    begins: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], strides: npt.NDArray[np.int64] | int = 1
) -> npt.NDArray[np.int64]:
    """The numbers begin, begin + stride, ... of each run, one run behind the other."""
    inside = np.arange(int(sizes.sum())) - np.repeat(_firsts(sizes), sizes)
    runs: npt.NDArray[np.int64] = np.repeat(begins, sizes) + inside * np.repeat(strides * np.ones_like(sizes), sizes)
    return runs


def _count(span: Span) -> int:
    """In how many pieces a span's box is judged."""
    x0, y0, x1, y1 = span.rect
    width, height = x1 - x0, y1 - y0
    return max(1, round(max(width, height) / (_PIECE * max(span.size, min(width, height)))))


def pieces_of(span: Span) -> list[Rect]:
    """A span's box in equal pieces along its line."""
    x0, y0, x1, y1 = span.rect
    width, height = x1 - x0, y1 - y0
    count = _count(span)
    if count < 2:
        return [span.rect]
    if width > height:
        return [(x0 + width * n / count, y0, x0 + width * (n + 1) / count, y1) for n in range(count)]
    return [(x0, y0 + height * n / count, x1, y0 + height * (n + 1) / count) for n in range(count)]


def bands(boxes: Iterable[Rect], scale: float, page: Place) -> list[Place]:
    """The parts of a page that hold all these boxes, from top to bottom, all in pixels but the boxes.

    A picture or a figure without text, above, below or beside it, is not drawn then, which is what takes long.
    """
    found: list[Rect] = []
    for x0, y0, x1, y1 in sorted(boxes, key=lambda box: box[1]):
        if found and y0 < found[-1][3] + _BETWEEN:
            left, top, right, bottom = found[-1]
            found[-1] = min(left, x0), top, max(right, x1), max(bottom, y1)
        else:
            found.append((x0, y0, x1, y1))
    parts = []
    for x0, y0, x1, y1 in found:
        left = min(max(math.floor(x0 * scale) - _MARGIN, page[0]), page[2] - 1)
        top = min(max(math.floor(y0 * scale) - _MARGIN, page[1]), page[3] - 1)
        right, bottom = min(math.ceil(x1 * scale) + _MARGIN, page[2]), min(math.ceil(y1 * scale) + _MARGIN, page[3])
        parts.append((left, top, max(right, left + 1), max(bottom, top + 1)))
    return parts


def inner_of(rect: Rect, picture: Picture) -> Place:
    """The pixels of a box without its edges, where neighbours and rules reach in. One pixel at least."""
    left, top, right, bottom = _inner_boxes(np.array([rect]), picture)[:, 0].tolist()
    return left, top, right, bottom


def _inner_boxes(rects: npt.NDArray[np.float64], picture: Picture) -> Boxes:
    """The same of many boxes (count x 4)."""
    x0, y0, x1, y1 = (rects - np.tile(picture.corner, 2)).T
    edge = 0.2 * np.minimum(x1 - x0, y1 - y0)
    height, width = picture.pixels.shape[:2]
    corners = np.stack([x0 + edge, y0 + edge, x1 - edge, y1 - edge]) * picture.scale
    left, top, right, bottom = corners.astype(np.int64)  # towards zero
    left, top = np.clip(left, 0, width - 1), np.clip(top, 0, height - 1)
    right, bottom = np.minimum(np.maximum(right, left) + 1, width), np.minimum(np.maximum(bottom, top) + 1, height)
    return np.stack([left, top, right, bottom])


def _outer_boxes(rects: npt.NDArray[np.float64], picture: Picture) -> Boxes:
    """The pixels of many boxes (count x 4), edges included."""
    height, width = picture.pixels.shape[:2]
    x0, y0, x1, y1 = np.rint((rects - np.tile(picture.corner, 2)).T * picture.scale).astype(np.int64)
    x0, y0 = np.clip(x0, 0, width - 1), np.clip(y0, 0, height - 1)
    return np.stack([x0, y0, np.maximum(np.minimum(x1, width), x0 + 1), np.maximum(np.minimum(y1, height), y0 + 1)])


def box_of(place: Place, picture: Picture) -> Pixels:
    x0, y0, x1, y1 = place
    return picture.pixels[y0:y1, x0:x1]


def frame_of(rect: Rect, picture: Picture) -> npt.NDArray[np.uint8]:
    """The colours of the pixels along the edges of a box: count x 3."""
    x0, y0, x1, y1 = _outer_boxes(np.array([rect]), picture)[:, 0].tolist()
    box = picture.pixels[y0:y1, x0:x1]
    return np.concatenate([box[0], box[-1], box[:, 0], box[:, -1]])


def contrast_of(pixels: Pixels) -> int:
    """By how many levels the pixels differ at most, in red, green or blue."""
    colours = pixels.reshape(-1, 3)
    return int((colours.max(axis=0).astype(int) - colours.min(axis=0)).max())
