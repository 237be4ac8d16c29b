"""Converts the library of the previous release, which had the user data in the same file.

The user data is copied to user.sqlite first, as far as it can be read, so that it survives even if the papers are
damaged and have to be read again. Then a new library is filled next to the old one and replaces it. A kill at any point
leaves the old library, and the next command starts again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import numpy as np
from filelock import FileLock

from folio.errors import StoreBusy, StoreDamaged, StoreMismatch, command
from folio.files import discard, no_space, replace, sync, sync_folder
from folio.paper_metadata import from_json, to_json
from folio.store import rows
from folio.store.database import BUSY_TIMEOUT_S, DAMAGED, Database, clause
from folio.store.digests import pack_vector, row_digest, text_crc, vector_bytes
from folio.store.sqlite import SqliteDatabase
from folio.store.user_file import copy_now, user_file

# The schema of the previous release. An older library must be opened with that release first.
VERSION = 15
_FOLDER = "takeover"
Row = dict[str, object]
# Table -> the columns that are copied; `place` is the order of the old rows
_USER_COLUMNS = {
    "metadata": "paper, source, fields, updated",
    "queries": f"{rows.QUERY_COLUMNS}, feedback",
    "conversations": "id, title, begun, updated",
    "turns": "id, conversation, place, asked, reply, memory, query",
    "works": "id, version_of, said",
    "work_marks": "mark, work",
    "citations": "citing, cited, source, said_at, rowid AS place",
    "paper_works": "paper, work, found_by, score",
    "notices": "work, kind, dated, link, source, said_at",
}
_LIBRARY_COLUMNS = {
    "files": "path, name, paper, rowid AS place",
    "failures": "path, name, sha256, happened, remedy",
    "chunks": 'id, paper, start, "end", hex(text_hash) AS text_hash, generation, parent',
    "vectors": "chunk, data",
    "removed": "chunk, generation",
    "paper_vectors": "paper, lower(hex(text_hash)) AS text_hash, data",
}
# Table -> the columns in the digests of its rows; for queries, only those that are not NULL
_DIGESTED = {
    **{table: _USER_COLUMNS[table] for table in ("metadata", "works", "paper_works", "notices")},
    "queries": rows.QUERY_COLUMNS,
    "conversations": "id, title, begun",
    "turns": "conversation, place, asked, reply, memory",
    "citations": "citing, cited, source, said_at",
    "files": "path, name, paper",
    "failures": _LIBRARY_COLUMNS["failures"],
    "chunks": "id, paper, start, end, text_hash, parent",
}
_META = "('epoch', 'generation', 'fingerprint', 'chunks', 'fine', 'described')"
_PAPERS = """SELECT p.*, d.text AS crc, d.about, d.sections AS sections_digest,
    m.fields, m.updated, m.digest AS metadata_digest,
    (SELECT json_group_array(json_array(start, "end", level, number, title, kind)) FROM sections
        WHERE paper = p.id) AS sections,
    (SELECT count(*) FROM chunks WHERE paper = p.id AND parent IS NULL) AS passages
    FROM papers p LEFT JOIN paper_digests d ON d.paper = p.id
    LEFT JOIN metadata m ON m.paper = p.id AND m.source = 'pdf'"""
_ABOUT_PAPER = ("id", "title", "authors", "year", "starts", "labels", "length", "problems", "arxiv", "added")
_BATCH = 100
# The largest deviation from 1 of the length of a vector without a checksum
_UNIT_ERROR = 1e-3


class _OldLibrary:
    """The old library. `close` also closes open cursors, which would keep the file locked after an error."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_S)
        self._read: list[sqlite3.Cursor] = []

    def execute(self, sql: str) -> sqlite3.Cursor:
        self._read.append(self._connection.execute(sql))
        return self._read[-1]

    def rows(self, sql: str) -> Iterator[Row]:
        """The rows of a query, by the names of its columns."""
        cursor = self.execute(sql)
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)

    def close(self) -> None:
        for cursor in self._read:
            cursor.close()
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        self._connection.close()


