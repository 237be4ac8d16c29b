"""Whether evidence holds a sentence up, and with which quotes. Pure, but for the embedder that it is given.

A sentence stands when a few quotes from one piece of evidence, or from those that it names together, hold its facts
(numbers, units, identifiers, names, quoted words), do not deny it, and say it: by their words and by their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from folio.grounding.conflicts import conflict
from folio.grounding.entities import missing, values_of
from folio.grounding.entity_binding import gives_another, unbound
from folio.grounding.negation import contradicts
from folio.grounding.overlap import dice, held_of, share, telling, tokens_of, unsaid, wording, words_of
from folio.protocols import Embedder
from folio.text import sentence_spans, stripped, tokenize
from folio.types import Citation, Evidence, Vectors

# Share of the cosine in support; the rest is the wording. The trials are in LOG.md.
MEANING = 0.2
# How much is enough: evidence that the writer named needs less than what the program looked up.
SUPPORT_NAMED = 0.77
SUPPORT_FOUND = 0.85
# Quotes behind one sentence at most, and passages that are shown to disagree with it.
MOST_QUOTES = 4
MOST_AGAINST = 2
# A passage with less than this share of a sentence's words speaks of something else, and cannot disagree with it.
LEAST_DISPUTED = 0.4
# A quote with this share of a sentence's words must not deny it by itself.
NEARLY_ALL = 0.6
# Two spaces inside a line part the cells of a table (reading_order.py).
_CELLS_APART = re.compile(r"\S {2,}\S")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Citations that hold a sentence up; or none, and why, in words that a writer can act on."""

    citations: tuple[Citation, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """A part of a sentence of the evidence that stands on one page."""

    evidence: Evidence
    start: int  # in the evidence's text
    end: int
    text: str

    @property
    def words(self) -> frozenset[str]:
        return tokens_of(self.text)

    @property
    def values(self) -> frozenset[str]:
        """Of its numbers."""
        return values_of(self.text)


class SentenceVerifier:
    """Judges sentences by one answer's evidence."""

    def __init__(self, evidence: Sequence[Evidence], embedder: Embedder | None) -> None:
        """embedder: measures nearness in meaning; without one, words alone decide."""
        self.count = len(evidence)
        self._evidence = evidence
        self._embedder = embedder
        self._places = {e.number: list(_places(e)) for e in evidence}
        self._vectors: dict[str, Vectors] = {}  # of sentences and quotes that were compared

    def judge(self, sentence: str, named: Sequence[int], together: Sequence[str] = ()) -> Verdict:
        """The quotes that hold a sentence up. named: numbers of the evidence that its writer gave.

        What it names is tried first, each piece alone and then together; after that, so that a wrong or missing number
        is mended rather than believed, every other piece, which must hold it better. together: what must stand in one
        and the same place, as the cells of a table's row do.
        """
        pieces = [self._evidence[number - 1] for number in named]
        alone = [self._held(sentence, [piece], SUPPORT_NAMED, together) for piece in pieces]
        if citations := tuple(chain.from_iterable(verdict.citations for verdict in alone)):
            return Verdict(citations)
        words = telling(sentence)
        others = [piece for piece in self._evidence if piece not in pieces]
        others.sort(key=lambda other: -self._overlap(words, other))
        attempts = [(pieces, SUPPORT_NAMED)] if len(pieces) > 1 else []
        attempts += [([other], SUPPORT_FOUND) for other in others]
        first = alone[0] if alone else None
        for tried, least in attempts:
            verdict = self._held(sentence, tried, least, together)
            if verdict.citations:
                return verdict
            first = first or verdict
        return first or _NOTHING

    def against(self, sentence: str, citations: Sequence[Citation]) -> tuple[Citation, ...]:
        """What other papers say of the same thing with another number, or to the contrary."""
        cited = {citation.paper.id for citation in citations}
        words = telling(sentence)
        found = (
            _citation(place, max(0.01, share(words, place.words)))
            for place in chain.from_iterable(self._places.values())
            if place.evidence.paper.id not in cited
            and share(words, place.words) >= LEAST_DISPUTED
            and conflict(sentence, place.text)
        )
        return tuple(sorted(found, key=lambda citation: -citation.support)[:MOST_AGAINST])

    def mentions(self, heading: str) -> bool:
        """Whether all that a heading says stands somewhere in the evidence."""
        texts = "\n".join(f"{piece.paper.title}\n{piece.text}" for piece in self._evidence)
        words = telling(heading)
        return not missing(heading, texts) and held_of(words, frozenset(tokenize(texts))) == words

    def _overlap(self, words: frozenset[str], evidence: Evidence) -> float:
        return share(words, frozenset().union(*(place.words for place in self._places[evidence.number])))

    def _held(self, sentence: str, pieces: Sequence[Evidence], least: float, together: Sequence[str]) -> Verdict:
        """The sentence held up by these pieces of evidence together."""
        known = " ".join(f"{piece.paper.title} {piece.paper.file}" for piece in pieces)
        lacking = missing(sentence, "\n".join(piece.text for piece in pieces), known)
        if lacking:
            return Verdict((), f"{' and '.join(lacking)} cannot be found in it")
        places = [place for piece in pieces for place in self._places[piece.number]]
        if together:
            rows = [place for place in places if all(_holds(place.text, cell) for cell in together)]
            if not rows:
                return Verdict((), "no row of it has these values together")
        chosen = _chosen(sentence, places)
        if chosen and _denied(sentence, chosen):
            agreeing = [p for p in places if not (contradicts(sentence, p.text) or gives_another(sentence, p.text))]
            chosen = _chosen(sentence, agreeing)
            if not chosen or _denied(sentence, chosen):
                return Verdict((), "it says the opposite")
        if together and not any(place in chosen for place in rows):
            chosen = sorted({*chosen, rows[0]}, key=lambda place: place.start)
        if len(pieces) > 1 and any(len(held_of(telling(sentence), place.words)) < 2 for place in chosen):
            return Verdict((), "they do not say this together")
        if chosen and (word := unsaid(sentence, _joined(chosen))):
            return Verdict((), f"it does not say “{word}”")
        if loose := unbound(sentence, [place.text for place in chosen], known, several=len(pieces) > 1):
            return Verdict((), f"it does not say this of {loose}")
        support = self._support(sentence, chosen, known, least) if chosen else 0.0
        if support < least:
            return Verdict((), "it does not say this")
        return Verdict(tuple(_citation(place, support) for place in chosen))

    def _support(self, sentence: str, places: Sequence[_Place], known: str, least: float) -> float:
        """0 to 1. 1 for a sentence that stands there word for word. Below `least`, meaning is not measured in vain."""
        quote = _joined(places)
        words = wording(sentence, quote, known)
        if self._embedder is None or words == 1 or (1 - MEANING) * words + MEANING < least:
            return words
        nearness = max(0.0, self._cosine(self._embedder, sentence, quote))
        return min(1.0, (1 - MEANING) * words + MEANING * nearness)

    def _cosine(self, embedder: Embedder, *texts: str) -> float:
        if new := [text for text in texts if text not in self._vectors]:
            self._vectors.update(zip(new, embedder.embed_passages(new), strict=True))
        one, other = (self._vectors[text] for text in texts)
        return float(one @ other)


_NOTHING = Verdict((), "no evidence says this")


def citation(evidence: Evidence, start: int, end: int, support: float) -> Citation:
    """The citation of the span [start, end) of the evidence's text: of its longest part on one page.

    Raises ValueError for a span without words.
    """
    parts = _page_parts(evidence, start, end)
    first, last = max(parts, key=lambda part: part[1] - part[0], default=(start, start))
    at = evidence.start
    return Citation(evidence.paper, at + first, at + last, evidence.text[first:last], evidence.number, support)


def _citation(place: _Place, support: float) -> Citation:
    return citation(place.evidence, place.start, place.end, support)


def _places(evidence: Evidence) -> Iterator[_Place]:
    for span in chain.from_iterable(_rows_apart(evidence.text, *span) for span in sentence_spans(evidence.text)):
        for start, end in _page_parts(evidence, *span):
            text = evidence.text[start:end]
            yield _Place(evidence, start, end, text)


def _rows_apart(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence's span; where it is a table instead, with cells apart, that of each row."""
    if not _CELLS_APART.search(text, start, end):
        yield start, end
        return
    for match in re.compile(r"[^\n]*\S[^\n]*").finditer(text, start, end):
        yield match.span()


def _holds(text: str, cell: str) -> bool:
    """Whether a cell's words stand in a text, as words."""
    return f" {words_of(cell)} " in f" {words_of(text)} "


def _page_parts(evidence: Evidence, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of the span [start, end) of the evidence that each stand on one page, without space around them."""
    pages, offset = evidence.paper.pages, evidence.start
    while start < end:
        page = pages.page_at(offset + start)
        page_end = pages.starts[page] - offset if page < len(pages.starts) else end
        stop = min(end, max(start + 1, page_end))
        part = stripped(evidence.text, start, stop)
        if part[0] < part[1]:
            yield part
        start = stop


def _chosen(sentence: str, places: Sequence[_Place]) -> list[_Place]:
    """The few places that together come nearest to a sentence and hold all its numbers, in reading order; else none.

    Taken first is what brings a number that is still missing, then what is most like the sentence (Dice's coefficient
    of their words); another one only as long as it brings a number or a good part of the words that are missing.
    """
    words, lacking = telling(sentence), values_of(sentence)
    open_words = words
    chosen: list[_Place] = []
    while len(chosen) < MOST_QUOTES and (left := [place for place in places if place not in chosen]):
        best = max(left, key=lambda place: (len(lacking & place.values), dice(open_words, words, place.words)))
        gain = held_of(open_words, best.words)
        brings_number = bool(lacking & best.values)
        if chosen and not brings_number and len(gain) < 0.1 * len(words):
            break
        if not chosen and not gain and not brings_number:
            break
        chosen.append(best)
        open_words -= gain
        lacking -= best.values
    return [] if lacking else sorted(chosen, key=lambda place: (place.evidence.number, place.start))


def _denied(sentence: str, chosen: Sequence[_Place]) -> bool:
    """Whether the quotes deny a sentence: all together, the one that comes nearest to it, or one by another number."""
    words = telling(sentence)
    nearest = max(chosen, key=lambda place: dice(words, words, place.words))
    alone = share(words, nearest.words) >= NEARLY_ALL and contradicts(sentence, nearest.text)
    return (
        alone
        or contradicts(sentence, _joined(chosen))
        or (len(chosen) > 1 and any(gives_another(sentence, place.text) for place in chosen))
    )


def _joined(places: Sequence[_Place]) -> str:
    return " ".join(place.text for place in places)
