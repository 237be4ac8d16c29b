"""Whatever is wrong: a line on what happened, a line on what to do, an exit code, no traceback, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from folio.store import indexes
from folio.store.indexes import LIBRARY
from folio.store.library import Library
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import GLACIERS, small_papers, write_pdf
from tests.helpers.fakes import overwrite
from tests.helpers.ollama_models import LLAMA, MINILM, NOMIC
from tests.helpers.ollama_server import OllamaStandIn, closed_url
from tests.helpers.pdfs import image_page

QUESTION = "How long is the Aletsch glacier?"
SOUND = CliResult(0, "The index is consistent: library, vectors and BM25 agree.\n", "")
REBUILD = "Run `python ingest.py --rebuild`"


@pytest.fixture
def kept(desk: CliRunner, two_papers: Path) -> CliRunner:
    """A desk with a store of two papers of its own."""
    shutil.copytree(two_papers / "vectorstore", desk.store)
    small_papers(desk.papers)
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    return desk


@pytest.fixture
def embedded(desk: CliRunner, ollama_server: OllamaStandIn) -> CliRunner:
    """A desk with two papers that a model on Ollama has embedded."""
    small_papers(desk.papers)
    desk.settings |= {"OLLAMA_HOST": ollama_server.url, "LLM": "builtin"}
    assert desk.ingest().code == 0
    return desk


def add_paper(desk: CliRunner) -> None:
    write_pdf(desk.papers / "new.pdf", ["A new paper on the seals of the Baltic Sea and their food."])


def complaint(ran: CliResult, code: int) -> tuple[str, str]:
    """What happened and what to do, when a command ended with this code and said these two things and nothing else."""
    assert (ran.code, ran.out) == (code, "")
    happened, remedy = ran.err.splitlines()
    assert happened.endswith(".")
    assert remedy.endswith((".", '"'))
    return happened, remedy


def is_unharmed(desk: CliRunner) -> None:
    """The store holds what it held, and answers."""
    ran = desk.ingest("--verify")
    assert ran == SOUND
    found = desk.query("--json", "--sources", QUESTION).object
    assert [hit["file"] for hit in found["hits"]] == ["alps/glaciers.pdf", "otters.pdf"]


# The command line


@pytest.mark.parametrize(
    ("script", "arguments", "happened", "remedy"),
    [
        ("query", [""], "The question is empty.", 'Ask one: python query.py "What is ...?"'),
        ("query", ["  \n"], "The question is empty.", 'Ask one: python query.py "What is ...?"'),
        ("query", ["--sources", " "], "The question is empty.", 'Ask one: python query.py "What is ...?"'),
        ("query", ["--json"], "--json and --sources need a question.", 'Give one: python query.py --json "What'),
        ("query", ["--sources"], "--json and --sources need a question.", 'Give one: python query.py --json "What'),
        ("query", ["--papers"], "--papers needs words to look for.", "Give some"),
        ("query", ["--model", " ", QUESTION], "--model names no model.", "Name one of the server, as `ollama list`"),
        ("query", ["--batch", "nowhere"], "nowhere cannot be read: No such file or directory.", "Give a text file."),
        ("query", ["--batch", "."], ". cannot be read: Is a directory.", "Give a text file."),
        ("query", ["--batch", "binary"], "binary cannot be read: it is not text in UTF-8.", "Give a text file."),
        ("query", ["--batch", "blank.txt"], "There is no question in blank.txt.", "Put one on each line."),
        ("ingest", ["nowhere"], "There is no file or folder nowhere.", "Check the path"),
        ("ingest", ["empty"], "There are no PDFs in empty.", "python ingest.py FOLDER"),
    ],
)
def test_a_command_that_cannot_run(
    ready: CliRunner, script: str, arguments: list[str], happened: str, remedy: str
) -> None:
    (ready.folder / "binary").write_bytes(b"\xff\xfe\x00")
    (ready.folder / "blank.txt").write_text("\n \n")
    (ready.folder / "empty").mkdir(exist_ok=True)
    shown = complaint(getattr(ready, script)(*arguments), 2)
    assert shown[0].startswith(happened)
    assert remedy in shown[1]


def test_a_folder_without_pdfs_and_one_that_is_not_there(desk: CliRunner) -> None:
    happened, remedy = complaint(desk.ingest(), 2)
    assert happened == f"There are no PDFs in {desk.papers}."
    assert "python ingest.py FOLDER" in remedy
    (desk.papers / "notes.txt").write_text("no PDF")
    complaint(desk.ingest(), 2)
    shutil.rmtree(desk.papers)
    happened, _ = complaint(desk.ingest(), 2)
    assert str(desk.papers) in happened


@pytest.mark.parametrize(
    ("name", "value", "happened"),
    [
        ("CHUNK_SIZE", "many", "A setting is invalid: CHUNK_SIZE: Input should be a valid integer, unable to parse"),
        ("CHUNK_SIZE", "0", "A setting is invalid: CHUNK_SIZE: "),
        ("CHUNK_OVERLAP", "1500", "A setting is invalid: settings: CHUNK_OVERLAP must be smaller than CHUNK_SIZE."),
        ("TOP_K", "99999999999999999999", "A setting is invalid: TOP_K: "),
        ("OLLAMA_TIMEOUT_S", "inf", "A setting is invalid: OLLAMA_TIMEOUT_S: "),
        ("OLLAMA_TIMEOUT_S", "-1", "A setting is invalid: OLLAMA_TIMEOUT_S: "),
        ("EMBEDDER", "lmstudio", "A setting is invalid: EMBEDDER: "),
        ("LEXICAL", "lucene", "A setting is invalid: LEXICAL: "),
        ("DENSE_WEIGHT", "1.5", "A setting is invalid: DENSE_WEIGHT: "),
        ("OLLAMA_HOST", "http://me:secret@host", "OLLAMA_HOST is"),
        ("S2_API_KEY", "clé", "A setting is invalid: S2_API_KEY: "),
        ("PDF_VIEWER", "'unclosed {file}", "A setting is invalid: PDF_VIEWER: is not a valid command: No closing quot"),
        (
            "PDF_VIEWER",
            "evince",
            "A setting is invalid: PDF_VIEWER: must be auto, none or a command containing",
        ),
        ("KEEP_ALIVE", "soon", "A setting is invalid: KEEP_ALIVE: "),
        ("THINK", "high", "A setting is invalid: THINK: "),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(ready: CliRunner, name: str, value: str, happened: str) -> None:
    ready.settings |= {"LLM": "auto", name: value}
    assert complaint(ready.query(QUESTION), 2)[0].startswith(happened)


# Files


def scanned(path: Path) -> None:
    document = pymupdf.open()
    for _ in range(2):
        image_page(document)
    document.save(path)


def encrypted(path: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_text((72, 72), "Nobody reads this.")
    document.save(path, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="secret", owner_pw="secret")


def truncated(path: Path) -> None:
    write_pdf(path, GLACIERS)
    path.write_bytes(path.read_bytes()[:400])


def large(path: Path) -> None:
    write_pdf(path, GLACIERS)
    path.write_bytes(path.read_bytes() + bytes(1_200_000))


BAD_FILES: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "page.pdf": (lambda path: path.write_text("<html>Not found</html>"), "not a PDF", "Replace it with the PDF"),
    "empty.pdf": (lambda path: path.write_bytes(b""), "empty", "again"),
    "cut.pdf": (truncated, "damaged or cut short", "again"),
    "locked.pdf": (encrypted, "encrypted", "password"),
    "scan.pdf": (scanned, "scanned: no text layer", "ocrmypdf"),
    "large.pdf": (large, "MAX_FILE_MB is 1", "raise MAX_FILE_MB"),
}


def test_each_bad_file_is_named_and_the_others_are_read(kept: CliRunner) -> None:
    kept.settings["MAX_FILE_MB"] = "1"
    shutil.rmtree(kept.papers)
    kept.papers.mkdir()
    for name, (make, _, _) in BAD_FILES.items():
        make(kept.papers / name)
    write_pdf(kept.papers / "good.pdf", ["A gauge was built at Blatten in the year 1922, and it stands still."])
    for _ in range(2):  # as it is with the second ingest too, which does not read the files again
        ran = kept.ingest()
        text = " ".join(ran.out.split())
        assert (ran.code, ran.err) == (1, "")
        assert f"failed {len(BAD_FILES)}" in text
        failed = {entry["file"]: entry for entry in kept.record() if "failed" in entry}
        assert failed.keys() == BAD_FILES.keys()
        for name, (_, happened, remedy) in BAD_FILES.items():
            assert name in text
            assert happened in text
            assert happened in failed[name]["failed"]
            assert remedy in failed[name]["remedy"]
    assert kept.ingest("--verify") == SOUND
    answer = kept.query("--json", "--top-k", "9", "When was the gauge at Blatten built?").object
    assert answer["citations"][0]["file"] == "good.pdf"
    assert {hit["file"] for hit in answer["hits"]} == {"good.pdf", "alps/glaciers.pdf", "otters.pdf"}


def test_a_folder_of_bad_files_alone(desk: CliRunner) -> None:
    (desk.papers / "bad.pdf").write_text("no")
    assert desk.ingest().code == 1
    happened, remedy = complaint(desk.query(QUESTION), 1)
    assert happened == f"The index at {desk.store} has no papers yet."
    assert "`python ingest.py`, which also says why" in remedy
    small_papers(desk.papers)
    assert desk.ingest().code == 1
    is_unharmed(desk)


def test_a_bad_file_given_by_name_is_read_again(kept: CliRunner) -> None:
    bad = kept.folder / "bad.pdf"
    bad.write_text("no")
    assert kept.ingest(str(bad)).code == 1
    write_pdf(bad, GLACIERS[2:])
    assert kept.ingest(str(bad)).code == 0
    assert not [entry for entry in kept.record() if "failed" in entry]


# The store


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("CHUNK_SIZE", "900", "chunk_size is 1500 in the index and 900 now"),
        ("CHUNK_OVERLAP", "100", "chunk_overlap is 200 in the index and 100 now"),
        ("EMBEDDER", "ollama", "embedder is builtin in the index and ollama now"),
    ],
)
def test_an_index_made_with_other_settings_is_refused(
    kept: CliRunner, ollama_server: OllamaStandIn, name: str, value: str, field: str
) -> None:
    add_paper(kept)
    good = dict(kept.settings)
    kept.settings |= {"OLLAMA_HOST": ollama_server.url, name: value}
    for ran in (kept.query(QUESTION), kept.query("--sources", QUESTION), kept.ingest()):
        happened, remedy = complaint(ran, 1)
        assert field in happened
        assert REBUILD in remedy
    kept.settings = good
    is_unharmed(kept)


def test_a_model_with_other_weights_under_the_old_name(embedded: CliRunner, ollama_server: OllamaStandIn) -> None:
    model = ollama_server.models[NOMIC.name]
    ollama_server.models[NOMIC.name] = replace(model, weights=("v2",))
    happened, remedy = complaint(embedded.query(QUESTION), 1)
    assert happened.startswith(f"The index was made with other settings: weights is {model.blobs[0]} in the index and ")
    assert REBUILD in remedy
    assert complaint(embedded.ingest(), 1) == (happened, remedy)  # although no file is new
    ollama_server.models[NOMIC.name] = model
    is_unharmed(embedded)


def made_with(desk: CliRunner, change: Callable[[dict[str, str]], object] = lambda fields: None) -> dict[str, str]:
    """The fingerprint of the store, after this change."""
    with closing(Library(desk.store / LIBRARY)) as library:
        fields = library.fingerprint()
        change(fields)
        library.set_fingerprint(fields)
        return fields


def test_a_model_with_another_parameter_asks_for_no_rebuild(embedded: CliRunner, ollama_server: OllamaStandIn) -> None:
    model = ollama_server.models[NOMIC.name]
    ollama_server.models[NOMIC.name] = replace(model, parameters="num_ctx 8192\nnum_thread 4")
    is_unharmed(embedded)
    assert embedded.query(QUESTION).code == 0
    assert made_with(embedded)["digest"] == model.digest
    assert embedded.ingest().out.startswith("Nothing new")
    assert made_with(embedded)["digest"] == ollama_server.models[NOMIC.name].digest


def test_an_older_index_knows_its_model_by_the_manifest(embedded: CliRunner, ollama_server: OllamaStandIn) -> None:
    model = ollama_server.models[NOMIC.name]
    made_with(embedded, lambda fields: fields.pop("weights"))
    is_unharmed(embedded)
    with_parameter = replace(model, parameters="num_ctx 8192\nnum_thread 4")
    ollama_server.models[NOMIC.name] = with_parameter
    assert "digest is" in complaint(embedded.query(QUESTION), 1)[0]  # nothing tells whether these are the same weights
    ollama_server.models[NOMIC.name] = model
    assert embedded.ingest().out.startswith("Nothing new")
    assert made_with(embedded)["weights"] == model.blobs[0]  # an ingest notes them
    ollama_server.models[NOMIC.name] = with_parameter
    is_unharmed(embedded)


def test_another_embedding_model_is_refused(embedded: CliRunner, ollama_server: OllamaStandIn) -> None:
    good = dict(embedded.settings)
    ollama_server.models[MINILM.name] = MINILM
    embedded.settings["EMBED_MODEL"] = "all-minilm"
    happened, remedy = complaint(embedded.ingest(), 1)
    assert "model is nomic-embed-text:latest in the index and all-minilm:latest now" in happened
    assert REBUILD in remedy
    assert complaint(embedded.query(QUESTION), 1) == (happened, remedy)
    embedded.settings["OLLAMA_HOST"] = closed_url()  # now nobody knows what EMBED_MODEL is
    assert embedded.ingest().code == 0
    embedded.settings = good
    is_unharmed(embedded)


@pytest.mark.parametrize("embedder", ["auto", "ollama"])
def test_a_chat_model_does_not_embed(desk: CliRunner, ollama_server: OllamaStandIn, embedder: str) -> None:
    small_papers(desk.papers)
    desk.settings |= {"OLLAMA_HOST": ollama_server.url, "LLM": "builtin", "EMBEDDER": embedder}
    good = dict(desk.settings)
    desk.settings["EMBED_MODEL"] = LLAMA.name
    refusal = complaint(desk.ingest(), 1)
    assert refusal[0].startswith("llama3.1:8b is not an embedding model")
    assert "EMBED_MODEL" in refusal[1]
    assert ollama_server.embedded() == []
    desk.settings = dict(good)
    assert desk.ingest().code == 0
    desk.settings["EMBED_MODEL"] = LLAMA.name
    assert complaint(desk.ingest(), 1) == refusal
    assert complaint(desk.query(QUESTION), 1) == refusal
    desk.settings = good
    is_unharmed(desk)


@pytest.mark.parametrize("llm", ["auto", "ollama"])
def test_an_embedding_model_does_not_answer(kept: CliRunner, ollama_server: OllamaStandIn, llm: str) -> None:
    kept.settings |= {"OLLAMA_HOST": ollama_server.url, "LLM": llm, "LLM_MODEL": "nomic-embed-text"}
    happened, remedy = complaint(kept.query(QUESTION), 1)
    assert happened == "nomic-embed-text cannot write text, so it cannot answer."
    assert "LLM_MODEL" in remedy
    assert ollama_server.bodies("/api/chat") == []


def test_a_missing_index(desk: CliRunner) -> None:
    for ran in (desk.query(QUESTION), desk.query("--sources", QUESTION), desk.query(), desk.ingest("--verify")):
        happened, remedy = complaint(ran, 1)
        assert happened == f"There is no index at {desk.store} yet."
        assert remedy == "Put PDFs into papers/ and run `python ingest.py`."
    assert not desk.store.exists()


def _tear_bm25(folder: Path) -> None:
    for path in (folder / "lexical").glob("*.json"):
        overwrite(path, b"torn")


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda folder: overwrite(next(folder.glob("vectors-*.faiss")), b"torn"), "The vector index"),
        (lambda folder: next(folder.glob("vectors-*.faiss")).unlink(), "The vector index"),
        (lambda folder: (folder / "vectors.json").write_text("{"), "The vector index"),
        (lambda folder: shutil.rmtree(folder / "lexical"), "The BM25 index"),
        (_tear_bm25, "The BM25 index"),
    ],
    ids=["vectors-torn", "vectors-gone", "manifest-torn", "bm25-gone", "bm25-torn"],
)
def test_a_damaged_index_is_repaired_and_said_in_one_line(
    kept: CliRunner, damage: Callable[[Path], Any], what: str
) -> None:
    before = kept.query("--json", "--sources", QUESTION).object["hits"]
    damage(kept.store)
    assert kept.ingest("--verify").code == 1
    ran = kept.query("--json", "--sources", QUESTION)
    assert ran.code == 0
    assert ran.object["hits"] == before
    (notice,) = ran.err.splitlines()
    assert notice.startswith(what)
    assert notice.endswith("repaired from the library without embedding anything again.")
    assert kept.query("--json", "--sources", QUESTION).err == ""
    is_unharmed(kept)


def test_a_damaged_library_is_set_aside_by_a_rebuild(kept: CliRunner) -> None:
    library = kept.store / indexes.LIBRARY
    library.write_bytes(b"This is no database, whatever it was. " * 200)
    for ran in (kept.query(QUESTION), kept.ingest(), kept.ingest("--verify")):
        happened, remedy = complaint(ran, 1)
        assert "is damaged" in happened
        assert REBUILD in remedy
    rebuilt = kept.ingest("--rebuild")
    assert rebuilt.code == 0
    assert "was set aside as library.damaged-" in rebuilt.err
    assert len(list(kept.store.glob("library.damaged-*.sqlite"))) == 1
    is_unharmed(kept)


def test_a_second_ingest_is_refused_and_questions_are_answered(kept: CliRunner) -> None:
    with indexes.writing(kept.store):
        for arguments in ([], ["--rebuild"], ["--prune"], ["--repair"]):
            happened, remedy = complaint(kept.ingest(*arguments), 2)
            assert happened == "Another process is writing to this index."
            assert remedy == "Wait until it has finished, then run the same command again."
        assert kept.query(QUESTION).code == 0  # readers are not kept waiting
    is_unharmed(kept)
    assert kept.ingest().code == 0


# Ollama

FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"first_byte_s": 3.0}, "silent for too long", "OLLAMA_TIMEOUT_S"),
    ({"garbage": "html"}, "did not answer like an Ollama server", "OLLAMA_HOST"),
    ({"garbage": "json"}, "did not answer like an Ollama server", "OLLAMA_HOST"),
]
ANSWERING: list[tuple[dict[str, Any], str, str]] = [
    *FAULTS,
    ({"break_after": 4}, "broke off in the middle", "Try again"),
    ({"error_after": 4}, "could not keep llama3.1:8b running", "smaller model"),
    ({"busy": 99}, "is busy", "OLLAMA_NUM_PARALLEL"),
]
EMBEDDING: list[tuple[dict[str, Any], str, str]] = [
    *FAULTS,
    ({"garbage": "count"}, "vectors for", "ollama pull"),
    ({"garbage": "dimension"}, "a vector of 63 numbers", "ollama pull"),
    ({"garbage": "nan"}, "not finite", "ollama pull"),
    ({"garbage": "zero"}, "a vector of zeros", "ollama pull"),
]


def fault_id(value: object) -> str:
    return " ".join(f"{name}={given}" for name, given in value.items()) if isinstance(value, dict) else ""


def patience(happened: str) -> str:
    """OLLAMA_TIMEOUT_S: short where the server is silent; else a busy machine may be slower than that."""
    return "0.4" if "silent" in happened else "60"


@pytest.mark.parametrize(("fault", "happened", "remedy"), ANSWERING, ids=fault_id)
def test_ollama_while_it_answers(
    kept: CliRunner, ollama_server: OllamaStandIn, fault: dict[str, Any], happened: str, remedy: str
) -> None:
    ollama_server.reply = lambda messages: "The Aletsch glacier has a length of 23 kilometres [1]."
    for name, value in fault.items():
        setattr(ollama_server.faults, name, value)
    kept.settings |= {"OLLAMA_HOST": ollama_server.url, "LLM": "ollama", "OLLAMA_TIMEOUT_S": patience(happened)}
    ran = kept.query(QUESTION)
    assert ran.code == 1
    assert "The Aletsch glacier has a length of 23 kilometres" in ran.out  # what was found is not thrown away
    assert happened in ran.err
    assert remedy in ran.err
    assert ran.err.count("\n") == 1
    answered = kept.query("--json", QUESTION)
    assert (answered.code, answered.err) == (1, "")
    assert answered.object["notice"] == ran.err.rstrip("\n")
    is_unharmed(kept)


@pytest.mark.parametrize(("fault", "happened", "remedy"), EMBEDDING, ids=fault_id)
def test_ollama_while_it_embeds(
    embedded: CliRunner, ollama_server: OllamaStandIn, fault: dict[str, Any], happened: str, remedy: str
) -> None:
    embedded.settings["OLLAMA_TIMEOUT_S"] = patience(happened)
    add_paper(embedded)
    for name, value in fault.items():
        setattr(ollama_server.faults, name, value)
    ran = embedded.ingest()
    stopped, *said = ran.err.splitlines()
    assert (ran.code, ran.out, len(said)) == (1, "", 2)
    assert stopped.startswith("Stopped. Papers read so far: 0.")
    assert happened in said[0]
    assert remedy in said[1]
    asked = embedded.query(QUESTION)
    assert (asked.code, "Aletsch" in asked.out) == (0, True)  # the search goes on by words
    assert happened in asked.err
    embedded.settings["EMBEDDER"] = "ollama"  # but not where this embedder was chosen by name
    assert happened in complaint(embedded.query(QUESTION), 1)[0]
    embedded.settings["EMBEDDER"] = "auto"
    ollama_server.faults = type(ollama_server.faults)()
    is_unharmed(embedded)
    assert embedded.ingest().code == 0
    assert len(embedded.record()) == 3


def test_ollama_is_gone_that_embedded_the_papers(embedded: CliRunner, ollama_server: OllamaStandIn) -> None:
    here = embedded.settings["OLLAMA_HOST"]
    embedded.settings["OLLAMA_HOST"] = "127.0.0.1:1"
    asked = embedded.query(QUESTION)
    assert (asked.code, "Aletsch" in asked.out) == (0, True)
    assert "No Ollama server answers at http://127.0.0.1:1. So only words were searched" in asked.err
    add_paper(embedded)
    assert "No Ollama server answers" in embedded.ingest().err
    embedded.settings["OLLAMA_HOST"] = here
    is_unharmed(embedded)


@pytest.mark.parametrize("job", ["LLM", "EMBEDDER"])
def test_ollama_without_the_model(desk: CliRunner, ollama_server: OllamaStandIn, job: str) -> None:
    small_papers(desk.papers)
    desk.settings |= {"OLLAMA_HOST": ollama_server.url, "EMBEDDER": "ollama", "LLM": "ollama"}
    desk.ingest()
    name = {"LLM": LLAMA.name, "EMBEDDER": NOMIC.name}[job]
    model = ollama_server.models.pop(name)
    happened, remedy = complaint(desk.query(QUESTION), 1)
    short = name.removesuffix(":latest")
    assert happened == f"Ollama at {ollama_server.url} does not have the model {short}."
    assert remedy == f"Get it with `ollama pull {short}`."
    ollama_server.models[name] = model
    is_unharmed(desk)


# Places that cannot be


@pytest.mark.parametrize("setting", ["VECTORSTORE_DIR", "INGESTED_JSON"])
def test_a_place_below_a_file(desk: CliRunner, setting: str) -> None:
    small_papers(desk.papers)
    (desk.folder / "file").write_text("in the way")
    desk.settings[setting] = str(desk.folder / "file" / "x")
    ran = desk.ingest()
    assert ran.code == 1
    happened, remedy = ran.err.splitlines()[-2:]
    assert happened.startswith(f"{desk.folder / 'file'}")
    assert "cannot be used: " in happened
    assert "permissions" in remedy
    assert (desk.folder / "file").read_text() == "in the way"


def test_a_place_that_is_no_store(kept: CliRunner) -> None:
    kept.settings["VECTORSTORE_DIR"] = str(kept.papers / "otters.pdf")
    ran = kept.query(QUESTION)
    assert ran.code in (1, 2)
    assert len(ran.err.splitlines()) == 2
