"""The check of an answer's statements, as an evaluation calls it: shown or left out, and by which rule.

This is the one place that knows which check Folio has: `check_of` builds it from the app.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from folio.grounding.verifier import SentenceVerifier, Verdict
from folio.protocols import Embedder
from folio.types import Evidence

if TYPE_CHECKING:
    from folio.app import App

# quoted: shown without a mark. reworded: shown, marked as the model's words.
Shown = Literal["quoted", "reworded", "left out"]

# Support from which a statement counts as the paper's own words
NEARLY_VERBATIM = 0.95
# Reasons of the verifier contain words of the statement; a table of rules needs them without.
_RULES = (
    (re.compile(r".* cannot be found in it"), "values and names"),
    (re.compile(r"no row of it has these values together"), "table rows"),
    (re.compile(r"it says the opposite"), "negation"),
    (re.compile(r"they do not say this together"), "several quotes"),
    (re.compile(r"it does not say “.*”"), "unsaid words"),
    (re.compile(r"it does not say this of .*"), "binding"),
    (re.compile(r"it does not say this|no evidence says this"), "support"),
)
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
    return SentenceVerifierCheck(app.models.meaning)


class SentenceVerifierCheck:
    """The check by SentenceVerifier, which judges each statement by itself and asks no other verifier."""

    name = "SentenceVerifier"

    def __init__(self, meaning: Embedder | None) -> None:
        self._meaning = meaning

    def outcomes(
        self, question: str, statements: Sequence[Statement], evidence: Sequence[Evidence]
    ) -> list[StatementOutcome]:
        """See StatementCheck."""
        verifier = SentenceVerifier(evidence, self._meaning)
        found = [_outcome(verifier.verify(statement.text, statement.markers)) for statement in statements]
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


def _outcome(verdict: Verdict) -> StatementOutcome:
    if not verdict.citations:
        rule = next((rule for pattern, rule in _RULES if pattern.fullmatch(verdict.reason)), verdict.reason)
        return StatementOutcome("left out", rule)
    support = max(citation.support for citation in verdict.citations)
    return StatementOutcome("quoted" if support >= NEARLY_VERBATIM else "reworded")
