"""Passages scored without a model: how much of the question each covers, as the built-in answerer measures it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from folio.answer.answerability import LEAST_CONFIDENCE, confidence
from folio.answer.question_type import ASKING
from folio.answer_types import Evidence
from folio.deep_types import MOST_RELEVANCE, RELEVANT, Assessment, Budget
from folio.protocols import TermWeights, TokenEmbedder
from folio.search.late_interaction import matches
from folio.search.question import Question
from folio.types import Hit


class BuiltinAssessor:
    """See deep_types.Assessor. It takes no model calls; the search has rules for parts and for other words."""

    name = "built in"
    uses_model = False

    def __init__(self, embedder: TokenEmbedder, term_weights: Callable[[Question], TermWeights]) -> None:
        self._embedder = embedder
        self._term_weights = term_weights

    def parts(self, question: str, budget: Budget) -> list[str] | None:
        """See deep_types.Assessor."""
        return None

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        """See deep_types.Assessor."""
        asked = Question(question)
        weights = {term: weight for term, weight in self._term_weights(asked).items() if term not in ASKING}
        evidence = [Evidence(1, hit.paper, hit.chunk.start, hit.chunk.end, hit.text, (hit,)) for hit in hits]
        if budget.out_of_time:
            yield from (Assessment(None) for _ in hits)
            return
        found = matches(self._embedder, question, [(hit.paper.title, hit.text) for hit in hits], weights)
        for piece, match in zip(evidence, found, strict=True):
            # A sentence with the number may be split, or a table's row: the passage is what is scored here.
            sure = confidence(asked, [piece], [match], weights, needs_number=False)
            yield Assessment(relevance_of(sure))

    def rephrase(self, question: str, asked: Sequence[str], budget: Budget) -> list[str]:
        """See deep_types.Assessor."""
        return []


def relevance_of(sure: float) -> int:
    """A confidence (answerability.py) as a relevance: RELEVANT where the built-in answerer stops refusing, 10 at 1."""
    if sure >= LEAST_CONFIDENCE:
        above = (sure - LEAST_CONFIDENCE) / (1 - LEAST_CONFIDENCE)
        return min(MOST_RELEVANCE, RELEVANT + int((MOST_RELEVANCE - RELEVANT) * above))
    return min(RELEVANT - 1, int(RELEVANT * sure / LEAST_CONFIDENCE))
