"""A store's derived indexes, kept at the same generation as its library: vectors, BM25, and those of fine passages.

An index that is outdated, missing or damaged is updated from the library without embedding anything again: on disk, or
only in memory while another process is writing. Damage is found when the indexes are opened, by checksums
(index_files.py), in the background (`check_in_background`), or by what an engine does with a damaged file (`reopen`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Literal, Protocol

from filelock import FileLock, Timeout

from folio.errors import DiskFull, FolioError, IndexDamaged, StoreBusy, StoreMismatch, command
from folio.papers.model import Grain, Notice, Vectors
from folio.protocols import LexicalIndex
from folio.store import bm25, index_files, vectors
from folio.store.bm25 import MANIFEST as LEXICAL_MANIFEST
from folio.store.bm25 import OkapiIndex, TantivyIndex
from folio.store.fingerprint import FORMAT, differences, of_other_format
from folio.store.index_files import any_damaged
from folio.store.library import Library
from folio.store.rows import Stamp
from folio.store.vectors import MANIFEST as VECTORS_MANIFEST
from folio.store.vectors import VectorIndex
from folio.system.files import discard, no_space

# How to open indexes. "sample": check files up to a limit. "checked": check them completely. "none": rebuild them.
Trust = Literal["sample", "checked", "none"]


LIBRARY = "library.sqlite"
LEXICAL = "lexical"
# The folder of the vector index of fine passages, and the name of that index
FINE = "fine"
_FINE_NAME = "fine vector"
# Folder for the stores of evaluation runs; it is not part of the store that contains it.
EVALUATIONS = "evaluations"
Engine = Literal["tantivy", "rank_bm25"]
# Name -> the index on disk; None if it is missing or damaged
Loaded = dict[str, VectorIndex | TantivyIndex | None]


class DenseIndex(Protocol):
    """The vectors of the chunks of one grain."""

    def search(self, query: Vectors, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """At most k (chunk id, cosine), best first, ties by id. papers: search only these. Raises IndexDamaged."""
        ...

    def search_all(
        self, query: Vectors, k: int, allowed: Callable[[Iterable[int]], set[int]]
    ) -> list[tuple[int, float]] | None:
        """Exact search among the chunks that `allowed` returns; None if `search` misses nothing anyway.

        An approximate search may otherwise find only chunks that are not allowed.
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
        """The vectors of fine passages; None if the library has no fine passages."""
        ...

    @property
    def lexical(self) -> LexicalIndex: ...

    def found_damaged(self) -> bool:
        """Whether a check in the background has found damage."""
        ...

    @property
    def reopen(self) -> Callable[[Trust], SearchIndexes]:
        """Opens the indexes again after IndexDamaged, and repairs them."""
        ...


@contextmanager
def writing(folder: Path, wait_s: float = 0) -> Iterator[None]:
    """Hold the writer lock. Raises StoreBusy if another process holds it for longer than `wait_s` seconds."""
    with no_space(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "writer.lock", timeout=wait_s)
        try:
            lock.acquire()
        except Timeout:
            raise StoreBusy(
                "Another process is writing to this index.",
                "Wait until it has finished, then run the same command again.",
            ) from None
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class Indexes:
    """The derived indexes at one generation of the library."""

    stamp: Stamp
    vectors: VectorIndex  # of passages
    lexical: TantivyIndex | OkapiIndex  # of passages
    reopen: Callable[[Trust], Indexes]  # opens the indexes again after IndexDamaged, and repairs them
    passages: GrainVectors  # searches `vectors`, limited to papers
    fine: VectorIndex | None = None  # of fine passages, if the library has any
    fine_passages: GrainVectors | None = None

    def found_damaged(self) -> bool:
        """Whether a check in the background has found a damaged file."""
        lexical = self.lexical.files if isinstance(self.lexical, TantivyIndex) else frozenset()
        fine = self.fine.files if self.fine is not None else frozenset()
        return any_damaged(self.vectors.files | fine | lexical)


def require_format(library: Library) -> None:
    """Raises StoreMismatch if the library has replaced one of an earlier format (old_library.py)."""
    if version := library.fingerprint().get(FORMAT):
        raise of_other_format(version)


