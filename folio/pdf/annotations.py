"""Annotations in a PDF: a copy with notes as highlights and comments, and the areas of a page as it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from folio.pdf.letters import Rect
from folio.pdf.mupdf import pymupdf
from folio.pdf.render import opened, page_of, quote_boxes
from folio.pdf.units import scale_of

_AUTHOR = "Folio"
_OPACITY = 0.5  # of an area
_MARGIN, _STEP = 20.0, 24.0  # points: where the comments on a page stand, and between two of them
_LONGEST = 50_000  # characters of a comment


@dataclass(frozen=True, slots=True)
class PdfMark:
    """A note on a physical page, from 1: on words, on an area as the page is shown in the reader, or on the page."""

    page: int
    quote: str  # the words on this page; "" for none
    area: Rect | None
    colour: tuple[float, float, float]  # red, green and blue, from 0 to 1
    text: str


@dataclass(frozen=True, slots=True)
class AnnotatedCopy:
    """A copy to write: of which file, where to, and with which notes."""

    path: Path
    target: Path  # is replaced
    marks: tuple[PdfMark, ...]


@dataclass(frozen=True, slots=True)
class PdfPlaces:
    """Places in a file: a page, from 1, and rectangles in the PDF's own coordinates, whose origin is below."""

    path: Path
    places: tuple[tuple[int, tuple[Rect, ...]], ...]


def write_annotated(copy: AnnotatedCopy) -> int:
    """Write an annotated copy; returns how many marks are on their words or area. Runs in a worker process.

    Raises PaperError, OSError.
    """
    with opened(copy.path) as document:
        placed, commented = 0, dict[int, int]()
        for mark in copy.marks:
            page = document.load_page(mark.page - 1)  # in its own size: units.load_page would change it
            if _add(page, mark, scale_of(page)):
                placed += 1
            else:
                _add_comment(page, mark, commented.get(mark.page, 0))
                commented[mark.page] = commented.get(mark.page, 0) + 1
        content = document.tobytes(deflate=True)
    copy.target.write_bytes(content)
    return placed


def areas_on_pages(places: PdfPlaces) -> list[Rect | None]:
    """The area around each of these, in points of the page as it is shown; None for one that is outside of it.

    Runs in a worker process. Raises PaperError.
    """
    areas: list[Rect | None] = []
    with opened(places.path) as document:
        for number, rects in places.places:
            if not rects or number > len(document):
                areas.append(None)
                continue
            with page_of(document, places.path, number) as page:
                areas.append(_area(page, rects))
    return areas


def _area(page: Any, rects: Sequence[Rect]) -> Rect | None:
    corners = [_as_shown(page, x, y) for left, low, right, high in rects for x, y in ((left, low), (right, high))]
    xs, ys = zip(*corners, strict=True)
    _, _, width, height = page.rect
    left, right = max(0.0, min(xs)), min(width, max(xs))
    top, bottom = max(0.0, min(ys)), min(height, max(ys))
    return (left, top, right, bottom) if left < right and top < bottom else None


def _as_shown(page: Any, x: float, y: float) -> tuple[float, float]:
    """A point of the PDF's own coordinates on the page as it is shown: cropped, turned and scaled.

    PyMuPDF's transformation_matrix knows nothing of crop boxes on turned pages.
    """
    crop, media = page.cropbox, page.mediabox  # the crop box is measured from above, the media box from below
    right, down = x - crop.x0, media.y1 - y - crop.y0
    turned: dict[int, tuple[float, float]] = {
        0: (right, down),
        90: (crop.height - down, right),
        180: (crop.width - right, crop.height - down),
        270: (down, crop.width - right),
    }
    scale = page.rect.width / (crop.height if page.rotation in (90, 270) else crop.width)
    across, below = turned[page.rotation % 360]
    return across * scale, below * scale


def _add(page: Any, mark: PdfMark, scale: float) -> bool:
    """Add a mark on its words or area; returns whether there is one. scale: of the page in the reader."""
    mupdf = pymupdf()
    if mark.quote:
        (boxes,) = quote_boxes(page, [mark.quote])
        if not boxes:
            return False
        annotation = page.add_highlight_annot([mupdf.Rect(box) * page.derotation_matrix for box in boxes])
        annotation.set_colors(stroke=mark.colour)
    elif mark.area:
        annotation = page.add_rect_annot((mupdf.Rect(mark.area) / scale & page.rect) * page.derotation_matrix)
        annotation.set_colors(stroke=mark.colour)
        annotation.set_opacity(_OPACITY)
    else:
        return False
    _describe(annotation, mark.text)
    return True


def _add_comment(page: Any, mark: PdfMark, place: int) -> None:
    """A comment at the edge of the page; it has the words that are not drawn there."""
    mupdf = pymupdf()
    at = mupdf.Point(_MARGIN, _MARGIN + _STEP * place) * page.derotation_matrix
    annotation = page.add_text_annot(at, "")
    annotation.set_colors(stroke=mark.colour)
    _describe(annotation, "\n\n".join(filter(None, (f"“{mark.quote}”" if mark.quote else "", mark.text))))


def _describe(annotation: Any, text: str) -> None:
    annotation.set_info(title=_AUTHOR, content=text[:_LONGEST])
    annotation.update()

