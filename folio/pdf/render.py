"""Renders a page of a PDF as a PNG with quotes highlighted in yellow.

Quotes come from the cleaned text, where broken words are joined, ligatures expanded and columns reordered. So only
their letters and digits are matched, with those of the page in the order they were drawn.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from folio.errors import PaperError, command
from folio.pdf.mupdf import pymupdf, unlock
from folio.text import fold, reason_of

# Left, top, right and bottom, in points from the left and the top of the page as shown.
Rect = tuple[float, float, float, float]
_Pixels = npt.NDArray[np.uint8]

_POINTS_PER_INCH = 72
# An A4 page has 2.2 million pixels at 150 dpi. The largest page, 200 inches square, would have 900 million (2.7 GB).
_MAX_PIXELS = 12_000_000
_YELLOW = (255, 232, 64)
# A piece of a quote has at least this many letters and digits; many shorter ones occur several times on a page.
_MIN_PIECE = 8
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
    mupdf = pymupdf()
    document = _open(path)
    try:
        if not unlock(document):
            raise PaperError(f"{path.name} is encrypted and needs a password.", "Save it without a password.")
        count = len(document)
        if not count:
            raise PaperError(*_damaged(path))
        if not 1 <= page <= count:
            raise PaperError(
                f"{path.name} has no page {page} (its last is {count}), so it is not the file that was ingested.",
                f"Run `{command('ingest')}` again.",
            )
        loaded = document.load_page(page - 1)
        boxes = quote_boxes(loaded, quotes)
        png = _draw_png(loaded, [box for of_quote in boxes for box in of_quote], dpi)
        return PagePicture(png, tuple(map(bool, boxes)))
    except PaperError:
        raise
    except Exception as error:  # MuPDF raises many kinds, and a huge picture may not fit in memory
        raise PaperError(
            f"Page {page} of {path.name} cannot be drawn: {reason_of(error)}.", "Open the file in a PDF reader instead."
        ) from error
    finally:
        document.close()
        # MuPDF keeps every warning until they are reset.
        mupdf.TOOLS.reset_mupdf_warnings()


def quote_boxes(page: Any, quotes: Sequence[str]) -> list[tuple[Rect, ...]]:
    """The boxes of each quote on a PyMuPDF page: one for each line or part of a line, in the order of the quote.

    () for a quote that is not on the page.
    """
    letters = _letters(page.get_textpage(flags=pymupdf().TEXTFLAGS_TEXT).extractRAWDICT())
    return [tuple(_line_boxes(page, letters, _match_pieces(fold(quote), letters))) for quote in quotes]


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


class _Letters(NamedTuple):
    """The folded letters and digits of a page, in the order they were drawn."""

    text: str
    lines: list[int]  # the line number of each letter
    boxes: list[Rect]  # the box of each letter, before the page is rotated
    words: set[int]  # the indexes of the letters that start a word, and the end
    starts: list[int]  # the indexes of the letters that start a line, and the end


def _letters(page: dict[str, Any]) -> _Letters:
    letters: list[str] = []
    lines: list[int] = []
    boxes: list[Rect] = []
    words: set[int] = set()
    starts: list[int] = []
    drawn = [line for block in page["blocks"] for line in block.get("lines", ())]
    for number, line in enumerate(drawn):
        starts.append(len(letters))
        for character in (character for span in line["spans"] for character in span["chars"]):
            folded = fold(character["c"])
            if not folded:
                words.add(len(letters))
            letters += folded
            lines += [number] * len(folded)
            boxes += [character["bbox"]] * len(folded)
    starts.append(len(letters))
    return _Letters("".join(letters), lines, boxes, words.union(starts), starts)


def _match_pieces(quote: str, letters: _Letters) -> list[tuple[int, int]]:
    """The spans [start, end) of the page's letters that match a folded quote, in its order.

    One span if the page has the quote in one piece. Otherwise the longest pieces possible, because a column or a
    running head may be drawn in between; [] if they cover too little of the quote.
    """
    at = letters.text.find(quote) if quote else -1
    while at >= 0:
        if at in letters.words and at + len(quote) in letters.words:
            return [(at, at + len(quote))]
        at = letters.text.find(quote, at + 1)
    pieces: list[tuple[int, int]] = []
    start = 0
    while start + _MIN_PIECE <= len(quote):
        end = start + _MIN_PIECE
        at = letters.text.find(quote[start:end])
        if at < 0:
            start += 1
            continue
        # A longer match cannot occur earlier.
        while end < len(quote) and (longer := letters.text.find(quote[start : end + 1], at)) >= 0:
            at, end = longer, end + 1
        if end < len(quote):
            # Only whole lines are drawn in between, so the piece ends with its last whole line, if it has one.
            line_end = letters.starts[bisect_right(letters.starts, at + end - start) - 1]
            if line_end - at >= _MIN_PIECE:
                end = start + line_end - at
        pieces.append((at, at + end - start))
        start = end
    covered = sum(end - start for start, end in pieces)
    return pieces if covered >= _MIN_SHARE * len(quote) else []


def _line_boxes(page: Any, letters: _Letters, pieces: Sequence[tuple[int, int]]) -> Iterator[Rect]:
    """A box around each line of each piece, on the page as shown: rotated and cropped."""
    mupdf = pymupdf()
    for start, end in pieces:
        box_of_line: dict[int, Any] = {}
        for line, box in zip(letters.lines[start:end], letters.boxes[start:end], strict=True):
            box_of_line[line] = box_of_line[line] | box if line in box_of_line else mupdf.Rect(box)
        for unrotated in box_of_line.values():
            visible = (unrotated * page.rotation_matrix) & page.rect
            if not visible.is_empty:
                yield (visible.x0, visible.y0, visible.x1, visible.y1)


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
    return bytes(mupdf.Pixmap(mupdf.csRGB, picture.width, picture.height, highlighted.tobytes(), False).tobytes("png"))


def _highlight(part: _Pixels) -> _Pixels:
    """Pixels, shape (height, width, 3), under yellow ink; on a dark background, where ink is invisible, half yellow."""
    wide, yellow = part.astype(np.uint16), np.array(_YELLOW, np.uint16)
    dark = part.size and part.mean() < 128
    return ((wide + yellow) // 2 if dark else wide * yellow // 255).astype(np.uint8)
