"""Checks a whole library: its structure, and every digest in it. What is found is listed, one sentence each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from folio.errors import StoreDamaged
from folio.store import paper_vectors, rows, work_rows
from folio.store.database import Database
from folio.store.digests import text_crc, text_hash

T = TypeVar("T")

# How SQLite's check reports that the system could not give it a page, with SQLite's error code where it has one
_NOT_READ = re.compile(r"unable to get the page\. error code=(\d+)|failed to get page")
_CORRUPT, _SHORT_READ = 11, 522  # SQLITE_CORRUPT and its kin, SQLITE_IOERR_SHORT_READ

# Counts that must be 0, and what it means if they are not: {} is the count
_COUNTS = (
    ("SELECT count(*) FROM chunks WHERE id NOT IN (SELECT chunk FROM vectors)", "{} passages have no vector."),
    ("SELECT count(*) FROM papers WHERE id NOT IN (SELECT paper FROM files)", "{} papers have no file."),
    ("SELECT count(*) FROM papers WHERE id NOT IN (SELECT paper FROM paper_digests)", "{} papers have no digest."),
    (
        "SELECT abs(count(*) - (SELECT value FROM meta WHERE key = 'chunks')) FROM chunks WHERE parent IS NULL",
        "The number of passages differs from the recorded count.",
    ),
    (
        "SELECT abs(count(*) - (SELECT value FROM meta WHERE key = 'fine')) FROM chunks WHERE parent IS NOT NULL",
        "The number of fine passages differs from the recorded count.",
    ),
    (
        "SELECT count(*) FROM chunks f JOIN chunks p ON p.id = f.parent WHERE p.parent IS NOT NULL"
        ' OR f.paper != p.paper OR f.start < p.start OR f."end" > p."end"',
        "{} fine passages lie outside their passage.",
    ),
)
# What a rebuild cannot make again, and how it is read
_OUTLIVES_PAPERS: tuple[tuple[Callable[..., object], str], ...] = (
    (rows.query, f"SELECT {rows.QUERY_COLUMNS} FROM queries"),
    (rows.conversation, f"SELECT {rows.CONVERSATION_COLUMNS} FROM conversations"),
    (rows.turn, f"SELECT {rows.TURN_COLUMNS} FROM turns"),
    (rows.metadata_layer, f"SELECT paper, {rows.METADATA_COLUMNS} FROM metadata WHERE source != 'pdf'"),
    (work_rows.work, f"SELECT {work_rows.WORK_COLUMNS} FROM works"),
    (work_rows.citation, f"SELECT {work_rows.CITATION_COLUMNS} FROM citations"),
    (work_rows.paper_work, f"SELECT {work_rows.PAPER_WORK_COLUMNS} FROM paper_works"),
    (work_rows.notice, f"SELECT {work_rows.NOTICE_COLUMNS} FROM notices"),
)


class LibraryCheck:
    """Collects the faults of a library, one sentence each; a fault in one row does not hide the others."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: dict[str, None] = {}

    def structure(self) -> list[str]:
        """The faults of the file's structure, and of what outlives papers: those that a rebuild leaves.

        Raises StoreError where the file cannot be read, which is no fault of what is in it.
        """
        lines = self._rows(rows.string, "PRAGMA integrity_check")
        for line in lines:  # first of all: a page that was not read makes other lines wrong
            if unread := _NOT_READ.search(line):
                code = int(unread[1] or 0)
                if code & 0xFF != _CORRUPT and code != _SHORT_READ:
                    raise self._database.unusable(f"a page of it could not be read ({unread[0]})")
        for line in lines:
            if line != "ok":
                self._add(line)
        for table in self._rows(lambda *row: row[0], "PRAGMA foreign_key_check"):
            self._add(f"A row of table {table} refers to a missing row.")
        pairs = self._rows(rows.text_pair, "SELECT key, value FROM meta")
        self._rows(lambda *_: rows.stamp(*pairs), "SELECT 1")
        for make, sql in _OUTLIVES_PAPERS:
            self._rows(make, sql)
        return list(self._found)

    def everything(self) -> list[str]:
        """All faults; reads the whole file."""
        self.structure()
        for sql, sentence in _COUNTS:
            for count in self._rows(rows.number, sql):
                if count:
                    self._add(sentence.format(count))
        self._rows(rows.fingerprint, "SELECT value FROM meta WHERE key = 'fingerprint'")
        self._rows(rows.source_file, "SELECT path, name, paper, digest FROM files")
        self._rows(rows.failure, "SELECT path, name, sha256, happened, remedy, digest FROM failures")
        self._rows(rows.paper, rows.SELECT_PAPERS)
        for paper in self._rows(rows.string, "SELECT id FROM papers NOT INDEXED"):
            self._check_text(paper)
        self._check_vectors()
        self._check_paper_vectors()
        return list(self._found)

    def _check_text(self, paper: str) -> None:
        """A paper's text, and that its chunks are made of it."""
        sql = "SELECT p.text, p.length, d.text FROM papers p JOIN paper_digests d ON d.paper = p.id WHERE id = :paper"
        for text, length, crc in self._rows(rows.text, sql, paper=paper):
            if len(text) != length:
                self._add(f"The text of paper {paper[:12]} does not have its recorded length.")
            if text_crc(text) != crc:
                self._add(f"The text of paper {paper[:12]} is not the one that was stored.")
            for chunk, written in self._rows(rows.chunk, f"{rows.SELECT_CHUNKS} WHERE paper = :paper", paper=paper):
                if text_hash(text[chunk.start : chunk.end]) != written:
                    self._add(f"Passage {chunk.id} of paper {paper[:12]} does not match the text it was made from.")

    def _check_vectors(self) -> None:
        made_with = self._rows(rows.fingerprint, "SELECT value FROM meta WHERE key = 'fingerprint'")
        dimension = made_with[0].get("dimension", "") if made_with else ""
        last, sql = -1, "SELECT chunk, data FROM vectors WHERE chunk > :last ORDER BY chunk LIMIT 4096"
        while ids := self._rows(rows.number, sql.replace(", data", ""), last=last):
            found = self._rows(rows.vector, sql, last=last)
            if dimension and any(len(numbers) != 4 * int(dimension) for _, numbers in found):
                self._add(f"Some vectors do not have {dimension} numbers.")
            if ids[-1] <= last:
                self._add("The vectors are not in order.")
                return
            last = ids[-1]

    def _check_paper_vectors(self) -> None:
        made_with = self._rows(rows.fingerprint, "SELECT value FROM meta WHERE key = 'fingerprint'")
        dimension = int(made_with[0].get("dimension", "0")) if made_with else 0
        if len(self._rows(int, "SELECT value FROM meta WHERE key = 'described'")) != 1:
            self._add("The number of changes to what is known about papers is missing.")
        found = self._rows(paper_vectors.row, f"SELECT {paper_vectors.COLUMNS} FROM paper_vectors")
        if dimension and any(len(each.vector) != dimension for _, each in found):
            self._add(f"Some vectors of papers do not have {dimension} numbers.")

    def _rows(self, make: Callable[..., T], sql: str, **values: object) -> list[T]:
        """make(*row) of each sound row; what is wrong with the others is noted."""
        made: list[T] = []
        try:
            for row in self._database.query(sql, **values):
                try:
                    with self._database.rows_expected():
                        made.append(make(*row))
                except StoreDamaged as error:
                    self._add(error.happened)
        except StoreDamaged as error:
            self._add(error.happened)
        return made

    def _add(self, fault: str) -> None:
        self._found[fault] = None
