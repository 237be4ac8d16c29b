"""Checks a whole library, its structure and its rows, and lists the faults, one sentence each.

Rows of the user data that cannot be read are restored from a daily copy, or deleted: a flipped bit in a text leaves the
file sound to SQLite, and restoring the whole file would lose a day of other rows.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from folio.errors import StoreDamaged
from folio.papers.model import Notice
from folio.store import citation_names, notes, query_log, readings, rows, user_file, works
from folio.store.database import Database, Part, first_rows
from folio.store.rows import text_hash
from folio.store.sqlite import SqliteDatabase

T = TypeVar("T")

# Counts that must be 0, and the fault if they are not; {} is the count.
_RECORDED = (
    "SELECT abs(count(*) - (SELECT CAST(value AS BIGINT) FROM meta WHERE key = '{}')) FROM chunks WHERE parent IS {}"
)
_COUNTS = (
    ("SELECT count(*) FROM chunks WHERE id NOT IN (SELECT chunk FROM vectors)", "{} passages have no vector."),
    ("SELECT count(*) FROM papers WHERE id NOT IN (SELECT paper FROM files)", "{} papers have no file."),
    ("SELECT count(*) FROM papers WHERE id NOT IN (SELECT paper FROM texts)", "{} papers have no text."),
    (_RECORDED.format("chunks", "NULL"), "The number of passages differs from the recorded count."),
    (_RECORDED.format("fine", "NOT NULL"), "The number of fine passages differs from the recorded count."),
    (
        "SELECT count(*) FROM chunks f JOIN chunks p ON p.id = f.parent WHERE p.parent IS NOT NULL"
        ' OR f.paper != p.paper OR f.start < p.start OR f."end" > p."end"',
        "{} fine passages lie outside their passage.",
    ),
)


@dataclass(frozen=True)
class UserTable:
    """A table of user data, which a rebuild cannot restore."""

    make: Callable[..., object]  # takes the columns of a row; raises ValueError
    columns: str
    key: str  # columns that identify the same row in a copy
    alternative_key: str = ""  # a column that identifies a row together with its number, if the key is damaged


USER_TABLES = {
    "queries": UserTable(query_log.logged, query_log.COLUMNS, "id, asked", "question"),
    "turns": UserTable(rows.turn, rows.TURN_COLUMNS, "id, conversation, place"),
    "conversations": UserTable(lambda *row: list(map(rows.string, row)), "id, title, begun, updated", "id"),
    "pins": UserTable(rows.string, "conversation", "conversation"),
    "metadata": UserTable(rows.metadata_layer, rows.METADATA_COLUMNS, "paper, source"),
    "works": UserTable(works.work_of_row, works.WORK_COLUMNS, "id"),
    "citations": UserTable(works.citation, works.CITATION_COLUMNS, "citing, cited"),
    "paper_works": UserTable(works.paper_work, works.PAPER_WORK_COLUMNS, "paper"),
    "notices": UserTable(works.notice, works.NOTICE_COLUMNS, "work, kind, link, source"),
    "readings": UserTable(readings.reading, readings.READING_COLUMNS, "paper"),
    "removals": UserTable(readings.removal, readings.REMOVAL_COLUMNS, "paper"),
    "citation_names": UserTable(citation_names.citation_name, citation_names.NAME_COLUMNS, "kind, name, paper"),
    "notes": UserTable(notes.note, notes.NOTE_COLUMNS, "id"),
    "note_quotes": UserTable(notes.note_quote, notes.QUOTE_COLUMNS, "note, place"),
}


class LibraryCheck:
    """Collects the faults of a library, one sentence each; a fault in one row does not hide the others."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._faults: dict[str, None] = {}  # an ordered set

    def structure(self) -> list[str]:
        """The faults in the structure of the data made from PDFs.

        Raises StoreError if it cannot be read now, which proves no fault.
        """
        self._check_structure("library")
        meta = dict(self._rows(rows.text_pair, "SELECT key, value FROM meta"))
        self._rows(lambda _: rows.stamp(meta), "SELECT 1")
        return list(self._faults)

    def _check_structure(self, part: Part) -> None:
        try:
            self._faults |= dict.fromkeys(self._database.faults(part))
        except StoreDamaged as error:
            self._add(error.happened)

    def everything(self) -> list[str]:
        """All faults; reads the whole library with its user data."""
        self.made_from_pdfs()
        self._check_structure("user")
        if not {"version", "said"} <= dict(self._rows(rows.text_pair, "SELECT key, value FROM kept")).keys():
            self._add("What is known of your questions, conversations and edits as a whole is missing.")
        for name, table in USER_TABLES.items():
            self._rows(table.make, f"SELECT {table.columns} FROM {name}")
        return list(self._faults)

    def made_from_pdfs(self) -> list[str]:
        """The faults in the data made from PDFs, which a rebuild restores."""
        self.structure()
        for sql, sentence in _COUNTS:
            for count in self._rows(rows.number, sql):
                if count:
                    self._add(sentence.format(count))
        made_with = self._rows(rows.fingerprint, "SELECT value FROM meta WHERE key = 'fingerprint'")
        if len(self._rows(int, "SELECT value FROM meta WHERE key = 'described'")) != 1:
            self._add("The number of changes to what is known about papers is missing.")
        self._rows(rows.source_file, "SELECT path, name, paper FROM files")
        self._rows(rows.failure, "SELECT path, name, sha256, happened, remedy FROM failures")
        self._rows(rows.paper, rows.SELECT_PAPERS)
        for paper in self._rows(rows.string, "SELECT id FROM papers ORDER BY id"):
            self._check_text(paper)
        dimension = int(made_with[0].get("dimension", "0")) if made_with else 0
        self._check_vectors(dimension)
        vectors = self._rows(rows.paper_vector, "SELECT paper, text_hash, data FROM paper_vectors")
        if dimension and any(len(each.vector) != dimension for _, each in vectors):
            self._add(f"Some vectors of papers do not have {dimension} numbers.")
        return list(self._faults)

    def _check_text(self, paper: str) -> None:
        """Check a paper's text, and that its chunks match it."""
        sql = "SELECT id, text, text_crc, length FROM papers JOIN texts ON texts.paper = id WHERE id = :paper"
        chunks = f"SELECT {rows.CHUNK_COLUMNS} FROM chunks WHERE paper = :paper"
        for length, (_, text) in self._rows(
            lambda id, text, crc, length: (rows.number(length), rows.paper_text(id, text, crc)), sql, paper=paper
        ):
            if len(text) != length:
                self._add(f"The text of paper {paper[:12]} does not have its recorded length.")
            for chunk, stored_hash in self._rows(rows.chunk_of_row, chunks, paper=paper):
                if text_hash(text[chunk.start : chunk.end]) != stored_hash:
                    self._add(f"Passage {chunk.id} of paper {paper[:12]} does not match the text it was made from.")

    def _check_vectors(self, dimension: int) -> None:
        last, sql = -1, "SELECT chunk, data FROM vectors WHERE chunk > :last ORDER BY chunk LIMIT 4096"
        while ids := self._rows(rows.number, sql.replace(", data", ""), last=last):
            vectors = self._rows(rows.vector, sql, last=last)
            if dimension and any(len(numbers) != 4 * dimension for _, numbers in vectors):
                self._add(f"Some vectors do not have {dimension} numbers.")
            if ids[-1] <= last:
                self._add("The vectors are not in order.")
                return
            last = ids[-1]

    def _rows(self, make: Callable[..., T], sql: str, **values: object) -> list[T]:
        """make(*row) for each sound row; adds the faults of the others."""
        sound: list[T] = []
        try:
            for row in self._database.query(sql, **values):
                try:
                    with self._database.rows_expected():
                        sound.append(make(*row))
                except StoreDamaged as error:
                    self._add(error.happened)
        except StoreDamaged as error:
            self._add(error.happened)
        return sound

    def _add(self, fault: str) -> None:
        self._faults[fault] = None


def repair(library: Path, notice: Notice) -> None:
    """Repair the user data of a local library, which may itself be damaged or missing.

    A file that SQLite finds damaged is first replaced by a copy. notice: gets a line about what was done, if anything.
    """
    path = user_file.user_file_of(library)
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
    references = "SELECT id FROM main.conversations"
    database.execute(f"UPDATE main.notes SET conversation = NULL WHERE conversation NOT IN ({references})")
    database.execute("DELETE FROM main.conversations WHERE id NOT IN (SELECT conversation FROM main.turns)")
    database.execute(f"DELETE FROM main.pins WHERE conversation NOT IN ({references})")
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
