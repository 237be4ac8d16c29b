"""The check of an answer's statements as an evaluation calls it."""

from __future__ import annotations

from folio.evaluate.statement_check import Statement, StatementCheck, StatementOutcome, ValidatorCheck
from tests.helpers.factories import evidence_on

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
        StatementOutcome("left out", "values and names"),
        StatementOutcome("left out", "support"),
    ]


def test_a_pronoun_without_its_statement_dangles() -> None:
    assert outcomes("The fur of a sea otter has 90,000 hairs.", "It is dense.", "It is dense.", "Kelp grows.") == [
        StatementOutcome("left out", "values and names"),
        StatementOutcome("quoted", dangling=True),
        StatementOutcome("quoted", dangling=True),
        StatementOutcome("quoted"),
    ]
    assert not any(outcome.dangling for outcome in outcomes("The fur is dense.", "It is dense."))
