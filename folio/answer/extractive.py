"""Question + evidence -> the sentences of the papers that answer best, quoted. No model writes anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from folio.answer import followup
from folio.answer.question_type import ASKING, asks_for_number, gives_number
from folio.answer_types import SUMMARY, Answer, Evidence, Section, Sentence, Style
from folio.grounding.conflicts import against, conflict
from folio.grounding.quantities import quantities
from folio.grounding.sentences import EvidenceSentence, citation, number_sentences
from folio.protocols import TermWeights, TokenEmbedder
from folio.search.late_interaction import Matches, evidence_coverage, matches
from folio.text import coverage, sentence_spans, tokenize


@dataclass(frozen=True, slots=True)
class _Scored:
    """A sentence of the evidence and how well it answers."""

    evidence: Evidence
    start: int  # offsets in the evidence's text
    end: int
    score: float

    @property
    def text(self) -> str:
        return self.evidence.text[self.start : self.end]


# Sentences in an answer, at most, and the fraction of the best score that each needs.
MAX_SENTENCES = 3
ANSWER_CUTOFF = 0.85
# The same for the analysis of a report, which follows these sentences as its summary.
MAX_DETAILS = 8
DETAIL_CUTOFF = 0.6
# Weights in a sentence's score: how well its words match the question's (late interaction), and the share of the
# question's words that occur literally in it or in its paper's title.
MATCH_WEIGHT, COVERAGE_WEIGHT = 0.77, 0.23
# Below this the question is refused. LOG.md has the questions refused rightly and wrongly.
LEAST_CONFIDENCE = 0.58
# Numeric questions need this much more coverage: papers are full of numbers.
NUMBER_MARGIN = 0.04
# A sentence with fewer or more words is a heading, a caption's label or a run of table cells.
WORDS = (5, 90)
# How a list item begins, how a complete sentence ends, and what only a table of contents has.
_BULLET = re.compile(r"(?:[•▪‣*–-]|\(?\d{1,2}[.)])\s+")
_WHOLE = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_LEADERS = re.compile(r"(?:\. ?){4,}")


class ExtractiveAnswerer:
    """Answers with the best sentences of the evidence, quoted word for word."""

    name = "extractive (built in)"
    quotes_only = True
    notice = ""
    failed = False

    def __init__(
        self, embedder: TokenEmbedder, term_weights: Callable[[str], TermWeights], *, evidence_tokens: int
    ) -> None:
        """evidence_tokens: limit for the evidence that is searched."""
        self.confidence: float | None = None
        self._embedder = embedder
        self._term_weights = term_weights
        self.evidence_tokens = evidence_tokens

    def sentences(self, question: str, evidence: Sequence[Evidence], style: Style = "plain") -> Iterator[Sentence]:
        """See protocols.Answerer."""
        scored = self._score(question, evidence)
        if scored and self.confidence is not None and self.confidence >= LEAST_CONFIDENCE:
            yield from self._best(scored, evidence, style)

    def closest(self, question: str, evidence: Sequence[Evidence], style: Style = "plain") -> Iterator[Sentence]:
        """The same without ever refusing: for an answer whose model failed."""
        if scored := self._score(question, evidence):
            yield from self._best(scored, evidence, style)

    def _best(self, scored: Sequence[_Scored], evidence: Sequence[Evidence], style: Style) -> Iterator[Sentence]:
        sentences = number_sentences(evidence)
        best = scored[0].score
        answering = _without_repeats(place for place in scored if place.score >= ANSWER_CUTOFF * best)[:MAX_SENTENCES]
        for place in answering:
            yield _sentence(place, sentences, SUMMARY if style == "report" else Section())
        if style == "report":
            near = [place for place in scored if place.score >= DETAIL_CUTOFF * best]
            details = _without_repeats([*answering, *near])[len(answering) :][:MAX_DETAILS]
            for paper in dict.fromkeys(place.evidence.paper for place in details):
                own = (place for place in details if place.evidence.paper == paper)
                for place in sorted(own, key=lambda place: place.evidence.start + place.start):
                    yield _sentence(place, sentences, Section("Analysis", paper.title or paper.file))

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer."""
        return followup.standalone(question, history)

    def _score(self, question: str, evidence: Sequence[Evidence]) -> list[_Scored]:
        """Every sentence of the evidence, best first. Sets `confidence`.

        A paper's title counts for its sentences: a question may name the paper, and its sentences seldom do.
        """
        weights = {term: weight for term, weight in self._term_weights(question).items() if term not in ASKING}
        found = matches(self._embedder, question, [(piece.paper.title, piece.text) for piece in evidence], weights)
        self.confidence = _confidence(question, evidence, found)
        scored = [
            _Scored(
                piece,
                start,
                end,
                MATCH_WEIGHT * match.sentence(start, end) + COVERAGE_WEIGHT * _coverage(weights, piece, start, end),
            )
            for piece, match in zip(evidence, found, strict=True)
            for start, end in statements(piece.text)
        ]
        return sorted(scored, key=lambda place: (-place.score, place.evidence.number, place.start))


