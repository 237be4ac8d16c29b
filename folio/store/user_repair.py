"""Repairs user.sqlite, the file with the user data: as a whole if it is damaged, then row by row.

A damaged file is set aside. The new one has every row that can still be read from it, and from the newest sound copy
what belongs to tables that could not be read to their end. Then single rows that have changed since they were written
are taken from a copy of an earlier day, or deleted: a flipped bit in a text leaves the file sound to SQLite.
"""

from __future__ import annotations

import json
import re
import shutil
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from folio.errors import StoreDamaged, StoreError
from folio.papers.model import Notice
from folio.store import rows, sqlite_pages, tables, user_file
from folio.store.check import USER_TABLES
from folio.store.database import COLUMNS, NAMES, USER, Database, first_rows
from folio.store.sqlite import SqliteDatabase
from folio.system.files import discard, no_space, replace, sync

_FOLDER = "repair"  # where the new file is made, and deleted if that is interrupted
# Table -> what people call its rows, one and several
_SHOWN = {
    "queries": ("question", "questions"),
    "turns": ("answer in conversations", "answers in conversations"),
    "conversations": ("conversation", "conversations"),
    "notes": ("note", "notes"),
    "evidence_tables": ("table", "tables"),
    "projects": ("project", "projects"),
    "metadata": ("edit or entry of a bibliography", "edits and entries of bibliographies"),
}
# Columns of numbers with a fraction: SQLite stores a whole one as an integer
_REAL = set(re.findall(r"(\w+) \{real\}", USER))
# Names of attached files
_DAMAGED, _COPY = "damaged", "copy"
Row = dict[str, Any]


def repair(library: Path, notice: Notice) -> bool:
    """Repair the user data of a local library, which may itself be damaged or missing.

    notice: gets a line about what was done, if anything. Returns whether nothing is lost. Raises StoreMismatch for a
    newer file, DiskFull.
    """
    path = user_file.user_file_of(library)
    is_complete = _replace_if_damaged(path, notice)
    with closing(SqliteDatabase(path, "user", create=True, notice=notice)) as database, ExitStack() as attached:
        if database.is_read_only:
            return is_complete
        bad = {table: numbers for table in USER_TABLES if (numbers := unreadable(database, table))}
        names: list[str] = []
        for copy in filter(user_file.is_sound, reversed(user_file.copies(path) if bad else [])):
            names.append(f"copy{len(names)}")
            attached.enter_context(database.attached(copy, names[-1]))
        with database.transaction("user"):
            restored = sum(_restored(database, table, row, names) for table, numbers in bad.items() for row in numbers)
            _complete(database)
    count = sum(map(len, bad.values()))
    if bad:
        notice(
            f"Parts of your questions, conversations and edits that could not be read: {count}. Taken from a copy of an"
            f" earlier day: {restored}; lost: {count - restored}."
        )
    return is_complete and (not bad or restored == count)


def require_whole(library: Path) -> None:
    """Raise UserFileDamaged if the file with the user data of a local library is damaged or lost."""
    path = user_file.user_file_of(library)
    if not _is_sound(path):
        raise user_file.damaged(path, "its check finds faults" if path.exists() else "it is missing")


def require_sound(library: Path) -> None:
    """Raise UserFileDamaged if the user data of a local library needs a repair."""
    require_whole(library)
    path = user_file.user_file_of(library)
    with closing(SqliteDatabase(path, "user", create=True)) as database:
        if any(unreadable(database, table) for table in USER_TABLES):
            raise user_file.damaged(path, "a part of it has changed since it was written")


def _replace_if_damaged(path: Path, notice: Notice) -> bool:
    """Put a sound file in the place of a damaged or missing one. Returns whether nothing is lost."""
    if _is_sound(path):  # without the lock, which a folder that cannot be written has no room for
        return True
    with no_space(path.parent), user_file.locked(path):
        if _is_sound(path):  # another process has repaired it meanwhile
            return True
        folder = path.with_name(_FOLDER)
        discard(folder)
        folder.mkdir()
        try:
            new, found = folder / path.name, _Found()
            copy = user_file.newest_usable(path)
            with closing(SqliteDatabase(new, "user", create=True)) as database:
                _read_damaged(database, path, folder, found)
                _fill(database, found, copy)
                database.merge_log()
            sync(new)
            aside = user_file.put_aside(path, linked=True)
            if aside is not None:
                shutil.copymode(aside, new)
            replace(new, path)  # after a kill before this, the next repair begins again
        finally:
            with suppress(OSError):
                discard(folder)
    notice(_what_was_done(path, aside, copy, found))
    return found.is_whole


def _is_sound(path: Path) -> bool:
    """Whether the file needs no replacement: also if there is none, and no copy of one."""
    if user_file.is_lost(path):
        return False
    if not user_file.has_content(path):
        return True
    return user_file.is_sound(path) or user_file.is_sound(path)  # real damage is still there the second time


