"""A check of statements that does what it is told, and runs over the labelled sample with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.grounding import run
from benchmarks.grounding.answers import LabelledAnswer
from benchmarks.grounding.run import GroundingRun, Statement, StatementOutcome
from folio.answer_types import Evidence

LEFT_OUT = StatementOutcome("left out", "support")


class ListedCheck:
    """Quotes every statement, but those that it is given another outcome for."""

    name = "listed"

    def __init__(self, outcomes: Mapping[str, StatementOutcome]) -> None:
        self._outcomes = outcomes

    def outcomes(
        self, question: str, statements: Sequence[Statement], evidence: Sequence[Evidence]
    ) -> list[StatementOutcome]:
        return [self._outcomes.get(statement.text, StatementOutcome("quoted")) for statement in statements]


def listed_run(
    answers: Sequence[LabelledAnswer], outcomes: Mapping[str, StatementOutcome], name: str = "sample.jsonl"
) -> GroundingRun:
    """A run of which every statement has a known outcome."""
    return run.run(
        answers,
        ListedCheck(outcomes),
        sources=[Path(name)],
        made=datetime(2026, 11, 21, 12, tzinfo=UTC),
        settings={"TOP_K": "4"},
        progress=lambda label, done, of: None,
    )
