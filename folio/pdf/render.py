"""Renders a page of a PDF as a PNG with quotes highlighted in yellow."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from folio.errors import PaperError, command
from folio.pdf.letters import Letters, Piece, Rect, covered, drawn_letters, is_whole_words, line_boxes, place
from folio.pdf.mupdf import pymupdf, unlock
from folio.pdf.units import load_page
from folio.text import UNREAD_FORMULA, fold, reason_of

_Pixels = npt.NDArray[np.uint8]

_POINTS_PER_INCH = 72
# An A4 page has 2.2 million pixels at 150 dpi. The largest page, 200 inches square, would have 900 million (2.7 GB).
_MAX_PIXELS = 12_000_000
_YELLOW = (255, 232, 64)
_QUICK = 2  # level of zlib: a person waits for the picture, which goes over this computer's own network
# A quote counts as found if its pieces cover this share of it.
_MIN_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A page as a PNG file, and for each quote, in the order of the call, whether it is highlighted."""

    png: bytes
    highlighted: tuple[bool, ...]


def page_png(path: Path, page: int, quotes: Sequence[str], *, dpi: int = 150) -> PagePicture:
    """Physical page `page` (from 1) of a PDF, at a lower resolution if it would exceed 12 million pixels.

    MuPDF is not thread-safe: call this from one thread at a time.

    Raises PaperError if the file is missing, not a PDF, locked by a password or damaged, has no such page, or cannot be
    drawn.
    """
    with opened(path) as document, page_of(document, path, page) as loaded:
        boxes = quote_boxes(loaded, quotes)
        png = _draw_png(loaded, [box for of_quote in boxes for box in of_quote], dpi)
        return PagePicture(png, tuple(map(bool, boxes)))


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The PyMuPDF document of a file.

    Raises PaperError if the file is missing, not a PDF, locked by a password or damaged.
    """
    document = _open(path)
    try:
        if not unlock(document):
            raise PaperError(f"{path.name} is encrypted and needs a password.", "Save it without a password.")
        if not len(document):
            raise PaperError(*_damaged(path))
        yield document
    except PaperError:
        raise
    except Exception as error:  # MuPDF raises many kinds
        raise PaperError(*_unreadable(path.name, error)) from error
    finally:
        document.close()
        # MuPDF keeps every warning until they are reset.
        pymupdf().TOOLS.reset_mupdf_warnings()


@contextmanager
def page_of(document: Any, path: Path, page: int) -> Iterator[Any]:
    """Physical page `page`, from 1. Raises PaperError if there is none, and for any failure of the block."""
    count = len(document)
    if not 1 <= page <= count:
        raise PaperError(
            f"{path.name} has no page {page} (its last is {count}), so it is not the file that was ingested.",
            f"Run `{command('ingest')}` again.",
        )
    try:
        yield load_page(document, page - 1)
    except Exception as error:  # MuPDF raises many kinds, and a huge picture may not fit in memory
        raise PaperError(*_unreadable(f"Page {page} of {path.name}", error)) from error


def _unreadable(name: str, error: Exception) -> tuple[str, str]:
    return f"{name} cannot be drawn: {reason_of(error)}.", "Open the file in a PDF reader instead."


def quote_boxes(page: Any, quotes: Sequence[str]) -> list[tuple[Rect, ...]]:
    """The boxes of each quote on a PyMuPDF page: one for each line or part of a line, in the order of the quote.

    () for a quote that is not on the page.
    """
    letters = drawn_letters(page)
    pieces = [_match_pieces(fold(quote.replace(UNREAD_FORMULA, "")), letters) for quote in quotes]
    return [
        tuple(box for piece in of_quote for *_, box in line_boxes(letters, piece.at, piece.at + piece.length))
        for of_quote in pieces
    ]


def _match_pieces(quote: str, letters: Letters) -> list[Piece]:
    """The pieces of a folded quote on the page: one if the page has it in one, as whole words.

    [] if they cover too little of the quote.
    """
    at = letters.text.find(quote) if quote else -1
    while at >= 0:
        if is_whole_words(letters, at, at + len(quote)):
            return [Piece(0, at, len(quote))]
        at = letters.text.find(quote, at + 1)
    pieces = place(quote, letters)
    return pieces if covered(pieces) >= _MIN_SHARE * len(quote) else []


def _open(path: Path) -> Any:
    try:
        path.open("rb").close()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise PaperError(
            f"{path.name} cannot be opened: {reason}.", f"Put it back where it was, or run `{command('ingest')}` again."
        ) from error
    try:
        document = pymupdf().open(path, filetype="pdf")
        if document.is_pdf:  # MuPDF also opens HTML and images
            return document
        document.close()
    except Exception as error:  # MuPDF raises many kinds; each means that the file is broken
        raise PaperError(*_damaged(path)) from error
    raise PaperError(f"{path.name} is not a PDF.", "Replace it with the PDF.")


def _damaged(path: Path) -> tuple[str, str]:
    return f"{path.name} is damaged or cut short.", "Download the file again."


def _draw_png(page: Any, boxes: Sequence[Rect], dpi: int) -> bytes:
    """The page as PNG with these boxes highlighted."""
    mupdf = pymupdf()
    zoom = min(dpi / _POINTS_PER_INCH, math.sqrt(_MAX_PIXELS / (page.rect.width * page.rect.height)))
    picture = page.get_pixmap(matrix=mupdf.Matrix(zoom, zoom), colorspace=mupdf.csRGB, alpha=False)
    plain: _Pixels = np.frombuffer(picture.samples, np.uint8).reshape(picture.height, picture.width, 3)
    highlighted = plain.copy()
    for x0, y0, x1, y1 in boxes:
        place = np.s_[math.floor(y0 * zoom) : math.ceil(y1 * zoom), math.floor(x0 * zoom) : math.ceil(x1 * zoom)]
        highlighted[place] = _highlight(plain[place])
    return _png(highlighted)


def _png(pixels: _Pixels) -> bytes:
    """Pixels as a PNG file (https://www.w3.org/TR/png-3/), twice as fast as MuPDF's, and a fifth larger.

    Each row has its difference from the row above (filter 2).
    """
    height, width, _ = pixels.shape
    flat = pixels.reshape(height, -1)
    filtered = np.full((height, flat.shape[1] + 1), 2, np.uint8)
    filtered[0, 1:] = flat[0]
    np.subtract(flat[1:], flat[:-1], out=filtered[1:, 1:])
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(filtered.tobytes(), _QUICK),
        b"IEND": b"",
    }
    written = (
        struct.pack(">I4s", len(data), kind) + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def _highlight(part: _Pixels) -> _Pixels:
    """Pixels, shape (height, width, 3), under yellow ink; on a dark background, where ink is invisible, half yellow."""
    wide, yellow = part.astype(np.uint16), np.array(_YELLOW, np.uint16)
    dark = part.size and part.mean() < 128
    return ((wide + yellow) // 2 if dark else wide * yellow // 255).astype(np.uint8)
