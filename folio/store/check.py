"""Checks a whole library, its structure and its rows, and lists the faults, one sentence each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from folio.errors import StoreDamaged
from folio.store import citation_names, instructions, notes, projects, query_log, readings, rows, tables, works
from folio.store.database import Database, Part
from folio.store.rows import text_hash

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


def _conversation(*row: object) -> None:
    """From id, title, begun, updated. Raises ValueError."""
    _, _, begun, updated = map(rows.string, row)
    for time in (begun, updated):
        datetime.fromisoformat(time)


def _answering(conversation: object, place: object, server: object, until: object, stops: object) -> None:
    """From the columns of `answering`. Raises ValueError."""
    rows.string(conversation), rows.string(server), rows.number(place), rows.number(stops)
    datetime.fromisoformat(rows.string(until))


USER_TABLES = {
    "queries": UserTable(query_log.logged, query_log.COLUMNS, "id, asked", "question"),
    "turns": UserTable(rows.turn, rows.TURN_COLUMNS, "id, conversation, place"),
    "conversations": UserTable(_conversation, "id, title, begun, updated", "id"),
    "pins": UserTable(rows.string, "conversation", "conversation"),
    "answering": UserTable(_answering, "conversation, place, server, until, stops", "conversation"),
    "table_fills": UserTable(tables.fill_of_row, tables.FILL_COLUMNS, "table_id, column_id, paper"),
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
    "note_origins": UserTable(notes.note_origin, notes.ORIGIN_COLUMNS, "note"),
    "evidence_tables": UserTable(tables.table_of_row, tables.TABLE_COLUMNS, "id"),
    "table_columns": UserTable(tables.column_of_row, tables.COLUMN_COLUMNS, "id"),
    "table_rows": UserTable(tables.row_of_row, tables.ROW_COLUMNS, "table_id, paper"),
    "table_cells": UserTable(tables.cell_of_row, tables.CELL_COLUMNS, "column_id, paper"),
    "projects": UserTable(projects.project, projects.PROJECT_COLUMNS, "id"),
    "project_members": UserTable(projects.member, projects.MEMBER_COLUMNS, "project, kind, item"),
    "query_scopes": UserTable(query_log.logged_scope, query_log.SCOPE_COLUMNS, "query"),
    "instructions": UserTable(instructions.instruction, instructions.INSTRUCTION_COLUMNS, "id"),
    "project_instructions": UserTable(instructions.project_instruction, instructions.CHOICE_COLUMNS, "project"),
    "opened_citations": UserTable(query_log.opened_citation, query_log.OPENED_COLUMNS, "query, paper, page"),
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
