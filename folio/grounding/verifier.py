"""Checks whether evidence supports a sentence, and with which quotes. Pure, except for the embedder it is given.

A sentence is supported by a few quotes from one piece of evidence, or from those that it names together, when they have
its numbers, units, identifiers, names and quoted words, do not deny it, and match it in wording and meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from folio.grounding.conflicts import conflict
from folio.grounding.entities import missing, values_of
from folio.grounding.entity_binding import gives_another, unbound
from folio.grounding.negation_old import contradicts
from folio.grounding.overlap import dice, held_of, share, telling, tokens_of, unsaid, wording, words_of
from folio.protocols import Embedder
from folio.text import sentence_spans, stripped, tokenize
from folio.types import Citation, Evidence, Vectors

# Weight of the cosine in the support score; the rest is the wording. LOG.md has the experiments.
MEANING = 0.2
# Least support: evidence that the writer named needs less than evidence that the program found.
SUPPORT_NAMED = 0.77
SUPPORT_FOUND = 0.85
# Quotes per sentence, and passages shown to disagree with it, at most.
MOST_QUOTES = 4
MOST_AGAINST = 2
# A passage with less than this share of a sentence's words is about something else, and cannot disagree with it.
LEAST_DISPUTED = 0.4
# No single quote with this share of a sentence's words may deny it.
NEARLY_ALL = 0.6
# Two spaces within a line separate table cells (pdf/reading_order.py).
_CELLS_APART = re.compile(r"\S {2,}\S")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The citations that support a sentence; or none, and the reason, in words that the model can act on."""

    citations: tuple[Citation, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Span:
    """A sentence of the evidence, or the part of it that is on one page."""

    evidence: Evidence
    start: int  # in the evidence's text
    end: int
    text: str

    @property
    def words(self) -> frozenset[str]:
        return tokens_of(self.text)

    @property
    def values(self) -> frozenset[str]:
        """Its numbers, without units."""
        return values_of(self.text)


class SentenceVerifier:
    """Verifies sentences against the evidence for one answer."""

    def __init__(self, evidence: Sequence[Evidence], embedder: Embedder | None) -> None:
        """embedder: measures similarity of meaning; with None, only the words count."""
        self.count = len(evidence)
        self._evidence = evidence
        self._embedder = embedder
        self._spans = {e.number: list(_spans(e)) for e in evidence}
        self._vectors: dict[str, Vectors] = {}  # of the texts compared so far

    def verify(self, sentence: str, named: Sequence[int], together: Sequence[str] = ()) -> Verdict:
        """Find the quotes that support a sentence. named: the evidence numbers that its writer gave.

        The named pieces are tried first, each alone and then together. After them every other piece is tried, which
        corrects a wrong or missing number; it needs more support. together: texts that must be in the same row of the
        evidence, such as the cells of a table row.
        """
        pieces = [self._evidence[number - 1] for number in named]
        alone = [self._verify(sentence, [piece], SUPPORT_NAMED, together) for piece in pieces]
        if citations := tuple(chain.from_iterable(verdict.citations for verdict in alone)):
            return Verdict(citations)
        words = telling(sentence)
        others = [piece for piece in self._evidence if piece not in pieces]
        others.sort(key=lambda other: -self._overlap(words, other))
        attempts = [(pieces, SUPPORT_NAMED)] if len(pieces) > 1 else []
        attempts += [([other], SUPPORT_FOUND) for other in others]
        first = alone[0] if alone else None
        for tried, least in attempts:
            verdict = self._verify(sentence, tried, least, together)
            if verdict.citations:
                return verdict
            first = first or verdict
        return first or _NOTHING

    def against(self, sentence: str, citations: Sequence[Citation]) -> tuple[Citation, ...]:
        """What other papers say to the contrary, or with another number for the same thing."""
        cited = {citation.paper.id for citation in citations}
        words = telling(sentence)
        found = (
            _citation(span, max(0.01, share(words, span.words)))
            for span in chain.from_iterable(self._spans.values())
            if span.evidence.paper.id not in cited
            and share(words, span.words) >= LEAST_DISPUTED
            and conflict(sentence, span.text)
        )
        return tuple(sorted(found, key=lambda citation: -citation.support)[:MOST_AGAINST])

    def mentions(self, heading: str) -> bool:
        """Whether the evidence has all words, numbers and names of a heading."""
        texts = "\n".join(f"{piece.paper.title}\n{piece.text}" for piece in self._evidence)
        words = telling(heading)
        return not missing(heading, texts) and held_of(words, frozenset(tokenize(texts))) == words

    def _overlap(self, words: frozenset[str], evidence: Evidence) -> float:
        return share(words, frozenset().union(*(span.words for span in self._spans[evidence.number])))

    def _verify(self, sentence: str, pieces: Sequence[Evidence], least: float, together: Sequence[str]) -> Verdict:
        """The verdict on a sentence by these pieces of evidence together."""
        known = " ".join(f"{piece.paper.title} {piece.paper.file}" for piece in pieces)
        not_found = missing(sentence, "\n".join(piece.text for piece in pieces), known)
        if not_found:
            return Verdict((), f"{' and '.join(not_found)} cannot be found in it")
        spans = [span for piece in pieces for span in self._spans[piece.number]]
        if together:
            rows = [span for span in spans if all(_holds(span.text, cell) for cell in together)]
            if not rows:
                return Verdict((), "no row of it has these values together")
        chosen = _chosen(sentence, spans)
        if chosen and _denied(sentence, chosen):
            agreeing = [p for p in spans if not (contradicts(sentence, p.text) or gives_another(sentence, p.text))]
            chosen = _chosen(sentence, agreeing)
            if not chosen or _denied(sentence, chosen):
                return Verdict((), "it says the opposite")
        if together and not any(span in chosen for span in rows):
            chosen = sorted({*chosen, rows[0]}, key=lambda span: span.start)
        if len(pieces) > 1 and any(len(held_of(telling(sentence), span.words)) < 2 for span in chosen):
            return Verdict((), "they do not say this together")
        if chosen and (word := unsaid(sentence, _joined(chosen))):
            return Verdict((), f"it does not say “{word}”")
        if loose := unbound(sentence, [span.text for span in chosen], known, several=len(pieces) > 1):
            return Verdict((), f"it does not say this of {loose}")
        support = self._support(sentence, chosen, known, least) if chosen else 0.0
        if support < least:
            return Verdict((), "it does not say this")
        return Verdict(tuple(_citation(span, support) for span in chosen))

    def _support(self, sentence: str, spans: Sequence[_Span], known: str, least: float) -> float:
        """0 to 1; 1 for a literal quote. Meaning is only measured where it can still lift the score to `least`."""
        quote = _joined(spans)
        words = wording(sentence, quote, known)
        if self._embedder is None or words == 1 or (1 - MEANING) * words + MEANING < least:
            return words
        similarity = max(0.0, self._cosine(self._embedder, sentence, quote))
        return min(1.0, (1 - MEANING) * words + MEANING * similarity)

    def _cosine(self, embedder: Embedder, *texts: str) -> float:
        if new := [text for text in texts if text not in self._vectors]:
            self._vectors.update(zip(new, embedder.embed_passages(new), strict=True))
        one, other = (self._vectors[text] for text in texts)
        return float(one @ other)


_NOTHING = Verdict((), "no evidence says this")


def citation(evidence: Evidence, start: int, end: int, support: float) -> Citation:
    """The citation of the span [start, end) of the evidence's text, cut to its longest part on one page.

    Raises ValueError for a span without words.
    """
    parts = _page_parts(evidence, start, end)
    first, last = max(parts, key=lambda part: part[1] - part[0], default=(start, start))
    at = evidence.start
    return Citation(evidence.paper, at + first, at + last, evidence.text[first:last], evidence.number, support)


def _citation(span: _Span, support: float) -> Citation:
    return citation(span.evidence, span.start, span.end, support)


def _spans(evidence: Evidence) -> Iterator[_Span]:
    for row in chain.from_iterable(_split_rows(evidence.text, *found) for found in sentence_spans(evidence.text)):
        for start, end in _page_parts(evidence, *row):
            text = evidence.text[start:end]
            yield _Span(evidence, start, end, text)


def _split_rows(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span of a sentence; if it is a table, the span of each row."""
    if not _CELLS_APART.search(text, start, end):
        yield start, end
        return
    for match in re.compile(r"[^\n]*\S[^\n]*").finditer(text, start, end):
        yield match.span()


def _holds(text: str, cell: str) -> bool:
    """Whether a text has a cell's words, in their order, as whole words."""
    return f" {words_of(cell)} " in f" {words_of(text)} "


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


def _chosen(sentence: str, spans: Sequence[_Span]) -> list[_Span]:
    """The few spans that together match a sentence best and have all its numbers, in reading order; else none.

    Greedy: next is the span with the most missing numbers, then with the highest Dice coefficient. A further span must
    add a number or a tenth of the sentence's words.
    """
    words, lacking = telling(sentence), values_of(sentence)
    open_words = words
    chosen: list[_Span] = []
    while len(chosen) < MOST_QUOTES and (left := [span for span in spans if span not in chosen]):
        best = max(left, key=lambda span: (len(lacking & span.values), dice(open_words, words, span.words)))
        gain = held_of(open_words, best.words)
        brings_number = bool(lacking & best.values)
        if chosen and not brings_number and len(gain) < 0.1 * len(words):
            break
        if not chosen and not gain and not brings_number:
            break
        chosen.append(best)
        open_words -= gain
        lacking -= best.values
    return [] if lacking else sorted(chosen, key=lambda span: (span.evidence.number, span.start))


def _denied(sentence: str, chosen: Sequence[_Span]) -> bool:
    """Whether the quotes deny a sentence: all together, the nearest one alone, or one by giving another number."""
    words = telling(sentence)
    nearest = max(chosen, key=lambda span: dice(words, words, span.words))
    alone = share(words, nearest.words) >= NEARLY_ALL and contradicts(sentence, nearest.text)
    return (
        alone
        or contradicts(sentence, _joined(chosen))
        or (len(chosen) > 1 and any(gives_another(sentence, span.text) for span in chosen))
    )


def _joined(spans: Sequence[_Span]) -> str:
    return " ".join(span.text for span in spans)
