"""Keeps what people made in a library of an earlier format, whatever becomes of the rest.

Until format 15 one file had everything. What people made, their questions with ratings, conversations and edits, is
copied to user.sqlite; the index is made again from the PDFs, because every release reads them in another way. So one
reader is enough for all formats: a later one only added tables and columns (format 2: questions, 4: conversations,
5: digests, 7: edits, 10: confidence, 12: works, 14: traces). The old file stays, under another name.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock

from folio.errors import StoreBusy, StoreDamaged, command
from folio.papers.metadata import from_json
from folio.papers.model import Notice
from folio.store import rows, user_file
from folio.store.fingerprint import FORMAT
from folio.store.sqlite import MEMORY, SqliteDatabase
from folio.system.files import discard, no_space, replace, sync, sync_folder

_FOLDER = "takeover"  # where the new library is made, and deleted if that is interrupted
_OLD = "old"  # the name of the attached old file
Row = dict[str, Any]
# Table -> its first format, and its columns; one that the format lacks is NULL. "rowid" is the order of the old rows.
_TABLES = {
    "queries": (2, f"{rows.QUERY_COLUMNS}, feedback"),
    "conversations": (4, "id, title, begun, updated"),
    "turns": (4, "id, conversation, place, asked, reply, memory, query"),
    "metadata": (7, "paper, source, fields, updated"),
    "works": (12, "id, version_of, said"),
    "work_marks": (12, "mark, work"),
    "citations": (12, "citing, cited, source, said_at, rowid"),
    "paper_works": (12, "paper, work, found_by, score"),
    "notices": (12, "work, kind, dated, link, source, said_at"),
}
# Table -> the columns that the digest of an old row covers, if the format has one
_DIGESTED = {
    **{table: _TABLES[table][1] for table in ("metadata", "works", "paper_works", "notices")},
    "queries": rows.QUERY_COLUMNS,  # those that are not NULL
    "conversations": "id, title, begun",
    "turns": "conversation, place, asked, reply, memory",
    "citations": "citing, cited, source, said_at",
}


@dataclass
class _Old:
    """What was found in an old library."""

    version: int
    rows: dict[str, list[Row]] = field(default_factory=dict)  # table -> its sound rows, as they are stored now
    unread: int = 0  # rows that could not be read, or tables none of whose rows could
    files: list[tuple[str, ...]] = field(default_factory=list)  # path, name and SHA-256 of each PDF
    fingerprint: dict[str, str] = field(default_factory=dict)


def take_over(path: Path, version: int, notice: Notice) -> None:
    """Put a library without papers in the place of one of an earlier format, whose user data goes to user.sqlite.

    The new one knows the PDFs and the settings of the old one, so that `ingest --rebuild` reads them again. A kill at
    any point leaves the old library, and the next command starts again. version: its format. Raises StoreBusy while
    another process uses it.
    """
    folder = path.with_name(_FOLDER)
    with no_space(path.parent), FileLock(path.with_name(f"{_FOLDER}.lock")):
        try:
            old = _read(path, version)
            if old is None:  # another process has taken it over meanwhile
                return
            _keep(old, path)
            discard(folder)
            folder.mkdir()
            new = folder / path.name
            with closing(SqliteDatabase(new, create=True)) as library:
                with library.transaction("library"):
                    made_with = {**old.fingerprint, FORMAT: str(version)}
                    library.insert("meta", [{"key": "fingerprint", "value": json.dumps(made_with, sort_keys=True)}])
                    library.insert("meta", [{"key": rows.FILES_BEFORE, "value": json.dumps(old.files)}])
                library.merge_log()
            complete = path.with_name(f"{_FOLDER}{path.suffix}")
            sync(new)
            shutil.copymode(path, new)
            replace(new, complete)
        finally:
            with suppress(OSError):
                discard(folder)
        aside = _put_in_place(complete, path, version)
    notice(_what_was_done(old, aside))


def _read(path: Path, version: int) -> _Old | None:
    """What people made, and the list of the PDFs; None if the library has another format."""
    old = _Old(version)
    with closing(SqliteDatabase(MEMORY, "user", create=True)) as reader, reader.attached(path, _OLD):
        if reader.query(f"PRAGMA {_OLD}.user_version") != [(version,)]:
            return None
        reader.merge_log()  # so that the old file alone is complete; fails while another process uses it
        with reader.snapshot():
            for table, (since, columns) in _TABLES.items():
                old.rows[table] = list(_rows(reader, table, columns, old)) if version >= since else []
            with suppress(StoreDamaged):  # then the rebuild reads what ingested.json lists
                old.files = reader.read(_file, f"SELECT path, name, paper FROM {_OLD}.files ORDER BY rowid")
            with suppress(StoreDamaged):
                sql = f"SELECT CAST(value AS TEXT) FROM {_OLD}.meta WHERE key = 'fingerprint'"
                old.fingerprint = dict(*reader.read(rows.fingerprint, sql))
    return old


def _keep(old: _Old, path: Path) -> None:
    """Add what people made to user.sqlite, except rows that it has already."""
    target = user_file.user_file_of(path)
    with closing(SqliteDatabase(target, "user", create=True)) as user, user.transaction("user"):
        user.execute("PRAGMA defer_foreign_keys = ON")
        for table, found in old.rows.items():
            _insert(user, table, found)
        # Turns whose conversation or question could not be read
        user.execute("DELETE FROM turns WHERE conversation NOT IN (SELECT id FROM conversations)")
        user.execute("UPDATE turns SET query = NULL WHERE query NOT IN (SELECT id FROM queries)")
    shutil.copymode(path, target)
    user_file.copy_now(target)


def _file(*row: object) -> tuple[str, ...]:
    return tuple(map(rows.string, row))


def _rows(reader: SqliteDatabase, table: str, columns: str, old: _Old) -> Iterator[Row]:
    """The sound rows of a table, as they are stored now; counts the others."""
    own = {str(name) for _, name, *_ in reader.query(f"PRAGMA {_OLD}.table_info({table})")} | {"rowid"}
    digested = table in _DIGESTED and "digest" in own
    names = [*columns.split(", "), *(["digest"] if digested else [])]
    selected = ", ".join(name if name in own else f"NULL AS {name}" for name in names)
    only = "source != 'pdf'" if table == "metadata" else "1 = 1"
    sql = f"SELECT {selected} FROM {_OLD}.{table} WHERE {only}"
    try:
        found = reader.query(sql)
    except StoreDamaged:
        found = _one_by_one(reader, table, sql, old)
    for values in found:
        row = dict(zip(names, values, strict=True))
        try:
            if digested and row.pop("digest") != rows.row_digest(table, *_covered(table, row)):
                raise ValueError("a row has changed since it was written")
            yield _converted(table, row)
        except (ValueError, TypeError, LookupError):
            old.unread += 1


def _one_by_one(reader: SqliteDatabase, table: str, sql: str, old: _Old) -> list[tuple[Any, ...]]:
    """The rows of a query that can be read, each for itself, because one may hide others."""
    found: list[tuple[Any, ...]] = []
    try:
        numbers = reader.query(f"SELECT rowid FROM {_OLD}.{table}")
    except StoreDamaged:
        old.unread += 1
        return []
    for (number,) in numbers:
        try:
            found += reader.query(f"{sql} AND rowid = :number", number=number)
        except StoreDamaged:
            old.unread += 1
    return found


def _covered(table: str, row: Row) -> list[object]:
    """The values that a row's digest covers."""
    values = [row[name] for name in _DIGESTED[table].split(", ")]
    return [value for value in values if value is not None] if table == "queries" else values


