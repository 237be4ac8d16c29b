"""Whether words of a paper stand in a text: quotes in chunks, chunks on pages. Pure; for judging, not for finding."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

# A quote counts as held by a text that has its first or last part of this size: it may be cut by a chunk's edge.
MOST_OF_A_QUOTE = 0.6
# What a quote must weigh at least: a shorter one stands in many places, and finding it would tell nothing.
LEAST_QUOTE = 20
# A Chinese character, a kana or a Hangul syllable tells as much as so many letters of an alphabet.
_WIDE = 3
# Letters and digits that a chunk and a page share in one run before the chunk counts as standing on the page.
SHARED_RUN = 60

_BROKEN_WORD = re.compile(r"-\s*\n\s*")
_NO_WORD = re.compile(r"[\W_]+")
# White space, hyphens, and what stands for a glyph that the file names no character for
_NO_INK = re.compile(r"[\s\u00ad\u2010-\u2012\ufffd-\uffff-]+")


def fold(text: str) -> str:
    """The letters and digits of a text, of any script, without regard to case; words broken over lines made whole.

    Ligatures become their letters. Accents are left out: many a file has them as signs of their own, beside the letter.
    """
    letters = _BROKEN_WORD.sub("", unicodedata.normalize("NFKD", text)).casefold()
    return unicodedata.normalize("NFC", _NO_WORD.sub("", unicodedata.normalize("NFKD", letters)))


def weight(folded: str) -> int:
    """How many letters a folded text has, each that stands for a syllable or a word counting as three."""
    return sum(_WIDE if unicodedata.east_asian_width(char) == "W" else 1 for char in folded)


def holds(folded: str, quote: str) -> bool:
    """Whether a folded text holds a folded quote, or its first or last 60 %."""
    part = max(1, round(MOST_OF_A_QUOTE * len(quote)))
    return bool(quote) and (quote in folded or quote[:part] in folded or quote[-part:] in folded)


def stands_on(folded: str, page: str) -> bool:
    """Whether a folded text shares a run of 60 characters with a folded page; a shorter text stands there whole."""
    run = min(SHARED_RUN, len(folded))
    return bool(run) and any(folded[at : at + run] in page for at in range(len(folded) - run + 1))


def pages_with(quote: str, pages: Sequence[str]) -> frozenset[int]:
    """The pages, from 1, on which a folded quote stands; where it crosses from one to the next, both of them."""
    found = {number for number, page in enumerate(pages, 1) if quote in page}
    if not found:
        for number, (page, following) in enumerate(pairwise(pages), 1):
            if quote in page + following:
                found |= {number, number + 1}
    return frozenset(found)


def word_for_word(quote: str, page: str) -> bool:
    """Whether a quote stands on a page in the same letters, signs and order.

    White space is left out of both, and hyphens with it, since one at a line's end may belong to the line or to the
    word, and glyphs that are no character; NFKC makes ligatures their letters.
    """
    return bool(inked := _ink(quote)) and inked in _ink(page)


def _ink(text: str) -> str:
    return _NO_INK.sub("", unicodedata.normalize("NFKC", text))