@dataclass
class _Found:
    """What could be read from a damaged file, and what was taken from its copy."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    whole: set[str] = field(default_factory=set)  # tables without a fault
    read: Counter[str] = field(default_factory=Counter)  # table -> its rows from the damaged file
    copied: Counter[str] = field(default_factory=Counter)  # table -> its rows from the copy
    lost: list[int] = field(default_factory=list)  # numbers of questions that were asked since the copy

    @property
    def is_whole(self) -> bool:
        return self.whole >= set(NAMES["user"])


def _read_damaged(database: SqliteDatabase, path: Path, folder: Path, found: _Found) -> None:
    """Read a damaged file: each table whose rows are all sound, and from the pages the sound rows of the others."""
    damaged = folder / "damaged.sqlite"
    for part, target in ((path, damaged), (path.with_name(f"{path.name}-wal"), folder / f"{damaged.name}-wal")):
        if part.exists():
            shutil.copyfile(part, target)  # SQLite writes to a file with a log, even to read it
    with suppress(StoreError), database.attached(damaged, _DAMAGED):
        for table in NAMES["user"]:
            with suppress(StoreDamaged):
                columns = ", ".join(f'"{name}"' for name in COLUMNS[table])
                if database.query(f"PRAGMA {_DAMAGED}.integrity_check({table})") == [("ok",)]:
                    stored = database.query(f"SELECT {columns} FROM {_DAMAGED}.{table}")
                    read = [dict(zip(COLUMNS[table], row, strict=True)) for row in stored]
                    if all(_is_as_written(table, row) for row in read):
                        found.rows[table] = read
                        found.whole.add(table)
    if not found.is_whole:
        for row_id, values in sqlite_pages.records(path):
            table, row = _recognised(row_id, values)
            if table and table not in found.whole:
                found.rows[table].append(row)


def _recognised(row_id: int | None, values: Sequence[object]) -> tuple[str, Row]:
    """The table of a record, and its row; "" if it belongs to none or has changed since it was written."""
    if row_id is None:  # an index, or a table of pairs
        is_pair = [type(value) for value in values] == [str, str]
        table = "" if not is_pair else "kept" if values[0] in first_rows("user") else "work_marks"
        return table, dict(zip(COLUMNS[table], values, strict=True)) if table else {}
    for table in reversed(USER_TABLES):  # those with checksums before those without
        if len(values) == len(COLUMNS[table]):
            row = dict(zip(COLUMNS[table], values, strict=True))
            row |= {"id": row_id} if table in ("queries", "turns") else {}  # the row id, in a column of that name
            row |= {column: float(row[column]) for column in _REAL & row.keys() if type(row[column]) is int}
            if _is_as_written(table, row):
                return table, row
    return "", {}


def _is_as_written(table: str, row: Row) -> bool:
    """Whether a row has not changed since it was written, as far as that can be told."""
    if table not in USER_TABLES:
        return True
    try:
        USER_TABLES[table].make(*(row[column] for column in USER_TABLES[table].columns.split(", ")))
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError):
        return False
    return True


def _fill(database: SqliteDatabase, found: _Found, copy: Path | None) -> None:
    """Fill a new file with what was found, and from the copy with what belongs to tables that are not whole."""
    with ExitStack() as attached:
        if copy is not None:
            attached.enter_context(database.attached(copy, _COPY))
        with database.transaction("user"):
            database.execute("PRAGMA defer_foreign_keys = ON")
            said = [int(row["value"]) for row in found.rows.pop("kept", []) if row["key"] == "said"]
            for table in NAMES["user"]:
                if table != "kept":
                    found.read[table] = _insert(database, table, found.rows[table])
                if copy is None or table in found.whole or not database.query(f"PRAGMA {_COPY}.table_info({table})"):
                    continue
                if table == "kept":
                    said += [int(value) for (value,) in database.query(_SAID)]
                    continue
                columns = ", ".join(f'"{name}"' for name in COLUMNS[table])
                own = len(database.query(f"SELECT 1 FROM main.{table}"))
                sql = f"INSERT OR IGNORE INTO main.{table} ({columns}) SELECT {columns} FROM {_COPY}.{table}"
                database.execute(sql)
                found.copied[table] = len(database.query(f"SELECT 1 FROM main.{table}")) - own
            if copy is not None and "queries" not in found.whole:
                found.lost = _lost_questions(database)
            next_said = str(max(said, default=0) + 1)
            database.execute("UPDATE main.kept SET value = :said WHERE key = 'said'", said=next_said)
            _without_dangling(database)
            _complete(database)


_SAID = f"SELECT value FROM {_COPY}.kept WHERE key = 'said'"


def _insert(database: Database, table: str, found: Sequence[Row]) -> int:
    """Insert rows, without those that another has the key of; returns how many."""
    if found:
        columns = ", ".join(f'"{name}"' for name in COLUMNS[table])
        values = ", ".join(f":{name}" for name in COLUMNS[table])
        database.execute_many(f"INSERT OR IGNORE INTO main.{table} ({columns}) VALUES ({values})", found)
    return len(database.query(f"SELECT 1 FROM main.{table}"))


def _lost_questions(database: Database) -> list[int]:
    """The numbers that are missing among the questions since the copy. What was deleted is in no copy, so it was lost
    by the damage."""
    ((last,),) = database.query(f"SELECT coalesce(max(id), 0) FROM {_COPY}.queries")
    present = {number for (number,) in database.query("SELECT id FROM main.queries WHERE id > :last", last=last)}
    return [number for number in range(last + 1, max(present, default=0)) if number not in present]


def _without_dangling(database: Database) -> None:
    """Give turns without their conversation a new one, and delete parts of what is gone: quotes and origins of notes,
    parts of tables, members of projects, scopes of questions."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    database.execute(
        "INSERT INTO main.conversations SELECT DISTINCT conversation, '?', :now, :now FROM main.turns"
        " WHERE conversation NOT IN (SELECT id FROM main.conversations)",
        now=now,
    )
    for table in ("note_quotes", "note_origins"):
        database.execute(f"DELETE FROM main.{table} WHERE note NOT IN (SELECT id FROM main.notes)")
    for table in ("table_columns", "table_rows", "table_fills"):
        database.execute(f"DELETE FROM main.{table} WHERE table_id NOT IN (SELECT id FROM main.evidence_tables)")
    database.execute("DELETE FROM main.table_cells WHERE column_id NOT IN (SELECT id FROM main.table_columns)")
    database.execute("DELETE FROM main.project_members WHERE project NOT IN (SELECT id FROM main.projects)")
    database.execute("DELETE FROM main.query_scopes WHERE query NOT IN (SELECT id FROM main.queries)")


