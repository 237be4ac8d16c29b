"""The SQLite file: papers, their text, chunks, vectors. The only truth; FAISS and BM25 are derived from it.

A paper lands in one transaction, which also raises the generation. Readers take a snapshot (`reading`) and see one
whole generation, whatever a writer does meanwhile (SQLite's write-ahead log).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from folio.errors import IndexDamaged
from folio.store.database import Database
from folio.types import Chunk, Failure, NewPaper, PageMap, Paper, Passage, SourceFile, Stamp, Vectors

# All that is shown of papers
_ABOUT = """
    SELECT id, (SELECT name FROM files WHERE paper = p.id ORDER BY rowid LIMIT 1), title, authors, year,
        starts, labels, length, (SELECT count(*) FROM chunks WHERE paper = p.id), problems, arxiv
    FROM papers p INDEXED BY papers_about"""
# What the papers are made into; the log of questions is in the same file, and is not of them.
_TABLES = ("papers", "files", "failures", "chunks", "vectors", "removed")


def text_hash(text: str) -> bytes:
    """16 bytes that stand for a passage's text: a text that has been embedded once is not embedded again."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Library:
    """The library of one store. Raises StoreMissing, StoreDamaged, StoreMismatch and DiskFull, no SQLite error."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """create: make it where there is none; only who has the writer's place may. Else StoreMissing is raised."""
        self.path = path
        first_rows = (("epoch", uuid.uuid4().hex), ("generation", "0"))
        self.database = Database(path, first_rows, create=create)  # where the log of questions is kept too
        self._rows = self.database.rows

    def close(self) -> None:
        self.database.close()

    @contextmanager
    def reading(self) -> Iterator[Stamp]:
        """A snapshot: everything read inside belongs to the generation that this yields."""
        with self.database.snapshot():
            yield self._stamp()

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """One transaction under a new generation, all or nothing."""
        with self.database.transaction():
            generation = self._stamp().generation + 1
            self._rows("UPDATE meta SET value = ? WHERE key = 'generation'", str(generation))
            yield generation

    def _stamp(self) -> Stamp:
        meta = dict(self._rows("SELECT key, value FROM meta WHERE key IN ('epoch', 'generation')"))
        return Stamp(meta["epoch"], int(meta["generation"]))

    # What the store was made with

    def fingerprint(self) -> dict[str, str]:
        """Empty in a new store."""
        rows = self._rows("SELECT value FROM meta WHERE key = 'fingerprint'")
        return dict(json.loads(rows[0][0])) if rows else {}

    def set_fingerprint(self, fingerprint: dict[str, str]) -> None:
        self._rows("INSERT OR REPLACE INTO meta VALUES ('fingerprint', ?)", json.dumps(fingerprint, sort_keys=True))

    # Reading

    def papers(self) -> list[Paper]:
        """Every paper, in the order of the names that people see."""
        papers = [_paper(row) for row in self._rows(_ABOUT)]
        return sorted(papers, key=lambda paper: (paper.file, paper.id))

    def papers_by_id(self, ids: Iterable[str]) -> list[Paper]:
        """The papers of these ids, named by the first of their files; an id that is not here is left out."""
        return [_paper(row) for paper in ids for row in self._rows(f"{_ABOUT} WHERE id = ?", paper)]

    def files(self) -> list[SourceFile]:
        """Every file that is in the library, in the order in which they were added."""
        return [_file(row) for row in self._rows("SELECT path, name, paper FROM files ORDER BY rowid")]

    def failures(self) -> list[Failure]:
        rows = self._rows("SELECT path, name, sha256, happened, remedy FROM failures ORDER BY path")
        return [Failure(_file(row[:3]), row[3], row[4]) for row in rows]

    def added(self) -> dict[str, str]:
        """Paper id -> when it was added, as an ISO time in UTC."""
        return dict(self._rows("SELECT id, added FROM papers"))

    def chunks(self, ids: Iterable[int]) -> dict[int, Chunk]:
        """The chunks of these ids; an id that is not in the library is left out."""
        found = {}
        for chunk_id in ids:
            for row in self._rows('SELECT id, paper, start, "end" FROM chunks WHERE id = ?', chunk_id):
                found[chunk_id] = _chunk(row)
        return found

    def chunk_ids(self, since: int = -1) -> set[int]:
        """The ids of the chunks added after a generation."""
        return {row[0] for row in self._rows("SELECT id FROM chunks WHERE generation > ?", since)}

    def chunk_ids_of(self, papers: Iterable[str]) -> list[int]:
        """The ids of every chunk of these papers."""
        return [row[0] for paper in papers for row in self._rows("SELECT id FROM chunks WHERE paper = ?", paper)]

    def text(self, paper: str, start: int, end: int) -> str:
        """The characters [start, end) of a paper's text."""
        rows = self._rows("SELECT substr(text, ?, ?) FROM papers WHERE id = ?", start + 1, end - start, paper)
        return str(rows[0][0]) if rows else ""

    def counts(self) -> dict[str, int]:
        """Rows a table."""
        return {table: self._rows(f"SELECT count(*) FROM {table}")[0][0] for table in _TABLES}

    def chunk_count(self) -> int:
        return int(self._rows("SELECT value FROM meta WHERE key = 'chunks'")[0][0])

    def _count(self, more: int) -> None:
        self._rows("UPDATE meta SET value = value + ? WHERE key = 'chunks'", more)

    def vectors(self, batch: int = 4096) -> Iterator[tuple[list[int], Vectors]]:
        """Every chunk's id and vector, shape (n, dimension), in batches."""
        last, sql = -1, "SELECT chunk, data FROM vectors WHERE chunk > ? ORDER BY chunk LIMIT ?"
        while rows := self._rows(sql, last, batch):
            last = rows[-1][0]
            yield [row[0] for row in rows], np.stack([_vector(row[1]) for row in rows])

    def vectors_of(self, ids: Sequence[int]) -> Vectors:
        """The vectors of these chunks, at least one, in this order: shape (len(ids), dimension).

        Raises IndexDamaged for an id that has none: it came from an index of another library.
        """
        sql = "SELECT chunk, data FROM vectors WHERE chunk IN (SELECT value FROM json_each(?))"
        found = dict(self._rows(sql, json.dumps(list(ids))))
        try:
            data = b"".join([found[chunk] for chunk in ids])
        except KeyError as error:
            raise IndexDamaged(f"The index names a chunk that is not in the library: {error.args[0]}.") from error
        return np.frombuffer(data, dtype="<f4").astype(np.float32, copy=False).reshape(len(ids), -1)

    def passages(self, since: int = -1) -> Iterator[Passage]:
        """The chunks added after a generation, with their text."""
        sql = "SELECT id, title FROM papers INDEXED BY papers_generation WHERE generation > ? ORDER BY id"
        for paper, title in self._rows(sql, since):
            text = self._rows("SELECT text FROM papers WHERE id = ?", paper)[0][0]
            rows = self._rows('SELECT id, paper, start, "end" FROM chunks WHERE paper = ? ORDER BY start', paper)
            for chunk in map(_chunk, rows):
                yield Passage(chunk.id, chunk.paper_id, title, text[chunk.start : chunk.end])

    def removed(self, since: int) -> list[int]:
        """Ids of the chunks taken out after a generation. One may have come back since."""
        return [row[0] for row in self._rows("SELECT chunk FROM removed WHERE generation > ?", since)]

    # Writing

    def add(self, paper: NewPaper, file: SourceFile, chunk_ids: Sequence[int], vectors: Vectors) -> None:
        """Land a paper under this file's name, in one transaction; what the name held before goes in the same one.

        `vectors` has shape (len(paper.spans), dimension), rows of unit length, in the order of the spans.
        """
        with self._writing() as generation:
            self._drop_unheld(self._release([file.path]), generation)
            self._rows(
                "INSERT INTO papers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(paper.id, paper.title, json.dumps(paper.authors), paper.year, paper.text, len(paper.text)),
                *(json.dumps(paper.pages.starts), json.dumps(paper.pages.labels), json.dumps(paper.problems)),
                *(datetime.now(UTC).isoformat(timespec="seconds"), generation, paper.arxiv),
            )
            self._rows("INSERT INTO files VALUES (?, ?, ?)", file.path, file.name, paper.id)
            hashes = [text_hash(paper.text[start:end]) for start, end in paper.spans]
            self.database.many(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (chunk, paper.id, start, end, digest, generation)
                    for chunk, (start, end), digest in zip(chunk_ids, paper.spans, hashes, strict=True)
                ],
            )
            self.database.many(
                "INSERT INTO vectors VALUES (?, ?)",
                [(chunk, _blob(vector)) for chunk, vector in zip(chunk_ids, vectors, strict=True)],
            )
            self._count(len(hashes))
            self.database.many("DELETE FROM pending WHERE text_hash = ?", [(digest,) for digest in hashes])

    def link(self, files: Sequence[SourceFile], gone: Sequence[str] = ()) -> None:
        """Give papers that are already here these files too; `gone` are paths that no longer exist.

        In one transaction: files that swapped their names each hold what the other one held.
        """
        with self._writing() as generation:
            released = self._release([*(file.path for file in files), *gone])
            self.database.many("INSERT INTO files VALUES (?, ?, ?)", [(f.path, f.name, f.sha256) for f in files])
            self._drop_unheld(released, generation)

    def drop(self, path: str) -> None:
        """Take a file out, and its paper where no other file holds it."""
        with self._writing() as generation:
            self._drop_unheld(self._release([path]), generation)

    def record_failure(self, failure: Failure) -> None:
        """Remember a file that gave no text. The paper that its path held stays until a good file replaces it."""
        file = failure.file
        self._rows(
            "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?)",
            *(file.path, file.name, file.sha256, failure.happened, failure.remedy),
        )

    def forget_failure(self, path: str) -> None:
        """The file is readable after all."""
        self._rows("DELETE FROM failures WHERE path = ?", path)

    def _release(self, paths: Sequence[str]) -> set[str]:
        """Take paths out; returns the papers that they held."""
        held = {row[0] for path in paths for row in self._rows("SELECT paper FROM files WHERE path = ?", path)}
        self.database.many("DELETE FROM failures WHERE path = ?", [(path,) for path in paths])
        self.database.many("DELETE FROM files WHERE path = ?", [(path,) for path in paths])
        return held

    def _drop_unheld(self, papers: Iterable[str], generation: int) -> None:
        """Take out those of these papers that no file holds."""
        for paper in papers:
            if not self._rows("SELECT 1 FROM files WHERE paper = ?", paper):
                self._rows("INSERT INTO removed SELECT id, ? FROM chunks WHERE paper = ?", generation, paper)
                self._count(-self._rows("SELECT count(*) FROM chunks WHERE paper = ?", paper)[0][0])
                self._rows("DELETE FROM papers WHERE id = ?", paper)

    # Vectors on their way

    def recall(self, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The vectors of the passages among these that have been embedded before, in this library or half-way."""
        found: dict[bytes, Vectors] = {}
        for digest in set(hashes):
            rows = self._rows("SELECT data FROM pending WHERE text_hash = ?", digest) or self._rows(
                "SELECT v.data FROM chunks c JOIN vectors v ON v.chunk = c.id WHERE c.text_hash = ? LIMIT 1", digest
            )
            if rows:
                found[digest] = _vector(rows[0][0])
        return found

    def remember(self, hashes: Sequence[bytes], vectors: Vectors) -> None:
        """Keep vectors until their paper lands."""
        with self.database.transaction():
            rows = [(digest, _blob(vector)) for digest, vector in zip(hashes, vectors, strict=True)]
            self.database.many("INSERT OR REPLACE INTO pending VALUES (?, ?)", rows)

    def forget_pending(self) -> None:
        """Drop vectors whose paper never landed; no paper is in flight when this is called."""
        self._rows("DELETE FROM pending")

    # The whole

    def replace_with(self, other: Path) -> None:
        """Take over every paper from another library, in one transaction, under a new epoch; questions stay.

        The other one has been opened by this program: its tables have the same columns in the same order.
        """
        with self.database.attached(other, "other"), self.database.transaction():
            for table in reversed(_TABLES):
                self._rows(f"DELETE FROM main.{table}")
            for table in _TABLES:
                self._rows(f"INSERT INTO main.{table} SELECT * FROM other.{table}")
            self._rows("DELETE FROM main.pending")
            self._rows("INSERT OR REPLACE INTO main.meta SELECT key, value FROM other.meta WHERE key != 'epoch'")
            self._rows("UPDATE main.meta SET value = ? WHERE key = 'epoch'", uuid.uuid4().hex)

    def check(self) -> list[str]:
        """What is wrong inside the library, one sentence each; nothing when all is well."""
        problems = [row[0] for row in self._rows("PRAGMA integrity_check") if row[0] != "ok"]
        for row in self._rows("PRAGMA foreign_key_check"):
            problems.append(f"A row of {row[0]} belongs to nothing.")
        if self._rows("SELECT count(*) FROM chunks")[0][0] != self.chunk_count():
            problems.append("There are not as many chunks as were counted.")
        without = self._rows("SELECT count(*) FROM chunks WHERE id NOT IN (SELECT chunk FROM vectors)")[0][0]
        if without:
            problems.append(f"{without} chunks have no vector.")
        orphans = self._rows("SELECT count(*) FROM papers WHERE id NOT IN (SELECT paper FROM files)")[0][0]
        if orphans:
            problems.append(f"{orphans} papers belong to no file.")
        dimension = self.fingerprint().get("dimension", "")
        sizes = self._rows("SELECT DISTINCT length(data) FROM vectors")
        if dimension and any(row[0] != 4 * int(dimension) for row in sizes):
            problems.append(f"Some vectors do not have {dimension} numbers.")
        for paper, text, length in self._rows("SELECT id, text, length FROM papers"):
            if len(text) != length:
                problems.append(f"The text of paper {paper[:12]} has another length than recorded.")
            for chunk, start, end, digest in self._rows(
                'SELECT id, start, "end", text_hash FROM chunks WHERE paper = ?', paper
            ):
                if text_hash(text[start:end]) != digest:
                    problems.append(f"Chunk {chunk} of paper {paper[:12]} is not the text it was made from.")
        return problems


def _paper(row: tuple[Any, ...]) -> Paper:
    paper, file, title, authors, year, starts, labels, length, chunks, problems, arxiv = row
    pages = PageMap(tuple(json.loads(starts)), tuple(json.loads(labels)))
    people, odd = tuple(json.loads(authors)), tuple(json.loads(problems))
    return Paper(paper, file or paper[:12], title, people, year, pages, length, chunks, odd, arxiv)


def _file(row: Sequence[Any]) -> SourceFile:
    return SourceFile(row[0], row[1], row[2])


def _chunk(row: tuple[Any, ...]) -> Chunk:
    return Chunk(*row)


def _blob(vector: Vectors) -> bytes:
    return vector.astype("<f4").tobytes()


def _vector(blob: bytes) -> Vectors:
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)
