"""A PDF file to its pages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from folio.errors import PaperError
from folio.frontmatter import FirstPageLine, FrontMatter, arxiv_id, front_matter
from folio.hidden import Picture, Rect, Span, hidden, summary
from folio.layout import Box, page_text
from folio.mupdf import pymupdf
from folio.types import Page, ParsedPdf

# Goes into the store's fingerprint: a change in what is read from the same file raises it.
VERSION = 2

# Where a PDF's header must stand, in bytes from the beginning. Readers allow junk in front of it.
_HEADER_WITHIN = 1024
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# A page with an image on it and fewer letters and digits than this is a picture of a page: scanners leave stray marks.
_STRAY_CHARACTERS = 16
# Type smaller than this share of its line's largest marks a footnote or an affiliation.
_SUPERSCRIPT = 0.8
# Pages are drawn to see what a reader sees: at most so many pixels of one, of which each takes three bytes, and the
# looking for unseen text may take so long of one file, so that slow ones stay far from PARSE_TIMEOUT_S.
_MAX_PIXELS = 4_000_000
_LOOKING_S = 40.0
# MuPDF cannot be stopped while it draws. A page whose text takes this long to read has thousands of things on it, and
# is drawn strip by strip: first a share so small, then each time as much as there is, while time is left for that.
# So is one whose first, blurred picture took half of the other time.
_BUSY_S, _SLOW_S, _FIRST_STRIP = 0.05, 1.0, 1 / 64

_DAMAGED = "open it in a PDF reader and save or print it to a new PDF, or fetch the file again"


def read_pdf(path: Path, max_chars: int = 20_000_000) -> ParsedPdf:
    """The pages of a PDF in reading order, with its title, authors and year where it tells them.

    Pages that cannot be read stay in the list, without text and with the problem named, so that numbers stay true.

    Raises PaperError for a file that is empty, no PDF, locked by a password, damaged beyond reading, without any text
    (scanned), or with more than max_chars characters of it.
    """
    _check_header(path)
    mupdf = pymupdf()
    try:
        document = mupdf.open(path, filetype="pdf")
    except MemoryError:
        raise
    except Exception as error:  # MuPDF raises many kinds; each means that the file is broken
        raise PaperError("The file is damaged or cut short: no page of it can be read.", _sentence(_DAMAGED)) from error
    try:
        if document.needs_pass and not document.authenticate(""):
            raise PaperError("The file is encrypted and needs a password.", "Save it without a password.")
        return _read(document, max_chars)
    finally:
        document.close()
        # MuPDF keeps every warning until it is asked for them.
        mupdf.TOOLS.reset_mupdf_warnings()


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _check_header(path: Path) -> None:
    """Raises PaperError for a file that is no PDF. MuPDF would open text, HTML and images as well."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_WITHIN)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise PaperError(f"The file cannot be opened: {reason}.", "Check that it is there and may be read.") from error
    if not head:
        raise PaperError("The file is empty (0 bytes).", "Fetch it again.")
    if head.startswith(_LFS_POINTER):
        raise PaperError(
            "The file is a Git LFS pointer, not the PDF itself.", "Run `git lfs pull` where it comes from."
        )
    if b"%PDF-" not in head:
        raise PaperError("The file is not a PDF.", "Put the PDF itself in the folder, or take this file out of it.")


def _read(document: Any, max_chars: int) -> ParsedPdf:
    try:
        count = len(document)
    except MemoryError:
        raise
    except Exception:  # as above: a broken page tree
        count = 0
    labels = _labels(document, count)
    pages: list[Page] = []
    clock = _Clock()
    first = FrontMatter("", (), None)
    characters = images = failed = 0
    unseen, margin = "", list[str]()
    for index in range(count):
        text, problem = "", ""
        try:
            page = document.load_page(index)
            if page.rotation:
                page.set_rotation(0)  # text comes unturned, and so must the picture of the page
            blocks, problem = _seen_text(page, clock)
            unseen = unseen or (problem and f"p. {index + 1}: {problem}")
            text = _readable(_page_text(blocks))
            if index == 0:
                margin = _upright(blocks)
                first = front_matter(_metadata(document), partial(_first_page_lines, blocks), text)
            if _is_nearly_empty(text):
                has_image = bool(_images(page))
                images += has_image
                if not text:
                    empty = "no text (image only)" if has_image else "no text"
                    problem = f"{empty}; {problem}" if problem else empty
        except MemoryError:
            raise
        except Exception as error:  # one bad page must not cost the others
            failed += 1
            problem = f"cannot be read: {_reason(error)}"
        characters += len(text)
        if characters > max_chars:
            raise PaperError(
                f"The file holds more than {max_chars:,} characters of text.", "Split it into smaller PDFs."
            )
        pages.append(Page(index + 1, labels[index], text, problem))
    _check_text(pages, images, failed, unseen)
    if not first.year and not first.title:  # the first page was unreadable
        first = front_matter(_metadata(document), tuple, "")
    problems = ["the file is damaged and was repaired while reading"] if document.is_repaired else []
    if clock.gave_up or clock.is_late():
        problems.append("its pages take long to draw: not all of them were searched for text that no reader can see")
    arxiv = arxiv_id(_metadata(document), margin, document.name)
    return ParsedPdf(tuple(pages), *first, tuple(problems), arxiv)


