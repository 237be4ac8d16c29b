"""OCR of pages without a text layer: by Tesseract through PyMuPDF, or by RapidOCR, whichever is installed.

Nothing is downloaded: Tesseract's language files come with its package, and RapidOCR's models are in its wheel.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from folio.pdf.mupdf import pymupdf
from folio.pdf.order import Box
from folio.text import reason_of

HOW_TO_INSTALL = "install Tesseract (`apt install tesseract-ocr`, `brew install tesseract`) or `pip install rapidocr`"

# Both engines read ordinary print as well at this resolution as at 300 dpi, in two thirds of the time.
_DPI = 200
# An A4 page has 3.9 million pixels at that resolution. Larger pages, such as posters, get a lower one.
_MAX_PIXELS = 12_000_000
_POINTS_PER_INCH = 72
# Some systems install every language. With more than this, only the first is used.
_MAX_LANGUAGES = 3
# In pictures without text an engine finds specks of one or two letters. Text has this many letters in longer words.
_WORD, _MIN_LETTERS = re.compile(r"[^\W_]{3,}"), 16
# RapidOCR leaves out lines that it is less confident of than this, from 0 to 1.
_MIN_CONFIDENCE = 0.5
# Lines closer than this share of a line's height belong to one paragraph.
_MAX_LEADING = 0.8

Blocks = list[list[Box]]


class Engine(NamedTuple):
    """An OCR engine and its display name."""

    name: str
    read: Callable[[Any], Blocks]  # a PyMuPDF page -> its lines by paragraph, in the coordinates of the page as shown
    made_with: str = ""  # what else the text depends on: versions, languages, models

    @property
    def identity(self) -> str:
        """Differs for any two engines that may read the same page differently."""
        return f"{self.name} {self.made_with}, {_DPI} dpi, at most {_MAX_PIXELS} pixels"


class Scan(NamedTuple):
    """The result of OCR on one page: its lines, or why there are none."""

    blocks: Blocks
    failed: str = ""  # why there are no lines: "failed: out of ink"
    # "limit": by a limit or a crash, which would happen again. "computer": for another reason, such as a busy computer.
    stopped_by: Literal["", "limit", "computer"] = ""


class NotScannedYet(Exception):
    """A file cannot be read before these pages (indexes from 0) are read by OCR. of: the number of all its pages."""

    def __init__(self, pages: Sequence[int], of: int) -> None:
        super().__init__(f"{len(pages)} of {of} pages need OCR")
        self.pages, self.of = tuple(pages), of


@cache
def engine() -> Engine | None:
    """The installed engine; None if there is none. Cached, since looking for Tesseract takes 0.2 s."""
    mupdf = f"PyMuPDF {pymupdf().VersionBind}"  # draws the page, and contains Tesseract
    languages = _tesseract_languages()
    if languages:
        folder, names = languages
        sizes = [(Path(folder) / f"{name}.traineddata").stat().st_size for name in names.split("+")]
        made_with = f"{names} of {', '.join(map(str, sizes))} bytes, {mupdf}"
        return Engine("Tesseract", partial(_read_tesseract, *languages), made_with)
    models = _rapidocr_models()
    if not models:
        return None
    files = ", ".join(Path(path).name for path in models.values())
    made_with = f"{version('rapidocr')}, {files}, confidence {_MIN_CONFIDENCE}, {mupdf}"
    return Engine("RapidOCR", partial(_read_rapidocr, models), made_with)


def scan_page(page: Any) -> Scan:
    """OCR of a PyMuPDF page, in its current rotation, by the installed engine. There must be one."""
    installed = engine()
    assert installed is not None, "call engine() first"
    try:
        return Scan(installed.read(page))
    except MemoryError:
        raise
    except Exception as error:  # one bad page must not stop the others
        return Scan([], f"failed: {reason_of(error)}")


def is_text(text: str) -> bool:
    """Whether an engine's output is text and not noise from a picture."""
    return sum(map(len, _WORD.findall(text))) >= _MIN_LETTERS


def _pixmap(page: Any) -> Any:
    """The page as shown, in colour."""
    mupdf = pymupdf()
    area = page.rect.width * page.rect.height / _POINTS_PER_INCH**2
    dpi = max(1, int(min(_DPI, (_MAX_PIXELS / area) ** 0.5)))
    return page.get_pixmap(dpi=dpi, colorspace=mupdf.csRGB, alpha=False)


