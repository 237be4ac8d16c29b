"""Kills while a library in Milvus is changed: at each write, the process that writes, or the server.

After each, a reader sees the library as it was or as it is to be; and the same command, run again, makes it as it would
be without a kill, with nothing left over. test_milvus_kills.py runs some of them in one process, and
`scripts/campaign.py --store milvus` as many as there is time for, with SIGKILL: of a writer, of a served Milvus Lite,
or of a writer that has Milvus Lite in its own process, somewhere in the middle of its writing to the disk.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Timer
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from folio import workers
from folio.errors import FolioError
from folio.paper_metadata import Field
from tests.helpers.fakes import HashingApp, hashing_app, make_pdf, read_once
from tests.helpers.milvus import milvus_of
from tests.helpers.milvus import served as in_this_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folio.cluster.milvus_library import MilvusLibrary
    from folio.cluster.milvus_store import MilvusStore

# What is found, and the papers with their files
Seen = tuple[Any, ...]
_ROOT = Path(__file__).resolve().parent.parent
_SETTINGS: dict[str, Any] = {"STORE": "milvus", "INDEX": "dual", "COARSE_SIZE": 120, "FINE_SIZE": 60}
# Methods of Milvus and of RecordFiles that write
_WRITES = ("write", "delete", "delete_of", "create", "drop", "flush")
_RECORD_WRITES = ("write_library", "write", "write_files", "delete", "write_metadata", "drop_epoch")


def app_of(folder: Path, uri: str, timeout_s: float = 30) -> HashingApp:
    """An app over a folder's papers, with its store at an address."""
    workers.run_guarded = read_once  # type: ignore[assignment]
    settings = {**_SETTINGS, "MILVUS_URI": uri, "MILVUS_TIMEOUT_S": timeout_s}
    app = hashing_app(folder, PAPERS_DIR=folder / "papers", **settings)
    return HashingApp(app.settings, lambda text: None, app.hashing)  # a reader may say that indexes lag


def first_papers(folder: Path) -> None:
    """The papers before the change, and those that changes bring."""
    for name in ("lattices", "sponges"):
        make_pdf(folder / "papers" / f"{name}.pdf", name)
    make_pdf(folder / "spare" / "trees.pdf", "trees")
    make_pdf(folder / "spare" / "sponges.pdf", "gradients", "On sponges anew")


# The changes: each may be begun again at any time


def _bring(app: HashingApp, name: str) -> None:
    papers = app.settings.PAPERS_DIR
    shutil.copy(papers.parent / "spare" / name, papers / name)


def _ingest(app: HashingApp) -> None:
    _bring(app, "trees.pdf")
    app.run()


def _replace(app: HashingApp) -> None:
    _bring(app, "sponges.pdf")
    app.run()


def _prune(app: HashingApp) -> None:
    (app.settings.PAPERS_DIR / "sponges.pdf").unlink(missing_ok=True)
    app.run(prune=True)


def _rebuild(app: HashingApp) -> None:
    app.run(rebuild=True)


def _repair(app: HashingApp) -> None:
    app.backend.repair()


def _edit(app: HashingApp) -> None:
    with closing(app.open_library(create=True)) as library:
        (paper,) = (paper for paper in library.papers() if paper.file == "lattices.pdf")
        title: Field[str] = Field("On zebras", "person", True)
        year: Field[int | None] = Field(1999, "person", True)
        library.change_metadata(paper.id, "person", lambda said: replace(said, title=title, year=year))
        app.backend.update_indexes(library)


CHANGES: dict[str, Callable[[HashingApp], None]] = {
    "ingest": _ingest,
    "replace": _replace,
    "prune": _prune,
    "rebuild": _rebuild,
    "repair": _repair,
    "edit": _edit,
}


def seen(app: HashingApp) -> Seen:
    """All that a reader sees."""
    with closing(app.open_library()) as library, library.reading():
        papers = library.papers()
        retriever = app.retriever(library)
        hits = retriever.search("lattice sponge vector rotations zebras", 20).hits
        return (
            [(paper.file, paper.title, paper.year, paper.chunks, library.text(paper.id, 0, 10**6)) for paper in papers],
            [(hit.chunk, hit.text) for hit in hits],
            [round(hit.score, 5) for hit in hits],
        )