def require_fingerprint(library: Library, expected: dict[str, str]) -> None:
    """As `require_same`, for the fingerprint of a store; a new one has none."""
    require_format(library)
    if made_with := library.fingerprint():
        require_same(made_with, expected)


def require_same(made_with: dict[str, str], expected: dict[str, str]) -> None:
    """Raise StoreMismatch, naming every field in which a store's fingerprint differs from `expected`."""
    differ = [
        f"{field} is {made_with.get(field, 'unknown')} in the index and {expected.get(field, 'unknown')} now"
        for field in differences(made_with, expected)
    ]
    if differ:
        raise StoreMismatch(
            f"The index was made with other settings: {'; '.join(differ)}.",
            f"Run `{command('ingest --rebuild')}` to rebuild it, or restore the previous settings.",
        )


def open_indexes(folder: Path, library: Library, engine: Engine, notice: Notice, trust: Trust = "sample") -> Indexes:
    """The indexes at the library's current generation; `notice` gets one line about any repair.

    Inside `library.reading()` they match that snapshot, even if a writer has added papers since.
    """
    with library.reading() as stamp:
        loaded = _load(folder, library, engine, trust)
        faults = _faults(loaded, library)
        if faults and not any(_ahead(index, stamp) for index in loaded.values()):
            try:
                with writing(folder):
                    (rebuild_indexes if trust == "none" else update_indexes)(folder, library, engine)
                notice(f"{_joined(faults)}: repaired from the library without embedding anything again.")
                loaded = _load(folder, library, engine, "sample")
            except (StoreBusy, DiskFull, OSError) as error:
                reason = error.happened if isinstance(error, FolioError) else f"{folder}: {error.strerror or error}."
                notice(f"{_joined(faults)}: built in memory from the library for now. {reason}")
        vectors: dict[Grain, VectorIndex] = {}
        for name, grain in _vector_indexes(library).items():
            index = loaded[name]
            assert not isinstance(index, TantivyIndex)
            if index is None or _fault(name, index, library):
                index = _update_vectors(stamp, library, grain, index)
            vectors[grain] = index
        lexical: TantivyIndex | OkapiIndex | None = None
        if engine == "rank_bm25":
            lexical = OkapiIndex(library.passages(), stamp)
        elif isinstance(bm25 := loaded["BM25"], TantivyIndex) and not _fault("BM25", bm25, library):
            lexical = bm25
        else:
            lexical = _update_lexical(stamp, library, {}, None)
        reopen = partial(open_indexes, folder, library, engine, notice)
        dense = {grain: GrainVectors(library, index, grain) for grain, index in vectors.items()}
        return Indexes(
            stamp,
            vectors["passage"],
            lexical,
            reopen,
            dense["passage"],
            vectors.get("fine"),
            dense.get("fine"),
        )


def update_indexes(folder: Path, library: Library, engine: Engine, notice: Notice | None = None) -> None:
    """Bring the indexes on disk to the library's generation. The caller holds the writer lock.

    Checks their files completely, so that damage is repaired even if nothing is new; `notice` gets a line about it.
    """
    _update(folder, library, engine, "checked", notice)


def _update(folder: Path, library: Library, engine: Engine, trust: Trust, notice: Notice | None = None) -> None:
    with library.reading() as stamp, no_space(folder):
        loaded = _load(folder, library, engine, trust)
        manifests = {
            name: folder / LEXICAL / LEXICAL_MANIFEST if name == "BM25" else _place(folder, name) / VECTORS_MANIFEST
            for name in loaded
        }
        damaged = [name for name, index in loaded.items() if index is None and manifests[name].exists()]
        for name, grain in _vector_indexes(library).items():
            vectors = loaded[name]
            assert not isinstance(vectors, TantivyIndex)
            if _fault(name, vectors, library):
                _place(folder, name).mkdir(exist_ok=True)
                _update_vectors(stamp, library, grain, vectors, _place(folder, name))
            elif vectors is not None:
                vectors.delete_old_files(_place(folder, name))
        if not library.is_dual:
            discard(folder / FINE)
        if engine != "rank_bm25" and _fault("BM25", loaded["BM25"], library):
            _update_lexical(stamp, library, loaded, folder / LEXICAL)
        if damaged and notice is not None:
            faults = [f"The {name} index could not be read" for name in damaged]
            notice(f"{_joined(faults)}: rebuilt from the library without embedding anything again.")


