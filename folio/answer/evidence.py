"""Hits -> numbered evidence: drops duplicates, joins neighbours, completes broken sentences and tables. Pure.

A chunk ends at its size limit, perhaps in the middle of a sentence, an algorithm or a table. It is a span of its
paper's text, so completing it means moving two offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from folio.answer.blocks import MOST_BEFORE, leans
from folio.answer.structure import lists_and_tables
from folio.answer_types import Evidence, Selected
from folio.papers.model import Hit, Paper
from folio.text import estimate_tokens, one_line, sentence_spans, stripped

# The characters [start, end) of the paper with this id; "" if the paper was removed
ReadText = Callable[[str, int, int], str]

MAX_GROWTH = 1500  # characters that evidence may grow by at each end: the size of a chunk
MAX_ALGORITHM = 12_000  # characters of an algorithm that evidence may grow by, to have all of its steps
LONGEST_SENTENCE = 600  # characters of the longest sentence to complete
HEADER_TOKENS = 40  # for the header of each piece of evidence, with paper and pages


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

    Adds hits as long as they fit, then extends each piece to whole sentences, lists and tables if that still fits. The
    pieces are in the order of their best hits.
    """
    spans: list[_Span] = []
    taken = 0
    for hit in hits:
        # A hit may repeat another word for word: the same page from a second file.
        if not hit.text.strip() or any(one_line(hit.text) in one_line(span.text) for span in spans):
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


def without(evidence: Sequence[Evidence], selected: Selected) -> tuple[Evidence, ...]:
    """The evidence without the sentences that a reader selected, numbered anew: nobody asks to read them again."""
    pieces: list[Evidence] = []
    for piece in evidence:
        start, end = selected.start - piece.start, selected.end - piece.start
        if not selected.overlaps(piece.paper, piece.start, piece.end):
            pieces.append(piece)
            continue
        taken = [span for span in sentence_spans(piece.text) if span[0] < end and start < span[1]]
        first, last = (taken[0][0], taken[-1][1]) if taken else (0, len(piece.text))
        for low, high in (stripped(piece.text, 0, first), stripped(piece.text, last, len(piece.text))):
            if low < high:
                text = piece.text[low:high]
                pieces.append(replace(piece, start=piece.start + low, end=piece.start + high, text=text))
    return tuple(replace(piece, number=number) for number, piece in enumerate(pieces, 1))


def _tokens(spans: Sequence[_Span]) -> int:
    return sum(estimate_tokens(span.text) + HEADER_TOKENS for span in spans)


def _merged(spans: Sequence[_Span], new: _Span) -> list[_Span]:
    """The spans with a new one; overlapping and adjacent spans of one paper are merged."""
    separate: list[_Span] = []
    for span in spans:
        first, second = sorted((span, new), key=lambda either: either.start)
        if span.paper == new.paper and second.start <= first.end:
            text = first.text + second.text[max(0, first.end - second.start) :]
            hits = tuple(sorted(dict.fromkeys((*span.hits, *new.hits)), key=lambda hit: -hit.score))
            new = _Span(span.paper, first.start, first.start + len(text), text, hits)
        else:
            separate.append(span)
    return [*separate, new]


def _extended(span: _Span, read: ReadText) -> _Span:
    """The span, extended to complete the sentence, list, table or algorithm at each end."""
    span = _with_algorithms(span, read)
    low, high = _room(span)
    around = read(span.paper.id, low, high)
    start, end = span.start - low, span.end - low
    if around[start:end] != span.text:  # the paper was replaced meanwhile
        return span
    begins, ends = low == 0 or span.start - low < MAX_GROWTH, high == span.paper.length or high - span.end < MAX_GROWTH
    units = list(lists_and_tables(around, begins, ends))
    for unit in units:
        if unit.begins and unit.start < start < unit.end:
            start = unit.start
        if unit.ends and unit.start < end < unit.end:
            end = unit.end
    known = _algorithms(span.paper, low, high)
    at_unit_start = start in {first - low for first, _ in known}
    at_unit_end = end in {*(unit.end for unit in units), *(last - low for _, last in known)}  # without a full stop
    sentences = sentence_spans(around)
    for first, last in sentences:
        if last - first <= LONGEST_SENTENCE:
            start = first if not at_unit_start and first < start < last else start
            end = last if first < end < last and not at_unit_end else end
    start, end = stripped(around, start, end)
    if not at_unit_start:
        start = _with_subject(around, start, sentences)
    return replace(span, start=low + start, end=low + end, text=around[start:end])


def _algorithms(paper: Paper, start: int, end: int) -> list[tuple[int, int]]:
    """The spans of the algorithms that overlap the characters [start, end) of a paper."""
    sections = (section for section in paper.sections.sections if section.kind == "algorithm")
    return [(section.start, section.end) for section in sections if section.start < end and start < section.end]


def _with_algorithms(span: _Span, read: ReadText) -> _Span:
    """The span, with the rest of the algorithms that it has a part of."""
    inside = _algorithms(span.paper, span.start, span.end)
    start, end = min([span.start, *(first for first, _ in inside)]), max([span.end, *(last for _, last in inside)])
    if (start, end) == (span.start, span.end) or end - start - len(span.text) > MAX_ALGORITHM:
        return span
    text = read(span.paper.id, start, end)
    is_same = text[span.start - start : span.end - start] == span.text  # the paper was not replaced meanwhile
    return replace(span, start=start, end=end, text=text) if is_same else span


def _room(span: _Span) -> tuple[int, int]:
    """The bounds that a span may grow to: not into references or a licence, unless it already overlaps them."""
    low, high = max(0, span.start - MAX_GROWTH), min(span.paper.length, span.end + MAX_GROWTH)
    for start, end in span.paper.sections.spans_of_kinds():
        if end <= span.start:
            low = max(low, end)
        elif start >= span.end:
            high = min(high, start)
    return low, high


def _with_subject(text: str, start: int, sentences: Sequence[tuple[int, int]]) -> int:
    """The start; if its sentence leans on the one before ("This", "Therefore"), the start of one that does not."""
    before = [span for span in sentences if span[0] <= start]
    for first, last in before[: -MOST_BEFORE - 2 : -1]:
        if last - first > LONGEST_SENTENCE:
            break
        if not leans(text[first:last]):
            return first
    return start
