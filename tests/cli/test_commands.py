"""The two scripts, whole: what they print, what they end with, what is in the index afterwards."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pymupdf
import pytest

from config import Settings
from folio.answer.extractive import WITHOUT_MODEL
from folio.answer_types import REFUSAL
from folio.ingest.queue import NO_VECTOR
from folio.models.chat_model import TRIES
from folio.pdf import ocr
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import small_papers, write_pdf
from tests.helpers.fakes import overwrite
from tests.helpers.ollama_models import LLAMA, NOMIC, VERSION
from tests.helpers.ollama_server import OllamaStandIn, closed_url
from tests.helpers.paths import ROOT, SAMPLE
from tests.helpers.pdfs import encoded_page

LENGTH = "How long is the Aletsch glacier?"
IS_LONG = "The Aletsch glacier has a length of 23 kilometres and covers 82 square kilometres of the Bernese Alps."
IS_THICK = "At the Konkordiaplatz the ice of the Aletsch glacier has a thickness of 800 metres."
BUILT_IN = "Using built-in models. For better answers, start Ollama (`python query.py --doctor` shows how).\n"
SOUND = "The index is consistent: library, vectors and BM25 agree.\n"
KEYS = {"question", "answer", "refused", "citations", "hits", "models", "timings_ms"}


def table(ran: CliResult) -> dict[str, list[int]]:
    """The closing table: papers, pages and passages for each kind of outcome."""
    rows = re.findall(r"^(added|replaced|skipped|failed|removed)((?: +[\d,]+)+) *$", ran.out, re.MULTILINE)
    return {name: [int(number.replace(",", "")) for number in numbers.split()] for name, numbers in rows}


@pytest.fixture
def with_ollama(desk: CliRunner, ollama_server: OllamaStandIn) -> CliRunner:
    """A desk with two papers, none read yet, and an Ollama server."""
    small_papers(desk.papers)
    desk.settings["OLLAMA_HOST"] = ollama_server.url
    return desk


# Ingest


def test_an_ingest_names_the_worst_problem_and_all_with_verbose(desk: CliRunner) -> None:
    desk.settings["OCR"] = "off"
    document = pymupdf.open()
    lines = ["Sea otters were nearly extinct in 1911, and a treaty of four states saved them from the fur trade."] * 3
    for off in (3, 3, 0, 0, 0):
        encoded_page(document, lines, off)
    document.new_page()
    document.save(desk.papers / "otters.pdf")
    document.close()
    encoded = "pp. 1-2: the text is encoded so that no program can read it; set OCR=auto"
    told = " ".join(desk.ingest().out.split())
    assert f"{encoded} (1 more with -v)" in told
    assert "p. 6" not in told
    assert desk.record()[0]["problems"] == [encoded, "p. 6: no text"]
    everything = " ".join(desk.ingest("--rebuild", "-v").out.split())
    assert f"{encoded} p. 6: no text" in everything


def test_an_ingest_then_a_change_a_copy_and_a_loss(desk: CliRunner) -> None:
    desk.workers = True
    small_papers(desk.papers)
    shutil.copy(SAMPLE, desk.papers)
    first = desk.ingest()
    assert first.code == 0
    assert table(first) == {"added": [3, 10, 24], "replaced": [0, 0, 0], "skipped": [0], "failed": [0]}
    assert str(desk.folder / "ingested.json") in first.out
    assert first.err == BUILT_IN
    record = {paper["file"]: paper for paper in desk.record()}
    assert list(record) == ["alps/glaciers.pdf", "folio-sample.pdf", "otters.pdf"]
    assert [record[file]["pages"] for file in record] == [3, 5, 2]
    assert record["otters.pdf"]["title"] == "On Sea Otters"
    assert record["otters.pdf"]["paths"] == [str(desk.papers / "otters.pdf")]

    again = desk.ingest()
    assert (again.code, again.err) == (0, "")
    assert re.fullmatch(r"Nothing new: all 3 papers are already in the index \(\d+\.\d s\)\.\n", again.out)

    write_pdf(desk.papers / "otters.pdf", ["Sea otters were nearly extinct in 1911. A treaty saved them."])
    shutil.copy(desk.papers / "alps" / "glaciers.pdf", desk.papers / "copy.pdf")
    changed = desk.ingest()
    assert changed.code == 0
    assert table(changed) == {"added": [0, 0, 0], "replaced": [1, 1, 1], "skipped": [3], "failed": [0]}
    assert "The same file as alps/glaciers.pdf." in changed.out
    assert desk.query("--json", "When were sea otters nearly extinct?").object["citations"][0]["file"] == "otters.pdf"

    (desk.papers / "otters.pdf").unlink()
    (desk.papers / "copy.pdf").unlink()
    kept = desk.ingest()
    assert "Nothing new: all 2 papers" in kept.out
    assert len(desk.record()) == 3
    pruned = desk.ingest("--prune")
    assert pruned.code == 0
    assert table(pruned)["removed"] == [2]
    assert [paper["file"] for paper in desk.record()] == ["alps/glaciers.pdf", "folio-sample.pdf"]
    assert desk.ingest("--verify") == CliResult(0, SOUND, "")


def test_a_rebuild_follows_a_renamed_pdf(desk: CliRunner) -> None:
    small_papers(desk.papers)
    desk.ingest()
    renamed = desk.papers / "renamed.pdf"
    (desk.papers / "alps" / "glaciers.pdf").rename(renamed)
    assert desk.ingest("--rebuild").code == 0
    assert [paper["file"] for paper in desk.record()] == ["otters.pdf", "renamed.pdf"]
    renamed.unlink()
    refused = desk.ingest("--rebuild")
    assert refused.code == 2
    assert "Indexed files that are missing: 1, including renamed.pdf." in refused.err
    assert len(desk.record()) == 2


def test_a_rebuild_takes_new_settings_and_all_papers(desk: CliRunner) -> None:
    small_papers(desk.papers)
    elsewhere = write_pdf(desk.folder / "elsewhere" / "seal.pdf", ["Seals sleep on the beach and eat fish."])
    assert table(desk.ingest(str(elsewhere), "--jobs", "1"))["added"] == [1, 1, 1]
    assert table(desk.ingest(str(desk.papers), str(elsewhere.parent)))["added"] == [2, 5, 2]
    desk.settings |= {"CHUNK_SIZE": "200", "CHUNK_OVERLAP": "20"}
    ran = desk.ingest("--rebuild")
    assert ran.code == 0
    assert table(ran)["added"][:2] == [3, 6]
    assert table(ran)["added"][2] > 3
    assert [paper["file"] for paper in desk.record()] == ["alps/glaciers.pdf", "otters.pdf", "seal.pdf"]
    assert desk.ingest("--verify") == CliResult(0, SOUND, "")
    hits = desk.query("--json", "--sources", LENGTH).object["hits"]
    assert all(len(hit["text"]) <= 200 for hit in hits)
    assert "rebuild.sqlite" not in [path.name for path in desk.store.iterdir()]


@pytest.mark.parametrize("lexical", ["tantivy", "rank_bm25"])
def test_repair_makes_the_indexes_anew_without_embedding(
    with_ollama: CliRunner, ollama_server: OllamaStandIn, lexical: str
) -> None:
    with_ollama.settings["LEXICAL"] = lexical
    with_ollama.ingest()
    embedded = len(ollama_server.embedded())
    for path in [*with_ollama.store.glob("vectors-*.faiss"), *with_ollama.store.glob("lexical/*")]:
        overwrite(path, b"torn")
    damaged = with_ollama.ingest("--verify")
    assert damaged.code == 1
    assert "Run `python ingest.py --repair`" in damaged.out
    repaired = with_ollama.ingest("--repair")
    assert (repaired.code, repaired.err) == (0, "")
    assert "2 passages. Nothing was embedded again" in repaired.out
    assert repaired.out.endswith(SOUND)
    assert len(ollama_server.embedded()) == embedded


# What is typed -> the two options that cannot be combined
CONFLICTS = {
    "--batch x Why?": "a question and --batch",
    "--feedback good Why?": "a question and --feedback",
    "--feedback good --json": "--json and --feedback",
    "--feedback good --no-log": "--no-log and --feedback",
    "--feedback good --paper otters": "--paper and --feedback",
    "--feedback good --top-k 3": "--top-k and --feedback",
    "--stats Why?": "a question and --stats",
    "--stats --feedback good": "--stats and --feedback",
    "--stats --paper otters": "--paper and --stats",
    "--stats --top-k 3": "--top-k and --stats",
    "--stats --no-log": "--no-log and --stats",
    "--stats --model x": "--model and --stats",
    "--stats --deep Why?": "--deep and --stats",
    "--sources --verify Why?": "--verify and --sources",
    "--sources --show-evidence Why?": "--show-evidence and --sources",
    "--sources --style report Why?": "--style and --sources",
    "--sources --model x Why?": "--model and --sources",
    "--sources --deep Why?": "--deep and --sources",
    "--papers --sources x": "--papers and --sources",
    "--papers --style report x": "--style and --papers",
    "--papers --deep Why?": "--deep and --papers",
    "--verify --json Why?": "--json and --verify",
    "--verify --batch x": "--batch and --verify",
    "--doctor Why?": "a question and --doctor",
    "--doctor --stats": "--stats and --doctor",
    "--doctor --json": "--json and --doctor",
    "--doctor --show-dropped": "--show-dropped and --doctor",
    "--forget Why?": "a question and --forget",
    "--forget --feedback bad": "--feedback and --forget",
    "--resume Why?": "a question and --resume",
    "--resume --batch x": "--batch and --resume",
    "--resume --style report": "--style and --resume",
    "--resume --top-k 3": "--top-k and --resume",
    "--resume --sources": "--resume and --sources",
}


@pytest.mark.parametrize("typed", CONFLICTS)
def test_options_that_do_not_go_together(ready: CliRunner, typed: str) -> None:
    ran = ready.query(*typed.split())
    assert ran == CliResult(2, "", f"{CONFLICTS[typed]} cannot be combined.\nUse one of them.\n")


@pytest.mark.parametrize("more", ["--style=report", "--paper=otters", "--top-k=3", "--no-log", "--show-evidence"])
def test_verify_with_options_for_a_question_needs_one(ready: CliRunner, more: str) -> None:
    said = f"--verify with {more.partition('=')[0]} needs a question."
    assert ready.query("--verify", more) == CliResult(
        2, "", f"{said}\nGive one; --verify alone opens the last answer.\n"
    )


@pytest.mark.parametrize("viewer", ["none", " none ", "NONE", "None\t"])
def test_the_words_for_a_viewer_in_any_spelling(viewer: str) -> None:
    assert Settings(_env_file=None, PDF_VIEWER=viewer).PDF_VIEWER == "none"  # type: ignore[call-arg]


# Query


def test_an_answer_and_its_sources(ready: CliRunner) -> None:
    ran = ready.query("How long is the Aletsch glacier, and how many square kilometres does it cover?")
    assert ran.code == 0
    assert re.search(f"^From the papers\n.*{re.escape(IS_LONG)} ", ran.out, re.M)
    assert "[“The Aletsch Glacier”, p. 1]" in ran.out
    answer, sources = ran.out.split("\nSources\n")
    assert re.search(r"^1\. alps/glaciers\.pdf, p\. 1\b.*The Aletsch Glacier", sources)
    assert IS_LONG not in sources  # it stands in the answer
    assert re.findall(r"\[(.+?)\]", answer)
    assert set(re.findall(r"\[(.+?) p\.\d+\]", answer)) <= {"alps/glaciers", "otters"}
    assert ran.err == f"{BUILT_IN}{WITHOUT_MODEL}\n"
    assert ready.query(LENGTH).err == f"{WITHOUT_MODEL}\n"  # the first is said once a day


def test_a_question_needs_no_quotes(ready: CliRunner) -> None:
    quoted = ready.query("--no-log", "--top-k", "1", LENGTH)
    for words in (
        [*LENGTH.split(), "--no-log", "--top-k", "1"],
        ["How", "long", "--no-log", "is", "the", "--top-k", "1", "Aletsch", "glacier?"],
        ["--no-log", "How long is", "--top-k=1", "the Aletsch glacier?"],
    ):
        assert ready.query(*words).out == quoted.out
    assert ready.query("--json", "how", "long").object["question"] == "how long"
    assert ready.query("", " ").err.startswith("The question is empty.")


def test_a_refusal_names_the_closest_passages(ready: CliRunner) -> None:
    nowhere = "Who painted the ceiling of the Sistine chapel in Rome?"
    ran = ready.query(nowhere)
    assert (ran.code, ran.out) == (0, f"{REFUSAL}\n")
    assert "The closest passages are in " in ran.err
    assert "otters.pdf pp. 1–2" in ran.err
    assert "--sources" in ran.err
    found = ready.query("--json", nowhere).object
    assert (found["answer"], found["refused"], found["citations"]) == (REFUSAL, True, [])
    assert len(found["hits"]) == 2


def test_json_is_one_object_and_nothing_else(ready: CliRunner) -> None:
    ran = ready.query("--json", LENGTH)
    found = ran.object
    assert found.keys() >= KEYS
    assert (ran.code, found["question"], found["refused"]) == (0, LENGTH, False)
    assert IS_LONG in found["answer"]
    first = found["citations"][0]
    assert (first["file"], first["page"]) == ("alps/glaciers.pdf", 1)
    assert IS_LONG in " ".join(first["quote"].split())
    assert [hit["file"] for hit in found["hits"]] == ["alps/glaciers.pdf", "otters.pdf"]
    assert found["hits"][0]["pages"] == [1, 3]
    assert first["quote"] in found["evidence"][first["evidence"] - 1]["text"]
    scores = [hit["score"] for hit in found["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert found["models"] == {
        "embedder": "all-MiniLM-L6-v2 (built in)",
        "reranker": "built in",
        "llm": "extractive (built in)",
    }
    assert all(isinstance(value, int | float) and value >= 0 for value in found["timings_ms"].values())
    assert ran.err.count("\n") == 1


def test_sources_are_passages_in_rank_order(ready: CliRunner) -> None:
    ran = ready.query("--sources", LENGTH)
    assert ran.code == 0
    assert re.findall(r"^(\d)\. (\S+), (pp?\. [\d–]+)", ran.out, re.MULTILINE) == [
        ("1", "alps/glaciers.pdf", "pp. 1–3"),
        ("2", "otters.pdf", "pp. 1–2"),
    ]
    assert "   At the Konkordiaplatz the ice" in ran.out
    found = ready.query("--json", "--sources", LENGTH).object
    assert found.keys() == {"question", "hits", "models", "timings_ms", "notice"}
    assert "llm" not in found["models"]
    assert found["hits"][0].keys() >= {"file", "pages", "score", "text"}


def test_top_k_and_paper(ready: CliRunner) -> None:
    assert [hit["file"] for hit in ready.query("--json", "--top-k", "1", LENGTH).object["hits"]] == [
        "alps/glaciers.pdf"
    ]
    for option in ("--sources", "--json"):
        found = ready.query("--json", option, "--paper", "OTTERS", LENGTH).object
        assert [hit["file"] for hit in found["hits"]] == ["otters.pdf"]
    by_title = ready.query("--json", "--sources", "--paper", "aletsch glacier", "What do otters eat?").object
    assert [hit["file"] for hit in by_title["hits"]] == ["alps/glaciers.pdf"]
    both = ready.query("--json", "--sources", "--paper", "aletsch", "--paper", "otters.pdf", LENGTH).object
    assert {hit["file"] for hit in both["hits"]} == {"alps/glaciers.pdf", "otters.pdf"}


@pytest.mark.parametrize(
    ("given", "happened"),
    [
        (["--year", "20"], "“20” is not a year or a range of years."),
        (["--year", "2020-2010"], "The years “2020-2010” end before they begin."),
        (["--year", "1800-1801"], "No paper fits the year."),
        (["--author", "Darwin"], "No paper in the index is by “Darwin”."),
        (["--venue", "Nature"], "No paper in the index is of a venue called “Nature”."),
        (["--section", "methods"], "No paper fits the section."),
        (["--paper", "sealions"], "No paper in the index is called “sealions”."),
        (["--paper", "oters.pdf"], "No paper in the index is called “oters.pdf”. Similar names: otters.pdf"),
    ],
)
def test_a_filter_that_nothing_fits(ready: CliRunner, given: list[str], happened: str) -> None:
    for more in ([], ["--sources"], ["--json"]) if "1800-1801" in given else (["--sources"],):
        ran = ready.query(*more, *given, LENGTH)
        assert (ran.code, ran.out) == (2, "")
        assert happened in ran.err


def test_a_batch_is_asked_line_by_line_without_memory(ready: CliRunner) -> None:
    diet = "What is the diet of sea otters made of?"
    file = ready.folder / "questions.txt"
    file.write_text(f"\ufeff{LENGTH}\n\n  {diet}  \r\nHow thick is it?\n", encoding="utf-8")
    ran = ready.query("--batch", str(file), "--json")
    assert ran.code == 0
    assert [found["question"] for found in ran.objects] == [LENGTH, diet, "How thick is it?"]
    assert [found["standalone_question"] for found in ran.objects] == [found["question"] for found in ran.objects]
    assert "urchins" in ran.objects[1]["answer"]
    shown = ready.query("--batch", str(file), "--sources", "--json")
    assert [found["question"] for found in shown.objects] == [found["question"] for found in ran.objects]
    assert all("answer" not in found for found in shown.objects)
    plain = ready.query("--batch", str(file))
    assert [line for line in plain.out.splitlines() if line.endswith("?")] == [
        found["question"] for found in ran.objects
    ]


def test_a_chat_on_a_pipe(ready: CliRunner) -> None:
    typed = f"\n{LENGTH}\nHow thick is it?\n/sources\n/new\n/sources\n/help\n/quit\nWhat do otters eat?\n"
    ran = ready.query(typed=typed)
    assert ran.code == 0
    first, second, third = ran.out.split("\nSources\n")
    assert IS_LONG in first
    assert IS_THICK in second  # it: the glacier
    assert third.count("1. alps/glaciers.pdf, pp. 1–3") == 1
    assert LENGTH not in ran.out
    assert "urchins, clams and crabs. [" not in ran.out  # nothing is asked behind /quit
    notices = [line for line in ran.err.splitlines()[1:] if line != WITHOUT_MODEL]
    assert notices[:3] == [
        "Understood as: How thick is the Aletsch Glacier?",
        "New conversation.",
        "Nothing has been asked yet.",
    ]
    assert notices[3].startswith("/sources lists the passages")
    assert len(notices) == 4


def test_a_chat_can_hide_how_it_understood_a_question(ready: CliRunner) -> None:
    ready.settings["SHOW_UNDERSTOOD"] = "false"
    ran = ready.query(typed=f"{LENGTH}\nHow thick is it?\n/quit\n")
    assert IS_THICK in ran.out
    assert "Understood" not in ran.out + ran.err


def test_a_chat_goes_on_after_an_error(ready: CliRunner, ollama_server: OllamaStandIn) -> None:
    ready.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url}
    ollama_server.faults.fails = TRIES
    ollama_server.reply = lambda messages: f"{IS_LONG} [1]"
    ran = ready.query(typed=f"{LENGTH}\n{LENGTH}\n")
    assert ran.code == 0
    assert ran.err.count("Ollama could not keep llama3.1:8b running") == 1
    assert ran.out.count("\nSources\n") == 2  # first the papers' own words, then the model's answer


def test_a_model_that_fails_ends_the_command_with_1(ready: CliRunner, ollama_server: OllamaStandIn) -> None:
    ready.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url}
    questions = ready.folder / "questions.txt"
    questions.write_text(f"{LENGTH}\n{LENGTH}\n", encoding="utf-8")
    ollama_server.reply = lambda messages: f"{IS_LONG} [1]"
    for arguments, codes in ((("--json", LENGTH), [True]), (("--json", "--batch", str(questions)), [True, False])):
        ollama_server.faults.fails = TRIES
        ran = ready.query("--no-log", *arguments)
        assert ran.code == 1
        assert [found["model_failed"] for found in ran.objects] == codes
        assert [IS_LONG in found["answer"] for found in ran.objects] == [True for _ in codes]
    assert ready.query("--no-log", LENGTH).code == 0


def test_a_model_that_was_only_stopped_is_no_failure(ready: CliRunner, ollama_server: OllamaStandIn) -> None:
    ready.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url, "ANSWER_FORMAT": "prose"}
    ollama_server.reply = lambda messages: f"{IS_LONG} [1] It is" + " so" * 50
    ran = ready.query("--no-log", LENGTH)
    assert ran.code == 0
    assert ran.out.startswith(f"{IS_LONG} [“The Aletsch Glacier”, p. 1]\n")
    assert "The model was stopped, because it only repeated itself." in ran.err


# Ollama, or not


def test_with_ollama_everything_goes_through_it(with_ollama: CliRunner, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = lambda messages: f"{IS_LONG} [1] Rome has seven hills [1]."
    ingested = with_ollama.ingest()
    assert (ingested.code, ingested.err) == (0, "")
    assert all(text.startswith("search_document: ") for text in ollama_server.embedded())
    ran = with_ollama.query("--json", LENGTH)
    found = ran.object
    assert (ran.code, ran.err) == (0, "")
    assert ollama_server.embedded()[-1] == f"search_query: {LENGTH}"
    assert found["answer"] == IS_LONG
    assert found["dropped_sentences"] == 1
    assert [(c["file"], c["page"], c["evidence"]) for c in found["citations"]] == [("alps/glaciers.pdf", 1, 1)]
    assert found["models"]["embedder"] == "nomic-embed-text:latest (Ollama)"
    assert found["models"]["llm"] == "llama3.1:8b (Ollama)"
    shown = with_ollama.query(LENGTH)
    assert shown.out.startswith(f"{IS_LONG} [“The Aletsch Glacier”, p. 1]\n\nSources\n")
    assert "1 unsupported sentence" in shown.err


@pytest.mark.parametrize("arguments", [[LENGTH], ["--sources", LENGTH], ["--json", LENGTH]])
def test_a_reranker_that_stands_in_is_named_in_one_line(ready: CliRunner, arguments: list[str]) -> None:
    ready.settings |= {"RERANKER": "auto", "LLM": "builtin"}
    notice, *more = ready.query(*arguments).err.splitlines()
    assert more in ([], [WITHOUT_MODEL])
    assert notice.startswith("Using built-in models. For better answers, run `ollama pull nomic-embed-text` and ")
    assert notice.endswith("; run `make models` (`python query.py --doctor` shows how).")


def test_sources_call_no_language_model(with_ollama: CliRunner, ollama_server: OllamaStandIn) -> None:
    with_ollama.ingest()
    assert with_ollama.query("--sources", LENGTH).code == 0
    assert ollama_server.bodies("/api/chat") == []


def test_auto_keeps_to_what_the_store_was_made_with(with_ollama: CliRunner, ollama_server: OllamaStandIn) -> None:
    del ollama_server.models[NOMIC.name]
    assert "`ollama pull nomic-embed-text`" in with_ollama.ingest().err
    ollama_server.models[NOMIC.name] = NOMIC
    assert with_ollama.query("--json", LENGTH).object["models"]["embedder"] == "all-MiniLM-L6-v2 (built in)"
    assert ollama_server.embedded() == []


def test_auto_answers_without_a_chat_model(with_ollama: CliRunner, ollama_server: OllamaStandIn) -> None:
    with_ollama.ingest()
    del ollama_server.models[LLAMA.name]
    ran = with_ollama.query("--json", LENGTH)
    assert ran.object["models"]["llm"] == "extractive (built in)"
    assert "`ollama pull llama3.1:8b`" in ran.err


WORDS_ALONE = "No Ollama server answers at {}. So only words were searched (BM25), and not their meaning."


@pytest.fixture
def ollama_off(with_ollama: CliRunner) -> CliRunner:
    """A desk whose index was made with an Ollama server that has gone since."""
    assert with_ollama.ingest().code == 0
    with_ollama.settings |= {"OLLAMA_HOST": closed_url(), "LLM": "builtin"}
    return with_ollama


def test_with_ollama_off_its_index_is_searched_by_words(ollama_off: CliRunner) -> None:
    line = WORDS_ALONE.format(ollama_off.settings["OLLAMA_HOST"])
    asked = ollama_off.query(LENGTH)
    assert (asked.code, asked.err.count(line)) == (0, 1)
    assert asked.out.startswith("From the papers\n")
    assert IS_LONG in asked.out
    found = ollama_off.query("--json", LENGTH).object
    assert found["models"] == {
        "embedder": "nomic-embed-text:latest (Ollama, away)",
        "reranker": "built in",
        "llm": "extractive (built in)",
    }
    assert found["notice"].startswith(line)
    ranked = ollama_off.query("--sources", LENGTH)
    assert (ranked.code, ranked.err) == (0, f"{line}\n")
    assert "glaciers.pdf" in ranked.out
    passages = ollama_off.query("--sources", "--json", LENGTH).object
    assert (passages["hits"][0]["file"], passages["notice"]) == ("alps/glaciers.pdf", line)
    assert {hit["dense"] for hit in passages["hits"]} == {None}
    papers = ollama_off.query("--papers", "--json", "glacier ice").object
    assert ([paper["file"] for paper in papers["papers"]], papers["notice"]) == (["alps/glaciers.pdf"], line)
    deep = ollama_off.query("--deep", "--json", LENGTH).object
    assert (IS_LONG in deep["answer"], deep["notice"].count(line)) == (True, 1)


def test_with_ollama_off_the_doctor_says_what_goes_on(ollama_off: CliRunner) -> None:
    code, rows, text = doctor(ollama_off)
    assert (code, rows["built with"]) == (0, False)
    assert "Until then, only words are searched." in text
    assert text.endswith("Ready to answer.")
    ollama_off.settings["EMBEDDER"] = "ollama"
    assert doctor(ollama_off)[0] == 1


def test_a_search_by_words_alone_asks_no_server(with_ollama: CliRunner, ollama_server: OllamaStandIn) -> None:
    with_ollama.ingest()
    with_ollama.settings |= {"RETRIEVAL_MODE": "lexical", "LLM": "builtin", "EMBEDDER": "ollama"}
    before = len(ollama_server.requests)
    with_server = with_ollama.query("--sources", LENGTH)
    assert len(ollama_server.requests) == before
    with_ollama.settings["OLLAMA_HOST"] = closed_url()
    for options in (["--sources"], ["--papers"], []):
        ran = with_ollama.query(*options, LENGTH)
        assert (ran.code, "Ollama" in ran.err.replace(WITHOUT_MODEL, "")) == (0, False)
        assert ran.out == with_server.out or options != ["--sources"]


@pytest.mark.parametrize("chosen", [{"EMBEDDER": "ollama"}, {"RETRIEVAL_MODE": "dense"}])
def test_with_ollama_off_what_was_chosen_by_name_is_not_replaced(
    ollama_off: CliRunner, chosen: dict[str, str]
) -> None:
    ollama_off.settings |= chosen
    ran = ollama_off.query("--sources", LENGTH)
    assert (ran.code, ran.out) == (1, "")
    assert "No Ollama server answers" in ran.err


def test_with_ollama_off_nothing_is_measured(ollama_off: CliRunner) -> None:
    gold = {"paper": "alps/glaciers.pdf", "page": 1, "quote": IS_LONG[:40]}
    questions = ollama_off.folder / "questions.jsonl"
    questions.write_text(json.dumps({"id": "a", "question": LENGTH, "gold": [gold]}), encoding="utf-8")
    ran = ollama_off.evaluate(str(questions), "--no-answers")
    assert (ran.code, "No Ollama server answers" in ran.err) == (1, True)  # BM25 alone would pass for it


def test_a_question_without_a_vector_is_searched_by_words(
    with_ollama: CliRunner, ollama_server: OllamaStandIn
) -> None:
    with_ollama.ingest()
    with_ollama.settings["LLM"] = "builtin"
    ollama_server.faults.garbage = "nan"
    ran = with_ollama.query("--sources", LENGTH)
    assert (ran.code, ran.err.count("So only words were searched")) == (0, 1)
    del ollama_server.models[NOMIC.name]
    ran = with_ollama.query("--sources", LENGTH)
    assert "does not have the model nomic-embed-text. So only words were searched" in ran.err


def test_an_explicit_choice_never_falls_back(desk: CliRunner) -> None:
    small_papers(desk.papers)
    desk.settings["EMBEDDER"] = "ollama"
    refused = desk.ingest()
    assert (refused.code, refused.out) == (1, "")
    assert "No Ollama server answers" in refused.err
    desk.settings["EMBEDDER"] = "builtin"
    assert desk.ingest().err == ""
    desk.settings["LLM"] = "ollama"
    asked = desk.query(LENGTH)
    assert (asked.code, asked.out) == (1, "")
    assert "No Ollama server answers" in asked.err
    desk.settings |= {"LLM": "builtin", "RERANKER": "crossencoder"}
    asked = desk.query(LENGTH)
    assert (asked.code, asked.out) == (1, "")
    assert "The files of nobody/has-this are not on this computer.\nGet them with `make models`, or set" in asked.err
    desk.settings["RERANKER"] = "builtin"
    assert desk.query(LENGTH).err == f"{WITHOUT_MODEL}\n"


@pytest.mark.parametrize("setting", ["LLM_MODEL", "EMBED_MODEL"])
def test_a_cloud_model_is_refused_even_by_auto(
    with_ollama: CliRunner, ollama_server: OllamaStandIn, setting: str
) -> None:
    with_ollama.settings[setting] = "gpt-oss:120b-cloud"
    ran = with_ollama.ingest() if setting == "EMBED_MODEL" else None
    if ran is None:
        with_ollama.ingest()
        ran = with_ollama.query(LENGTH)
    assert (ran.code, ran.out) == (1, "")
    assert "gpt-oss:120b-cloud is a cloud model" in ran.err
    assert ollama_server.bodies("/api/chat") == []


# The doctor


def doctor(desk: CliRunner) -> tuple[int, dict[str, bool], str]:
    """Exit code, what is ready by name, and all that was printed with its white space made one."""
    ran = desk.query("--doctor")
    rows = re.findall(r"^([✓✗]) ([\w -]+?)  ", ran.out, re.MULTILINE)
    return ran.code, {name: mark == "✓" for mark, name in rows}, " ".join(ran.out.split())


def test_the_doctor_before_and_after_the_first_ingest(desk: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "engine", lambda: ocr.Engine("Stand-in", lambda page: []))
    code, rows, text = doctor(desk)
    always = {"built-in embedder": True, "reranker": True, "verifier": True, "OCR": True}
    assert (code, rows) == (1, {"Ollama": False, **always, "index": False})
    for line in (
        "none; without a chat model, answers are quotes",
        "There is no index at",
        "python ingest.py",
        "built in (RERANKER=builtin)",
        "ollama serve",
    ):
        assert line in text
    assert text.endswith("Not ready.")
    assert not desk.store.exists()  # looking changes nothing
    small_papers(desk.papers)
    desk.ingest()
    code, rows, text = doctor(desk)
    stored = {"index": True, "built with": True, "FAISS and BM25": True}
    assert (code, rows) == (0, {"Ollama": False, **always, **stored})
    assert "2 papers, 2 passages" in text
    assert "chunk_size 1500" in text
    assert text.endswith("Ready to answer.")


@pytest.mark.parametrize(
    ("engine", "setting", "ready", "said"),
    [
        ("Tesseract", "auto", True, "Tesseract reads scanned pages"),
        ("RapidOCR", "auto", True, "RapidOCR reads scanned pages"),
        ("Tesseract", "off", True, "off (OCR=off); Tesseract is installed"),
        ("", "off", True, "off (OCR=off)"),
        ("", "auto", False, "no engine is installed; scanned pages are left out"),
    ],
)
def test_the_doctor_says_which_ocr_there_is(
    desk: CliRunner, monkeypatch: pytest.MonkeyPatch, engine: str, setting: str, ready: bool, said: str
) -> None:
    monkeypatch.setattr(ocr, "engine", lambda: ocr.Engine(engine, lambda page: []) if engine else None)
    desk.settings["OCR"] = setting
    _, rows, text = doctor(desk)
    assert rows["OCR"] is ready
    assert f"OCR {said} " in text
    assert (ocr.HOW_TO_INSTALL[1:] in text) is not ready


def test_the_doctor_with_ollama(with_ollama: CliRunner, ollama_server: OllamaStandIn) -> None:
    with_ollama.ingest()
    code, rows, text = doctor(with_ollama)
    assert code == 0
    assert all(
        rows[name] for name in ("Ollama", "embedding model", "chat model", "index", "built with", "FAISS and BM25")
    )
    assert f"version {VERSION} at {ollama_server.url}" in text
    assert "nomic-embed-text:latest, context of 2,048 tokens" in text
    assert "llama3.1:8b, context of 131,072 tokens" in text
    del ollama_server.models[LLAMA.name]
    code, rows, text = doctor(with_ollama)
    assert (code, rows["chat model"]) == (0, False)  # the built-in answerer stands in
    assert "`ollama pull llama3.1:8b`" in text
    with_ollama.settings["LLM"] = "ollama"
    assert doctor(with_ollama)[0] == 1
    with_ollama.settings |= {"LLM": "auto", "LLM_MODEL": "gpt-oss:120b-cloud"}
    code, rows, text = doctor(with_ollama)
    assert not rows["chat model"]
    assert "cloud model" in text


def test_the_doctor_asks_each_model_as_a_question_does(with_ollama: CliRunner, ollama_server: OllamaStandIn) -> None:
    with_ollama.ingest()
    assert (doctor(with_ollama)[0], len(ollama_server.bodies("/api/chat"))) == (0, 1)
    ollama_server.faults.paths, ollama_server.faults.garbage = ("/api/chat",), "html"
    code, rows, text = doctor(with_ollama)
    assert (code, rows["embedding model"], rows["chat model"]) == (0, True, False)
    assert "did not answer like an Ollama server" in text
    with_ollama.settings["LLM"] = "ollama"
    assert doctor(with_ollama)[0] == 1
    ollama_server.faults.paths, ollama_server.faults.garbage = ("/api/embed",), "zero"
    code, rows, text = doctor(with_ollama)
    assert (code, rows["embedding model"], rows["chat model"]) == (0, False, True)
    assert "a vector of zeros" in text
    before = len(ollama_server.requests)
    with_ollama.settings |= {"LLM": "builtin", "RETRIEVAL_MODE": "lexical", "EMBEDDER": "auto"}
    doctor(with_ollama)
    assert "/api/chat" not in [request.path for request in ollama_server.requests[before:]]


def test_the_doctor_says_which_verifier_is_in_use(with_ollama: CliRunner, ollama_server: OllamaStandIn) -> None:
    with_ollama.ingest()
    assert "verifier llama3.1:8b (Ollama) " in doctor(with_ollama)[2]
    with_ollama.settings["VERIFIER_MODEL"] = "small"
    code, rows, text = doctor(with_ollama)
    assert (code, rows["verifier"], rows["verifier model"]) == (0, False, False)
    assert "`ollama pull small`" in text
    with_ollama.settings["VERIFIER"] = "llm"
    assert doctor(with_ollama)[0] == 1
    with_ollama.settings["VERIFIER"] = "none"
    code, rows, text = doctor(with_ollama)
    assert (code, rows["verifier"], "verifier model" in rows) == (0, True, False)
    assert "none (VERIFIER=none)" in text
    with_ollama.settings["VERIFIER"] = "crossencoder"
    code, rows, text = doctor(with_ollama)
    assert (code, rows["verifier"]) == (1, False)
    assert f"The files of {with_ollama.settings['NLI_MODEL']} are not on this computer." in text
    folder = with_ollama.folder / "nli"
    folder.mkdir()
    (folder / "config.json").write_text("{}")  # that it is there is all that the doctor asks
    with_ollama.settings["NLI_MODEL"] = str(folder)
    code, rows, text = doctor(with_ollama)
    assert (code, rows["verifier"]) == (0, True)
    assert str(folder) in text.replace(" ", "")


def test_the_doctor_sees_other_settings_and_lagging_indexes(desk: CliRunner) -> None:
    small_papers(desk.papers)
    desk.ingest()
    overwrite(next(desk.store.glob("vectors-*.faiss")), b"torn")
    code, rows, text = doctor(desk)
    assert (code, rows["FAISS and BM25"]) == (0, False)  # they are repaired with the next question
    assert "python ingest.py --repair" in text
    desk.settings["CHUNK_SIZE"] = "900"
    code, rows, text = doctor(desk)
    assert (code, rows["built with"]) == (1, False)
    assert "chunk_size is 1500 in the index and 900 now" in text
    assert "--rebuild" in text


# In processes of their own


def test_the_first_minutes_of_a_new_user(desk: CliRunner) -> None:
    desk.settings["MODELS_DIR"] = str(desk.folder / "models")  # nothing is there yet
    shutil.copy(SAMPLE, desk.papers)
    ingested = desk.spawn("ingest.py")
    assert ingested.code == 0
    assert table(ingested)["added"] == [1, 5, 22]
    typed = "How many characters has a chunk at most?\nWho wrote this?\n"
    asked = desk.spawn("query.py", "--batch", "-", "--json", typed=typed)
    assert asked.code == 0
    assert [answer["question"] for answer in asked.objects] == typed.splitlines()
    assert ("folio-sample.pdf", 2) in [(c["file"], c["page"]) for c in asked.objects[0]["citations"]]
    assert list((desk.folder / "home").iterdir()) == []  # nothing is left in the home


def test_a_reader_that_has_gone_is_no_error(ready: CliRunner) -> None:
    command = f'"{sys.executable}" "{ROOT / "query.py"}" --sources otters | head -n 1'
    ran = subprocess.run(
        ["sh", "-c", command], env=ready.environment(), cwd=ready.folder, capture_output=True, text=True, check=False
    )
    assert ran.stdout.startswith("1. otters.pdf")
    assert "Traceback" not in ran.stderr
    assert "BrokenPipe" not in ran.stderr


def test_a_passage_without_a_vector_does_not_stop_the_ingest(
    with_ollama: CliRunner, ollama_server: OllamaStandIn
) -> None:
    ollama_server.no_vector = "Bernese"
    ran = with_ollama.ingest()
    assert ran.code == 0
    assert f"alps/glaciers.pdf p. 1: {NO_VECTOR}" in " ".join(ran.out.split())
    hits = with_ollama.query("--json", LENGTH).object["hits"]
    assert [(hit["file"], hit["dense"]) for hit in hits if hit["file"] != "otters.pdf"] == [("alps/glaciers.pdf", 0.0)]
    ollama_server.no_vector = ""
    assert NO_VECTOR not in " ".join(with_ollama.ingest("--rebuild").out.split())
    assert all(hit["dense"] for hit in with_ollama.query("--json", LENGTH).object["hits"])
