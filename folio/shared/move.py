"""Copies a library from one engine to the other, row by row: no PDF is read and nothing is embedded again.

The copy is made next to the target's current library, compared row by row, and replaces it at the end. An interrupted
move leaves both libraries unchanged, and starts again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from folio.errors import StoreError, StoreMissing, UsageError
from folio.ingest.store import LocalStore, Store
from folio.papers.model import Progress
from folio.shared.postgres import USER_SCHEMA, PostgresDatabase
from folio.shared.store import PostgresStore
from folio.store.database import COLUMNS, FIRST, NAMES, ROW_KEYS, Database
from folio.store.library import Library
from folio.store.sqlite import SqliteDatabase
from folio.store.user_file import place_both
from folio.system.files import discard, no_space

_AGAIN = "Run the same command again."
# Rows that are read at a time; fewer for tables with long rows
_ROWS, _LONG_ROWS, _LONG = 2000, 20, ("texts", "turns", "queries", "notes", "note_quotes")
_FOLDER = "move"
# Table -> the parts of it that are copied one after the other: passages before their fine passages, and of the table
# `kept` only what both engines have
_PARTS = {"chunks": ("parent IS NULL", "parent IS NOT NULL"), FIRST["user"]: ("key = 'said'",)}


@dataclass(frozen=True, slots=True)
class Moved:
    """The numbers of moved rows."""

    papers: int
    files: int
    pages: int
    passages: int
    questions: int  # of the log
    conversations: int
    works: int
    notes: int


def move(source: Store, target: Store, progress: Progress, *, replaces: bool = False) -> Moved:
    """Copy the library of `source` to `target`; the caller holds the writer lock of this computer.

    progress: called for each table. replaces: whether an existing library may be replaced, with all its user data; it
    is used until the new one is complete. Raises UsageError if there is one and it may not be replaced, StoreMissing if
    there is nothing to move, and whatever reading and writing raise.
    """
    with closing(source.open()) as old, old.reading():
        if not old.counts()["papers"]:
            raise StoreMissing(f"The library in {source.place} has no papers to move.", "Check the settings.")
        if target.exists() and not replaces:
            with closing(target.open()) as existing:
                if any(existing.counts().values()) or existing.described():
                    raise UsageError(
                        f"There is a library in {target.place} already.",
                        "Add --yes to replace it, with its log and its conversations; or choose another place:"
                        " docs/scale.md.",
                    )
        if isinstance(target, LocalStore):
            _to_folder(old.database, target, progress)
        else:
            assert isinstance(target, PostgresStore)
            _to_server(old, target, progress)
        with closing(target.open()) as new:
            target.update_indexes(new)
            counts = new.counts()
            of = {name: int(new.database.query(f"SELECT count(*) FROM {name}")[0][0]) for name in NAMES["user"]}
            pages = sum(paper.page_count for paper in new.papers())
            passages = new.chunk_count() + new.chunk_count("fine")
            user = (of[name] for name in ("queries", "conversations", "works", "notes"))
            return Moved(counts["papers"], counts["files"], pages, passages, *user)


def _to_folder(old: Database, target: LocalStore, progress: Progress) -> None:
    folder = target.folder / _FOLDER
    with no_space(target.folder):
        discard(folder)
        folder.mkdir(parents=True)
        new_file = folder / target.database_path.name
        with closing(SqliteDatabase(new_file, create=True)) as new:
            with new.transaction():
                _copy(old, new, [*NAMES["library"], *NAMES["user"]], progress)
            new.merge_log()
        place_both(folder, target.database_path)


def _to_server(old: Library, target: PostgresStore, progress: Progress) -> None:
    with closing(target.open(create=True)) as library:
        library.keep_pdfs(old.files())
        serving = library.database
        assert isinstance(serving, PostgresDatabase)
        schema = f"{USER_SCHEMA}_{uuid.uuid4().hex[:12]}"
        with closing(target.database(schema=schema)) as new:
            for table in NAMES["library"]:
                with new.transaction():
                    _copy(old.database, new, [table], progress)
        with serving.transaction():
            for table in reversed(NAMES["user"]):
                only = " WHERE key = 'said'" if table == FIRST["user"] else ""
                serving.execute(f"DELETE FROM {USER_SCHEMA}.{table}{only}")
            _copy(old.database, serving, NAMES["user"], progress)
            serving.serve(schema)
        serving.drop_unused()
        library.forget_pdfs()


def _copy(old: Database, new: Database, tables: list[str], progress: Progress) -> None:
    """Copy tables, and compare them. Raises StoreError."""
    for place, table in enumerate(tables):
        progress("tables", place, len(tables))
        if table == "meta":
            new.execute("DELETE FROM meta")
        for batch in _batches(old, table):
            names = COLUMNS[table]
            new.insert(table, [dict(zip(names, row, strict=True)) for row in batch], replace=table == FIRST["user"])
        for old_rows, new_rows in zip(_batches(old, table), _batches(new, table), strict=True):
            if old_rows != new_rows:
                raise StoreError(f"The table {table} was not stored as it was read.", _AGAIN)
    if "meta" in tables:  # a new epoch, because the two libraries and their indexes diverge from now on
        new.execute("UPDATE meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)
    progress("tables", len(tables), len(tables))


def _batches(database: Database, table: str) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a table in batches, ordered by its key."""
    for part in _PARTS.get(table, ("1 = 1",)):
        yield from _batches_of(database, table, part)


def _batches_of(database: Database, table: str, part: str) -> Iterator[list[tuple[Any, ...]]]:
    keys, size = ROW_KEYS[table], _LONG_ROWS if table in _LONG else _ROWS
    columns, order = (", ".join(f'"{name}"' for name in names) for names in (COLUMNS[table], keys))
    places = [COLUMNS[table].index(key) for key in keys]
    after = f"({order}) > ({', '.join(f':{key}' for key in keys)})"
    last: dict[str, Any] | None = None
    while True:
        condition = "1 = 1" if last is None else after
        sql = f"SELECT {columns} FROM {table} WHERE {part} AND {condition} ORDER BY {order} LIMIT {size}"
        batch = database.query(sql, **(last or {}))
        if batch:
            yield batch
        if len(batch) < size:
            return
        last = {key: batch[-1][place] for key, place in zip(keys, places, strict=True)}
