"""Matches quotes with chunks and chunks with pages, for judging results. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

# A text contains a quote if it has its first or last part of this size: a chunk's edge may cut the quote.
from folio.text import fold

QUOTE_PART = 0.6
# Letters and digits that a quote needs: shorter ones occur in many places by chance.
MIN_QUOTE_LENGTH = 20
# A Chinese character, kana or Hangul syllable counts as this many letters.
_WIDE = 3
# A chunk is on a page if they share a run of this many letters and digits.
SHARED_RUN = 60

_BROKEN_WORD = re.compile(r"-\s*\n\s*")
# White space, hyphens, and placeholders for glyphs without a Unicode character
_NO_INK = re.compile(r"[\s\u00ad\u2010-\u2012\ufffd-\uffff-]+")


def fold_quote(text: str) -> str:
    """The letters and digits of a text in any script, case-folded, with words hyphenated across lines rejoined.

    Ligatures become letters. Accents are dropped, because many files store them as separate characters.
    """
    return unicodedata.normalize("NFC", fold(_BROKEN_WORD.sub("", text)))


def weight(folded: str) -> int:
    """The number of letters in a folded text; each wide character counts as three."""
    return sum(_WIDE if unicodedata.east_asian_width(char) == "W" else 1 for char in folded)


def holds(folded: str, quote: str) -> bool:
    """Whether a folded text contains a folded quote, or its first or last 60 %."""
    part = max(1, round(QUOTE_PART * len(quote)))
    return bool(quote) and (quote in folded or quote[:part] in folded or quote[-part:] in folded)


def stands_on(folded: str, page: str) -> bool:
    """Whether a folded text shares a run of 60 characters with a folded page; a shorter text must be there whole."""
    run = min(SHARED_RUN, len(folded))
    return bool(run) and any(folded[at : at + run] in page for at in range(len(folded) - run + 1))


def pages_with(quote: str, pages: Sequence[str]) -> frozenset[int]:
    """The pages, from 1, that contain a folded quote; both pages if it crosses a page break."""
    numbers = {number for number, page in enumerate(pages, 1) if quote in page}
    if not numbers:
        for number, (page, following) in enumerate(pairwise(pages), 1):
            if quote in page + following:
                numbers |= {number, number + 1}
    return frozenset(numbers)


def is_verbatim(quote: str, page: str) -> bool:
    """Whether a quote is on a page with the same letters and punctuation in the same order.

    White space and hyphens are ignored, because a hyphen at a line's end may belong to the line break or to the word;
    so are glyphs without a Unicode character. NFKC turns ligatures into letters.
    """
    return bool(inked := _ink(quote)) and inked in _ink(page)


def _ink(text: str) -> str:
    return _NO_INK.sub("", unicodedata.normalize("NFKC", text))
