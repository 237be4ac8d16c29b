"""Runs over labelled answers: saved and read, failures, tables, the Markdown report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from folio.answer_types import Evidence
from folio.errors import ModelError, OllamaError, UsageError
from folio.evaluate import grounding_runner
from folio.evaluate.grounding_report import changes, comparison, tables, write
from folio.evaluate.grounding_runner import GroundingRun, load, save
from folio.evaluate.labelled_answers import LabelledAnswer, LabelledStatement, load_judged
from folio.evaluate.statement_check import Statement, StatementOutcome
from tests.helpers.labelled import LEFT_OUT, ListedCheck, listed_run
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

SAMPLE = load_judged(ROOT / "benchmarks" / "judged-sample.jsonl")
OUTCOMES = {
    "The colonies gained 3 kg on average in May.": StatementOutcome("left out", "numbers"),
    "The float was replaced by a radar sensor in 2007, which growth in the well does not affect.": LEFT_OUT,
    "They were weighed each hour on bar scales.": StatementOutcome("reworded", dangling=True),
}
RUN = listed_run(SAMPLE, OUTCOMES)


def rows(run: GroundingRun, title: str) -> tuple[tuple[str, ...], ...]:
    (table,) = [table for table in tables(run) if table.title.startswith(title)]
    return table.rows


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
            raise OllamaError("Ollama broke off.", "Start it again.")
        return super().outcomes(question, statements, evidence)


def failing_run(answers: Sequence[LabelledAnswer], *fails: int) -> GroundingRun:
    made = datetime(2026, 11, 21, 12, tzinfo=UTC)
    return grounding_runner.run(
        answers, FailingCheck(fails), sources=[Path("s")], made=made, settings={}, progress=lambda label, done, of: None
    )


def test_a_run_is_saved_and_read(tmp_path: Path) -> None:
    save(tmp_path / "run.json", RUN)
    assert load(tmp_path / "run.json") == RUN


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"grounding_form": 1}', '{"grounding_form": 0}', '{"form": 1}'])
def test_what_is_no_saved_run_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError):
        load(tmp_path / "run.json")


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

    run = listed_run(
        [
            summary("A.", "consistent", "news"),
            summary("B.", "edited", "news", "antonym_swap", "negation"),
            summary("C.", "consistent", "mail"),
            summary("D.", "edited", "mail", "negation"),
        ],
        {"B.": LEFT_OUT, "C.": StatementOutcome("left out", "numbers")},
    )
    assert rows(run, "Summaries by domain") == (
        ("all", "2", "1 (0.50)", "2", "1 (0.50)", "0.500"),
        ("news", "1", "1 (1.00)", "1", "1 (1.00)", "1.000"),
        ("mail", "1", "0 (0.00)", "1", "0 (0.00)", "0.000"),
    )
    assert rows(run, "Edited summaries") == (("negation", "2", "1 (0.50)"), ("antonym_swap", "1", "1 (1.00)"))
    assert rows(run, "Summaries of which each rule") == (
        ("numbers", "1 (0.50)", "0 (0.00)"),
        ("support", "0 (0.00)", "1 (0.50)"),
    )
    assert not [table for table in tables(run) if table.title.startswith(("Answers", "Statements that"))]


def test_runs_are_compared_by_answer() -> None:
    after = replace(listed_run(SAMPLE, {}), check="another", settings={"TOP_K": "5"})
    found = {row[0]: row[1:4] for row in comparison(RUN, after).rows}
    assert found["supported statements that are shown"] == ("4", "0.889", "1.000")
    assert found["shown statements whose subject is left out"] == ("7", "0.111", "0.000")
    assert changes(RUN, after) == ["check: listed -> another", "TOP_K: 4 -> 5"]
    other = listed_run([replace(answer, id=f"other:{answer.id}") for answer in SAMPLE], {})
    with pytest.raises(UsageError, match="no answer in common"):
        comparison(RUN, other)


def test_an_answer_on_which_the_verifier_fails_is_not_counted() -> None:
    run = failing_run(SAMPLE, 0, 2)
    assert [answer.id for answer in run.answers] == [SAMPLE[place].id for place in (1, 3, 4, 5, 6)]
    assert [failed.question for failed in run.failed] == [SAMPLE[0].id, SAMPLE[2].id]
    assert rows(run, "Answers on which")[0] == (SAMPLE[0].id, "Ollama broke off.")


def test_failures_in_a_row_end_the_run() -> None:
    run = failing_run(SAMPLE, 2, 3, 4)
    assert (len(run.answers), len(run.failed)) == (2, 3)
    assert run.notes == ("Stopped after 3 failures in a row; answers not checked: 2.",)
    for answers in (SAMPLE, SAMPLE[:2]):
        with pytest.raises(ModelError):
            failing_run(answers, *range(3))


def test_the_report_is_markdown(tmp_path: Path) -> None:
    path = write(tmp_path, RUN, tables(RUN))
    assert path.name == "2026-11-21-120000-sample.md"
    text = path.read_text(encoding="utf-8")
    assert "| true_shown | 0.889 |" in text
    assert "| check | listed |" in text
    assert text.startswith("# sample, 2026-11-21 12:00 UTC\n\n`sample.jsonl`: 7 answers and summaries")


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
