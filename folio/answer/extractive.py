"""Question + evidence -> an answer in the papers' own sentences. No model writes anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from folio.answer import followup
from folio.answer.question_type import ASKING, asks_for_number, gives_number
from folio.grounding.conflicts import conflict
from folio.grounding.entities import facts
from folio.grounding.verifier import SentenceVerifier, citation
from folio.protocols import TermWeights, TokenEmbedder
from folio.search.late_interaction import Matches, evidence_coverage, matches
from folio.text import coverage, sentence_spans, tokenize
from folio.types import ANALYSIS, SUMMARY, Answer, Evidence, Sentence, Style


@dataclass(frozen=True, slots=True)
class _Scored:
    """A sentence of the evidence, where it stands and how well it answers."""

    evidence: Evidence
    start: int  # offsets in the evidence's text
    end: int
    score: float

    @property
    def text(self) -> str:
        return self.evidence.text[self.start : self.end]


# How many sentences an extractive answer has at most, and how close to the best the others must come.
MOST_SENTENCES = 3
CLOSE_ENOUGH = 0.85
# The same for the analysis of a report, which follows these sentences as its summary.
MOST_DETAILS = 8
DETAIL_ENOUGH = 0.6
# What a sentence's score is of: how well its words match the question's, and the share of the question's words that
# it or its paper's title holds as they are.
MATCHED, HELD = 0.77, 0.23
# Below this the evidence does not speak of what is asked; see LOG.md for what it refuses rightly and wrongly.
LEAST_CONFIDENCE = 0.58
# By so much more a sentence must speak of what is asked when it is to give a number: papers are full of numbers.
NUMBER_NEEDS = 0.04
# A sentence of fewer or more words is a heading, a caption's label or a run of table cells.
WORDS = (5, 90)
# How a list's item begins, how a whole sentence ends, and what only a table of contents holds.
_BULLET = re.compile(r"(?:[•▪‣*–-]|\(?\d{1,2}[.)])\s+")
_WHOLE = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_LEADERS = re.compile(r"(?:\. ?){4,}")


class ExtractiveAnswerer:
    """The sentences of the evidence that answer best, quoted word for word."""

    name = "extractive (built in)"
    notice = ""

    def __init__(
        self, embedder: TokenEmbedder, term_weights: Callable[[str], TermWeights], *, evidence_tokens: int
    ) -> None:
        """evidence_tokens: of the evidence that is looked through at most."""
        self.confidence: float | None = None  # of the last answer: how much of the question its evidence speaks of
        self._embedder = embedder
        self._term_weights = term_weights
        self.evidence_tokens = evidence_tokens

    def sentences(self, question: str, evidence: Sequence[Evidence], style: Style = "plain") -> Iterator[Sentence]:
        """See protocols.Answerer."""
        scored = self._score(question, evidence)
        if not scored or self.confidence is None or self.confidence < LEAST_CONFIDENCE:
            return
        judge = SentenceVerifier(evidence, None)
        best = scored[0].score
        answering = _differing(place for place in scored if place.score >= CLOSE_ENOUGH * best)[:MOST_SENTENCES]
        for place in answering:
            yield _sentence(place, judge, SUMMARY if style == "report" else "")
        if style == "report":
            near = [place for place in scored if place.score >= DETAIL_ENOUGH * best]
            details = _differing([*answering, *near])[len(answering) :][:MOST_DETAILS]
            for paper in dict.fromkeys(place.evidence.paper for place in details):
                own = (place for place in details if place.evidence.paper == paper)
                for place in sorted(own, key=lambda place: place.evidence.start + place.start):
                    yield _sentence(place, judge, f"{ANALYSIS}/{paper.title or paper.file}")

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer."""
        return followup.standalone(question, history)

    def _score(self, question: str, evidence: Sequence[Evidence]) -> list[_Scored]:
        """Every sentence of the evidence, best first; and what the evidence is worth as a whole, in `confidence`.

        A paper's title counts for its sentences: a question names the paper, which a sentence of it seldom does.
        """
        weights = {term: weight for term, weight in self._term_weights(question).items() if term not in ASKING}
        read = matches(self._embedder, question, [(piece.paper.title, piece.text) for piece in evidence], weights)
        self.confidence = _confidence(question, evidence, read)
        found = [
            _Scored(piece, start, end, MATCHED * match.sentence(start, end) + HELD * _held(weights, piece, start, end))
            for piece, match in zip(evidence, read, strict=True)
            for start, end in statements(piece.text)
        ]
        return sorted(found, key=lambda place: (-place.score, place.evidence.number, place.start))


def _confidence(question: str, evidence: Sequence[Evidence], read: Sequence[Matches]) -> float:
    """How much of a question the evidence speaks of, 0 to 1.

    Where a number is asked for, what counts is the sentence with a number that speaks of most of it: the evidence as a
    whole speaks of everything that a paper is about, whether it gives the value or not.
    """
    if not asks_for_number(question):
        return evidence_coverage(read)
    told = (
        match.coverage(start, end)
        for piece, match in zip(evidence, read, strict=True)
        for start, end in sentence_spans(piece.text)
        if gives_number(piece.text[start:end], question)
    )
    return max(0.0, max(told, default=0.0) - NUMBER_NEEDS)


def _held(weights: TermWeights, piece: Evidence, start: int, end: int) -> float:
    return coverage(weights, tokenize(f"{piece.paper.title} {piece.text[start:end]}"))


def _sentence(place: _Scored, judge: SentenceVerifier, section: str) -> Sentence:
    quote = citation(place.evidence, place.start, place.end, 1.0)
    return Sentence(_as_sentence(quote.quote), (quote,), judge.against(quote.quote, (quote,)), section)


def _differing(places: Iterable[_Scored]) -> list[_Scored]:
    """These places without those that say again what one before them says.

    With other numbers a sentence says something else, unless another paper gives them for the same thing: then it is
    shown as a disagreement.
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
    return frozenset(facts(text).quantities)


def statements(text: str) -> list[tuple[int, int]]:
    """Spans of what can be quoted as an answer: whole sentences and list items, no headings and contents lines.

    A sentence that ends in a colon takes along what it announces.
    """
    found: list[tuple[int, int]] = []
    announced: int | None = None
    for start, end in sentence_spans(text):
        bullet = _BULLET.match(text, start, end)
        begin = bullet.end() if bullet else start
        words = len(text[begin:end].split())
        if text[end - 1] == ":" and words >= WORDS[0]:
            announced = begin
            continue
        if announced is not None and len(text[announced:end].split()) <= WORDS[1]:
            begin = announced
        announced = None
        is_whole = bool(bullet) or bool(_WHOLE.search(text, begin, end))
        if is_whole and WORDS[0] <= words <= WORDS[1] and not _LEADERS.search(text, begin, end):
            found.append((begin, end))
    return found


def _as_sentence(quote: str) -> str:
    """A quote on one line, with dots where the page's edge cut the sentence."""
    line = " ".join(quote.split())
    before = "… " if line[:1].islower() else ""
    after = "" if _WHOLE.search(line) or line.endswith(":") else " …"
    return f"{before}{line}{after}"
