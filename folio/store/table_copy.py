"""Copies tables from one database to another, of the same engine or another one, in batches of rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from folio.errors import StoreError
from folio.papers.model import Progress
from folio.store.database import COLUMNS, FIRST, ROW_KEYS, Database

# Rows that are read at a time; fewer for tables with long rows
_ROWS, _LONG_ROWS, _LONG = 2000, 20, ("texts", "turns", "queries", "notes", "note_quotes")
# Table -> the parts of it that are copied one after the other: passages before their fine passages, and of the table
# `kept` only what both engines have
_PARTS = {"chunks": ("parent IS NULL", "parent IS NOT NULL"), FIRST["user"]: ("key = 'said'",)}


def copy_tables(old: Database, new: Database, tables: Sequence[str], progress: Progress) -> None:
    """Copy tables, and compare them. progress: called for each table. Raises StoreError."""
    for place, table in enumerate(tables):
        progress("tables", place, len(tables))
        if table == "meta":
            new.execute("DELETE FROM meta")
        for batch in _batches(old, table):
            names = COLUMNS[table]
            new.insert(table, [dict(zip(names, row, strict=True)) for row in batch], replace=table == FIRST["user"])
        for old_rows, new_rows in zip(_batches(old, table), _batches(new, table), strict=True):
            if old_rows != new_rows:
                raise StoreError(f"The table {table} was not stored as it was read.", "Try again.")
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
