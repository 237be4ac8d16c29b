"""python -m benchmarks.grounding from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.grounding import __main__ as grounding
from benchmarks.grounding.report import NAMES, figures
from benchmarks.grounding.run import load
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.paths import ROOT

SAMPLE = ROOT / "benchmarks" / "judged-sample.jsonl"
PASSAGE = "The Aletsch glacier has a length of 23 kilometres and covers 82 square kilometres. It is the largest."


@pytest.fixture
def summaries(tmp_path: Path) -> Path:
    """A folder with a file of FaithBench's form and the two files of SummEdits."""
    said = "The Aletsch glacier has a length of 23 kilometres. It covers 90 square kilometres."
    span = {"start": said.index("90"), "end": len(said), "label": ["Unwanted", "Unwanted.Intrinsic"]}
    faith = {"source": PASSAGE, "summary": said, "model": "made-up-8b", "annotations": [span]}
    (tmp_path / "faith.json").write_text(json.dumps([faith]), encoding="utf-8")
    (tmp_path / "documents.jsonl").write_text(json.dumps({"_id": "d", "text": PASSAGE}), encoding="utf-8")
    rows = [
        {"document": "d", "summary": PASSAGE, "consistent": True, "domain": "ice", "edits": []},
        {"document": "d", "summary": PASSAGE.replace("23", "32"), "consistent": False, "domain": "ice", "edits": ["x"]},
    ]
    (tmp_path / "summaries.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return tmp_path


def evaluated(desk: CliRunner, *arguments: str) -> CliResult:
    """Without an index: labelled answers bring their evidence."""
    return desk.measure(grounding, *arguments, "--out", str(desk.folder / "out"))


def test_judged_answers_are_checked_and_reported(desk: CliRunner, tmp_path: Path) -> None:
    ran = evaluated(desk, "--judged", str(SAMPLE), "--json", str(tmp_path / "run.json"))
    assert ran.code == 0, ran.err
    for title in ("Figures", "Statements by label", "Answers", "Statements by kind", "Statements that each rule"):
        assert f"\n{title}" in ran.out
    (report,) = (desk.folder / "out").iterdir()
    assert str(report) in re.sub(r"\n", "", ran.out)
    run = load(tmp_path / "run.json")
    assert (len(run.answers), run.failed, run.notes, run.settings["TOP_K"]) == (7, (), (), "4")
    known = figures(run.answers)
    assert known["true_shown"].denominator.sum() == 9
    copied = [s for answer in run.answers for s in answer.statements if s.kind == "copied" and s.counted]
    assert [statement.outcome for statement in copied] == ["quoted", "quoted"]
    assert {answer.statements[0].outcome for answer in run.answers if answer.id.endswith(":5")} == {"left out"}


def test_the_same_run_twice_is_the_same(desk: CliRunner, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        assert evaluated(desk, "--judged", str(SAMPLE), "--json", str(tmp_path / name)).code == 0
    first, second = (load(tmp_path / name) for name in ("a.json", "b.json"))
    assert first.answers == second.answers
    ran = desk.measure(
        grounding, "--compare", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--require", "whole=0.1"
    )
    assert ran.code == 0, ran.err
    assert "Same configuration." in ran.out
    assert "All thresholds were met." in ran.out
    ran = evaluated(desk, "--judged", str(SAMPLE), "--compare", str(tmp_path / "a.json"))
    assert ran.code == 0
    assert "against judged-sample of" in ran.out


def test_summaries_are_checked_in_one_run_with_answers(desk: CliRunner, summaries: Path) -> None:
    thresholds = "true_shown=0.1 good_shown=1 bad_shown<=0 consistent_kept=1 edited_caught=1 balanced=1".split()
    ran = evaluated(
        desk,
        *("--judged", str(SAMPLE), "--faithbench", str(summaries / "faith.json"), "--summedits", str(summaries)),
        *("--require", *thresholds),
    )
    assert ran.code == 0, ran.err
    assert "All thresholds were met." in ran.out
    assert "Summaries by domain" in ran.out


def test_thresholds_decide_the_exit_code(desk: CliRunner, summaries: Path) -> None:
    ran = evaluated(desk, "--summedits", str(summaries), "--require", "balanced<=0.5", "true_shown=0.75")
    assert ran.code == 1
    assert "balanced is 1.0000 and should be at most 0.5" in ran.err
    assert "true_shown should be at least 0.75, but this set does not measure it." in ran.err


def test_an_unknown_figure_is_reported_before_any_answer(desk: CliRunner) -> None:
    ran = evaluated(desk, "--judged", str(SAMPLE), "--require", "recall@5=0.8")
    assert ran.code == 2
    assert "There is no metric recall@5." in ran.err
    assert all(name in ran.err for name in NAMES)
    assert not (desk.folder / "out").exists()


def test_limit_takes_answers_over_all_files(desk: CliRunner, tmp_path: Path, summaries: Path) -> None:
    files = ("--judged", str(SAMPLE), "--summedits", str(summaries))
    assert evaluated(desk, *files, "--limit", "3", "--json", str(tmp_path / "run.json")).code == 0
    found = [answer.id for answer in load(tmp_path / "run.json").answers]
    assert found == ["judged-sample:1", "judged-sample:3", "judged-sample:5"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judged", "absent.jsonl"], "absent.jsonl cannot be read"),
        (["--faithbench", "absent.json"], "absent.json cannot be read"),
        (["--summedits", "absent"], "documents.jsonl cannot be read"),
        (["--faithbench", str(SAMPLE)], "judged-sample.jsonl, line 1: source: field required."),
        (["--limit", "1"], "No labelled answers were given."),
        (["--compare", "a.json"], "--compare without labelled answers needs two saved runs."),
        (["--compare", "a.json", "b.json", "--limit", "3"], "--limit needs labelled answers."),
        (["--judged", str(SAMPLE), "--compare", "a", "b"], "Labelled answers and two saved runs were given."),
        (["--judged", str(SAMPLE), "--compare", str(SAMPLE)], "is not a saved run over labelled answers."),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_sentence(desk: CliRunner, arguments: list[str], message: str) -> None:
    ran = desk.measure(grounding, *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