def take_over(path: Path) -> None:
    """Convert a library of the previous release to the current tables. Raises StoreMismatch for an older one.

    Raises StoreDamaged, and SQLite's own errors; the user data is in user.sqlite then, as far as it can be read.
    """
    folder = path.with_name(_FOLDER)
    new = folder / path.name
    with no_space(path.parent), FileLock(path.with_name(f"{_FOLDER}.lock")):
        try:
            with closing(_OldLibrary(path)) as old:
                if not _is_due(old, path):
                    return
                old.execute("BEGIN IMMEDIATE")  # so that no other process writes to it meanwhile
                _copy_user_data(old, path)
                discard(folder)
                folder.mkdir()
                _copy_papers(old, new)
                old.execute("COMMIT")
                _empty_log(old, path)
            _put_in_place(new, path)
        except (ValueError, TypeError, LookupError) as error:
            raise StoreDamaged(f"The library {path} is damaged: {clause(error)}.", DAMAGED) from error
        finally:
            with suppress(OSError):
                discard(folder)


def _is_due(old: _OldLibrary, path: Path) -> bool:
    """Whether the library is still to be converted, and no other process has done so meanwhile."""
    ((version,),) = old.execute("PRAGMA user_version").fetchall()
    if version < VERSION:
        raise StoreMismatch(
            f"The library {path} was made by a version of Folio that is older than the one before this.",
            f"Open it once with that version (`{command('ingest --verify')}`); or move the folder vectorstore/ away"
            f" and run `{command('ingest')}`, which reads your PDFs again.",
        )
    return bool(version == VERSION)


def _empty_log(old: _OldLibrary, path: Path) -> None:
    """Merge the write-ahead log into the old file, so that the file alone is complete."""
    ((is_busy, *_),) = old.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if is_busy:
        raise StoreBusy(
            f"Another process reads the library {path}, which is to be updated to this version of Folio.",
            "Wait until it has finished, or end it, then run the same command again.",
        )


def _put_in_place(new: Path, path: Path) -> None:
    sync(new)
    shutil.copymode(path, new)
    for log in ("-wal", "-shm"):  # SQLite would use them for the new file
        path.with_name(path.name + log).unlink(missing_ok=True)
    replace(new, path)
    sync_folder(path.parent)


# User data


def _copy_user_data(old: _OldLibrary, path: Path) -> None:
    """Add the user data to user.sqlite, except rows that it has already. Raises the first error of unreadable rows."""
    faults: list[Exception] = []
    target = user_file(path)
    with closing(SqliteDatabase(target, "user", create=True)) as database:
        with database.transaction("user"):
            database.execute("PRAGMA defer_foreign_keys = ON")
            for table in _USER_COLUMNS:
                for batch in _batches(_user_rows(old, table, faults)):
                    _add(database, table, batch)
            # Turns whose conversation or question could not be read
            database.execute("DELETE FROM turns WHERE conversation NOT IN (SELECT id FROM conversations)")
            database.execute("UPDATE turns SET query = NULL WHERE query NOT IN (SELECT id FROM queries)")
        shutil.copymode(path, target)
        copy_now(target)  # the copy from before the transaction lacks these rows
    if faults:
        raise faults[0]


def _user_rows(old: _OldLibrary, table: str, faults: list[Exception]) -> Iterator[Row]:
    """The sound rows of a table, up to one that cannot be read; adds errors to `faults`."""
    only = "WHERE source != 'pdf'" if table == "metadata" else ""
    digest = ", digest" if table in _DIGESTED else ""
    try:
        for row in old.rows(f"SELECT {_USER_COLUMNS[table]}{digest} FROM {table} {only}"):
            try:
                converted = _converted(table, row)
            except (ValueError, TypeError, LookupError) as error:
                faults.append(error)
            else:
                yield converted
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")  # "" for Python's error for text that is not UTF-8
        if isinstance(error, sqlite3.OperationalError) and name not in ("", "SQLITE_ERROR"):
            raise  # an error of reading that proves no damage
        faults.append(error)


def _add(database: Database, table: str, batch: list[Row]) -> None:
    columns, values = (", ".join(f"{mark}{name}" for name in batch[0]) for mark in ("", ":"))
    database.execute_many(f"INSERT INTO {table} ({columns}) VALUES ({values}) ON CONFLICT DO NOTHING", batch)


# Data made from PDFs


