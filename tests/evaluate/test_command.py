"""python evaluate.py from the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from folio.evaluate.dataset import Gold, Question, save
from folio.evaluate.metrics import NAMES, figures
from folio.evaluate.runner import load
from folio.models.ollama_chat import TRIES
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.ollama_models import Json, RefusedError
from tests.helpers.ollama_server import OllamaStandIn, closed_url
from tests.helpers.paths import ROOT, SAMPLE

HAIRS = "The fur of a sea otter has about 155,000 hairs on each square centimetre of skin"
GAUGE = "The gauge stands in the river Massa and was built in 1922"
QUESTIONS = (
    Question(
        "hairs", "How many hairs does the fur of a sea otter have?", "number", gold=(Gold("otters.pdf", 1, HAIRS),)
    ),
    Question("gauge", "When was the gauge in the river Massa built?", "date", gold=(Gold("glaciers.pdf", 3, GAUGE),)),
    Question("none", "Which bank lent the money for the opera in Vienna?", "none", answerable=False),
)


@pytest.fixture
def asked(ready: CliRunner, tmp_path: Path) -> tuple[CliRunner, Path]:
    """A command line over an index of two papers, and a set of three questions about them."""
    ready.settings["LLM"] = "builtin"
    save(tmp_path / "three.jsonl", QUESTIONS)
    return ready, tmp_path / "three.jsonl"


def evaluated(asked: tuple[CliRunner, Path], *arguments: str) -> CliResult:
    desk, path = asked
    return desk.evaluate(str(path), "--out", str(path.parent / "out"), *arguments)


def test_set_is_asked_and_reported(asked: tuple[CliRunner, Path], tmp_path: Path) -> None:
    ran = evaluated(asked, "--json", str(tmp_path / "run.json"))
    assert ran.code == 0, ran.err
    assert "Found by passage, questions: 2" in ran.out
    assert "Found by page, questions: 2" in ran.out
    written = sorted(path.suffix for path in (tmp_path / "out").iterdir())
    assert written == [".md", ".png"]
    assert all(str(path) in ran.out for path in (tmp_path / "out").iterdir())
    run = load(tmp_path / "run.json")
    assert [question.id for question in run.asked] == ["hairs", "gauge", "none"]
    assert run.stages == ("dense", "bm25", "fused", "reranked")
    assert run.store["papers"] == "2"
    assert run.settings["CHUNK_SIZE"] == "1500"
    assert not {"PAPERS_DIR", "VECTORSTORE_DIR"} & set(run.settings)
    known = {name: figure.value for name, figure in figures(run.asked, "reranked").items()}
    assert known["mrr"] == known["page.mrr"] == known["first_citation"] == known["quote_fidelity"] == 1
    assert known["refusal_recall"] == 1
    assert run.faults == ()
    assert run.notes == ()


def test_nothing_is_left_in_the_home_folder(asked: tuple[CliRunner, Path], tmp_path: Path) -> None:
    desk, path = asked
    ran = desk.spawn("evaluate.py", str(path), "--no-answers", "--out", str(tmp_path / "out"))
    assert ran.code == 0, ran.err
    assert len(list((tmp_path / "out").glob("*.png"))) == 1
    assert list((desk.folder / "home").iterdir()) == []


def test_same_run_twice_gives_the_same_figures(asked: tuple[CliRunner, Path], tmp_path: Path) -> None:
    runs = []
    for name in ("a.json", "b.json"):
        assert evaluated(asked, "--json", str(tmp_path / name)).code == 0
        told = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        for question in told["asked"]:
            del question["timings_ms"]
        runs.append({key: value for key, value in told.items() if key not in ("made", "seconds")})
    assert runs[0] == runs[1]


def test_no_answers_and_limit(asked: tuple[CliRunner, Path], tmp_path: Path) -> None:
    ran = evaluated(asked, "--no-answers", "--limit", "1", "--json", str(tmp_path / "run.json"))
    assert ran.code == 0
    assert "Answers" not in ran.out
    (only,) = load(tmp_path / "run.json").asked
    assert (only.id, only.answer) == ("hairs", None)


@pytest.mark.parametrize(
    ("thresholds", "code", "said"),
    [
        (["recall@5=0.9", "first_citation=1", "answerable_refused<=0"], 0, ""),
        (["recall@5=1", "answerable_refused=0.5"], 1, "answerable_refused is 0.0000 and should be at least 0.5"),
        (["page.mrr<=0.25"], 1, "page.mrr is 1.0000 and should be at most 0.25 (off by 0.7500)."),
    ],
)
def test_thresholds_decide_the_exit_code(
    asked: tuple[CliRunner, Path], thresholds: list[str], code: int, said: str
) -> None:
    ran = evaluated(asked, *(part for threshold in thresholds for part in ("--require", threshold)))
    assert ran.code == code
    assert said in ran.err
    assert ("All thresholds were met." in ran.out) == (code == 0)


def test_a_threshold_on_an_unmeasured_metric_is_not_met(asked: tuple[CliRunner, Path]) -> None:
    ran = evaluated(asked, "--no-answers", "--require", "quote_fidelity=0.9")
    assert ran.code == 1
    assert "quote_fidelity should be at least 0.9, but this set does not measure it." in ran.err


def test_a_malformed_threshold_is_reported_before_any_question(asked: tuple[CliRunner, Path], tmp_path: Path) -> None:
    ran = evaluated(asked, "--require", "recal@5=0.8")
    assert ran.code == 2
    assert "There is no metric recal@5." in ran.err
    assert all(name in ran.err for name in NAMES)
    assert not (tmp_path / "out").exists()


def test_runs_are_compared(asked: tuple[CliRunner, Path], tmp_path: Path) -> None:
    desk, path = asked
    first, second = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    assert evaluated(asked, "--json", first).code == 0
    ran = evaluated(asked, "--json", second, "--compare", first)
    assert ran.code == 0
    assert "Same configuration." in ran.out
    (report,) = [text for p in (tmp_path / "out").glob("*.md") if "against three" in (text := p.read_text("utf-8"))]
    assert "| MRR | 2 | 1.000 | 1.000 | +0.000 | +0.000 to +0.000 | not significant |" in report
    desk.settings["TOP_K"] = "1"
    third = str(tmp_path / "c.json")
    assert desk.evaluate(str(path), "--no-answers", "--json", third, "--out", str(tmp_path / "out")).code == 0
    ran = desk.evaluate("--compare", first, third)
    assert ran.code == 0
    assert "TOP_K: 4 -> 1" in ran.out
    assert desk.evaluate("--compare", first, second, "--require", "mrr=1").code == 0
    assert desk.evaluate("--compare", first, second, "--require", "mrr<=0.5").code == 1


def test_settings_of_the_search_are_compared(asked: tuple[CliRunner, Path], tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    assert evaluated(asked, "--no-answers", "--json", str(first)).code == 0
    asked[0].settings |= {"RETRIEVAL_MODE": "lexical", "MMR_LAMBDA": "0.5"}
    ran = evaluated(asked, "--no-answers", "--json", str(second), "--compare", str(first))
    assert ran.code == 0, ran.err
    assert "RETRIEVAL_MODE: hybrid -> lexical" in ran.out
    assert "MMR_LAMBDA: 1.0 -> 0.5" in ran.out
    stages = [load(path).stages for path in (first, second)]
    assert stages == [("dense", "bm25", "fused", "reranked"), ("bm25", "fused", "reranked", "mmr")]
    asked[0].settings |= {"RETRIEVAL_MODE": "hybrid", "FUSION": "rrf", "RRF_K": "0"}
    assert "RRF_K" in evaluated(asked, "--no-answers").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "No set of questions was given."),
        (["absent.jsonl"], "absent.jsonl"),
        (["--compare", "a.json"], "--compare without a set needs two saved runs."),
        (["--compare", "a.json", "b.json"], "a.json cannot be read"),
        (["set.jsonl", "--compare", "a.json", "b.json"], "A set and two saved runs were given."),
        (["--compare", "a.json", "b.json", "--limit", "3"], "--limit needs a set of questions."),
        (["--make", "papers", "--limit", "3"], "--make and --limit cannot be combined."),
        (["set.jsonl", "-n", "3"], "-n needs --make."),
    ],
)
def test_options_that_make_no_sense(ready: CliRunner, arguments: list[str], said: str) -> None:
    ran = ready.evaluate(*arguments)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_set_on_papers_that_are_not_in_the_index(ready: CliRunner, tmp_path: Path) -> None:
    save(tmp_path / "whales.jsonl", [Question("w", "How big is a whale?", gold=(Gold("whales.pdf", 1, HAIRS),))])
    ran = ready.evaluate(str(tmp_path / "whales.jsonl"))
    assert ran.code == 2
    assert "None of the papers that whales.jsonl asks about is in the index." in ran.err
    assert "--papers FOLDER" in ran.err


def test_before_the_first_ingest(desk: CliRunner, tmp_path: Path) -> None:
    save(tmp_path / "three.jsonl", QUESTIONS)
    ran = desk.evaluate(str(tmp_path / "three.jsonl"))
    assert ran.code == 1
    assert "ingest.py" in ran.err


def test_papers_get_an_index_of_their_own_that_is_kept(filled: CliRunner, tmp_path: Path) -> None:
    save(tmp_path / "three.jsonl", QUESTIONS)
    papers = filled.papers
    line = [str(tmp_path / "three.jsonl"), "--papers", str(papers), "--out", str(tmp_path / "out"), "--no-answers"]
    (filled.store / "library.sqlite").unlink()  # the main index is not used
    assert filled.evaluate(*line, "--require", "mrr=1").code == 0
    (own,) = (filled.store / "evaluations").iterdir()
    made = (own / "library.sqlite").stat()
    assert filled.evaluate(*line).code == 0
    assert [path.name for path in (filled.store / "evaluations").iterdir()] == [own.name]
    assert (own / "library.sqlite").stat().st_ino == made.st_ino
    (papers / "otters.pdf").unlink()  # a removed paper leaves the index
    ran = filled.evaluate(*line)
    assert ran.code == 0
    assert "The index has no paper otters.pdf." in ran.out
    filled.settings["CHUNK_SIZE"] = "500"
    assert filled.evaluate(*line).code == 0
    assert len(list((filled.store / "evaluations").iterdir())) == 2


def test_folder_without_papers(desk: CliRunner, tmp_path: Path) -> None:
    save(tmp_path / "three.jsonl", QUESTIONS)
    (tmp_path / "empty").mkdir()
    ran = desk.evaluate(str(tmp_path / "three.jsonl"), "--papers", str(tmp_path / "empty"))
    assert ran.code == 2
    assert "There are no PDFs in" in ran.err


def failing_on(*questions: str) -> Callable[[list[Json]], str]:
    """A model that crashes on these questions and answers the others with "not found"."""

    def reply(messages: list[Json]) -> str:
        if any(question in messages[-1]["content"] for question in questions):
            raise RefusedError(500, "model runner has unexpectedly stopped")
        return "Not found in the provided papers."

    return reply


def test_question_that_the_model_fails_on_is_named_and_the_run_is_kept(asked: tuple[CliRunner, Path]) -> None:
    desk, path = asked
    saved = path.parent / "run.json"
    with OllamaStandIn(dimension=64, reply=failing_on("When was the gauge")) as server:
        desk.settings |= {"OLLAMA_HOST": server.url, "LLM": "ollama"}
        ran = evaluated(asked, "--json", str(saved), "--require", "recall@20=1")
    assert ran.code == 1
    assert "All thresholds were met." in ran.out
    assert "Questions on which a model failed" in ran.out
    assert "Failed: 1 of 3 questions (gauge). Ollama could not keep llama3.1:8b running" in ran.err
    assert "Traceback" not in ran.err
    run = load(saved)
    assert [question.id for question in run.asked] == ["hairs", "none"]
    assert [failed.question for failed in run.failed] == ["gauge"]
    (report,) = (path.parent / "out").glob("*.md")
    assert "| gauge | Ollama could not keep llama3.1:8b running" in report.read_text(encoding="utf-8")


def test_server_that_is_down_from_the_first_question_is_an_error_and_no_run(asked: tuple[CliRunner, Path]) -> None:
    desk, path = asked
    with OllamaStandIn(dimension=64, reply=failing_on("?")) as server:
        desk.settings |= {"OLLAMA_HOST": server.url, "LLM": "ollama"}
        ran = evaluated(asked)
        assert len(server.bodies("/api/chat")) == 3 * TRIES
    assert ran.code == 1
    assert "Ollama could not keep llama3.1:8b running" in ran.err
    assert not (path.parent / "out").exists()


def beir(folder: Path) -> Path:
    """Three documents, two queries, judged by the document."""
    documents = {"d1": "Otters float in kelp.", "d2": "Glaciers melt in summer.", "d3": "Sponges absorb blocks."}
    queries = {"q1": "What do otters float in?", "q2": "When do glaciers melt?"}
    (folder / "qrels").mkdir(parents=True)
    corpus = [json.dumps({"_id": id, "title": "", "text": text}) for id, text in documents.items()]
    (folder / "corpus.jsonl").write_text("\n".join(corpus), encoding="utf-8")
    asked = [json.dumps({"_id": id, "text": text}) for id, text in queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(asked), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n", encoding="utf-8")
    return folder


def test_plain_texts_with_judgements(desk: CliRunner, tmp_path: Path) -> None:
    folder = beir(tmp_path / "small")
    ran = desk.evaluate(str(folder), "--out", str(tmp_path / "out"), "--json", str(tmp_path / "run.json"))
    assert ran.code == 0, ran.err
    assert "Found by document, questions: 2" in ran.out
    assert "Answers" not in ran.out
    run = load(tmp_path / "run.json")
    assert run.is_text
    assert {name: f.value for name, f in figures(run.asked, "bm25").items()} == {
        f"paper.{name}": 1 for name in ("recall@1", "recall@5", "recall@10", "recall@20", "mrr", "ndcg@10")
    }
    assert desk.evaluate(str(folder), "--papers", str(tmp_path)).code == 2


def test_plain_texts_with_spans(desk: CliRunner, tmp_path: Path) -> None:
    text = "Otters float in kelp. " * 3 + "The Massa gauge was built in 1922."
    asked = {"id": "g", "question": "When was the gauge built?", "answers": [{"text": "1922", "answer_start": 95}]}
    squad = {"data": [{"title": "Rivers", "paragraphs": [{"context": text, "qas": [asked]}]}]}
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(squad), encoding="utf-8")
    desk.settings["LLM"] = "builtin"
    ran = desk.evaluate(
        str(path), "--out", str(tmp_path / "out"), "--require", "recall@1=1", "--require", "paper.mrr=1"
    )
    assert ran.code == 0, ran.err
    assert "Found by passage, questions: 1" in ran.out
    assert "Found by page" not in ran.out


def test_making_a_set_needs_the_local_model(filled: CliRunner) -> None:
    ran = filled.evaluate("--make", str(filled.papers), "-n", "2")
    assert ran.code == 1
    assert "Ollama" in ran.err
    (filled.folder / "papers.questions.jsonl").write_text("mine\n")
    ran = filled.evaluate("--make", str(filled.papers))
    assert ran.code == 2
    assert "already exists" in ran.err


def quoting(messages: list[Json]) -> str:
    """A working model: it asks about the first sentence of each passage it is given."""
    pieces = re.findall(r"<evidence [^\n]*>\n(.*?)\n</evidence>", messages[-1]["content"], re.DOTALL)
    quotes = [re.split(r"(?<=\.)\s", piece)[0] for piece in pieces]
    about = " and ".join(" ".join(quote.split()[1:6]) for quote in quotes)
    return json.dumps({"question": f"What is said of {about}?", "answer": quotes[0], "quotes": quotes})


def test_made_set_can_be_asked(filled: CliRunner, tmp_path: Path) -> None:
    made = tmp_path / "made.jsonl"
    with OllamaStandIn(dimension=64, reply=quoting) as server:
        filled.settings["OLLAMA_HOST"] = server.url
        ran = filled.evaluate("--make", str(filled.papers), "-n", "2", "-o", str(made))
    assert ran.code == 0, ran.err
    # Each paper is one passage, and a synthesis question needs two unused ones.
    assert f"Questions written to {made}: 1 of 2, all `pending` until reviewed." in ran.out
    (written,) = made.read_text(encoding="utf-8").splitlines()
    assert json.loads(written)["review"] == "pending"
    filled.settings["OLLAMA_HOST"] = closed_url()
    ran = filled.evaluate(str(made), "--papers", str(filled.papers), "--out", str(tmp_path), "--require", "recall@20=1")
    assert ran.code == 0, ran.err
    assert "Questions written by a model and not yet reviewed: 1." in ran.out


def test_what_was_made_stays_when_the_model_fails(filled: CliRunner, tmp_path: Path) -> None:
    write_pdf(filled.papers / "ponds.pdf", [" ".join(text.replace("otter", "newt") for text in OTTERS)])
    write_pdf(filled.papers / "lakes.pdf", [" ".join(text.replace("glacier", "lake") for text in GLACIERS)])

    def once(messages: list[Json]) -> str:
        server.faults.fails = 9
        return quoting(messages)

    with OllamaStandIn(dimension=64, reply=once) as server:
        filled.settings["OLLAMA_HOST"] = server.url
        ran = filled.evaluate("--make", str(filled.papers), "-n", "4", "-o", str(tmp_path / "made.jsonl"))
    assert ran.code == 1
    assert f"Questions written so far: 1. They are kept in {tmp_path / 'made.jsonl'}." in ran.err
    assert len((tmp_path / "made.jsonl").read_text(encoding="utf-8").splitlines()) == 1


def test_help_imports_nothing_heavy() -> None:
    command = [sys.executable, "-X", "importtime", "evaluate.py", "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
    assert not {"numpy", "scipy", "rich", "pydantic", "matplotlib", "faiss", "langchain_core"} & imported
    assert "EVAL_SET" in shown.stdout


@pytest.mark.slow
def test_shipped_set_on_the_sample_paper(desk: CliRunner, tmp_path: Path) -> None:
    (desk.papers / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    assert desk.ingest().code == 0
    saved = tmp_path / "run.json"
    thresholds = ("recall@5=0.9", "page.recall@5=0.9", "quote_fidelity=1", "citation_rate=1")
    ran = desk.spawn(
        "evaluate.py",
        str(ROOT / "benchmarks" / "sample.jsonl"),
        "--json",
        str(saved),
        *(part for threshold in thresholds for part in ("--require", threshold)),
    )
    assert ran.code == 0, ran.out + ran.err
    run = load(saved)
    assert run.faults == ()
    assert len(list((desk.folder / "evaluations").glob("*-sample.png"))) == 1
    assert os.path.getsize(saved) > 1000