def check_in_background(folder: Path, engine: Engine) -> list[Thread]:
    """Check all files of the indexes in threads; see `Indexes.found_damaged`."""
    threads = []
    for place in (folder, folder / FINE):
        with suppress(IndexDamaged, OSError):
            threads.append(index_files.check_in_background(place, vectors.listed_files(place)))
    with suppress(IndexDamaged, OSError):
        if engine == "tantivy":
            threads.append(index_files.check_in_background(folder / LEXICAL, bm25.listed_files(folder / LEXICAL)))
    return threads


def rebuild_indexes(folder: Path, library: Library, engine: Engine) -> None:
    """Rebuild the indexes from the library. The caller holds the writer lock."""
    for old in (*folder.glob("vectors*"), folder / FINE, folder / LEXICAL):
        discard(old)
    _update(folder, library, engine, "none")


def size(folder: Path) -> int:
    """The size of a store's files in bytes; 0 if there is no store."""
    total = 0
    for parent, folders, names in os.walk(folder):
        if parent == str(folder) and EVALUATIONS in folders:
            folders.remove(EVALUATIONS)
        for name in names:
            with suppress(FileNotFoundError):  # a running ingest may delete files
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def verify(folder: Path, library: Library, engine: Engine) -> list[str]:
    """Check the library and, if it is sound, compare the indexes with it; returns the faults, one sentence each.

    Raises StoreMismatch as require_format does.
    """
    require_format(library)
    problems = library.check()
    if problems or not library.fingerprint():  # without a fingerprint, no paper was ever added
        return problems
    with library.reading() as stamp:
        for name, grain in _vector_indexes(library).items():
            try:
                vectors = VectorIndex.load(_place(folder, name), library.vectors_of, thorough=True)
                if vectors.stamp != stamp:
                    problems.append(f"The {name} index is not up to date with the library.")
                elif vectors.ids() != library.chunk_ids(grain=grain):
                    problems.append(f"The {name} index and the library hold different passages.")
                elif vectors.dimension != _dimension(library):
                    problems.append(f"The vectors of the {name} index and the library differ in dimension.")
                elif wrong := vectors.count_mismatches():
                    problems.append(f"{wrong} vectors in the {name} index differ from the library's.")
            except IndexDamaged as error:
                problems.append(_sentence(error))
        if engine == "rank_bm25":
            return problems
        try:
            lexical = TantivyIndex.load(folder / LEXICAL, thorough=True)
            if lexical.stamp != stamp:
                problems.append("The BM25 index is not up to date with the library.")
            elif lexical.ids() != library.chunk_ids():
                problems.append("The BM25 index and the library hold different passages.")
        except IndexDamaged as error:
            problems.append(_sentence(error))
    return problems


def _sentence(error: FolioError) -> str:
    return f"{error.happened[0].upper()}{error.happened[1:]}."


def _dimension(library: Library) -> int:
    return int(library.fingerprint().get("dimension", "1"))


def _vector_indexes(library: Library) -> dict[str, Grain]:
    """Name -> grain of the vector indexes of a library."""
    return {"vector": "passage", _FINE_NAME: "fine"} if library.is_dual else {"vector": "passage"}


def _place(folder: Path, name: str) -> Path:
    """The folder of a vector index."""
    return folder / FINE if name == _FINE_NAME else folder


def _load(folder: Path, library: Library, engine: Engine, trust: Trust) -> Loaded:
    """The indexes on disk. rank-bm25 keeps none there."""
    loaded: Loaded = {}
    for name in _vector_indexes(library):
        vectors = None
        if trust != "none":
            with suppress(IndexDamaged):
                vectors = VectorIndex.load(_place(folder, name), library.vectors_of, thorough=trust == "checked")
        with library.reading() as stamp:  # an index of another epoch is only outdated, whatever its dimension
            if vectors is not None and vectors.stamp.epoch == stamp.epoch and vectors.dimension != _dimension(library):
                vectors = None
        loaded[name] = vectors
    if engine != "rank_bm25":
        loaded["BM25"] = None
        if trust != "none":
            with suppress(IndexDamaged):
                loaded["BM25"] = TantivyIndex.load(folder / LEXICAL, thorough=trust == "checked")
    return loaded


