"""Runs an ingest again and again, and kills it each time at another of its write steps. Used by test_kill.py.

    forks_of("tests.helpers.kill_child").run(JOB)

JOB is a JSON file: `papers`, a folder; `embedder`, a name; `settings`, of the app; `prune` and `rebuild`, as of
ingest.py; `is_damaged`, whether the store is, so that there are notices; `runs`, a list of [folder, step], where the
folder holds a store. Each run is a process of its own, forked when everything is imported. It sends itself SIGKILL just
before its write step of that number; step 0 is never reached, and the steps are then listed in FOLDER/steps.json.
Prints a line for each run: the signal that ended it, or 0.

Nothing of Folio is replaced, save that PDFs are read without worker processes, and once for all runs. The steps are
seen from outside: by Python's audit hook (files), SQLite's trace (statements), Python's profiler (FAISS and tantivy).
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import threading
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

# Imported before the fork, so that no run pays for them. NumPy loads numpy.ma when it is first used.
import faiss
import langchain_text_splitters
import numpy.ma
import pymupdf
import Stemmer
import tantivy

from folio.ingest import discovery, pipeline, rebuild
from folio.system import workers
from tests.helpers.fakes import HashingApp, HashingEmbedder, RecordedProgress, hashing_app, read_once

_PRELOADED = (faiss, langchain_text_splitters, numpy.ma, pymupdf, Stemmer, tantivy, rebuild)
_JOURNALS = ("PRAGMA main.journal_mode", "PRAGMA user.journal_mode")
_WRITES = ("INSERT", "UPDATE", "DELETE", "BEGIN IMMEDIATE", "COMMIT", "CREATE", "ATTACH", *_JOURNALS)
_FILE_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")


class Steps:
    """Counts write steps under a folder, and ends this process at one of them."""

    def __init__(self, folder: Path, fatal: int) -> None:
        self.names: list[str] = []
        self._folder = str(folder)
        self._fatal = fatal
        self._lock = threading.Lock()  # the embedder has a thread of its own

    def watch(self) -> None:
        connect = sqlite3.connect

        def traced(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*args, **kwargs)
            connection.set_trace_callback(self._statement)
            return connection

        sqlite3.connect = traced  # type: ignore[assignment]
        sys.addaudithook(self._audit)
        sys.setprofile(self._profile)

    def _take(self, name: str) -> bool:
        """Whether this is the fatal step."""
        with self._lock:
            self.names.append(name)
            return len(self.names) == self._fatal

    def _step(self, name: str) -> None:
        if self._take(name):
            os.kill(os.getpid(), signal.SIGKILL)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            self._file("open", args[0])
        elif event in ("os.remove", "os.rmdir") and args[1] >= 0:  # relative to an open folder: shutil.rmtree
            self._step(f"{event} {args[0]}")
        elif event in _FILE_EVENTS and isinstance(args[0], str | os.PathLike):
            self._file(event, os.fspath(args[0]))

    def _file(self, what: str, path: str) -> None:
        if path.startswith(self._folder):
            self._step(f"{what} {os.path.relpath(path, self._folder)}")

    def _statement(self, sql: str) -> None:
        if sql.lstrip().startswith(_WRITES):
            self._step(f"sql {' '.join(sql[:50].split())}")

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "return") and frame.f_code.co_name == "write_index":
            if event == "return" and self._take("torn write_index"):
                for path in Path(self._folder).rglob("*.faiss.new"):  # as if the kill had come while it was written
                    os.truncate(path, path.stat().st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            self._step(f"{event} write_index")
        elif event in ("c_call", "c_return") and arg.__name__ in ("commit", "wait_merging_threads"):
            self._step(f"{event} {arg.__qualname__}")


def _app(job: dict[str, Any], folder: Path) -> HashingApp:
    embedder = HashingEmbedder(name=job["embedder"], log=folder / "embedded.log")
    app = hashing_app(folder, embedder, PAPERS_DIR=Path(job["papers"]), **job["settings"])
    return HashingApp(app.settings, lambda text: None, embedder) if job["is_damaged"] else app


def _read_all(app: HashingApp) -> None:
    """Read the papers before the fork: under the profiler it takes most of a run, and writes nothing."""
    files, _ = discovery.hash_files(discovery.find_pdfs([app.settings.PAPERS_DIR]), RecordedProgress())
    read = partial(pipeline.read_paper, reading=app.reading, max_file_mb=app.settings.MAX_FILE_MB)
    assert len(list(read_once(read, files))) == len(files)


def _run(job: dict[str, Any], folder: Path, fatal: int) -> None:
    """In the forked process."""
    app = _app(job, folder)
    steps = Steps(folder, fatal)
    steps.watch()
    app.run(prune=job["prune"], rebuild=job["rebuild"])
    sys.setprofile(None)
    (folder / "steps.json").write_text(json.dumps(steps.names))


def main(path: str) -> None:
    """path: of the job. Stops as soon as a run fails otherwise than by its signal; that run prints its traceback."""
    job = json.loads(Path(path).read_text())
    workers.run_guarded = read_once  # type: ignore[assignment]
    _read_all(_app(job, Path(path).parent))
    for folder, fatal in job["runs"]:
        child = os.fork()
        if not child:
            try:
                _run(job, Path(folder), fatal)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            return
        sys.stdout.write(f"{os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0}\n")
        sys.stdout.flush()
