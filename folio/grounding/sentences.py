"""The sentences of the evidence, numbered from 1, and citations of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from folio.answer_types import Citation, Evidence, Quote
from folio.text import sentence_spans, stripped

# Two spaces within a line separate table cells (pdf/reading_order.py).
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
