"""Scores passages for a deep search without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from folio.answer.confidence import LEAST_CONFIDENCE, confidence
from folio.answer_types import Evidence
from folio.deep.types import MOST_RELEVANCE, RELEVANT, Assessment, Budget
from folio.papers.model import Hit
from folio.protocols import TermWeights, TokenEmbedder
from folio.question.kind import ASKING
from folio.question.question import Question
from folio.search.late_interaction import matches


class BuiltinAssessor:
    """Scores passages without a model, by the built-in answerer's confidence. Rules give the parts and rewordings."""

    name = "built in"
    uses_model = False

    def __init__(self, embedder: TokenEmbedder, term_weights: Callable[[Question], TermWeights]) -> None:
        self._embedder = embedder
        self._term_weights = term_weights

    def parts(self, question: str, budget: Budget) -> list[str] | None:
        """None: use rules."""
        return None

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        """The confidence of each passage as its relevance."""
        part = Question(question)
        weights = {term: weight for term, weight in self._term_weights(part).items() if term not in ASKING}
        evidence = [Evidence(1, hit.paper, hit.chunk.start, hit.chunk.end, hit.text, (hit,)) for hit in hits]
        if budget.out_of_time:
            yield from (Assessment(None) for _ in hits)
            return
        matched = matches(self._embedder, question, [(hit.paper.title, hit.text) for hit in hits], weights)
        for piece, match in zip(evidence, matched, strict=True):
            # Whole passages are scored: a sentence with the number may be split, or be the row of a table.
            sure = confidence(part, [piece], [match], weights, needs_number=False)
            yield Assessment(relevance_of(sure))

    def rephrase(self, question: str, earlier: Sequence[str], budget: Budget) -> list[str]:
        """[]: use rules."""
        return []


def relevance_of(sure: float) -> int:
    """A confidence (answer/confidence.py) as a relevance: RELEVANT at the threshold of refusal, 10 at 1."""
    if sure >= LEAST_CONFIDENCE:
        above = (sure - LEAST_CONFIDENCE) / (1 - LEAST_CONFIDENCE)
        return min(MOST_RELEVANCE, RELEVANT + int((MOST_RELEVANCE - RELEVANT) * above))
    return min(RELEVANT - 1, int(RELEVANT * sure / LEAST_CONFIDENCE))