def agrees(found: Seen, with_: Seen) -> bool:
    """Whether a reader sees one of the states: the same papers, and the same passages found.

    Their scores and their order may differ until an ingest ends: it counts the words of all papers then.
    """
    return bool(found[0] == with_[0]) and sorted(map(str, found[1])) == sorted(map(str, with_[1]))


def left_over(app: HashingApp) -> list[str]:
    """What a library has that no paper names, one sentence each; and its faults."""
    library: MilvusLibrary
    found = app.verify()
    with closing(app.open_library()) as library:  # type: ignore[assignment]
        names, milvus = library.names, library.milvus
        wanted = names.of_epoch(dual=True).keys() | names.shared().keys()
        found += [f"The collection {name} is left." for name in sorted(milvus.collections() ^ wanted)]
        for name, count in ((names.chunks, library.chunk_count()), (names.fine, library.chunk_count("fine"))):
            if (rows := len(list(milvus.rows(name, 'key >= ""', ["key"], strong=True)))) != count:
                found.append(f"{name} has {rows} rows and should have {count}.")
        for begun in ("intent", "edit", "building"):
            rest = milvus.rows(names.store, f'key like "{begun}%"', ["key"], strong=True)
            found += [f"{row['key']} is left." for row in rest]
        folders = [each.name for each in (app.store_folder / "records").iterdir() if each.is_dir()]
        found += [f"Records of {each} are left." for each in folders if each not in (names.epoch, "metadata")]
        kept = {each.stem for each in (app.store_folder / "records" / names.epoch / "files").glob("*.json")}
        if kept != {paper.id for paper in library.papers()}:
            found.append("The records are of other papers.")
    return found


class Fatal:
    """Stands in front of a connection or of the records; something happens before its write of a number."""

    def __init__(self, inner: Any, writes: Sequence[str], step: Callable[[], None]) -> None:
        self._inner, self._writes, self._step = inner, writes, step

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self._writes:
            return found

        def stepped(*arguments: Any, **named: Any) -> Any:
            self._step()
            return found(*arguments, **named)

        return stepped


def fatal(app: HashingApp, happens: Callable[[], None], at: int) -> Counter[str]:
    """Have something happen before an app's write of this number; returns the counter of writes."""
    count: Counter[str] = Counter()
    backend: MilvusStore = app.backend  # type: ignore[assignment]

    def step() -> None:
        count["writes"] += 1
        if count["writes"] == at:
            happens()

    vars(backend)["milvus"] = Fatal(backend.milvus, _WRITES, step)
    vars(backend)["_records"] = Fatal(backend._records, _RECORD_WRITES, step)
    return count


# With SIGKILL


@dataclass(frozen=True)
class Trial:
    """A kill, and what was wrong after it; "" if nothing."""

    change: str
    at: int  # the number of the write
    after_ms: int
    whom: str  # writer, server, or both: a writer with Milvus Lite in its own process
    failure: str = ""


def campaign(out: Path, minutes: float, seed: int) -> list[Trial]:
    """Kills for so many minutes; a line of JSON for each in a file."""
    rng, until, done = random.Random(seed), monotonic() + 60 * minutes, []
    with tempfile.TemporaryDirectory(prefix="folio-milvus-") as place:
        base, desk = Path(place) / "base", Path(place) / "desk"  # the library knows its files by where they are
        first_papers(desk)
        with _served(desk) as server:
            app_of(desk, server.uri).run()
        desk.rename(base)
        after = {change: _without_a_kill(base, desk, change) for change in CHANGES}
        with out.open("a", encoding="utf-8") as lines:
            while monotonic() < until:
                change = rng.choice(sorted(CHANGES))
                at, after_ms = rng.randint(1, after[change][1]), rng.choice((0, rng.randint(1, 50)))
                trial = Trial(change, at, after_ms, rng.choice(("writer", "server", "both")))
                trial = replace(trial, failure=_tried(base, desk, trial, after[change][0]))
                lines.write(f"{json.dumps(asdict(trial))}\n")
                lines.flush()
                done.append(trial)
    return done