def _check_text(pages: Sequence[Page], images: int, failed: int, unseen: str) -> None:
    """Raises PaperError if there is nothing to index, by the reason that most likely holds.

    images is the number of pages with a picture and next to no text, failed that of pages that could not be read.
    unseen says what was left out first, since no reader can see it, "" for nothing.
    """
    if failed == len(pages):
        raise PaperError("The file is damaged or cut short: no page of it can be read.", _sentence(_DAMAGED))
    with_text = sum(bool(page.text) for page in pages)
    worth_reading = sum(not _is_nearly_empty(page.text) for page in pages)
    if images and not worth_reading and with_text <= images:
        raise PaperError(
            "The file is scanned: no text layer.",
            "Run OCR, for example `ocrmypdf in.pdf out.pdf`, and put the result in the folder.",
        )
    if not with_text:
        raise PaperError(
            f"The file has no text that a reader can see; {unseen}." if unseen else "The file has no text on any page.",
            "If its pages show text, run OCR, for example `ocrmypdf --force-ocr in.pdf out.pdf`; else leave it out.",
        )


class _Clock:
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


def _images(page: Any) -> list[Rect]:
    blocks = page.get_textpage(flags=pymupdf().TEXT_PRESERVE_IMAGES).extractBLOCKS()
    return [tuple(block[:4]) for block in blocks if block[6] == 1]


def _seen_text(page: Any, clock: _Clock) -> tuple[list[dict[str, Any]], str]:
    """The blocks of a page as MuPDF gives them, without text that no reader can see; and what is to be said of that."""
    started = time.monotonic()
    blocks = page.get_textpage(flags=pymupdf().TEXTFLAGS_TEXT).extractDICT()["blocks"]
    spans = [span for line in _lines(blocks) for span in line["spans"]]
    clock.begin(time.monotonic() - started > _BUSY_S)
    draw, images = partial(_draw, page, clock), partial(_images, page)
    try:
        found = hidden([_span(span) for span in spans], draw, images, clock.is_late)
    finally:
        clock.end()
    if not found:
        return blocks, ""
    unseen = {id(spans[place]) for place in found}
    left_out = ["".join(s["text"] for s in line["spans"] if id(s) in unseen) for line in _lines(blocks)]
    for line in _lines(blocks):
        line["spans"] = [span for span in line["spans"] if id(span) not in unseen]
    return blocks, summary(left_out, "".join(_text(line) for line in _lines(blocks)), found.values())


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


def _draw(page: Any, clock: _Clock, scale: float, part: Rect | None = None) -> Picture | None:
    """A page or a part of it; None where that fails or takes too long. See folio.hidden.View."""
    mupdf = pymupdf()
    try:
        area = mupdf.Rect(part or page.rect) & page.rect
        scale = min(scale, (_MAX_PIXELS / abs(area)) ** 0.5)
        whole = (area * mupdf.Matrix(scale, scale)).round()
        rows = max(1, int(whole.height * _FIRST_STRIP)) if clock.is_busy else whole.height
        strips: list[Any] = []
        top, needed = whole.y0, 0.0
        while top < whole.y1:
            if clock.is_late(needed):
                clock.gave_up = True
                return None
            started = time.monotonic()
            strip = mupdf.IRect(whole.x0, top, whole.x1, min(top + rows, whole.y1))
            strips.append(_pixels(page, scale, strip))
            top, rows = strip.y1, strip.y1 - whole.y0
            needed = 2 * (time.monotonic() - started)
        clock.is_busy = clock.is_busy or needed > _SLOW_S  # for the next look, which is sharper
        return Picture(np.concatenate(strips), scale, (whole.x0 / scale, whole.y0 / scale))
    except Exception:  # MemoryError too: the text was read, and a picture must not cost it
        return None


