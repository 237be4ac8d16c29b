"""The SQLite library: papers, their text, chunks and vectors. FAISS and BM25 are derived from it.

Each paper is added in one transaction, which also increments the generation. Readers take a snapshot (`reading`) and
see one complete generation, even while a writer works (SQLite's write-ahead log).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from folio.citation_label import CitationStyle
from folio.files import identity
from folio.paper_metadata import NO_METADATA, Metadata, Source, merged
from folio.store import citation_labels, fine_passages, metadata_layers, paper_rows, paper_vectors, rows, vector_rows
from folio.store.checked_texts import CheckedTexts
from folio.store.database import Database
from folio.store.digests import text_crc, text_hash
from folio.store.fine_passages import ONLY
from folio.store.library_check import LibraryCheck
from folio.store.notices import attached, attached_to_all
from folio.store.paper_vectors import PaperVector
from folio.store.rows import Passage, Stamp
from folio.store.sole_writer import SoleWriter
from folio.types import Chunk, Failure, Grain, NewPaper, Paper, SourceFile, Vectors

# The tables made from papers; the query log and conversations are in the same file, but are not among them.
PAPER_TABLES = ("papers", "files", "failures", "chunks", "vectors", "removed")

_INSERT_FILE = "INSERT INTO files VALUES (:path, :name, :paper, row_digest('files', :path, :name, :paper))"


class Library(SoleWriter):
    """The library of one store. Raises StoreError's subclasses and DiskFull, never SQLite's own errors."""

    def __init__(
        self,
        path: Path,
        *,
        create: bool = False,
        citation_style: CitationStyle = "author-year",
        only_read: bool = False,
    ) -> None:
        """create: create a missing library, for callers that hold the writer lock; otherwise StoreMissing is raised.

        only_read: see Database.
        """
        self._citation_style = citation_style  # what its papers are cited by
        self.path, self.filters = path, None  # filters: see PaperStore
        first_rows = (("epoch", uuid.uuid4().hex), ("generation", "0"))
        self.database = Database(path, first_rows, create=create, only_read=only_read)  # shared with the query log
        self._query, self._read, self._execute = self.database.query, self.database.read, self.database.execute
        self._texts = CheckedTexts()

    def close(self) -> None:
        self.database.close()

    @property
    def is_read_only(self) -> bool:
        """See PaperStore."""
        return self.database.is_read_only

    @contextmanager
    def changing_works(self) -> Iterator[Database]:
        """See PaperStore."""
        with self.database.transaction():
            yield self.database

    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the file that is there now."""
        return identity(self.path)

    @contextmanager
    def reading(self) -> Iterator[Stamp]:
        """A snapshot: everything read inside belongs to the generation yielded."""
        with self.database.snapshot():
            yield self._stamp()

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """A transaction that increments the generation, which it yields."""
        with self.database.transaction():
            yield self._next_generation()

    def _next_generation(self) -> int:
        generation = self._stamp().generation + 1
        self._execute("UPDATE meta SET value = :generation WHERE key = 'generation'", generation=str(generation))
        return generation

    def _stamp(self) -> Stamp:
        pairs = self._query("SELECT key, value FROM meta WHERE key IN ('epoch', 'generation')")
        with self.database.rows_expected():
            return rows.stamp(*pairs)

    # What the store was made with

    def fingerprint(self) -> dict[str, str]:
        """Empty in a new store."""
        found = self._read(rows.fingerprint, "SELECT value FROM meta WHERE key = 'fingerprint'")
        return found[0] if found else {}

    def set_fingerprint(self, fingerprint: dict[str, str]) -> None:
        value = json.dumps(fingerprint, sort_keys=True)
        self._execute("INSERT OR REPLACE INTO meta VALUES ('fingerprint', :value)", value=value)

    # Reading

    def papers(self) -> list[Paper]:
        """Every paper, sorted by file name."""
        papers = sorted(self._read(rows.paper, rows.SELECT_PAPERS), key=lambda paper: (paper.file, paper.id))
        return citation_labels.name_all(attached_to_all(self.database, papers), self._citation_style)

    def papers_by_id(self, ids: Iterable[str]) -> list[Paper]:
        """See PaperStore. Each is named after the first of its files by name."""
        sql = f"{rows.SELECT_PAPERS} WHERE id = :paper"
        papers = [found for paper in ids for found in self._read(rows.paper, sql, paper=paper)]
        return citation_labels.name(self.database, attached(self.database, papers), self._citation_style)

    def files(self) -> list[SourceFile]:
        """Every file in the library, in the order they were added."""
        return self._read(rows.source_file, "SELECT path, name, paper, digest FROM files ORDER BY rowid")

    def failures(self) -> list[Failure]:
        columns = "path, name, sha256, happened, remedy, digest"
        return self._read(rows.failure, f"SELECT {columns} FROM failures ORDER BY path")

    def added(self) -> dict[str, str]:
        """Paper id -> time it was added (ISO, UTC)."""
        return dict(self._read(rows.text_pair, "SELECT id, added FROM papers INDEXED BY papers_about"))

    def chunks(self, ids: Iterable[int]) -> dict[int, Chunk]:
        """The chunks with these ids; unknown ids are skipped. Their text is neither read nor checked."""
        found = [self._read(rows.chunk, f"{rows.SELECT_CHUNKS} WHERE id = :id", id=chunk_id) for chunk_id in ids]
        return {chunk.id: chunk for each in found for chunk, _ in each}

    def read_chunks(self, ids: Sequence[int]) -> list[tuple[Chunk, Paper, str]]:
        """See PaperStore. Raises StoreDamaged."""
        with self.database.snapshot():
            read = [self._read(rows.chunk, f"{rows.SELECT_CHUNKS} WHERE id = :id", id=id) for id in ids]
            chunks = [self._checked(chunk, digest) for each in read for chunk, digest in each]
            papers = {paper.id: paper for paper in self.papers_by_id({chunk.paper_id for chunk, _ in chunks})}
            if len(chunks) < len(ids) or any(chunk.paper_id not in papers for chunk, _ in chunks):
                raise self.database.damaged("a passage or its paper is missing")
            return [(chunk, papers[chunk.paper_id], text) for chunk, text in chunks]

    def _checked(self, chunk: Chunk, digest: bytes) -> tuple[Chunk, str]:
        """The chunk and its text. Raises StoreDamaged if that is not the text that it was made of."""
        text = self.text(chunk.paper_id, chunk.start, chunk.end)
        if text_hash(text) != digest:
            raise self.database.damaged(f"passage {chunk.id} is not the text that was stored")
        return chunk, text

    @property
    def is_dual(self) -> bool:
        """Whether it was made with fine passages (INDEX=dual)."""
        return self.fingerprint().get("index") == "dual"

    def chunk_ids(self, since: int = -1, grain: Grain = "passage") -> set[int]:
        """The ids of the chunks added after a generation."""
        sql = f"SELECT id FROM chunks WHERE generation > :since AND {ONLY[grain]}"
        return set(self._read(rows.number, sql, since=since))

    def chunk_ids_of(self, papers: Iterable[str]) -> list[int]:
        """The ids of these papers' passages."""
        sql = f"SELECT id FROM chunks WHERE paper = :paper AND {ONLY['passage']}"
        return [chunk for paper in papers for chunk in self._read(rows.number, sql, paper=paper)]

    def fine_ids_in(self, passages: Sequence[int]) -> list[int]:
        """The ids of the fine passages in these passages."""
        return fine_passages.ids_in(self.database, passages)

    def fine_in(self, passages: Iterable[int]) -> dict[int, list[Chunk]]:
        """The fine passages in each of these passages, see fine_passages.read_in; unknown ids are skipped."""
        with self.database.snapshot():
            return fine_passages.read_in(self.database, self.chunks(passages))

    def text(self, paper: str, start: int, end: int) -> str:
        """The characters [start, end) of a paper's text; empty for an unknown paper.

        The whole text is compared with its CRC when it is first read. Raises StoreDamaged.
        """
        with self.database.snapshot():
            digests = self._query("SELECT text FROM paper_digests WHERE paper = :paper", paper=paper)
            if not digests:
                return ""
            key = paper, digests[0][0]
            text = self._texts.get(key)
            if text is None:
                text = self._checked_text(*key)
                self._texts.add(key, text)
            return text[max(0, start) : max(0, end)]

    def _checked_text(self, paper: str, crc: int) -> str:
        """A paper's text. Raises StoreDamaged if it does not have this CRC."""
        found = self._read(rows.string, "SELECT text FROM papers WHERE id = :paper", paper=paper)
        if not found or text_crc(found[0]) != crc:
            raise self.database.damaged(f"the text of paper {paper[:12]} is not the one that was stored")
        return found[0]

    def counts(self) -> dict[str, int]:
        """Table -> its number of rows; `chunk_count` counts chunks by grain."""
        return {table: self._query(f"SELECT count(*) FROM {table}")[0][0] for table in PAPER_TABLES}

    def papers_without_sections(self) -> int:
        """How many papers were read by a version that knew no sections."""
        return int(self._query("SELECT count(*) FROM paper_digests WHERE sections IS NULL")[0][0])

    def chunk_count(self, grain: Grain = "passage") -> int:
        return fine_passages.recorded_count(self.database, grain)

    def vectors(self, batch: int = 4096) -> Iterator[tuple[list[int], Vectors]]:
        """Every passage's id and vector, shape (n, dimension), in batches."""
        return vector_rows.read_passages(self.database, batch)

    def vectors_of(self, ids: Sequence[int]) -> Vectors:
        """See PaperStore: an unknown id came from another library's index."""
        return vector_rows.read_of(self.database, ids)

    def passages(self, since: int = -1) -> Iterator[Passage]:
        """The passages added after a generation, with their text; no fine ones."""
        papers = "SELECT id FROM papers INDEXED BY papers_generation WHERE generation > :since ORDER BY id"
        for id in self._read(rows.string, papers, since=since):
            yield from self._passages_of(id)

    def _passages_of(self, paper: str) -> list[Passage]:
        sql = f"{rows.SELECT_CHUNKS} WHERE paper = :paper AND {ONLY['passage']} ORDER BY start"
        with self.database.snapshot():
            chunks = [self._checked(*found) for found in self._read(rows.chunk, sql, paper=paper)]
            about = self.papers_by_id([paper])
            if not about:
                raise self.database.damaged("the record of a paper is missing")
            return [Passage(chunk.id, paper, about[0].title, text) for chunk, text in chunks]

    def removed(self, since: int) -> list[int]:
        """Ids of the chunks removed after a generation. Some may have been added again since."""
        return self._read(rows.number, "SELECT chunk FROM removed WHERE generation > :since", since=since)

    # Writing

    def add(
        self,
        paper: NewPaper,
        file: SourceFile,
        chunk_ids: Sequence[int],
        vectors: Vectors,
        as_a_whole: PaperVector | None = None,
        added: str = "",
    ) -> None:
        """See PaperStore: one transaction."""
        with self._writing() as generation:
            released = self._release([file.path])
            for old in released - {paper.id}:
                self._inherit(old, paper)
            self._drop_orphans(released, generation)
            paper_rows.insert(self.database, paper, generation, added)
            self._execute(_INSERT_FILE, path=file.path, name=file.name, paper=paper.id)
            hashes = paper_rows.insert_chunks(self.database, paper, chunk_ids, vectors, generation)
            fine_passages.change_counts(self.database, paper.id, 1)
            if as_a_whole is not None:
                paper_vectors.write(self.database, {paper.id: as_a_whole})
                hashes.append(as_a_whole.text_hash)
            done = [{"text_hash": digest} for digest in hashes]
            self.database.execute_many("DELETE FROM pending WHERE text_hash = :text_hash", done)

    def link(self, files: Sequence[SourceFile], gone: Sequence[str] = ()) -> None:
        """See PaperStore. It is one transaction, so that two files may swap their names."""
        with self._writing() as generation:
            released = self._release([*(file.path for file in files), *gone])
            linked = [{"path": file.path, "name": file.name, "paper": file.sha256} for file in files]
            self.database.execute_many(_INSERT_FILE, linked)
            self._drop_orphans(released, generation)

    def drop(self, path: str) -> None:
        """Remove a file, and its paper unless another file holds the same one."""
        with self._writing() as generation:
            self._drop_orphans(self._release([path]), generation)

    def record_failure(self, failure: Failure) -> None:
        """Record a file that could not be read. A paper read earlier from the same path stays."""
        self._execute(
            "INSERT OR REPLACE INTO failures VALUES (:path, :name, :sha256, :happened, :remedy,"
            " row_digest('failures', :path, :name, :sha256, :happened, :remedy))",
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
        papers = {paper for path in paths for paper in self._read(rows.string, sql, path=path)}
        released = [{"path": path} for path in paths]
        self.database.execute_many("DELETE FROM failures WHERE path = :path", released)
        self.database.execute_many("DELETE FROM files WHERE path = :path", released)
        return papers

    def _drop_orphans(self, papers: Iterable[str], generation: int) -> None:
        """Remove those of these papers that no longer have a file."""
        for paper in papers:
            if not self._query("SELECT 1 FROM files WHERE paper = :paper", paper=paper):
                sql = "INSERT INTO removed SELECT id, :generation FROM chunks WHERE paper = :paper"
                self._execute(sql, generation=generation, paper=paper)
                fine_passages.change_counts(self.database, paper, -1)
                self._execute("DELETE FROM papers WHERE id = :paper", paper=paper)
                self._execute("DELETE FROM metadata WHERE paper = :paper AND source = 'pdf'", paper=paper)

    # Papers as a whole

    def paper_vectors(self) -> dict[str, PaperVector]:
        """Paper id -> its vector, for those that have one. Raises StoreDamaged."""
        return paper_vectors.read(self.database)

    def set_paper_vectors(self, vectors: Mapping[str, PaperVector]) -> None:
        """Write the vectors of papers, in one transaction; the passages' indexes are not outdated by it."""
        with self.database.transaction():
            paper_vectors.write(self.database, vectors)

    def papers_stamp(self) -> tuple[Stamp, int]:
        """Another one after each change of what papers as a whole are searched by."""
        with self.database.snapshot():
            return self._stamp(), paper_vectors.changes(self.database)

    # What is known about papers

    def described(self) -> set[str]:
        """See PaperStore."""
        return set(self._read(rows.string, "SELECT DISTINCT paper FROM metadata WHERE source != 'pdf'"))

    def metadata_layers(self, paper: str) -> dict[Source, Metadata]:
        """What each source says of a paper."""
        return metadata_layers.read(self.database, paper)

    def set_metadata(self, paper: str, source: Source, metadata: Metadata) -> None:
        """Replace what a source says of a paper; no field at all removes the source."""
        self.change_metadata(paper, source, lambda _: metadata)

    def set_metadata_of(self, source: Source, said: Mapping[str, Metadata]) -> None:
        """See PaperStore."""
        for paper in metadata_layers.write_absent(self.database, source, said):
            self.set_metadata(paper, source, said[paper])

    def change_metadata(self, paper: str, source: Source, change: Callable[[Metadata], Metadata]) -> bool:
        """See PaperStore. Its passages are to be indexed again if its title is another: BM25 searches titles too."""
        with self.database.transaction():
            before = self.papers_by_id([paper])
            metadata = change(self.metadata_layers(paper).get(source, NO_METADATA))
            metadata_layers.write(self.database, paper, source, metadata)
            is_renamed = [old.title for old in before] != [new.title for new in self.papers_by_id([paper])]
            if is_renamed:
                generation = self._next_generation()
                removed = "INSERT INTO removed SELECT id, :generation FROM chunks WHERE paper = :paper"
                self._execute(removed, generation=generation, paper=paper)
                for table, column in (("chunks", "paper"), ("papers", "id")):
                    sql = f"UPDATE {table} SET generation = :generation WHERE {column} = :paper"
                    self._execute(sql, generation=generation, paper=paper)
        return is_renamed

    def _inherit(self, old: str, new: NewPaper) -> None:
        """Give a paper what people said of the one whose file it takes over, if it is a version of that."""
        layers = self.metadata_layers(old)
        length = self._read(rows.number, "SELECT length FROM papers WHERE id = :paper", paper=old)
        if length and (layers.keys() - {"pdf"} or metadata_layers.is_work(self.database, old)):
            before = metadata_layers.Version(old, merged(layers), self.text(old, 0, length[0]))
            after = merged({**self.metadata_layers(new.id), "pdf": new.metadata})
            metadata_layers.inherit(self.database, before, metadata_layers.Version(new.id, after, new.text))

    # Vectors of papers that are still being embedded

    def recall(self, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The vectors already computed for texts with these hashes, for finished papers or pending ones."""
        return vector_rows.recall(self.database, hashes)

    def remember(self, hashes: Sequence[bytes], vectors: Vectors) -> None:
        """Keep vectors until their paper is added."""
        with self.database.transaction():
            vector_rows.keep(self.database, hashes, vectors)

    def forget_pending(self) -> None:
        """Delete the vectors of papers that were never added. Call it when no paper is being embedded."""
        self._execute("DELETE FROM pending")

    # The whole library

    def check(self) -> list[str]:
        """The faults found inside the library, one sentence each; reads all of it."""
        return LibraryCheck(self.database).everything()
