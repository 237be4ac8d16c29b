"""The SQLite library: papers, their text, chunks and vectors. FAISS and BM25 are derived from it.

Each paper is added in one transaction, which also increments the generation. Readers take a snapshot (`reading`) and
see one complete generation, even while a writer works (SQLite's write-ahead log).
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

# Everything shown about papers
_SELECT_PAPERS = """
    SELECT id, (SELECT min(name) FROM files WHERE paper = p.id), title, authors, year,
        starts, labels, length, (SELECT count(*) FROM chunks WHERE paper = p.id), problems, arxiv
    FROM papers p INDEXED BY papers_about"""
# The tables made from papers; the query log and conversations are in the same file, but are not among them.
_PAPER_TABLES = ("papers", "files", "failures", "chunks", "vectors", "removed")

_INSERT_FILE = "INSERT INTO files VALUES (:path, :name, :paper)"


def text_hash(text: str) -> bytes:
    """A 16-byte hash of a passage's text, so that each text is embedded only once."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Library:
    """The library of one store. Raises StoreError's subclasses and DiskFull, never SQLite's own errors."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """create: create a missing library, for callers that hold the writer lock; otherwise StoreMissing is raised."""
        self.path = path
        first_rows = (("epoch", uuid.uuid4().hex), ("generation", "0"))
        self.database = Database(path, first_rows, create=create)  # shared with the query log
        self._query = self.database.query
        self._execute = self.database.execute

    def close(self) -> None:
        self.database.close()

    @contextmanager
    def reading(self) -> Iterator[Stamp]:
        """A snapshot: everything read inside belongs to the generation yielded."""
        with self.database.snapshot():
            yield self._stamp()

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """A transaction that increments the generation, which it yields."""
        with self.database.transaction():
            generation = self._stamp().generation + 1
            self._execute("UPDATE meta SET value = :generation WHERE key = 'generation'", generation=str(generation))
            yield generation

    def _stamp(self) -> Stamp:
        meta = dict(self._query("SELECT key, value FROM meta WHERE key IN ('epoch', 'generation')"))
        return Stamp(meta["epoch"], int(meta["generation"]))

    # What the store was made with

    def fingerprint(self) -> dict[str, str]:
        """Empty in a new store."""
        rows = self._query("SELECT value FROM meta WHERE key = 'fingerprint'")
        return dict(json.loads(rows[0][0])) if rows else {}

    def set_fingerprint(self, fingerprint: dict[str, str]) -> None:
        value = json.dumps(fingerprint, sort_keys=True)
        self._execute("INSERT OR REPLACE INTO meta VALUES ('fingerprint', :value)", value=value)

    # Reading

    def papers(self) -> list[Paper]:
        """Every paper, sorted by file name."""
        papers = [_paper(row) for row in self._query(_SELECT_PAPERS)]
        return sorted(papers, key=lambda paper: (paper.file, paper.id))

    def papers_by_id(self, ids: Iterable[str]) -> list[Paper]:
        """The papers with these ids, each named after the first of its files by name; unknown ids are skipped."""
        sql = f"{_SELECT_PAPERS} WHERE id = :paper"
        return [_paper(row) for paper in ids for row in self._query(sql, paper=paper)]

    def files(self) -> list[SourceFile]:
        """Every file in the library, in the order they were added."""
        return [_file(row) for row in self._query("SELECT path, name, paper FROM files ORDER BY rowid")]

    def failures(self) -> list[Failure]:
        rows = self._query("SELECT path, name, sha256, happened, remedy FROM failures ORDER BY path")
        return [Failure(_file(row[:3]), row[3], row[4]) for row in rows]

    def added(self) -> dict[str, str]:
        """Paper id -> time it was added (ISO, UTC)."""
        return dict(self._query("SELECT id, added FROM papers"))

    def chunks(self, ids: Iterable[int]) -> dict[int, Chunk]:
        """The chunks with these ids; unknown ids are skipped."""
        sql = 'SELECT id, paper, start, "end" FROM chunks WHERE id = :id'
        return {row[0]: _chunk(row) for chunk_id in ids for row in self._query(sql, id=chunk_id)}

    def chunk_ids(self, since: int = -1) -> set[int]:
        """The ids of the chunks added after a generation."""
        return {row[0] for row in self._query("SELECT id FROM chunks WHERE generation > :since", since=since)}

    def chunk_ids_of(self, papers: Iterable[str]) -> list[int]:
        """The ids of these papers' chunks."""
        sql = "SELECT id FROM chunks WHERE paper = :paper"
        return [row[0] for paper in papers for row in self._query(sql, paper=paper)]

    def text(self, paper: str, start: int, end: int) -> str:
        """The characters [start, end) of a paper's text."""
        sql = "SELECT substr(text, :first, :length) FROM papers WHERE id = :paper"
        rows = self._query(sql, first=start + 1, length=end - start, paper=paper)
        return str(rows[0][0]) if rows else ""

    def counts(self) -> dict[str, int]:
        """Table -> its number of rows."""
        return {table: self._query(f"SELECT count(*) FROM {table}")[0][0] for table in _PAPER_TABLES}

    def chunk_count(self) -> int:
        return int(self._query("SELECT value FROM meta WHERE key = 'chunks'")[0][0])

    def _add_to_chunk_count(self, change: int) -> None:
        self._execute("UPDATE meta SET value = value + :change WHERE key = 'chunks'", change=change)

    def vectors(self, batch: int = 4096) -> Iterator[tuple[list[int], Vectors]]:
        """Every chunk's id and vector, shape (n, dimension), in batches."""
        last, sql = -1, "SELECT chunk, data FROM vectors WHERE chunk > :last ORDER BY chunk LIMIT :batch"
        while rows := self._query(sql, last=last, batch=batch):
            last = rows[-1][0]
            yield [row[0] for row in rows], np.stack([_vector(row[1]) for row in rows])

    def vectors_of(self, ids: Sequence[int]) -> Vectors:
        """The vectors of one or more chunks, in this order: shape (len(ids), dimension).

        Raises IndexDamaged for an unknown id: it came from another library's index.
        """
        sql = "SELECT chunk, data FROM vectors WHERE chunk IN (SELECT value FROM json_each(:ids))"
        found = dict(self._query(sql, ids=json.dumps(list(ids))))
        try:
            data = b"".join([found[chunk] for chunk in ids])
        except KeyError as error:
            raise IndexDamaged(f"The index names a passage that is not in the library: {error.args[0]}.") from error
        return np.frombuffer(data, dtype="<f4").astype(np.float32, copy=False).reshape(len(ids), -1)

    def passages(self, since: int = -1) -> Iterator[Passage]:
        """The chunks added after a generation, with their text."""
        papers = "SELECT id, title FROM papers INDEXED BY papers_generation WHERE generation > :since ORDER BY id"
        chunks = 'SELECT id, paper, start, "end" FROM chunks WHERE paper = :paper ORDER BY start'
        for paper, title in self._query(papers, since=since):
            text = self._query("SELECT text FROM papers WHERE id = :paper", paper=paper)[0][0]
            for chunk in map(_chunk, self._query(chunks, paper=paper)):
                yield Passage(chunk.id, chunk.paper_id, title, text[chunk.start : chunk.end])

    def removed(self, since: int) -> list[int]:
        """Ids of the chunks removed after a generation. Some may have been added again since."""
        return [row[0] for row in self._query("SELECT chunk FROM removed WHERE generation > :since", since=since)]

    # Writing

    def add(self, paper: NewPaper, file: SourceFile, chunk_ids: Sequence[int], vectors: Vectors) -> None:
        """Add a paper under this file's path, replacing what the path held before, in one transaction.

        `vectors` has shape (len(paper.spans), dimension), rows of unit length, in the order of the spans.
        """
        with self._writing() as generation:
            self._drop_orphans(self._release([file.path]), generation)
            self._insert_paper(paper, generation)
            self._execute(_INSERT_FILE, path=file.path, name=file.name, paper=paper.id)
            hashes = [text_hash(paper.text[start:end]) for start, end in paper.spans]
            self.database.execute_many(
                "INSERT INTO chunks VALUES (:id, :paper, :start, :end, :text_hash, :generation)",
                [
                    {
                        "id": chunk,
                        "paper": paper.id,
                        "start": start,
                        "end": end,
                        "text_hash": digest,
                        "generation": generation,
                    }
                    for chunk, (start, end), digest in zip(chunk_ids, paper.spans, hashes, strict=True)
                ],
            )
            self.database.execute_many(
                "INSERT INTO vectors VALUES (:chunk, :data)",
                [{"chunk": chunk, "data": _blob(vector)} for chunk, vector in zip(chunk_ids, vectors, strict=True)],
            )
            self._add_to_chunk_count(len(hashes))
            done = [{"text_hash": digest} for digest in hashes]
            self.database.execute_many("DELETE FROM pending WHERE text_hash = :text_hash", done)

    def _insert_paper(self, paper: NewPaper, generation: int) -> None:
        self._execute(
            "INSERT INTO papers VALUES (:id, :title, :authors, :year, :text, :length, :starts, :labels, :problems,"
            " :added, :generation, :arxiv)",
            id=paper.id,
            title=paper.title,
            authors=json.dumps(paper.authors),
            year=paper.year,
            text=paper.text,
            length=len(paper.text),
            starts=json.dumps(paper.pages.starts),
            labels=json.dumps(paper.pages.labels),
            problems=json.dumps(paper.problems),
            added=datetime.now(UTC).isoformat(timespec="seconds"),
            generation=generation,
            arxiv=paper.arxiv,
        )

    def link(self, files: Sequence[SourceFile], gone: Sequence[str] = ()) -> None:
        """Link these files to papers that are already in the library; `gone` are paths that no longer exist.

        It is one transaction, so that two files may swap their names.
        """
        with self._writing() as generation:
            released = self._release([*(file.path for file in files), *gone])
            rows = [{"path": file.path, "name": file.name, "paper": file.sha256} for file in files]
            self.database.execute_many(_INSERT_FILE, rows)
            self._drop_orphans(released, generation)

    def drop(self, path: str) -> None:
        """Remove a file, and its paper unless another file holds the same one."""
        with self._writing() as generation:
            self._drop_orphans(self._release([path]), generation)

    def record_failure(self, failure: Failure) -> None:
        """Record a file that could not be read. A paper read earlier from the same path stays."""
        self._execute(
            "INSERT OR REPLACE INTO failures VALUES (:path, :name, :sha256, :happened, :remedy)",
            path=failure.file.path,
            name=failure.file.name,
            sha256=failure.file.sha256,
            happened=failure.happened,
            remedy=failure.remedy,
        )

    def forget_failure(self, path: str) -> None:
        """Delete a file's failure record."""
        self._execute("DELETE FROM failures WHERE path = :path", path=path)

    def _release(self, paths: Sequence[str]) -> set[str]:
        """Remove paths; returns the papers that they held."""
        sql = "SELECT paper FROM files WHERE path = :path"
        papers = {row[0] for path in paths for row in self._query(sql, path=path)}
        rows = [{"path": path} for path in paths]
        self.database.execute_many("DELETE FROM failures WHERE path = :path", rows)
        self.database.execute_many("DELETE FROM files WHERE path = :path", rows)
        return papers

    def _drop_orphans(self, papers: Iterable[str], generation: int) -> None:
        """Remove those of these papers that no longer have a file."""
        for paper in papers:
            if not self._query("SELECT 1 FROM files WHERE paper = :paper", paper=paper):
                sql = "INSERT INTO removed SELECT id, :generation FROM chunks WHERE paper = :paper"
                self._execute(sql, generation=generation, paper=paper)
                chunks = self._query("SELECT count(*) FROM chunks WHERE paper = :paper", paper=paper)[0][0]
                self._add_to_chunk_count(-chunks)
                self._execute("DELETE FROM papers WHERE id = :paper", paper=paper)

    # Vectors of papers that are still being embedded

    def recall(self, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The vectors already computed for texts with these hashes, for finished papers or pending ones."""
        pending = "SELECT data FROM pending WHERE text_hash = :digest"
        finished = "SELECT v.data FROM chunks c JOIN vectors v ON v.chunk = c.id WHERE c.text_hash = :digest LIMIT 1"
        found: dict[bytes, Vectors] = {}
        for digest in set(hashes):
            rows = self._query(pending, digest=digest) or self._query(finished, digest=digest)
            if rows:
                found[digest] = _vector(rows[0][0])
        return found

    def remember(self, hashes: Sequence[bytes], vectors: Vectors) -> None:
        """Keep vectors until their paper is added."""
        with self.database.transaction():
            rows = [{"hash": digest, "data": _blob(vector)} for digest, vector in zip(hashes, vectors, strict=True)]
            self.database.execute_many("INSERT OR REPLACE INTO pending VALUES (:hash, :data)", rows)

    def forget_pending(self) -> None:
        """Delete the vectors of papers that were never added. Call it when no paper is being embedded."""
        self._execute("DELETE FROM pending")

    # The whole library

    def replace_with(self, other: Path) -> None:
        """Replace all papers with another library's, in one transaction, under a new epoch; questions stay.

        The other library must have been opened by this version, so that its tables have the same columns.
        """
        with self.database.attached(other, "other"), self.database.transaction():
            for table in reversed(_PAPER_TABLES):
                self._execute(f"DELETE FROM main.{table}")
            for table in _PAPER_TABLES:
                self._execute(f"INSERT INTO main.{table} SELECT * FROM other.{table}")
            self._execute("DELETE FROM main.pending")
            self._execute("INSERT OR REPLACE INTO main.meta SELECT key, value FROM other.meta WHERE key != 'epoch'")
            self._execute("UPDATE main.meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)

    def check(self) -> list[str]:
        """The faults found inside the library, one sentence each."""
        problems = [row[0] for row in self._query("PRAGMA integrity_check") if row[0] != "ok"]
        for row in self._query("PRAGMA foreign_key_check"):
            problems.append(f"A row of table {row[0]} refers to a missing row.")
        if self._query("SELECT count(*) FROM chunks")[0][0] != self.chunk_count():
            problems.append("The number of passages differs from the recorded count.")
        without = self._query("SELECT count(*) FROM chunks WHERE id NOT IN (SELECT chunk FROM vectors)")[0][0]
        if without:
            problems.append(f"{without} passages have no vector.")
        orphans = self._query("SELECT count(*) FROM papers WHERE id NOT IN (SELECT paper FROM files)")[0][0]
        if orphans:
            problems.append(f"{orphans} papers have no file.")
        dimension = self.fingerprint().get("dimension", "")
        sizes = self._query("SELECT DISTINCT length(data) FROM vectors")
        if dimension and any(row[0] != 4 * int(dimension) for row in sizes):
            problems.append(f"Some vectors do not have {dimension} numbers.")
        for paper, text, length in self._query("SELECT id, text, length FROM papers"):
            if len(text) != length:
                problems.append(f"The text of paper {paper[:12]} does not have its recorded length.")
            chunks = 'SELECT id, start, "end", text_hash FROM chunks WHERE paper = :paper'
            for chunk, start, end, digest in self._query(chunks, paper=paper):
                if text_hash(text[start:end]) != digest:
                    problems.append(f"Passage {chunk} of paper {paper[:12]} does not match the text it was made from.")
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
