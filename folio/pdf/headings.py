"""Collects the lines of a PDF that may be headings, with their styles, the footnotes and the file's outline.

ingest/sections.py later decides from all pages which of the lines are headings. Everything is bounded (limits.py): an
outline can have a million entries or refer to itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from folio.papers.sections import FootnoteLines, HeadingLine, HeadingLines, OutlineEntry, Style
from folio.pdf import limits
from folio.pdf.mupdf import pymupdf
from folio.text import one_line

# A heading has at most this many characters and lines.
MAX_CHARACTERS, MAX_LINES = 160, 3
# A line that a heading introduces has at least this many characters.
_TEXT_CHARACTERS = 25
# Lines of one heading are at most this many type sizes apart, from top to top; text follows within this many.
_LINE_GAP, _TEXT_GAP = 1.7, 4.5
# A number or a letter before a heading stands at most this many type sizes to the left of it.
_NUMBER_GAP = 4.0
# Type 3 fonts may state any size; below this one, in points, the height of the line counts.
_MIN_SIZE = 3.0
# At least this share of a heading's characters are in one font.
_UNIFORM = 0.7
# An outline is at most this deep.
_MAX_DEPTH = 8
_NUMBER = re.compile(r"(?:(?:\d{1,2}|[A-Z])(?:\.\d{1,2}){0,4}|[IVXL]{1,6})[.)]?(?=\s|$)")
# Names of bold and of typewriter fonts; not all of them set the flags.
_BOLD = re.compile(r"bold|black|heavy|medi(?!um.?cond)|demi|cmbx|cmssbx|bx\d|sfbx", re.I)
_ITALIC = re.compile(r"ital|obli|cmti|cmsl|slant", re.I)
_MONO = re.compile(r"mono|cour|cmtt|cmsltt|typew|consol|inconsol|menlo", re.I)
# The mark of a footnote, and how much smaller than body text a footnote is at least, in points
_MARK = re.compile(r"\s*(?:\d{1,2}|[⁰¹²³⁴-⁹]{1,2}|[*∗†‡§¶]{1,2})\s?(?=[\"“‘(]?[^\W\d_]{2}|[\"“‘(]?[A-Z]\b)")
_SMALLER = 0.7
# The most lines of a page that are tried as footnotes, and the most characters of its running foot.
_TRIED, _FOOT_LINE = 40, 60
# A footnote has at least this many characters.
_NOTE_CHARACTERS = 15
# A run-in heading: one on the same line as its text
_RUN_IN = re.compile(
    r"(?:abstract|summary|acknowledge?ments?)(?=\s*[—–:.]|\s+-)"
    r"|(?:\d\)|\d{1,2}(?:\.\d{1,2}){1,4}\.?|[A-Z]\.)\s+\w[^.:—]{2,80}(?=[.:—])",
    re.I,
)


class _Line(NamedTuple):
    """A row of text; a number to the left of it is joined to it."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    style: Style
    first: Style  # of its first letters
    begins: str  # the part of the text in the style of its first letters
    is_uniform: bool  # nearly all of it has one style