def _pixels(page: Any, scale: float, strip: Any) -> Any:
    mupdf = pymupdf()
    how = mupdf.Matrix(scale, scale)
    pixmap = page.get_pixmap(matrix=how, colorspace=mupdf.csRGB, alpha=False, clip=mupdf.Rect(strip) * ~how)
    pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)
    return pixels[:, : 3 * pixmap.width].reshape(pixmap.height, pixmap.width, 3)


def _lines(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        yield from block.get("lines", ())


def _text(line: Mapping[str, Any]) -> str:
    return "".join(span["text"] for span in line["spans"])


def _page_text(blocks: Sequence[Mapping[str, Any]]) -> str:
    return page_text(
        [Box._make((*line["bbox"], _text(line), abs(line["dir"][0]) > 0.9)) for line in block.get("lines", ())]
        for block in blocks
    )


def _readable(text: str) -> str:
    """The text, or "" where its fonts map every glyph to a control or private character."""
    return text if any(character.isprintable() and not character.isspace() for character in text) else ""


def _first_page_lines(blocks: Sequence[Mapping[str, Any]]) -> list[FirstPageLine]:
    lines: list[FirstPageLine] = []
    for line in _lines(blocks):
        spans = [span for span in line["spans"] if span["text"].strip()]
        # Text that runs up the margin is a stamp, often in larger type than the title.
        if not spans or line["dir"][0] < 0.9:
            continue
        size = max(span["size"] for span in spans)
        names = " ".join(span["text"] for span in spans if span["size"] >= _SUPERSCRIPT * size and _is_level(span))
        lines.append(FirstPageLine(line["bbox"][1], line["bbox"][3], size, _text(line), names))
    return lines


def _upright(blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The text of each block that runs up or down the page."""
    found = [[_text(line) for line in block.get("lines", ()) if abs(line["dir"][0]) < 0.1] for block in blocks]
    return [" ".join(texts).strip() for texts in found if texts]


def _is_level(span: Mapping[str, Any]) -> bool:
    """Whether a span stands on its line, and not above it."""
    return not span["flags"] & pymupdf().TEXT_FONT_SUPERSCRIPT


def _is_nearly_empty(text: str) -> bool:
    # A look at the beginning is enough: long texts have letters there.
    return sum(character.isalnum() for character in text[: 4 * _STRAY_CHARACTERS]) < _STRAY_CHARACTERS


def _metadata(document: Any) -> dict[str, str]:
    try:
        return {key: value for key, value in (document.metadata or {}).items() if isinstance(value, str)}
    except MemoryError:
        raise
    except Exception:  # broken metadata is no reason to refuse the text
        return {}


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:100] or type(error).__name__


def _labels(document: Any, count: int) -> list[str]:
    """The printed label of each page, "" where the file states none."""
    try:
        rules = sorted(document.get_page_labels(), key=lambda rule: rule["startpage"])
    except MemoryError:
        raise
    except Exception:  # broken labels are as good as none
        return [""] * count
    labels = [""] * count
    for number, rule in enumerate(rules):
        end = rules[number + 1]["startpage"] if number + 1 < len(rules) else count
        for index in range(max(0, rule["startpage"]), min(end, count)):
            value = rule.get("firstpagenum", 1) + index - rule["startpage"]
            labels[index] = rule.get("prefix", "") + _numeral(value, rule.get("style", ""))
    return labels


def _numeral(value: int, style: str) -> str:
    """A page number in a style of PDF's page labels (ISO 32000-1, 12.4.2): D, R, r, A, a, or none."""
    if style == "D":
        return str(value)
    if not style or not 0 < value < 4000:
        return ""
    if style in "Aa":
        # z is followed by aa, then bb.
        text = chr(ord("A") + (value - 1) % 26) * ((value - 1) // 26 + 1)
    else:
        text = ""
        for size, sign in zip(
            (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
            ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
            strict=True,
        ):
            text += sign * (value // size)
            value %= size
    return text.lower() if style in "ra" else text
