"""A library is kept in step with folders and with Zotero: what it has, what is said, and how it waits and ends."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from folio import sync as sync_module
from folio.errors import DiskFull, UsageError
from folio.ingest import discovery, watch
from folio.ingest.discovery import Outcome
from folio.store import indexes, notes
from folio.store.library import Library
from folio.store.note_places import quote_of
from folio.sync import Hooks, Sync, ZoteroChoice
from folio.system import folder_events, workers
from tests.helpers.cli_runner import CliRunner
from tests.helpers.fakes import HashingApp, RecordedProgress, hashing_app, make_pdf, read_once
from tests.helpers.live_server import Live, until
from tests.helpers.paths import ROOT
from tests.helpers.zotero_library import MadeZotero, state_of

WAIT_S = 60.0


class Running:
    """A Sync over the papers of an app, in a thread; `said` and `done` are what it has told."""

    def __init__(self, app: HashingApp, folders: Sequence[Path], zotero: ZoteroChoice | None = None) -> None:
        self.said: queue.Queue[str] = queue.Queue()
        self.done: queue.Queue[tuple[str, str]] = queue.Queue()
        self.app = replace(app, notice=self.said.put)
        hooks = Hooks(
            lambda: indexes.writing(app.store_folder), lambda _: nullcontext(RecordedProgress()), self._report, jobs=1
        )
        self.sync = Sync(self.app, folders, zotero, hooks)
        self.sync.start(KeyboardInterrupt)

    def _report(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.status != "unchanged":
                self.done.put((outcome.status, outcome.file.name))

    def next(self, count: int = 1) -> list[tuple[str, str]]:
        return sorted(self.done.get(timeout=WAIT_S) for _ in range(count))

    def says(self) -> str:
        return self.said.get(timeout=WAIT_S)

    def files(self) -> list[str]:
        with closing(self.app.open_library()) as library:
            return sorted(file.name for file in library.files())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for what has to be still, nor for a worker."""
    for name, seconds in {"SETTLE_S": 0.05, "GONE_S": 0.3}.items():
        monkeypatch.setattr(watch, name, seconds)
    for name, seconds in {"_SOON_S": 0.05, "_BUSY_S": 0.05, "_RETRY_S": 0.05, "_ZOTERO_S": 0.05, "_POLL_S": 0.05,
                          "_TICK_S": 0.05, "_PATIENT_S": 0.0}.items():  # fmt: skip
        monkeypatch.setattr(sync_module, name, seconds)
    monkeypatch.setattr(folder_events, "_STEP_MS", 50)
    monkeypatch.setattr(workers, "run_guarded", read_once)


@pytest.fixture
def app(tmp_path: Path) -> HashingApp:
    (tmp_path / "papers").mkdir()
    return hashing_app(tmp_path)


@pytest.fixture
def run(app: HashingApp) -> Iterator[Callable[[], Running]]:
    started: list[Running] = []

    def run() -> Running:
        started.append(Running(app, [app.papers_folder]))
        return started[-1]

    yield run
    for each in started:
        each.sync.stop()


def test_new_changed_moved_and_removed(app: HashingApp, run: Callable[[], Running]) -> None:
    papers = app.papers_folder
    make_pdf(papers / "lattices.pdf", "lattices")
    running = run()
    assert running.next() == [("added", "lattices.pdf")]
    with closing(app.open_library()) as library:
        (paper,) = library.papers()
        notes.add(library.database, [quote_of(library, paper, "A lattice is a discrete group", 1)], text="mine")
    embedded = len(app.hashing.passages)
    (papers / "sub").mkdir()
    (papers / "lattices.pdf").rename(papers / "sub" / "moved.pdf")
    assert running.next() == [("duplicate", "sub/moved.pdf")]
    assert (running.files(), len(app.hashing.passages)) == (["sub/moved.pdf"], embedded)
    with closing(app.open_library()) as library:
        (note,) = notes.read(library.database)
        assert (note.text, note.quotes[0].state) == ("mine", "here")
    make_pdf(papers / "sponges.pdf", "sponges")
    assert running.next() == [("added", "sponges.pdf")]
    make_pdf(papers / "sponges.pdf", "sponges", change="The last line is another one.")
    assert running.next() == [("replaced", "sponges.pdf")]
    (papers / "sponges.pdf").unlink()
    assert running.next() == [("pruned", "sponges.pdf")]
    assert running.files() == ["sub/moved.pdf"]
    assert app.verify() == []


def test_as_a_plain_ingest(app: HashingApp, run: Callable[[], Running], tmp_path: Path) -> None:
    """The same library, whichever way the papers came."""
    make_pdf(app.papers_folder / "lattices.pdf", "lattices")
    running = run()
    running.next()
    make_pdf(app.papers_folder / "sponges.pdf", "sponges")
    running.next()
    running.sync.stop()
    (tmp_path / "other").mkdir()
    other = hashing_app(tmp_path / "other", PAPERS_DIR=app.papers_folder)
    other.run()

    def content(library: Library) -> list[object]:
        every = library.chunk_ids()
        return [library.read_chunks(sorted(every)), library.fingerprint(), library.files()]

    with closing(app.open_library()) as one, closing(other.open_library()) as two:
        assert sorted(map(str, content(one))) == sorted(map(str, content(two)))
    assert all(outcome.status == "unchanged" for outcome in app.run())


