"""What a check showed of labelled answers, counted: shares of true and false statements, whole answers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from folio.evaluate.labelled_answers import (
    BAD,
    CONSISTENT,
    EDITED,
    FALSE,
    FILLER,
    GOOD,
    NOT_IN_EVIDENCE,
    SUPPORTED,
    UNFAITHFUL,
)
from folio.evaluate.metrics import Figure
from folio.evaluate.statement_check import Shown

# Share of the statements with this label that are shown with one of these outcomes.
_SHOWN: tuple[Shown, ...] = ("quoted", "reworded")
_SHARES: dict[str, tuple[str, tuple[Shown, ...]]] = {
    "true_shown": (SUPPORTED, _SHOWN),
    "true_quoted": (SUPPORTED, ("quoted",)),
    "false_unmarked": (FALSE, ("quoted",)),
    "false_shown": (FALSE, _SHOWN),
    "not_in_evidence_shown": (NOT_IN_EVIDENCE, _SHOWN),
    "unfaithful_shown": (UNFAITHFUL, _SHOWN),
    "good_shown": (GOOD, _SHOWN),
    "bad_shown": (BAD, _SHOWN),
}
NAMES = (*_SHARES, "whole", "dangling", "consistent_kept", "edited_caught", "balanced")
# Figures that are better when they are lower.
LOWER_IS_BETTER = frozenset(
    {"false_unmarked", "false_shown", "not_in_evidence_shown", "unfaithful_shown", "bad_shown", "dangling"}
)


@dataclass(frozen=True, slots=True)
class StatementResult:
    """A labelled statement and what became of it."""

    text: str
    label: str
    kind: str
    counted: bool  # see LabelledStatement
    outcome: Shown
    rule: str  # what left it out
    dangling: bool

    @property
    def is_shown(self) -> bool:
        return self.outcome != "left out"


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """A labelled answer and what became of its statements."""

    id: str
    model: str
    statements: tuple[StatementResult, ...]
    is_twin: bool
    is_summary: bool
    domain: str
    edits: tuple[str, ...]

    @property
    def supported(self) -> tuple[StatementResult, ...]:
        """The supported statements of an answer as it was written; none for a corrupted twin or a summary."""
        return () if self.is_twin else tuple(s for s in self.statements if s.label == SUPPORTED)

    @property
    def is_whole(self) -> bool:
        """Every supported statement is shown."""
        return bool(self.supported) and all(statement.is_shown for statement in self.supported)

    @property
    def is_gutted(self) -> bool:
        """The statement that answers, the first supported one, is left out."""
        return bool(self.supported) and not self.supported[0].is_shown

    @property
    def is_replaced(self) -> bool:
        """No statement of it is shown but filler, so that something else has to take its place."""
        return bool(self.supported) and not any(s.is_shown for s in self.statements if s.label != FILLER)

    @property
    def summary_label(self) -> str:
        """CONSISTENT or EDITED for a summary of SummEdits; "" for anything else."""
        return next((s.label for s in self.statements if s.label in (CONSISTENT, EDITED)), "")

    @property
    def is_kept(self) -> bool:
        """No statement is left out."""
        return all(statement.is_shown for statement in self.statements)


def figures(answers: Sequence[AnswerOutcome]) -> dict[str, Figure]:
    """All shares by name, each in [0, 1]; those that nothing measures are left out.

    The arrays have one number per answer, in the order given.
    """
    found = {
        name: _figure(answers, lambda answer, label=label, outcomes=outcomes: _share(answer, label, outcomes))  # type: ignore[misc]
        for name, (label, outcomes) in _SHARES.items()
    }
    found["whole"] = _figure(answers, lambda answer: (answer.is_whole, bool(answer.supported)))
    found["dangling"] = _figure(answers, _dangling)
    found["consistent_kept"] = _figure(answers, lambda answer: _among(answer, CONSISTENT, answer.is_kept))
    found["edited_caught"] = _figure(answers, lambda answer: _among(answer, EDITED, not answer.is_kept))
    found["balanced"] = _balanced(found["consistent_kept"], found["edited_caught"])
    return {name: figure for name, figure in found.items() if figure.questions}


def counted(answers: Iterable[AnswerOutcome], label: str) -> list[StatementResult]:
    """The statements with this label, each once."""
    return [s for answer in answers for s in answer.statements if s.label == label and s.counted]


def _share(answer: AnswerOutcome, label: str, outcomes: tuple[Shown, ...]) -> tuple[float, float]:
    labelled = counted([answer], label)
    return sum(statement.outcome in outcomes for statement in labelled), len(labelled)


def _dangling(answer: AnswerOutcome) -> tuple[float, float]:
    return sum(s.dangling for s in answer.statements), sum(s.is_shown for s in answer.statements)


def _among(answer: AnswerOutcome, label: str, holds: bool) -> tuple[float, float]:
    """Whether something holds, for the summaries with this label."""
    return float(answer.summary_label == label and holds), float(answer.summary_label == label)


def _balanced(kept: Figure, caught: Figure) -> Figure:
    """The mean of both shares, as a mean over all summaries in which either kind has half of the weight."""
    consistent, edited = kept.denominator.sum(), caught.denominator.sum()
    if not consistent or not edited:
        return Figure(np.zeros_like(kept.numerator), np.zeros_like(kept.numerator))
    return Figure(
        kept.numerator / consistent + caught.numerator / edited,
        kept.denominator / consistent + caught.denominator / edited,
    )


def _figure(answers: Sequence[AnswerOutcome], parts: Callable[[AnswerOutcome], tuple[float, float]]) -> Figure:
    table = np.array([parts(answer) for answer in answers], dtype=np.float64).reshape(-1, 2)
    return Figure(table[:, 0], table[:, 1])