def _copy_papers(old: _OldLibrary, new: Path) -> None:
    """Fill a new library. Raises ValueError, TypeError or LookupError for a row that has changed."""
    with closing(SqliteDatabase(new, create=True)) as database:
        with database.transaction("library"):
            database.execute("PRAGMA defer_foreign_keys = ON")  # a fine passage may come before its passage
            meta = f"SELECT key, CAST(value AS TEXT) AS value FROM meta WHERE key IN {_META}"
            database.insert("meta", old.rows(meta), replace=True)
            new_rows = {
                "papers": map(_paper, old.rows(_PAPERS)),
                "texts": old.rows("SELECT id AS paper, text FROM papers"),
            }
            for table, columns in _LIBRARY_COLUMNS.items():
                digest = ", digest" if table in _DIGESTED else ""
                old_rows = old.rows(f"SELECT {columns}{digest} FROM {table}")
                new_rows[table] = map(partial(_converted, table), old_rows)
            for table, converted in new_rows.items():
                copied = 0
                for batch in _batches(converted):
                    database.insert(table, batch)
                    copied += len(batch)
                ((count,),) = old.execute(f"SELECT count(*) FROM {'papers' if table == 'texts' else table}")
                if copied != count:
                    raise ValueError(f"{copied} of {count} rows of the table {table} can be read")
        database.merge_log()


def _paper(row: Row) -> Row:
    """A paper's row with values that were in other tables. Raises ValueError if any of them has changed."""
    label, crc = f"the record of paper {str(row['id'])[:12]}", row["crc"]
    sections = sorted(json.loads(rows.string(row["sections"])))
    about = row_digest("papers", *(row[name] for name in _ABOUT_PAPER), row["passages"], crc)
    listed = row_digest("sections", row["id"], crc, sections) if sections or row["sections_digest"] else None
    metadata_digest = row_digest("metadata", row["id"], "pdf", row["fields"], row["updated"]) if row["fields"] else None
    if (row["about"], row["sections_digest"], row["metadata_digest"]) != (about, listed, metadata_digest):
        raise ValueError(f"{label} has changed since it was written")
    if text_crc(rows.string(row["text"])) != crc:
        raise ValueError(f"the text of paper {str(row['id'])[:12]} is not the one that was stored")
    metadata = from_json(json.loads(rows.string(row["fields"] or "{}")))
    values = {**row, "sections": json.dumps(sections), "metadata": json.dumps(to_json(metadata)), "text_crc": crc}
    columns = {name: values[name] for name in rows.PAPER_COLUMNS.split(", ")}
    digest = row_digest("papers", *columns.values())
    return {**columns, "digest": digest, "generation": row["generation"], **rows.search_keys(metadata)}


# Rows


def _batches(rows_in: Iterator[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows_in:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _converted(table: str, row: Row) -> Row:
    """A row for the current table. Raises ValueError, TypeError or LookupError if it has changed."""
    if table in _DIGESTED:
        values = [row[name] for name in _DIGESTED[table].split(", ")]
        if table == "queries":
            values = [value for value in values if value is not None]
        if row.pop("digest") != row_digest(table, *values):
            raise ValueError(f"a row of the table {table} has changed since it was written")
    return _CHANGED[table](row) if table in _CHANGED else row


def _packed(row: Row) -> Row:
    """The row with a checksum of its vector, which vectors of Folio 0.3 lack."""
    blob = rows.typed(bytes, row["data"], "a vector")
    if len(blob) % 4:
        vector_bytes(blob)
        return row
    numbers = np.frombuffer(blob, dtype="<f4")
    if not abs(float(np.linalg.norm(numbers.astype(np.float64))) - 1) < _UNIT_ERROR:  # NaN is not smaller
        raise ValueError("a vector is not of unit length")
    return {**row, "data": pack_vector(numbers)}


_CHANGED: dict[str, Callable[[Row], Row]] = {
    "metadata": lambda row: {**row, **rows.search_keys(from_json(json.loads(rows.string(row["fields"]))))},
    "queries": lambda row: {**row, "crc": rows.shown_crc(*(row[name] for name in rows.QUERY_COLUMNS.split(", ")[1:]))},
    "turns": lambda row: {**row, "crc": rows.shown_crc(row["reply"], row["memory"])},
    "chunks": lambda row: {**row, "text_hash": rows.string(row["text_hash"]).lower()},
    "vectors": _packed,
    "paper_vectors": _packed,
}
