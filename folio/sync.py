"""Keeps the library in step with folders and with a Zotero library while it runs: `folio ingest --watch`, the server.

Whatever has changed goes through the same ingest as a command's. While another process is writing, this one waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from folio.app import App
from folio.errors import DiskFull, FolioError, StoreAway, StoreBusy, StoreMissing
from folio.ingest.discovery import IngestProgress, Outcome, hash_files
from folio.ingest.watch import Changes, WatchedFolder, away_notice
from folio.papers.model import SourceFile
from folio.shown_text import plain_line
from folio.system.files import unusable
from folio.system.folder_events import FolderEvents, is_remote
from folio.zotero.files import DATABASE, Computer, find_data_folder
from folio.zotero.library import read_library
from folio.zotero.sync import ZoteroSelection

# Seconds between two looks at a folder: while something in it is not still yet; of which the system tells changes, soon
# after it begins to and later; and of which it tells none, at least, and so many times as long as a look takes
_SOON_S, _FIRST_S, _RARELY_S, _POLL_S, _POLL_TIMES = 0.5, 2.0, 60.0, 3.0, 20
_PAUSE_TIMES = 2  # the same, where the system tells of one change after the other
_TICK_S = 2.0  # between checks whether a folder was replaced and whether the computer has slept
_SLEPT_S = 5.0  # by which the clock was ahead of the program's own time
# Seconds until the next try: while another process is writing, after another error, and for files that cannot be read
_BUSY_S, _RETRY_S, _UNREADABLE_S = 2.0, 15.0, 300.0
# Seconds for which another process may write before that is said: an upload to the page takes a moment
_PATIENT_S = 10.0
# Seconds between two reads of Zotero's database, which is copied to be read
_ZOTERO_S = 20.0
_STOP_S = 5.0  # for an ingest to end
_WAITS_FOR = (StoreBusy, DiskFull, StoreAway)


@dataclass(frozen=True)
class ZoteroChoice:
    """Which PDFs of which Zotero library; None finds its data folder."""

    data_folder: Path | None = None
    collections: Sequence[str] = ()
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class Hooks:
    """What a command and the server do each in their own way."""

    writing: Callable[[], AbstractContextManager[None]]  # holds the writer lock; raises StoreBusy
    progress: Callable[[int], AbstractContextManager[IngestProgress]]  # of an ingest of so many files
    report: Callable[[Sequence[Outcome]], None]
    most: int | None = None  # files that are read while the lock is held
    jobs: int | None = None  # processes that read PDFs
    planned: Callable[[int], object] = lambda files: None  # called before so many files are read, in parts


class _Source(Protocol):
    """A folder, or Zotero's library."""

    due: float  # when to look again, as time.monotonic

    def prepare(self, now: float) -> None:
        """Make it due if there is a reason to look sooner."""
        ...

    def look(self, now: float) -> None:
        """Look, and give the library what has changed. Raises FolioError, OSError."""
        ...

    def woken(self) -> None:
        """The computer has slept, and anything may have been missed."""
        ...

    def close(self) -> None: ...


