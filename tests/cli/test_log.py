"""`folio log`, evaluate.py --from-log and --judge: what was asked and rated, from the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from folio.cli import log
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.ollama_models import Json
from tests.helpers.ollama_server import OllamaStandIn

HAIRS = "How many hairs does the fur of a sea otter have on each square centimetre of skin?"
OPERA = "Which bank lent the money for the opera in Vienna?"
GAUGE = "When was the gauge in the river Massa built?"
BUILTIN = {"EMBEDDER": "builtin", "LLM": "builtin"}


def run(desk: CliRunner, *arguments: str) -> CliResult:
    return desk._here(log, arguments)


@pytest.fixture(scope="module")
def rated_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an index of two papers, and three questions: one rated good, a refusal rated good, one rated bad."""
    folder = tmp_path_factory.mktemp("rated")
    with pytest.MonkeyPatch.context() as patch:
        desk = CliRunner(folder, patch, settings=BUILTIN)
        small_papers(desk.papers)
        assert desk.ingest().code == 0
        for question, rating in ((HAIRS, "good"), (OPERA, "good"), (GAUGE, "bad")):
            assert desk.query(question).code == 0
            assert desk.query("--feedback", rating).code == 0
    return folder


@pytest.fixture
def rated(rated_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CliRunner:
    """A desk over that index, to look at and not to change."""
    return CliRunner(rated_folder, monkeypatch, capsys, settings={**BUILTIN, "QUERY_LOG": "false"})


def test_questions_are_listed_with_their_rating_newest_first(rated: CliRunner) -> None:
    for arguments in ((), ("list",), ("-n", "3")):
        ran = run(rated, *arguments)
        assert (ran.code, ran.err) == (0, "")
        rows = [line.split() for line in ran.out.splitlines()]
        assert [(row[0], row[3]) for row in rows[1:4]] == [("3", "bad"), ("2", "good"), ("1", "good")]
        assert "refused" in rows[2]
        assert ran.out.splitlines()[-1] == "3 of 3 questions in the log; 2 rated good, 1 rated bad."
    assert [row["number"] for row in run(rated, "list", "--json", "-n", "2").objects] == [3, 2]
    bad = run(rated, "--bad", "--json").object
    assert (bad["question"], bad["feedback"], bad["refused"]) == (GAUGE, "bad", False)
    assert [row["question"] for row in run(rated, "list", "--good", "--json").objects] == [OPERA, HAIRS]


def test_one_question_is_shown_with_its_quotes(rated: CliRunner) -> None:
    ran = run(rated, "show", "1")
    lines = ran.out.splitlines()
    assert lines[0] == HAIRS
    assert "1. otters.pdf, p. 1" in lines
    assert "155,000 hairs" in ran.out
    assert "rated good" in lines[-1]
    last = run(rated, "show", "--json").object
    assert (last["number"], last["question"], last["feedback"]) == (3, GAUGE, "bad")
    assert last["sources"][0]["file"] == "alps/glaciers.pdf"
    assert last["sources"][0]["page"] == 3


def test_the_log_is_exported_oldest_first(rated: CliRunner, tmp_path: Path) -> None:
    assert [row["number"] for row in run(rated, "export").objects] == [1, 2, 3]
    ran = run(rated, "export", "--bad", "--out", str(tmp_path / "bad.jsonl"))
    assert (ran.code, ran.out) == (0, "")
    assert "1 question written to" in ran.err
    (line,) = (tmp_path / "bad.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["question"] == GAUGE


DEEP = "How many hairs does the fur of a sea otter have, and when was the gauge in the river Massa built?"


def test_the_search_of_a_deep_answer_is_in_the_log(filled: CliRunner, tmp_path: Path) -> None:
    asked = filled.query("--deep", "--json", DEEP).object
    assert filled.query("--deep", DEEP).code == 0
    assert filled.query(HAIRS).code == 0
    assert run(filled, "show", "1", "--json").object["trace"] == asked["trace"]
    exported = run(filled, "export").objects
    assert [row["trace"] is None for row in exported] == [False, False, True]
    assert exported[1]["trace"]["events"] == asked["trace"]["events"]
    shown = run(filled, "show", "1").out.splitlines()
    (begin,) = [place for place, line in enumerate(shown) if line.startswith("Searched in ")]
    assert shown[begin].endswith("passages scored by built in:")
    said = filled.query("--deep", DEEP).err.splitlines()
    steps = [line for line in said if line.startswith(("Papers", "Evidence", "Search"))]
    assert [line.strip() for line in shown[begin + 1 : -1]] == steps
    assert "Searched in" not in run(filled, "show", "3").out


def test_an_empty_log_and_one_with_control_characters(desk: CliRunner) -> None:
    assert run(desk).err.startswith("There is no index at ")
    small_papers(desk.papers)
    desk.settings |= BUILTIN
    assert desk.ingest().code == 0
    assert run(desk).out == "0 of 0 questions in the log; 0 rated good, 0 rated bad.\n"
    assert run(desk, "export").out == ""
    for arguments, error in ((("show",), "The log has no question."), (("show", "4"), "The log has no question 4.")):
        ran = run(desk, *arguments)
        assert (ran.code, ran.err.splitlines()[0]) == (2, error)
    assert desk.query("What is \x1b[31mred\x07 here?").code == 0
    for arguments in (("list",), ("show",), ("export",)):
        assert not {"\x1b", "\x07"} & set(run(desk, *arguments).out)


def test_rated_answers_become_a_set_that_can_be_asked(rated: CliRunner, tmp_path: Path) -> None:
    made = tmp_path / "made.jsonl"
    ran = rated.evaluate("--from-log", "-o", str(made))
    assert ran.code == 0, ran.err
    assert f"Questions written to {made}: 2." in ran.out
    assert "left out because the right page is not known: 1 (3)." in ran.out
    asked = [json.loads(line) for line in made.read_text(encoding="utf-8").splitlines()]
    assert [(question["question"], question["answerable"]) for question in asked] == [(HAIRS, True), (OPERA, False)]
    ran = rated.evaluate(str(made), "--out", str(tmp_path), "--require", "recall@1=1", "refusal_recall=1")
    assert ran.code == 0, ran.out + ran.err
    assert rated.evaluate("--from-log", "-o", str(made)).err.startswith(f"{made} already exists.")


def grading(messages: list[Json]) -> str:
    """A judge that likes otters alone."""
    likes = "otter" in messages[-1]["content"].split("The quotes under")[0]
    return json.dumps({"reason": "About otters." if likes else "No otters.", "grade": 3 if likes else 0})


def test_the_model_grades_rated_answers(rated: CliRunner) -> None:
    with OllamaStandIn(dimension=64, reply=grading) as server:
        rated.settings["OLLAMA_HOST"] = server.url
        ran = rated.evaluate("--judge")
        asked = [body for body in server.bodies("/api/chat") if body["messages"]]
    assert ran.code == 0, ran.err
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "agree (good means 2 or 3) 2 of 2 (100.0%)" in lines
    assert "Cohen's kappa 1.000" in lines
    assert "Rated answers that cite nothing, such as refusals, are not graded: 1." in ran.out
    assert [body["format"]["properties"]["grade"]["enum"] for body in asked] == [[0, 1, 2, 3]] * 2
    assert list(asked[0]["format"]["properties"]) == ["reason", "grade"]


def test_the_model_grades_the_answers_to_a_set(rated: CliRunner, tmp_path: Path) -> None:
    made, saved = tmp_path / "made.jsonl", tmp_path / "run.json"
    assert rated.evaluate("--from-log", "-o", str(made)).code == 0
    with OllamaStandIn(dimension=64, reply=grading) as server:
        rated.settings["OLLAMA_HOST"] = server.url
        ran = rated.evaluate(str(made), "--judge", "--json", str(saved), "--out", str(tmp_path), "--require", "grade=3")
        asked = len(server.bodies("/api/chat"))
    assert ran.code == 0, ran.out + ran.err
    assert "grade by the local model, 0 to 3" in ran.out
    grades = [question["answer"]["grade"] for question in json.loads(saved.read_text(encoding="utf-8"))["asked"]]
    assert (grades, asked) == ([3, None], 1)  # nobody needs to grade what has no answer


def test_grading_needs_the_local_model_and_rated_answers(rated: CliRunner, ready: CliRunner) -> None:
    ran = rated.evaluate("--judge")
    assert ran.code == 1
    assert "Ollama" in ran.err
    for option in ("--judge", "--from-log"):
        ran = ready.evaluate(option)
        assert ran.code == 2
        assert ran.err.startswith("The log has no ")


def test_what_was_graded_before_the_model_failed_is_shown(filled: CliRunner) -> None:
    filled.settings["LLM"] = "builtin"
    for question in (HAIRS, GAUGE):
        assert filled.query(question).code == 0
        assert filled.query("--feedback", "good").code == 0

    def once(messages: list[Json]) -> str:
        server.faults.fails = 9
        return grading(messages)

    with OllamaStandIn(dimension=64, reply=once) as server:
        filled.settings["OLLAMA_HOST"] = server.url
        ran = filled.evaluate("--judge")
    assert ran.code == 1
    assert "Answers rated by people, by the model's grade: 1" in ran.out
