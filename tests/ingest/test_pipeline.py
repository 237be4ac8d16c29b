"""The ingest pipeline on PDFs: new, changed, moved, copied, broken and missing files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from folio.errors import ModelError, PaperBusy, PaperError, PaperLimit, StoreError, StoreMismatch, UsageError
from folio.ingest import discovery, pipeline
from folio.ingest.discovery import Outcome
from folio.papers.model import SourceFile, Vectors
from folio.pdf import ocr
from folio.store import indexes
from folio.store.fingerprint import Reading, fingerprint
from folio.store.library import Library
from folio.store.sqlite import SqliteDatabase
from folio.system import workers
from folio.system.files import sha256_file
from tests.helpers.fakes import (
    LINES,
    HashingApp,
    HashingEmbedder,
    ItemT,
    RecordedProgress,
    ResultT,
    hashing_app,
    make_pdf,
    overwrite,
    read_here,
)
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT
from tests.helpers.pdfs import image_page, save

pytestmark = pytest.mark.environment

READING = Reading(100, 20, "fast", False)


class Reader:
    """Reads PDFs without worker processes and records which ones."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(
        self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT], **limits: float
    ) -> Iterator[tuple[ItemT, ResultT | PaperError]]:
        return read_here(function, map(self._noted, items), **limits)

    def _noted(self, part: ItemT) -> ItemT:
        self.read.append(part.file.name)  # type: ignore[attr-defined]
        return part


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader()
    monkeypatch.setattr(workers, "run_guarded", made)
    return made


@pytest.fixture
def app(tmp_path: Path) -> HashingApp:
    for subject in ("lattices", "sponges", "trees"):
        make_pdf(tmp_path / "papers" / f"{subject}.pdf", subject)
    return hashing_app(tmp_path)


def _papers(app: HashingApp) -> Path:
    return app.settings.PAPERS_DIR


def _statuses(outcomes: Iterable[Outcome]) -> dict[str, str]:
    return {outcome.file.name: outcome.status for outcome in outcomes}


def _notes(outcomes: Iterable[Outcome], name: str) -> tuple[str, ...]:
    (found,) = [outcome.notes for outcome in outcomes if outcome.file.name == name]
    return found


def _subjects(app: HashingApp) -> dict[str, str]:
    """File name -> the subject of its paper."""
    with closing(app.open_library()) as library:
        texts = {file.name: library.text(file.sha256, 0, 9999) for file in library.files()}
    return {name: next(subject for subject in LINES if LINES[subject][0][:20] in text) for name, text in texts.items()}


def _found(app: HashingApp, question: str) -> tuple[str, tuple[int, int], str]:
    """The best passage's file, pages and text."""
    with closing(app.open_library()) as library:
        hit = app.retriever(library).search(question, 1).hits[0]
    return hit.paper.file, hit.pages, hit.text


# New, unchanged, changed


def test_new_papers_are_read_split_embedded_and_found(app: HashingApp) -> None:
    outcomes = app.run()
    assert _statuses(outcomes) == {"lattices.pdf": "added", "sponges.pdf": "added", "trees.pdf": "added"}
    assert [outcome.pages for outcome in outcomes] == [2, 2, 2]
    library = app.open_library()
    assert [(paper.file, paper.title) for paper in library.papers()] == [
        ("lattices.pdf", "On lattices"),
        ("sponges.pdf", "On sponges"),
        ("trees.pdf", "On trees"),
    ]
    assert [paper.chunks for paper in library.papers()] == [outcome.chunks for outcome in outcomes]
    assert library.chunk_count() == sum(outcome.chunks for outcome in outcomes)
    assert len(app.hashing.passages) == library.chunk_count() + len(outcomes)  # and each paper as a whole
    assert library.fingerprint() == fingerprint(app.hashing, app.reading)
    library.close()
    assert app.verify() == []
    file, pages, text = _found(app, "how is the last block padded")
    assert (file, pages) == ("sponges.pdf", (2, 2))
    assert "Padding makes the last block" in text


