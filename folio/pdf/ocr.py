"""A page without a text layer to lines of text: Tesseract through PyMuPDF, or RapidOCR, whichever is installed.

Nothing is downloaded: Tesseract's language files come with its package, RapidOCR's models lie in its wheel.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from folio.pdf.mupdf import pymupdf
from folio.pdf.reading_order import Box

HOW_TO_INSTALL = "install Tesseract (`apt install tesseract-ocr`, `brew install tesseract`) or `pip install rapidocr`"

# Both engines read ordinary print at this resolution as well as at 300 dpi, in two thirds of the time.
_DPI = 200
# At that resolution a page of A4 has 3.9 million pixels; one of a poster gets fewer to the inch.
_MAX_PIXELS = 12_000_000
_POINTS_PER_INCH = 72
# With more languages than this installed, as the packages of some systems bring them all, only the first is read.
_FEW_LANGUAGES = 3
# Pictures without writing give an engine specks of one or two letters. Longer words have so many letters at least.
_WORD, _LETTERS = re.compile(r"[^\W_]{3,}"), 16
# RapidOCR is asked to leave out a line that it is less sure of than this, of 1.
_SURE = 0.5
# Lines that are no farther apart than this share of a line's height are of one paragraph.
_LEADING = 0.8

Blocks = list[list[Box]]


class Engine(NamedTuple):
    """What reads pages, and the name by which people know it."""

    name: str
    read: Callable[[Any], Blocks]  # a page of PyMuPDF -> its lines by paragraph, placed on the page as it is shown


@cache
def engine() -> Engine | None:
    """The engine that is installed; None where there is none. Looked for once a process: Tesseract's takes 0.2 s."""
    languages = _tesseract_languages()
    if languages:
        return Engine("Tesseract", partial(_tesseract, *languages))
    models = _rapidocr_models()
    return Engine("RapidOCR", partial(_rapidocr, models)) if models else None


def is_writing(text: str) -> bool:
    """Whether what an engine read is writing, and not what it saw in a picture without any."""
    return sum(map(len, _WORD.findall(text))) >= _LETTERS


def _pixmap(page: Any) -> Any:
    """A page as it is shown, in colour."""
    mupdf = pymupdf()
    area = page.rect.width * page.rect.height / _POINTS_PER_INCH**2
    dpi = max(1, int(min(_DPI, (_MAX_PIXELS / area) ** 0.5)))
    return page.get_pixmap(dpi=dpi, colorspace=mupdf.csRGB, alpha=False)


# Tesseract


def _tesseract_languages() -> tuple[str, str] | None:
    """The folder of Tesseract's languages, and those to read with, as it names them: "eng+deu". None without any."""
    try:
        folder = Path(pymupdf().get_tessdata())
    except Exception:  # it is not installed, which it says by more than one kind of exception
        return None
    names = sorted(path.stem for path in folder.glob("*.traineddata") if path.stem != "osd")
    names.sort(key=lambda name: name != "eng")
    if not names:
        return None
    return str(folder), "+".join(names if len(names) <= _FEW_LANGUAGES else names[:1])


def _tesseract(folder: str, languages: str, page: Any) -> Blocks:
    mupdf = pymupdf()
    pixmap = _pixmap(page)
    with _nothing_said():
        read = mupdf.open("pdf", pixmap.pdfocr_tobytes(compress=False, language=languages, tessdata=folder))
    try:
        blocks = read[0].get_textpage(flags=mupdf.TEXTFLAGS_TEXT).extractDICT()["blocks"]
        scale = page.rect.width / read[0].rect.width
    finally:
        read.close()
    found: Blocks = []
    for block in blocks:
        lines = []
        for line in block.get("lines", ()):
            text = "".join(span["text"] for span in line["spans"])
            if any(map(str.isalnum, text)):
                x0, y0, x1, y1 = (scale * value for value in line["bbox"])
                lines.append(Box(x0, y0, x1, y1, text, abs(line["dir"][0]) > 0.9))
        found.append(lines)
    return found


@contextmanager
def _nothing_said() -> Iterator[None]:
    """Keeps what C code writes to standard error to itself: Tesseract's remarks on every speck of a scan."""
    sys.stderr.flush()
    kept = os.dup(2)
    silent = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(silent, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(silent)


# RapidOCR


def _rapidocr_models() -> dict[str, str]:
    """The paths of the models in RapidOCR's package by the settings that name them; {} where one is not there.

    They are named to it, as it would download what it does not find.
    """
    package = find_spec("rapidocr")
    if package is None or package.origin is None:
        return {}
    folder = Path(package.origin).parent / "models"
    found = {part: sorted(folder.glob(f"*_{part}_*.onnx")) for part in ("det", "cls", "rec")}
    if not all(found.values()):
        return {}
    return {f"{part.capitalize()}.model_path": str(paths[-1]) for part, paths in found.items()}


@cache
def _loaded(models: tuple[tuple[str, str], ...]) -> Any:
    import logging

    from rapidocr import RapidOCR

    reader = RapidOCR(params={"Global.log_level": "critical", "Global.text_score": _SURE, **dict(models)})
    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    return reader


def _rapidocr(models: dict[str, str], page: Any) -> Blocks:
    pixmap = _pixmap(page)
    pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)
    picture = pixels[:, : 3 * pixmap.width].reshape(pixmap.height, pixmap.width, 3)
    read = _loaded(tuple(models.items()))(np.ascontiguousarray(picture[:, :, ::-1]))  # it takes blue first
    if read.boxes is None:
        return []
    scale = page.rect.width / pixmap.width
    lines = []
    for corners, text in zip(read.boxes, read.txts, strict=True):
        (x0, y0), (x1, y1) = np.min(corners, axis=0) * scale, np.max(corners, axis=0) * scale
        lines.append(Box(float(x0), float(y0), float(x1), float(y1), text, bool(x1 - x0 >= y1 - y0)))
    return paragraphs(lines)


def paragraphs(lines: Sequence[Box]) -> Blocks:
    """Lines, from top to bottom, each put to the paragraph that ends right above it."""
    found: Blocks = []
    for line in lines:
        height = line.y1 - line.y0
        above = (
            block
            for block in reversed(found)
            if -0.5 * height < line.y0 - block[-1].y1 < _LEADING * height
            and min(line.x1, block[-1].x1) > max(line.x0, block[-1].x0)
        )
        block = next(above, None)
        if block is None:
            found.append([line])
        else:
            block.append(line)
    return found