def faults(folder: Path, library: Library, engine: Engine) -> list[str]:
    """Obvious faults of the indexes on disk, one clause each; `verify` checks thoroughly."""
    return _faults(_load(folder, library, engine, "sample"), library)


def _faults(loaded: Loaded, library: Library) -> list[str]:
    return [fault for name, index in loaded.items() if (fault := _fault(name, index, library))]


def _fault(name: str, index: VectorIndex | TantivyIndex | None, library: Library) -> str:
    """A clause about the fault of an index on disk; "" if it is current."""
    with library.reading() as stamp:
        if index is None:
            return f"The {name} index was missing or could not be read"
        if index.stamp != stamp or len(index) != library.chunk_count("fine" if name == _FINE_NAME else "passage"):
            return f"The {name} index did not match the library"
        return ""


def _joined(faults: list[str]) -> str:
    first, *later = faults
    return " and ".join([first, *(f"{fault[0].lower()}{fault[1:]}" for fault in later)])


def _ahead(index: VectorIndex | TantivyIndex | None, stamp: Stamp) -> bool:
    return index is not None and index.stamp.epoch == stamp.epoch and index.stamp.generation > stamp.generation


def _update_vectors(
    stamp: Stamp, library: Library, grain: Grain, index: VectorIndex | None, folder: Path | None = None
) -> VectorIndex:
    """A vector index updated to this stamp, or rebuilt if that is impossible; saved if a folder is given."""
    if index is not None and _can_update(index.stamp, stamp):
        since = index.stamp.generation
        with suppress(IndexDamaged):
            index.update(library.chunk_ids(since, grain), library.removed(since), stamp, folder)
            if len(index) == library.chunk_count(grain):  # otherwise the index does not fit the library
                return index
    index = VectorIndex(_dimension(library), Stamp(stamp.epoch, -1), library.vectors_of)
    index.update(library.chunk_ids(grain=grain), (), stamp, folder)
    return index


def _update_lexical(stamp: Stamp, library: Library, loaded: Loaded, folder: Path | None) -> TantivyIndex:
    """The BM25 index updated to this stamp, or rebuilt; takes the old one out of `loaded`.

    It is rebuilt if any of its passages was removed, because its scores would otherwise depend on its history.
    """
    index = loaded.pop("BM25", None)
    assert not isinstance(index, VectorIndex)
    if index is not None and _can_update(index.stamp, stamp):
        since = index.stamp.generation
        removed = library.removed(since)
        with suppress(IndexDamaged):
            if not removed or index.ids().isdisjoint(removed):
                index.add(library.passages(since), stamp)
                if len(index) == library.chunk_count():
                    return index
    del index  # unmaps its files, so that Windows lets them go
    new = TantivyIndex.create(Stamp(stamp.epoch, -1), folder)
    new.add(library.passages(), stamp)
    return new


def _can_update(index: Stamp, library: Stamp) -> bool:
    return index.epoch == library.epoch and index.generation <= library.generation


class GrainVectors:
    """The vectors of one grain, in an index at the library's generation. Use it inside `Library.reading`."""

    def __init__(self, library: Library, index: VectorIndex, grain: Grain) -> None:
        self._library, self._index, self._grain = library, index, grain
        self._ids: tuple[frozenset[str], list[int]] = (frozenset(), [])  # the papers searched last, and their chunk ids

    def search(self, query: Vectors, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        return self._index.search(query, k, None if papers is None else self._ids_of(papers))

    def search_all(
        self, query: Vectors, k: int, allowed: Callable[[Iterable[int]], set[int]]
    ) -> list[tuple[int, float]] | None:
        if k >= len(self._index):
            return None
        # A large index reads only some of its vectors, but all of them if it is given ids.
        return self._index.search(query, k, sorted(allowed(self._index.ids())))

    def cosines(self, ids: Sequence[int], query: Vectors) -> list[float]:
        return self._index.cosines(ids, query)

    def _ids_of(self, papers: frozenset[str]) -> list[int]:
        if self._ids[0] != papers:
            passages = self._library.chunk_ids_of(papers)
            self._ids = papers, passages if self._grain == "passage" else self._library.fine_ids_in(passages)
        return self._ids[1]
