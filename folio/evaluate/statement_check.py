"""The check of an answer's statements, as an evaluation calls it: shown or left out, and by which rule.

This is the one place that knows which check Folio has: `check_of` builds it from the app.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from folio.answer.output_parser import ParsedSentence
from folio.answer.validation import Validator
from folio.answer_types import Evidence, RejectedSentence, Sentence
from folio.grounding.grounder import Grounder
from folio.protocols import Verifier

if TYPE_CHECKING:
    from folio.app import App

# quoted: shown without a mark. reworded: shown, marked as the model's words.
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
        validator = Validator(Grounder(evidence), self._verifier)
        parts = (ParsedSentence(statement.text, statement.markers) for statement in statements)
        made: dict[str, StatementOutcome] = {}
        for part in validator.check(parts):
            if isinstance(part, RejectedSentence):
                made[part.text.casefold()] = StatementOutcome("left out", part.rule)
            elif isinstance(part, Sentence) and not part.instead_of:
                made[part.text.casefold()] = StatementOutcome(part.outcome)
        # A statement without any outcome says that something was not found, or only leads in.
        found = [
            made.get(statement.text.casefold(), StatementOutcome("left out", "refusal")) for statement in statements
        ]
        return marked_dangling(statements, found)


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
