"""The lines of a front page by their layout: where each stands, in which type, and which continue another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import median_low
from typing import Any, NamedTuple

from folio.pdf import limits
from folio.pdf.accents import compose_accents
from folio.pdf.names import MARK, join_lines, names_in, without_contact
from folio.text import one_line

# Type smaller than this share of its line's largest marks a footnote or an affiliation.
_SUPERSCRIPT = 0.8
# PyMuPDF's flags of a span: TEXT_FONT_SUPERSCRIPT and TEXT_FONT_BOLD
_RAISED, _BOLD = 1, 16
_ONE_INITIAL = re.compile(r"[^\W\d_a-z]\.")
_LIGATURES = str.maketrans({"ﬁ": "fi", "ﬂ": "fl", "ﬀ": "ff", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "ft", "ﬆ": "st"})

_PUNCTUATION = frozenset(".,;:-–—'’‘\"()")
_CONTINUES = re.compile(rf"^[{MARK}\s]*(?:[,;·•]|(?:and|&)\s)")
# A title begins in this share of the page from its top.
TITLE_ABOVE = 0.65
_SPARSE_PAGE = 1500  # characters: a page with fewer is a cover, and has no body to compare sizes with


class Line(NamedTuple):
    """A piece of a line without wide gaps. Coordinates are in points from the top left of the page."""

    x0: float
    top: float
    x1: float
    bottom: float
    size: float  # of most of its letters, in points
    bold: bool
    font: str
    text: str
    name_text: str  # the text with MARK in the place of superscripts


class FrontPage(NamedTuple):
    """The lines of a page from top to bottom, those of one row from left to right, and the size of the page."""

    lines: tuple[Line, ...]
    width: float
    height: float
    common: frozenset[str] = frozenset()  # the words that the paper writes small

    def is_wording(self, text: str) -> bool:
        """Whether a text consists of words that the paper uses in its sentences, as a title does."""
        words = re.findall(r"[^\W\d_]{3,}", text)
        return 2 * sum(word.casefold() in self.common for word in words) >= len(words) > 0

    def names(self, *lines: Line) -> list[str]:
        """The names in lines of authors that follow each other; [] if they are something else."""
        text = join_lines([line.name_text for line in lines]) if len(lines) > 1 else lines[0].name_text
        return names_in(text, self.common)


def front_page(blocks: Sequence[Mapping[str, Any]], width: float, height: float) -> FrontPage:
    """The page of MuPDF's blocks. Leaves out text that does not run from left to right, such as stamps."""
    level = (line for block in blocks for line in block.get("lines", ()) if line["dir"][0] > 0.9)
    # Below the title and the authors, only the text and its size are needed.
    lines = [
        _line(spans, spans[0]["bbox"][1] < TITLE_ABOVE * height)
        for spans in islice(_joined(level), limits.FRONT_LINES)
    ]
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.top + line.bottom, line.x0)):
        middle = (line.top + line.bottom) / 2
        if rows and rows[-1][0].top < middle < rows[-1][0].bottom and line.size > 0.6 * rows[-1][0].size:
            rows[-1].append(line)
        else:
            rows.append([line])
    return FrontPage(
        tuple(line for row in rows for line in _with_continuations(sorted(row))), max(width, 1.0), max(height, 1.0)
    )


def _with_continuations(row: Sequence[Line]) -> list[Line]:
    """The lines of a row. A line that begins with a comma or "and" joins the one before: an icon separates them."""
    merged: list[Line] = []
    for line in row:
        last = merged[-1] if merged else line
        if merged and _CONTINUES.match(line.name_text) and same_size(last, line) and line.x0 - last.x1 < 3 * last.size:
            text, name_text = f"{last.text} {line.text}", f"{last.name_text}{MARK}{line.name_text}"
            top, bottom = min(last.top, line.top), max(last.bottom, line.bottom)
            merged[-1] = last._replace(x1=line.x1, top=top, bottom=bottom, text=text, name_text=name_text)
        else:
            merged.append(line)
    return merged


