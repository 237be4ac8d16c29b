"""The text of a PyMuPDF page that a reader can see: runs hidden_text.py with a limit on its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from folio.pdf import drawn_signs
from folio.pdf.hidden_text import find_hidden, summarise_hidden
from folio.pdf.mupdf import pymupdf
from folio.pdf.raster import Picture, Rect, Span, bands

# The most pixels to draw of one page; each takes three bytes.
_MAX_PIXELS = 4_000_000
# The most pixels to draw and compare in one file: 190 scanned A4 pages, or 3,000 printed ones. It takes 20 to 50 s.
_FILE_PIXELS = 400_000_000
# The most seconds of processor time to draw one file, far more than an ordinary file takes
_DRAW_CPU_S = 75.0
# MuPDF cannot be interrupted while it draws. A page whose text takes _BUSY_S to extract has thousands of objects and is
# drawn in strips: the first is this share of the page, each further one as high as all before it, while time is left.
# The same holds if the coarse picture of a page takes half of _SLOW_S.
_BUSY_S, _SLOW_S, _FIRST_STRIP = 0.05, 1.0, 1 / 64


class SearchWork:
    """The work of searching the pages of a file for hidden text, counted in pixels.

    A count stops at the same place on every computer, however busy it is. Only drawings that are slow on purpose also
    reach the limit on processor time.
    """

    pixels = 0  # drawn and compared
    cpu_s = 0.0  # spent on drawing
    is_busy = False  # the current page is drawn in strips
    checked = True  # whether the current page was checked completely

    def begin_page(self, is_busy: bool) -> None:
        self.is_busy, self.checked = is_busy, True

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
            yield
        finally:
            self.cpu_s += time.process_time() - started

    def is_too_slow(self, cpu_s: float) -> bool:
        """Whether a drawing that needs this much processor time must be left out."""
        if self.cpu_s + cpu_s > _DRAW_CPU_S:
            self.checked = False
        return self.cpu_s + cpu_s > _DRAW_CPU_S


def images(page: Any) -> list[Rect]:
    """The boxes of the pictures on a page, clipped to it. Without TEXT_CLIP, MuPDF drops those that cross its edge."""
    flags = pymupdf().TEXT_PRESERVE_IMAGES | pymupdf().TEXT_CLIP
    return [tuple(block[:4]) for block in page.get_textpage(flags=flags).extractBLOCKS() if block[6] == 1]


class VisibleText(NamedTuple):
    """The text of a page that a reader can see."""

    blocks: list[dict[str, Any]]  # from MuPDF, without hidden spans
    hidden: frozenset[int] = frozenset()  # the indexes of the hidden spans among all spans of the page
    problem: str = ""  # a message about the hidden text
    checked: bool = True  # False: it takes too much work to draw, so some hidden text may be left


def visible_text(page: Any, work: SearchWork) -> VisibleText:
    """The text of a page without text that no reader can see."""
    started = time.process_time()
    blocks = page.get_textpage(flags=pymupdf().TEXTFLAGS_TEXT).extractDICT()["blocks"]
    spans = [span for line in lines(blocks) for span in line["spans"]]
    work.begin_page(time.process_time() - started > _BUSY_S)
    # One display list for all pictures of the page. Text extracted from a display list would lack some spaces.
    draw, pictures = partial(_draw, cache(page.get_displaylist), page.rect, work), partial(images, page)
    reasons = find_hidden([_span(span) for span in spans], draw, pictures, work.take)
    for span, text in zip(spans, drawn_signs.texts(page, spans), strict=True):
        span["text"] = text
    if not reasons:
        return VisibleText(blocks, checked=work.checked)
    hidden = {id(spans[index]) for index in reasons}
    left_out = ["".join(s["text"] for s in line["spans"] if id(s) in hidden) for line in lines(blocks)]
    for line in lines(blocks):
        line["spans"] = [span for span in line["spans"] if id(span) not in hidden]
    problem = summarise_hidden(left_out, "".join(line_text(line) for line in lines(blocks)), reasons.values())
    return VisibleText(blocks, frozenset(reasons), problem, work.checked)


def _span(span: Mapping[str, Any]) -> Span:
    mupdf = pymupdf().mupdf
    flags, colour = span["char_flags"], span["color"]
    clipped, stroked = bool(flags & mupdf.FZ_STEXT_CLIPPED), bool(flags & mupdf.FZ_STEXT_STROKED)
    return Span(
        span["bbox"],
        span["text"],
        span["size"],
        (colour >> 16 & 255, colour >> 8 & 255, colour & 255),
        255 if clipped else span["alpha"],  # MuPDF reports 0 for letters used as a clip path
        clipped or stroked or bool(flags & mupdf.FZ_STEXT_FILLED),
        not (clipped or stroked),
    )


def _draw(
    display_list: Callable[[], Any], page_rect: Any, work: SearchWork, scale: float, part: Rect | None = None,
    boxes: Sequence[Rect] = (),
) -> Picture | None:  # fmt: skip
    """Draw a page or a part of it; None if that fails or takes too much work. See hidden_text.View."""
    mupdf = pymupdf()
    try:
        area = mupdf.Rect(part or page_rect) & page_rect
        scale = min(scale, (_MAX_PIXELS / abs(area)) ** 0.5)
        picture_area = (area * mupdf.Matrix(scale, scale)).round()
        parts = [mupdf.IRect(band) for band in bands(boxes, scale, tuple(picture_area))] if boxes else [picture_area]
        if not work.take(sum(strip.width * strip.height for strip in parts)):
            return None
        pixels = np.full((picture_area.height, picture_area.width, 3), 255, np.uint8)
        cpu_s = work.cpu_s
        if boxes and not work.is_busy:
            if work.is_too_slow(0.0):
                return None
            with work.drawing():
                for strip in parts:
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
        return Picture(pixels, scale, (picture_area.x0 / scale, picture_area.y0 / scale))
    except Exception:  # including MemoryError: the text was read and must not be lost because of a picture
        work.checked = False
        return None


def _paint(pixels: Any, picture_area: Any, display_list: Any, scale: float, strip: Any) -> None:
    """Draw one strip of the page into the pixels of the whole picture."""
    mupdf = pymupdf()
    matrix = mupdf.Matrix(scale, scale)
    pixmap = display_list.get_pixmap(matrix=matrix, colorspace=mupdf.csRGB, alpha=0, clip=mupdf.Rect(strip) * ~matrix)
    rows = np.frombuffer(pixmap.samples_mv, np.uint8).reshape(pixmap.height, pixmap.stride)
    left, top = pixmap.x - picture_area.x0, pixmap.y - picture_area.y0
    target = pixels[top : top + pixmap.height, left : left + pixmap.width]
    target[:] = rows[:, : 3 * pixmap.width].reshape(pixmap.height, pixmap.width, 3)


def lines(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines of MuPDF's blocks."""
    for block in blocks:
        yield from block.get("lines", ())


def line_text(line: Mapping[str, Any]) -> str:
    """The text of a line from MuPDF."""
    return "".join(span["text"] for span in line["spans"])
