"""What a question and an ingest need of a library, wherever its papers are kept.

`Library` keeps them in a SQLite file, with indexes beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from folio.paper_metadata import Metadata, Source
from folio.protocols import LexicalIndex
from folio.store.database import Database
from folio.store.paper_vectors import PaperVector
from folio.store.rows import Stamp
from folio.types import Chunk, Failure, Grain, NewPaper, Paper, SourceFile, Vectors

# How to open indexes: files checked up to a limit, or wholly; or rebuilt from the library without a look at them
Trust = Literal["sample", "checked", "none"]


class PaperStore(Protocol):
    """The papers of a library: their text, passages, vectors, sections and metadata.

    Methods raise StoreError's subclasses; StoreDamaged where what was read is not what was written.
    """

    @property
    def database(self) -> Database:
        """What services say of works, and who cites whom, to be read."""
        ...

    def changing_works(self) -> AbstractContextManager[Database]:
        """The same in a transaction, to be changed. The caller holds the writer lock."""
        ...

    @property
    def is_read_only(self) -> bool:
        """Whether the folder of this computer cannot be written, so that nothing can be stored there."""
        ...

    def close(self) -> None: ...

    def identity(self) -> Hashable:
        """Another one when another library has taken this one's place; None while there is none."""
        ...

    def reading(self) -> AbstractContextManager[Stamp]:
        """Everything read inside belongs to the generation yielded."""
        ...

    def fingerprint(self) -> dict[str, str]:
        """What the vectors depend on (fingerprint.py). Empty in a new store."""
        ...

    def set_fingerprint(self, fingerprint: dict[str, str]) -> None: ...

    # Papers

    def papers(self) -> list[Paper]:
        """Every paper, sorted by file name."""
        ...

    def papers_by_id(self, ids: Iterable[str]) -> list[Paper]:
        """The papers with these ids; unknown ids are skipped."""
        ...

    def files(self) -> list[SourceFile]:
        """Every file in the library, in the order they were added."""
        ...

    def failures(self) -> list[Failure]:
        """The files that could not be read, sorted by path."""
        ...

    def added(self) -> dict[str, str]:
        """Paper id -> time it was added (ISO, UTC)."""
        ...

    def counts(self) -> dict[str, int]:
        """What there is: `papers`, `files`, `failures` -> how many."""
        ...

    def papers_without_sections(self) -> int:
        """How many papers were read by a version that knew no sections."""
        ...

    def text(self, paper: str, start: int, end: int) -> str:
        """The characters [start, end) of a paper's text; empty for an unknown paper."""
        ...

    # Passages

    def chunk_count(self, grain: Grain = "passage") -> int:
        """How many chunks of a grain there are."""
        ...

    def chunks(self, ids: Iterable[int]) -> dict[int, Chunk]:
        """The chunks with these ids; unknown ids are skipped."""
        ...

    def read_chunks(self, ids: Sequence[int]) -> list[tuple[Chunk, Paper, str]]:
        """The chunks with these ids, in this order, each with its paper and its text."""
        ...

    def chunk_ids_of(self, papers: Iterable[str]) -> list[int]:
        """The ids of these papers' passages."""
        ...

    def fine_in(self, passages: Iterable[int]) -> dict[int, list[Chunk]]:
        """The fine passages in each of these passages, in the order of the text; unknown ids are skipped."""
        ...

    def vectors_of(self, ids: Sequence[int]) -> Vectors:
        """The vectors of one or more chunks, in this order: shape (len(ids), dimension), rows of unit length.

        Raises IndexDamaged for an unknown id.
        """
        ...

    # Several writers

    def claim(self, file: SourceFile, *, is_known: bool = False) -> bool:
        """Whether this writer alone may add this file's paper, until it calls `release` or `close`.

        False while another writer adds it, and if one has added it; is_known: it was there before.
        """
        ...

    def release(self, file: SourceFile) -> None: ...

    # Writing: each call is done whole or not at all

    def add(
        self,
        paper: NewPaper,
        file: SourceFile,
        chunk_ids: Sequence[int],
        vectors: Vectors,
        as_a_whole: PaperVector | None = None,
        added: str = "",
    ) -> None:
        """Add a paper under this file's path, replacing what the path held before.

        `vectors` has shape (len(paper.chunk_spans), dimension), rows of unit length; they and `chunk_ids` are in the
        order of these spans. as_a_whole: the vector of the paper itself. added: when it was added (ISO, UTC), if not
        now. Raises StoreRefused.
        """
        ...

    def link(self, files: Sequence[SourceFile], gone: Sequence[str] = ()) -> None:
        """Link these files to papers that are already there; `gone` are paths that no longer exist."""
        ...

    def drop(self, path: str) -> None:
        """Remove a file, and its paper unless another file holds the same one."""
        ...

    def record_failure(self, failure: Failure) -> None:
        """Record a file that could not be read. A paper read earlier from the same path stays."""
        ...

    def forget_failure(self, path: str) -> None: ...

    # Papers as a whole

    def paper_vectors(self) -> dict[str, PaperVector]:
        """Paper id -> its vector, for those that have one."""
        ...

    def set_paper_vectors(self, vectors: Mapping[str, PaperVector]) -> None: ...

    def papers_stamp(self) -> tuple[Stamp, int]:
        """Another one after each change of what papers as a whole are searched by."""
        ...

    # What is known about papers

    def described(self) -> set[str]:
        """The papers of which sources other than their PDFs say something, those that are not in the library too."""
        ...

    def metadata_layers(self, paper: str) -> dict[Source, Metadata]:
        """What each source says of a paper."""
        ...

    def set_metadata(self, paper: str, source: Source, metadata: Metadata) -> None:
        """Replace what a source says of a paper; no field at all removes the source."""
        ...

    def set_metadata_of(self, source: Source, said: Mapping[str, Metadata]) -> None:
        """The same for many papers, by their ids: those that are not in the library at once, the others one by one."""
        ...

    def change_metadata(self, paper: str, source: Source, change: Callable[[Metadata], Metadata]) -> bool:
        """The same by what `change` makes of it; returns whether its title changed: indexes are to be updated then."""
        ...

    # Vectors of papers that are still being embedded

    def recall(self, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The vectors already computed for texts with these hashes, for finished papers or pending ones."""
        ...

    def remember(self, hashes: Sequence[bytes], vectors: Vectors) -> None:
        """Keep vectors until their paper is added."""
        ...

    def forget_pending(self) -> None:
        """Delete the vectors of papers that were never added."""
        ...


class DenseIndex(Protocol):
    """The vectors of the chunks of one grain."""

    def search(self, query: Vectors, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """At most k (chunk id, cosine), best first, ties by id. papers: search only these. Raises IndexDamaged."""
        ...

    def search_all(
        self, query: Vectors, k: int, allowed: Callable[[Iterable[int]], set[int]]
    ) -> list[tuple[int, float]] | None:
        """The same exactly, among the chunks that `allowed` leaves; None where `search` misses none that it could find.

        An approximate search may read only chunks that are not allowed, however deep it goes.
        """
        ...

    def cosines(self, ids: Sequence[int], query: Vectors) -> list[float]:
        """The exact cosine of each chunk with a unit vector. Raises IndexDamaged for an unknown id."""
        ...


class SearchIndexes(Protocol):
    """The indexes of a library at one generation."""

    @property
    def stamp(self) -> Stamp: ...

    @property
    def passages(self) -> DenseIndex: ...

    @property
    def fine_passages(self) -> DenseIndex | None:
        """None where there are none."""
        ...

    @property
    def lexical(self) -> LexicalIndex: ...

    def found_damaged(self) -> bool:
        """Whether a check in the background has found one of them damaged."""
        ...

    @property
    def reopen(self) -> Callable[[Trust], SearchIndexes]:
        """Opens them again after IndexDamaged, and repairs what is damaged."""
        ...
