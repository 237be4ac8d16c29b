"""Hits -> numbered evidence: duplicates dropped, neighbours joined, broken sentences and tables completed. Pure.

A chunk ends at its size limit, perhaps in the middle of a sentence, an algorithm or a table. A chunk is a span of its
paper's text, so completing it means moving two offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from folio.answer.excerpts import MOST_BEFORE, leans
from folio.answer.structure import lists_and_tables
from folio.answer_types import Evidence
from folio.papers.model import Hit, Paper
from folio.text import estimate_tokens, one_line, sentence_spans, stripped

# The characters [start, end) of the paper with this id; "" if the paper was removed
ReadText = Callable[[str, int, int], str]

# Characters that evidence may grow by at each end: the size of a chunk.
MAX_GROWTH = 1500
# Characters of the longest sentence that evidence is extended to complete.
LONGEST_SENTENCE = 600
# Tokens for the header of each piece of evidence, with paper and pages.
HEADER_TOKENS = 40


@dataclass(frozen=True, slots=True)
class GatheredEvidence:
    """The evidence for an answer, best first, and how many hits did not fit into the token budget."""

    evidence: tuple[Evidence, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Span:
    paper: Paper
    start: int
    end: int
    text: str
    hits: tuple[Hit, ...]


def gather(hits: Sequence[Hit], read: ReadText, budget: int) -> GatheredEvidence:
    """Evidence from these hits, best first. budget: in tokens; the best hit is kept even if it exceeds it.

    Hits are added as long as they fit. Then each piece is extended to whole sentences, lists and tables if that still
    fits. The pieces are in the order of their best hits.
    """
    spans: list[_Span] = []
    taken = 0
    for hit in hits:
        if not hit.text.strip() or any(_contains(span.text, hit.text) for span in spans):
            taken += 1
            continue
        joined = _merged(spans, _Span(hit.paper, hit.chunk.start, hit.chunk.end, hit.text, (hit,)))
        if spans and _tokens(joined) > budget:
            break
        spans = joined
        taken += 1
    for span in list(spans):
        if (wider := _extended(span, read)) != span:
            joined = _merged([other for other in spans if other != span], wider)
            if _tokens(joined) <= budget:
                spans = joined
    best_first = sorted(spans, key=lambda span: hits.index(span.hits[0]))
    evidence = (Evidence(n, s.paper, s.start, s.end, s.text, s.hits) for n, s in enumerate(best_first, 1))
    return GatheredEvidence(tuple(evidence), len(hits) - taken)


def _tokens(spans: Sequence[_Span]) -> int:
    return sum(estimate_tokens(span.text) + HEADER_TOKENS for span in spans)


def _contains(text: str, other: str) -> bool:
    """Whether a text contains another one word for word, such as the same page from a second file."""
    return one_line(other) in one_line(text)


def _merged(spans: Sequence[_Span], new: _Span) -> list[_Span]:
    """The spans with a new one; overlapping and adjacent spans of one paper are merged."""
    apart: list[_Span] = []
    for span in spans:
        first, second = sorted((span, new), key=lambda either: either.start)
        if span.paper == new.paper and second.start <= first.end:
            text = first.text + second.text[max(0, first.end - second.start) :]
            new = _Span(span.paper, first.start, first.start + len(text), text, _best_first(span.hits, new.hits))
        else:
            apart.append(span)
    return [*apart, new]


def _best_first(hits: tuple[Hit, ...], others: tuple[Hit, ...]) -> tuple[Hit, ...]:
    return tuple(sorted(dict.fromkeys((*hits, *others)), key=lambda hit: -hit.score))


def _extended(span: _Span, read: ReadText) -> _Span:
    """The span, extended to complete the sentence, list or table at each end."""
    low, high = _room(span)
    around = read(span.paper.id, low, high)
    start, end = span.start - low, span.end - low
    if around[start:end] != span.text:  # the paper was replaced in the meantime
        return span
    begins, ends = low == 0 or span.start - low < MAX_GROWTH, high == span.paper.length or high - span.end < MAX_GROWTH
    units = list(lists_and_tables(around, begins, ends))
    for unit in units:
        if unit.begins and unit.start < start < unit.end:
            start = unit.start
        if unit.ends and unit.start < end < unit.end:
            end = unit.end
    at_unit_end = end in {unit.end for unit in units}  # complete even without a full stop
    sentences = sentence_spans(around)
    for first, last in sentences:
        if last - first <= LONGEST_SENTENCE:
            start = first if first < start < last else start
            end = last if first < end < last and not at_unit_end else end
    start, end = stripped(around, start, end)
    start = _with_subject(around, start, sentences)
    return replace(span, start=low + start, end=low + end, text=around[start:end])


def _room(span: _Span) -> tuple[int, int]:
    """The text that a span may grow into: neither references nor a licence, unless it begins or ends in one."""
    low, high = max(0, span.start - MAX_GROWTH), min(span.paper.length, span.end + MAX_GROWTH)
    for start, end in span.paper.sections.spans_of_kinds():
        if end <= span.start:
            low = max(low, end)
        elif start >= span.end:
            high = min(high, start)
    return low, high


def _with_subject(text: str, start: int, sentences: Sequence[tuple[int, int]]) -> int:
    """The start, or that of a sentence before it that does not begin with "This" or "Therefore", as this one does."""
    before = [span for span in sentences if span[0] <= start]
    for first, last in before[: -MOST_BEFORE - 2 : -1]:
        if last - first > LONGEST_SENTENCE:
            break
        if not leans(text[first:last]):
            return first
    return start
