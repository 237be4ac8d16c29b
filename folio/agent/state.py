"""The state of a deep search: what its nodes read, and replace parts of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from folio.deep_types import (
    RELEVANT,
    Assessment,
    Assessor,
    Budget,
    DeepLimits,
    LibraryHit,
    LibraryPaper,
    OnEvent,
)
from folio.search.paper_filter import Selection
from folio.search.retriever import Retriever

Decision = Literal["reformulate", "expand", "offset", "answer"]


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for one part of the question, as its place in DeepState.parts."""

    text: str
    part: int
    unread: bool = False  # only papers of which nothing was read for this part


@dataclass(frozen=True, slots=True)
class Context:
    """A passage that was assessed for a part of the question."""

    hit: LibraryHit
    part: int
    assessment: Assessment
    rank: int = 0  # among those that were assessed with it

    @property
    def is_relevant(self) -> bool:
        return (self.assessment.relevance or 0) >= RELEVANT


@dataclass(frozen=True)
class DeepState:
    """Everything that a deep search knows. A node gets it and returns the fields that change."""

    question: str
    parts: tuple[str, ...] = ()  # the first is the whole question; then its sub-questions, if it has any
    queries: tuple[Query, ...] = ()  # of this round
    asked: tuple[str, ...] = ()  # all queries so far
    round: int = 0
    found: tuple[tuple[Query, tuple[LibraryPaper, ...]], ...] = ()  # the papers of each query of this round
    assessed: frozenset[int] = frozenset()  # ids of all passages assessed so far
    read: frozenset[tuple[int, str]] = frozenset()  # a part, and the id of a paper of which a passage was assessed
    contexts: tuple[Context, ...] = ()  # what was assessed above 0, in the order in which it was found
    decision: Decision = "answer"
    why: str = ""  # the decision
    is_cut: bool = False  # whether too little was found, and for want of a budget something was left undone
    chosen: tuple[LibraryHit, ...] = ()  # what the answer is made from, best first

    @property
    def to_cover(self) -> tuple[int, ...]:
        """The places of the parts that need evidence of their own: the sub-questions, if there are any."""
        return tuple(range(1, len(self.parts))) or (0,)

    @property
    def uncovered(self) -> tuple[int, ...]:
        """Those of them without a relevant passage."""
        covered = {context.part for context in self.contexts if context.is_relevant}
        return tuple(part for part in self.to_cover if part not in covered)

    @property
    def relevant(self) -> int:
        """How many passages are relevant."""
        return sum(context.is_relevant for context in self.contexts)


@dataclass(frozen=True)
class Tools:
    """What the nodes work with, for one question."""

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
