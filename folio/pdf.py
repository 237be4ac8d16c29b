"""A PDF file to its pages. The only room that knows PyMuPDF."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from folio.errors import PaperError
from folio.frontmatter import FirstPageLine, FrontMatter, front_matter
from folio.layout import Box, page_text
from folio.types import Page, ParsedPdf

# Goes into the store's fingerprint: a change in what is read from the same file raises it.
VERSION = 1

# Where a PDF's header must stand, in bytes from the beginning. Readers allow junk in front of it.
_HEADER_WITHIN = 1024
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# A page with an image on it and fewer letters and digits than this is a picture of a page: scanners leave stray marks.
_STRAY_CHARACTERS = 16
# Type smaller than this share of its line's largest marks a footnote or an affiliation.
_SUPERSCRIPT = 0.8

_DAMAGED = "open it in a PDF reader and save or print it to a new PDF, or fetch the file again"


def read_pdf(path: Path, max_chars: int = 20_000_000) -> ParsedPdf:
    """The pages of a PDF in reading order, with its title, authors and year where it tells them.

    Pages that cannot be read stay in the list, without text and with the problem named, so that numbers stay true.

    Raises PaperError for a file that is empty, no PDF, locked by a password, damaged beyond reading, without any text
    (scanned), or with more than max_chars characters of it.
    """
    _check_header(path)
    pymupdf = _pymupdf()
    try:
        document = pymupdf.open(path, filetype="pdf")
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
        pymupdf.TOOLS.reset_mupdf_warnings()


@cache
def _pymupdf() -> Any:
    """PyMuPDF, told to keep MuPDF's messages to itself. Imported when needed: it takes 0.2 s."""
    # Its import tries to load the models of its layout analyser, which nothing here uses: another 0.5 s and 270 MB of
    # address space in every worker. None in sys.modules makes an import fail, and this one is allowed to.
    modules: dict[str, Any] = sys.modules
    modules.setdefault("pymupdf.layout", None)
    try:
        import pymupdf
    finally:
        if modules["pymupdf.layout"] is None:
            del modules["pymupdf.layout"]
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    return pymupdf


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
    first = FrontMatter("", (), None)
    characters = images = failed = 0
    for index in range(count):
        text, problem = "", ""
        try:
            page = document.load_page(index)
            textpage = page.get_textpage(flags=_pymupdf().TEXTFLAGS_TEXT)
            text = _readable(_page_text(textpage))
            if index == 0:
                first = front_matter(_metadata(document), partial(_first_page_lines, textpage), text)
            if _is_nearly_empty(text):
                has_image = _has_image(page)
                images += has_image
                if not text:
                    problem = "no text (image only)" if has_image else "no text"
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
    _check_text(pages, images, failed)
    if not first.year and not first.title:  # the first page was unreadable
        first = front_matter(_metadata(document), tuple, "")
    problems = ("the file is damaged and was repaired while reading",) if document.is_repaired else ()
    return ParsedPdf(tuple(pages), *first, problems)


def _check_text(pages: Sequence[Page], images: int, failed: int) -> None:
    """Raises PaperError if there is nothing to index, by the reason that most likely holds.

    images is the number of pages with a picture and next to no text, failed that of pages that could not be read.
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
            "The file has no text on any page.",
            "If its pages show text, run OCR, for example `ocrmypdf --force-ocr in.pdf out.pdf`; else leave it out.",
        )


def _page_text(textpage: Any) -> str:
    def lines() -> list[Box]:
        return [
            Box._make((*line["bbox"], "".join(span["text"] for span in line["spans"])))
            for block in textpage.extractDICT()["blocks"]
            for line in block.get("lines", ())
        ]

    return page_text([Box._make(block[:5]) for block in textpage.extractBLOCKS()], lines)


def _readable(text: str) -> str:
    """The text, or "" where its fonts map every glyph to a control or private character."""
    return text if any(character.isprintable() and not character.isspace() for character in text) else ""


def _first_page_lines(textpage: Any) -> list[FirstPageLine]:
    lines: list[FirstPageLine] = []
    for block in textpage.extractDICT()["blocks"]:
        for line in block.get("lines", ()):
            spans = [span for span in line["spans"] if span["text"].strip()]
            # Text that runs up the margin is a stamp, often in larger type than the title.
            if not spans or line["dir"][0] < 0.9:
                continue
            size = max(span["size"] for span in spans)
            text = "".join(span["text"] for span in line["spans"])
            names = " ".join(span["text"] for span in spans if span["size"] >= _SUPERSCRIPT * size and _is_level(span))
            lines.append(FirstPageLine(line["bbox"][1], line["bbox"][3], size, text, names))
    return lines


def _is_level(span: Mapping[str, Any]) -> bool:
    """Whether a span stands on its line, and not above it."""
    return not span["flags"] & _pymupdf().TEXT_FONT_SUPERSCRIPT


def _is_nearly_empty(text: str) -> bool:
    # A look at the beginning is enough: long texts have letters there.
    return sum(character.isalnum() for character in text[: 4 * _STRAY_CHARACTERS]) < _STRAY_CHARACTERS


def _has_image(page: Any) -> bool:
    textpage = page.get_textpage(flags=_pymupdf().TEXT_PRESERVE_IMAGES)
    return any(block[6] == 1 for block in textpage.extractBLOCKS())


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
