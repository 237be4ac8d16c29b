"""What is counted of labelled answers: shares by label, whole answers, summaries."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from folio.evaluate.grounding_metrics import NAMES, figures
from folio.evaluate.labelled_answers import LabelledAnswer, LabelledStatement, load_judged
from folio.evaluate.metrics import interval
from folio.evaluate.statement_check import StatementOutcome
from tests.helpers.labelled import LEFT_OUT, listed_run
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

SAMPLE = load_judged(ROOT / "benchmarks" / "judged-sample.jsonl")
REWORDED = StatementOutcome("reworded")


def shares(answers: list[LabelledAnswer], outcomes: Mapping[str, StatementOutcome]) -> dict[str, tuple[float, float]]:
    """Of each figure, what is counted and out of how much."""
    found = figures(listed_run(answers, outcomes).answers)
    return {name: (figure.numerator.sum(), figure.denominator.sum()) for name, figure in found.items()}


def test_each_statement_counts_once_and_by_its_label() -> None:
    found = shares(
        SAMPLE,
        {
            "They were weighed each hour on bar scales.": REWORDED,
            "No sugar was given to them while the study ran.": LEFT_OUT,
            "The colonies gained 3 kg on average in May.": REWORDED,
            "Port Ellis: 1.1 m": LEFT_OUT,
            "Storms had broken the float twice.": LEFT_OUT,
            "It was trained on 20,000 pages.": REWORDED,
        },
    )
    assert found == {
        "true_shown": (8, 9),
        "true_quoted": (7, 9),
        "false_unmarked": (2, 4),
        "false_shown": (3, 4),
        "not_in_evidence_shown": (0, 1),
        "unfaithful_shown": (2, 2),
        "whole": (3, 4),  # the answer rated unfaithful has no supported statement
        "dangling": (0, 16),  # of everything shown, filler and twins too
    }


def test_gutted_and_replaced_answers() -> None:
    first, middle, filler = "Port Ellis: 2.4 m", "Saltness: 1.1 m", "The mean tidal ranges are:"
    (answer,) = [answer for answer in SAMPLE if answer.id == "judged-sample:3"]
    cases = {
        (): (True, False, False),
        (middle,): (False, False, False),
        (first,): (False, True, False),
        (first, middle): (False, True, True),
        (filler,): (True, False, False),
    }
    for texts, expected in cases.items():
        (outcome,) = listed_run([answer], dict.fromkeys(texts, LEFT_OUT)).answers
        assert (outcome.is_whole, outcome.is_gutted, outcome.is_replaced) == expected, texts


def test_a_twin_is_no_answer_of_its_own_but_may_dangle() -> None:
    lost = StatementOutcome("quoted", dangling=True)
    outcomes = {
        "The colonies gained 3 kg on average in May.": LEFT_OUT,
        "They were weighed each hour on bar scales.": lost,
    }
    found = shares(SAMPLE[1:2], outcomes)
    assert found == {"false_unmarked": (0, 1), "false_shown": (0, 1), "dangling": (1, 2)}


def summary(label: str, *texts: str) -> LabelledAnswer:
    statements = tuple(LabelledStatement(text, label) for text in texts)
    return LabelledAnswer(texts[0], "", "", SAMPLE[0].evidence, statements, is_summary=True)


def test_balanced_is_the_mean_of_both_kinds_of_summary() -> None:
    summaries = [
        summary("consistent", "A.", "B."),
        summary("consistent", "C."),
        summary("consistent", "D.", "E."),
        summary("consistent", "F."),
        summary("edited", "G.", "H."),
        summary("edited", "I."),
    ]
    run = listed_run(summaries, {"E.": LEFT_OUT, "H.": LEFT_OUT})
    found = figures(run.answers)
    assert {name: figure.value for name, figure in found.items()} == {
        "dangling": 0,
        "consistent_kept": 0.75,
        "edited_caught": 0.5,
        "balanced": 0.625,
    }
    low, high = interval(found["balanced"])
    assert 0 <= low < 0.625 < high <= 1
    assert "balanced" not in figures(run.answers[:4])


def test_every_figure_has_a_name() -> None:
    summaries = [summary("consistent", "A."), summary("edited", "B."), summary("good", "C."), summary("bad", "D.")]
    assert set(figures(listed_run([*SAMPLE, *summaries], {}).answers)) == set(NAMES)


def test_bad_statements_of_summaries_are_counted() -> None:
    found = shares([summary("good", "A.", "B."), summary("bad", "C.")], {"B.": LEFT_OUT, "C.": LEFT_OUT})
    assert (found["good_shown"], found["bad_shown"]) == ((1, 2), (0, 1))


@pytest.mark.parametrize("name", NAMES)
def test_shares_lie_between_0_and_1(name: str) -> None:
    summaries = [summary("consistent", "A."), summary("edited", "B."), summary("good", "C."), summary("bad", "D.")]
    for outcome in (LEFT_OUT, REWORDED, StatementOutcome("quoted", dangling=True)):
        texts = [statement.text for answer in [*SAMPLE, *summaries] for statement in answer.statements]
        found = figures(listed_run([*SAMPLE, *summaries], dict.fromkeys(texts, outcome)).answers)
        assert name not in found or 0 <= (found[name].value or 0) <= 1