def test_it_waits_while_another_process_writes(app: HashingApp, run: Callable[[], Running]) -> None:
    make_pdf(app.papers_folder / "lattices.pdf", "lattices")
    with indexes.writing(app.store_folder):
        running = run()
        assert running.says() == "Another process is writing to this index. What has changed is read after that."
    assert running.next() == [("added", "lattices.pdf")]
    assert running.said.empty()  # and said it once


def test_what_an_ingest_or_a_rebuild_elsewhere_has_read(app: HashingApp, run: Callable[[], Running]) -> None:
    make_pdf(app.papers_folder / "lattices.pdf", "lattices")
    running = run()
    running.next()
    with indexes.writing(app.store_folder):
        make_pdf(app.papers_folder / "sponges.pdf", "sponges")
        running.says()
        hashed = replace(app, notice=lambda text: None)
        progress = RecordedProgress()
        files = list(app.papers_folder.iterdir())
        found, _ = discovery.hash_files({path: path.name for path in files}, progress)
        list(hashed.rebuild(found, progress, jobs=1))
        hashed.finish_ingest()
    make_pdf(app.papers_folder / "gradients.pdf", "gradients")
    assert running.next() == [("added", "gradients.pdf")]
    assert running.files() == ["gradients.pdf", "lattices.pdf", "sponges.pdf"]


