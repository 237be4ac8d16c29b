"""python evaluate.py from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from folio.cli import projects
from folio.evaluate.dataset import EvalSet, Gold, Question, save
from folio.evaluate.metrics import NAMES, figures
from folio.evaluate.runner import Runner, load
from folio.models.chat_model import TRIES
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.ollama_models import Json, RefusedError, Scripted
from tests.helpers.ollama_server import OllamaStandIn, closed_url
from tests.helpers.paths import ROOT, SAMPLE
from tests.helpers.web_client import small_app

# The same for each run: a new desk has another address at which no server answers
SETTINGS = {"LLM": "builtin", "OLLAMA_HOST": "http://127.0.0.1:1"}
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
    ready.settings |= SETTINGS
    save(tmp_path / "three.jsonl", QUESTIONS)
    return ready, tmp_path / "three.jsonl"


def evaluated(asked: tuple[CliRunner, Path], *arguments: str) -> CliResult:
    desk, path = asked
    return desk.evaluate(str(path), "--out", str(path.parent / "out"), *arguments)


@pytest.fixture(scope="module")
def saved(two_papers: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A saved run over the three questions."""
    folder = tmp_path_factory.mktemp("saved")
    save(folder / "three.jsonl", QUESTIONS)
    with pytest.MonkeyPatch.context() as patch:
        desk = CliRunner(two_papers, patch, settings=SETTINGS)
        line = (str(folder / "three.jsonl"), "--json", str(folder / "run.json"), "--out", str(folder))
        assert desk.evaluate(*line).code == 0
    return str(folder / "run.json")


def test_a_set_is_asked_and_reported_the_same_way_twice(
    asked: tuple[CliRunner, Path], tmp_path: Path, saved: str
) -> None:
    thresholds = ["recall@5=0.9", "first_citation=1", "answerable_refused<=0"]
    again = tmp_path / "run.json"
    ran = evaluated(asked, "--json", str(again), "--compare", saved, "--require", *thresholds)
    assert ran.code == 0, ran.err
    for text in (
        "Found by passage, questions: 2",
        "Found by page, questions: 2",
        "Same configuration.",
        "All thresholds were met.",
    ):
        assert text in ran.out
    report, plot = sorted((tmp_path / "out").iterdir())
    assert (report.suffix, plot.suffix) == (".md", ".png")
    assert all(str(path) in ran.out for path in (report, plot))
    compared = "| MRR | 2 | 1.000 | 1.000 | +0.000 | +0.000 to +0.000 | not significant |"
    assert compared in report.read_text(encoding="utf-8")
    run = load(again)
    assert [question.id for question in run.asked] == ["hairs", "gauge", "none"]
    assert run.stages == ("dense", "bm25", "fused", "reranked")
    assert run.store["papers"] == "2"
    assert run.settings["CHUNK_SIZE"] == "1500"
    assert not {"PAPERS_DIR", "VECTORSTORE_DIR"} & set(run.settings)
    known = {name: figure.value for name, figure in figures(run.asked, "reranked").items()}
    assert known["mrr"] == known["page.mrr"] == known["first_citation"] == known["quote_fidelity"] == 1
    assert known["refusal_recall"] == 1
    assert (run.faults, run.notes) == ((), ())
    assert without_times(again) == {**without_times(Path(saved)), "source": str(asked[1])}


def without_times(run: Path) -> dict[str, Any]:
    """A saved run without what differs from run to run."""
    found: dict[str, Any] = json.loads(run.read_text(encoding="utf-8"))
    for question in found["asked"]:
        del question["timings_ms"]
    return {key: value for key, value in found.items() if key not in ("made", "seconds")}


def test_no_answers_and_limit(asked: tuple[CliRunner, Path], tmp_path: Path) -> None:
    more = ("--require", "recall@5=1", "--require", "quote_fidelity=0.9")
    ran = evaluated(asked, "--no-answers", "--limit", "1", "--json", str(tmp_path / "run.json"), *more)
    assert ran.code == 1
    assert "quote_fidelity should be at least 0.9, but this set does not measure it." in ran.err
    assert "Answers" not in ran.out
    (only,) = load(tmp_path / "run.json").asked
    assert (only.id, only.answer) == ("hairs", None)


