"""What a deep search knows, which its steps get and change, and what they work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from folio.deep.types import RELEVANT, Assessment, Assessor, Budget, DeepLimits, LibraryHit, LibraryPaper, OnEvent
from folio.search.filters import Selection
from folio.search.retriever import Retriever

Decision = Literal["reformulate", "expand", "offset", "answer"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query for one part of the question."""

    text: str
    part: int  # its index in DeepState.parts
    unread: bool = False  # search only papers without an assessed passage for this part


@dataclass(frozen=True, slots=True)
class Context:
    """A passage assessed for one part of the question."""

    hit: LibraryHit
    part: int
    assessment: Assessment
    rank: int = 0  # among the passages assessed with it

    @property
    def is_relevant(self) -> bool:
        return (self.assessment.relevance or 0) >= RELEVANT


@dataclass(frozen=True)
class DeepState:
    """Everything that a deep search knows. A step gets it and returns the fields that change."""

    question: str
    parts: tuple[str, ...] = ()  # the whole question, then its sub-questions if it has any
    queries: tuple[Query, ...] = ()  # of this round
    asked: tuple[str, ...] = ()  # all queries so far
    round: int = 0
    found: tuple[tuple[Query, tuple[LibraryPaper, ...]], ...] = ()  # the papers of each query of this round
    assessed: frozenset[int] = frozenset()  # ids of all passages assessed so far
    read: frozenset[tuple[int, str]] = frozenset()  # part, id of a paper with a passage assessed for it
    contexts: tuple[Context, ...] = ()  # passages assessed above 0, in the order of the search
    decision: Decision = "answer"
    why: str = ""  # the reason of the decision
    is_cut: bool = False  # too little evidence, and the budget left something undone
    chosen: tuple[LibraryHit, ...] = ()  # the evidence, best first

    @property
    def to_cover(self) -> tuple[int, ...]:
        """The indices of the parts that need evidence: the sub-questions if there are any, else the whole question."""
        return tuple(range(1, len(self.parts))) or (0,)

    @property
    def uncovered(self) -> tuple[int, ...]:
        """The parts of `to_cover` without a relevant passage."""
        covered = {context.part for context in self.contexts if context.is_relevant}
        return tuple(part for part in self.to_cover if part not in covered)

    @property
    def relevant(self) -> int:
        """The number of relevant passages."""
        return sum(context.is_relevant for context in self.contexts)


@dataclass(frozen=True)
class Tools:
    """What the steps of one search work with."""

    retriever: Retriever
    assessor: Assessor
    limits: DeepLimits
    budget: Budget
    selection: Selection
    on_event: OnEvent
    check_cancelled: Callable[[], None]

    @property
    def is_spent(self) -> bool:
        """Whether the budget allows no more searching."""
        return self.budget.out_of_time or (self.assessor.uses_model and self.budget.spent)


Update = dict[str, Any]  # fields of DeepState