class Sync:
    """For one thread; `stop` may be called from others."""

    def __init__(
        self, app: App, folders: Sequence[Path], zotero: ZoteroChoice | None, hooks: Hooks, poll_s: float = 0
    ) -> None:
        """poll_s: seconds between looks; 0: notifications of the system, where it has them."""
        self.app, self.hooks = app, hooks
        self._wake, self._stopping = Event(), False
        self._said: dict[_Source, str] = {}  # the problem that keeps its changes waiting
        self._waiting: dict[_Source, float] = {}  # since when
        self._thread: Thread | None = None
        self._failed: dict[str, str] = {}  # path -> why it could not be read
        self._sources: list[_Source] = [
            _Folder(self, WatchedFolder(folder, self._known), self._wake.set, poll_s) for folder in folders
        ]
        if zotero is not None:
            self._sources.append(_Zotero(self, zotero))

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    def start(self, cancelled: type[BaseException]) -> None:
        """Run in a thread until `stop`. cancelled: raised by the hooks' progress to end an ingest that is under way."""

        def run() -> None:
            with suppress(cancelled):
                self.run()

        self._thread = Thread(target=run, name="sync", daemon=False)
        self._thread.start()

    def stop(self) -> None:
        """End `run` soon."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_STOP_S)

    def run(self, on_ready: Callable[[], object] = lambda: None, *, strict: bool = False) -> None:
        """Keep in step until `stop`. on_ready: called when everything was looked at once. strict: raise an error of the
        first look, unless it may end by itself."""
        shift, is_ready = _shift(), False
        try:
            while not self._stopping:
                self._wake.clear()
                if abs(_shift() - shift) > _SLEPT_S:
                    shift = _shift()
                    for source in self._sources:
                        source.woken()
                self._look_at_due(strict)
                if not is_ready and not self._waiting:
                    is_ready, strict = True, False
                    on_ready()
                due = min((source.due for source in self._sources), default=time.monotonic() + _TICK_S)
                self._wake.wait(min(max(0.0, due - time.monotonic()), _TICK_S))
        finally:
            for source in self._sources:
                source.close()

    def _look_at_due(self, strict: bool) -> None:
        for source in self._sources:
            now = time.monotonic()
            source.prepare(now)
            if source.due > now or self._stopping:
                continue
            try:
                source.look(now)
                self._said.pop(source, None)
                self._waiting.pop(source, None)
            except (FolioError, OSError) as error:
                if strict and not isinstance(error, _WAITS_FOR):
                    raise
                source.due = time.monotonic() + (_BUSY_S if isinstance(error, StoreBusy) else _RETRY_S)
                self._say_problem(source, error)

    def _say_problem(self, source: _Source, error: FolioError | OSError) -> None:
        since = self._waiting.setdefault(source, time.monotonic())
        if isinstance(error, StoreBusy) and time.monotonic() - since < _PATIENT_S:
            return
        shown = error if isinstance(error, FolioError) else unusable(error)
        after = "What has changed is read after that." if isinstance(error, _WAITS_FOR) else shown.remedy
        if (said := f"{shown.happened} {after}") != self._said.get(source):
            self._said[source] = said
            self.app.notice(said)

    def _known(self) -> list[str]:
        """The paths of all files in the library."""
        try:
            with closing(self.app.open_library()) as library:
                return [file.path for file in library.files()]
        except StoreMissing:
            return []

    def give(self, changes: Changes) -> list[Outcome]:
        """Bring the library in step, in parts; returns the outcomes. Raises as an ingest does."""
        outcomes: list[Outcome] = []
        self.hooks.planned(len(changes.files))
        for part in _parts(changes, self.hooks.most):
            with self.hooks.writing(), self.hooks.progress(len(part.files)) as progress:
                for outcome in self.app.bring_in(part, progress, jobs=self.hooks.jobs):
                    progress.done(outcome)
                    outcomes.append(outcome)
        self.report(outcomes)
        return outcomes

    def report(self, outcomes: Sequence[Outcome]) -> None:
        """Report outcomes, but none twice about a file that cannot be read."""
        shown = []
        for outcome in outcomes:
            why = " ".join(outcome.notes) if outcome.status == "failed" else ""
            if not why or self._failed.get(outcome.file.path) != outcome.notes[0]:
                shown.append(outcome)
            if why:
                self._failed[outcome.file.path] = outcome.notes[0]
            else:
                self._failed.pop(outcome.file.path, None)
        self.hooks.report(shown)


def _parts(changes: Changes, most: int | None) -> Iterator[Changes]:
    """Changes with at most so many files each; what is gone comes last, because it may have been moved."""
    files = iter(changes.files.items())
    left = len(changes.files)
    while True:
        part = dict(islice(files, most)) if most else changes.files
        left -= len(part)
        yield Changes(part, () if left else changes.removed)
        if not left:
            return


def _shift() -> float:
    """The clock minus the program's own time, which stands still while the computer sleeps."""
    return time.time() - time.monotonic()


