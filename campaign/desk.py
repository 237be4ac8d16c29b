"""A folder with papers and a store, and Folio's commands at work on it.

Most commands run in a process forked from this one, with an embedder by hashing: the command's own `main`, with its own
reading of settings, locks and errors, some hundred times cheaper than a new interpreter. `whole` commands are the
scripts themselves, with the built-in embedder. A caller forks, so it must not have threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import pickle
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal, NoReturn

from campaign import papers
from campaign.papers import Name
from folio.system import workers
from folio.system.files import remove
from tests.helpers.fakes import HashingApp, HashingEmbedder, read_here
from tests.helpers.paths import ROOT

# Megabytes of memory that the main process of any command may take
MAX_MB = 600
# Seconds of processor time after which a command is said to hang, and seconds in which it does nothing
_CPU_S, _IDLE_S = 120, 120
_UNCAUGHT = 70  # exit code of a forked command that ended with an exception
Work = Callable[[], int]
# In-process, from a cache; in-process, each time; in the guarded worker processes
Read = Literal["cached", "here", "workers"]


class Failed(Exception):
    """The trial has failed; the text says how."""


@dataclass(frozen=True)
class Ended:
    """How a command ended. Its exit code is negative for a signal."""

    code: int
    out: str
    err: str
    seconds: float
    main_mb: float
    worker_mb: float

    @property
    def said(self) -> str:
        return " ".join(f"{self.err}\n{self.out}".split())[:400]


class Desk:
    """The folder of a trial: papers/, store/, ingested.json, home/, tmp/."""

    def __init__(self, root: Path, cache: Path, *, whole: bool = False) -> None:
        """cache: where what was read from a paper is kept, for every trial."""
        self.root, self.cache, self.whole = root, cache, whole
        self.papers, self.store, self.record = root / "papers", root / "store", root / "ingested.json"
        self.read: Read = "cached"
        self.name = ""  # tells the output of this desk's commands from another's over the same folder
        self.settings: dict[str, str] = {}
        self.main_mb = self.worker_mb = 0.0
        self.commands: list[str] = []  # each command and how it ended, to tell in a failure

    # Its files

    def clear(self) -> None:
        """Remove everything from it."""
        remove(self.root)
        for folder in (self.papers, self.root / "home", self.root / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)

    def lay_out(self, plan: Mapping[str, Name]) -> None:
        """Make the folder of papers hold just these."""
        for path in self.papers.glob("*.pdf"):
            if path.name not in plan:
                remove(path)
        for file, name in plan.items():
            self.put(file, papers.content(name))

    def put(self, file: str, content: bytes) -> Path:
        """Write a paper, in a new file that takes the place of the old one."""
        path, new = self.papers / file, self.papers / ".new-paper"  # hidden, and on the same disk
        new.write_bytes(content)
        if path.is_dir():
            remove(path)
        os.replace(new, path)
        return path

    # Its commands

    def ingest(self, *arguments: str, **how: Any) -> Ended:
        return self.command("ingest", *arguments, **how)

    def command(self, name: Literal["ingest", "query"], *arguments: str, **how: Any) -> Ended:
        """Run `python ingest.py` or `python query.py` with these arguments; how: as for `run`."""
        ended = self.run(self.work(name, *arguments), **how)
        self.commands.append(f"{name} {' '.join(arguments)} -> {ended.code}")
        return ended

    def work(self, name: Literal["ingest", "query"], *arguments: str) -> Work:
        """What a process does that is this command."""
        if self.whole:
            script = [sys.executable, str(ROOT / f"{name}.py"), *arguments]

            def whole() -> int:
                os.execve(script[0], script, self.environment())

            return whole

        def work() -> int:
            from folio.cli import ask, ingest

            return ingest.main(list(arguments)) if name == "ingest" else ask.main(list(arguments))

        return work

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
        cheap = {"CHUNK_SIZE": "300", "CHUNK_OVERLAP": "40", "EMBED_BATCH": "4", "RERANKER": "none"}
        return {
            **kept,
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "COLUMNS": "120",
            "OMP_NUM_THREADS": "1",
            "PAPERS_DIR": str(self.papers),
            "VECTORSTORE_DIR": str(self.store),
            "INGESTED_JSON": str(self.record),
            "MODELS_DIR": str(self.cache / "models"),
            "OLLAMA_HOST": "http://127.0.0.1:9",  # where nothing listens
            "CROSS_ENCODER": "nobody/has-this",
            "LLM": "builtin",
            "OCR": "off",
            **({"EMBEDDER": "builtin", "RERANKER": "builtin"} if self.whole else cheap),
            **self.settings,
        }

    def run(
        self,
        work: Work,
        *,
        kill_after: float | None = None,
        around: Callable[[Work], int] | None = None,
        group: bool = False,
        beside: Callable[[], object] | None = None,
    ) -> Ended:
        """Run this in a process of its own, and wait for its end.

        kill_after: seconds after which it gets SIGKILL; group: its child processes too, at the same time. around: calls
        the work, in that process. beside: called again and again while it runs.
        Raises Failed when it hangs, is ended by another signal, ends with a traceback or takes too much memory.
        """
        out, err, peak = (self.root / f"{name}{self.name}.txt" for name in ("out", "err", "peak"))
        peak.unlink(missing_ok=True)
        began = monotonic()
        child = os.fork()
        if not child:
            self._become(work if around is None else lambda: around(work), out, err, peak)
        main_mb = worker_mb = 0.0
        code, killed, pause, sampled, idle = None, False, 0.001, began, 0.0
        while code is None:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                code = os.waitstatus_to_exitcode(status)
                break
            now = monotonic()
            if not killed and (idle > _IDLE_S or (kill_after is not None and now - began >= kill_after)):
                killed = True
                with contextlib.suppress(ProcessLookupError):
                    (os.killpg if group else os.kill)(child, signal.SIGKILL)
            if now - sampled > 0.05:
                idle = 0.0 if _is_busy(child) else idle + min(now - sampled, 0.5)
                sampled = now
                main_mb, worker_mb = max(main_mb, _peak_mb(child)), max(worker_mb, *map(_peak_mb, _children(child)), 0)
            if beside is not None:
                beside()
            sleep(pause if kill_after is None else min(pause, 0.002))
            pause = min(0.02, pause * 1.3)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what it left behind
        with contextlib.suppress(OSError, ValueError):
            main_mb = max(main_mb, float(peak.read_text()))
        self.main_mb, self.worker_mb = max(self.main_mb, main_mb), max(self.worker_mb, worker_mb)
        shown, complaint = (path.read_text(errors="replace") if path.exists() else "" for path in (out, err))
        ended = Ended(code, shown, complaint, monotonic() - began, main_mb, worker_mb)
        if killed and kill_after is None:
            raise Failed(f"It did nothing for {_IDLE_S} s: {ended.said}")
        self._check(ended, may_be_killed=kill_after is not None or around is not None)
        return ended

    def _check(self, ended: Ended, *, may_be_killed: bool) -> None:
        text = f"{ended.err}\n{ended.out}"
        for mark in ("Traceback (most recent call last)", "panicked at", "Fatal Python error"):
            if mark in text:
                raise Failed(f"A traceback: {_last_lines(text)}")
        if ended.code not in (0, 1, 2) and not (may_be_killed and ended.code == -signal.SIGKILL):
            raise Failed(f"It ended with {ended.code}: {_last_lines(text)}")
        if ended.code > 0 and not ended.said:
            raise Failed(f"It ended with {ended.code} and said nothing.")
        if ended.main_mb > MAX_MB:
            raise Failed(f"The main process took {ended.main_mb:.0f} MB.")

    def _become(self, work: Work, out: Path, err: Path, peak: Path) -> NoReturn:
        """In the forked process: be the command."""
        code = _UNCAUGHT
        try:
            end_with_parent()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.setsid()
            for place, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), place)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.stdin = io.TextIOWrapper(io.FileIO(0), encoding="utf-8")
            sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(n, "w"), encoding="utf-8") for n in (1, 2))
            environment = self.environment()
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(self.root)
            tempfile.tempdir = None
            resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
            if not self.whole:
                self._make_cheap()
            code = work()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
                peak.write_text(f"{_peak_mb(os.getpid())}")
            os._exit(code)

    def _make_cheap(self) -> None:
        """An embedder by hashing, and PDFs read in this process."""
        from folio import app

        from_environment = app.from_environment

        def hashing(*arguments: Any) -> app.App:
            made = from_environment(*arguments)
            return HashingApp(made.settings, made.notice, HashingEmbedder())

        app.from_environment = hashing  # type: ignore[assignment]
        if self.read == "cached":
            workers.run_guarded = self._read_cached
        elif self.read == "here":
            workers.run_guarded = read_here  # type: ignore[assignment]

    def _read_cached(
        self, function: Callable[[Any], Any], items: Iterable[Any], **limits: Any
    ) -> Generator[Any, None, None]:
        for item in items:
            if item.page is not None or item.scans:  # of a scan: not the first look
                yield from read_here(function, [item], **limits)
                continue
            kept = self.cache / "read" / item.sha256
            if kept.exists():
                yield pickle.loads(kept.read_bytes())._replace(item=item)
                continue
            (found,) = read_here(function, [item], **limits)
            new = kept.with_name(f"{kept.name}.{os.getpid()}")
            kept.parent.mkdir(parents=True, exist_ok=True)
            new.write_bytes(pickle.dumps(found))
            os.replace(new, kept)
            yield found


def end_with_parent() -> None:
    """This process is killed when the one that forked it ends. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, <sys/prctl.h>