def _converted(table: str, row: Row) -> Row:
    """A row for the current table. Raises ValueError, TypeError or LookupError for one that cannot be read."""
    if table == "queries":
        return {**row, "crc": rows.shown_crc(*(row[name] for name in rows.QUERY_COLUMNS.split(", ")[1:]))}
    if table == "turns":
        return {**row, "crc": rows.shown_crc(row["reply"], row["memory"])}
    if table == "metadata":
        return {**row, **rows.search_keys(from_json(rows.mapped(row["fields"], "an edit")))}
    if table == "citations":
        return {("place" if name == "rowid" else name): value for name, value in row.items()}
    return row


def _insert(user: SqliteDatabase, table: str, found: list[Row]) -> None:
    if found:
        columns, values = (", ".join(f"{mark}{name}" for name in found[0]) for mark in ("", ":"))
        user.execute_many(f"INSERT INTO main.{table} ({columns}) VALUES ({values}) ON CONFLICT DO NOTHING", found)


def _put_in_place(new: Path, path: Path, version: int) -> Path:
    """Replace the old library, which stays under another name, by the new one. Returns the old one's new path."""
    if user_file.has_log(path):
        raise StoreBusy(
            f"Another process has written to the library {path}, which is to be updated to this version of Folio.",
            "Wait until it has finished, or end it, then run the same command again.",
        )
    old = path.with_name(f"{path.stem}.format-{version}{path.suffix}")
    old.unlink(missing_ok=True)  # of a kill between these steps
    try:
        os.link(path, old)
    except OSError:  # a file system without hard links
        shutil.copy2(path, old)
        sync(old)
    for log in ("-wal", "-shm"):  # SQLite would use them for the new file
        path.with_name(path.name + log).unlink(missing_ok=True)
    replace(new, path)
    sync_folder(path.parent)
    return old


_SHOWN = {"queries": "question", "conversations": "conversation", "metadata": "edit", "works": "work"}


def _what_was_done(old: _Old, aside: Path) -> str:
    """A line for people."""
    counts = {name: len(old.rows[table]) for table, name in _SHOWN.items() if old.rows[table]}
    made = ", ".join(f"{count:,} {name}{'s' * (count != 1)}" for name, count in counts.items()) or "nothing"
    unread = f" (rows that could not be read: {old.unread})" if old.unread else ""
    again = f" Its papers, {len(old.files):,}, must be read again: run `{command('ingest --rebuild')}`."
    return (
        f"The library was made by an earlier Folio (format {old.version}). Kept from it: {made}{unread}."
        f"{again if old.files else ''} The old file is now {aside.name}; delete it when you no longer need it."
    )