def test_a_full_disk_is_waited_for(
    app: HashingApp, run: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Library.add

    def full(*_: object, **__: object) -> None:
        raise DiskFull("There is no space left on the disk.", "Free some.")

    monkeypatch.setattr(Library, "add", full)
    make_pdf(app.papers_folder / "lattices.pdf", "lattices")
    running = run()
    assert running.says() == "There is no space left on the disk. What has changed is read after that."
    monkeypatch.setattr(Library, "add", add)
    assert running.next() == [("added", "lattices.pdf")]
    assert running.said.empty()


def test_a_drive_that_comes_and_goes(app: HashingApp, run: Callable[[], Running], tmp_path: Path) -> None:
    folder = app.papers_folder
    make_pdf(folder / "lattices.pdf", "lattices")
    make_pdf(folder / "sponges.pdf", "sponges")
    running = run()
    running.next(2)
    folder.rename(tmp_path / "drive")
    said = running.says()
    assert said.startswith(f"{folder} is away or empty, perhaps because its drive is: its 2 papers stay in the index.")
    assert running.files() == ["lattices.pdf", "sponges.pdf"]
    make_pdf(tmp_path / "drive" / "gradients.pdf", "gradients")
    (tmp_path / "drive").rename(folder)
    assert running.says() == f"{folder} is back."
    assert running.next() == [("added", "gradients.pdf")]
    make_pdf(folder / "late.pdf", "lattices", title="Late")  # the system tells of changes again
    assert running.next() == [("added", "late.pdf")]


def test_after_sleep_everything_is_compared(
    app: HashingApp, run: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells of what changed meanwhile, and no look is due for an hour."""
    monkeypatch.setattr(folder_events.FolderEvents, "_watch", lambda self: self._stop.wait(WAIT_S))
    monkeypatch.setattr(sync_module, "_FIRST_S", 3600.0)
    monkeypatch.setattr(sync_module, "_RARELY_S", 3600.0)
    make_pdf(app.papers_folder / "lattices.pdf", "lattices")
    running = run()
    running.next()
    make_pdf(app.papers_folder / "sponges.pdf", "sponges")
    with pytest.raises(queue.Empty):
        running.done.get(timeout=0.5)
    monkeypatch.setattr(sync_module, "_shift", lambda: time.time() - time.monotonic() + 7200)
    assert running.next() == [("added", "sponges.pdf")]


def test_where_the_system_tells_nothing_it_looks(
    app: HashingApp, run: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    def limit(*_: object, **__: object) -> None:
        raise OSError("OS file watch limit reached. about [/papers]")

    monkeypatch.setattr("watchfiles.watch", limit)
    running = run()
    said = running.says()
    assert said == (
        f"The system does not tell what changes in {app.papers_folder} (OS file watch limit reached):"
        " it is looked through."
    )
    for name in ("lattices", "sponges"):
        make_pdf(app.papers_folder / f"{name}.pdf", name)
        assert running.next() == [("added", f"{name}.pdf")]
    assert running.said.empty()


def test_a_network_folder_is_looked_through(
    app: HashingApp, run: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_module, "is_remote", lambda folder: True)
    monkeypatch.setattr("watchfiles.watch", lambda *_, **__: pytest.fail("the system is asked"))
    running = run()
    make_pdf(app.papers_folder / "lattices.pdf", "lattices")
    assert running.next() == [("added", "lattices.pdf")]
    assert running.said.empty()


def test_a_file_that_cannot_be_read_is_told_once_and_read_when_it_can(
    app: HashingApp, run: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_module, "_UNREADABLE_S", 0.05)
    (app.papers_folder / "bad.pdf").write_bytes(b"not a PDF %%EOF")
    running = run()
    assert running.next() == [("failed", "bad.pdf")]
    make_pdf(app.papers_folder / "lattices.pdf", "lattices")
    assert running.next() == [("added", "lattices.pdf")]
    make_pdf(app.papers_folder / "bad.pdf", "sponges")
    assert running.next() == [("added", "bad.pdf")]


def test_zotero(app: HashingApp, tmp_path: Path) -> None:
    zotero = MadeZotero(tmp_path / "Zotero")
    pdf = make_pdf(tmp_path / "made" / "a.pdf", "lattices").read_bytes()
    item = zotero.item(title="Lattices of Zotero")
    zotero.attach(item, "storage:lattices.pdf", pdf)
    zotero.save()
    running = Running(app, [], ZoteroChoice(zotero.folder))
    try:
        assert running.next() == [("added", "lattices.pdf")]
        ice = zotero.item(title="Sponges of Zotero", tags=["cold"])
        key = zotero.attach(ice, "storage:sponges.pdf", make_pdf(tmp_path / "made" / "b.pdf", "sponges").read_bytes())
        zotero.save()
        before = state_of(zotero.folder)
        assert running.next() == [("added", "sponges.pdf")]
        with closing(app.open_library()) as library:
            assert {paper.title for paper in library.papers()} == {"Lattices of Zotero", "Sponges of Zotero"}
        # A file that Zotero has yet to download is read when it is there, which its database need not tell.
        gradients = zotero.attach(zotero.item(title="Gradients"), "storage:gradients.pdf")
        zotero.trash(zotero.id_of(key))
        zotero.save()
        assert running.next() == [("pruned", "sponges.pdf")]
        stored = make_pdf(zotero.folder / "storage" / gradients / "gradients.pdf", "gradients")
        assert running.next() == [("added", "gradients.pdf")]
        assert set(state_of(zotero.folder)) - before.keys() == {
            str(stored.relative_to(zotero.folder)), str(stored.parent.relative_to(zotero.folder))
        }  # fmt: skip
        zotero.folder.rename(tmp_path / "away")
        assert "no zotero.sqlite" in running.says()
        assert running.files() == ["gradients.pdf", "lattices.pdf"]
    finally:
        running.sync.stop()
        zotero.close()


def test_the_first_look_raises_what_does_not_pass(app: HashingApp, tmp_path: Path) -> None:
    hooks = Hooks(
        lambda: indexes.writing(app.store_folder), lambda _: nullcontext(RecordedProgress()), lambda _: None
    )
    sync = Sync(app, [], ZoteroChoice(tmp_path), hooks)
    with pytest.raises(UsageError, match="There is no Zotero library"):
        sync.run(strict=True)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_in_order(desk: CliRunner, number: signal.Signals) -> None:
    command = [sys.executable, str(ROOT / "ingest.py"), "--watch"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**desk.environment(), "EMBEDDER": "builtin"},
        cwd=desk.folder, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == f"In step with {desk.papers}. Ctrl-C stops it.\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    # A signal in the middle of printing the first line may print it again.
    assert (process.returncode, out, err.splitlines()[-1]) == (0, "", "Stopped. What was read is kept.")


def test_what_watch_does_not_go_with(desk: CliRunner) -> None:
    refused = desk.ingest("--watch", "--prune").err.splitlines()
    assert refused[0] == "--watch keeps the index in step, and does nothing else."
    assert "There is no file or folder" in desk.ingest("--watch", str(desk.folder / "nowhere")).err


def test_the_server_keeps_its_folders_in_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uploads and removals of the page, beside what comes and goes in the folder."""
    watched = tmp_path / "watched"
    make_pdf(watched / "lattices.pdf", "lattices")
    app = replace(hashing_app(tmp_path, WATCH=str(watched)), notice=lambda text: None)

    def titles(live: Live) -> set[str]:
        return {paper["title"] for paper in live.send("GET", "/papers")["papers"]}

    with Live(app) as live:
        until(lambda: titles(live) == {"On lattices"})
        make_pdf(watched / "sponges.pdf", "sponges")
        until(lambda: titles(live) == {"On lattices", "On sponges"})
        with live.client() as client, make_pdf(tmp_path / "made.pdf", "trees").open("rb") as file:
            client.post("/uploads", files={"file": ("trees.pdf", file, "application/pdf")}).raise_for_status()
        until(lambda: "On trees" in titles(live))
        (watched / "sponges.pdf").unlink()
        until(lambda: titles(live) == {"On lattices", "On trees"})