def forked(work: Callable[[], object]) -> int:
    """Do work in a forked process that ends with this one; returns its id. Its exit code is 1 if the work raises."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        end_with_parent()
        work()
        code = 0
    except KeyboardInterrupt:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def preload() -> None:
    """Import what the commands import, so that no forked one pays for it."""
    import importlib

    modules = """
        faiss numpy.ma tantivy pymupdf Stemmer langchain_text_splitters langchain_core.runnables rich.table
        rich.progress filelock pebble multiprocessing.popen_spawn_posix fastapi.testclient folio.app
        folio.schema.answers folio.answer.chain folio.answer.chat folio.answer.extractive
        folio.cli.ask folio.cli.ingest folio.cli.command folio.cli.show
        folio.cli.show_profile folio.cli.progress folio.cli.session
        folio.ingest.pipeline folio.ingest.rebuild folio.search.builtin_reranker folio.web.api folio.web.guard
        tests.helpers.kill_child
    """
    for module in modules.split():
        importlib.import_module(module)


def _children(process: int) -> list[int]:
    """The child processes of a process, and theirs."""
    found: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                found += [child, *_children(child)]
    return found


def _is_busy(process: int) -> bool:
    """Whether a process or one of its children works, waits for its turn or is stopped: then it does not hang."""
    for one in (process, *_children(process)):
        for path in Path(f"/proc/{one}/task").glob("*/stat"):
            with contextlib.suppress(OSError, IndexError):
                if path.read_text().rpartition(")")[2].split()[0] in "RDTt":
                    return True
    return False


def _peak_mb(process: int) -> float:
    """The most memory that a process has taken, in megabytes; 0 if it is gone."""
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM:")), 0.0)
    except OSError:
        return 0.0


def _last_lines(text: str) -> str:
    """The end of a traceback, on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("^")]
    return " | ".join(lines[-6:])[-700:]
