"""Answers that are logged, shown with their evidence and looked up on their pages: by options and in a chat."""

from __future__ import annotations

import re
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from folio.models.chat_model import TRIES
from folio.shown_text import counted
from folio.store.conversations import Conversations
from folio.store.indexes import LIBRARY
from folio.store.library import Library
from tests.helpers.answers import REFUSED
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.ollama_models import LLAMA
from tests.helpers.ollama_server import OllamaStandIn, closed_url

LENGTH = "How long is the Aletsch glacier?"
NOWHERE = "Who painted the ceiling of the Sistine chapel in Rome?"
IS_LONG = "The Aletsch glacier has a length of 23 kilometres and covers 82 square kilometres of the Bernese Alps."

# The log of questions


def log_of(desk: CliRunner) -> list[int]:
    """Questions, refusals, and how many were good and bad."""
    stats = desk.query("--stats", "--json").object
    return [stats[name] for name in ("questions", "refused", "good", "bad")]


def test_questions_are_logged_however_they_are_asked(filled: CliRunner) -> None:
    assert log_of(filled) == [0, 0, 0, 0]
    file = filled.folder / "questions.txt"
    file.write_text(f"{LENGTH}\n{NOWHERE}\n", encoding="utf-8")
    filled.query(LENGTH)
    assert log_of(filled) == [1, 0, 0, 0]
    filled.query("--json", NOWHERE)
    assert log_of(filled) == [2, 1, 0, 0]
    filled.query("--batch", str(file))
    assert log_of(filled) == [4, 2, 0, 0]
    filled.query(typed=f"{LENGTH}\nHow thick is it?\n/sources\n")
    assert log_of(filled) == [6, 2, 0, 0]


def test_what_is_not_logged(filled: CliRunner, ollama_server: OllamaStandIn) -> None:
    filled.query("--sources", LENGTH)
    filled.query("--no-log", LENGTH)
    filled.query("--no-log", typed=f"{LENGTH}\n")
    filled.settings["QUERY_LOG"] = "false"
    filled.query(LENGTH)
    filled.settings |= {"QUERY_LOG": "true", "LLM": "ollama", "OLLAMA_HOST": ollama_server.url}
    model = ollama_server.models.pop(LLAMA.name)
    assert filled.query(LENGTH).code == 1
    assert log_of(filled) == [0, 0, 0, 0]
    ollama_server.models[LLAMA.name] = model
    ollama_server.faults.fails = TRIES
    assert filled.query(LENGTH).code == 1  # an answer is shown although the model failed
    assert log_of(filled) == [1, 0, 0, 0]


def test_feedback_marks_the_last_question(filled: CliRunner) -> None:
    none = filled.query("--feedback", "good")
    assert (none.code, none.out) == (2, "")
    assert none.err.startswith("The log has no answer to rate.\nAsk first: ")
    filled.query(LENGTH)
    filled.query("What do sea otters eat\x1b?")
    assert filled.query("--feedback", "bad") == CliResult(0, "Rated bad: What do sea otters eat\ufffd?\n", "")
    assert log_of(filled) == [2, 0, 0, 1]
    assert filled.query("--feedback", "good").code == 0
    assert log_of(filled) == [2, 0, 1, 0]


def test_feedback_in_a_chat_is_for_its_own_question(filled: CliRunner) -> None:
    filled.query("What do sea otters eat?")
    ran = filled.query(typed=f"/good\n{LENGTH}\n/bad\n/bad please\n")
    assert ran.out.endswith(f"Rated bad: {LENGTH}\n")
    assert ran.err.splitlines()[0] == "Nothing has been asked yet."
    assert "\n/sources lists the passages" in ran.err
    assert log_of(filled) == [2, 0, 0, 1]
    unlogged = filled.query("--no-log", typed=f"{LENGTH}\n/good\n")
    assert "The question is not in the log. --no-log or QUERY_LOG=false turns the log off." in unlogged.err
    assert log_of(filled) == [2, 0, 0, 1]


