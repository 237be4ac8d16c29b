"""Work of the server that takes long, and that every open page sees: a rebuild, a download of a model, an ingest."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread

from folio.errors import FolioError, NotKnown
from folio.ingest.discovery import Outcome
from folio.papers.model import SourceFile
from folio.schema.settings import TaskJson, TaskKind
from folio.schema.web import error_body
from folio.system.files import unusable
from folio.web.questions import Busy
from folio.web.stream import RequestCancelled, log_internal

_STOP_S = 5.0  # for a task to end when the server stops
# Only one of these runs at a time: each writes to the library for as long as it takes
_WRITING: frozenset[TaskKind] = frozenset({"rebuild", "repair", "read", "zotero"})
_MOST_ENDED = 5  # that are kept for pages to show


class Report:
    """What the work of a task calls: it says how far it is, and ends it where a person has cancelled it."""

    def __init__(self, tasks: Tasks, id: str, cancelled: Event) -> None:
        self._tasks, self.id, self._cancelled = tasks, id, cancelled

    def step(self, step: str, done: int = 0, of: int = 0) -> None:
        """Say what is done now, how much of it is done, and of how much; 0 where that is not known."""
        self.check_cancelled()
        self._tasks.change(self.id, step=step, done=done, of=of)

    def check_cancelled(self) -> None:
        """Raises RequestCancelled once the task was cancelled, or the server stops."""
        if self._cancelled.is_set():
            raise RequestCancelled


class PapersProgress:
    """The progress of an ingest as a task shows it: how many files are done. Implements IngestProgress."""

    def __init__(self, report: Report, done: int = 0, of: int = 0) -> None:
        self._report, self._done, self._of = report, done, of

    def hashed(self, file: Path) -> None:
        self._report.check_cancelled()

    def planned(self, files: Sequence[SourceFile]) -> None:
        self._of = max(self._of, len(files))
        self._report.step("reading", self._done, self._of)

    def scanned(self, file: SourceFile, pages: int, of: int) -> None:
        self._report.step("reading", self._done, self._of)

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None:
        self._report.step("reading", self._done, self._of)

    def done(self, outcome: Outcome) -> None:
        if outcome.status not in ("unchanged", "duplicate"):
            self._done += 1
        self._report.step("reading", min(self._done, self._of), self._of)


def _new(kind: TaskKind, about: str, reason: str = "") -> TaskJson:
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    return TaskJson(id=f"task-{secrets.token_hex(8)}", kind=kind, about=about, reason=reason, begun=begun)


@dataclass(frozen=True)
class _Task:
    json: TaskJson
    cancelled: Event = field(default_factory=Event, compare=False)
    thread: Thread | None = field(default=None, compare=False)

    @property
    def is_running(self) -> bool:
        return self.json.state in ("running", "stopping")


class Tasks:
    """Thread-safe. What has ended is kept, for pages to show, until it is dismissed or others have ended."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Task] = {}
        self._lock = Lock()
        self.version = 0  # changes with every change

    def start(self, kind: TaskKind, about: str, work: Callable[[Report], str], reason: str = "") -> TaskJson:
        """Start work in a thread; it returns what came of it, as a sentence. about: what it works on.

        Raises Busy if such work is under way.
        """
        task = _Task(json := _new(kind, about, reason))
        report = Report(self, json.id, task.cancelled)
        task = replace(task, thread=Thread(target=self._run, args=(json.id, work, report), name=kind, daemon=False))
        with self._lock:
            self._require_free(kind, about)
            self._tasks[json.id] = task
            self._forget_ended()
            self.version += 1
        assert task.thread is not None
        task.thread.start()
        return json

    def _require_free(self, kind: TaskKind, about: str) -> None:
        for other in self._tasks.values():
            same = other.json.kind == kind and other.json.about == about
            if other.is_running and (same or {kind, other.json.kind} <= _WRITING):
                raise Busy("Another such task is running.", "Wait until it has ended, or cancel it.")

    def _forget_ended(self) -> None:
        ended = [id for id, task in self._tasks.items() if not task.is_running]
        for id in ended[: max(0, len(ended) - _MOST_ENDED)]:
            del self._tasks[id]

    def _run(self, id: str, work: Callable[[Report], str], report: Report) -> None:
        try:
            result = work(report)
        except RequestCancelled:
            self.change(id, state="cancelled")
        except FolioError as error:
            self.change(id, state="failed", error=error_body(error))
        except OSError as error:
            self.change(id, state="failed", error=error_body(unusable(error)))
        except Exception as error:
            log_internal(error)
            failed = FolioError("Folio failed with an internal error.", "Its log shows details. Please report them.")
            self.change(id, state="failed", error=error_body(failed))
        else:
            self.change(id, state="done", result=result)

    def change(self, id: str, **changes: object) -> None:
        """Change what is said of a task."""
        with self._lock:
            if (task := self._tasks.get(id)) is None:
                return
            json = task.json.model_copy(update=changes)
            if json.state == "running" and task.cancelled.is_set():
                json = json.model_copy(update={"state": "stopping"})
            if json != task.json:
                self._tasks[id] = replace(task, json=json)
                self.version += 1

    def state(self) -> list[TaskJson]:
        """All tasks, the latest first."""
        with self._lock:
            return [task.json for task in reversed(self._tasks.values())]

    def is_running(self, *kinds: TaskKind) -> bool:
        """Whether a task of these kinds runs."""
        with self._lock:
            return any(task.is_running and task.json.kind in kinds for task in self._tasks.values())

    def cancel(self, id: str) -> None:
        """Cancel a task that runs, at its next step; forget one that has ended. Raises NotKnown."""
        with self._lock:
            task = self._tasks.get(id)
            if task is None:
                raise NotKnown("There is no such task.", "It has ended.")
            if task.is_running:
                task.cancelled.set()
                self._tasks[id] = replace(task, json=task.json.model_copy(update={"state": "stopping"}))
            else:
                del self._tasks[id]
            self.version += 1

    def begin(self, kind: TaskKind, cancelled: Event) -> Report:
        """A task whose work is done elsewhere, until `end`."""
        task = _Task(json := _new(kind, ""), cancelled)
        with self._lock:
            self._tasks[json.id] = task
            self.version += 1
        return Report(self, json.id, cancelled)

    def end(self, report: Report) -> None:
        """End a task of `begin`: nothing is left to say of it."""
        with self._lock:
            self._tasks.pop(report.id, None)
            self.version += 1

    def stop(self) -> None:
        """Cancel all tasks, and wait for them a while."""
        with self._lock:
            running = [task for task in self._tasks.values() if task.is_running]
        for task in running:
            task.cancelled.set()
        for task in running:
            if task.thread is not None:
                task.thread.join(_STOP_S)


class FolderReading:
    """The task of a server that reads what has changed in its folders, part by part. For one thread."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self.stopping = Event()  # set once the folders are no longer followed
        self._report: Report | None = None
        self._done = self._of = 0

    def planned(self, files: int) -> None:
        """So many files are read from now on."""
        self._done, self._of = 0, files

    @contextmanager
    def progress(self, files: int) -> Iterator[PapersProgress]:
        """The progress of a part with so many files."""
        if self._report is None:
            self._report = self._tasks.begin("sync", self.stopping)
        try:
            yield PapersProgress(self._report, self._done, max(self._of, files))
            self._done += files
        except BaseException:
            self._done = self._of
            raise
        finally:
            if self._done >= self._of:
                self._tasks.end(self._report)
                self._report = None