def _joined(lines: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The spans of each line. Neighbouring pieces of one row without a wide gap count as one line."""
    spans: list[Mapping[str, Any]] = []
    for line in lines:
        with_text = [span for span in line["spans"] if span["text"]]
        if not any(span["text"].strip() for span in with_text):
            continue
        if spans and _continues(spans, with_text):
            spans.extend(with_text)
            continue
        if spans:
            yield spans
        spans = with_text
    if spans:
        yield spans


def _continues(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> bool:
    last, first = before[-1]["bbox"], after[0]["bbox"]
    size = max(before[-1]["size"], after[0]["size"])
    overlap = min(last[3], first[3]) - max(last[1], first[1])
    gap = first[0] - last[2]
    is_level = overlap > 0.4 * min(last[3] - last[1], first[3] - first[1])
    return bool(is_level and -0.3 * size < gap < 0.5 * size)


def _line(spans: Sequence[Mapping[str, Any]], in_detail: bool) -> Line:
    """The line of these spans. in_detail: whether to look for superscripts, accents and bold type."""
    x0, top, x1, bottom = spans[0]["bbox"]
    for span in spans[1:]:
        box = span["bbox"]
        x0, top, x1, bottom = min(x0, box[0]), min(top, box[1]), max(x1, box[2]), max(bottom, box[3])
    longest = max(spans, key=lambda span: len(span["text"])) if len(spans) > 1 else spans[0]
    plain = "".join(span["text"] for span in spans)
    if not in_detail:
        text = one_line(plain)
        return Line(x0, top, x1, bottom, round(longest["size"], 1), False, longest["font"], text, text)
    size = round(longest["size"], 1)
    if len(spans) > 1 and plain.upper() == plain:  # small capitals are drawn as capitals in a smaller size
        size = max((round(span["size"], 1) for span in spans if any(map(str.isalpha, span["text"]))), default=size)
    text, name_text, right = "", "", x0
    marked = False
    for span in spans:
        gap = "   " if span["bbox"][0] - right > 1.2 * size else ""
        right = span["bbox"][2]
        printable = _printable(span["text"])
        text += gap + printable
        # The comma of "1,2" is raised with its numbers; elsewhere, OCR reports small commas.
        marked = _is_mark(span, size, plain) and (marked or not _PUNCTUATION.issuperset(printable.strip()))
        name_text += gap + (MARK if marked and printable.strip() else printable)
    bold = sum(len(span["text"]) for span in spans if span["flags"] & _BOLD or "bold" in span["font"].lower())
    text, name_text = compose_accents([text, without_contact(name_text)])
    return Line(x0, top, x1, bottom, size, 2 * bold > len(plain), longest["font"], one_line(text), name_text.strip())


def _printable(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = text.translate(_LIGATURES)
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _is_mark(span: Mapping[str, Any], size: float, text: str) -> bool:
    """Whether a span is a superscript, and not the small letters of small capitals."""
    if _ONE_INITIAL.fullmatch(span["text"].strip()):  # in scans, each word has a size of its own
        return False
    small = bool(span["size"] < _SUPERSCRIPT * size)
    is_raised = bool(span["flags"] & _RAISED) and bool(span["size"] < 0.95 * size)
    return is_raised or (
        small and not (text.upper() == text and span["text"].strip().isalpha() and len(span["text"].strip()) > 1)
    )


def body_size(page: FrontPage) -> float:
    """The type size of most of the page's text; 0 for a cover."""
    sizes = [line.size for line in page.lines for _ in range(0, len(line.text), 10)]
    return median_low(sizes) if sum(len(line.text) for line in page.lines) >= _SPARSE_PAGE else 0.0


def same_size(line: Line, other: Line, tolerance: float = 0.08) -> bool:
    return abs(line.size - other.size) <= tolerance * line.size
