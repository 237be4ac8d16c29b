"""A disk that fills up at any stage of an ingest: a clear error, and no added paper is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from folio.errors import DiskFull, StoreBusy
from folio.store import indexes
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.system import workers
from folio.web.api import make_web
from folio.web.guard import AccessRules
from tests.helpers.fakes import HashingApp, HashingEmbedder, hashing_app, make_pdf, read_here
from tests.helpers.libraries import ENTRY
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT

KB = 1024
PDF = "application/pdf"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs Linux and root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def app(tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    """A store on the disk that holds one paper; two more are waiting."""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    made = hashing_app(disk, PAPERS_DIR=tmp_path / "papers")
    make_pdf(tmp_path / "papers" / "lattices.pdf", "lattices")
    made.run()
    for subject in ("sponges", "trees"):
        make_pdf(tmp_path / "papers" / f"{subject}.pdf", subject)
    return made


def _fill(disk: Path, free: int) -> None:
    """Fill the disk except for `free` bytes."""
    room = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(max(0, room.f_bavail * room.f_bsize - free)))


def _papers(app: HashingApp) -> dict[str, str]:
    with closing(app.open_library()) as library:
        return {paper.file: library.text(paper.id, 0, paper.length) for paper in library.papers()}


# From nothing to enough for everything
@pytest.mark.parametrize("free_kb", [0, 16, 48, 80, 112, 144, 200, 300])
def test_an_ingest_on_a_full_disk_loses_nothing(app: HashingApp, disk: Path, free_kb: int) -> None:
    before = _papers(app)
    _fill(disk, free_kb * KB)
    full = False
    try:
        app.run()
    except DiskFull as error:
        full = True
        _assert_says_so(error, disk)
    assert full or free_kb > 100
    assert not full or free_kb < 300
    (disk / "filler").unlink()
    landed = _papers(app)
    assert before.items() <= landed.items()
    embedded = len(app.hashing.passages)
    app.run()
    assert _papers(app).keys() == {"lattices.pdf", "sponges.pdf", "trees.pdf"}
    assert landed.items() <= _papers(app).items()
    assert app.verify() == []
    listed = json.loads((disk / "store" / "vectors.json").read_text())["segments"]
    assert {path.name for path in (disk / "store").glob("*.faiss*")} == {segment["file"] for segment in listed}
    # Of 12 passages and 3 papers, only the batch that could not be saved and the next one are embedded again.
    assert len(app.hashing.passages[embedded:]) + len(set(app.hashing.passages[:embedded])) <= 12 + 3 + 2 * 2


@pytest.mark.parametrize("gone", ["vectors*", "lexical"])
def test_an_index_is_written_once_there_is_space(app: HashingApp, disk: Path, gone: str) -> None:
    app.run()
    library, failed = Library(app.library_path), 0
    library.papers()
    for free_kb in range(0, 61, 10):
        for path in (disk / "store").glob(gone):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        _fill(disk, free_kb * KB)
        try:
            indexes.update_indexes(disk / "store", library, "tantivy")
        except DiskFull as error:
            failed += 1
            _assert_says_so(error, disk)
            assert not list((disk / "store").glob("vectors-*.new"))
        (disk / "filler").unlink()
    library.close()
    assert 1 <= failed < 7
    app.run()
    assert app.verify() == []


def _assert_says_so(error: DiskFull, disk: Path) -> None:
    assert error.happened in [
        f"There is no space left on the disk that holds {folder}." for folder in (disk, disk / "store")
    ]
    assert error.remedy == "Free some space and run the same command again; what was indexed before is kept."


@pytest.mark.parametrize("free_kb", [0, 16, 64])
def test_a_reader_on_a_full_disk_finds_everything(app: HashingApp, disk: Path, free_kb: int) -> None:
    """Even if the indexes are gone and cannot be written."""
    notices: list[str] = []
    reader = HashingApp(app.settings, notices.append, HashingEmbedder())
    library = reader.open_library()
    assert len(library.papers()) == 1
    for path in (disk / "store").glob("vectors*"):
        path.unlink()
    shutil.rmtree(disk / "store" / "lexical")
    _fill(disk, free_kb * KB)
    hits = reader.retriever(library).search("the shortest vector of a lattice", 1).hits
    library.close()
    assert hits[0].paper.file == "lattices.pdf"
    (notice,) = notices
    if free_kb < 20:
        full = f"There is no space left on the disk that holds {disk / 'store'}."
        assert notice.endswith(f"built in memory from the library for now. {full}")


@pytest.mark.parametrize("free_kb", [0, 40, 72])
def test_what_only_reads_reads_on_a_full_disk(app: HashingApp, disk: Path, free_kb: int) -> None:
    """SQLite has no room for its files."""
    expected = _papers(app)
    _fill(disk, free_kb * KB)
    assert _papers(app) == expected
    assert app.verify() == []
    with closing(app.open_library()) as library:
        assert app.retriever(library).search("the shortest vector of a lattice", 1).hits[0].paper.file == "lattices.pdf"
        log = QueryLog(library.database)
        if free_kb < 20:
            with pytest.raises(DiskFull) as caught:
                log.add(ENTRY)
            _assert_says_so(caught.value, disk)
            assert not library.is_read_only
        (disk / "filler").unlink()
        log.add(ENTRY)  # by the same connection
        assert len(log.entries()) == 1
    with closing(app.open_library()) as library:
        assert len(QueryLog(library.database).entries()) == 1


def test_a_log_that_a_kill_left_is_read_on_a_full_disk(app: HashingApp, disk: Path) -> None:
    copied = disk / "copied"
    with closing(app.open_library()) as library:
        QueryLog(library.database).add(ENTRY)
        library.set_fingerprint({"made": "again"})
        copied.mkdir()
        for name in ("library.sqlite", "library.sqlite-wal", "user.sqlite", "user.sqlite-wal"):
            shutil.copy(disk / "store" / name, copied / name)
    before = {path.name: path.read_bytes() for path in copied.iterdir()}
    assert len(before["user.sqlite-wal"]) > 0
    _fill(disk, 0)
    with closing(Library(copied / "library.sqlite")) as library:
        assert library.fingerprint() == {"made": "again"}
        assert len(QueryLog(library.database).entries()) == 1
        assert library.check() == []
        (disk / "filler").unlink()
        QueryLog(library.database).add(ENTRY)
        assert len(QueryLog(library.database).entries()) == 2


def test_files_that_are_written_while_they_are_read_without_a_lock_are_read_again(app: HashingApp, disk: Path) -> None:
    def write_while_it_is_read() -> None:
        with library.reading():
            (disk / "filler").unlink()
            with closing(app.open_library()) as other:
                other.set_fingerprint({"made": "again"})

    _fill(disk, 0)
    with closing(app.open_library()) as library:
        with pytest.raises(StoreBusy):
            write_while_it_is_read()
        assert library.fingerprint() == {"made": "again"}


@pytest.mark.parametrize("full", ["where it waits", "where it goes"])
def test_an_upload_to_a_full_disk_leaves_nothing(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    if full == "where it waits":
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
    papers = (tmp_path if full == "where it waits" else disk) / "papers"
    web = make_web(hashing_app(tmp_path, PAPERS_DIR=papers), AccessRules("127.0.0.1", 8420))
    with TestClient(web, base_url="http://127.0.0.1:8420") as client:
        response = client.post("/papers", files={"file": ("a.pdf", b"%PDF-1.7" + bytes(3_000_000))})
    assert response.status_code == 507
    assert response.json()["error"].startswith(f"There is no space left on the disk that holds {disk}")
    assert list(papers.glob("*")) == []


def test_by_the_web_what_reads_is_answered_and_what_would_write_is_507(app: HashingApp, disk: Path) -> None:
    app = replace(app, notice=lambda text: None)
    with TestClient(make_web(app, AccessRules("127.0.0.1", 8420)), base_url="http://127.0.0.1:8420") as client:
        client.get("/health")
        for _ in range(3):  # the server's own threads may still open and close the library
            with suppress(OSError):
                _fill(disk, 0)
            time.sleep(0.2)
        paper = client.get("/papers").json()["papers"][0]["id"]
        answer = client.post("/chat", json={"message": "What is the shortest vector of a lattice?", "listed": True})
        assert answer.json()["notice"].endswith(f"no space left on the disk that holds {disk / 'store'}.")
        for path in ("/health", f"/papers/{paper}", f"/papers/{paper}/about", "/notes", "/papers.bib"):
            assert client.get(path).status_code == 200
        replies = [
            client.patch(f"/papers/{paper}", json={"title": "New"}),
            client.put(f"/papers/{paper}/reading", json={"page": 1}),
            client.delete(f"/papers/{paper}"),
            client.post("/notes", json={"text": "x", "quotes": [{"paper": paper, "start": 0, "end": 10}]}),
            client.post("/uploads?name=a.pdf", content=b"%PDF-1.7" + bytes(2000), headers={"Content-Type": PDF}),
        ]
        assert [reply.status_code for reply in replies] == [507] * len(replies)
        (disk / "filler").unlink()
        assert client.patch(f"/papers/{paper}", json={"title": "New"}).json()["title"] == "New"
        client.post("/chat", json={"message": "What is the shortest vector of a lattice?", "listed": True})
        assert len(client.get("/conversations").json()["conversations"]) == 1


def test_the_command_reports_it_in_two_lines(disk: Path, tmp_path: Path) -> None:
    make_pdf(tmp_path / "papers" / "trees.pdf", "trees")
    _fill(disk, 16 * KB)
    with OllamaStandIn(dimension=64) as server:
        done = subprocess.run(
            [sys.executable, ROOT / "ingest.py", "--jobs", "1"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PAPERS_DIR": str(tmp_path / "papers"),
                "VECTORSTORE_DIR": str(disk / "store"),
                "INGESTED_JSON": str(disk / "ingested.json"),
                "EMBEDDER": "ollama",
                "OLLAMA_HOST": server.url,
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"There is no space left on the disk that holds {disk / 'store'}.",
        "Free some space and run the same command again; what was indexed before is kept.",
    ]
