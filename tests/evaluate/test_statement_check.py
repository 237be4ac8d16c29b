"""The check of an answer's statements as an evaluation calls it."""

from __future__ import annotations

import pytest

from folio.evaluate.statement_check import (
    Statement,
    StatementCheck,
    StatementOutcome,
    ValidatorCheck,
    marked_dangling,
)
from tests.helpers.factories import evidence_on

pytestmark = pytest.mark.fast

CHECK: StatementCheck = ValidatorCheck(None)
FUR = "The fur of a sea otter has 155,000 hairs on each square centimetre."
EVIDENCE = evidence_on(f"{FUR} It is dense.", "Kelp grows.")


def outcomes(*texts: str) -> list[StatementOutcome]:
    return CHECK.outcomes("What fur has it?", [Statement(text, (1,)) for text in texts], EVIDENCE)


def test_the_papers_words_are_quoted_and_others_reworded() -> None:
    assert outcomes(
        FUR,
        "A sea otter's fur has 155,000 hairs on each square centimetre of it.",
    ) == [StatementOutcome("quoted"), StatementOutcome("reworded")]


def test_the_rule_that_left_a_statement_out_has_no_words_of_it() -> None:
    assert outcomes("The fur of a sea otter has 90,000 hairs.", "Glaciers move slowly downhill.") == [
        StatementOutcome("left out", "number"),
        StatementOutcome("left out", "not found"),
    ]


def test_a_pronoun_without_its_statement_is_left_out() -> None:
    assert outcomes("The fur of a sea otter has 90,000 hairs.", "It is dense fur.", "The fur is dense.") == [
        StatementOutcome("left out", "number"),
        StatementOutcome("left out", "dangling"),
        StatementOutcome("reworded"),
    ]
    assert [outcome.outcome for outcome in outcomes("The fur is dense.", "It is dense fur.")] == [
        "reworded",
        "reworded",
    ]


def test_what_is_shown_with_a_pronoun_after_what_is_left_out_dangles() -> None:
    statements = [
        Statement("Kelp is a fish."),
        Statement("It grows."),
        Statement("They swim."),
        Statement("Otters swim."),
    ]
    shown, lost = StatementOutcome("reworded"), StatementOutcome("left out", "name")
    dangling = [outcome.dangling for outcome in marked_dangling(statements, [lost, shown, shown, shown])]
    assert dangling == [False, True, True, False]
