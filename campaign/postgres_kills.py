"""Kills around a library in PostgreSQL: of its server, of writers, in the swap of a rebuild, and of a move.

`python -m campaign.postgres_kills --servers 50 --writers 50 --swaps 20 --moves 20` prints a line for each kind: how
many trials there were, how often something was torn (a fault that the library's own check finds, or a mix of two
states), and how often something acknowledged was lost. It ends with 1 if there was any of either.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from folio.shared.store import PostgresStore
from folio.system import workers
from tests.helpers import kill_move, shared_writer
from tests.helpers.adder import Adder, number_of, open_library
from tests.helpers.engines import rows_of
from tests.helpers.factories import write_pdf
from tests.helpers.fakes import read_here
from tests.helpers.libraries import awkward_papers, fill
from tests.helpers.postgres import PostgresServer, running_server

_FORK = multiprocessing.get_context("fork")
_PAPERS = 5
# Papers are read in the process itself: this is about the library
workers.run_guarded = read_here  # type: ignore[assignment]


@dataclass
class Tally:
    """What became of the trials of a kind."""

    kind: str
    trials: int = 0
    torn: int = 0
    lost: int = 0
    told: list[str] = field(default_factory=list)

    def count(self, *, torn: bool, lost: bool, what: str) -> None:
        self.trials += 1
        self.torn += torn
        self.lost += lost
        if torn or lost:
            self.told.append(what)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="folio-kills-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(output: Path, work: Callable[..., None], *arguments: object) -> Any:
    """A process that works; what it says goes into a file."""

    def run() -> None:
        sys.stdout = output.open("a", encoding="utf-8")
        sys.stderr = sys.stdout
        work(*arguments)

    process = _FORK.Process(target=run, daemon=True)
    process.start()
    return process


def _added(output: Path) -> set[str]:
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    return {line.split()[1] for line in lines if line.startswith("added ")}


def _papers(folder: Path, edition: int) -> None:
    for number in range(_PAPERS):
        pages = [f"Paper {number} says on page {page} what edition {edition} has. " * 6 for page in range(2)]
        write_pdf(folder / "papers" / f"p{number}.pdf", pages, f"Paper number {number}")


def _editions(url: str) -> tuple[set[str], list[str]]:
    """Which editions the papers of a library are of, and its faults."""
    with closing(open_library(url)) as library, library.reading():
        texts = [library.text(paper.id, 0, paper.length) for paper in library.papers()]
        return {text.partition(" has.")[0].rpartition(" ")[2] for text in texts}, library.check()


def kill_servers(trials: int, chance: random.Random) -> Tally:
    tally = Tally("kills of the server")
    with running_server(fsync=True) as server:
        url = server.url(server.new_database())
        open_library(url, create=True).close()
        with Adder(url) as adder:
            for _ in range(trials):
                adder.wait_for(2)
                time.sleep(chance.uniform(0, 0.08))
                server.kill()
                acknowledged = set(adder.acknowledged)
                server.start()
                with closing(open_library(url)) as library, library.reading():
                    faults, found = library.check(), {number_of(id) for id in library.added()}
                tally.count(torn=bool(faults), lost=not acknowledged <= found, what=f"{faults}, {acknowledged - found}")
        sys.stdout.write(f"  {len(adder.acknowledged)} papers acknowledged, {len(adder.errors)} errors told\n")
    return tally


def kill_writers(server: PostgresServer, trials: int, chance: random.Random) -> Tally:
    tally, seconds = Tally("kills of a writer"), 0.0
    for trial in range(trials + 1):  # the first is not killed: it says how long one takes
        name = server.new_database()
        url = server.url(name)
        with _folder() as folder:
            _papers(folder, 0)
            outputs = [folder / "one.txt", folder / "other.txt"]
            began = time.monotonic()
            one, other = (
                _start(output, shared_writer.main, "ingest", str(folder), str(folder / output.stem), url, "0.01")
                for output in outputs
            )
            if trial:
                one.join(chance.uniform(0, seconds))
                one.kill()
            one.join()
            other.join()
            seconds = seconds or time.monotonic() - began
            with closing(open_library(url)) as library:
                files = {file.name for file in library.files()}
                faults, jobs = library.check(), library._query("SELECT paper FROM jobs")
                is_torn = bool(faults or jobs or other.exitcode or len(library.papers()) != _PAPERS)
                told = set().union(*map(_added, outputs))
            if trial:
                what = f"{faults}, jobs {jobs}, ended with {other.exitcode}: {outputs[1].read_text()[-300:]}"
                tally.count(torn=is_torn, lost=not told <= files, what=what)
        server.drop_database(name)
    return tally


def _rebuild_killed(place: int, is_after: bool, *arguments: str) -> None:
    """Rebuild; be killed in the swap, before or after its statement of this number."""
    serve, execute = PostgresStore.serve, psycopg.Connection.execute
    left = [place]

    def counted(*arguments: Any, **values: Any) -> Any:
        left[0] -= 1
        if not left[0] and not is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        found = execute(*arguments, **values)
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    def watched(*arguments: Any) -> None:
        psycopg.Connection.execute = counted  # type: ignore[method-assign]
        serve(*arguments)

    PostgresStore.serve = watched  # type: ignore[method-assign, assignment]
    shared_writer.main("rebuild", *arguments)


def kill_swaps(server: PostgresServer, trials: int, chance: random.Random) -> Tally:
    tally = Tally("kills in the swap of a rebuild")
    for trial in range(trials):
        name = server.new_database()
        url = server.url(name)
        with _folder() as folder:
            output, arguments = folder / "out.txt", (str(folder), str(folder / "store"), url, "0")
            _papers(folder, 0)
            _start(output, shared_writer.main, "ingest", *arguments).join()
            _papers(folder, 1)
            killed = _start(output, _rebuild_killed, 1 + trial // 2 % 10, bool(trial % 2), *arguments)
            killed.join()
            editions, faults = _editions(url)
            torn = editions not in ({"0"}, {"1"}) or bool(faults)
            completed = _start(output, shared_writer.main, "rebuild", *arguments)
            completed.join()
            after, more = _editions(url)
            schemas = server.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'folio%'", name)
            torn = torn or bool(more) or schemas != [(2,)] or completed.exitcode != 0
            what = (
                f"{killed.exitcode}, {editions}, {faults}, then {after}, {more}, {schemas}: {output.read_text()[-300:]}"
            )
            tally.count(torn=torn, lost=after != {"1"}, what=what)
        server.drop_database(name)
    return tally


def kill_moves(server: PostgresServer, trials: int, chance: random.Random) -> Tally:
    tally = Tally("kills of a move")
    for to in ("postgres", "local"):
        for trial in range(trials // 2 + 1):  # the first is not killed: it says how many steps there are
            name = server.new_database()
            with _folder() as folder:
                _one_move(tally, to, folder, server.url(name), (trial - chance.random()) / max(1, trials // 2))
            server.drop_database(name)
    return tally


# Steps of each kind of move, once they are known
_STEPS: dict[str, int] = {}


def _one_move(tally: Tally, to: str, folder: Path, url: str, share: float) -> None:
    """share: of the work that is done when it is killed."""
    awkward_papers(folder / "papers")
    source = kill_move.app_of(folder, url, STORE="local" if to == "postgres" else "postgres")
    target = kill_move.app_of(folder, url, STORE=to)
    fill(source)

    def rows(app: Any) -> tuple[dict[str, list[Any]], list[str]]:
        with closing(app.open_library()) as library:
            return rows_of(library.database), library.check()

    before, output = rows(source), folder / "out.txt"
    if to not in _STEPS:
        _start(output, kill_move.main, to, str(folder), url, "0").join()
        _STEPS[to] = int(output.read_text().split()[-1])
        sys.stdout.write(f"  a move to {to} has {_STEPS[to]} steps\n")
        return
    killed = _start(output, kill_move.main, to, str(folder), url, str(1 + int(share * _STEPS[to])))
    killed.join()
    torn = rows(source) != before
    is_done = False
    if target.has_library():
        found = rows(target)
        is_done = found == before
        is_empty = not any(found[0][table] for table in ("papers", "queries", "turns", "works", "metadata"))
        torn = torn or not (is_done or (is_empty and not found[1]))
    if not is_done:
        kill_move.move(target, to)
    after = rows(target)
    tally.count(torn=torn, lost=after != before, what=f"to {to} at {share:.2f}, {killed.exitcode}: {after[1]}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for kind, number in (("servers", 50), ("writers", 50), ("swaps", 20), ("moves", 20)):
        parser.add_argument(f"--{kind}", type=int, default=number, help=f"trials (default: {number})")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args(argv)
    chance, tallies = random.Random(wanted.seed), []
    with running_server() as server:
        runs: tuple[Callable[[], Tally], ...] = (
            lambda: kill_servers(wanted.servers, chance),
            lambda: kill_writers(server, wanted.writers, chance),
            lambda: kill_swaps(server, wanted.swaps, chance),
            lambda: kill_moves(server, wanted.moves, chance),
        )
        for run in runs:
            began, tally = time.monotonic(), run()
            tallies.append(tally)
            seconds = time.monotonic() - began
            line = f"{tally.kind}: {tally.trials}, torn: {tally.torn}, lost: {tally.lost} ({seconds:.0f} s)"
            sys.stdout.write("\n".join([line, *(f"  {told}" for told in tally.told)]) + "\n")
            sys.stdout.flush()
    return int(any(tally.torn or tally.lost for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
