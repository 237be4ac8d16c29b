"""Puts the glyphs of a page into words and lines by the gaps between them, where MuPDF could not.

MuPDF compares gaps with the type size. A Type 3 or bitmap font may state a size that has nothing to do with that of its
glyphs, or no widths. Then each letter is a line of its own, or all words of a line are one. What a reader sees are
gaps: those between words are wider than those within. Where no widths tell how wide a gap is, the steps from one letter
to the next do, as each letter has its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from folio.pdf.mupdf import around, lines, spans_of

_Block = Mapping[str, Any]

# A page with fewer characters is left as it is.
_MIN_CHARACTERS = 60
# The mean width of a glyph, in type sizes: about 0.5 in print, 1 in Chinese. Outside of these, the size is wrong.
_NARROWEST, _WIDEST = 0.15, 2.0
# Lines of one or two characters, and spaces: shares of all lines and of all characters of a page that is in pieces
_SHORT_LINES, _MIN_LINES, _SPACES = 0.6, 40, 0.4
# Scripts without spaces between words, and those that are written downwards, begin here.
_IDEOGRAPHS = "\u2e80"
# In steps from one letter to the next: how far a glyph of a line stands above another at most, how much farther apart
# words are than the letters of a word, and how far apart cells or columns.
_LEVEL, _WORD_GAP, _CELL_GAP = 0.5, 0.27, 2.2
# Letters nearer to the one before than this are copies of it.
_STRUCK = 0.25
# Boxes of neighbouring letters that overlap by more than this share of a step, or are farther apart, state no widths.
_CLOSE = 0.35
# Then a character is as wide as the step that this share of its steps is below: the others go over a space. A sign that
# always ends a word would get all of it, so there are most steps of a sign, of most letters, and of wide ones.
_SHORT_STEPS, _SIGN, _LETTER, _WIDE = 0.2, 0.6, 1.25, 2.0
# The step, and what is above and below the baseline, in type sizes
_STEP, _ASCENT, _DESCENT = 0.5, 0.8, 0.2
# Lines closer than this, in type sizes, are of one paragraph.
_LEADING = 1.8
# At most this many paragraphs stand side by side.
_MOST_OPEN = 60
# Letters in words of this length must become this many times as many.
_WORD, _BETTER = re.compile(r"(?<![^\W\d_])[^\W\d_]{3,15}(?![^\W\d_])"), 1.5


class _Glyph(NamedTuple):
    x0: float  # its edges
    x1: float
    y: float  # of its baseline
    character: str
    span: Mapping[str, Any]  # its own, from MuPDF

    @property
    def key(self) -> tuple[str, str]:
        return self.span["font"], self.character


def in_words(blocks: list[dict[str, Any]], raw: Callable[[], Sequence[_Block]]) -> list[dict[str, Any]] | None:
    """The blocks of a page with its glyphs in words; None if they are as they should be, or cannot be put right.

    blocks: MuPDF's. raw: returns the same with characters. The spans are others than MuPDF's, so each has its "chars".
    """
    has_wrong_sizes, is_in_pieces = _faults(blocks)
    if not (has_wrong_sizes or is_in_pieces):
        return None
    glyphs = list(_glyphs(raw()))
    steps = [b.x0 - a.x0 for a, b in pairwise(glyphs) if a.y == b.y and b.x0 > a.x0]
    if len(steps) < _MIN_CHARACTERS:
        return None
    step = median(steps)
    rows = list(_rows(glyphs, step))
    within = _gap_within(rows, step)
    if not -_CLOSE * step < within < _CLOSE * step:
        rows = _with_widths(rows, step)
        within = _gap_within(rows, step)
    spaced = [_line(part, within + _WORD_GAP * step, step) for row in rows for part in _cells(row, _CELL_GAP * step)]
    rebuilt = [{"type": 0, "bbox": around(part), "lines": part} for part in _paragraphs(spaced)]
    return rebuilt if _in_words(rebuilt) >= (1 if has_wrong_sizes else _BETTER) * _in_words(blocks) else None


def _faults(blocks: Sequence[_Block]) -> tuple[bool, bool]:
    """Whether the sizes of a page's glyphs are wrong, and whether most of its lines or words are single characters."""
    width = sizes = 0.0
    characters = spaces = count = short = 0
    for line in lines(blocks):
        length = 0
        for span in line["spans"]:
            text, (left, _, right, _) = span["text"], span["bbox"]
            length += len(text)
            spaces += text.count(" ")
            width += right - left
            sizes += span["size"] * len(text)
        characters += length
        count += 1
        short += length < 3 and line["dir"][0] > 0.9 and line["spans"][0]["text"][:1] < _IDEOGRAPHS
    if characters < _MIN_CHARACTERS:
        return False, False
    has_wrong_sizes = not _NARROWEST * sizes < width < _WIDEST * sizes
    is_in_pieces = short > _SHORT_LINES * max(count, _MIN_LINES) or spaces > _SPACES * characters
    if (has_wrong_sizes or is_in_pieces) and not all(line["dir"][0] > 0.9 for line in lines(blocks)):
        return False, False
    return has_wrong_sizes, is_in_pieces