def _what_was_done(path: Path, aside: Path | None, copy: Path | None, found: _Found) -> str:
    """A few sentences for people."""

    def listed(counts: Counter[str]) -> str:
        shown = [f"{counts[table]:,} {names[counts[table] != 1]}" for table, names in _SHOWN.items() if counts[table]]
        return ", ".join(shown) or "nothing"

    sentences = [f"{path.name} was damaged and set aside as {aside.name}." if aside else f"{path.name} was missing."]
    if aside:
        sentences.append(f"Read from it: {listed(found.read)}.")
    if found.is_whole:
        return " ".join((*sentences, "Nothing is missing."))
    if copy is None:
        return " ".join((*sentences, "There is no sound copy of it: what cannot be read from it is missing."))
    sentences.append(f"Taken from the copy of {user_file.day_of(copy)}: {listed(found.copied)}.")
    numbers = ", ".join(map(str, found.lost[:10])) + (" ..." if len(found.lost) > 10 else "")
    lost = f"{len(found.lost)} questions (number {numbers}), and " if found.lost else ""
    sentences.append(f"Missing: {lost}what was written since that copy and cannot be read.")
    return " ".join(sentences)


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
    # Not what a row refers to, which may have been deleted: the question of a turn, the conversation of a note
    restored = ", ".join(f'"{column}"' for column in columns if column not in ("query", "conversation"))
    for copy in copies:
        if not database.query(f"PRAGMA {copy}.table_info({name})"):  # a copy of an older version
            continue
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
    elif name in ("evidence_tables", "table_columns"):  # deleting it would delete its cells
        salvaged = tables.unreadable_row(name)
        changed = ", ".join(f"{column} = :{column}" for column in salvaged)
        database.execute(f"UPDATE main.{name} SET {changed} WHERE rowid = :row", row=row, **salvaged)
    elif name == "projects":  # deleting it would delete its members
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        ((id,),) = database.query("SELECT id FROM main.projects WHERE rowid = :row", row=row)
        crc = rows.shown_crc(id, "?", "", now)
        sql = "UPDATE main.projects SET name = '?', about = '', created = :now, updated = :now, crc = :crc"
        database.execute(f"{sql} WHERE rowid = :row", now=now, crc=crc, row=row)
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
    database.execute("DELETE FROM main.opened_citations WHERE query NOT IN (SELECT id FROM main.queries)")
    references = "SELECT id FROM main.conversations"
    database.execute(f"UPDATE main.notes SET conversation = NULL WHERE conversation NOT IN ({references})")
    database.execute("DELETE FROM main.conversations WHERE id NOT IN (SELECT conversation FROM main.turns)")
    for table in ("pins", "answering"):
        database.execute(f"DELETE FROM main.{table} WHERE conversation NOT IN ({references})")
    gaps = "SELECT conversation FROM main.turns GROUP BY conversation HAVING max(place) > count(*)"
    columns = "conversation, id, reply, memory, place"
    sql = f"SELECT {columns} FROM main.turns WHERE conversation IN ({gaps}) ORDER BY conversation, place"
    for _, turns in groupby(database.query(sql), key=lambda turn: turn[0]):
        before: list[int] = []  # the places until now
        for place, (_, id, reply_json, memory, old_place) in enumerate(turns, 1):
            reply = json.loads(reply_json)
            renumbered = {"turn": place, "parent": bisect_right(before, reply.get("parent", old_place))}
            changed = json.dumps({**reply, **{name: renumbered[name] for name in renumbered if name in reply}})
            before.append(old_place)
            sql = "UPDATE main.turns SET place = :place, reply = :reply, crc = :crc WHERE id = :id"
            database.execute(sql, place=place, reply=changed, crc=rows.shown_crc(changed, memory), id=id)
