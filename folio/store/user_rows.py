"""Repairs rows of what people and services said: one that cannot be read is taken from a daily copy, or deleted.

A flipped bit in a text leaves the file sound to SQLite. For one row, the others are not to be as they were a day ago.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from folio.errors import StoreDamaged
from folio.store import rows, user_file
from folio.store.database import Database
from folio.store.library_check import SAID
from folio.store.sqlite import SqliteDatabase
from folio.store.tables import first_rows
from folio.types import Notice


def repair(library: Path, notice: Notice) -> None:
    """Repair what people said beside a library of this computer, which may be damaged or missing itself.

    A file that SQLite finds damaged is replaced by a copy first. notice: told what was done, if anything.
    """
    path = user_file.user_file(library)
    SqliteDatabase(path, "user", create=True, notice=notice).close()  # raises StoreMismatch for a newer one
    if not user_file.is_sound(path):
        user_file.suspect(path)
    with closing(SqliteDatabase(path, "user", create=True, notice=notice)) as database, ExitStack() as attached:
        if database.is_read_only:
            return
        bad = {table: found for table in SAID if (found := unreadable(database, table))}
        names: list[str] = []
        for copy in filter(user_file.is_sound, reversed(user_file.copies(path) if bad else [])):
            names.append(f"copy{len(names)}")
            attached.enter_context(database.attached(copy, names[-1]))
        with database.transaction("user"):
            restored = sum(_restored(database, table, row, names) for table, found in bad.items() for row in found)
            _complete(database)
    if bad:
        count = sum(map(len, bad.values()))
        notice(
            f"Parts of your questions, conversations and edits that could not be read: {count}. Taken from a copy of an"
            f" earlier day: {restored}; lost: {count - restored}."
        )


def unreadable(database: Database, name: str) -> list[int]:
    """The numbers of the rows of a table that cannot be read, each by itself: one may hide the others."""
    table = SAID[name]
    sql = f"SELECT {table.columns} FROM {name}"
    if _is_readable(database, table.make, sql):
        return []
    numbers = [row for (row,) in database.query(f"SELECT rowid FROM {name}")]
    return [row for row in numbers if not _is_readable(database, table.make, f"{sql} WHERE rowid = :row", row=row)]


def _is_readable(database: Database, make: Callable[..., object], sql: str, **values: object) -> bool:
    try:
        database.read(make, sql, **values)
    except StoreDamaged:
        return False
    return True


def _restored(database: Database, name: str, row: int, copies: Sequence[str]) -> bool:
    """Take a row from the first of the attached copies that has it and can be read, or delete it."""
    table = SAID[name]
    same = " AND ".join(f"own.{column} = other.{column}" for column in table.key.split(", "))
    if table.or_else:
        same = f"{same} OR own.rowid = other.rowid AND own.{table.or_else} = other.{table.or_else}"
    columns = [column for _, column, *_ in database.query(f"PRAGMA main.table_info({name})")]
    # The question of a turn may be gone from the log since
    taken = ", ".join(f'"{column}"' for column in columns if column != "query")
    for copy in copies:
        sql = f"SELECT other.rowid FROM main.{name} own JOIN {copy}.{name} other ON {same} WHERE own.rowid = :row"
        for (found,) in database.query(sql, row=row):
            other = f"FROM {copy}.{name} WHERE rowid = :found"
            if _is_readable(database, table.make, f"SELECT {table.columns} {other}", found=found):
                sql = f"UPDATE main.{name} SET ({taken}) = (SELECT {taken} {other}) WHERE rowid = :row"
                database.execute(sql, found=found, row=row)
                return True
    if name == "conversations":  # its turns would go with it
        now = datetime.now(UTC).isoformat(timespec="seconds")
        sql = f"UPDATE main.{name} SET title = '?', begun = :now, updated = :now WHERE rowid = :row"
        database.execute(sql, now=now, row=row)
    else:
        database.execute(f"DELETE FROM main.{name} WHERE rowid = :row", row=row)
    return False


def _complete(database: Database) -> None:
    """Make what is left whole: no reference to what is not there, no gap between turns, no conversation of none."""
    if not _is_readable(database, rows.text_pair, "SELECT key, value FROM kept"):
        database.execute("DELETE FROM main.kept")
    first = first_rows("user")
    for key, value in first.items():
        sql = "INSERT INTO main.kept (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING"
        database.execute(sql, key=key, value=value)
    database.execute("UPDATE main.kept SET value = :version WHERE key = 'version'", version=first["version"])
    database.execute("UPDATE main.turns SET query = NULL WHERE query NOT IN (SELECT id FROM main.queries)")
    database.execute("DELETE FROM main.conversations WHERE id NOT IN (SELECT conversation FROM main.turns)")
    gaps = "SELECT conversation FROM main.turns GROUP BY conversation HAVING max(place) > count(*)"
    sql = f"SELECT conversation, id, reply, memory FROM main.turns WHERE conversation IN ({gaps}) ORDER BY 1, place"
    for _, turns in groupby(database.query(sql), key=lambda turn: turn[0]):
        for place, (_, id, written, memory) in enumerate(turns, 1):
            reply = json.loads(written)
            changed = json.dumps({**reply, "turn": place}) if "turn" in reply else written
            sql = "UPDATE main.turns SET place = :place, reply = :reply, crc = :crc WHERE id = :id"
            database.execute(sql, place=place, reply=changed, crc=rows.shown_crc(changed, memory), id=id)
