"""The sentences of the evidence, numbered from 1, and citations of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from folio.answer_types import Citation, Evidence, Quote
from folio.text import UNREAD_FORMULA, sentence_spans, stripped, tokenize, typed

# Two spaces within a line separate table cells (pdf/order.py).
_CELLS_APART = re.compile(r"\S {2,}\S")
# The same, but not after the mark of a list item: "*  An item", "1.  Another"
_ROW = re.compile(r"[\w%)\]] {2,}\S")
_LINE = re.compile(r"[^\n]*\S[^\n]*")


@dataclass(frozen=True, slots=True)
class EvidenceSentence:
    """A sentence or table row of the evidence."""

    number: int  # from 1, over all evidence of an answer
    evidence: Evidence
    start: int  # in the evidence's text
    end: int

    @property
    def text(self) -> str:
        return self.evidence.text[self.start : self.end]


def number_sentences(evidence: Sequence[Evidence]) -> tuple[EvidenceSentence, ...]:
    """All sentences of the evidence, in its order."""
    places = ((piece, start, end) for piece in evidence for start, end in _spans(piece))
    return tuple(EvidenceSentence(number, *place) for number, place in enumerate(places, 1))


def neighbours(of: Iterable[EvidenceSentence], among: Sequence[EvidenceSentence]) -> list[EvidenceSentence]:
    """These sentences with the one before and the one after each, in order. among: from `number_sentences`."""
    near: set[int] = set()
    for sentence in of:
        around = among[max(0, sentence.number - 2) : sentence.number + 1]
        near.update(other.number for other in around if other.evidence is sentence.evidence)
    return [among[number - 1] for number in sorted(near)]


def citations(evidence: Evidence, start: int, end: int, support: float) -> list[Citation]:
    """The citations of the span [start, end) of the evidence's text: one for each page that it is on."""
    at, number = evidence.start, evidence.number
    parts = _page_parts(evidence, start, end)
    return [Citation(evidence.paper, at + a, at + b, evidence.text[a:b], number, support) for a, b in parts]


def citation(evidence: Evidence, start: int, end: int, support: float) -> Citation:
    """The longest of `citations`. Raises ValueError for a span without words."""
    return max(citations(evidence, start, end, support), key=lambda quote: len(quote.quote))


def quote(sentence: EvidenceSentence) -> Quote:
    """The words of a sentence; if it is on two pages, those on the page with more of it."""
    longest = citation(sentence.evidence, sentence.start, sentence.end, 1.0)
    return Quote(longest.paper, longest.start, longest.end, longest.quote)


def is_row(text: str) -> bool:
    """Whether a sentence is a row of a table: it has cells."""
    return bool(_ROW.search(text))


def _spans(evidence: Evidence) -> Iterator[tuple[int, int]]:
    """The spans of sentences, and of the rows of tables."""
    for start, end in sentence_spans(evidence.text):
        if _CELLS_APART.search(evidence.text, start, end):
            yield from (match.span() for match in _LINE.finditer(evidence.text, start, end))
        else:
            yield start, end


def _page_parts(evidence: Evidence, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span [start, end) of the evidence, split at page breaks, without surrounding space."""
    pages, offset = evidence.paper.pages, evidence.start
    while start < end:
        page = pages.page_at(offset + start)
        page_end = pages.starts[page] - offset if page < len(pages.starts) else end
        stop = min(end, max(start + 1, page_end))
        part = stripped(evidence.text, start, stop)
        if part[0] < part[1]:
            yield part
        start = stop


# Content words, and their share in a text

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
    return re.findall(r"\w+", typed(text.replace(UNREAD_FORMULA, " ")).casefold())


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
