"""A library in each engine, and all that it says, to be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from folio.ingest.chunking import chunk_id
from folio.papers.metadata import Metadata, simple_metadata
from folio.papers.model import NewPaper, PageMap, SourceFile, Vectors
from folio.papers.sections import PaperSection
from folio.store import works
from folio.store.database import NAMES, Database
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.store.rows import text_hash

T = TypeVar("T")
ADDED = "2026-01-02T03:04:05+00:00"
TEXT = "The first page.\n\nThe second page says more.\n\nAnd the third one: ünï 🦀."
# Passages, and the fine passages in each
SPANS = ((0, 15), (10, 43), (45, 70))
FINE = (((0, 9),), ((12, 30), (30, 43)), ())
SECTIONS = (PaperSection(5, 60, 1, "4", "Wörter", "methods"), PaperSection(10, 40, 2, "", "Kerne", "methods"))
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


@dataclass(frozen=True)
class Engine:
    """Opens connections to one library."""

    name: str
    connect: Callable[[bool], Database]  # whether a missing library is made

    def library(self, *, create: bool = False) -> Library:
        return Library(self.connect(create))


def title_of(letter: str) -> str:
    return f"Title {letter}"


def paper(letter: str, text: str = TEXT, about: Metadata | None = None, *, fine: bool = False) -> NewPaper:
    """A paper whose id is this letter, 64 times."""
    pages = PageMap((0, 17, 45), ("i", "", "3"))
    about = about or simple_metadata(title_of(letter), ("A. Uthor", "B. Writer"), 2024, "2301.01234v2")
    spans = SPANS if len(text) >= 70 else ((0, len(text)),)
    sections = SECTIONS if len(text) >= 70 else ()
    return NewPaper(letter * 64, about, text, pages, spans, ("odd",), sections, FINE if fine else ())


def file(name: str, letter: str) -> SourceFile:
    return SourceFile(f"/papers/{name}", name, letter * 64)


def ids(new: NewPaper) -> list[int]:
    return [chunk_id(new.id, start, end) for start, end in new.chunk_spans]


def vectors(texts: Iterable[str]) -> Vectors:
    """A different vector for each text, of four numbers."""
    rows = [np.frombuffer(bytes.fromhex(text_hash(text)), dtype=np.uint8) for text in texts]
    numbers = np.stack(rows)[:, :4] + np.float32(1)
    return np.asarray(numbers / np.linalg.norm(numbers, axis=1, keepdims=True), dtype=np.float32)


def add(library: Library, name: str, new: NewPaper) -> NewPaper:
    """Add a paper under a file's name."""
    found = vectors(new.text[start:end] for start, end in new.chunk_spans)
    library.add(new, SourceFile(f"/papers/{name}", name, new.id), ids(new), found, added=ADDED)
    return new


def rows_of(
    database: Database, skipped: Sequence[tuple[str, str]] = (("meta", "epoch"), ("kept", "library"))
) -> dict[str, list[Any]]:
    """Table -> all of its rows, sorted, with any time but that of papers as "now". skipped: tables and their keys."""
    found: dict[str, list[Any]] = {}
    with database.snapshot():
        for table in (*NAMES["library"], *NAMES["user"]):
            rows = [row for row in database.query(f"SELECT * FROM {table}") if (table, row[0]) not in skipped]
            if table != "papers":
                rows = [
                    tuple(_TIME.sub("now", cell) if isinstance(cell, str) else cell for cell in row) for row in rows
                ]
            found[table] = sorted(rows, key=repr)
    return found


def said_of(library: Library) -> dict[str, Any]:
    """What a library says of its papers, in its own order."""
    with library.reading() as stamp:
        papers = library.papers()
        chunks = library.chunk_ids_of([each.id for each in papers])
        database = library.database
        return {
            "generation": stamp.generation,
            "papers": papers,
            "one by one": [library.papers_by_id([each.id]) for each in papers],
            "files": library.files(),
            "failures": library.failures(),
            "counts": library.counts(),
            "chunks": library.read_chunks(chunks),
            "chunk counts": [library.chunk_count(), library.chunk_count("fine")],
            "fine": library.fine_in(chunks),
            "vectors": library.vectors_of(chunks).tolist() if chunks else [],
            "all vectors": [(found, numbers.tolist()) for found, numbers in library.vectors(batch=4)],
            "passages": list(library.passages()),
            "removed": sorted(library.removed(0)),
            "described": library.described(),
            "layers": {each.id: library.metadata_layers(each.id) for each in papers},
            "paper vectors": [(id, each.text_hash) for id, each in library.paper_vectors().items()],
            "edges": works.library_edges(database),
            "notices": works.notices_of_papers(database, [each.id for each in papers]),
            "works": {each.id: [kept.id for kept in works.of_paper(database, each.id)] for each in papers},
            "log": QueryLog(database).entries(),
            "log counts": QueryLog(database).counts(),
        }


class Both:
    """One library in each engine: whatever is done is done in all, and must have the same result."""

    def __init__(self, *engines: Engine) -> None:
        self.engines = engines
        self.libraries = [engine.library(create=True) for engine in engines]

    def __call__(self, do: Callable[[Library], T]) -> T:
        """The result of `do`, or its error, which is of one class in both. Times count as equal."""
        results: list[Any] = []
        for library in self.libraries:
            try:
                results.append(do(library))
            except Exception as error:  # compared, and raised again
                results.append(error)
        if not all(_same(results[0], other) for other in results[1:]):
            told = [f"{engine.name}: {found!r}"[:2000] for engine, found in zip(self.engines, results, strict=True)]
            raise AssertionError("\n".join(told))
        if isinstance(results[0], Exception):
            raise results[0]
        result: T = results[0]
        return result

    def require_equal(self) -> None:
        """All rows are equal, and all that is read from them; neither has a fault."""
        first, *others = (rows_of(library.database) for library in self.libraries)
        for other, (table, rows) in product(others, first.items()):
            if rows != other[table]:
                differ = [pair for pair in zip(rows, other[table], strict=False) if pair[0] != pair[1]]
                raise AssertionError(f"{table}: {len(rows)} rows, {len(other[table])} rows; {differ[:1]!r}"[:2000])
        self(said_of)
        assert self(lambda library: library.check()) == []

    def close(self) -> None:
        for library in self.libraries:
            library.close()


def _same(one: object, other: object) -> bool:
    if isinstance(one, Exception) or isinstance(other, Exception):
        return type(one) is type(other)
    return one == other or _TIME.sub("now", repr(one)) == _TIME.sub("now", repr(other))


def on_disk(path: Path) -> Engine:
    """SQLite in a folder."""
    from folio.store.sqlite import SqliteDatabase

    return Engine("sqlite", lambda create: SqliteDatabase(path, create=create))


def on_server(url: str) -> Engine:
    """PostgreSQL at an address."""
    from folio.shared.postgres import PostgresDatabase

    return Engine("postgres", lambda create: PostgresDatabase(url, create=create))
