"""The text of a page that a reader can see: hidden_text.py applied to a page of PyMuPDF, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from folio.pdf.hidden_text import hidden, summary
from folio.pdf.mupdf import pymupdf
from folio.pdf.raster import Picture, Rect, Span, bands

# Pages are drawn to see what a reader sees: at most so many pixels of one, of which each takes three bytes, and the
# looking for unseen text may take so long of one file, so that slow ones stay far from PARSE_TIMEOUT_S.
_MAX_PIXELS = 4_000_000
_LOOKING_S = 40.0
# MuPDF cannot be stopped while it draws. A page whose text takes this long to read has thousands of things on it, and
# is drawn strip by strip: first a share so small, then each time as much as there is, while time is left for that.
# So is one whose first, blurred picture took half of the other time.
_BUSY_S, _SLOW_S, _FIRST_STRIP = 0.05, 1.0, 1 / 64


class Clock:
    """How long the pages of a file have been searched for unseen text."""

    spent = 0.0  # seconds, on the pages before
    since = 0.0  # when the page now searched was begun
    is_busy = False  # that page is drawn strip by strip
    gave_up = False  # a page was not drawn, or not as sharply as was asked for

    def begin(self, is_busy: bool) -> None:
        self.since, self.is_busy = time.monotonic(), is_busy

    def end(self) -> None:
        self.spent += time.monotonic() - self.since
        self.since = 0.0

    def is_late(self, needed: float = 0.0) -> bool:
        """Whether the time is spent, or would be by what needs so many seconds."""
        now = time.monotonic() - self.since if self.since else 0.0
        return self.spent + now + needed > _LOOKING_S


def images(page: Any) -> list[Rect]:
    """Where pictures lie on a page."""
    blocks = page.get_textpage(flags=pymupdf().TEXT_PRESERVE_IMAGES).extractBLOCKS()
    return [tuple(block[:4]) for block in blocks if block[6] == 1]


class Seen(NamedTuple):
    """The text of a page that a reader can see."""

    blocks: list[dict[str, Any]]  # as MuPDF gives them, without the spans that cannot be seen
    unseen: frozenset[int] = frozenset()  # the places of those among all spans of the page
    problem: str = ""  # what is to be said of them


def seen_text(page: Any, clock: Clock) -> Seen:
    """The text of a page, with what no reader can see taken out."""
    started = time.monotonic()
    blocks = page.get_textpage(flags=pymupdf().TEXTFLAGS_TEXT).extractDICT()["blocks"]
    spans = [span for line in lines(blocks) for span in line["spans"]]
    clock.begin(time.monotonic() - started > _BUSY_S)
    # One list of what is on the page for all its pictures. The text of such a list would lack some of its spaces.
    draw, pictures = partial(_draw, cache(page.get_displaylist), page.rect, clock), partial(images, page)
    try:
        found = hidden([_span(span) for span in spans], draw, pictures, clock.is_late)
    finally:
        clock.end()
    if not found:
        return Seen(blocks)
    unseen = {id(spans[place]) for place in found}
    left_out = ["".join(s["text"] for s in line["spans"] if id(s) in unseen) for line in lines(blocks)]
    for line in lines(blocks):
        line["spans"] = [span for span in line["spans"] if id(span) not in unseen]
    said = summary(left_out, "".join(line_text(line) for line in lines(blocks)), found.values())
    return Seen(blocks, frozenset(found), said)


def _span(span: Mapping[str, Any]) -> Span:
    mupdf = pymupdf().mupdf
    flags, colour = span["char_flags"], span["color"]
    clipped, stroked = bool(flags & mupdf.FZ_STEXT_CLIPPED), bool(flags & mupdf.FZ_STEXT_STROKED)
    return Span(
        span["bbox"],
        span["text"],
        span["size"],
        (colour >> 16 & 255, colour >> 8 & 255, colour & 255),
        255 if clipped else span["alpha"],  # of a letter that is a hole, MuPDF says 0
        clipped or stroked or bool(flags & mupdf.FZ_STEXT_FILLED),
        not (clipped or stroked),
    )


def _draw(
    drawn: Callable[[], Any], sheet: Any, clock: Clock, scale: float, part: Rect | None = None,
    boxes: Sequence[Rect] = (),
) -> Picture | None:  # fmt: skip
    """A page, which is a sheet of that size, or a part of it; None where that fails or takes too long.

    drawn gives the list of what is on it. See folio.pdf.hidden_text.View.
    """
    mupdf = pymupdf()
    try:
        area = mupdf.Rect(part or sheet) & sheet
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
                _paint(pixels, whole, drawn(), scale, mupdf.IRect(band))
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
                _paint(pixels, whole, drawn(), scale, strip)
                top, rows = strip.y1, strip.y1 - whole.y0
                needed = 2 * (time.monotonic() - started)
        clock.is_busy = clock.is_busy or needed > _SLOW_S  # for the next look, which is sharper
        return Picture(pixels, scale, (whole.x0 / scale, whole.y0 / scale))
    except Exception:  # MemoryError too: the text was read, and a picture must not cost it
        return None


def _paint(pixels: Any, whole: Any, drawn: Any, scale: float, strip: Any) -> None:
    """Put one strip of the page where it belongs among the pixels of the whole."""
    mupdf = pymupdf()
    how = mupdf.Matrix(scale, scale)
    pixmap = drawn.get_pixmap(matrix=how, colorspace=mupdf.csRGB, alpha=0, clip=mupdf.Rect(strip) * ~how)
    rows = np.frombuffer(pixmap.samples_mv, np.uint8).reshape(pixmap.height, pixmap.stride)
    left, top = pixmap.x - whole.x0, pixmap.y - whole.y0
    target = pixels[top : top + pixmap.height, left : left + pixmap.width]
    target[:] = rows[:, : 3 * pixmap.width].reshape(pixmap.height, pixmap.width, 3)


def lines(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines of blocks as MuPDF gives them."""
    for block in blocks:
        yield from block.get("lines", ())


def line_text(line: Mapping[str, Any]) -> str:
    """What stands on a line as MuPDF gives it."""
    return "".join(span["text"] for span in line["spans"])
