"""Reads a PDF file: the text of its pages, its metadata, and what is wrong with it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from folio.errors import PaperError, PaperLimit
from folio.files import open_regular
from folio.pdf import layout_model, limits, ocr
from folio.pdf.front_matter import ParsedPaper
from folio.pdf.heading_lines import HeadingCollector
from folio.pdf.metadata import PageText, read_front_matter
from folio.pdf.mupdf import open_pdf, pymupdf, unlock
from folio.pdf.page_labels import page_labels
from folio.pdf.reading_order import Box, page_text
from folio.pdf.visible_text import SearchWork, VisibleText, images, line_text, visible_text
from folio.types import Page
from folio.workers import cpu_time_apart

# Problems of pages that a later ingest may read better.
NOT_READ, NO_TIME = "no text (image only)", "no time was left"
NOT_CHECKED = "not checked for hidden text"
# What is said of a file whose bytes are not those that were hashed
CHANGED = ("The file changed while it was being read.", "Run the command again.")

# A PDF's header must be within this many bytes of the start. Readers allow junk before it.
_HEADER_WITHIN = 1024
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# A page with an image and fewer letters and digits than this is a scan: scanners leave stray marks.
_STRAY_CHARACTERS = 16
# Seconds that a page counts as; on one core, a dense page takes OCR one to three and the layout model about a half.
_OCR_PAGE_S, _LAYOUT_PAGE_S = 1.5, 0.5
_DAMAGED = "open it in a PDF reader and save or print it to a new PDF, or download the file again"


def read_pdf(
    path: Path,
    max_chars: int = limits.TEXT_CHARACTERS,
    *,
    layout: bool = False,
    ocr: bool = False,
    seconds: float = math.inf,
) -> ParsedPaper:
    """read_content on the bytes of a file. Raises PaperError also if it cannot be opened, or is a pipe or a device."""
    return read_content(read_file(path), path.name, max_chars, layout=layout, ocr=ocr, seconds=seconds)


def read_file(path: Path, max_mb: float = math.inf) -> bytes:
    """The bytes of a regular file, read once. Raises PaperLimit, also for more than max_mb megabytes."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            # One byte more shows a file that grew.
            content = b"" if size > max_mb * 1e6 else file.read(size + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        # It was readable when it was hashed, so this says nothing about its content: it is tried again next time.
        raise PaperLimit(f"The file cannot be opened: {reason}.", "Check that it exists and is readable.") from error
    if size > max_mb * 1e6:
        raise PaperLimit(
            f"The file has {size / 1e6:,.0f} MB, and MAX_FILE_MB is {max_mb:g}.",
            "Split the file, or raise MAX_FILE_MB if you trust it.",
        )
    if len(content) != size:
        raise PaperLimit(*CHANGED)
    return content


def read_content(
    content: bytes,
    name: str,
    max_chars: int = limits.TEXT_CHARACTERS,
    *,
    layout: bool = False,
    ocr: bool = False,
    seconds: float = math.inf,
) -> ParsedPaper:
    """The pages of a PDF in reading order, with its front matter.

    content: the bytes of the file. name: its name, which may be an arXiv identifier.

    Pages that cannot be read stay in the list, without text and with the problem, so that page numbers stay right.
    layout: mark headings and write tables in Markdown. ocr: read scanned pages, if an engine is installed. seconds:
    the work that these two may do, see _WorkBudget; pages that they do not reach are read without them, and say so.

    Raises PaperError if the file is empty, not a PDF, locked by a password, unreadable, without text (scanned), or has
    more than max_chars characters or too many pages; PaperLimit if OCR, or more work for it, may help.
    """
    _check_header(content[:_HEADER_WITHIN])
    mupdf = pymupdf()
    try:
        document = open_pdf(content)
    except MemoryError:
        raise
    except Exception as error:  # MuPDF raises many kinds; each means that the file is broken
        raise PaperError("The file is damaged or cut short: no page of it can be read.", _sentence(_DAMAGED)) from error
    try:
        if not unlock(document):
            raise PaperError("The file is encrypted and needs a password.", "Save it without a password.")
        return _read(_Reader(document, name, layout, ocr, seconds), max_chars)
    finally:
        document.close()
        # MuPDF keeps every warning until they are reset.
        mupdf.TOOLS.reset_mupdf_warnings()


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _check_header(head: bytes) -> None:
    """Raises PaperError if a file that begins like this is not a PDF. MuPDF would open text, HTML and images too."""
    if not head:
        raise PaperError("The file is empty (0 bytes).", "Download it again.")
    if head.startswith(_LFS_POINTER):
        raise PaperError("The file is a Git LFS pointer, not the PDF itself.", "Run `git lfs pull` in its repository.")
    if b"%PDF-" not in head:
        raise PaperError("The file is not a PDF.", "Replace it with the PDF, or move it out of the folder.")


class _WorkBudget:
    """The work that the layout model and OCR may do on one file, in seconds that their pages take on an ordinary core.

    Pages are counted and not timed, so that the same pages are read on every computer, whatever else it is doing.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def take(self, cost: float) -> bool:
        """Whether a page that costs this many seconds may be read; if so, its cost is taken."""
        if cost > self._left:
            return False
        self._left -= cost
        return True


class _Reader:
    """Reads the pages of one document in turn, and collects the problems of the whole file."""

    def __init__(self, document: Any, name: str, layout: bool, ocr: bool, seconds: float) -> None:
        self.document, self.name = document, name
        self.layout, self.ocr = layout, ocr
        self.model_work = _WorkBudget(seconds)
        self.search_work = SearchWork()
        self.front_pages: list[PageText] = []
        self.headings = HeadingCollector()
        self.margin: list[str] = []
        self.images = 0  # pages with an image and hardly any text
        self.hidden = ""  # the first message about hidden text
        self.no_engine = self.no_time = self.unchecked = False

    def read_page(self, index: int) -> tuple[str, str]:
        """The text of page `index` (from 0) and its problem, or ""."""
        page = self.document.load_page(index)
        rotation = page.rotation
        if rotation:
            page.set_rotation(0)  # text comes unrotated, so the picture of the page must be too
        visible = visible_text(page, self.search_work)
        self.hidden = self.hidden or (visible.problem and f"p. {index + 1}: {visible.problem}")
        self.unchecked = self.unchecked or not visible.checked
        self.headings.add_page(index + 1, visible.blocks)
        blocks = _boxes(visible.blocks)
        text, problem = _readable(page_text(blocks)), ""
        if index == 0:
            self.margin = _vertical_texts(visible.blocks)
        if index < limits.FRONT_PAGES:
            self.front_pages.append(PageText(visible.blocks, page.rect.width, page.rect.height, text))
        if _is_nearly_empty(text):
            if has_image := bool(images(page)):
                self.images += 1
                text, problem = self._by_ocr(page, rotation, text)
            if not text and not problem:
                problem = NOT_READ if has_image else "no text"
        elif self.layout and not rotation:  # the model would see the text of a rotated page sideways
            text, problem = self._by_layout(page, index, visible, blocks, text)
        unchecked = "" if visible.checked else NOT_CHECKED
        return text, "; ".join(filter(None, (problem, visible.problem, unchecked)))

    def _by_ocr(self, page: Any, rotation: int, text: str) -> tuple[str, str]:
        """The text of a scanned page and its problem. text: the text in the file."""
        if not self.ocr:
            return text, ""
        engine = ocr.engine()
        if engine is None:
            self.no_engine = True
            return text, ""
        if not self.model_work.take(_OCR_PAGE_S):
            self.no_time = True
            return text, f"{NOT_READ}, and {NO_TIME} for OCR"
        try:
            page.set_rotation(rotation)
            with cpu_time_apart():
                blocks = engine.read(page)
        except MemoryError:
            raise
        except Exception as error:  # one bad page must not stop the others
            return text, f"{NOT_READ}, and {engine.name} failed: {_reason(error)}"
        read = page_text(blocks)
        if not ocr.is_text(read):
            return text, "" if text else f"no text (image only, in which {engine.name} finds none)"
        return read, f"read by OCR ({engine.name})"

    def _by_layout(
        self, page: Any, index: int, visible: VisibleText, blocks: Sequence[Sequence[Box]], text: str
    ) -> tuple[str, str]:
        """The text of a page by its regions, and its problem. text: from the fast parser, used if the model fails."""
        if not self.model_work.take(_LAYOUT_PAGE_S):
            self.no_time = True
            return text, f"read without its layout: {NO_TIME}"
        try:
            with cpu_time_apart():
                found = layout_model.find_regions(self.document, index)
            return layout_model.page_text_by_region(found, blocks, partial(_letters, page, visible)), ""
        except MemoryError:
            raise
        except Exception as error:  # the model failed, but the text was read
            return text, f"read without its layout: {_reason(error)}"

    def problems(self) -> Iterator[str]:
        """The problems of the whole file."""
        if self.document.is_repaired:
            yield "the file is damaged and was repaired while reading"
        if self.unchecked:
            yield "its pages are slow to draw, so not all of them were searched for hidden text"
        if self.no_engine:
            yield f"to read its pages without text, {ocr.HOW_TO_INSTALL}, then run `python ingest.py` with its path"
        if self.no_time:
            yield "to read all of its pages, raise PARSE_TIMEOUT_S, then run `python ingest.py` with its path"


def _read(reader: _Reader, max_chars: int) -> ParsedPaper:
    document = reader.document
    try:
        length = len(document)
    except MemoryError:
        raise
    except Exception:  # a broken page tree
        length = 0
    if length > limits.PAGES:
        raise PaperError(f"The file has {length:,} pages; at most {limits.PAGES:,} are read.", "Split it.")
    labels = page_labels(document, length)
    pages: list[Page] = []
    characters = failed = 0
    for index in range(length):
        text = ""
        try:
            text, problem = reader.read_page(index)
        except MemoryError:
            raise
        except Exception as error:  # one bad page must not stop the others
            failed += 1
            problem = f"cannot be read: {_reason(error)}"
        characters += len(text)
        if characters > max_chars:
            raise PaperError(
                f"The file holds more than {max_chars:,} characters of text.", "Split it into smaller PDFs."
            )
        pages.append(Page(index + 1, labels[index], text, problem))
    _check_text(pages, reader, failed)
    metadata = {**_metadata(document), "xmp": _xmp(document)}
    front = read_front_matter(metadata, reader.front_pages, reader.margin, reader.name, _end(pages))
    return ParsedPaper(
        tuple(pages),
        front.title.value,
        tuple(map(str, front.authors.value)),
        front.year.value,
        tuple(reader.problems()),
        front.arxiv.value,
        reader.headings.collected(document),
        front,
    )


def _check_text(pages: Sequence[Page], reader: _Reader, failed: int) -> None:
    """Raises PaperError with the most likely reason if there is nothing to index.

    failed: how many pages could not be read.
    """
    if failed == len(pages):
        raise PaperError("The file is damaged or cut short: no page of it can be read.", _sentence(_DAMAGED))
    with_text = sum(bool(page.text) for page in pages)
    worth_reading = sum(not _is_nearly_empty(page.text) for page in pages)
    if reader.images and not worth_reading and with_text <= reader.images:
        raise _scanned(reader)
    if not with_text:
        all_hidden = f"The file has no visible text; {reader.hidden}."
        raise PaperError(
            all_hidden if reader.hidden else "The file has no text on any page.",
            "If its pages show text, run OCR, for example `ocrmypdf --force-ocr in.pdf out.pdf`; or leave it out.",
        )


def _scanned(reader: _Reader) -> PaperError:
    """The error for a scanned file: PaperLimit if a later ingest may read it."""
    happened, command = "The file is scanned: no text layer", "`ocrmypdf in.pdf out.pdf`"
    if not reader.ocr:
        remedy = f"Set OCR=auto, or run OCR, for example {command}, and put the result in the folder."
        return PaperLimit(f"{happened}.", remedy)
    if reader.no_engine:
        remedy = f"{_sentence(ocr.HOW_TO_INSTALL)[:-1]}, and run `python ingest.py` again; or run {command}."
        return PaperLimit(f"{happened}, and no OCR engine is installed.", remedy)
    if reader.no_time:
        return PaperLimit(f"{happened}, and {NO_TIME} for OCR.", f"Raise PARSE_TIMEOUT_S, or run {command}.")
    remedy = f"Try another OCR engine, for example {command}, and put the result in the folder; or leave it out."
    return PaperError(f"{happened}, and OCR finds no text in it.", remedy)


def _boxes(blocks: Sequence[Mapping[str, Any]]) -> list[list[Box]]:
    """The lines of each block."""
    return [
        [Box._make((*line["bbox"], line_text(line), abs(line["dir"][0]) > 0.9)) for line in block.get("lines", ())]
        for block in blocks
    ]


def _letters(page: Any, visible: VisibleText) -> list[list[list[layout_model.Letter]]]:
    """The visible letters of each line of each block, in the order of visible.blocks."""
    spans = count()
    return [
        [
            [
                layout_model.Letter(
                    letter["c"], (letter["bbox"][0] + letter["bbox"][2]) / 2, sum(letter["bbox"][1::2]) / 2
                )
                for span in line["spans"]
                if next(spans) not in visible.hidden
                for letter in span["chars"]
            ]
            for line in block.get("lines", ())
        ]
        for block in page.get_textpage(flags=pymupdf().TEXTFLAGS_TEXT).extractRAWDICT()["blocks"]
    ]


def _readable(text: str) -> str:
    """The text, or "" if it has neither letters nor digits: dots alone, or glyphs mapped to control characters."""
    return text if any(map(str.isalnum, text)) else ""


def _end(pages: Sequence[Page]) -> str:
    """The end of the text, where the references are; no more of it than is searched."""
    texts: list[str] = []
    left = limits.CITED_WITHIN
    for page in reversed(pages):
        texts.append(page.text[-left:])
        left -= len(texts[-1])
        if left <= 0:
            break
    return "\n".join(reversed(texts))


def _vertical_texts(blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The text of each block that runs up or down the page."""
    found = [[line_text(line) for line in block.get("lines", ()) if abs(line["dir"][0]) < 0.1] for block in blocks]
    return [" ".join(texts).strip() for texts in found if texts]


def _is_nearly_empty(text: str) -> bool:
    # The beginning is enough: long texts have letters there.
    return sum(character.isalnum() for character in text[: 4 * _STRAY_CHARACTERS]) < _STRAY_CHARACTERS


def _metadata(document: Any) -> dict[str, str]:
    try:
        found = {key: value for key, value in (document.metadata or {}).items() if isinstance(value, str)}
        return {key: value for key, value in found.items() if len(value) <= limits.METADATA}
    except MemoryError:
        raise
    except Exception:  # the text can be read without metadata
        return {}


def _xmp(document: Any) -> str:
    try:
        packet = document.get_xml_metadata()
        return packet if isinstance(packet, str) and len(packet) <= limits.METADATA else ""
    except MemoryError:
        raise
    except Exception:
        return ""


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__