def _confidence(question: str, evidence: Sequence[Evidence], found: Sequence[Matches]) -> float:
    """How much of a question the evidence covers, 0 to 1.

    A numeric question is measured by its best sentence with a number, less NUMBER_MARGIN: the evidence as a whole
    covers whatever the paper is about, whether or not it gives the value.
    """
    if not asks_for_number(question):
        return evidence_coverage(found)
    of_numbers = (
        match.coverage(start, end)
        for piece, match in zip(evidence, found, strict=True)
        for start, end in sentence_spans(piece.text)
        if gives_number(piece.text[start:end], question)
    )
    return max(0.0, max(of_numbers, default=0.0) - NUMBER_MARGIN)


def _coverage(weights: TermWeights, piece: Evidence, start: int, end: int) -> float:
    return coverage(weights, tokenize(f"{piece.paper.title} {piece.text[start:end]}"))


def _sentence(place: _Scored, sentences: Sequence[EvidenceSentence], section: Section) -> Sentence:
    quote = citation(place.evidence, place.start, place.end, 1.0)
    return Sentence(_as_sentence(quote.quote), (quote,), against(quote.quote, (quote,), sentences), section)


def _without_repeats(places: Iterable[_Scored]) -> list[_Scored]:
    """The sentences without those that repeat an earlier one.

    A sentence with other numbers is no repetition, unless another paper gives them for the same thing: then it is
    shown as a disagreement with the earlier one.
    """
    kept: list[_Scored] = []
    for place in places:
        if tokenize(place.text) and not any(_repeats(place, before) for before in kept):
            kept.append(place)
    return kept


def _repeats(place: _Scored, before: _Scored) -> bool:
    words, others = set(tokenize(place.text)), set(tokenize(before.text))
    if len(words & others) <= 0.8 * min(len(words), len(others)):
        return False
    apart = place.evidence.paper != before.evidence.paper
    return _numbers(place.text) == _numbers(before.text) or (apart and conflict(place.text, before.text))


def _numbers(text: str) -> frozenset[object]:
    return frozenset((number.value, number.unit) for number in quantities(text, units=False))


def statements(text: str) -> list[tuple[int, int]]:
    """Spans that can be quoted as an answer: complete sentences and list items, no headings or contents lines.

    A sentence that ends in a colon is joined with the one that it introduces.
    """
    found: list[tuple[int, int]] = []
    intro_start: int | None = None
    for start, end in sentence_spans(text):
        bullet = _BULLET.match(text, start, end)
        begin = bullet.end() if bullet else start
        words = len(text[begin:end].split())
        if text[end - 1] == ":" and words >= WORDS[0]:
            intro_start = begin
            continue
        if intro_start is not None and len(text[intro_start:end].split()) <= WORDS[1]:
            begin = intro_start
        intro_start = None
        is_whole = bool(bullet) or bool(_WHOLE.search(text, begin, end))
        if is_whole and WORDS[0] <= words <= WORDS[1] and not _LEADERS.search(text, begin, end):
            found.append((begin, end))
    return found


def _as_sentence(quote: str) -> str:
    """A quote on one line, with an ellipsis where the page break cut the sentence."""
    line = " ".join(quote.split())
    before = "… " if line[:1].islower() else ""
    after = "" if _WHOLE.search(line) or line.endswith(":") else " …"
    return f"{before}{line}{after}"
