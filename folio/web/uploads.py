"""The queue of uploads: complete files are stored on disk until they are added, one after the other.

A queued file outlives the page that sent it and the server that received it. In the queue's folder, which is part of
the store, each upload has two files: `ID.pdf` and, once that is complete and flushed, `ID.json`, the record of its
state. An upload without a record is not in the queue. Several servers over one store share the queue, because records
are read again whenever the folder has changed. One server at a time works on the queue: the one that holds the lock of
the folder. Any server may cancel the upload in work, by a change of its record.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock, Thread
from typing import Any, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, Field, ValidationError

from folio.errors import (
    ContextTooSmall,
    DiskFull,
    FolioError,
    ModelFailed,
    NotKnown,
    PaperError,
    StoreBusy,
    StoreRefused,
)
from folio.ingest.discovery import IngestProgress, Outcome, Status
from folio.schema.papers import PaperJson
from folio.schema.web import UploadJson, UploadsEvent, UploadsJson, UploadState
from folio.system.files import (
    discard,
    disk_full,
    is_full,
    no_space,
    remove,
    replace,
    sync_folder,
    unusable,
    write_private,
)
from folio.web.papers import PDF_HEAD_BYTES, STALE_S, Placed, require_pdf, safe_name
from folio.web.stream import RequestCancelled, Stage, StageProgress

logger = logging.getLogger(__name__)

# The time of a record's file in ns, and its inode; each change makes a new file
_Version = tuple[int, int]
# Copies a file into PAPERS_DIR under a name, and ingests it
AddPaper = Callable[[Path, str, IngestProgress, Callable[[Placed, str], None]], Outcome]

_ID = re.compile("[0-9]{19}-[0-9a-f]{8}")
# Seconds that an added file stays in the queue after the first client saw it, so that all open pages see it ...
SHOWN_S = 30
# ... and if no client asks
_FORGOTTEN_S = 24 * 3600
# Seconds between checks for files that another server has queued, and between tries while another process is writing
_LOOK_S = 2.0
# ... and between tries while every file would fail: each try reads the file again
_AGAIN_S = 15.0
# Errors about one file. With any other, such as a full disk or a model server that is down, every other file would fail
# too, so the queue waits.
_OF_ONE_FILE = (PaperError, StoreRefused, ModelFailed, ContextTooSmall)
_TO_DO = ("waiting", "cancelled")
# After this many tries during which the server ended, a file waits so many seconds before each further one: it may be
# what ends the server. Other files go before it.
MAX_TRIES = 3
LATER_S, _MOST_LATER_S = 600, 6 * 3600
_STOP_S = 5  # seconds for the worker to stop at shutdown: enough to finish embedding a batch of passages


class Record(BaseModel):
    """The state of an upload, as stored on disk."""

    file: str
    sha256: str
    # cancelled: while it was being added; the server that works on the queue deletes it
    state: Literal["waiting", "cancelled", "added", "failed"] = "waiting"
    tries: int = 0  # begun; a try without an outcome ended with the server
    placed: Placed | None = None  # the file in PAPERS_DIR of a try that has not ended
    status: Status | None = None
    paper: str | None = None
    title: str = ""
    pages: int = 0
    notes: list[str] = Field(default_factory=list)
    error: str = ""
    remedy: str = ""


@dataclass
class _Current:
    """The upload that is being added."""

    id: str
    before: Record
    state: UploadState = "waiting"  # until the library can be written
    done: int = 0
    of: int = 0
    is_begun: bool = False  # whether its record counts this try


class _Cancelled(Exception):
    """The upload was removed from the queue while it was being added."""


class IncomingFile:
    """An upload that is still arriving. It is in the queue once commit() returns."""

    def __init__(self, queue: UploadQueue, name: str) -> None:
        self._queue = queue
        self._name = safe_name(name)
        self._id = f"{time.time_ns():019d}-{token_hex(4)}"
        self._head = b""
        self._hash = hashlib.sha256()
        self._path = queue.folder / f"{self._id}.part"
        with no_space(queue.folder):
            queue.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600), "wb")

    def write(self, block: bytes) -> None:
        """Raises PaperError once the file is known not to be a PDF, DiskFull."""
        if len(self._head) < PDF_HEAD_BYTES:
            self._head = (self._head + block)[:PDF_HEAD_BYTES]
            if len(self._head) == PDF_HEAD_BYTES:
                require_pdf(self._head)
        self._hash.update(block)
        with no_space(self._queue.folder):
            self._file.write(block)

    def commit(self) -> UploadJson:
        """Flush the file and queue it. Raises PaperError if it is not a PDF, DiskFull."""
        require_pdf(self._head)
        with no_space(self._queue.folder):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            replace(self._path, self._path.with_suffix(".pdf"))
            return self._queue.enqueue(self._id, Record(file=self._name, sha256=self._hash.hexdigest()))

    def discard(self) -> None:
        """Delete the part that has arrived, unless the file is in the queue."""
        with suppress(OSError):  # the buffer may not fit on the disk
            self._file.close()
        self._path.unlink(missing_ok=True)


_BINARY = getattr(os, "O_BINARY", 0)


class UploadQueue:
    """Thread-safe."""

    def __init__(
        self,
        folder: Path,
        add: AddPaper,
        take_back: Callable[[Placed], None],
        describe: Callable[[str], PaperJson],
    ) -> None:
        """folder: the queue's; created when needed. add, take_back: see PaperFiles. describe: returns the paper with an
        id, or raises NotKnown."""
        self.folder = folder
        self._add = add
        self._take_back = take_back
        self._describe = describe
        self._lock = Lock()  # held while records are changed
        self._records: dict[str, tuple[_Version, Record]] = {}
        self._current: _Current | None = None
        self._notice = ""
        self._shown: dict[str, float] = {}  # id of an added file -> when a client first saw it
        self._changes = 0
        self._stopping = Event()
        self._wake = Event()
        self._thread: Thread | None = None

    # What clients do

    def receive(self, name: str) -> IncomingFile:
        """Begin an upload. name: as the client has it. Raises DiskFull."""
        return IncomingFile(self, name)

    def enqueue(self, id: str, record: Record) -> UploadJson:
        """Queue a file that is whole and flushed, `ID.pdf` in the folder. Raises DiskFull."""
        try:
            with self._lock:
                self._save(id, record)
        except BaseException:
            self._content(id).unlink(missing_ok=True)
            raise
        self._wake.set()
        return self._json(id, record)

    def state(self) -> UploadsJson:
        """The queue as it is. What was added is dropped from it some time after it was part of this."""
        with self._lock:
            records = self._load()
            active = self._is_active(records)
            if not active:
                records = self._without_shown(records)
            uploads = [self._json(id, record) for id, record in records.items()]
            waiting = [record for record in records.values() if record.state in _TO_DO]
            return UploadsJson(uploads=uploads, active=active, notice=self._notice_about(waiting) if waiting else "")

    def counts(self) -> UploadsEvent:
        """How many files wait, are being added, and were added or failed."""
        with self._lock:
            states = [self._json(id, record).state for id, record in self._load().items()]
        waiting, done = states.count("waiting"), states.count("added") + states.count("failed")
        return UploadsEvent(waiting=waiting, running=len(states) - waiting - done, done=done)

    @property
    def version(self) -> tuple[int, int]:
        """A value that changes with the state."""
        try:
            changed = self.folder.stat().st_mtime_ns
        except OSError:
            changed = 0
        return self._changes, changed

    def cancel(self, id: str) -> None:
        """Remove an upload from the queue. If a server is adding it, that stops at its next step, and leaves nothing
        unless the paper was added before. Raises NotKnown."""
        with self._changing():
            self._cancel(id, self._record(id))

    def cancel_all(self, *, failed: bool) -> int:
        """Remove all files that wait or are being added, or all that failed. Returns their number."""
        with self._changing():
            records = self._in_state("failed" if failed else "waiting")
            for id, record in records.items():
                self._cancel(id, record)
            return len(records)

    def retry(self, id: str) -> UploadJson:
        """Queue a failed file again, at its old place, or end the waiting of one that was interrupted too often; in any
        other state nothing changes. Raises NotKnown."""
        with self._changing():
            record = self._record(id)
            if record.state == "failed" or self._is_later(id, record):
                record = self._queue_again(id, record)
            upload = self._json(id, record)
        self._wake.set()
        return upload

    def retry_all(self) -> int:
        """Queue all failed files again, and those that were interrupted too often. Returns their number."""
        with self._changing():
            later = {id: record for id, record in self._load().items() if self._is_later(id, record)}
            failed = self._in_state("failed") | later
            for id, record in failed.items():
                self._queue_again(id, record)
        self._wake.set()
        return len(failed)

    # The worker

    def start(self) -> None:
        """Start the worker, which adds queued files."""
        self._thread = Thread(target=self._work, name="uploads", daemon=False)
        self._thread.start()

    def stop(self) -> None:
        """Stop the worker. The file that it was adding stays in the queue."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_STOP_S)
        with suppress(FolioError, OSError), self._changing():
            current = self._current
            if current is not None and current.is_begun and self._is_wanted(current.id):
                record = self._load()[current.id]  # an orderly stop is not counted as a try
                self._save(current.id, record.model_copy(update={"tries": current.before.tries}))

    def _work(self) -> None:
        with _FolderLock(self.folder / "worker.lock") as lock:
            while not self._stopping.is_set():
                self._wake.clear()
                try:
                    wait_s = self._add_next(lock)
                except (FolioError, OSError) as error:  # such as a full disk: the queue stays as it is
                    wait_s = _LOOK_S
                    self._set_notice(error)
                if wait_s:
                    self._wake.wait(wait_s)

    def _add_next(self, lock: _FolderLock) -> float:
        """Add the first file that waits. Returns the seconds to wait before the next call."""
        with self._lock:
            if not any(self._is_due(id, record) for id, record in self._load().items()):
                self._delete_leftovers()
                return _LOOK_S
        if not lock.acquired():
            return _LOOK_S
        with self._changing():
            to_do = [(id, record) for id, record in self._load().items() if self._is_due(id, record)]
            if not to_do:
                return _LOOK_S
            # Cancelled ones first, and those last that may have ended the server
            id, record = min(to_do, key=lambda each: (each[1].state, each[1].tries >= MAX_TRIES))
            is_later = self._is_later(id, record)
        if record.placed:
            self._take_back(record.placed)  # left by a server that was killed
        with self._changing():
            if self._load().get(id) != record:
                return 0
            if record.state == "cancelled":
                self._delete(id)
                return 0
            record = record.model_copy(update={"placed": None})
            if is_later:  # only what a killed server had left had to be taken back at once
                self._save(id, record)
                return 0
            self._current = current = _Current(id, record)
        after, obstacle = self._try(current)
        with self._changing():
            self._current = None
            if after is None or (after.state != "added" and not self._is_wanted(id)):
                self._delete(id)
            elif after is not record or current.is_begun:
                self._save(id, after)
                if after.state == "added":
                    discard(self._content(id))
        self._set_notice(obstacle)
        if after is not record:
            return 0
        return _LOOK_S if isinstance(obstacle, StoreBusy | RequestCancelled) else _AGAIN_S

    def _try(self, current: _Current) -> tuple[Record | None, BaseException | None]:
        """Add a file. Returns its new record, None if it was cancelled; or, if every file would fail, the old record
        and the error: that is not counted as a try."""
        record = current.before
        try:
            return self._add_file(current), None
        except _Cancelled:
            return None, None
        except _OF_ONE_FILE as error:
            return _failed(record, error.happened, error.remedy), None
        except (FolioError, RequestCancelled) as error:
            return record, error
        except OSError as error:
            if is_full(error):
                return record, disk_full(Path(error.filename or self.folder))
            return _failed(record, unusable(error).happened, unusable(error).remedy), None
        except BaseException as error:  # such as a panic in Rust
            logger.error("An upload could not be added.", exc_info=error)
            return _failed(record, *_INTERNAL), None

    def _add_file(self, current: _Current) -> Record:
        """Add a file; returns its record. Raises as PaperFiles.add_queued, _Cancelled, RequestCancelled."""
        record = current.before

        def report(stage: Stage, done: int, of: int) -> None:
            if stage == "embedding":
                current.state, current.done, current.of = stage, done, of
            self._changes += 1

        def begin(placed: Placed, sha256: str) -> None:
            if sha256 != record.sha256:
                raise _damaged()
            with self._changing():
                require_wanted()
                self._save(current.id, record.model_copy(update={"tries": record.tries + 1, "placed": placed}))
            current.is_begun, current.state = True, "reading"

        def require_wanted() -> None:
            if not self._is_wanted(current.id):
                raise _Cancelled

        def check_cancelled() -> None:
            with self._lock:
                require_wanted()
            if self._stopping.is_set():
                raise RequestCancelled

        content = self._content(current.id)
        check_cancelled()
        if not content.is_file():
            raise _damaged()
        outcome = self._add(content, record.file, StageProgress(report, check_cancelled), begin)
        fields: dict[str, Any] = {"state": "added", "status": outcome.status, "notes": list(outcome.notes)}
        with suppress(FolioError):  # the paper may already have been removed
            paper = self._describe(outcome.file.sha256)
            fields |= {"paper": paper.id, "title": paper.title, "pages": paper.pages}
        return record.model_copy(update={**fields, "error": "", "remedy": ""})

    def _set_notice(self, error: BaseException | None) -> None:
        notice = f"{error.happened} {error.remedy}" if isinstance(error, FolioError) else ""
        if isinstance(error, StoreBusy):
            notice = f"{error.happened} The files here are added after that."
        elif isinstance(error, OSError):
            notice = unusable(error).happened
        if notice != self._notice:
            self._notice = notice
            self._changes += 1

    # Records. The caller holds this server's lock and, to change a record, the lock of all servers.

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the locks of this server and of all servers: nobody else changes a record meanwhile."""
        with self._lock, ExitStack() as stack:
            if self.folder.is_dir():
                stack.enter_context(FileLock(self.folder / "records.lock", mode=0o600))
            yield

    def _load(self) -> dict[str, Record]:
        """All readable records, in the order of arrival."""
        loaded: dict[str, tuple[_Version, Record]] = {}
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                id, suffix = os.path.splitext(entry.name)
                if suffix != ".json" or not _ID.fullmatch(id):
                    continue
                with suppress(OSError, ValidationError):
                    version = _version(entry.stat())
                    cached = self._records.get(id)
                    if cached is None or cached[0] != version:
                        cached = version, Record.model_validate_json(Path(entry.path).read_bytes())
                    loaded[id] = cached
        self._records = dict(sorted(loaded.items()))
        return {id: record for id, (_, record) in self._records.items()}

    def _in_state(self, state: str) -> dict[str, Record]:
        return {id: record for id, record in self._load().items() if record.state == state}

    def _record(self, id: str) -> Record:
        """Raises NotKnown."""
        record = self._load().get(id)
        if record is None:
            raise NotKnown("This upload is not in the queue.", "It was added or cancelled. Reload the page.")
        return record

    def _queue_again(self, id: str, record: Record) -> Record:
        record = record.model_copy(update={"state": "waiting", "tries": 0, "error": "", "remedy": ""})
        self._save(id, record)
        return record

    def _save(self, id: str, record: Record) -> None:
        """Raises DiskFull."""
        path = self.folder / f"{id}.json"
        write_private(path, record.model_dump_json())
        sync_folder(self.folder)
        self._records[id] = _version(path.stat()), record
        self._shown.pop(id, None)
        self._changes += 1

    def _is_wanted(self, id: str) -> bool:
        """Whether an upload still waits: it was not cancelled."""
        record = self._load().get(id)
        return record is not None and record.state == "waiting"

    def _cancel(self, id: str, record: Record) -> None:
        is_current = self._current is not None and self._current.id == id
        if is_current or (record.state == "waiting" and record.placed):  # another server may be adding it
            with suppress(DiskFull):  # then delete it now; the server that adds it notices that too
                self._save(id, record.model_copy(update={"state": "cancelled"}))
                self._wake.set()
                return
        if record.state != "cancelled":
            self._delete(id)

    def _delete(self, id: str) -> None:
        remove(self.folder / f"{id}.json")
        discard(self._content(id))  # if that fails, _delete_leftovers deletes it
        self._changes += 1

    def _content(self, id: str) -> Path:
        return self.folder / f"{id}.pdf"

    def _is_active(self, records: dict[str, Record]) -> bool:
        return self._current is not None or any(self._is_due(id, record) for id, record in records.items())

    def _is_due(self, id: str, record: Record) -> bool:
        """Whether there is something to do for a file now."""
        return record.state in _TO_DO and (record.placed is not None or not self._is_later(id, record))

    def _is_later(self, id: str, record: Record) -> bool:
        """Whether a file waits because the server ended too often while it was added. The caller has loaded it."""
        if record.state != "waiting" or record.tries < MAX_TRIES:
            return False
        waited_s = time.time() - self._records[id][0][0] / 1e9
        return 0 <= waited_s < min(LATER_S << (record.tries - MAX_TRIES), _MOST_LATER_S)  # a clock may go back

    def _notice_about(self, waiting: list[Record]) -> str:
        """Why these files are not being added; "" if they are."""
        if self._notice or self._current is not None:
            return self._notice
        stopped = next((record for record in waiting if record.tries >= MAX_TRIES), None)
        return _interrupted(stopped) if stopped else ""

    def _without_shown(self, records: dict[str, Record]) -> dict[str, Record]:
        """Delete the added files that clients saw long enough ago; returns the other records."""
        now, others = time.monotonic(), {}
        for id, record in records.items():
            if record.state == "added" and now - self._shown.setdefault(id, now) > SHOWN_S:
                self._delete(id)
            else:
                others[id] = record
        return others

    def _delete_leftovers(self) -> None:
        """Delete partial files and unqueued files of a killed server, and added files that no client asked for."""
        for id, ((changed, _), record) in list(self._records.items()):
            if record.state == "added" and time.time() - changed / 1e9 > _FORGOTTEN_S:
                self._delete(id)
        for path in self.folder.glob("[0-9]*.*"):
            is_queued = path.suffix == ".pdf" and path.stem in self._records
            if path.suffix != ".json" and not is_queued:
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > STALE_S:
                        path.unlink()

    def _json(self, id: str, record: Record) -> UploadJson:
        current = self._current if self._current is not None and self._current.id == id else None
        state: UploadState = current.state if current else "waiting"
        if record.state != "waiting":
            state = "stopping" if record.state == "cancelled" else record.state
        return UploadJson(
            id=id,
            state=state,
            done=current.done if current else 0,
            of=current.of if current else 0,
            **record.model_dump(exclude={"sha256", "state", "tries", "placed"}),
        )


def _version(stat: os.stat_result) -> _Version:
    return stat.st_mtime_ns, stat.st_ino


class _FolderLock:
    """The lock of the server that works on the queue; once acquired, it is held until the end."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path, timeout=0, mode=0o600)

    def __enter__(self) -> _FolderLock:
        return self

    def acquired(self) -> bool:
        """Acquire the lock if it is free; returns whether it is held."""
        if not self._lock.is_locked:
            with suppress(Timeout):
                self._lock.acquire()
        return self._lock.is_locked

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_INTERNAL = ("Folio failed with an internal error.", "Try again. The terminal that Folio runs in shows details.")


def _interrupted(record: Record) -> str:
    return f"Folio ended {record.tries} times while it was adding {record.file}, which is tried again later."


def _damaged() -> PaperError:
    return PaperError("The file was damaged on the disk of the server.", "Choose it again.")


def _failed(record: Record, error: str, remedy: str) -> Record:
    return record.model_copy(update={"state": "failed", "error": error, "remedy": remedy})
