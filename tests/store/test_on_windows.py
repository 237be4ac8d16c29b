"""Stores over a double of Windows' file system: what another part of the program has open is neither replaced nor
deleted there. The double has never been compared with a real Windows."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from folio.ingest import discovery
from folio.store import bm25
from folio.store.indexes import LEXICAL, Indexes
from folio.store.library import Library
from folio.store.query_log import LogEntry, QueryLog
from folio.store.user_file import set_aside
from folio.store.vectors import Segment
from folio.system import workers
from folio.system.files import unusable
from folio.web.uploads import UploadQueue
from tests.helpers import windows
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.fakes import HashingApp, HashingEmbedder, RecordedProgress, hashing_app, make_pdf, read_once
from tests.helpers.paths import ROOT

ENTRY = LogEntry("2026-01-02T03:04:05+00:00", "0?", "0?", (5,), "It is.", (), {"total": 3.5}, "by hand")
QUESTION = "the shortest vector of a lattice"
# Those in which files are replaced that something has open; with EXHAUSTIVE=1 all that write a store
_STORE = ["conversations", "daily_notice", "indexes", "user_file", "user_repair", "vector_index"]
_INGEST = ["rebuild_safety"]
if EXHAUSTIVE:
    _STORE += ["bm25_index", "damaged_indexes", "faiss_segment", "library", "takeover", "works"]
    _INGEST += ["damaged_library", "data_safety", "edits_survive"]
SUITE = (
    *(f"tests/store/test_{name}.py" for name in _STORE),
    *(f"tests/ingest/test_{name}.py" for name in _INGEST),
    "tests/web/test_paper_files.py",
)
# Without those that try the same in very many places, on a disk of their own, wait for a lock, or look at answers
QUICK = (
    "not (flipped or never_gets or damaged_version or saved_independently or takes_over or leads_to_a_rebuild"
    " or small_disk or any_history or writer_lock or removed_while or middle_of or busy_library or transaction"
    " or can_be_continued or readers_may_open or threads_that or two_processes or system_call or read_a_page"
    " or row_that_cannot or no_room or disk_that)"
)
# What the double cannot stand in for
LEFT_OUT = (
    # They say that an old file goes at once, though a reader has it mapped.
    "tests/store/test_vector_index.py::test_an_open_index_works_after_its_files_were_deleted",
    "tests/store/test_vector_index.py::test_a_reader_retries_if_a_writer_replaced_the_manifest",
    # They rename files that are open.
    "tests/store/test_user_repair.py::test_an_open_library_notices_that_its_user_file_was_replaced",
    "tests/ingest/test_damaged_library.py::test_a_killed_rebuild_of_a_damaged_library_loses_nothing",
    # They look at the bits of permissions.
    "tests/store/test_takeover.py::test_the_mode_of_the_file_is_kept",
    "tests/store/test_user_file.py::test_the_file_and_its_copies_are_private",
    "tests/store/test_daily_notice.py::test_the_mark_is_the_stores_and_private",
    # They act in processes of their own, which do not have the double.
    "tests/store/test_takeover.py::test_a_kill_leaves_the_old_library_or_the_new_one",
    "tests/ingest/test_edits_survive.py::test_a_killed_edit_is_whole_or_absent",
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the double of Windows stands on Linux")


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    """A store of two papers, over the double."""
    monkeypatch.setattr(workers, "run_guarded", read_once)
    for subject in ("lattices", "sponges"):
        make_pdf(tmp_path / "papers" / f"{subject}.pdf", subject)
    made = hashing_app(tmp_path, LLM="builtin")
    made.run()
    windows.install(monkeypatch)
    return made


def _open(app: HashingApp, library: Library) -> Indexes:
    found = app.open_indexes(library)
    assert isinstance(found, Indexes)
    return found


def _old_files(app: HashingApp) -> list[str]:
    """The files of indexes that are not listed."""
    listed = {path.name for path in app.store_folder.glob("vectors-*.faiss")}
    with closing(app.open_library()) as library:
        current = {segment.meta.file for segment in _open(app, library).vectors.segments if segment.meta}
    return sorted(listed - current)


def _edit(app: HashingApp) -> None:
    (app.settings.PAPERS_DIR / "sponges.pdf").unlink()
    make_pdf(app.settings.PAPERS_DIR / "sponges.pdf", "sponges", title="Another title")
    app.run()


def _add(app: HashingApp) -> None:
    make_pdf(app.settings.PAPERS_DIR / "trees.pdf", "trees")
    app.run()


def _remove(app: HashingApp) -> None:
    (app.settings.PAPERS_DIR / "sponges.pdf").unlink()
    app.run(prune=True)


@pytest.mark.parametrize(
    "change",
    [_add, _edit, _remove, HashingApp.repair, lambda app: app.run(rebuild=True)],
    ids=["add", "edit", "remove", "repair", "rebuild"],
)
def test_indexes_change_while_a_reader_has_them_open(app: HashingApp, change: Callable[[HashingApp], object]) -> None:
    with closing(app.open_library()) as library:
        reader = _open(app, library)
        with library.reading():
            before = reader.lexical.search(QUESTION, 3), reader.vectors.ids()
            change(app)
            assert (reader.lexical.search(QUESTION, 3), reader.vectors.ids()) == before
        assert app.verify() == []
        hits = app.retriever(library).search(QUESTION, 1).hits
        assert hits[0].paper.file == "lattices.pdf"
    del reader, hits
    gc.collect()
    make_pdf(app.settings.PAPERS_DIR / "gradients.pdf", "gradients")
    make_pdf(app.settings.PAPERS_DIR / "lattices.pdf", "lattices", title="So that BM25 is made again")
    app.run()
    assert _old_files(app) == []
    assert app.verify() == []
    lexical = app.store_folder / LEXICAL
    left = {path.name for path in lexical.iterdir()} - bm25.listed_files(lexical).keys()
    assert {name for name in left if not name.endswith(".lock")} == {bm25.MANIFEST}
    segments = {name.partition(".")[0] for name in bm25.listed_files(lexical) if not name.endswith(".json")}
    assert len(segments) == 1


def test_a_damaged_library_stays_while_a_server_has_it_open(app: HashingApp) -> None:
    with closing(app.open_library()) as library:
        QueryLog(library.database).add(ENTRY)
    files, _ = discovery.hash_files(discovery.find_pdfs([app.settings.PAPERS_DIR]), RecordedProgress())
    notices: list[str] = []
    mending = HashingApp(app.settings, notices.append, HashingEmbedder())
    with closing(sqlite3.connect(app.library_path)) as server:
        server.execute("DROP TABLE vectors")
        server.execute("SELECT count(*) FROM meta").fetchall()
        before = app.library_path.read_bytes()
        with pytest.raises(OSError, match="cannot access the file") as caught:
            list(mending.rebuild(files, RecordedProgress()))
        assert set_aside(app.library_path) == []
        assert app.library_path.read_bytes() == before
    assert "library.sqlite is open in another program" in unusable(caught.value).happened
    mending.run(rebuild=True)
    assert len(set_aside(app.library_path)) == 1
    assert app.verify() == []
    with closing(app.open_library()) as library:
        assert library.database.query("SELECT count(*) FROM queries") == [(1,)]


def test_an_upload_whose_file_is_open_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = UploadQueue(tmp_path / "uploads", None, None, None)  # type: ignore[arg-type]
    windows.install(monkeypatch)
    incoming = queue.receive("otters.pdf")
    incoming.write(b"%PDF-1.7" + b" " * 2000)
    upload = incoming.commit()
    content = queue.folder / f"{upload.id}.pdf"
    with content.open("rb"):  # as another server does that is about to add it
        queue.cancel(upload.id)
        assert content.exists()
    assert queue.state().uploads == []


def test_the_double_of_windows_refuses_what_windows_refuses(app: HashingApp) -> None:
    """Without Folio's care: else the tests above would show nothing."""
    with closing(app.open_library()) as library:
        reader = _open(app, library)
        (segment,) = reader.vectors.segments
        assert segment.meta is not None
        mapped = app.store_folder / segment.meta.file
        assert str(mapped) in windows.open_files()
        segment.write(mapped)  # which gives it another name
        assert segment.meta.file == f"{mapped.stem}-2.faiss"
        again = Segment.open(app.store_folder, segment.meta, 64)
        assert len(again) == len(segment)
    for name in ("CON.pdf", "nul", "a:b.pdf", "what?.pdf", "dot.", "space "):
        assert windows.is_bad_name(name)
    for name in ("CONTENT.pdf", "a.b.pdf", "vectors-01234567-1.faiss.new", "王.pdf"):
        assert not windows.is_bad_name(name)


@pytest.mark.slow
@pytest.mark.timeout(900)  # on a busy computer it waits
def test_the_store_tests_pass_on_the_double_of_windows(tmp_path: Path) -> None:
    deselected = [f"--deselect={name}" for name in LEFT_OUT]
    plugin = ("-p", "tests.helpers.windows", "-p", "no:cacheprovider", "-m", "not slow", "-k", QUICK)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=short", *plugin, *deselected, *SUITE],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
