"""The check of statements, run over labelled answers, and what became of every statement, saved.

`check_of` is the one place that knows which check Folio has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Literal, Protocol

from benchmarks.grounding.answers import CONSISTENT, EDITED, FILLER, SUPPORTED, LabelledAnswer
from folio.answer.parser import ParsedSentence
from folio.answer.validation import Validator
from folio.answer_types import Evidence, RejectedSentence
from folio.errors import ModelError
from folio.evaluate.runner import MAX_CONSECUTIVE_FAILURES, FailedQuestion, load_run
from folio.evaluate.runner import save as save_run
from folio.grounding.grounder import Finding, Grounder
from folio.papers.model import Progress
from folio.protocols import Verifier

if TYPE_CHECKING:
    from folio.app import App

# The check

# quoted: the paper's sentence is shown in its place. reworded: shown, marked as the model's words.
Shown = Literal["quoted", "reworded", "left out"]

# Words that refer to the statement before, at the beginning of a statement.
_REFERS_BACK = re.compile(r"(?:it|they|he|she|this|these|those|its|their|his|her|such|both)\b", re.I)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of an answer, without markers, and the evidence numbers that its markers name."""

    text: str
    markers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """What the check makes of a statement."""

    outcome: Shown
    rule: str = ""  # the rule or reason that left it out; "" for a statement that is shown
    dangling: bool = False  # shown although its subject stood in a statement that is left out


class StatementCheck(Protocol):
    """Decides what of an answer is shown."""

    name: str  # of the check, with its verifier: recorded with a run

    def outcomes(
        self, question: str, statements: Sequence[Statement], evidence: Sequence[Evidence]
    ) -> list[StatementOutcome]:
        """One for each statement of an answer, in order. Raises ModelError if a verifier fails."""
        ...


def check_of(app: App) -> StatementCheck:
    """The check that the app's answers go through, with the verifier that the settings choose."""
    return ValidatorCheck(app.models.verifier())


class ValidatorCheck:
    """What an answer of a chat model goes through, without the model: the veto, and the verifier if there is one."""

    def __init__(self, verifier: Verifier | None) -> None:
        self._verifier = verifier
        self.name = f"verified by {verifier.name}" if verifier else "no verifier"

    def outcomes(
        self, question: str, statements: Sequence[Statement], evidence: Sequence[Evidence]
    ) -> list[StatementOutcome]:
        """See StatementCheck."""
        grounder = _Recorder(evidence)
        parts = (ParsedSentence(statement.text, statement.markers) for statement in statements)
        rejected = {
            part.text.casefold(): StatementOutcome("left out", part.rule)
            for part in Validator(grounder, self._verifier).check(parts)
            if isinstance(part, RejectedSentence)
        }
        # A quoted statement is shown as the sentence that it is near.
        shown = {text: StatementOutcome(each) for text, each in grounder.found.items() if each != "left out"}
        made = shown | rejected
        # A statement without any outcome says that something was not found, or only leads in.
        found = [
            made.get(statement.text.casefold(), StatementOutcome("left out", "refusal")) for statement in statements
        ]
        return marked_dangling(statements, found)


@dataclass
class _Recorder(Grounder):
    """A grounder that remembers what it finds, by the statement."""

    found: dict[str, Shown] = field(default_factory=dict, init=False)

    def find(
        self, statement: str, support: Sequence[int] = (), pieces: Sequence[int] = (), *, leads_in: bool = False
    ) -> Finding:
        finding = super().find(statement, support, pieces, leads_in=leads_in)
        self.found[statement.casefold()] = finding.outcome
        return finding


def marked_dangling(statements: Sequence[Statement], outcomes: Sequence[StatementOutcome]) -> list[StatementOutcome]:
    """The outcomes, with those marked that are shown, begin with a pronoun, and follow one left out or dangling.

    For a check that shows statements as they were written; one that writes the subject in says itself what dangles.
    """
    found: list[StatementOutcome] = []
    for statement, outcome in zip(statements, outcomes, strict=True):
        lost = bool(found) and (found[-1].outcome == "left out" or found[-1].dangling)
        dangles = outcome.outcome != "left out" and lost and bool(_REFERS_BACK.match(statement.text))
        found.append(replace(outcome, dangling=dangles))
    return found


# What became of labelled statements


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


# Running

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
    what, remedy = (
        "a saved run over labelled answers",
        "Save one: python -m benchmarks.grounding --judged FILE --json RUN.",
    )
    return load_run(path, GroundingRun, ("grounding_form", FORM), what, remedy)
