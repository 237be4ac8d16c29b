"""The text of a PyMuPDF page that a reader can see: hidden_text.py with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from folio.pdf.hidden_text import find_hidden, summarise_hidden
from folio.pdf.mupdf import pymupdf
from folio.pdf.raster import Picture, Rect, Span, bands

# The most pixels to draw of one page; each takes three bytes.
_MAX_PIXELS = 4_000_000
# The most seconds to search one file for hidden text, so that slow files stay well below PARSE_TIMEOUT_S.
_SEARCH_S = 40.0
# MuPDF cannot be interrupted while it draws. A page whose text takes _BUSY_S to extract has thousands of objects and is
# drawn in strips: the first is this share of the page, each further one as high as all before it, while time is left.
# The same holds if the coarse picture of a page takes half of _SLOW_S.
_BUSY_S, _SLOW_S, _FIRST_STRIP = 0.05, 1.0, 1 / 64


class Clock:
    """Measures the time spent searching the pages of a file for hidden text."""

    spent = 0.0  # seconds on the previous pages
    since = 0.0  # when the current page was started; 0 between pages
    is_busy = False  # the current page is drawn in strips
    gave_up = False  # a page was not drawn, or not at the required scale

    def begin(self, is_busy: bool) -> None:
        self.since, self.is_busy = time.monotonic(), is_busy

    def end(self) -> None:
        self.spent += time.monotonic() - self.since
        self.since = 0.0

    def is_late(self, needed: float = 0.0) -> bool:
        """Whether the time is used up, or would be after `needed` more seconds."""
        now = time.monotonic() - self.since if self.since else 0.0
        return self.spent + now + needed > _SEARCH_S


def images(page: Any) -> list[Rect]:
    """The boxes of the pictures on a page."""
    blocks = page.get_textpage(flags=pymupdf().TEXT_PRESERVE_IMAGES).extractBLOCKS()
    return [tuple(block[:4]) for block in blocks if block[6] == 1]


class VisibleText(NamedTuple):
    """The text of a page that a reader can see."""

    blocks: list[dict[str, Any]]  # from MuPDF, without hidden spans
    hidden: frozenset[int] = frozenset()  # the indexes of the hidden spans among all spans of the page
    problem: str = ""  # a message about the hidden text


def visible_text(page: Any, clock: Clock) -> VisibleText:
    """The text of a page without the text that no reader can see."""
    started = time.monotonic()
    blocks = page.get_textpage(flags=pymupdf().TEXTFLAGS_TEXT).extractDICT()["blocks"]
    spans = [span for line in lines(blocks) for span in line["spans"]]
    clock.begin(time.monotonic() - started > _BUSY_S)
    # One display list for all pictures of the page. Text extracted from a display list would lack some spaces.
    draw, pictures = partial(_draw, cache(page.get_displaylist), page.rect, clock), partial(images, page)
    try:
        found = find_hidden([_span(span) for span in spans], draw, pictures, clock.is_late)
    finally:
        clock.end()
    if not found:
        return VisibleText(blocks)
    hidden = {id(spans[index]) for index in found}
    left_out = ["".join(s["text"] for s in line["spans"] if id(s) in hidden) for line in lines(blocks)]
    for line in lines(blocks):
        line["spans"] = [span for span in line["spans"] if id(span) not in hidden]
    problem = summarise_hidden(left_out, "".join(line_text(line) for line in lines(blocks)), found.values())
    return VisibleText(blocks, frozenset(found), problem)


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
    display_list: Callable[[], Any], page_rect: Any, clock: Clock, scale: float, part: Rect | None = None,
    boxes: Sequence[Rect] = (),
) -> Picture | None:  # fmt: skip
    """Draw a page or a part of it; None if that fails or takes too long. See hidden_text.View."""
    mupdf = pymupdf()
    try:
        area = mupdf.Rect(part or page_rect) & page_rect
        scale = min(scale, (_MAX_PIXELS / abs(area)) ** 0.5)
        whole = (area * mupdf.Matrix(scale, scale)).round()
        pixels = np.full((whole.height, whole.width, 3), 255, np.uint8)
        needed = 0.0
        if boxes and not clock.is_busy:
            if clock.is_late():
                clock.gave_up = True
                return None
            started = time.monotonic()
            for band in bands(boxes, scale, tuple(whole)):
                _paint(pixels, whole, display_list(), scale, mupdf.IRect(band))
            needed = 2 * (time.monotonic() - started)
        else:
            rows = max(1, int(whole.height * _FIRST_STRIP)) if clock.is_busy else whole.height
            top = whole.y0
            while top < whole.y1:
                if clock.is_late(needed):
                    clock.gave_up = True
                    return None
                started = time.monotonic()
                strip = mupdf.IRect(whole.x0, top, whole.x1, min(top + rows, whole.y1))
                _paint(pixels, whole, display_list(), scale, strip)
                top, rows = strip.y1, strip.y1 - whole.y0
                needed = 2 * (time.monotonic() - started)
        clock.is_busy = clock.is_busy or needed > _SLOW_S  # for the next picture, which is sharper
        return Picture(pixels, scale, (whole.x0 / scale, whole.y0 / scale))
    except Exception:  # including MemoryError: the text was read and must not be lost because of a picture
        return None


def _paint(pixels: Any, whole: Any, display_list: Any, scale: float, strip: Any) -> None:
    """Draw one strip of the page into the pixels of the whole picture."""
    mupdf = pymupdf()
    matrix = mupdf.Matrix(scale, scale)
    pixmap = display_list.get_pixmap(matrix=matrix, colorspace=mupdf.csRGB, alpha=0, clip=mupdf.Rect(strip) * ~matrix)
    rows = np.frombuffer(pixmap.samples_mv, np.uint8).reshape(pixmap.height, pixmap.stride)
    left, top = pixmap.x - whole.x0, pixmap.y - whole.y0
    target = pixels[top : top + pixmap.height, left : left + pixmap.width]
    target[:] = rows[:, : 3 * pixmap.width].reshape(pixmap.height, pixmap.width, 3)


def lines(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines of MuPDF's blocks."""
    for block in blocks:
        yield from block.get("lines", ())


def line_text(line: Mapping[str, Any]) -> str:
    """The text of a line from MuPDF."""
    return "".join(span["text"] for span in line["spans"])
