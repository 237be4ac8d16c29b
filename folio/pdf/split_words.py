"""Words that a PDF's glyph positions tear apart: "can b e view ed as a w a y". Pure: glyphs in, joined lines out.

A font whose widths are wrong leaves a gap wherever the typesetter moved two letters together or apart, and the gap is
read as a space. Such gaps are narrower than the spaces between the words of their line, and what they separate are not
words of the paper. Both must hold. Code and formulas are left as they are: their letters stand apart on purpose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

# A paper is looked at more closely if one of its pages has so many single letters between letters, other than those
# that are words in some language, and if they are this share of its words. Variables in prose are hardly ever so many.
_SINGLE = re.compile(r"(?<=[a-z] )[b-df-hj-np-tv-xz](?= [a-z])")
_WORD = re.compile(r"[^\W\d_]+")
_MIN_SHARE, _MIN_SINGLES = 0.015, 8
# A gap inside a word is at most this share of the spaces between words, in the line and on the page.
_NARROW = 0.8
# Spaces between words this long show how wide spaces are. With fewer in a line, those of the page do.
_SURE_WORD, _MIN_SPACES = 3, 3
# Letters are compared with the same font and about the same size.
_SAME_SIZE = 0.5
# Characters of code and formulas: lines with any of them stay as they are.
_CODE = re.compile(r"[{}<>=|\\^_~#*+∈∑∫≤≥→∀∃]|//| [();] | [;:]?$|[”\"] ?;")
# Where a font tears words, it does so in most lines of prose: in this share of the lines with so many characters.
_PROSE_LINE, _MIN_TORN = 30, 0.3
_MONOSPACED = 8  # MuPDF's flag of a font
# A word that is put together so often in a paper is one, even if it never stands whole.
_OFTEN = 2
# Torn words have a piece that is shorter: a syllable.
_LONG_PIECE = 4


class Glyph(NamedTuple):
    """A character, from where to where it goes in its line, and how it is set."""

    character: str
    x0: float
    x1: float
    font: str
    size: float
    flags: int


class SplitLine(NamedTuple):
    """A line, and the offsets of the spaces in it that may be gaps inside a word."""

    text: str
    narrow: tuple[int, ...]


def may_be_split(text: str) -> bool:
    """Whether a page has so many single letters that the paper's words may be torn apart."""
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
    found = [("".join(glyph.character for glyph in line), _gaps(line)) for line in lines]
    sure = [[gap for gap, is_sure in gaps.values() if is_sure] for _, gaps in found]
    everywhere = [gap for gaps in sure for gap in gaps]
    if not everywhere:
        return []
    usual = median(everywhere)
    split = []
    for (text, gaps), spaces in zip(found, sure, strict=True):
        if _CODE.search(text):
            continue
        widest = _NARROW * min(usual, median(spaces) if len(spaces) >= _MIN_SPACES else usual)
        narrow = tuple(place for place, (gap, _) in gaps.items() if gap < widest)
        if narrow:
            split.append(SplitLine(text, narrow))
    prose = sum(len(text) >= _PROSE_LINE and not _CODE.search(text) for text, _ in found)
    return split if sum(len(line.text) >= _PROSE_LINE for line in split) >= _MIN_TORN * max(1, prose) else []


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
    """The pages of a paper, by index, in which words are joined.

    pages: the text of all pages. split: the lines with narrow spaces, by the index of their page.
    """
    if not split:
        return {}
    chains = {index: [list(_chains(line)) for line in lines] for index, lines in split.items()}
    pieces = [chain for lines in chains.values() for line in lines for _, chain in line]
    put_together = Counter(map(_joined, pieces))
    whole = Counter(word.casefold() for text in pages for word in _WORD.findall(text))
    torn = Counter(piece.casefold() for chain in pieces for piece in chain)
    whole.subtract(torn)
    # What stands more often in torn words than by itself is a piece of a word.
    known = frozenset(word for word, count in whole.items() if count > 0 and count >= torn[word])
    joined: dict[int, str] = {}
    for index, lines in split.items():
        text = pages[index]
        for line, runs in zip(lines, chains[index], strict=True):
            dropped = {place for places, chain in runs if _is_one_word(chain, known, put_together) for place in places}
            if dropped:
                new = "".join(sign for place, sign in enumerate(line.text) if place not in dropped)
                text = text.replace(line.text.strip(), new.strip(), 1)
        if text != pages[index]:
            joined[index] = text
    return joined


def _chains(line: SplitLine) -> Iterator[tuple[list[int], list[str]]]:
    """The runs of pieces with only narrow spaces between them: the offsets of these spaces, and the pieces."""
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


def _is_one_word(chain: Sequence[str], known: Set[str], put_together: Counter[str]) -> bool:
    """Whether the pieces are one word of the paper."""
    word = _joined(chain)
    if word in known:
        return True
    unknown = [len(piece) for piece in chain if piece.casefold() not in known]
    # Two words of the paper that stand close are two words, and so are two long ones.
    if len(unknown) == len(chain):
        return min(unknown) <= _LONG_PIECE
    return put_together[word] >= _OFTEN and min(unknown, default=_LONG_PIECE) < _LONG_PIECE
