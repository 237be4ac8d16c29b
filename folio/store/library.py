"""The library: papers, their text, chunks and vectors, and metadata from other sources. FAISS and BM25 derive from it.

Each paper is added in one transaction, which also increments the generation. Readers take a snapshot (`reading`) and
see one complete generation, even while a writer works. Rows are read in lists: a question takes about a dozen
statements, however many passages it reads, because each statement may be a round trip over a network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from folio.errors import DiskFull, IndexDamaged, StoreBusy, UsageError
from folio.papers.citation_key import chosen_key, citation_keys, last_key
from folio.papers.label import CitationStyle
from folio.papers.metadata import NO_METADATA, Metadata, Source, merged
from folio.papers.model import Chunk, Failure, Grain, NewPaper, Notice, Paper, SourceFile, Vectors
from folio.shown_text import name_line
from folio.store import citation_names, rows, works
from folio.store import metadata as metadata_layers
from folio.store.check import LibraryCheck
from folio.store.database import Database, repeated, storable
from folio.store.labels import all_with_labels, new_keys, new_places, with_labels
from folio.store.rows import COUNTED, ONLY, PaperVector, Passage, Stamp, text_hash
from folio.store.sqlite import SqliteDatabase

# Characters of checked text that are cached; a longer text is cached alone
_TEXTS_KEPT = 2**22
# Passages' records, and vectors, that are cached
_CHUNKS_KEPT = 2**13
_VECTORS_KEPT = 2**12
# Papers whose passages are read with one statement
_PAPERS_AT_ONCE = 32
_STATE = "SELECT key, value FROM meta UNION ALL SELECT key, value FROM kept WHERE key = 'said'"
_AMONG = "IN (SELECT value FROM json_each(:ids))"


class ChunkSizes(NamedTuple):
    """The number of chunks of a grain, and their mean size in characters."""

    chunks: int
    mean: float


class LostKey(NamedTuple):
    """A citation key that a paper lost, because it was chosen for another paper."""

    file: str
    key: str
    new: str  # the paper's key now


class Changes(NamedTuple):
    """The result of changing the metadata of papers."""

    papers: int  # whose metadata changed
    renamed: bool  # whether the title of one of them changed


@dataclass
class _Cache:
    """Values that were read and checked, of one state of the library."""

    state: Hashable = None
    papers: dict[str, Paper] = field(default_factory=dict)
    chunks: dict[int, tuple[Chunk, str]] = field(default_factory=dict)  # with the hash of its text
    texts: dict[str, str] = field(default_factory=dict)  # the last used one at the end
    vectors: dict[int, Vectors] = field(default_factory=dict)
    expected: set[int] = field(default_factory=set)  # chunks whose vectors will be needed

    def keep_texts(self, used: Mapping[str, str]) -> None:
        for paper, text in used.items():
            self.texts.pop(paper, None)
            self.texts[paper] = text
        size = sum(map(len, self.texts.values()))
        while size > _TEXTS_KEPT and len(self.texts) > 1:
            size -= len(self.texts.pop(next(iter(self.texts))))


class Library:
    """The library of one store. Raises StoreError's subclasses and DiskFull, never an engine's own errors."""

    def __init__(
        self,
        place: Path | Database,
        *,
        create: bool = False,
        updates: bool = True,
        citation_style: CitationStyle = "author-year",
        notice: Notice = lambda text: None,
    ) -> None:
        """place: an open database, or the path of a local one.

        create: make a missing library; the caller holds the writer lock. Otherwise StoreMissing is raised. updates: see
        SqliteDatabase.
        """
        self._citation_style = citation_style
        # shared with the query log
        self.database = (
            place
            if isinstance(place, Database)
            else SqliteDatabase(place, create=create, updates=updates, notice=notice)
        )
        self._query, self._read, self._execute = self.database.query, self.database.read, self.database.execute
        self._state: dict[str, str] | None = None  # the state in the open snapshot
        self._cache = _Cache()

    def close(self) -> None:
        self.database.close()

    @property
    def is_read_only(self) -> bool:
        """Whether the library cannot be written."""
        return self.database.is_read_only

    @contextmanager
    def changing_works(self) -> Iterator[Database]:
        """A transaction for changes to works and citations."""
        with self.database.transaction("user"):
            yield self.database
            rows.increase(self.database, "said", table="kept")

    def identity(self) -> Hashable:
        """A value that changes when another library replaces this one; None while there is none."""
        return self.database.identity()

    @contextmanager
    def reading(self) -> Iterator[Stamp]:
        """A snapshot: everything read inside belongs to the generation yielded."""
        if self._state is not None:
            yield self._stamp()
            return
        # A transaction may be rolled back, so values that are read inside one are not cached.
        is_cached, cache = not self.database.in_snapshot, self._cache
        with self.database.snapshot():
            self._state = self._read_state()
            try:
                with self.database.rows_expected():
                    state = (self._stamp(), self._state["described"], self._state["said"])
                if not is_cached or self._cache.state != state:
                    self._cache = _Cache(state)
                yield self._stamp()
            finally:
                self._state = None
                self._cache = self._cache if is_cached else cache

    def _read_state(self) -> dict[str, str]:
        """The values about the library as a whole."""
        return dict(self._read(rows.text_pair, _STATE))

    def _stamp(self) -> Stamp:
        with self.database.rows_expected():
            return rows.stamp(self._state or self._read_state())

    @contextmanager
    def _writing(self, part: Literal["library", "both"] = "library") -> Iterator[int]:
        """A transaction that increments the generation, which it yields."""
        with self.database.transaction(part):
            yield self._next_generation()

    def _next_generation(self) -> int:
        rows.increase(self.database, "generation")
        return self._stamp().generation

    def fingerprint(self) -> dict[str, str]:
        """The fingerprint of the store; empty in a new one."""
        stored = (self._state or self._read_state()).get("fingerprint")
        with self.database.rows_expected():
            return {} if stored is None else rows.fingerprint(stored)

    @repeated
    def set_fingerprint(self, fingerprint: dict[str, str]) -> None:
        value = json.dumps(fingerprint, sort_keys=True)
        with self.database.transaction("library"):
            self.database.insert("meta", [{"key": "fingerprint", "value": value}], replace=True)

    def _dimension(self) -> int | None:
        """The dimension of the vectors, if it is recorded."""
        with self.database.rows_expected():
            return int(self.fingerprint().get("dimension", 0)) or None

    @repeated
    def papers(self) -> list[Paper]:
        """Every paper, sorted by file name."""
        with self.reading():
            papers = self._described(self._read(rows.paper, rows.SELECT_PAPERS), metadata_layers.read(self.database))
            papers = sorted(papers, key=lambda paper: (paper.file, paper.id))
            papers = works.with_notices(self.database, all_with_labels(self.database, papers, self._citation_style))
            self._cache.papers |= {paper.id: paper for paper in papers}
            return papers

    @repeated
    def papers_by_id(self, ids: Iterable[str]) -> list[Paper]:
        """The papers with these ids, without unknown ones. Each is named after the first of its files by name."""
        unique = list(dict.fromkeys(ids))
        with self.reading():
            cached = self._cache.papers
            if missing := [paper for paper in unique if paper not in cached]:
                cached |= {paper.id: paper for paper in self._papers_of(missing)}
            return [cached[paper] for paper in unique if paper in cached]

    def _papers_of(self, ids: list[str]) -> list[Paper]:
        """The papers with these ids, read from the database, in any order."""
        papers = self._read(rows.paper, f"{rows.SELECT_PAPERS} WHERE id {_AMONG}", ids=ids) if ids else []
        return works.with_notices(self.database, with_labels(self.database, papers, self._citation_style))

    def citation_keys(self) -> dict[str, str]:
        """Paper id -> its citation key, for all papers. They are stored, so that they stay.

        Not if the library cannot be written now: then the next call gives the same ones, unless papers change.
        """
        papers = self.papers()
        given = citation_names.keys(self.database)
        keys = citation_keys(papers, given)
        if new_keys(keys, given) and not self.is_read_only:
            with suppress(StoreBusy, DiskFull), self.database.transaction("user"):
                given = citation_names.keys(self.database)
                keys = citation_keys(papers, given)
                citation_names.give(self.database, new_keys(keys, given))
        return keys

    def citation_key(self, paper: Paper) -> str:
        """The citation key of a paper. See citation_keys."""
        last = last_key(citation_names.keys(self.database, paper.id), paper.id)
        return last if last and chosen_key(paper) in ("", last) else self.citation_keys()[paper.id]

    def require_free_key(self, papers: Sequence[str], key: str) -> None:
        """Raises UsageError if a citation key that a person chooses for papers would not be that of one paper alone."""
        if not key:
            return
        every = self.papers()
        keys = citation_keys(every, citation_names.keys(self.database))
        holders = (paper for paper in every if keys[paper.id].casefold() == key.casefold() and paper.id not in papers)
        if other := next(holders, None):
            raise UsageError(f"The citation key {key} is that of {name_line(other.file)}.", "Choose another key.")
        if len(papers) > 1:
            raise UsageError(f"The citation key {key} cannot be that of {len(papers)} papers.", "Edit one paper.")

    def give_keys(self) -> None:
        """Give citation keys to the papers that have none, so that papers to be added cannot get theirs."""
        named = "SELECT paper FROM citation_names WHERE kind = 'key'"
        if self._query(f"SELECT 1 FROM papers WHERE id NOT IN ({named}) LIMIT 1"):
            self.citation_keys()

    def keep_names(self, papers: Sequence[Paper]) -> list[LostKey]:
        """Store the places of labels of all papers, and the keys that are chosen or that chosen ones change.

        A paper whose key nobody chose or has used gets one later, when it is exported or papers are added: until then
        its metadata may become better. papers: all of the library.
        """
        with self.database.transaction("user"):
            given, places = citation_names.keys(self.database), citation_names.labels(self.database)
            keys = citation_keys(papers, given)
            chosen = {paper.id for paper in papers if chosen_key(paper)}
            kept = {id: key for id, key in keys.items() if id in given or id in chosen}
            citation_names.give(self.database, [*new_keys(kept, given), *new_places(papers, places)])
        files = {paper.id: paper.file for paper in papers if paper.id not in chosen}
        changed = {id: last for id, key in kept.items() if (last := last_key(given, id)) not in ("", key)}
        return [LostKey(files[id], old, keys[id]) for id, old in changed.items() if id in files]

    def _described(self, papers: Sequence[Paper], layers: Mapping[str, Mapping[Source, Metadata]]) -> list[Paper]:
        """Papers with the metadata of all sources. layers: paper id -> the metadata of sources other than its PDF."""
        return [
            replace(paper, metadata=merged({**layers[paper.id], "pdf": paper.metadata}))
            if paper.id in layers
            else paper
            for paper in papers
        ]

    def files(self) -> list[SourceFile]:
        """Every file in the library, in the order they were added."""
        return self._read(rows.source_file, "SELECT path, name, paper FROM files ORDER BY place")

    def files_before(self) -> list[SourceFile]:
        """The files of a library of an earlier format that this one replaces, until they are read again."""
        sql = "SELECT value FROM meta WHERE key = :key"
        return [file for files in self._read(rows.files_before, sql, key=rows.FILES_BEFORE) for file in files]

    def failures(self) -> list[Failure]:
        return self._read(rows.failure, "SELECT path, name, sha256, happened, remedy FROM failures ORDER BY path")

    def added(self) -> dict[str, str]:
        """Paper id -> time it was added (ISO, UTC)."""
        return dict(self._read(rows.text_pair, "SELECT id, added FROM papers"))

    @repeated
    def chunks(self, ids: Iterable[int]) -> dict[int, Chunk]:
        """The chunks with these ids; unknown ids are skipped. Does not read or check their text."""
        with self.reading():
            return {id: chunk for id, (chunk, _) in self._chunks(list(ids)).items()}

    def text_hashes(self, ids: Iterable[int]) -> dict[int, str]:
        """The hash of the text of each of these chunks, which is not read; unknown ids are skipped."""
        with self.reading():
            return {id: digest for id, (_, digest) in self._chunks(list(ids)).items()}

    def _chunks(self, ids: Sequence[int]) -> dict[int, tuple[Chunk, str]]:
        cached = self._cache.chunks
        if missing := [id for id in dict.fromkeys(ids) if id not in cached]:
            if len(cached) > _CHUNKS_KEPT:
                cached.clear()
                missing = list(dict.fromkeys(ids))
            sql = f"SELECT {rows.CHUNK_COLUMNS} FROM chunks WHERE id {_AMONG}"
            cached |= {chunk.id: (chunk, digest) for chunk, digest in self._read(rows.chunk_of_row, sql, ids=missing)}
        return {id: cached[id] for id in ids if id in cached}

    @repeated
    def read_chunks(self, ids: Sequence[int]) -> list[tuple[Chunk, Paper, str]]:
        """The chunks with these ids, in this order, each with its paper and its text.

        Raises StoreDamaged.
        """
        with self.reading():
            chunks = self._chunks(ids)
            papers = {paper.id: paper for paper in self.papers_by_id(chunk.paper_id for chunk, _ in chunks.values())}
            if any(id not in chunks or chunks[id][0].paper_id not in papers for id in ids):
                raise self.database.damaged("a passage or its paper is missing")
            texts = self._texts(papers)
            checked = {id: self._checked(chunk, digest, texts) for id, (chunk, digest) in chunks.items()}
            return [(chunk, papers[chunk.paper_id], checked[chunk.id]) for chunk, _ in (chunks[id] for id in ids)]

    def _checked(self, chunk: Chunk, digest: str, texts: Mapping[str, str]) -> str:
        """The text of a chunk. Raises StoreDamaged if it differs from the text that the chunk was made from."""
        text = texts[chunk.paper_id][chunk.start : chunk.end]
        if text_hash(text) != digest:
            raise self.database.damaged(f"passage {chunk.id} is not the text that was stored")
        return text

    @property
    def is_dual(self) -> bool:
        """Whether the library has fine passages (INDEX=dual)."""
        return self.fingerprint().get("index") == "dual"

    def chunk_ids(self, since: int = -1, grain: Grain = "passage") -> set[int]:
        """The ids of the chunks added after a generation."""
        sql = f"SELECT id FROM chunks WHERE generation > :since AND {ONLY[grain]}"
        return set(self._read(rows.number, sql, since=since))

    def chunk_ids_of(self, papers: Iterable[str]) -> list[int]:
        """The ids of these papers' passages."""
        ids = list(papers)
        sql = f"SELECT id FROM chunks WHERE paper {_AMONG} AND {ONLY['passage']} ORDER BY id"
        return self._read(rows.number, sql, ids=ids) if ids else []

    def fine_ids_in(self, passages: Sequence[int]) -> list[int]:
        """The ids of the fine passages in these passages."""
        sql = f"SELECT id FROM chunks WHERE parent {_AMONG} ORDER BY id"
        return self._read(rows.number, sql, ids=list(passages)) if passages else []

    @repeated
    def fine_in(self, passages: Iterable[int]) -> dict[int, list[Chunk]]:
        """The fine passages in each of these passages, in the order of the text; unknown ids are skipped."""
        with self.reading():
            chunks = self.chunks(passages)
            return rows.read_fine(self.database, chunks) if chunks else {}

    @repeated
    def text(self, paper: str, start: int, end: int) -> str:
        """The characters [start, end) of a paper's text; empty for an unknown paper.

        The whole text is compared with its CRC when it is first read. Raises StoreDamaged.
        """
        with self.reading():
            return self._texts([paper]).get(paper, "")[max(0, start) : max(0, end)]

    def text_as_read(self, paper: str, start: int, end: int) -> str:
        """Like `text`, but from the cached text if there is one, which may be outdated."""
        cached = self._cache.texts.get(paper)
        return self.text(paper, start, end) if cached is None else cached[max(0, start) : max(0, end)]

    def _texts(self, papers: Iterable[str]) -> dict[str, str]:
        """The texts of papers, compared with their CRCs. Raises StoreDamaged."""
        unique = list(dict.fromkeys(papers))
        texts = {paper: self._cache.texts[paper] for paper in unique if paper in self._cache.texts}
        if missing := [paper for paper in unique if paper not in texts]:
            sql = f"SELECT id, text, text_crc FROM papers LEFT JOIN texts ON texts.paper = id WHERE id {_AMONG}"
            texts |= dict(self._read(rows.paper_text, sql, ids=missing))
        self._cache.keep_texts(texts)
        return texts

    def counts(self) -> dict[str, int]:
        """Table -> its number of rows; `chunk_count` counts chunks by grain."""
        tables = ("papers", "files", "failures", "chunks", "vectors", "removed")
        (counts,) = self._query(f"SELECT {', '.join(f'(SELECT count(*) FROM {table})' for table in tables)}")
        return dict(zip(tables, counts, strict=True))

    def chunk_count(self, grain: Grain = "passage") -> int:
        """The recorded number of chunks of a grain."""
        with self.database.rows_expected():
            return int((self._state or self._read_state())[COUNTED[grain]])

    def chunk_sizes(self, grain: Grain = "passage") -> ChunkSizes:
        """How many chunks of a grain there are, and how long they are."""
        sql = f'SELECT count(*), CAST(coalesce(sum("end" - start), 0) AS BIGINT) FROM chunks WHERE {ONLY[grain]}'
        ((count, characters),) = self._query(sql)
        return ChunkSizes(count, characters / max(1, count))

    def vectors(self, batch: int = 4096) -> Iterator[tuple[list[int], Vectors]]:
        """Every passage's id and vector, shape (n, dimension), in batches."""
        return rows.read_passages(self.database, self._dimension(), batch)

    def vectors_of(self, ids: Sequence[int]) -> Vectors:
        """The vectors of one or more chunks, in this order: shape (len(ids), dimension), rows of unit length.

        Raises IndexDamaged for an unknown id, which must come from another library's index.
        """
        with self.reading():
            cached = self._cache.vectors
            if not cached.keys() >= set(ids):
                if len(cached) > _VECTORS_KEPT:
                    cached.clear()
                missing = {*ids, *self._cache.expected}.difference(cached)
                self._cache.expected.clear()
                cached |= rows.read_vectors(self.database, missing, self._dimension())
            if unknown := set(ids) - cached.keys():
                raise IndexDamaged(f"The index names a passage that is not in the library: {min(unknown)}.")
            return np.stack([cached[id] for id in ids])

    def expect_vectors_of(self, ids: Iterable[int]) -> None:
        """These vectors will be needed: the next read of vectors fetches them too. The caller has a snapshot."""
        self._cache.expected.update(ids)

    def passages(self, since: int = -1) -> Iterator[Passage]:
        """The passages added after a generation, with their text; without fine passages."""
        ids = sorted(self._read(rows.string, "SELECT id FROM papers WHERE generation > :since", since=since))
        for first in range(0, len(ids), _PAPERS_AT_ONCE):
            yield from self._passages_of(ids[first : first + _PAPERS_AT_ONCE])

    def _passages_of(self, papers: list[str]) -> list[Passage]:
        sql = (
            f"SELECT {rows.CHUNK_COLUMNS} FROM chunks WHERE paper {_AMONG} AND {ONLY['passage']} ORDER BY paper, start"
        )
        with self.reading():
            titles = {paper.id: paper.title for paper in self.papers_by_id(papers)}
            if len(titles) < len(papers):
                raise self.database.damaged("the record of a paper is missing")
            chunks, texts = self._read(rows.chunk_of_row, sql, ids=papers), self._texts(papers)
            return [
                Passage(chunk.id, chunk.paper_id, titles[chunk.paper_id], self._checked(chunk, digest, texts))
                for chunk, digest in chunks
            ]

    def removed(self, since: int) -> list[int]:
        """Ids of the chunks removed after a generation. Some may have been added again since."""
        return self._read(rows.number, "SELECT chunk FROM removed WHERE generation > :since", since=since)

    @repeated
    def add(
        self,
        paper: NewPaper,
        file: SourceFile,
        chunk_ids: Sequence[int],
        vectors: Vectors,
        paper_vector: PaperVector | None = None,
        added: str = "",
    ) -> None:
        """Add a paper under this file's path, replacing what the path held before.

        `vectors` has shape (len(paper.chunk_spans), dimension), rows of unit length; they and `chunk_ids` are in the
        order of these spans. paper_vector: the vector of the whole paper. added: the time (ISO, UTC) if not now. It is
        one transaction. Raises StoreRefused.
        """
        if self._is_there(paper, file):
            self.link([file])
            return
        paper = replace(paper, text=storable(paper.text))
        replaced = self._read(rows.string, "SELECT paper FROM files WHERE path = :path", path=file.path)
        # A new version of a paper inherits the metadata that people and services gave for the old one.
        with self._writing("library" if set(replaced) <= {paper.id} else "both") as generation:
            released = self._release([file.path])
            for old in released - {paper.id}:
                self._inherit(old, paper)
            self._drop_orphans(released, generation)
            rows.insert_paper(self.database, paper, generation, added)
            self._insert_files([(file.path, file.name, paper.id)])
            hashes = rows.insert_chunks(self.database, paper, chunk_ids, vectors, generation)
            rows.change_chunk_counts(self.database, paper.id, 1)
            if paper_vector is not None:
                rows.write_paper_vectors(self.database, {paper.id: paper_vector})
                hashes.append(paper_vector.text_hash)
            self._execute(f"DELETE FROM pending WHERE text_hash {_AMONG}", ids=hashes)

    def _is_there(self, paper: NewPaper, file: SourceFile) -> bool:
        """Whether another writer has added this file's paper meanwhile, so that the file is only linked to it."""
        return False

    def _insert_files(self, files: Sequence[tuple[str, str, str]]) -> None:
        last = int(self._query("SELECT coalesce(max(place), 0) FROM files")[0][0])
        new = [
            {"path": path, "name": name, "paper": paper, "place": place}
            for place, (path, name, paper) in enumerate(files, last + 1)
        ]
        self.database.insert("files", new)

    @repeated
    def link(self, files: Sequence[SourceFile], gone: Sequence[str] = ()) -> None:
        """Link these files to papers of the library. gone: paths that no longer exist.

        It is one transaction, so that two files may swap their names.
        """
        with self._writing() as generation:
            released = self._release([*(file.path for file in files), *gone])
            # The id of a paper is the SHA-256 of its file.
            self._insert_files([(file.path, file.name, file.sha256) for file in files])
            self._drop_orphans(released, generation)

    @repeated
    def drop(self, path: str) -> None:
        """Remove a file, and its paper unless another file holds the same one."""
        with self._writing() as generation:
            self._drop_orphans(self._release([path]), generation)

    @repeated
    def record_failure(self, failure: Failure) -> None:
        """Record a file that could not be read. A paper read earlier from the same path stays."""
        file = failure.file
        row = {"path": file.path, "name": file.name, "sha256": file.sha256}
        texts = {"happened": storable(failure.happened), "remedy": storable(failure.remedy)}
        with self.database.transaction("library"):
            self.database.insert("failures", [{**row, **texts}], replace=True)

    @repeated
    def forget_failure(self, path: str) -> None:
        """Delete a file's failure record."""
        with self.database.transaction("library"):
            self._execute("DELETE FROM failures WHERE path = :path", path=path)

    def _release(self, paths: Sequence[str]) -> set[str]:
        """Remove paths; returns the papers that they held."""
        if not paths:
            return set()
        among = "path IN (SELECT value FROM json_each(:paths))"
        papers = set(self._read(rows.string, f"SELECT paper FROM files WHERE {among}", paths=list(paths)))
        for table in ("failures", "files"):
            self._execute(f"DELETE FROM {table} WHERE {among}", paths=list(paths))
        return papers

    def _drop_orphans(self, papers: Iterable[str], generation: int) -> None:
        """Remove the papers that no longer have a file."""
        for paper in papers:
            if not self._query("SELECT 1 FROM files WHERE paper = :paper", paper=paper):
                self._mark_removed(paper, generation)
                rows.change_chunk_counts(self.database, paper, -1)
                self._execute("DELETE FROM papers WHERE id = :paper", paper=paper)
                rows.count_description_change(self.database)

    def _mark_removed(self, paper: str, generation: int) -> None:
        gone = "SELECT id, CAST(:generation AS BIGINT) FROM chunks WHERE paper = :paper"
        self._execute(f"INSERT INTO removed (chunk, generation) {gone}", generation=generation, paper=paper)

    def paper_vectors(self) -> dict[str, PaperVector]:
        """Paper id -> its vector, for those that have one. Raises StoreDamaged."""
        return rows.read_paper_vectors(self.database)

    @repeated
    def set_paper_vectors(self, vectors: Mapping[str, PaperVector]) -> None:
        """Write the vectors of papers, in one transaction; the passages' indexes stay current."""
        with self.database.transaction("library"):
            rows.write_paper_vectors(self.database, vectors)

    @repeated
    def papers_stamp(self) -> tuple[Stamp, int]:
        """A value that changes with the text by which whole papers are searched."""
        with self.reading() as stamp, self.database.rows_expected():
            assert self._state is not None
            return stamp, int(self._state["described"])

    @repeated
    def state(self) -> tuple[Stamp, tuple[str, str]]:
        """The stamp, and a value that changes with what is known about papers and works."""
        with self.reading() as stamp, self.database.rows_expected():
            assert self._state is not None
            return stamp, (self._state["described"], self._state["said"])

    def described(self) -> set[str]:
        """The papers that sources other than their PDFs describe, also if they are not in the library."""
        return set(self._read(rows.string, "SELECT DISTINCT paper FROM metadata"))

    @repeated
    def metadata_layers(self, paper: str) -> dict[Source, Metadata]:
        """Source -> the metadata of a paper from it."""
        with self.database.snapshot():
            layers = metadata_layers.read(self.database, [paper]).get(paper, {})
            sql = "SELECT id, 'pdf', metadata FROM papers WHERE id = :paper"
            from_pdf = self._read(rows.metadata_layer, sql, paper=paper)
            return {**layers, **{source: metadata for _, source, metadata in from_pdf}}

    def set_metadata(self, paper: str, source: Source, metadata: Metadata) -> None:
        """Replace a source's metadata of a paper; metadata without any field removes the source."""
        self.change_metadata(paper, source, lambda _: metadata)

    @repeated
    def set_metadata_of(self, source: Source, metadata: Mapping[str, Metadata]) -> None:
        """Replace a source's metadata of many papers, by their ids.

        Papers that are not in the library are written in one transaction, the others one by one.
        """
        in_library = set(self._read(rows.string, "SELECT id FROM papers"))
        with self.database.transaction():
            for paper in metadata.keys() - in_library:  # they have no indexed passages
                metadata_layers.write(self.database, paper, source, metadata[paper])
        for paper in metadata.keys() & in_library:
            self.set_metadata(paper, source, metadata[paper])

    def change_metadata(self, paper: str, source: Source, change: Callable[[Metadata], Metadata]) -> bool:
        """Apply `change` to a source's metadata of a paper. Returns whether the title changed.

        If so, the caller updates the indexes: BM25 also searches titles, so the passages are indexed again.
        """
        return self.change_metadata_of([paper], source, lambda layers: change(layers.get(source, NO_METADATA))).renamed

    @repeated
    def change_metadata_of(
        self, papers: Sequence[str], source: Source, change: Callable[[Mapping[Source, Metadata]], Metadata]
    ) -> Changes:
        """Replace a source's metadata of papers by what `change` makes of all sources' metadata of each.

        It is one transaction, so all change or, after an error, none.
        """
        with self.database.transaction():
            before = {paper.id: paper.title for paper in self._papers_of(list(papers))}
            changed = []
            for paper in papers:
                layers = self.metadata_layers(paper)
                metadata = change(layers)
                if metadata != layers.get(source, NO_METADATA):
                    metadata_layers.write(self.database, paper, source, metadata)
                    changed.append(paper)
            after = self._papers_of(changed)
            renamed = [paper.id for paper in after if paper.title != before[paper.id]]
            if renamed:
                generation = self._next_generation()
                for paper in renamed:
                    self._mark_removed(paper, generation)
                    for table, column in (("chunks", "paper"), ("papers", "id")):
                        sql = f"UPDATE {table} SET generation = :generation WHERE {column} = :paper"
                        self._execute(sql, generation=generation, paper=paper)
        return Changes(len(changed), bool(renamed))

    def _inherit(self, old: str, new: NewPaper) -> None:
        """Give a new paper the user data of the paper that it replaces, if both are versions of one paper."""
        if metadata_layers.with_user_data(self.database, [old]):
            sql = "SELECT id, text, text_crc FROM papers JOIN texts ON texts.paper = id WHERE id = :old"
            for _, text in self._read(rows.paper_text, sql, old=old):
                before = metadata_layers.Version(old, merged(self.metadata_layers(old)), text)
                after = merged({**self.metadata_layers(new.id), "pdf": new.metadata})
                version = metadata_layers.Version(new.id, after, new.text)
                is_replaced = not self._query("SELECT 1 FROM files WHERE paper = :old", old=old)
                metadata_layers.inherit(self.database, before, version, is_replaced=is_replaced)

    def recall(self, hashes: Sequence[str]) -> dict[str, Vectors]:
        """The vectors already computed for texts with these hashes, for finished papers or pending ones."""
        return rows.recall_vectors(self.database, hashes, self._dimension()) if hashes else {}

    @repeated
    def remember(self, hashes: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors until their paper is added."""
        with self.database.transaction("library"):
            rows.keep_pending(self.database, hashes, vectors)

    @repeated
    def forget_pending(self) -> None:
        """Delete the vectors of papers that were never added. Call this when no paper is being embedded."""
        with self.database.transaction("library"):
            self._execute("DELETE FROM pending")

    def check(self) -> list[str]:
        """The faults of the library, one sentence each; reads all of it."""
        return LibraryCheck(self.database).everything()