def test_a_project_alone_is_searched_and_asked_what_it_can_answer(filled: CliRunner, tmp_path: Path) -> None:
    filled.settings |= SETTINGS
    filled._here(projects, ["new", "Sea", "otters"])
    both = tuple(gold for question in QUESTIONS for gold in question.gold)
    save(tmp_path / "four.jsonl", (*QUESTIONS, Question("both", "What was counted?", "multi", gold=both, every=True)))
    asked = filled, tmp_path / "four.jsonl"
    ran = evaluated(asked, "--project", "sea", "--json", str(tmp_path / "run.json"))
    assert ran.code == 0, ran.err
    assert "Questions left out, because they need papers that are not in the project: 2." in ran.out
    run = load(tmp_path / "run.json")
    assert [question.id for question in run.asked] == ["hairs", "none"]
    assert run.store["project"] == "sea"
    assert figures(run.asked, "reranked")["mrr"].value == 1
    ran = evaluated(asked, "--project", "sea", "--no-answers", "--limit", "1", "--json", str(tmp_path / "one.json"))
    assert ran.code == 0, ran.err
    assert [question.id for question in load(tmp_path / "one.json").asked] == ["hairs"]
    save(tmp_path / "four.jsonl", QUESTIONS[1:])
    for line, code, words in (
        (("--project", "Sea"), 2, "None of the papers that four.jsonl asks about is in the project."),
        (("--project", "Land"), 2, "No project is called “Land”."),
        (("--project", "Sea", "--papers", str(filled.papers)), 2, "Only papers of the index are in a project."),
    ):
        ran = evaluated(asked, *line)
        assert (ran.code, ran.err.splitlines()[0]) == (code, words)


def test_other_papers_than_those_of_a_project_are_not_among_the_hits(tmp_path: Path) -> None:
    app = small_app(tmp_path)
    gauge = EvalSet("gauge", Path("gauge"), (QUESTIONS[1],))
    with closing(app.open_library()) as library:
        retriever = app.retriever(library)
        otters = [paper for paper in library.papers() if paper.file == "otters.pdf"]
        for papers, rank in ((None, 1), (otters, None)):
            run = Runner(gauge, library, retriever, papers=papers).run(datetime.now(UTC), {}, {}, lambda *_: None)
            assert run.asked[0].ranks["reranked"]["paper"] == (rank,)


@pytest.mark.parametrize(
    ("thresholds", "code", "shown"),
    [
        (["mrr=1", "answerable_refused<=0"], 0, ""),
        (["recall@5=1", "answerable_refused=0.5"], 1, "answerable_refused is 0.0000 and should be at least 0.5"),
        (["page.mrr<=0.25"], 1, "page.mrr is 1.0000 and should be at most 0.25 (off by 0.7500)."),
        (["grade=2"], 1, "grade should be at least 2, but this set does not measure it."),
    ],
)
def test_thresholds_decide_the_exit_code(
    ready: CliRunner, saved: str, thresholds: list[str], code: int, shown: str
) -> None:
    ran = ready.evaluate("--compare", saved, saved, "--require", *thresholds)
    assert ran.code == code
    assert shown in ran.err
    assert ("All thresholds were met." in ran.out) == (code == 0)


def test_an_unknown_metric_is_refused_before_any_question(asked: tuple[CliRunner, Path], tmp_path: Path) -> None:
    ran = evaluated(asked, "--require", "recal@5=0.8")
    assert ran.code == 2
    assert "There is no metric recal@5." in ran.err
    assert all(name in ran.err for name in NAMES)
    assert not (tmp_path / "out").exists()


def test_settings_of_the_search_are_compared(asked: tuple[CliRunner, Path], tmp_path: Path, saved: str) -> None:
    changed = tmp_path / "b.json"
    asked[0].settings |= {"RETRIEVAL_MODE": "lexical", "MMR_LAMBDA": "0.5", "TOP_K": "1"}
    ran = evaluated(asked, "--no-answers", "--json", str(changed), "--compare", saved)
    assert ran.code == 0, ran.err
    shown = asked[0].evaluate("--compare", saved, str(changed))
    assert shown.code == 0
    for difference in ("RETRIEVAL_MODE: hybrid -> lexical", "MMR_LAMBDA: 1.0 -> 0.5", "TOP_K: 4 -> 1"):
        assert difference in ran.out
        assert difference in shown.out
    assert load(changed).stages == ("bm25", "fused", "reranked", "mmr")
    asked[0].settings |= {"RETRIEVAL_MODE": "hybrid", "FUSION": "rrf", "RRF_K": "0"}
    assert "RRF_K" in evaluated(asked, "--no-answers").err


