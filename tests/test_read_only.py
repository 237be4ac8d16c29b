"""Papers and an index on a medium that cannot be written: questions are answered, and nothing is written."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from folio.answer.extractive import WITHOUT_MODEL
from folio.errors import StoreError
from folio.papers.metadata import simple_metadata
from folio.papers.model import SourceFile
from folio.schema.remedies import on_page
from folio.store.bm25 import TantivyIndex
from folio.store.conversations import Conversations
from folio.store.indexes import LEXICAL
from folio.store.library import Library
from folio.system import workers
from folio.web.api import make_web
from folio.web.guard import AccessRules
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import shelf, small_papers
from tests.helpers.fakes import hashing_app, read_here
from tests.helpers.permissions import read_only_tree

LENGTH = "What length has the Aletsch glacier?"
NOT_LOGGED = (
    "The question could not be written to the log: the folder of the index cannot be written, so nothing is logged.\n"
)


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file with its time of change and its hash."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_commands_answer_and_write_nothing(
    two_papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(two_papers, tmp_path / "desk")
    desk = CliRunner(tmp_path / "desk", monkeypatch, capsys, settings={"EMBEDDER": "builtin", "LLM": "builtin"})
    asked = desk.query("--no-log", LENGTH)
    assert (asked.code, asked.err) == (0, f"{WITHOUT_MODEL}\n")
    before = contents(desk.folder)
    with read_only_tree(desk.folder):
        again = desk.query(LENGTH)
        assert (again.code, again.out, again.err) == (0, asked.out, f"{WITHOUT_MODEL}\n{NOT_LOGGED}")
        chatted = desk.query(typed=f"{LENGTH}\nAnd how thick is its ice?\n/good\n/sources\n")
        understood = "Understood as: How thick is the Aletsch Glacier’s ice?\nThe question is not in the log.\n"
        assert (chatted.code, chatted.err) == (0, f"{WITHOUT_MODEL}\n{NOT_LOGGED}{understood}")
        assert desk.query("--stats", "--json").object["papers"] == 2
        assert desk.query("--doctor").out.endswith("\nReady to answer.\n")
        forgotten, happened = desk.query("--forget"), "Conversations cannot be deleted here: "
        assert (forgotten.code, forgotten.err.partition("the folder")[0]) == (1, happened)
        verified = desk.ingest("--verify")
        assert (verified.code, verified.out) == (0, "The index is consistent: library, vectors and BM25 agree.\n")
        as_it_is = "cannot be written, so it is checked without a lock against other writers."
        assert verified.err == f"{desk.store} {as_it_is}\n"
        refused = desk.ingest()
        assert (refused.code, len(refused.err.splitlines())) == (1, 2)
    assert contents(desk.folder) == before


def test_the_server_keeps_new_conversations_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = hashing_app(tmp_path / "desk", LLM="builtin", RERANKER="builtin", CHUNK_SIZE=300, CHUNK_OVERLAP=50)
    small_papers(app.settings.PAPERS_DIR)
    monkeypatch.setattr(workers, "run_guarded", read_here)
    app.run()
    rules = AccessRules(host="127.0.0.1", port=8420)

    def client() -> TestClient:
        return TestClient(make_web(app, rules), base_url="http://127.0.0.1:8420")

    with client() as writing:
        stored = writing.post("/chat", json={"message": LENGTH, "listed": True}).json()["conversation"]
        assert writing.get("/health").json()["logged"]
    before = contents(tmp_path)
    capsys.readouterr()
    with read_only_tree(tmp_path / "desk"):
        with client() as reading:
            assert not reading.get("/health").json()["logged"]
            first = reading.post("/chat", json={"message": LENGTH}).json()
            begun = first["conversation"]
            second = reading.post("/chat", json={"message": "How thick is its ice?", "conversation": begun}).json()
            assert (first["refused"], first["notice"]) == (False, on_page(WITHOUT_MODEL).text)
            assert (second["turn"], second["notice"]) == (2, "")
            found = reading.get("/conversations").json()["conversations"]
            assert {(each["id"], each["turns"]) for each in found} == {(stored, 1), (begun, 2)}
            assert reading.get(f"/conversations/{stored}/markdown").status_code == 200
            rated = reading.post("/feedback", json={"conversation": begun, "turn": 1, "feedback": "good"})
            assert (rated.status_code, rated.json()["error"]) == (400, "The question is not in the log.")
            kept = reading.delete(f"/conversations/{stored}")
            assert "cannot be deleted here" in kept.json()["error"]
            assert reading.delete(f"/conversations/{begun}").status_code == 204
        assert contents(tmp_path) == before
    assert capsys.readouterr().err.count("The folder of the index cannot be written") == 1


def test_what_would_write_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = replace(hashing_app(tmp_path / "desk", LLM="builtin", RERANKER="builtin"), notice=lambda text: None)
    small_papers(app.settings.PAPERS_DIR)
    monkeypatch.setattr(workers, "run_guarded", read_here)
    app.run()
    with read_only_tree(tmp_path / "desk"):
        web = make_web(app, AccessRules(host="127.0.0.1", port=8420))
        with TestClient(web, base_url="http://127.0.0.1:8420") as client:
            paper = client.get("/papers").json()["papers"][0]["id"]
            pdf = b"%PDF-1.7" + bytes(2000)
            quote = {"paper": paper, "start": 0, "end": 10}
            replies = [
                client.patch(f"/papers/{paper}", json={"title": "New"}),
                client.post("/papers/edits", json={"papers": [paper], "add_tags": ["ice"]}),
                client.put(f"/papers/{paper}/reading", json={"page": 1}),
                client.delete(f"/papers/{paper}"),
                client.post("/notes", json={"text": "Ice.", "quotes": [quote]}),
                client.post("/papers", files={"file": ("a.pdf", pdf)}),
                client.post("/uploads?name=a.pdf", content=pdf, headers={"Content-Type": "application/pdf"}),
            ]
            assert [reply.status_code for reply in replies] == [403] * len(replies)
            assert all("cannot be" in reply.json()["error"] for reply in replies)


def test_bm25_leaves_no_folder_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    shelf(tmp_path)
    folder = tmp_path / "vectorstore" / LEXICAL
    expected = TantivyIndex.load(folder).search("length of the Aletsch glacier", 5)
    with read_only_tree(folder):
        index = TantivyIndex.load(folder)
        assert list(temporary.iterdir()) == []
        assert index.search("length of the Aletsch glacier", 5) == expected != []


def test_a_library_that_its_owner_goes_on_writing(tmp_path: Path) -> None:
    shelf(tmp_path)
    path = tmp_path / "vectorstore" / "library.sqlite"
    with read_only_tree(path.parent):
        library = Library(path)
        assert (library.database.is_read_only, len(library.papers())) == (True, 2)
    with closing(library):
        with closing(Library(path)) as owner:
            assert not owner.database.is_read_only
            owner.drop(str(tmp_path / "otters.pdf"))
        with read_only_tree(path.parent):
            assert [paper.title for paper in library.papers()] == ["Ice of the Alps"]


def test_a_log_that_was_left_behind_is_not_ignored(tmp_path: Path) -> None:
    shelf(tmp_path)
    path = tmp_path / "vectorstore" / "library.sqlite"
    copied = tmp_path / "copied"
    copied.mkdir()
    with closing(Library(path)) as library:
        library.link([SourceFile(str(tmp_path / "more.pdf"), "more.pdf", "otters.pdf")])
        library.set_metadata("0" * 64, "person", simple_metadata("Otters"))
        for name in ("library.sqlite", "library.sqlite-wal", "user.sqlite", "user.sqlite-wal"):  # as after a kill
            shutil.copy(path.with_name(name), copied / name)
    with read_only_tree(copied):
        with pytest.raises(StoreError, match="cannot be used now"):
            Library(copied / "library.sqlite")
        with pytest.raises(StoreError, match="cannot be used now"):
            Conversations(copied / "library.sqlite").summaries()
    with closing(Library(copied / "library.sqlite")) as library:
        assert "more.pdf" in {file.name for file in library.files()}