def test_worker_processes_give_the_same(app: HashingApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app.run()
    here = _papers_of(app)
    monkeypatch.undo()
    other = hashing_app(tmp_path, VECTORSTORE_DIR=tmp_path / "other")
    other.run()
    assert _papers_of(other) == here


def _papers_of(app: HashingApp) -> list[list[Any]]:
    with closing(app.open_library()) as library:
        return [library.papers(), [library.text(paper.id, 0, paper.length) for paper in library.papers()]]


def test_a_second_run_does_nothing(app: HashingApp, reader: Reader) -> None:
    app.run()
    embedded, read = len(app.hashing.passages), len(reader.read)
    before = {path: path.stat().st_mtime_ns for path in app.settings.VECTORSTORE_DIR.rglob("*.faiss")}
    assert set(_statuses(app.run()).values()) == {"unchanged"}
    assert (len(app.hashing.passages), len(reader.read)) == (embedded, read)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_of_a_changed_file_only_new_text_is_embedded(app: HashingApp, reader: Reader) -> None:
    app.run()
    embedded = len(app.hashing.passages)
    reader.read.clear()
    make_pdf(_papers(app) / "trees.pdf", "trees", change="A splay tree moves what was asked for to the root.")
    outcomes = app.run()
    assert _statuses(outcomes) == {"lattices.pdf": "unchanged", "sponges.pdf": "unchanged", "trees.pdf": "replaced"}
    assert reader.read == ["trees.pdf"]
    assert _found(app, "splay tree root")[0] == "trees.pdf"
    fresh = app.hashing.passages[embedded:]
    assert len(fresh) == 1
    assert "splay tree" in fresh[0]
    with closing(Library(app.library_path)) as library:
        assert not [passage for passage in library.passages() if "Deletion" in passage.text]
    assert app.verify() == []


def test_progress_is_reported(app: HashingApp) -> None:
    progress = RecordedProgress()
    files, _ = discovery.hash_files(discovery.find_pdfs([_papers(app)]), progress)
    with indexes.writing(app.settings.VECTORSTORE_DIR):
        outcomes = list(app.ingest(files, progress, jobs=1, retry=frozenset()))
    assert progress.plan == ["lattices.pdf", "sponges.pdf", "trees.pdf"]
    assert progress.chunks == {outcome.file.name: outcome.chunks for outcome in outcomes}


# Copies and moves


def test_the_same_file_under_two_names_is_one_paper(app: HashingApp, reader: Reader) -> None:
    copy = _papers(app) / "more" / "copy.pdf"
    copy.parent.mkdir()
    copy.write_bytes((_papers(app) / "trees.pdf").read_bytes())
    outcomes = app.run()
    assert _statuses(outcomes)["trees.pdf"] == "duplicate"  # the copy's folder comes first
    assert _notes(outcomes, "trees.pdf") == ("The same file as more/copy.pdf.",)
    assert len(reader.read) == 3
    assert _subjects(app)["trees.pdf"] == _subjects(app)["more/copy.pdf"] == "trees"
    assert len(_papers_of(app)[0]) == 3
    assert set(_statuses(app.run()).values()) == {"unchanged"}


def test_a_copy_that_comes_later_is_not_read(app: HashingApp, reader: Reader) -> None:
    app.run()
    reader.read.clear()
    (_papers(app) / "copy.pdf").write_bytes((_papers(app) / "trees.pdf").read_bytes())
    outcomes = app.run()
    assert _statuses(outcomes)["copy.pdf"] == "duplicate"
    assert _notes(outcomes, "copy.pdf") == ("The same file as trees.pdf.",)
    assert reader.read == []
    assert app.verify() == []


def test_a_moved_file_keeps_its_paper_under_the_new_name(app: HashingApp, reader: Reader) -> None:
    app.run()
    (_papers(app) / "lattices.pdf").unlink()  # also gone, but pruning was not requested
    (_papers(app) / "trees.pdf").rename(_papers(app) / "renamed.pdf")
    reader.read.clear()
    outcomes = app.run()
    assert _notes(outcomes, "renamed.pdf") == ("Moved from trees.pdf.",)
    assert reader.read == []
    assert _subjects(app) == {"renamed.pdf": "trees", "sponges.pdf": "sponges", "lattices.pdf": "lattices"}
    assert _found(app, "rotation keeps the order")[0] == "renamed.pdf"


def test_a_new_version_while_the_old_one_is_renamed(app: HashingApp, reader: Reader) -> None:
    app.run()
    reader.read.clear()
    (_papers(app) / "trees.pdf").rename(_papers(app) / "trees-v1.pdf")
    make_pdf(_papers(app) / "trees.pdf", "trees", change="A splay tree moves what was asked for to the root.")
    outcomes = app.run()
    assert _statuses(outcomes)["trees.pdf"] == "replaced"
    assert _notes(outcomes, "trees-v1.pdf") == ("Moved from trees.pdf.",)
    assert reader.read == ["trees.pdf"]
    assert _found(app, "splay tree root")[0] == "trees.pdf"
    assert _found(app, "deletion is the case that books leave to readers")[0] == "trees-v1.pdf"
    assert app.verify() == []


def test_two_files_that_swapped_their_names(app: HashingApp, reader: Reader) -> None:
    app.run()
    reader.read.clear()
    trees, sponges = _papers(app) / "trees.pdf", _papers(app) / "sponges.pdf"
    trees.rename(trees.with_name("x"))
    sponges.rename(trees)
    trees.with_name("x").rename(sponges)
    outcomes = app.run()
    assert _notes(outcomes, "trees.pdf") == ("Moved from sponges.pdf.",)
    assert _notes(outcomes, "sponges.pdf") == ("Moved from trees.pdf.",)
    assert reader.read == []
    assert _subjects(app) == {"lattices.pdf": "lattices", "trees.pdf": "sponges", "sponges.pdf": "trees"}
    assert app.verify() == []


def test_text_in_two_papers_is_embedded_once_and_found_once(app: HashingApp) -> None:
    make_pdf(_papers(app) / "trees-again.pdf", "trees", title="Another edition", change="Some trees never balance.")
    app.run()
    assert len(app.hashing.passages) == len(set(app.hashing.passages))
    library = app.open_library()
    retriever, question = app.retriever(library), "a rotation keeps the order of all the keys"
    hits = retriever.search(question, 5).hits
    assert len({hit.text for hit in hits}) == len(hits) == 5
    both = [paper for paper in library.papers() if paper.file.startswith("trees")]
    assert not any(paper.is_copy for paper in both)  # their ends differ
    first = [retriever.search(question, 1, [paper]).hits[0] for paper in both]
    assert first[0].text == first[1].text == hits[0].text
    assert first[0].chunk.id != first[1].chunk.id
    library.close()


# Pruning


def test_a_paper_without_its_file_stays_until_pruned(app: HashingApp) -> None:
    app.run()
    (_papers(app) / "trees.pdf").unlink()
    assert "trees.pdf" not in _statuses(app.run())
    assert _subjects(app)["trees.pdf"] == "trees"
    assert _statuses(app.run(prune=True)) == {
        "lattices.pdf": "unchanged",
        "sponges.pdf": "unchanged",
        "trees.pdf": "pruned",
    }
    assert sorted(_subjects(app)) == ["lattices.pdf", "sponges.pdf"]
    assert _found(app, "rotation keeps the order")[0] != "trees.pdf"
    assert app.verify() == []


def test_a_broken_file_that_is_gone_is_pruned_once(app: HashingApp) -> None:
    app.run()
    (_papers(app) / "trees.pdf").write_bytes(b"torn")
    app.run()
    (_papers(app) / "trees.pdf").unlink()
    outcomes = app.run(prune=True)
    assert [outcome.status for outcome in outcomes if outcome.file.name == "trees.pdf"] == ["pruned"]
    assert [entry["file"] for entry in _record(app)] == ["lattices.pdf", "sponges.pdf"]


# Failures


def _scan(path: Path) -> None:
    document = pymupdf.open()
    image_page(document)
    document.save(path)
    document.close()


@pytest.mark.parametrize(
    ("engine", "reason", "advice"),
    [
        (None, "no OCR engine is installed", "Install Tesseract"),
        (ocr.Engine("Stand-in", lambda page: []), "OCR finds no text in it", "Try another OCR engine"),
    ],
    ids=["no OCR engine", "an OCR engine"],
)
def test_a_file_without_text_fails_with_a_reason_alone(
    app: HashingApp, monkeypatch: pytest.MonkeyPatch, engine: ocr.Engine | None, reason: str, advice: str
) -> None:
    monkeypatch.setattr(ocr, "engine", lambda: engine)
    (_papers(app) / "a-torn.pdf").write_bytes(b"%PDF-1.7 and then nothing of the kind")
    (_papers(app) / "b-empty.pdf").write_bytes(b"")
    _scan(_papers(app) / "c-scan.pdf")
    outcomes = app.run()
    assert sorted(_statuses(outcomes).values()) == ["added", "added", "added", "failed", "failed", "failed"]
    for name in ("a-torn.pdf", "b-empty.pdf", "c-scan.pdf"):
        happened, remedy = _notes(outcomes, name)
        assert happened.endswith(".")
        assert remedy.endswith(".")
    happened, remedy = _notes(outcomes, "c-scan.pdf")
    assert reason in happened
    assert remedy.startswith(advice)
    assert len(_subjects(app)) == 3
    assert app.verify() == []


def test_a_failed_file_is_not_read_again_unless_named(app: HashingApp, reader: Reader) -> None:
    (_papers(app) / "torn.pdf").write_bytes(b"torn")
    first = app.run()
    reader.read.clear()
    second = app.run()
    assert _notes(second, "torn.pdf")[:2] == _notes(first, "torn.pdf")
    assert _notes(second, "torn.pdf")[2] == "Not tried again: the file has not changed."
    assert _statuses(second)["torn.pdf"] == "failed"
    assert reader.read == []
    assert _statuses(app.run(retry=["torn.pdf"]))["torn.pdf"] == "failed"
    assert reader.read == ["torn.pdf"]
    make_pdf(_papers(app) / "torn.pdf", "trees", title="Mended")
    assert _statuses(app.run())["torn.pdf"] == "added"
    assert not any("failed" in entry for entry in _record(app))


def test_copies_of_a_broken_file_are_read_once(app: HashingApp, reader: Reader) -> None:
    for name in ("torn.pdf", "torn-too.pdf"):
        (_papers(app) / name).write_bytes(b"torn")
    outcomes = app.run()
    assert _notes(outcomes, "torn.pdf") == _notes(outcomes, "torn-too.pdf")
    assert len([name for name in reader.read if "torn" in name]) == 1
    reader.read.clear()
    app.run()
    assert reader.read == []


def test_a_file_over_a_limit_is_retried_with_other_settings(
    app: HashingApp, tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "engine", lambda: None)
    _scan(_papers(app) / "scan.pdf")
    first = app.run()
    [failed] = [entry for entry in _record(app) if "failed" in entry]
    assert failed["sha256"] == sha256_file(_papers(app) / "scan.pdf")
    reader.read.clear()
    again = app.run()
    assert (_statuses(again)["scan.pdf"], reader.read) == ("failed", [])
    why = "Not tried again: the file, the settings and the OCR engine have not changed."
    assert _notes(again, "scan.pdf") == (*_notes(first, "scan.pdf"), why)
    tries = [
        (hashing_app(tmp_path, PARSE_TIMEOUT_S=121), None),
        (hashing_app(tmp_path, OCR="off"), None),
        (hashing_app(tmp_path), ocr.Engine("Stand-in", lambda page: [])),
    ]
    for changed, engine in tries:
        monkeypatch.setattr(ocr, "engine", lambda engine=engine: engine)
        assert _statuses(changed.run())["scan.pdf"] == "failed"
        assert set(reader.read) == {"scan.pdf"}
        reader.read.clear()


@pytest.mark.parametrize(("error", "is_read"), [(PaperError, False), (PaperLimit, False), (PaperBusy, True)])
def test_what_the_computer_stopped_is_always_tried_again(
    app: HashingApp, monkeypatch: pytest.MonkeyPatch, error: type[PaperError], is_read: bool
) -> None:
    tried: list[str] = []

    def stopped(
        function: Callable[[ItemT], ResultT], items: Iterable[ItemT], **limits: float
    ) -> Iterator[workers.Finished[ItemT, ResultT]]:
        for part in items:
            tried.append(part.file.name)  # type: ignore[attr-defined]
            yield workers.Finished(part, error("It did not work.", "Try something."))

    monkeypatch.setattr(workers, "run_guarded", stopped)
    assert set(_statuses(app.run()).values()) == {"failed"}
    tried.clear()
    app.run()
    assert bool(tried) == is_read


def test_a_changed_file_that_is_broken_keeps_the_old_paper(app: HashingApp) -> None:
    app.run()
    good = (_papers(app) / "trees.pdf").read_bytes()
    (_papers(app) / "trees.pdf").write_bytes(b"torn")
    assert _statuses(app.run())["trees.pdf"] == "failed"
    assert _subjects(app)["trees.pdf"] == "trees"
    assert _found(app, "rotation keeps the order")[0] == "trees.pdf"
    assert _statuses(app.run())["trees.pdf"] == "failed"
    assert [entry["file"] for entry in _record(app) if "failed" in entry] == ["trees.pdf"]
    (_papers(app) / "trees.pdf").write_bytes(good)  # put back
    assert _statuses(app.run())["trees.pdf"] == "unchanged"
    assert [entry["file"] for entry in _record(app) if "failed" in entry] == []


def test_a_file_above_the_limit_is_not_opened(app: HashingApp, tmp_path: Path) -> None:
    with (_papers(app) / "large.pdf").open("wb") as file:
        file.truncate(2_000_000)
    small = hashing_app(tmp_path, MAX_FILE_MB=1)
    assert _notes(small.run(), "large.pdf")[0] == "The file has 2 MB, and MAX_FILE_MB is 1."


def test_a_file_swapped_between_hashing_and_reading_is_not_indexed(
    app: HashingApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, sponges = _papers(app) / "trees.pdf", (_papers(app) / "sponges.pdf").read_bytes()

    def swap_then_read(
        function: Callable[[ItemT], ResultT], items: Iterable[ItemT], **limits: float
    ) -> Iterator[workers.Finished[ItemT, ResultT]]:
        overwrite(target, sponges)
        return read_here(function, items, **limits)

    monkeypatch.setattr(workers, "run_guarded", swap_then_read)
    outcomes = app.run()
    assert _statuses(outcomes) == {"lattices.pdf": "added", "sponges.pdf": "added", "trees.pdf": "failed"}
    assert _notes(outcomes, "trees.pdf") == ("The file changed while it was being read.", "Run the command again.")
    assert _subjects(app) == {"lattices.pdf": "lattices", "sponges.pdf": "sponges"}
    assert _statuses(app.run())["trees.pdf"] == "duplicate"
    assert _subjects(app)["trees.pdf"] == "sponges"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
def test_pipes_and_devices_are_named_at_once(app: HashingApp) -> None:
    os.mkfifo(_papers(app) / "pipe.pdf")
    (_papers(app) / "null.pdf").symlink_to("/dev/null")
    (_papers(app) / "lost.pdf").symlink_to(_papers(app) / "nothing.pdf")
    outcomes = app.run()
    assert _notes(outcomes, "pipe.pdf")[0] == "It cannot be read: A named pipe is not a file."
    assert _notes(outcomes, "null.pdf")[0] == "It cannot be read: A device is not a file."
    target = _papers(app) / "nothing.pdf"
    assert _notes(outcomes, "lost.pdf") == (
        f"It is a link to {target}, which is not there.",
        "Put it back, or delete the link.",
    )
    assert len(outcomes) == 6
    found = discovery.find_pdfs([_papers(app) / "pipe.pdf", Path("/dev/zero")])
    files, failed = discovery.hash_files(found, RecordedProgress())
    assert (files, [outcome.notes[0][:18] for outcome in failed]) == ([], ["It cannot be read:"] * 2)


def test_a_file_that_vanishes_before_hashing_is_reported(tmp_path: Path) -> None:
    files, failed = discovery.hash_files({tmp_path / "gone.pdf": "gone.pdf"}, RecordedProgress())
    assert files == []
    assert failed[0].notes[0].startswith("It cannot be opened: No such file")


def test_pdfs_are_found_in_folders_whatever_their_capitals(tmp_path: Path) -> None:
    for name in ("b.pdf", "a.PDF", "deep/er/c.Pdf", ".hidden/d.pdf", "deep/.e.pdf", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.pdf").mkdir()
    found = discovery.find_pdfs([tmp_path, tmp_path / "b.pdf", tmp_path / "notes.txt"])
    assert list(found.values()) == ["a.PDF", "b.pdf", "deep/er/c.Pdf", "notes.txt"]
    with pytest.raises(UsageError, match=r"There is no file or folder .*none"):
        discovery.find_pdfs([tmp_path / "none"])


# Interrupted


class Failing(HashingEmbedder):
    """Fails after a number of batches."""

    def __init__(self, batches: int, name: str = "hashing") -> None:
        super().__init__(name=name)
        self._left = batches

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not self._left:
            raise ModelError("The model is gone.", "Bring it back.")
        self._left -= 1
        return super().embed_passages(texts)


def test_an_ingest_interrupted_while_embedding_continues_where_it_was(app: HashingApp, tmp_path: Path) -> None:
    app.run()
    undisturbed = list(app.hashing.passages)
    embedded: list[str] = []
    for batches in range(len(undisturbed)):
        again = hashing_app(tmp_path, Failing(batches % 3 + 1), VECTORSTORE_DIR=tmp_path / "again")
        try:
            again.run()
        except ModelError:
            embedded += again.hashing.passages
            assert again.verify() == []
        else:
            embedded += again.hashing.passages
            break
    assert embedded == undisturbed
    assert _papers_of(again) == _papers_of(app)
    assert again.verify() == []


# Nothing new

# Modules that are slow to import, or that embed
HEAVY = ("pymupdf", "onnxruntime", "tokenizers", "torch", "langchain_core", "langchain_ollama", "ollama", "pebble")
SECOND = f"""
import sys, ingest
code = ingest.main([])
print([name for name in {HEAVY} if name in sys.modules])
sys.exit(code)
"""


def test_with_nothing_new_no_model_is_loaded_and_nothing_written(app: HashingApp, tmp_path: Path) -> None:
    with OllamaStandIn(dimension=64) as server:
        environment = {
            **os.environ,
            "PAPERS_DIR": str(_papers(app)),
            "VECTORSTORE_DIR": str(tmp_path / "cli"),
            "INGESTED_JSON": str(tmp_path / "ingested.json"),
            "EMBEDDER": "ollama",
            "OLLAMA_HOST": server.url,
        }

        def python(*arguments: str) -> str:
            command, env = [sys.executable, *arguments], environment
            return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout

        python("ingest.py", "--jobs", "1")
        asked = len(server.requests)
        assert asked
        written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.suffix in (".json", ".faiss")}
        nothing_new, heavy = python("-c", SECOND).splitlines()
        assert nothing_new.startswith("Nothing new: all 3 papers are already in the index")
        assert heavy == "[]"
        # The server says what the model is, which must be the one that the index was made with.
        assert [request.path for request in server.requests[asked:]] == ["/api/tags", "/api/show"]
        assert {path: path.stat().st_mtime_ns for path in written} == written
        assert {path.name for path in written} >= {"ingested.json", "vectors.json"}


def test_the_record_takes_few_statements_for_many_papers(app: HashingApp) -> None:
    def statements() -> int:
        library, seen = app.open_library(), list[str]()
        assert isinstance(library.database, SqliteDatabase)
        library.database._sqlite.set_trace_callback(seen.append)
        assert len(pipeline.record(library, library.papers())) == len(list(_papers(app).glob("*.pdf")))
        library.close()
        return len(seen)

    app.run()
    before = statements()
    make_pdf(_papers(app) / "gradients.pdf", "gradients")
    app.run()
    assert statements() == before


def test_files_are_hashed_in_order(app: HashingApp, tmp_path: Path) -> None:
    found = discovery.find_pdfs([_papers(app)])
    (_papers(app) / "sponges.pdf").unlink()
    files, failed = discovery.hash_files(found, RecordedProgress())
    assert [file.name for file in files] == ["lattices.pdf", "trees.pdf"]
    assert [file.sha256 for file in files] == [sha256_file(Path(file.path)) for file in files]
    assert [outcome.file.name for outcome in failed] == ["sponges.pdf"]


# The record


def _record(app: HashingApp) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(app.settings.INGESTED_JSON.read_text(encoding="utf-8"))
    return found


def test_the_record_lists_papers_and_failures(app: HashingApp, tmp_path: Path) -> None:
    (_papers(app) / "torn.pdf").write_bytes(b"torn")
    (_papers(app) / "zz-copy.pdf").write_bytes((_papers(app) / "trees.pdf").read_bytes())
    outcomes = {outcome.file.name: outcome for outcome in app.run()}
    *papers, torn = _record(app)
    assert [paper["file"] for paper in papers] == ["lattices.pdf", "sponges.pdf", "trees.pdf"]
    trees = papers[2]
    added = trees.pop("added")
    assert isinstance(added, str)
    assert added.endswith("+00:00")
    assert trees == {
        "file": "trees.pdf",
        "sha256": sha256_file(_papers(app) / "trees.pdf"),
        "title": "On trees",
        "authors": [],
        "year": None,
        "venue": "",
        "doi": "",
        "arxiv": "",
        "pages": 2,
        "chunks": outcomes["trees.pdf"].chunks,
        "paths": [str(_papers(app) / "trees.pdf"), str(_papers(app) / "zz-copy.pdf")],
        "problems": [],
    }
    happened, remedy = outcomes["torn.pdf"].notes
    assert torn == {
        "file": "torn.pdf",
        "sha256": sha256_file(_papers(app) / "torn.pdf"),
        "failed": happened,
        "remedy": remedy,
        "paths": [str(_papers(app) / "torn.pdf")],
    }
    assert not (tmp_path / "ingested.json.new").exists()


def test_no_record_is_written_if_nothing_was_ingested(tmp_path: Path) -> None:
    app = hashing_app(tmp_path)
    app.finish_ingest()
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_failures_alone_is_sound(tmp_path: Path) -> None:
    app = hashing_app(tmp_path)
    _papers(app).mkdir()
    (_papers(app) / "torn.pdf").write_bytes(b"torn")
    app.run()
    assert [entry["file"] for entry in _record(app)] == ["torn.pdf"]
    assert app.verify() == []


# Rebuilding


def test_the_old_store_is_usable_until_a_rebuild_ends(app: HashingApp, tmp_path: Path) -> None:
    app.run()
    make_pdf(_papers(app) / "trees.pdf", "trees", change="A splay tree moves what was asked for to the root.")
    new = hashing_app(tmp_path, HashingEmbedder(32, "other"), CHUNK_SIZE=120)
    with pytest.raises(StoreMismatch, match=r"chunk_size is 100 in the index and 120 now"):
        new.run()
    files, _ = discovery.hash_files(discovery.find_pdfs([_papers(app)]), RecordedProgress())
    with indexes.writing(new.settings.VECTORSTORE_DIR):
        for outcome in new.rebuild(files, RecordedProgress(), jobs=1):
            assert outcome.status == "added"
            assert _found(app, "deletion is the case that books leave to readers")[0] == "trees.pdf"
        new.finish_ingest()
    assert _found(new, "splay tree root")[0] == "trees.pdf"
    with closing(new.open_library()) as library:
        assert library.fingerprint() == fingerprint(new.hashing, new.reading)
    assert new.verify() == []
    assert not list(new.settings.VECTORSTORE_DIR.glob("rebuild*"))
    with pytest.raises(StoreMismatch):
        app.run()


def test_a_store_that_was_split_by_another_version_refuses(app: HashingApp) -> None:
    app.run()
    with closing(app.open_library()) as library:
        library.set_fingerprint({key: value for key, value in library.fingerprint().items() if key != "chunker"})
    with pytest.raises(StoreMismatch, match=r"chunker is unknown in the index and \d+ now") as raised:
        app.run()
    assert raised.value.remedy.startswith("Run `python ingest.py --rebuild`")
    app.run(rebuild=True)
    assert app.verify() == []


def test_a_rebuild_retries_failed_files(app: HashingApp, reader: Reader) -> None:
    (_papers(app) / "torn.pdf").write_bytes(b"torn")
    app.run()
    reader.read.clear()
    app.run(rebuild=True)
    assert reader.read == ["lattices.pdf", "sponges.pdf", "torn.pdf", "trees.pdf"]


def test_an_interrupted_rebuild_is_continued(app: HashingApp, tmp_path: Path, reader: Reader) -> None:
    app.run()
    broken = hashing_app(tmp_path, Failing(3, "other"))
    with pytest.raises(ModelError):
        broken.run(rebuild=True)
    assert len(_subjects(app)) == 3
    assert app.verify() == []
    (_papers(app) / "lattices.pdf").unlink()  # the paper already in the unfinished library
    again = hashing_app(tmp_path, HashingEmbedder(name="other"))
    again.run(rebuild=True)
    assert not set(again.hashing.passages) & set(broken.hashing.passages)
    assert sorted(_subjects(again)) == ["sponges.pdf", "trees.pdf"]
    assert again.verify() == []
    assert not list(again.settings.VECTORSTORE_DIR.glob("rebuild*"))


def test_an_interrupted_rebuild_with_other_settings_starts_again(app: HashingApp, tmp_path: Path) -> None:
    app.run()
    with pytest.raises(ModelError):
        hashing_app(tmp_path, Failing(3, "other")).run(rebuild=True)
    third = hashing_app(tmp_path, HashingEmbedder(name="third"))
    third.run(rebuild=True)
    assert len(third.hashing.passages) == len(app.hashing.passages)
    assert third.verify() == []


@pytest.mark.parametrize("content", [b"", b"This is no database.\n" * 100])
def test_an_interrupted_rebuild_that_cannot_be_read_starts_again(app: HashingApp, content: bytes) -> None:
    app.run()
    (app.settings.VECTORSTORE_DIR / "rebuild.sqlite").write_bytes(content)
    app.run(rebuild=True)
    assert len(_subjects(app)) == 3
    assert app.verify() == []


def test_a_rebuild_that_reads_nothing_leaves_the_old_store(app: HashingApp) -> None:
    app.run()
    record = _record(app)
    for path in _papers(app).iterdir():
        path.write_bytes(b"torn")
    with pytest.raises(StoreError, match="None of the files could be read"):
        app.run(rebuild=True)
    assert sorted(_subjects(app).values()) == ["lattices", "sponges", "trees"]
    assert _found(app, "rotation keeps the order")[0] == "trees.pdf"
    assert app.verify() == []
    assert _record(app) == record
    assert not list(app.settings.VECTORSTORE_DIR.glob("rebuild*"))


def test_a_rebuild_fills_a_library_that_is_an_empty_file(app: HashingApp) -> None:
    app.run()
    app.library_path.write_bytes(b"")
    for suffix in ("-wal", "-shm"):
        app.library_path.with_name(f"library.sqlite{suffix}").unlink(missing_ok=True)
    again = HashingApp(app.settings, lambda text: None, app.hashing)
    again.run(rebuild=True)
    assert len(_subjects(again)) == 3
    assert again.verify() == []


def test_a_stopped_rebuild_keeps_its_papers(app: HashingApp, tmp_path: Path) -> None:
    app.run()
    other = hashing_app(tmp_path, HashingEmbedder(name="other"))
    files, _ = discovery.hash_files(discovery.find_pdfs([_papers(app)]), RecordedProgress())
    with indexes.writing(other.settings.VECTORSTORE_DIR):
        work = other.rebuild(files, RecordedProgress(), jobs=1)
        assert [outcome.status for outcome in islice(work, 2)] == ["added", "added"]
        work.close()
    with closing(Library(other.settings.VECTORSTORE_DIR / "rebuild.sqlite")) as unfinished:
        assert [paper.file for paper in unfinished.papers()] == ["lattices.pdf", "sponges.pdf"]
    assert len(_subjects(app)) == 3


@pytest.mark.parametrize("pages", [1, 2, 6])
@pytest.mark.parametrize("label", ["{}", "Page {} of 6", "- {} -"])
def test_pages_with_nothing_but_their_number_are_refused_with_one_reason(
    tmp_path: Path, pages: int, label: str
) -> None:
    path = save(tmp_path / "a.pdf", [[(300.0, 780.0, label.format(number + 1))] for number in range(pages)])
    file = SourceFile(str(path), path.name, sha256_file(path))
    with pytest.raises(PaperError) as caught:
        pipeline.read_paper(file, READING, 10)
    assert caught.value.happened == "The file has no text but the numbers of its pages."


def test_a_page_with_text_among_numbers_is_read(tmp_path: Path) -> None:
    texts = [[(300.0, 780.0, str(number + 1))] for number in range(6)]
    texts[3].insert(0, (72.0, 100.0, "Only this page says something, and it says that herons fly."))
    path = save(tmp_path / "a.pdf", texts)
    file = SourceFile(str(path), path.name, sha256_file(path))
    assert pipeline.read_paper(file, READING, 10).text == texts[3][0][2]
