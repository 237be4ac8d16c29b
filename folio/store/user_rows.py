"""Repairs rows of the user data: a row that cannot be read is restored from a daily copy, or deleted.

A flipped bit in a text leaves the file sound to SQLite. Restoring the whole file would lose a day of other rows.
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
from folio.store.library_check import USER_TABLES
from folio.store.sqlite import SqliteDatabase
from folio.store.tables import first_rows
from folio.types import Notice


def repair(library: Path, notice: Notice) -> None:
    """Repair the user data of a local library, which may itself be damaged or missing.

    A file that SQLite finds damaged is first replaced by a copy. notice: gets a line about what was done, if anything.
    """
    path = user_file.user_file(library)
    SqliteDatabase(path, "user", create=True, notice=notice).close()  # raises StoreMismatch for a newer one
    if not user_file.is_sound(path):
        user_file.suspect(path)
    with closing(SqliteDatabase(path, "user", create=True, notice=notice)) as database, ExitStack() as attached:
        if database.is_read_only:
            return
        bad = {table: numbers for table in USER_TABLES if (numbers := unreadable(database, table))}
        names: list[str] = []
        for copy in filter(user_file.is_sound, reversed(user_file.copies(path) if bad else [])):
            names.append(f"copy{len(names)}")
            attached.enter_context(database.attached(copy, names[-1]))
        with database.transaction("user"):
            restored = sum(_restored(database, table, row, names) for table, numbers in bad.items() for row in numbers)
            _complete(database)
    if bad:
        count = sum(map(len, bad.values()))
        notice(
            f"Parts of your questions, conversations and edits that could not be read: {count}. Taken from a copy of an"
            f" earlier day: {restored}; lost: {count - restored}."
        )


def unreadable(database: Database, name: str) -> list[int]:
    """The numbers of the unreadable rows of a table. Each row is read separately, because one may hide others."""
    table = USER_TABLES[name]
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
    """Restore a row from the first of the attached copies that has it in readable form, or delete it."""
    table = USER_TABLES[name]
    same = " AND ".join(f"own.{column} = other.{column}" for column in table.key.split(", "))
    if alternative := table.alternative_key:
        same = f"{same} OR own.rowid = other.rowid AND own.{alternative} = other.{alternative}"
    columns = [column for _, column, *_ in database.query(f"PRAGMA main.table_info({name})")]
    # Not the question of a turn, which may have been deleted from the log
    restored = ", ".join(f'"{column}"' for column in columns if column != "query")
    for copy in copies:
        sql = f"SELECT other.rowid FROM main.{name} own JOIN {copy}.{name} other ON {same} WHERE own.rowid = :row"
        for (copy_row,) in database.query(sql, row=row):
            source = f"FROM {copy}.{name} WHERE rowid = :copy_row"
            if _is_readable(database, table.make, f"SELECT {table.columns} {source}", copy_row=copy_row):
                sql = f"UPDATE main.{name} SET ({restored}) = (SELECT {restored} {source}) WHERE rowid = :row"
                database.execute(sql, copy_row=copy_row, row=row)
                return True
    if name == "conversations":  # deleting it would delete its turns
        now = datetime.now(UTC).isoformat(timespec="seconds")
        sql = f"UPDATE main.{name} SET title = '?', begun = :now, updated = :now WHERE rowid = :row"
        database.execute(sql, now=now, row=row)
    else:
        database.execute(f"DELETE FROM main.{name} WHERE rowid = :row", row=row)
    return False


def _complete(database: Database) -> None:
    """Make the data consistent: no dangling references, no gaps between turns, no conversation without turns."""
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
        for place, (_, id, reply_json, memory) in enumerate(turns, 1):
            reply = json.loads(reply_json)
            changed = json.dumps({**reply, "turn": place}) if "turn" in reply else reply_json
            sql = "UPDATE main.turns SET place = :place, reply = :reply, crc = :crc WHERE id = :id"
            database.execute(sql, place=place, reply=changed, crc=rows.shown_crc(changed, memory), id=id)