class _Server:
    """Milvus Lite in a process of its own, at an address that stays the same."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder, self.uri = folder, f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "milvus_lite", "server", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--data-dir", str(self.folder / "served.db")]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = monotonic() + 60
        while monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            sleep(0.05)
        raise RuntimeError("Milvus Lite does not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def _served(folder: Path) -> Iterator[_Server]:
    server = _Server(folder)
    try:
        yield server
    finally:
        server.kill()


def _without_a_kill(base: Path, folder: Path, change: str) -> tuple[tuple[Seen, Seen], int]:
    """What is seen before a change and after it, and its writes."""
    shutil.copytree(base, folder)
    with _served(folder) as server:
        before = seen(app_of(folder, server.uri))
        app = app_of(folder, server.uri)
        count = fatal(app, lambda: None, 0)
        CHANGES[change](app)
        found = (before, seen(app_of(folder, server.uri))), count["writes"]
        assert not left_over(app_of(folder, server.uri))
    shutil.rmtree(folder)
    return found


def _tried(base: Path, folder: Path, trial: Trial, states: tuple[Seen, Seen]) -> str:
    """What was wrong after a kill; "" if nothing."""
    shutil.copytree(base, folder)
    try:
        if trial.whom == "both":
            with in_this_process(folder) as file:
                return _ended(_writer(folder, file, trial, 0)) or _wrong(folder, file, trial, states)
        with _served(folder) as server:
            victim = server.process.pid if trial.whom == "server" else 0
            child = _writer(folder, server.uri, trial, victim)
            if victim:
                server.process.wait(120)
                with in_this_process(folder) as file:
                    milvus = milvus_of(app_of(folder, file))
                    for name in milvus.collections():
                        milvus.count(name, "")  # Folio mends what Milvus Lite cannot read, as docs/scale.md says
                server.start()
            return _ended(child) or _wrong(folder, server.uri, trial, states)
    except (FolioError, AssertionError, subprocess.TimeoutExpired, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        shutil.rmtree(folder)


def _writer(folder: Path, uri: str, trial: Trial, victim: int) -> subprocess.Popen[str]:
    job = json.dumps([str(folder), uri, trial.change, trial.at, trial.after_ms, victim])
    command = [sys.executable, "-m", "campaign.milvus_kills", job]
    return subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE, text=True)


def _ended(child: subprocess.Popen[str]) -> str:
    """How a writer ended, if neither by the kill nor with an error of Folio's own; "" otherwise."""
    _, said = child.communicate(timeout=240)
    if child.returncode in (0, 1, -signal.SIGKILL) and "Traceback" not in said:
        return ""
    return f"the writer ended with {child.returncode}: {said[-500:]}"


def _wrong(folder: Path, uri: str, trial: Trial, states: tuple[Seen, Seen]) -> str:
    """What is wrong with a library after a kill, and after the next run of what was killed; "" if nothing."""
    found = seen(app_of(folder, uri))
    if not any(agrees(found, state) for state in states):
        return f"a reader sees neither the old nor the new: {str(found)[:300]}"
    CHANGES[trial.change](app_of(folder, uri))
    if seen(app_of(folder, uri)) != states[1]:
        return "the next run ends otherwise"
    return " ".join(left_over(app_of(folder, uri)))


def _killed(folder: str, uri: str, change: str, at: int, after_ms: int, victim: int) -> None:
    """In a process of its own. victim: the server's process, or 0 for this one."""

    def kill() -> None:
        os.kill(victim or os.getpid(), signal.SIGKILL)

    app = app_of(Path(folder), uri)
    fatal(app, lambda: Timer(after_ms / 1000, kill).start() if after_ms else kill(), at)
    try:
        CHANGES[change](app)
    except FolioError as error:
        sys.exit(error.happened)


if __name__ == "__main__":
    _killed(*json.loads(sys.argv[1]))