class _Folder:
    """One watched folder."""

    def __init__(self, sync: Sync, folder: WatchedFolder, wake: Callable[[], object], poll_s: float) -> None:
        self._sync, self._folder, self._wake = sync, folder, wake
        self._poll_s = poll_s
        self._events: FolderEvents | None = None
        self._is_polled = bool(poll_s)
        self._has_told = False  # that the system cannot tell what changes
        self._pause_s = _FIRST_S
        self._looked = 0.0  # when the last look ended
        self._took = 0.0  # seconds
        self._away: dict[str, int] = {}
        self._unreadable: list[str] = []
        self._again = 0.0  # when they are read again
        self.due = 0.0

    def prepare(self, now: float) -> None:
        if self._folder.is_other():
            self.woken()
        if self._events is not None:
            if self._events.problem:
                self._say_polled(self._events.problem)
                self._close_events()
                self._is_polled = True
            elif self._events.take():
                self.due = min(self.due, max(now, self._looked + _PAUSE_TIMES * self._took))

    def woken(self) -> None:
        self._close_events()
        self._pause_s, self.due = _FIRST_S, 0.0

    def close(self) -> None:
        self._close_events()

    def look(self, now: float) -> None:
        if self._events is None and not self._is_polled and self._folder.path.is_dir():
            self._is_polled = is_remote(self._folder.path)
            if not self._is_polled:
                self._events = FolderEvents(self._folder.path, self._wake)
        if self._unreadable and now >= self._again:
            self._folder.forget(self._unreadable)
            self._unreadable = []
        began = time.monotonic()
        changes = self._folder.look(began, time.time())
        self._looked = time.monotonic()
        self._took = self._looked - began
        self._say_away()
        if changes:
            outcomes = self._sync.give(changes)
            self._folder.done(changes)
            if failed := [outcome.file.path for outcome in outcomes if outcome.status == "failed"]:
                self._unreadable += failed
                self._again = time.monotonic() + _UNREADABLE_S
        self.due = time.monotonic() + self._next_pause()

    def _next_pause(self) -> float:
        if self._folder.is_unsettled:
            return max(_SOON_S, self._took)
        if self._events is None:
            return max(self._poll_s or _POLL_S, _POLL_TIMES * self._took)
        pause, self._pause_s = self._pause_s, min(2 * self._pause_s, _RARELY_S)
        return pause

    def _close_events(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    def _say_polled(self, why: str) -> None:
        if not self._has_told:
            self._has_told = True
            folder, line = plain_line(str(self._folder.path)), plain_line(why)
            self._sync.app.notice(f"The system does not tell what changes in {folder} ({line}): it is looked through.")

    def _say_away(self) -> None:
        away = self._folder.away()
        for folder, files in away.items():
            if folder not in self._away:
                self._sync.app.notice(away_notice(folder, files))
        for folder in self._away.keys() - away.keys():
            self._sync.app.notice(f"{plain_line(folder)} is back.")
        self._away = away


@dataclass(eq=False)
class _Zotero:
    """A Zotero library, read anew when its database has changed."""

    sync: Sync
    choice: ZoteroChoice
    due: float = 0.0
    _read: object = None  # the state of its database when it was read
    _files: dict[str, tuple[tuple[int, int], SourceFile]] = field(default_factory=dict)  # path -> size and time, hash
    _absent: list[Path] = field(default_factory=list)  # files that were not there then

    def prepare(self, now: float) -> None:
        pass

    def woken(self) -> None:
        self.due = 0.0

    def close(self) -> None:
        pass

    def look(self, now: float) -> None:
        self.due = now + _POLL_S
        folder = find_data_folder(self.choice.data_folder, Computer.this())
        state = _database_state(folder.path)
        if state == self._read and not any(map(os.path.exists, self._absent)):
            return
        chosen = ZoteroSelection(read_library(folder), self.choice.collections, self.choice.tags)
        app, hooks = self.sync.app, self.sync.hooks
        with hooks.writing(), hooks.progress(len(chosen.files)) as progress:
            files, outcomes = self._hashed(chosen.files, progress)
            with app.finishing():
                app.describe_from_zotero(chosen.zotero, files)
                with closing(app.ingest(files, progress, jobs=hooks.jobs, retry=frozenset())) as work:
                    for outcome in work:
                        progress.done(outcome)
                        outcomes.append(outcome)
                outcomes += app.remove_what_left_zotero(chosen.zotero)
            app.take_annotations(chosen.zotero)
        self.sync.report(outcomes)
        self._read = state
        self._absent = [each.path for each in chosen.zotero.attachments if each.path not in chosen.files]
        self.due = time.monotonic() + _ZOTERO_S

    def _hashed(self, files: dict[Path, str], progress: IngestProgress) -> tuple[list[SourceFile], list[Outcome]]:
        """As hash_files; a file that has not changed is not read again."""
        states = {path: _state(path) for path in files}
        new = {
            path: name
            for path, name in files.items()
            if (known := self._files.get(str(path))) is None or known[0] != states[path]
        }
        hashed, outcomes = hash_files(new, progress)
        self._files |= {file.path: (states[Path(file.path)], file) for file in hashed}
        return [self._files[str(path)][1] for path in files if str(path) in self._files], outcomes


def _state(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return -1, 0
    return status.st_size, status.st_mtime_ns


def _database_state(folder: Path) -> tuple[tuple[int, int], ...]:
    return tuple(_state(folder / f"{DATABASE}{suffix}") for suffix in ("", "-journal", "-wal"))