def test_a_log_that_cannot_be_written_costs_no_answer(filled: CliRunner) -> None:
    with closing(sqlite3.connect(filled.store / "user.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        ran = filled.query("--json", LENGTH)
        other.execute("ROLLBACK")
    assert (ran.code, ran.object["refused"]) == (0, False)
    assert ran.err.startswith("The question could not be written to the log: Another process is writing to ")
    assert ran.err.count("\n") == 1
    assert log_of(filled) == [0, 0, 0, 0]
    with closing(sqlite3.connect(filled.store / "library.sqlite")) as other:  # while papers are being added
        other.execute("BEGIN IMMEDIATE")
        assert filled.query("--json", LENGTH).err == ""
        other.execute("ROLLBACK")
    assert log_of(filled) == [1, 0, 0, 0]


def test_questions_are_forgotten_with_what_was_typed_in_chats(filled: CliRunner) -> None:
    history = filled.store / "chat_history"
    nothing = "Deleted: 0 questions, 0 conversations, and the chat history.\n"
    assert filled.query("--forget") == CliResult(0, nothing, "")
    filled.query(LENGTH)
    assert filled.query("--forget").out == "Deleted: 1 question, 0 conversations, and the chat history.\n"
    history.write_text(f"\n+{LENGTH}\n", encoding="utf-8")
    for _ in range(2):
        filled.query(LENGTH)
    with closing(Conversations(filled.store / "library.sqlite")) as conversations:
        conversations.add(conversations.begin(), {}, REFUSED, None)
        forgotten = "Deleted: 2 questions, 1 conversation, and the chat history.\n"
        assert filled.query("--forget") == CliResult(0, forgotten, "")
        assert conversations.summaries() == ()
    assert log_of(filled) == [0, 0, 0, 0]
    assert not history.exists()
    assert filled.query("--feedback", "good").code == 2
    assert filled.query("--sources", LENGTH).code == 0  # the papers stay


def test_stats_for_people_and_for_programs(filled: CliRunner) -> None:
    filled.query(LENGTH)
    filled.query("--feedback", "good")
    found = filled.query("--stats", "--json").object
    size = sum(path.stat().st_size for path in filled.store.rglob("*") if path.is_file())
    assert found["median_ms"] > 0
    assert 0.5 < found["median_confidence"] <= 1
    assert size <= found["bytes"] <= size + 100_000  # two files of SQLite's own are there while it is open
    with closing(Library(filled.store / LIBRARY)) as library:
        lengths = [paper.length for paper in library.papers()]
    assert 0.9 * sum(lengths) / 2 < found["mean_chunk"] <= sum(lengths) / 2  # each paper is one passage
    measured = ("median_ms", "median_confidence", "bytes")
    assert {name: found[name] for name in found if name not in measured} == {
        "papers": 2,
        "copies": 0,
        "pages": 5,
        "mean_pages": 2.5,
        "mean_length": sum(lengths) / 2,
        "chunks": 2,
        "mean_chunk": found["mean_chunk"],
        "fine_chunks": 0,
        "mean_fine_chunk": 0,
        "questions": 1,
        "refused": 0,
        "good": 1,
        "bad": 0,
    }
    shown = filled.query("--stats")
    assert (shown.code, shown.err) == (0, "")
    assert re.search(r"^papers +2 *$", shown.out, re.MULTILINE)
    assert re.search(r"^pages +5, 2\.5 a paper \(mean; \d+ characters\) *$", shown.out, re.MULTILINE)
    assert re.search(r"^passages +2, of \d+ characters \(mean\) *$", shown.out, re.MULTILINE)
    assert re.search(r"^fine passages +none *$", shown.out, re.MULTILINE)
    assert re.search(r"^size on disk +[\d.]+ MB *$", shown.out, re.MULTILINE)
    assert re.search(r"^questions +1, answered in [\d.]+ s \(median\) *$", shown.out, re.MULTILINE)
    assert re.search(r"^confidence +\d\.\d\d \(median\) *$", shown.out, re.MULTILINE)
    assert re.search(r"^feedback +1 good, 0 bad *$", shown.out, re.MULTILINE)


def test_stats_of_fine_passages(desk: CliRunner) -> None:
    small_papers(desk.papers)
    desk.settings |= {"EMBEDDER": "builtin", "INDEX": "dual", "COARSE_SIZE": "300", "FINE_SIZE": "120"}
    assert desk.ingest().code == 0
    found = desk.query("--stats", "--json").object
    assert found["fine_chunks"] > found["chunks"] > 2
    assert 0 < found["mean_fine_chunk"] <= 120 < found["mean_chunk"] <= 300
    assert re.search(r"^fine passages +\d+, of \d+ characters \(mean\) *$", desk.query("--stats").out, re.MULTILINE)


# Which model answers, and how an answer came about


def test_a_model_for_one_run(ready: CliRunner, ollama_server: OllamaStandIn) -> None:
    ready.settings |= {"EMBEDDER": "builtin", "OLLAMA_HOST": ollama_server.url, "LLM": "builtin", "VERIFIER": "none"}
    ollama_server.models["other:7b"] = replace(LLAMA, name="other:7b")
    assert ready.query("--json", "--model", "other:7b", LENGTH).object["models"]["llm"].startswith("other:7b")
    assert {body["model"] for body in ollama_server.bodies("/api/chat")} == {"other:7b"}
    asked = len(ollama_server.bodies("/api/chat"))
    ready.settings["LLM"] = "ollama"
    quoted = ready.query("--json", "--model", "builtin", LENGTH)
    assert (quoted.code, len(ollama_server.bodies("/api/chat"))) == (0, asked)
    assert quoted.object["models"]["llm"] != "other:7b"


def test_a_model_that_is_named_has_no_stand_in(ready: CliRunner, ollama_server: OllamaStandIn) -> None:
    ready.settings |= {"EMBEDDER": "builtin", "OLLAMA_HOST": ollama_server.url, "LLM": "auto"}
    missing = ready.query("--model", "nope:1b", LENGTH)
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.splitlines()[0] == f"Ollama at {ollama_server.url} does not have the model nope:1b."
    assert "ollama pull nope:1b" in missing.err
    ready.settings["OLLAMA_HOST"] = closed_url()
    stopped = ready.query("--model", "llama3.1:8b", LENGTH)
    assert (stopped.code, stopped.out) == (1, "")


@pytest.mark.parametrize("option", ["-v", "--verbose"])
def test_how_an_answer_came_about(ready: CliRunner, option: str) -> None:
    ready.settings["LLM"] = "builtin"
    plain, told = ready.query(LENGTH), ready.query(option, LENGTH)
    assert told.out == plain.out
    assert "Models: " not in plain.err
    models, *passages, time = [
        line for line in told.err.splitlines() if line.startswith(("Models", "Passage ", "Time"))
    ]
    assert re.fullmatch(r"Models: embedder [^,]+, reranker [^,]+, llm .+\.", models)
    score = r"Passage 1: alps/glaciers\.pdf, pp?\. [\d–]+: \d\.\d\d \(cosine [\d.]+, BM25 [\d.]+\)"
    assert re.fullmatch(score, passages[0])
    assert len(passages) == len(ready.query("--json", LENGTH).object["hits"])
    assert re.fullmatch(r"Time: (\w+ [\d,]+ ms, )+total [\d,]+ ms\.", time)
    searched = ready.query(option, "--json", "--sources", LENGTH)
    assert searched.object["hits"]
    assert " llm " not in searched.err


# Evidence, reports, and looking things up


def test_the_evidence_is_shown_where_it_is_asked_for(ready: CliRunner) -> None:
    shown = ready.query("--show-evidence", LENGTH)
    assert shown.code == 0
    answer, rest = shown.out.split("\nSources\n")
    sources, evidence = rest.split("\nEvidence\n")
    assert IS_LONG in answer
    assert IS_LONG not in sources  # it stands there already
    heading = r"\[1\] alps/glaciers\.pdf, pp\. 1–3 · The Aletsch Glacier · \d\.\d\d \(cosine [\d.]+, BM25 [\d.]+\)\n"
    assert re.match(heading, evidence)
    assert "   Measurements of the melt water are taken at Blatten." in evidence
    assert "Evidence" not in ready.query(LENGTH).out
    chatted = ready.query(typed=f"/evidence\n{LENGTH}\n/evidence\n")
    assert chatted.out.count("\nEvidence\n[1] alps/glaciers.pdf, pp. 1–3") == 1
    assert "Nothing has been asked yet." in chatted.err


def test_a_report_has_its_parts_in_order(ready: CliRunner) -> None:
    ran = ready.query("--style", "report", LENGTH)
    assert ran.code == 0
    headings = [line for line in ran.out.splitlines() if line in ("Summary", "Analysis", "Sources", "Key references")]
    assert headings[0] == "Summary"
    assert headings[-2:] == ["Sources", "Key references"]
    assert ran.out.startswith("Summary\n• ")
    assert re.search(r"^The Aletsch Glacier\. alps/glaciers\.pdf, pp?\. [\d, ]+$", ran.out, re.MULTILINE)


@pytest.fixture
def viewer(filled: CliRunner) -> Path:
    """Where a viewer that is set writes what it was started with."""
    started = filled.folder / "started"
    program = filled.folder / "viewer.py"
    program.write_text(f"import sys\nwith open({str(started)!r}, 'a') as file:\n    print(*sys.argv[1:], file=file)\n")
    filled.settings["PDF_VIEWER"] = f'"{sys.executable}" "{program}" {{page}} {{file}}'
    return started


def test_verify_opens_the_page_of_the_first_citation(filled: CliRunner, viewer: Path) -> None:
    pdf = filled.papers / "alps" / "glaciers.pdf"
    ran = filled.query("--verify", LENGTH)
    assert ran.code == 0
    assert re.search(f"^From the papers\n.*{re.escape(IS_LONG)} ", ran.out, re.M)
    assert f"\n1. alps/glaciers.pdf, p. 1  {pdf.as_uri()}#page=1\n" in ran.out
    assert viewer.read_text().startswith(f"1 {pdf}\n")
    later = filled.query("--verify")
    assert later.code == 0
    assert later.out.startswith(f"{LENGTH}\n\nPages\n1. alps/glaciers.pdf, p. 1  {pdf.as_uri()}#page=1\n")
    assert viewer.read_text().count(f"1 {pdf}\n") == 2
    pdf.unlink()
    gone = filled.query("--verify")
    assert gone.code == 1
    assert f"alps/glaciers.pdf is no longer in {pdf.parent}.\nPut it back there, or run `python ingest.py`" in gone.err
    assert filled.query("--verify", LENGTH).code == 1
    filled.settings["PDF_VIEWER"] = "nobody-has-this {file}"
    ran = filled.query("--verify", "--paper", "otters", "What is the diet of the sea otter made of?")
    assert (ran.code, "urchins" in ran.out) == (2, True)
    assert "PDF_VIEWER cannot be run: nobody-has-this {file}." in ran.err


def test_verify_without_anything_to_look_up(filled: CliRunner, viewer: Path) -> None:
    nothing = filled.query("--verify")
    assert (nothing.code, nothing.out) == (2, "")
    assert nothing.err.startswith("Nothing has been asked yet.\nAsk: python query.py --verify ")
    for arguments in (["--verify", NOWHERE], ["--verify"]):
        refused = filled.query(*arguments)
        assert refused.code == 0
        assert "The answer has no citations, so there is no page to open." in refused.err
    assert not viewer.exists()


def test_verify_in_a_chat_takes_the_number_of_a_source(filled: CliRunner, viewer: Path) -> None:
    ask = "How long is the Aletsch glacier? What do sea otters eat?"
    typed = f"/verify\n{ask}\n/verify 1\n/verify 9\n/verify 0\n/verify x\n/verify\n"
    ran = filled.query(typed=typed)
    assert ran.code == 0
    sources = re.findall(r"^(\d)\. (\S+), p\. (\d) ·", ran.out, re.MULTILINE)
    links = re.findall(r"^(\d)\. (\S+), p\. (\d)  file:", ran.out, re.MULTILINE)
    assert links == [sources[0], *sources]
    opened = [line.split(maxsplit=1) for line in viewer.read_text().splitlines()]
    assert opened == [[sources[0][2], str(filled.papers / sources[0][1])]] * 2
    err = ran.err.splitlines()
    assert err[0] == "Nothing has been asked yet."
    assert err.count(f"The last answer has {counted(len(sources), 'source')}.") == 2
    assert sum(line.startswith("/sources lists") for line in err) == 1