class HeadingCollector:
    """Collects heading candidates and footnotes, page by page."""

    def __init__(self) -> None:
        self._lines: list[HeadingLine] = []
        self._footnotes: list[FootnoteLines] = []
        self._characters: Counter[tuple[float, str]] = Counter()

    def add_page(self, number: int, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Collect from one page. number: physical, from 1. blocks: the visible text, from MuPDF."""
        rows = list(_rows(blocks))
        sizes: Counter[tuple[float, str]] = Counter()
        for row in rows:
            sizes[row.style[:2]] += len(row.text)
        self._characters.update(sizes)
        if len(self._lines) < limits.HEADINGS and sizes:
            usual = max(sizes, key=sizes.__getitem__)
            room = limits.HEADINGS - len(self._lines)
            self._lines += islice(_candidates(number, rows, usual), room)
            room = limits.HEADINGS - len(self._footnotes)
            self._footnotes += islice(_footnotes(number, rows, usual[0]), room)

    def collected(self, document: Any) -> HeadingLines:
        """The collected lines, with the outline of the document."""
        sizes: Counter[float] = Counter()
        for (size, _), characters in self._characters.items():
            sizes[size] += characters
        size, font = max(self._characters, key=self._characters.__getitem__, default=(0.0, ""))
        share = sizes[size] / max(1, sizes.total())
        return HeadingLines(tuple(self._lines), tuple(_outline(document)), size, font, share, tuple(self._footnotes))


def _outline(document: Any) -> Iterator[OutlineEntry]:
    """The entries of a file's outline, read one by one, because MuPDF would load all of them."""
    mupdf = pymupdf().mupdf
    get = mupdf.pdf_dict_gets
    try:
        root = get(mupdf.pdf_trailer(mupdf.pdf_specifics(mupdf.FzDocument(document.this))), "Root")
        pending = [(get(get(root, "Outlines"), "First"), 1)]
        seen: set[int] = set()
        while pending and len(seen) < limits.HEADINGS:
            entry, level = pending.pop()
            number = mupdf.pdf_to_num(entry)
            if not number or number in seen or level > _MAX_DEPTH:
                continue
            seen.add(number)
            title = one_line(mupdf.pdf_to_text_string(get(entry, "Title"))[: 4 * MAX_CHARACTERS])
            if title and len(title) <= MAX_CHARACTERS:
                yield OutlineEntry(level, title)
            pending.append((get(entry, "Next"), level))
            pending.append((get(entry, "First"), level + 1))
    except MemoryError:
        raise
    except Exception:  # a broken outline: the headings on the pages are enough
        return


def _rows(blocks: Sequence[Mapping[str, Any]]) -> Iterator[_Line]:
    """The rows of each block, in the order they were drawn."""
    last: _Line | None = None
    for block in blocks:
        for line in block.get("lines", ()):
            row = _row(line) if line["dir"][0] > 0.9 else None
            if row is None:
                continue
            if last and _continues_row(last, row):
                gap = "" if last.text.endswith(" ") or row.text.startswith(" ") else " "
                is_number = bool(_NUMBER.fullmatch(last.text.strip()))
                style = row.style if is_number or len(row.text) > len(last.text) else last.style
                same_style = last.begins == last.text and (is_number or last.first.font == row.first.font)
                begins = last.text + gap + row.begins if same_style else last.begins
                uniform = row.is_uniform and (last.is_uniform or is_number)
                text = last.text + gap + row.text
                box = last.x0, min(last.y0, row.y0), row.x1, max(last.y1, row.y1)
                last = _Line(*box, text, style, last.first, begins, uniform)
                continue
            if last:
                yield last
            last = row
    if last:
        yield last


def _continues_row(last: _Line, row: _Line) -> bool:
    """Whether a piece stands in the same row, just right of the last one, or right of a section's number."""
    height = max(last.y1 - last.y0, row.y1 - row.y0)
    if min(last.y1, row.y1) - max(last.y0, row.y0) < 0.5 * height:
        return False
    widest = _NUMBER_GAP if _NUMBER.fullmatch(last.text.strip()) else 1.2
    return -0.2 * height < row.x0 - last.x1 < widest * height


def _row(line: Mapping[str, Any]) -> _Line | None:
    spans: list[dict[str, Any]] = line["spans"]
    first = largest = None
    text = begins = ""
    longest = letters = 0
    for span in spans:
        span_text = span["text"]
        if not span_text.isspace() and span_text:
            first = first or span
            length = len(span_text)
            letters += length
            if length > longest:
                longest, largest = length, span
            if span["font"] != first["font"] and not begins:
                if _NUMBER.fullmatch(text.strip()):
                    first = span  # a section's number may be in the style of the text, unlike its heading
                else:
                    begins = text
        text += span_text
    if not first or not largest:
        return None
    font, size, alike = largest["font"], largest["size"], letters
    if len(spans) > 1:
        same_font = [span for span in spans if span["font"] == font]
        # Small capitals come in two sizes, of which the larger counts.
        size, alike = max([span["size"] for span in same_font]), sum([len(span["text"]) for span in same_font])
    begins = begins or text
    if size < _MIN_SIZE:
        size = 0.8 * (line["bbox"][3] - line["bbox"][1])
    style = start = _style(size, font, largest["flags"], text.isupper())
    if first is not largest or begins is not text:
        start = _style(first["size"], first["font"], first["flags"], begins.isupper())
    x0, y0, x1, y1 = line["bbox"]
    return _Line(x0, y0, x1, y1, text, style, start, begins, alike >= _UNIFORM * letters)


@lru_cache(maxsize=1024)
def _style(size: float, font: str, flags: int, is_upper: bool) -> Style:
    mupdf = pymupdf()
    font = font.rpartition("+")[2]
    is_bold = bool(flags & mupdf.TEXT_FONT_BOLD) or bool(_BOLD.search(font))
    is_italic = bool(flags & mupdf.TEXT_FONT_ITALIC) or bool(_ITALIC.search(font))
    return Style(round(2 * size) / 2, font, is_bold, is_italic, is_upper)


def _candidates(number: int, rows: Sequence[_Line], usual: tuple[float, str]) -> Iterator[HeadingLine]:
    """The rows that may be headings. usual: size and font of the page's body text."""
    index = 0
    while index < len(rows):
        row = rows[index]
        end = index + 1
        while end < len(rows) and _same_heading(rows[end - 1], rows[end]):
            end += 1
        text = " ".join(row.text.strip() for row in rows[index:end])
        numbered = _NUMBER.match(text)
        is_distinct = row.style[:2] != usual or row.style.is_upper or bool(numbered)
        is_short = end - index <= MAX_LINES and len(text) <= MAX_CHARACTERS
        is_uniform = all(each.is_uniform for each in rows[index:end])
        if heading := _run_in(row):
            yield HeadingLine(number, heading, row.first, introduces=True, is_run_in=True)
        elif is_short and is_uniform and is_distinct and not _MONO.search(row.style.font) and _has_word(text):
            yield HeadingLine(number, one_line(text), row.style, _introduces(rows, end))
        index = end


def _footnotes(number: int, rows: Sequence[_Line], usual: float) -> Iterator[FootnoteLines]:
    """The footnotes of a page: small lines from a marked one to the foot of its column. usual: size of body text."""
    middle = (min(row.y0 for row in rows) + max(row.y1 for row in rows)) / 2
    marked = [row for row in rows if row.y0 > middle and row.style.size <= usual - _SMALLER and _MARK.match(row.text)]
    used: set[int] = set()
    for row in islice(sorted(marked, key=lambda row: row.y0), _TRIED):
        if id(row) in used:
            continue
        column = [other for other in rows if other.x0 < row.x1 and row.x0 < other.x1]
        if not any(other.y1 <= row.y0 + 1 and other.style.size > usual - _SMALLER for other in column):
            continue
        below = [other for other in column if other.y0 >= row.y0 - 1]
        large = [other for other in below if other.style.size > usual - _SMALLER]
        foot = max(below, key=lambda other: other.y0)
        if all(other is foot and len(other.text) <= _FOOT_LINE for other in large):
            notes = [other for other in below if other not in large]
            used.update(map(id, notes))
            if sum(map(len, (other.text for other in notes))) >= _NOTE_CHARACTERS:
                yield FootnoteLines(number, tuple(one_line(other.text) for other in notes))


def _run_in(row: _Line) -> str:
    """The heading at the beginning of a row, in another style than the text after it; "" if there is none."""
    text = row.text.strip()
    match = _RUN_IN.match(text)
    is_distinct = row.first[:2] != row.style[:2] or row.first.is_bold or row.first.is_italic
    if not match or len(text) < match.end() + 3 or not is_distinct:
        return ""
    begins = one_line(row.begins)
    if begins[0].isalpha() and begins[1:2] != ".":  # "Abstract": the text after it may have the same style
        return match.group()
    return begins if match.end() - 2 <= len(begins) <= MAX_CHARACTERS and len(begins) < len(text) else ""


def _same_heading(last: _Line, row: _Line) -> bool:
    gap = row.y0 - last.y0
    return (
        _alike(last.style, row.style)
        and last.is_uniform
        and row.is_uniform
        and 0 < gap < _LINE_GAP * max(row.style.size, 1.0) + 2
        and row.x0 < last.x1
        and last.x0 < row.x1
        and not _NUMBER.match(row.text.strip())
    )


def _alike(above: Style, below: Style) -> bool:
    """Whether two lines have the same style; a line of small capitals may lack the larger size."""
    is_small = above.is_upper and below.is_upper and below.size < above.size
    return above == below or (is_small and above.font == below.font)


def _introduces(rows: Sequence[_Line], end: int) -> bool:
    """Whether the row after a heading is body text below it."""
    if end >= len(rows):
        return True  # at the end of a page, or of a column
    heading, row = rows[end - 1], rows[end]
    if row.y0 < heading.y0:  # at the foot of a column
        return True
    is_near = row.y0 - heading.y1 < _TEXT_GAP * max(heading.style.size, row.style.size) and row.x0 < heading.x1 + 20
    return is_near and len(row.text) >= _TEXT_CHARACTERS and row.style[:2] != heading.style[:2]


def _has_word(text: str) -> bool:
    """Whether a text has a word and is mostly letters. Formulas and numbers are not headings."""
    letters = [character for character in text.casefold() if character.isalpha()]
    return len(set(letters)) >= 3 and len(letters) >= 0.55 * sum(not character.isspace() for character in text)
