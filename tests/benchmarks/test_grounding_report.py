"""Labelled answers are checked and counted: outcomes, failures, figures, tables, the saved run and the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.grounding.answers import LabelledAnswer, LabelledStatement, load_judged
from benchmarks.grounding.report import NAMES, changes, comparison, figures, tables, write
from benchmarks.grounding.run import (
    GroundingRun,
    Statement,
    StatementCheck,
    StatementOutcome,
    ValidatorCheck,
    load,
    marked_dangling,
    run,
    save,
)
from folio.answer_types import Evidence
from folio.errors import ModelError, ModelServerError, UsageError
from folio.evaluate.metrics import interval
from tests.helpers.factories import evidence_on
from tests.helpers.labelled import LEFT_OUT, ListedCheck, listed_run
from tests.helpers.paths import ROOT

SAMPLE = load_judged(ROOT / "benchmarks" / "judged-sample.jsonl")
OUTCOMES = {
    "The colonies gained 3 kg on average in May.": StatementOutcome("left out", "numbers"),
    "The float was replaced by a radar sensor in 2007, which growth in the well does not affect.": LEFT_OUT,
    "They were weighed each hour on bar scales.": StatementOutcome("reworded", dangling=True),
}
RUN = listed_run(SAMPLE, OUTCOMES)
REWORDED = StatementOutcome("reworded")


def rows(run: GroundingRun, title: str) -> tuple[tuple[str, ...], ...]:
    (table,) = [table for table in tables(run) if table.title.startswith(title)]
    return table.rows


# The check

CHECK: StatementCheck = ValidatorCheck(None)
FUR = "The fur of a sea otter has 155,000 hairs on each square centimetre."
EVIDENCE = evidence_on(f"{FUR} It is dense.", "Kelp grows.")


def outcomes(*texts: str) -> list[StatementOutcome]:
    return CHECK.outcomes("What fur has it?", [Statement(text, (1,)) for text in texts], EVIDENCE)


def test_the_papers_words_are_quoted_and_others_reworded() -> None:
    reworded = "Each square centimetre of the coat of a sea otter counts 155,000 hairs."
    nearly = "The fur of a sea otter has 155,000 hairs on a square centimetre."
    quoted = StatementOutcome("quoted")
    assert outcomes(FUR, reworded, nearly) == [quoted, StatementOutcome("reworded"), quoted]


def test_a_statement_left_out_has_its_rule() -> None:
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


def test_a_pronoun_after_a_statement_left_out_dangles() -> None:
    statements = [Statement(text) for text in ("Kelp is a fish.", "It grows.", "They swim.", "Otters swim.")]
    shown, lost = StatementOutcome("reworded"), StatementOutcome("left out", "name")
    dangling = [outcome.dangling for outcome in marked_dangling(statements, [lost, shown, shown, shown])]
    assert dangling == [False, True, True, False]


# A run


class FailingCheck(ListedCheck):
    """Its verifier fails on these answers, counted from 0."""

    def __init__(self, fails: Sequence[int]) -> None:
        super().__init__({})
        self._fails, self._asked = fails, -1

    def outcomes(
        self, question: str, statements: Sequence[Statement], evidence: Sequence[Evidence]
    ) -> list[StatementOutcome]:
        self._asked += 1
        if self._asked in self._fails:
            raise ModelServerError("Ollama broke off.", "Start it again.")
        return super().outcomes(question, statements, evidence)


def failing_run(answers: Sequence[LabelledAnswer], *fails: int) -> GroundingRun:
    made = datetime(2026, 11, 21, 12, tzinfo=UTC)
    return run(
        answers, FailingCheck(fails), sources=[Path("s")], made=made, settings={}, progress=lambda label, done, of: None
    )


def test_an_answer_on_which_the_verifier_fails_is_not_counted() -> None:
    made = failing_run(SAMPLE, 0, 2)
    assert [answer.id for answer in made.answers] == [SAMPLE[place].id for place in (1, 3, 4, 5, 6)]
    assert [failed.question for failed in made.failed] == [SAMPLE[0].id, SAMPLE[2].id]
    assert rows(made, "Answers on which")[0] == (SAMPLE[0].id, "Ollama broke off.")


def test_failures_in_a_row_end_the_run() -> None:
    made = failing_run(SAMPLE, 2, 3, 4)
    assert (len(made.answers), len(made.failed)) == (2, 3)
    assert made.notes == ("Stopped after 3 failures in a row; answers not checked: 2.",)
    for answers in (SAMPLE, SAMPLE[:2]):
        with pytest.raises(ModelError):
            failing_run(answers, *range(3))


def test_a_run_is_saved_and_read(tmp_path: Path) -> None:
    save(tmp_path / "run.json", RUN)
    assert load(tmp_path / "run.json") == RUN


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"grounding_form": 1}', '{"grounding_form": 0}', '{"form": 1}'])
def test_what_is_no_saved_run_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError):
        load(tmp_path / "run.json")


def test_saved_runs_have_every_statement(tmp_path: Path) -> None:
    save(tmp_path / "run.json", RUN)
    saved = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert saved["answers"][1]["statements"][0] == {
        "text": "The colonies gained 3 kg on average in May.",
        "label": "false",
        "kind": "number",
        "counted": True,
        "outcome": "left out",
        "rule": "numbers",
        "dangling": False,
    }


# Figures


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
        "false_shown": (1, 4),
        "not_in_evidence_shown": (0, 1),
        "unfaithful_shown": (1, 2),
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


def test_a_twin_counts_for_false_statements_and_dangling() -> None:
    lost = StatementOutcome("quoted", dangling=True)
    outcomes = {
        "The colonies gained 3 kg on average in May.": LEFT_OUT,
        "They were weighed each hour on bar scales.": lost,
    }
    found = shares(SAMPLE[1:2], outcomes)
    assert found == {"false_shown": (0, 1), "dangling": (1, 2)}


def summary(label: str, *texts: str) -> LabelledAnswer:
    statements = tuple(LabelledStatement(text, label) for text in texts)
    return LabelledAnswer(texts[0], "", "", SAMPLE[0].evidence, statements, is_summary=True)


OF_EVERY_LABEL = [summary("consistent", "A."), summary("edited", "B."), summary("good", "C."), summary("bad", "D.")]


def test_balanced_is_the_mean_of_both_kinds_of_summary() -> None:
    summaries = [
        summary("consistent", "A.", "B."),
        summary("consistent", "C."),
        summary("consistent", "D.", "E."),
        summary("consistent", "F."),
        summary("edited", "G.", "H."),
        summary("edited", "I."),
    ]
    made = listed_run(summaries, {"E.": LEFT_OUT, "H.": LEFT_OUT})
    found = figures(made.answers)
    assert {name: figure.value for name, figure in found.items()} == {
        "dangling": 0,
        "consistent_kept": 0.75,
        "edited_caught": 0.5,
        "balanced": 0.625,
    }
    low, high = interval(found["balanced"])
    assert 0 <= low < 0.625 < high <= 1
    assert "balanced" not in figures(made.answers[:4])


def test_every_figure_has_a_name() -> None:
    assert set(figures(listed_run([*SAMPLE, *OF_EVERY_LABEL], {}).answers)) == set(NAMES)


def test_bad_statements_of_summaries_are_counted() -> None:
    found = shares([summary("good", "A.", "B."), summary("bad", "C.")], {"B.": LEFT_OUT, "C.": LEFT_OUT})
    assert (found["good_shown"], found["bad_shown"]) == ((1, 2), (0, 1))


@pytest.mark.parametrize("outcome", [LEFT_OUT, REWORDED, StatementOutcome("quoted", dangling=True)])
def test_shares_lie_between_0_and_1(outcome: StatementOutcome) -> None:
    answers = [*SAMPLE, *OF_EVERY_LABEL]
    texts = [statement.text for answer in answers for statement in answer.statements]
    known = figures(listed_run(answers, dict.fromkeys(texts, outcome)).answers)
    assert set(known) <= set(NAMES)
    assert all(0 <= (figure.value or 0) <= 1 for figure in known.values())


# Tables and the report


def test_statements_by_label_and_model() -> None:
    assert rows(RUN, "Statements by label")[:5] == (
        ("all", "supported", "9", "8 (0.89)", "7", "1", "1"),
        ("all", "false", "4", "3 (0.75)", "3", "0", "1"),
        ("all", "not in evidence", "1", "1 (1.00)", "1", "0", "0"),
        ("all", "rated unfaithful", "2", "2 (1.00)", "2", "0", "0"),
        ("made-up-8b", "supported", "7", "6 (0.86)", "5", "1", "1"),
    )


def test_answers_by_model() -> None:
    assert rows(RUN, "Answers") == (
        ("all", "4", "3 (0.75)", "1 (0.25)", "0 (0.00)", "2"),
        ("made-up-8b", "3", "2 (0.67)", "1 (0.33)", "0 (0.00)", "2"),
        ("another-3b", "1", "1 (1.00)", "0 (0.00)", "0 (0.00)", "0"),
    )


def test_each_rule_has_its_cost_and_catch() -> None:
    assert rows(RUN, "Statements that each rule") == (
        ("support", "1 (0.11)", "0 (0.00)", "0 (0.00)", "0 (0.00)"),
        ("numbers", "0 (0.00)", "1 (0.25)", "0 (0.00)", "0 (0.00)"),
    )


def test_kinds_are_those_of_a_label() -> None:
    assert rows(RUN, "Statements by kind")[-3:] == (
        ("false", "role swap", "2", "2 (1.00)", "2", "0", "0"),
        ("false", "number", "1", "0 (0.00)", "0", "0", "1"),
        ("false", "negation", "1", "1 (1.00)", "1", "0", "0"),
    )


def test_summaries_by_domain_edit_and_rule() -> None:
    def summary(text: str, label: str, domain: str, *edits: str) -> LabelledAnswer:
        statement = LabelledStatement(text, label)
        evidence = SAMPLE[0].evidence
        return LabelledAnswer(text, "", "", evidence, (statement,), is_summary=True, domain=domain, edits=edits)

    made = listed_run(
        [
            summary("A.", "consistent", "news"),
            summary("B.", "edited", "news", "antonym_swap", "negation"),
            summary("C.", "consistent", "mail"),
            summary("D.", "edited", "mail", "negation"),
        ],
        {"B.": LEFT_OUT, "C.": StatementOutcome("left out", "numbers")},
    )
    assert rows(made, "Summaries by domain") == (
        ("all", "2", "1 (0.50)", "2", "1 (0.50)", "0.500"),
        ("news", "1", "1 (1.00)", "1", "1 (1.00)", "1.000"),
        ("mail", "1", "0 (0.00)", "1", "0 (0.00)", "0.000"),
    )
    assert rows(made, "Edited summaries") == (("negation", "2", "1 (0.50)"), ("antonym_swap", "1", "1 (1.00)"))
    assert rows(made, "Summaries of which each rule") == (
        ("numbers", "1 (0.50)", "0 (0.00)"),
        ("support", "0 (0.00)", "1 (0.50)"),
    )
    assert not [table for table in tables(made) if table.title.startswith(("Answers", "Statements that"))]


def test_runs_are_compared_by_answer() -> None:
    after = replace(listed_run(SAMPLE, {}), check="another", settings={"TOP_K": "5"})
    found = {row[0]: row[1:4] for row in comparison(RUN, after).rows}
    assert found["supported statements that are shown"] == ("4", "0.889", "1.000")
    assert found["shown statements whose subject is left out"] == ("7", "0.111", "0.000")
    assert changes(RUN, after) == ["check: listed -> another", "TOP_K: 4 -> 5"]
    other = listed_run([replace(answer, id=f"other:{answer.id}") for answer in SAMPLE], {})
    with pytest.raises(UsageError, match="no answer in common"):
        comparison(RUN, other)


def test_the_report_is_markdown(tmp_path: Path) -> None:
    path = write(tmp_path, RUN, tables(RUN))
    assert path.name == "2026-11-21-120000-sample.md"
    text = path.read_text(encoding="utf-8")
    assert "| true_shown | 0.889 |" in text
    assert "| check | listed |" in text
    assert text.startswith("# sample, 2026-11-21 12:00 UTC\n\n`sample.jsonl`: 7 answers and summaries")
