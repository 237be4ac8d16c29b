"""Joins words that a PDF's glyph positions split: "can b e view ed as a w a y". Pure: glyphs in, joined lines out.

A font with wrong widths leaves a gap wherever the typesetter kerned two letters, and the gap is read as a space. Two
conditions must hold for a join: the gap is narrower than the spaces of its line, and the pieces are not words of the
paper. Code and formulas are not changed, because their letters are spaced on purpose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

# A single letter between letters, other than those that are words in some language. A page may have split words if it
# has at least _MIN_SINGLES of them and they are this share of its words; prose hardly ever has as many variables.
_SINGLE = re.compile(r"(?<=[a-z] )[b-df-hj-np-tv-xz](?= [a-z])")
_WORD = re.compile(r"[^\W\d_]+")
_MIN_SHARE, _MIN_SINGLES = 0.015, 8
# A gap inside a word is at most this share of the spaces between words, in the line and on the page.
_NARROW = 0.8
# Spaces between words of this many letters show the width of spaces; a line with fewer of them uses those of the page.
_SURE_WORD, _MIN_SPACES = 3, 3
# Letters are compared with the same font and about the same size.
_SAME_SIZE = 0.5
# Characters of code and formulas: lines with any of them stay as they are.
_CODE = re.compile(r"[{}<>=|\\^_~#*+∈∑∫≤≥→∀∃]|//| [();] | [;:]?$|[”\"] ?;")
# The least characters of a line of prose, and the least share of such lines that a font with wrong widths splits
_PROSE_LINE, _MIN_SPLIT_LINES = 30, 0.3
_MONOSPACED = 8  # MuPDF's flag of a font
# The same join this many times in a paper is a word, even if it never occurs unsplit.
_OFTEN = 2
# A split word has a piece shorter than this.
_LONG_PIECE = 4


class Glyph(NamedTuple):
    """A character with its left and right edges, in points, and its font."""

    character: str
    x0: float
    x1: float
    font: str
    size: float
    flags: int


class SplitLine(NamedTuple):
    """A line, and the offsets of those of its spaces that may be gaps inside a word."""

    text: str
    narrow: tuple[int, ...]


def may_be_split(text: str) -> bool:
    """Whether a page has so many single letters that the paper's words may be split."""
    singles = len(_SINGLE.findall(text))
    return singles >= _MIN_SINGLES and singles > _MIN_SHARE * len(_WORD.findall(text))


def glyphs(blocks: Sequence[Mapping[str, Any]]) -> Iterator[list[Glyph]]:
    """The level lines of MuPDF's raw blocks."""
    for block in blocks:
        for line in block.get("lines", ()):
            if line["dir"][0] > 0.9:
                yield [
                    Glyph(letter["c"], letter["bbox"][0], letter["bbox"][2], s["font"], s["size"], s["flags"])
                    for s in line["spans"]
                    for letter in s["chars"]
                ]


def split_lines(lines: Iterable[Sequence[Glyph]]) -> list[SplitLine]:
    """The lines of a page with narrow spaces between letters of one font."""
    lines_with_gaps = [("".join(glyph.character for glyph in line), _gaps(line)) for line in lines]
    sure = [[gap for gap, is_sure in gaps.values() if is_sure] for _, gaps in lines_with_gaps]
    page_gaps = [gap for gaps in sure for gap in gaps]
    if not page_gaps:
        return []
    usual = median(page_gaps)
    split = []
    for (text, gaps), spaces in zip(lines_with_gaps, sure, strict=True):
        if _CODE.search(text):
            continue
        widest = _NARROW * min(usual, median(spaces) if len(spaces) >= _MIN_SPACES else usual)
        narrow = tuple(place for place, (gap, _) in gaps.items() if gap < widest)
        if narrow:
            split.append(SplitLine(text, narrow))
    prose = sum(len(text) >= _PROSE_LINE and not _CODE.search(text) for text, _ in lines_with_gaps)
    return split if sum(len(line.text) >= _PROSE_LINE for line in split) >= _MIN_SPLIT_LINES * max(1, prose) else []


def _gaps(line: Sequence[Glyph]) -> dict[int, tuple[float, bool]]:
    """The width of each space between two letters, in ems, by its offset, and whether long words are on both sides."""
    gaps: dict[int, tuple[float, bool]] = {}
    for place in range(1, len(line) - 1):
        before, space, after = line[place - 1 : place + 2]
        if space.character != " " or not (before.character.isalpha() and after.character.isalpha()):
            continue
        if before.font != after.font or abs(before.size - after.size) > _SAME_SIZE or before.flags & _MONOSPACED:
            continue
        if not after.character.islower() or before.size <= 0:
            continue
        is_sure = all(glyph.character.isalpha() for glyph in line[max(0, place - _SURE_WORD) : place]) and all(
            glyph.character.isalpha() for glyph in line[place + 1 : place + 1 + _SURE_WORD]
        )
        gaps[place] = (after.x0 - before.x1) / before.size, is_sure and place >= _SURE_WORD
    return gaps


def join_words(pages: Sequence[str], split: Mapping[int, Sequence[SplitLine]]) -> dict[int, str]:
    """Page index -> its text with words joined, for the pages that change.

    pages: the text of all pages. split: page index -> its lines with narrow spaces.
    """
    if not split:
        return {}
    chains = {index: [list(_chains(line)) for line in lines] for index, lines in split.items()}
    pieces = [chain for lines in chains.values() for line in lines for _, chain in line]
    joins = Counter(map(_joined, pieces))
    unsplit = Counter(word.casefold() for text in pages for word in _WORD.findall(text))
    split_pieces = Counter(piece.casefold() for chain in pieces for piece in chain)
    unsplit.subtract(split_pieces)
    # A string that occurs more often inside split words than by itself is a piece of a word.
    vocabulary = frozenset(word for word, count in unsplit.items() if count > 0 and count >= split_pieces[word])
    joined: dict[int, str] = {}
    for index, lines in split.items():
        text = pages[index]
        for line, runs in zip(lines, chains[index], strict=True):
            dropped = {place for places, chain in runs if _is_one_word(chain, vocabulary, joins) for place in places}
            if dropped:
                replacement = "".join(sign for place, sign in enumerate(line.text) if place not in dropped)
                text = text.replace(line.text.strip(), replacement.strip(), 1)
        if text != pages[index]:
            joined[index] = text
    return joined


def _chains(line: SplitLine) -> Iterator[tuple[list[int], list[str]]]:
    """The runs of pieces separated by narrow spaces: the offsets of these spaces, and the pieces."""
    places: list[int] = []
    pieces: list[str] = []
    for last, word in pairwise([None, *_WORD.finditer(line.text), None]):
        if last and word and word.start() - last.end() == 1 and last.end() in line.narrow:
            places.append(last.end())
            pieces.append(word.group())
        else:
            if places:
                yield places, pieces
            places, pieces = [], [word.group()] if word else []


def _joined(chain: Sequence[str]) -> str:
    return "".join(chain).casefold()


def _is_one_word(chain: Sequence[str], vocabulary: Set[str], joins: Counter[str]) -> bool:
    """Whether the pieces are one word of the paper."""
    word = _joined(chain)
    if word in vocabulary:
        return True
    unknown = [len(piece) for piece in chain if piece.casefold() not in vocabulary]
    # Pieces that are words of the paper, or long, are separate words.
    if len(unknown) == len(chain):
        return min(unknown) <= _LONG_PIECE
    return joins[word] >= _OFTEN and min(unknown, default=_LONG_PIECE) < _LONG_PIECE
