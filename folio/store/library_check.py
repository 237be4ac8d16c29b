"""Checks a whole library: its structure, and all that is in it. What is found is listed, one sentence each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from folio.errors import StoreDamaged
from folio.store import paper_vectors, query_log, rows, work_rows
from folio.store.database import Database, Part
from folio.store.digests import text_hash

T = TypeVar("T")

# Counts that must be 0, and what it means if they are not: {} is the count
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
class SaidTable:
    """A table of what a rebuild cannot make again."""

    make: Callable[..., object]  # of a row with these columns; raises ValueError
    columns: str
    key: str  # columns with the same values in the row of a copy
    or_else: str = ""  # a column that may stand in for the last one of the key, where no index tells that it is damaged


SAID = {
    "queries": SaidTable(query_log.logged, query_log.COLUMNS, "id, asked", "question"),
    "turns": SaidTable(rows.turn, rows.TURN_COLUMNS, "id, conversation, place"),
    "conversations": SaidTable(lambda *row: list(map(rows.string, row)), "id, title, begun, updated", "id"),
    "metadata": SaidTable(rows.metadata_layer, rows.METADATA_COLUMNS, "paper, source"),
    "works": SaidTable(work_rows.work, work_rows.WORK_COLUMNS, "id"),
    "citations": SaidTable(work_rows.citation, work_rows.CITATION_COLUMNS, "citing, cited"),
    "paper_works": SaidTable(work_rows.paper_work, work_rows.PAPER_WORK_COLUMNS, "paper"),
    "notices": SaidTable(work_rows.notice, work_rows.NOTICE_COLUMNS, "work, kind, link, source"),
}


class LibraryCheck:
    """Collects the faults of a library, one sentence each; a fault in one row does not hide the others."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: dict[str, None] = {}

    def structure(self) -> list[str]:
        """The faults of the structure of what is made from the PDFs.

        Raises StoreError where it cannot be read, which is no fault of what is in it.
        """
        self._check_structure("library")
        meta = dict(self._rows(rows.text_pair, "SELECT key, value FROM meta"))
        self._rows(lambda _: rows.stamp(meta), "SELECT 1")
        return list(self._found)

    def _check_structure(self, part: Part) -> None:
        try:
            self._found |= dict.fromkeys(self._database.faults(part))
        except StoreDamaged as error:
            self._add(error.happened)

    def everything(self) -> list[str]:
        """All faults; reads the whole library, and what people and services said."""
        self.made_from_pdfs()
        self._check_structure("user")
        if not {"version", "said"} <= dict(self._rows(rows.text_pair, "SELECT key, value FROM kept")).keys():
            self._add("What is known of your questions, conversations and edits as a whole is missing.")
        for name, table in SAID.items():
            self._rows(table.make, f"SELECT {table.columns} FROM {name}")
        return list(self._found)

    def made_from_pdfs(self) -> list[str]:
        """The faults of what a rebuild makes again."""
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
        found = self._rows(paper_vectors.row, "SELECT paper, text_hash, data FROM paper_vectors")
        if dimension and any(len(each.vector) != dimension for _, each in found):
            self._add(f"Some vectors of papers do not have {dimension} numbers.")
        return list(self._found)

    def _check_text(self, paper: str) -> None:
        """A paper's text, and that its chunks are made of it."""
        sql = "SELECT id, text, text_crc, length FROM papers JOIN texts ON texts.paper = id WHERE id = :paper"
        chunks = f"SELECT {rows.CHUNK_COLUMNS} FROM chunks WHERE paper = :paper"
        for text, length in self._rows(_text_and_length, sql, paper=paper):
            if len(text) != length:
                self._add(f"The text of paper {paper[:12]} does not have its recorded length.")
            for chunk, written in self._rows(rows.chunk, chunks, paper=paper):
                if text_hash(text[chunk.start : chunk.end]) != written:
                    self._add(f"Passage {chunk.id} of paper {paper[:12]} does not match the text it was made from.")

    def _check_vectors(self, dimension: int) -> None:
        last, sql = -1, "SELECT chunk, data FROM vectors WHERE chunk > :last ORDER BY chunk LIMIT 4096"
        while ids := self._rows(rows.number, sql.replace(", data", ""), last=last):
            found = self._rows(rows.vector, sql, last=last)
            if dimension and any(len(numbers) != 4 * dimension for _, numbers in found):
                self._add(f"Some vectors do not have {dimension} numbers.")
            if ids[-1] <= last:
                self._add("The vectors are not in order.")
                return
            last = ids[-1]

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


def _text_and_length(paper: object, text: object, crc: object, length: object) -> tuple[str, int]:
    return rows.text(paper, text, crc)[1], rows.number(length)
