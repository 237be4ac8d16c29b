"""Runs the check of statements over labelled answers, and saves what it showed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter

from folio.errors import ModelError, command
from folio.evaluate.grounding_metrics import AnswerOutcome, StatementResult
from folio.evaluate.labelled_answers import LabelledAnswer
from folio.evaluate.runner import MAX_CONSECUTIVE_FAILURES, FailedQuestion
from folio.evaluate.saved_runs import load_run, save_run
from folio.evaluate.statement_check import Statement, StatementCheck
from folio.types import Progress

# Increase when older saved runs can no longer be read.
FORM = 1


@dataclass(frozen=True)
class GroundingRun:
    """One run over labelled answers: its configuration, and what became of every statement.

    Saved as JSON under these field names; older files must stay readable.
    """

    name: str
    made: datetime
    sources: tuple[str, ...]  # the files and folders of the labelled answers
    check: str
    settings: dict[str, str]
    answers: tuple[AnswerOutcome, ...]
    failed: tuple[FailedQuestion, ...]
    notes: tuple[str, ...]
    seconds: float
    grounding_form: int = FORM


def run(
    answers: Sequence[LabelledAnswer],
    check: StatementCheck,
    *,
    sources: Sequence[Path],
    made: datetime,
    settings: Mapping[str, str],
    progress: Progress,
) -> GroundingRun:
    """Check every answer. progress: called with a label, the answers done and their total.

    An answer on which a verifier fails is recorded and the run continues, until MAX_CONSECUTIVE_FAILURES in a row.
    Raises ModelError if every answer failed.
    """
    began = perf_counter()
    found: list[AnswerOutcome] = []
    failed: list[FailedQuestion] = []
    failures = 0
    for done, answer in enumerate(answers):
        progress("Checking", done, len(answers))
        try:
            found.append(_outcome(answer, check))
            failures = 0
        except ModelError as error:
            failed.append(FailedQuestion(answer.id, error.happened, error.remedy))
            failures += 1
            if not found and failures == min(MAX_CONSECUTIVE_FAILURES, len(answers)):
                raise
            if failures == MAX_CONSECUTIVE_FAILURES:
                break
    progress("Checking", len(answers), len(answers))
    left = len(answers) - len(found) - len(failed)
    return GroundingRun(
        "-".join(source.stem for source in sources),
        made,
        tuple(map(str, sources)),
        check.name,
        dict(settings),
        tuple(found),
        tuple(failed),
        tuple(_notes(answers, left)),
        perf_counter() - began,
    )


def _outcome(answer: LabelledAnswer, check: StatementCheck) -> AnswerOutcome:
    statements = [Statement(labelled.text, labelled.markers) for labelled in answer.statements]
    outcomes = check.outcomes(answer.question, statements, answer.evidence)
    results = tuple(
        StatementResult(s.text, s.label, s.kind, s.counted, found.outcome, found.rule, found.dangling)
        for s, found in zip(answer.statements, outcomes, strict=True)
    )
    return AnswerOutcome(
        answer.id, answer.model, results, answer.is_twin, answer.is_summary, answer.domain, answer.edits
    )


def _notes(answers: Sequence[LabelledAnswer], left: int) -> list[str]:
    notes = []
    if left:
        notes.append(f"Stopped after {MAX_CONSECUTIVE_FAILURES} failures in a row; answers not checked: {left}.")
    if lost := sum(answer.not_located for answer in answers):
        notes.append(f"Sentences that do not stand in their answer, and so were checked without markers: {lost}.")
    return notes


def save(path: Path, made: GroundingRun) -> None:
    """Save a run as JSON, replacing the file. Raises DiskFull."""
    save_run(path, made)


def load(path: Path) -> GroundingRun:
    """Load a saved run. Raises UsageError if the file is missing or is not one over labelled answers."""
    what, remedy = "a saved run over labelled answers", f"Save one: {command('evaluate --judged FILE --json RUN')}."
    return load_run(path, GroundingRun, ("grounding_form", FORM), what, remedy)
