"""The order of another reranker, and a small reader's opinion of its best passages."""

from __future__ import annotations

from collections.abc import Sequence

from folio.protocols import PassageReader, Reranker, TermWeights
from folio.search.question import Question
from folio.text import tokenize
from folio.types import Hit, Paper, Passage

# How many passages are read; how much their score, divided by the largest, counts beside the reader's log-odds; and
# what these are kept within. Between 16 and 32 the weight changes little (LOG.md).
READ, SCORE_WEIGHT, MOST_ODDS = 8, 24.0, 12.0
# What is taken from the log-odds of a text without any number of the question: to a small model one number is much like
# another.
WITHOUT_NUMBERS = 4.0


class ReaderReranker:
    """Reads the best passages of another reranker together with the question, which is slow and sees more."""

    name = "built in"

    def __init__(self, first: Reranker, reader: PassageReader) -> None:
        self.reads = first.reads
        self._first = first
        self._reader = reader

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """See protocols.Reranker. Raises ModelError."""
        first = self._first.scores(question, hits, weights)
        order = sorted(range(len(hits)), key=lambda place: -first[place])
        top, rest = order[:READ], order[READ:]
        read = self._reader.read(question, [passage_of(hits[place]) for place in top])
        numbers = Question(question).numbers
        scores = [0.0] * len(hits)
        for place, reading in zip(top, read, strict=True):
            matched = first[place] / first[top[0]] if first[top[0]] > 0 else 0.0
            own = SCORE_WEIGHT * matched + odds(reading.answers, numbers, hits[place].text) + MOST_ODDS
            scores[place] = own / (SCORE_WEIGHT + 2 * MOST_ODDS)
        lowest = min((scores[place] for place in top), default=0.0)
        for place in rest:  # behind those that were read, in their order
            scores[place] = 0.99 * lowest * (first[place] / first[rest[0]] if first[rest[0]] > 0 else 0.0)
        return scores


def odds(read: float, numbers: frozenset[str], text: str) -> float:
    """A reader's log-odds within MOST_ODDS, less what the text lacks of the question's numbers."""
    missing = len(numbers.difference(tokenize(text))) / len(numbers) if numbers else 0.0
    return max(-MOST_ODDS, min(MOST_ODDS, read - WITHOUT_NUMBERS * missing))


def passage_of(hit: Hit) -> Passage:
    """What the reader reads of a hit."""
    return Passage(above(hit.paper, hit.chunk.start, hit.chunk.end), hit.text)


def above(paper: Paper, start: int, end: int) -> str:
    """What is read above the characters [start, end) of a paper: its title and the section."""
    return " · ".join(part for part in (paper.title, paper.sections.shown(start, end)) if part)
