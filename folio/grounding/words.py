"""The content words of a statement, and how many of them a text has. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from folio.text import tokenize

# Words that refer to the source or join statements; the source need not have them.
_FRAME = frozenset(
    tokenize(
        "according paper article study author evidence source passage document report state describe mention note"
        " explain write say said provided given context text section researchers additionally furthermore moreover"
        " overall summary specifically respectively therefore however indicate discuss stands don doesn didn isn"
        " aren wasn weren couldn yes"
    )
)
# Two words with this many equal first letters are forms of one word: optimisation, optimizes.
_SAME_BEGINNING = 5


@lru_cache(maxsize=8192)
def tokens_of(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))


def content_words(statement: str) -> frozenset[str]:
    """The content words of a statement, as tokens."""
    words = tokens_of(statement)
    return words - _FRAME or words


def matching_words(words: frozenset[str], there: frozenset[str]) -> frozenset[str]:
    """The words that are in `there`, in this form or another."""
    exact = words & there
    if exact == words:
        return exact
    beginnings = {word[:_SAME_BEGINNING] for word in there if len(word) >= _SAME_BEGINNING and word.isalpha()}
    return exact | {word for word in words - exact if word.isalpha() and word[:_SAME_BEGINNING] in beginnings}


def share(words: frozenset[str], there: frozenset[str]) -> float:
    """The share of the words that are in `there`, 0 to 1."""
    return len(matching_words(words, there)) / len(words) if words else 0.0


def words_of(text: str) -> list[str]:
    """All words and numbers of a text in order, in lower case."""
    return re.findall(r"\w+", text.casefold())


def in_order(words: Sequence[str], there: Sequence[str]) -> int:
    """Length of the longest common subsequence: Hyyrö, "Bit-parallel LCS-length computation revisited" (2004)."""
    places: dict[str, int] = {}
    for place, word in enumerate(there):
        places[word] = places.get(word, 0) | 1 << place
    all_bits = (1 << len(there)) - 1
    unmatched = all_bits
    for word in words:
        matched = unmatched & places.get(word, 0)
        unmatched = (unmatched + matched | unmatched - matched) & all_bits
    return len(there) - unmatched.bit_count()