@pytest.mark.parametrize(
    ("arguments", "happened"),
    [
        ("", "No set of questions was given."),
        ("absent.jsonl", "absent.jsonl"),
        ("--compare a.json", "--compare without a set needs two saved runs."),
        ("--compare a.json b.json", "a.json cannot be read"),
        ("set.jsonl --compare a.json b.json", "A set and two saved runs were given."),
        ("--compare a.json b.json --limit 3", "--limit needs a set of questions."),
        ("--make papers --limit 3", "--make and --limit cannot be combined."),
        ("set.jsonl -n 3", "-n needs --make."),
        ("set.jsonl --from-log", "--from-log and a set of questions cannot be combined."),
        ("--from-log -n 3", "--from-log and -n cannot be combined."),
        ("set.jsonl --judge --no-answers", "--judge and --no-answers cannot be combined."),
        ("--judge --json run.json", "--json needs a set of questions."),
    ],
)
def test_options_that_make_no_sense(ready: CliRunner, arguments: str, happened: str) -> None:
    ran = ready.evaluate(*arguments.split())
    assert ran.code == 2
    assert happened in ran.err
    assert "Traceback" not in ran.err


def test_a_set_needs_an_index_of_its_papers(desk: CliRunner, tmp_path: Path) -> None:
    save(tmp_path / "three.jsonl", QUESTIONS)
    before = desk.evaluate(str(tmp_path / "three.jsonl"))
    assert (before.code, "ingest.py" in before.err) == (1, True)
    (tmp_path / "empty").mkdir()
    empty = desk.evaluate(str(tmp_path / "three.jsonl"), "--papers", str(tmp_path / "empty"))
    assert (empty.code, "There are no PDFs in" in empty.err) == (2, True)


def test_a_set_on_papers_that_are_not_in_the_index(ready: CliRunner, tmp_path: Path) -> None:
    save(tmp_path / "whales.jsonl", [Question("w", "How big is a whale?", gold=(Gold("whales.pdf", 1, HAIRS),))])
    ran = ready.evaluate(str(tmp_path / "whales.jsonl"))
    assert ran.code == 2
    assert "None of the papers that whales.jsonl asks about is in the index." in ran.err
    assert "--papers FOLDER" in ran.err


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


def failing_on(*questions: str) -> Callable[[list[Json]], str]:
    """A model that crashes on these questions and answers the others with "not found"."""

    def reply(messages: list[Json]) -> str:
        if any(question in messages[-1]["content"] for question in questions):
            raise RefusedError(500, "model runner has unexpectedly stopped")
        return "Not found in the provided papers."

    return reply


def test_a_question_that_the_model_fails_on_is_named(asked: tuple[CliRunner, Path]) -> None:
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


def test_a_server_that_is_down_is_an_error(asked: tuple[CliRunner, Path]) -> None:
    desk, path = asked
    with OllamaStandIn(dimension=64, reply=failing_on("?")) as server:
        server.stated = Scripted(refused=500, error="model runner has unexpectedly stopped")
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
    assert f"Questions written so far: 1. They are in {tmp_path / 'made.jsonl'}." in ran.err
    assert len((tmp_path / "made.jsonl").read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.slow
def test_shipped_set_on_the_sample_paper(desk: CliRunner, tmp_path: Path) -> None:
    (desk.papers / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    assert desk.ingest().code == 0
    thresholds = ("recall@5=0.9", "page.recall@5=0.9", "quote_fidelity=1", "citation_rate=1")
    line = (str(ROOT / "benchmarks" / "sample.jsonl"), "--json", "run.json", "--require", *thresholds)
    ran = desk.spawn("evaluate.py", *line)
    assert ran.code == 0, ran.out + ran.err
    assert load(desk.folder / "run.json").faults == ()
    assert len(list((desk.folder / "evaluations").glob("*-sample.png"))) == 1
    assert list((desk.folder / "home").iterdir()) == []  # where matplotlib would keep its fonts