def _glyphs(raw: Sequence[_Block]) -> Iterator[_Glyph]:
    for span in spans_of(raw):
        for letter in span["chars"]:
            if not letter["c"].isspace():
                yield _Glyph(letter["bbox"][0], letter["bbox"][2], letter["origin"][1], letter["c"], span)


def _gap_within(rows: Sequence[Sequence[_Glyph]], step: float) -> float:
    """The gap between two letters of a word."""
    gaps = [after.x0 - before.x1 for row in rows for before, after in pairwise(row)]
    return median([gap for gap in gaps if gap < _CELL_GAP * step] or [0.0])


def _with_widths(rows: Sequence[Sequence[_Glyph]], step: float) -> list[list[_Glyph]]:
    """The glyphs with the widths that their steps show: the step to the next letter of a word is always the same."""
    steps: dict[tuple[str, str], list[float]] = {}
    for before, after in (pair for row in rows for pair in pairwise(row)):
        if 0 < after.x0 - before.x0 < _CELL_GAP * step:
            steps.setdefault(before.key, []).append(after.x0 - before.x0)
    widths = {key: sorted(known)[int(_SHORT_STEPS * len(known))] for key, known in steps.items()}

    def width(glyph: _Glyph) -> float:
        is_narrow = glyph.character.islower() and glyph.character not in "mw"
        most = _LETTER if is_narrow else _WIDE if glyph.character.isalnum() else _SIGN
        return min(widths.get(glyph.key, step), most * step)

    return [[glyph._replace(x1=glyph.x0 + width(glyph)) for glyph in row] for row in rows]


def _rows(glyphs: Sequence[_Glyph], step: float) -> Iterator[list[_Glyph]]:
    """The glyphs of each line of the page, from left to right."""
    row: list[_Glyph] = []
    for glyph in sorted(glyphs, key=lambda glyph: glyph.y):
        if row and glyph.y - row[-1].y > _LEVEL * step:
            yield sorted(row, key=lambda glyph: glyph.x0)
            row = []
        row.append(glyph)
    if row:
        yield sorted(row, key=lambda glyph: glyph.x0)


def _cells(row: Sequence[_Glyph], least: float) -> Iterator[list[_Glyph]]:
    """The parts of a row with wide gaps between them."""
    starts = [0, *(n for n in range(1, len(row)) if row[n].x0 - row[n - 1].x1 > least), len(row)]
    yield from (list(row[start:end]) for start, end in pairwise(starts))


def _line(glyphs: Sequence[_Glyph], least: float, step: float) -> dict[str, Any]:
    """MuPDF's form of a line. least: the narrowest gap between two words. step: between two letters of the page."""
    spans: list[dict[str, Any]] = []
    steps = [after.x0 - before.x0 for before, after in pairwise(glyphs)]
    # Text that is struck twice steps from each letter to its copy.
    steps = [own for own in steps if own > _STRUCK * step] or steps or [glyphs[0].x1 - glyphs[0].x0]
    size = median(steps) / _STEP
    for place, glyph in enumerate(glyphs):
        has_space = place > 0 and glyph.x0 - glyphs[place - 1].x1 > least
        top, bottom = glyph.y - _ASCENT * size, glyph.y + _DESCENT * size
        box = glyph.x0, top, glyph.x1, bottom
        chars = [{"c": glyph.character, "bbox": box, "origin": (glyph.x0, glyph.y)}]
        if has_space:
            end = glyphs[place - 1].x1
            chars.insert(0, {"c": " ", "bbox": (end, top, glyph.x0, bottom), "origin": (end, glyph.y)})
        if spans and glyph.span["font"] == spans[-1]["font"] and glyph.span["color"] == spans[-1]["color"]:
            spans[-1]["text"] += " " * has_space + glyph.character
            spans[-1]["bbox"] = (*spans[-1]["bbox"][:2], *box[2:])
            spans[-1]["chars"] += chars
            continue
        text = " " * has_space + glyph.character
        placed = {"size": size, "bbox": box, "origin": (glyph.x0, glyph.y)}
        spans.append({**glyph.span, **placed, "text": text, "chars": chars})
    return {"wmode": 0, "dir": (1.0, 0.0), "bbox": around(spans), "spans": spans}


def _paragraphs(page_lines: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The lines of each paragraph: those right below each other. page_lines: from top to bottom."""
    paragraphs: list[list[dict[str, Any]]] = []
    open_ones: list[list[dict[str, Any]]] = []  # those that a line may still follow
    for line in page_lines:
        left, top, right, bottom = line["bbox"]
        reach = _LEADING * (bottom - top)
        open_ones = [part for part in open_ones[-_MOST_OPEN:] if bottom - part[-1]["bbox"][3] < reach]
        above = next((part for part in open_ones if part[-1]["bbox"][0] < right and part[-1]["bbox"][2] > left), None)
        if above is None or above[-1]["bbox"][3] >= bottom:
            above = []
            paragraphs.append(above)
            open_ones.append(above)
        above.append(line)
    return paragraphs


def _in_words(blocks: Sequence[_Block]) -> int:
    """How many letters are in words of an ordinary length."""
    texts = ("".join(span["text"] for span in line["spans"]) for line in lines(blocks))
    return sum(len(word) for text in texts for word in _WORD.findall(text))
