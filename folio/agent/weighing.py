"""Says what the evidence of a deep answer is worth as a whole, once the answer is there."""

from __future__ import annotations

from folio.answer.claims import compared
from folio.answer.deep_confidence import deep_confidence
from folio.answer.open_questions import open_questions
from folio.answer_types import Answer
from folio.citation_label import sure_year
from folio.deep_types import (
    MOST_RELEVANCE,
    RELEVANT,
    Budget,
    Comparer,
    DeepLimits,
    DeepTrace,
    EvidenceScored,
    NamedClaim,
)
from folio.errors import ModelError
from folio.evidence_profile import Age, Basis, EvidenceProfile
from folio.protocols import Embedder
from folio.search.retriever import Retriever
from folio.types import Paper


class EvidenceWeigher:
    """Weighs the evidence of answers from one library."""

    def __init__(
        self, retriever: Retriever, meaning: Embedder, limits: DeepLimits, comparer: Comparer | None = None
    ) -> None:
        """meaning: the built-in embedder. comparer: a model that says what papers agree on; None for rules alone."""
        self._retriever = retriever
        self._meaning = meaning
        self._limits = limits
        self._comparer = comparer

    def profile(self, answer: Answer, trace: DeepTrace) -> EvidenceProfile | None:
        """What there is to say; None for a refusal and a remark.

        trace: of the search for it; what it left of the budget may be used. Ctrl-C, a model that fails and a budget
        that is spent leave the comparison to the rules. Raises ModelError for the built-in embedder, StoreDamaged.
        """
        if not answer.sentences:
            return None
        question = answer.standalone_question
        relevant = [piece for piece in answer.evidence if piece.score >= RELEVANT / MOST_RELEVANCE]
        named: list[NamedClaim] = []
        budget = Budget(max(0, self._limits.calls - trace.calls), max(0.0, self._limits.seconds - trace.seconds))
        if self._comparer and len({piece.paper.id for piece in relevant}) > 1:
            try:
                named = self._comparer.compare(question, relevant, budget)
            except (KeyboardInterrupt, ModelError):
                named = []
        found = compared(relevant, named)
        cited = list(dict.fromkeys(citation.paper for citation in answer.citations))
        papers = list(dict.fromkeys([*(piece.paper for piece in relevant), *cited]))
        return EvidenceProfile(
            basis_of(answer, trace),
            None if self._comparer else deep_confidence(question, trace.events),
            found.agreements,
            found.differences,
            open_questions(question, papers, self._text, self._meaning),
            age_of(cited),
            self._comparer.name if self._comparer and named else "",
            budget.calls,
        )

    def _text(self, paper: Paper) -> str:
        return self._retriever.text(paper.id, 0, paper.length)


def basis_of(answer: Answer, trace: DeepTrace) -> Basis:
    """What an answer rests on, counted."""
    scores = [event.assessment.relevance or 0 for event in trace.events if isinstance(event, EvidenceScored)]
    cited = {quote.paper for sentence in answer.sentences for quote in sentence.citations}
    papers = [paper for paper in cited if not (paper.flag and paper.flag.is_grave)]
    relevant = sum(score >= RELEVANT for score in scores)
    return Basis(len(papers), relevant, len(scores), len(answer.sentences), answer.dropped)


def age_of(papers: list[Paper]) -> Age:
    """The years of these papers, as far as they are sure."""
    years = [sure_year(paper.metadata) for paper in papers]
    known = sorted(year for year in years if year is not None)
    return Age(tuple(known), len(years) - len(known))