def _tesseract_languages() -> tuple[str, str] | None:
    """The folder of Tesseract's language files, and the languages to use, such as "eng+deu"; None if there are none."""
    try:
        folder = Path(pymupdf().get_tessdata())
    except Exception:  # Tesseract is not installed: PyMuPDF raises more than one kind of exception
        return None
    names = sorted(path.stem for path in folder.glob("*.traineddata") if path.stem != "osd")
    names.sort(key=lambda name: name != "eng")
    if not names:
        return None
    return str(folder), "+".join(names if len(names) <= _MAX_LANGUAGES else names[:1])


def _read_tesseract(folder: str, languages: str, page: Any) -> Blocks:
    mupdf = pymupdf()
    pixmap = _pixmap(page)
    with _stderr_silenced():
        read = mupdf.open("pdf", pixmap.pdfocr_tobytes(compress=False, language=languages, tessdata=folder))
    try:
        blocks = read[0].get_textpage(flags=mupdf.TEXTFLAGS_TEXT).extractDICT()["blocks"]
        scale = page.rect.width / read[0].rect.width
    finally:
        read.close()
    paragraphs_read: Blocks = []
    for block in blocks:
        lines = []
        for line in block.get("lines", ()):
            text = "".join(span["text"] for span in line["spans"])
            if any(map(str.isalnum, text)):
                x0, y0, x1, y1 = (scale * value for value in line["bbox"])
                lines.append(Box(x0, y0, x1, y1, text, abs(line["dir"][0]) > 0.9))
        paragraphs_read.append(lines)
    return paragraphs_read


@contextmanager
def _stderr_silenced() -> Iterator[None]:
    """Discard what C code writes to standard error: Tesseract comments on every speck of a scan."""
    sys.stderr.flush()
    saved = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def _rapidocr_models() -> dict[str, str]:
    """The settings that name the models in RapidOCR's package, with their paths; {} if one is missing.

    RapidOCR gets the paths of its models, because it downloads models that it does not find.
    """
    package = find_spec("rapidocr")
    if package is None or package.origin is None:
        return {}
    folder = Path(package.origin).parent / "models"
    models = {part: sorted(folder.glob(f"*_{part}_*.onnx")) for part in ("det", "cls", "rec")}
    if not all(models.values()):
        return {}
    return {f"{part.capitalize()}.model_path": str(paths[-1]) for part, paths in models.items()}


@cache
def _load_rapidocr(models: tuple[tuple[str, str], ...]) -> Any:
    import logging

    from rapidocr import RapidOCR

    reader = RapidOCR(params={"Global.log_level": "critical", "Global.text_score": _MIN_CONFIDENCE, **dict(models)})
    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    return reader


def _read_rapidocr(models: dict[str, str], page: Any) -> Blocks:
    pixmap = _pixmap(page)
    pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)
    picture = pixels[:, : 3 * pixmap.width].reshape(pixmap.height, pixmap.width, 3)
    read = _load_rapidocr(tuple(models.items()))(np.ascontiguousarray(picture[:, :, ::-1]))  # RGB to BGR
    if read.boxes is None:
        return []
    scale = page.rect.width / pixmap.width
    lines = []
    for corners, text in zip(read.boxes, read.txts, strict=True):
        (x0, y0), (x1, y1) = np.min(corners, axis=0) * scale, np.max(corners, axis=0) * scale
        lines.append(Box(float(x0), float(y0), float(x1), float(y1), text, bool(x1 - x0 >= y1 - y0)))
    return paragraphs(lines)


def paragraphs(lines: Sequence[Box]) -> Blocks:
    """Group lines, given from top to bottom, into paragraphs: each joins the one that ends right above it."""
    grouped: Blocks = []
    for line in lines:
        height = line.y1 - line.y0
        above = (
            block
            for block in reversed(grouped)
            if -0.5 * height < line.y0 - block[-1].y1 < _MAX_LEADING * height
            and min(line.x1, block[-1].x1) > max(line.x0, block[-1].x0)
        )
        block = next(above, None)
        if block is None:
            grouped.append([line])
        else:
            block.append(line)
    return grouped
