"""Pictures of the pages of a file, with a limit on the work for each file."""

from __future__ import annotations

import math
import mmap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from folio.pdf.contrast import Picture, Pixels, Rect, bands
from folio.pdf.mupdf import pymupdf
from folio.system.workers import drawing_limit, run_apart

# The most pixels to draw of one page; each takes three bytes.
_MAX_PIXELS = 4_000_000
# The most pixels to draw and compare in one file: 190 scanned A4 pages, or 3,000 printed ones. It takes 20 to 50 s.
_FILE_PIXELS = 400_000_000
# The most seconds of processor time to draw one file, far more than an ordinary file takes
_DRAW_CPU_S = 75.0
# The most for one picture that is drawn apart (SearchWork)
_PICTURE_CPU_S = 15.0
# MuPDF cannot be interrupted while it draws. A page whose text takes _BUSY_S to extract has thousands of objects and is
# drawn in strips: the first is this share of the page, each further one as high as all before it, while time is left.
# The same holds if the coarse picture of a page takes half of _SLOW_S.
_BUSY_S, _SLOW_S, _FIRST_STRIP = 0.05, 1.0, 1 / 64


class SearchWork:
    """The work of searching the pages of a file for hidden text, counted in pixels.

    A count stops at the same place on every computer, however busy it is. Only drawings that are slow on purpose also
    reach the limit on processor time. A single one that takes longer ends the worker (drawing_limit); the file is then
    read again with each picture drawn apart, in a process of its own, so that it costs its own page's check alone.
    """

    def __init__(self, *, apart: bool = False) -> None:
        """apart: draw each picture in a process of its own."""
        self.apart = apart

    pixels = 0  # drawn and compared
    cpu_s = 0.0  # spent on drawing
    is_busy = False  # the current page is drawn in strips
    checked = True  # whether the current page was checked completely

    def begin_page(self, text_cpu_s: float) -> None:
        """text_cpu_s: seconds of processor time that extracting its text took."""
        self.is_busy, self.checked = text_cpu_s > _BUSY_S, True

    def take(self, pixels: int) -> bool:
        """Whether this many pixels may be drawn or compared; if so, they are counted."""
        if self.pixels + pixels > _FILE_PIXELS:
            self.pixels = _FILE_PIXELS
            self.checked = False
            return False
        self.pixels += pixels
        return True

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Counts the processor time of what is drawn inside."""
        started = time.process_time()
        try:
            with drawing_limit(_DRAW_CPU_S - self.cpu_s):
                yield
        finally:
            self.cpu_s += time.process_time() - started

    def is_too_slow(self, cpu_s: float) -> bool:
        """Whether a drawing that needs this much processor time must be left out."""
        if self.cpu_s + cpu_s > _DRAW_CPU_S:
            self.checked = False
        return self.cpu_s + cpu_s > _DRAW_CPU_S


def draw_page(page: Any, work: SearchWork, scale: float) -> Picture | None:
    """The whole page at `scale` pixels per point; None if that fails or takes too much work."""
    display_list, rect, spent = cache(page.get_displaylist), page.rect, work.cpu_s
    strip = (rect.x0, rect.y0, rect.x1, rect.y0 + _FIRST_STRIP * rect.height)
    if not work.is_busy and draw(display_list, rect, work, scale, strip) is None:
        return None
    work.is_busy = work.is_busy or work.cpu_s - spent > _SLOW_S / 4
    return draw(display_list, rect, work, scale)


def draw(
    display_list: Callable[[], Any], page_rect: Any, work: SearchWork, scale: float, part: Rect | None = None,
    boxes: Sequence[Rect] = (),
) -> Picture | None:  # fmt: skip
    """Draw a page or a part of it; None if that fails or takes too much work. See View."""
    mupdf = pymupdf()
    try:
        area = mupdf.Rect(part or page_rect) & page_rect
        scale = min(scale, (_MAX_PIXELS / abs(area)) ** 0.5)
        picture_area = (area * mupdf.Matrix(scale, scale)).round()
        parts = [mupdf.IRect(band) for band in bands(boxes, scale, tuple(picture_area))] if boxes else [picture_area]
        if not work.take(sum(strip.width * strip.height for strip in parts)):
            return None
        corner = picture_area.x0 / scale, picture_area.y0 / scale
        if work.apart:
            drawn = _draw_apart(display_list, work, picture_area, scale, parts)
            return None if drawn is None else Picture(drawn, scale, corner)
        pixels = np.full((picture_area.height, picture_area.width, 3), 255, np.uint8)
        cpu_s = last = work.cpu_s
        if boxes and not work.is_busy:
            for strip in parts:
                if work.is_too_slow(work.cpu_s - last):
                    return None
                last = work.cpu_s
                with work.drawing():
                    _paint(pixels, picture_area, display_list(), scale, strip)
            needed = 2 * (work.cpu_s - cpu_s)
        else:
            needed, top = 0.0, picture_area.y0
            rows = max(1, int(picture_area.height * _FIRST_STRIP)) if work.is_busy else picture_area.height
            while top < picture_area.y1:
                if work.is_too_slow(needed):
                    return None
                cpu_s = work.cpu_s
                strip = mupdf.IRect(picture_area.x0, top, picture_area.x1, min(top + rows, picture_area.y1))
                with work.drawing():
                    _paint(pixels, picture_area, display_list(), scale, strip)
                top, rows = strip.y1, strip.y1 - picture_area.y0
                needed = 2 * (work.cpu_s - cpu_s)
        work.is_busy = work.is_busy or needed > _SLOW_S  # for the next picture, which is sharper
        return Picture(pixels, scale, corner)
    except Exception:  # including MemoryError: the text was read and must not be lost because of a picture
        work.checked = False
        return None


def _draw_apart(
    display_list: Callable[[], Any], work: SearchWork, picture_area: Any, scale: float, parts: Sequence[Any]
) -> Pixels | None:
    """The pixels of a picture, drawn in a process of its own; None if that, or another of its page, takes too long."""
    seconds = min(_PICTURE_CPU_S, _DRAW_CPU_S - work.cpu_s)
    if not work.checked or seconds <= 0:
        work.checked = False
        return None
    shape = picture_area.height, picture_area.width, 3
    pixels = np.frombuffer(mmap.mmap(-1, max(1, math.prod(shape))), np.uint8, math.prod(shape)).reshape(shape)
    pixels[:] = 255

    def paint() -> None:
        for strip in parts:
            _paint(pixels, picture_area, display_list(), scale, strip)

    work.checked, spent = run_apart(paint, seconds)
    work.cpu_s += spent
    return pixels if work.checked else None


def _paint(pixels: Any, picture_area: Any, display_list: Any, scale: float, strip: Any) -> None:
    """Draw one strip of the page into the pixels of the whole picture."""
    mupdf = pymupdf()
    matrix, clip = mupdf.Matrix(scale, scale), mupdf.Rect(*[edge / scale for edge in strip])
    pixmap = display_list.get_pixmap(matrix=matrix, colorspace=mupdf.csRGB, alpha=0, clip=clip)
    rows = np.frombuffer(pixmap.samples_mv, np.uint8).reshape(pixmap.height, pixmap.stride)
    left, top = pixmap.x - picture_area.x0, pixmap.y - picture_area.y0
    target = pixels[top : top + pixmap.height, left : left + pixmap.width]
    target[:] = rows[:, : 3 * pixmap.width].reshape(pixmap.height, pixmap.width, 3)


def images(page: Any) -> list[Rect]:
    """The boxes of the pictures on a page, clipped to it. Without TEXT_CLIP, MuPDF drops those that cross its edge."""
    flags = pymupdf().TEXT_PRESERVE_IMAGES | pymupdf().TEXT_CLIP
    return [tuple(block[:4]) for block in page.get_textpage(flags=flags).extractBLOCKS() if block[6] == 1]
