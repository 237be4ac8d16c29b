"""A page of a PDF as a picture, with quotes from it marked in yellow.

Quotes come from the cleaned text, where words broken over lines are whole, ligatures undone and columns put in order.
So they are looked up by their letters and digits alone, among those of the page in the order they were drawn.
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from folio.errors import PaperError
from folio.pdf.mupdf import pymupdf

# Left, top, right and bottom edge, in points from the left and the top of the page as it is shown.
Rect = tuple[float, float, float, float]
_Pixels = npt.NDArray[np.uint8]

_POINTS_PER_INCH = 72
# At 150 dpi a page of A4 has 2.2 million. A page may be 200 inches wide and high: 900 million, or 2.7 GB.
_MAX_PIXELS = 12_000_000
_YELLOW = (255, 232, 64)
# Letters and digits that a piece of a quote has at least: of shorter ones, many stand in several places of a page.
_MIN_PIECE = 8
# A quote counts as found when its pieces hold this share of it.
_MIN_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A page as a PNG file, and for each quote, in the order given, whether it is marked in it."""

    png: bytes
    found: tuple[bool, ...]


def page_png(path: Path, page: int, quotes: Sequence[str], *, dpi: int = 150) -> PagePicture:
    """Physical page `page`, from 1, of a PDF, at this resolution or what keeps a very large page to 12 million pixels.

    MuPDF is not made for threads: one call at a time.

    Raises PaperError for a file that is gone, no PDF, locked by a password or damaged, a page that it does not have,
    and one that cannot be drawn.
    """
    mupdf = pymupdf()
    document = _opened(path)
    try:
        if document.needs_pass and not document.authenticate(""):
            raise PaperError(f"{path.name} is encrypted and needs a password.", "Save it without a password.")
        count = len(document)
        if not count:
            raise PaperError(*_damaged(path))
        if not 1 <= page <= count:
            raise PaperError(
                f"{path.name} has no page {page}, its last one is {count}: it is not the file that was ingested.",
                "Run `python ingest.py` again.",
            )
        loaded = document.load_page(page - 1)
        boxes = quote_boxes(loaded, quotes)
        png = _drawn(loaded, [box for found in boxes for box in found], dpi)
        return PagePicture(png, tuple(map(bool, boxes)))
    except PaperError:
        raise
    except Exception as error:  # MuPDF raises many kinds, and a huge picture may not fit into memory
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise PaperError(
            f"Page {page} of {path.name} cannot be drawn: {reason}.", "Open the file in a PDF reader instead."
        ) from error
    finally:
        document.close()
        # MuPDF keeps every warning until it is asked for them.
        mupdf.TOOLS.reset_mupdf_warnings()


def quote_boxes(page: Any, quotes: Sequence[str]) -> list[tuple[Rect, ...]]:
    """For each quote where its words stand on this page of PyMuPDF: a box for each line or part of one, in the order of
    the quote. () for one that the page does not show.
    """
    letters = _letters(page.get_textpage(flags=pymupdf().TEXTFLAGS_TEXT).extractRAWDICT())
    return [tuple(_shown(page, letters, _pieces(_fold(quote), letters))) for quote in quotes]


def _opened(path: Path) -> Any:
    try:
        path.open("rb").close()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise PaperError(
            f"{path.name} cannot be opened: {reason}.", "Put it back where it was, or run `python ingest.py` again."
        ) from error
    try:
        document = pymupdf().open(path, filetype="pdf")
        if document.is_pdf:  # it opens HTML and images as well
            return document
        document.close()
    except Exception as error:  # MuPDF raises many kinds; each means that the file is broken
        raise PaperError(*_damaged(path)) from error
    raise PaperError(f"{path.name} is not a PDF.", "Put the PDF itself in its place.")


def _damaged(path: Path) -> tuple[str, str]:
    return f"{path.name} is damaged or cut short.", "Fetch the file again."


class _Letters(NamedTuple):
    """The letters and digits of a page in the order they were drawn, folded."""

    text: str
    lines: list[int]  # for each, the number of its line
    boxes: list[Rect]  # and where it stands, before the page is turned
    words: set[int]  # those that begin a word, and the end
    starts: list[int]  # those that begin a line, and the end


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
            folded = _fold(character["c"])
            if not folded:
                words.add(len(letters))
            letters += folded
            lines += [number] * len(folded)
            boxes += [character["bbox"]] * len(folded)
    starts.append(len(letters))
    return _Letters("".join(letters), lines, boxes, words.union(starts), starts)


def _fold(text: str) -> str:
    """Letters and digits alone: without case, accents, and the forms that typesetters give them, such as ligatures."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())))


def _pieces(quote: str, letters: _Letters) -> list[tuple[int, int]]:
    """The spans [start, end) of the page's letters that hold a folded quote, in its order.

    Whole where it stands there in one piece. Else, as a column or a running head may be drawn in between, in pieces
    that are as long as can be; [] where they hold too little of it.
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
        # What is one letter longer cannot stand anywhere before.
        while end < len(quote) and (longer := letters.text.find(quote[start : end + 1], at)) >= 0:
            at, end = longer, end + 1
        if end < len(quote):
            # What is drawn in between is whole lines: the piece ends with its last whole one, where it has one.
            line_end = letters.starts[bisect_right(letters.starts, at + end - start) - 1]
            if line_end - at >= _MIN_PIECE:
                end = start + line_end - at
        pieces.append((at, at + end - start))
        start = end
    held = sum(end - start for start, end in pieces)
    return pieces if held >= _MIN_SHARE * len(quote) else []


def _shown(page: Any, letters: _Letters, pieces: Sequence[tuple[int, int]]) -> Iterator[Rect]:
    """A box around each line of each piece, as far as it lies on the page as it is shown: turned and cropped."""
    mupdf = pymupdf()
    for start, end in pieces:
        of_line: dict[int, Any] = {}
        for line, box in zip(letters.lines[start:end], letters.boxes[start:end], strict=True):
            of_line[line] = of_line[line] | box if line in of_line else mupdf.Rect(box)
        for whole in of_line.values():
            shown = (whole * page.rotation_matrix) & page.rect
            if not shown.is_empty:
                yield (shown.x0, shown.y0, shown.x1, shown.y1)


def _drawn(page: Any, boxes: Sequence[Rect], dpi: int) -> bytes:
    """The page as PNG with these boxes marked."""
    mupdf = pymupdf()
    zoom = min(dpi / _POINTS_PER_INCH, math.sqrt(_MAX_PIXELS / (page.rect.width * page.rect.height)))
    picture = page.get_pixmap(matrix=mupdf.Matrix(zoom, zoom), colorspace=mupdf.csRGB, alpha=False)
    plain: _Pixels = np.frombuffer(picture.samples, np.uint8).reshape(picture.height, picture.width, 3)
    marked = plain.copy()
    for x0, y0, x1, y1 in boxes:
        place = np.s_[math.floor(y0 * zoom) : math.ceil(y1 * zoom), math.floor(x0 * zoom) : math.ceil(x1 * zoom)]
        marked[place] = _marked(plain[place])
    return bytes(mupdf.Pixmap(mupdf.csRGB, picture.width, picture.height, marked.tobytes(), False).tobytes("png"))


def _marked(part: _Pixels) -> _Pixels:
    """These pixels, shape (height, width, 3), as seen through yellow ink; on a dark ground, where ink shows nothing,
    half way to yellow.
    """
    wide, yellow = part.astype(np.uint16), np.array(_YELLOW, np.uint16)
    dark = part.size and part.mean() < 128
    return ((wide + yellow) // 2 if dark else wide * yellow // 255).astype(np.uint8)
