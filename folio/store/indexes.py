"""One folder: the library and its two derived indexes, opened together and brought to the library's generation.

An index that lags, is missing or is damaged is caught up from the library, without embedding anything again: on disk
when nobody else is writing, in memory when somebody is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from folio.errors import DiskFull, FolioError, IndexDamaged, StoreBusy, StoreMismatch
from folio.files import no_space
from folio.store.bm25_index import OkapiIndex, TantivyIndex
from folio.store.library import Library
from folio.store.vector_index import VectorIndex
from folio.types import Notice, Stamp

LIBRARY = "library.sqlite"
LEXICAL = "lexical"
# Stores that are only measured, each in a folder of its own in this one, which is no part of the store.
EVALUATIONS = "evaluations"
Engine = Literal["tantivy", "rank_bm25"]


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold the one place for a writer. Raises StoreBusy at once when another process has it."""
    with no_space(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "writer.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise StoreBusy(
                "Another ingest is running on this store.", "Wait until it has ended, then run the same command again."
            ) from None
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class Indexes:
    """Both derived indexes, at one generation of the library."""

    stamp: Stamp
    vectors: VectorIndex
    lexical: TantivyIndex | OkapiIndex


def require_fingerprint(library: Library, expected: dict[str, str]) -> None:
    """Raises StoreMismatch naming every field in which the store differs from what is asked for."""
    made_with = library.fingerprint()
    if not made_with:
        return
    fields = sorted(made_with.keys() | expected.keys())
    differ = [
        f"{field} is {made_with.get(field, 'unknown')} in the store and {expected.get(field, 'unknown')} now"
        for field in fields
        if made_with.get(field) != expected.get(field)
    ]
    if differ:
        raise StoreMismatch(
            f"The store was made with other settings: {'; '.join(differ)}.",
            "Run `python ingest.py --rebuild` to make it again, or set back what was changed.",
        )


def open_indexes(folder: Path, library: Library, engine: Engine, notice: Notice) -> Indexes:
    """Both indexes at the library's present generation; says in one line what had to be repaired.

    Called inside `library.reading()`, it serves that snapshot, even when a writer has gone on since.
    """
    with library.reading() as stamp:
        vectors, lexical = _load_vectors(folder, library), _load_lexical(folder, engine)
        faults = _faults(vectors, lexical, library, engine)
        if faults and not _ahead(vectors, stamp) and not _ahead(lexical, stamp):
            try:
                with writing(folder):
                    update_indexes(folder, library, engine)
                notice(f"{_joined(faults)}: repaired from the library, nothing was embedded again.")
                vectors, lexical = _load_vectors(folder, library), _load_lexical(folder, engine)
                faults = _faults(vectors, lexical, library, engine)
            except (StoreBusy, DiskFull, OSError) as error:
                reason = error.happened if isinstance(error, FolioError) else str(error)
                notice(f"{_joined(faults)}: read from the library for now. {reason}")
        if vectors is None or faults:
            vectors = _vectors_at(stamp, library, vectors, None)
        if engine == "rank_bm25":
            return Indexes(stamp, vectors, OkapiIndex(library.passages(), stamp))
        if lexical is None or faults:
            lexical = _lexical_at(stamp, library, None, None)
        return Indexes(stamp, vectors, lexical)


def update_indexes(folder: Path, library: Library, engine: Engine) -> None:
    """Bring both indexes on disk to the library's generation. The caller holds the writer's place."""
    with library.reading() as stamp, no_space(folder):
        vectors, lexical = _load_vectors(folder, library), _load_lexical(folder, engine)
        if _fault("vector", vectors, library):
            _vectors_at(stamp, library, vectors, folder)
        elif vectors is not None:
            vectors.tidy(folder)
        if engine != "rank_bm25" and _fault("BM25", lexical, library):
            _lexical_at(stamp, library, lexical, folder / LEXICAL)


def rebuild_indexes(folder: Path, library: Library, engine: Engine) -> None:
    """Make both indexes anew from the library. The caller holds the writer's place."""
    for old in folder.glob("vectors*"):
        old.unlink(missing_ok=True)
    shutil.rmtree(folder / LEXICAL, ignore_errors=True)
    update_indexes(folder, library, engine)


def size(folder: Path) -> int:
    """The bytes of a store's files; 0 where there is none."""
    total = 0
    for place, folders, names in os.walk(folder):
        if place == str(folder) and EVALUATIONS in folders:
            folders.remove(EVALUATIONS)
        for name in names:
            with suppress(FileNotFoundError):  # an ingest may tidy up meanwhile
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def verify(folder: Path, library: Library, engine: Engine) -> list[str]:
    """Hold the store against itself: every fault in one sentence, nothing when all is well."""
    problems = library.check()
    if not library.fingerprint():  # no paper has ever landed
        return problems
    with library.reading() as stamp:
        ids = library.chunk_ids()
        try:
            vectors = VectorIndex.load(folder, library.vectors_of)
            if vectors.stamp != stamp:
                problems.append("The vector index lags behind the library.")
            elif vectors.ids() != ids:
                problems.append("The vector index holds other chunks than the library.")
            elif vectors.dimension != _dimension(library):
                problems.append("The vector index has vectors of another size than the library.")
            else:
                problems += [f"{file} is not the file that was written." for file in vectors.damage(folder)]
                if not problems and (wrong := vectors.unlike()):
                    problems.append(f"{wrong} vectors of the index are not the library's.")
        except IndexDamaged as error:
            problems.append(_sentence(error))
        if engine == "rank_bm25":
            return problems
        try:
            lexical = TantivyIndex.load(folder / LEXICAL, thorough=True)
            if lexical.stamp != stamp:
                problems.append("The BM25 index lags behind the library.")
            elif lexical.ids() != ids:
                problems.append("The BM25 index holds other chunks than the library.")
        except IndexDamaged as error:
            problems.append(_sentence(error))
    return problems


def _sentence(error: FolioError) -> str:
    return f"{error.happened[0].upper()}{error.happened[1:]}."


def _dimension(library: Library) -> int:
    return int(library.fingerprint().get("dimension", "1"))


def _load_vectors(folder: Path, library: Library) -> VectorIndex | None:
    try:
        vectors = VectorIndex.load(folder, library.vectors_of)
    except IndexDamaged:
        return None
    return vectors if vectors.dimension == _dimension(library) else None


def _load_lexical(folder: Path, engine: Engine) -> TantivyIndex | None:
    """None too for the engine that keeps nothing on disk."""
    if engine == "rank_bm25":
        return None
    try:
        return TantivyIndex.load(folder / LEXICAL)
    except IndexDamaged:
        return None


def faults(folder: Path, library: Library, engine: Engine) -> list[str]:
    """What is wrong with the indexes on disk at a glance, a clause each; `verify` looks closer."""
    return _faults(_load_vectors(folder, library), _load_lexical(folder, engine), library, engine)


def _faults(vectors: VectorIndex | None, lexical: TantivyIndex | None, library: Library, engine: Engine) -> list[str]:
    found = [_fault("vector", vectors, library)]
    if engine != "rank_bm25":  # which keeps nothing on disk
        found.append(_fault("BM25", lexical, library))
    return [fault for fault in found if fault]


def _fault(name: str, index: VectorIndex | TantivyIndex | None, library: Library) -> str:
    """What is wrong with an index on disk, in words that can begin a sentence; nothing when it is current."""
    with library.reading() as stamp:
        if index is None:
            return f"The {name} index was missing or damaged"
        if index.stamp != stamp or len(index) != library.chunk_count():
            return f"The {name} index was of another state than the library"
        return ""


def _joined(faults: list[str]) -> str:
    first, *others = faults
    return " and ".join([first, *(f"{fault[0].lower()}{fault[1:]}" for fault in others)])


def _ahead(index: VectorIndex | TantivyIndex | None, stamp: Stamp) -> bool:
    return index is not None and index.stamp.epoch == stamp.epoch and index.stamp.generation > stamp.generation


def _vectors_at(stamp: Stamp, library: Library, index: VectorIndex | None, folder: Path | None) -> VectorIndex:
    """The vectors at this stamp: what is there caught up, or else all of them; on disk where a folder is given."""
    if index is None or not _leads_to(index.stamp, stamp):
        index = _no_vectors(stamp, library)
    since = index.stamp.generation
    index.update(library.chunk_ids(since), library.removed(since), stamp, folder)
    if len(index) != library.chunk_count():  # what was there was of another history
        index = _no_vectors(stamp, library)
        index.update(library.chunk_ids(), (), stamp, folder)
    return index


def _no_vectors(stamp: Stamp, library: Library) -> VectorIndex:
    return VectorIndex(_dimension(library), Stamp(stamp.epoch, -1), library.vectors_of)


def _lexical_at(stamp: Stamp, library: Library, index: TantivyIndex | None, folder: Path | None) -> TantivyIndex:
    """BM25 at this stamp, likewise."""
    if index is None or not _leads_to(index.stamp, stamp):
        index = TantivyIndex.create(Stamp(stamp.epoch, -1), folder)
    since = index.stamp.generation
    index.update(library.passages(since), library.removed(since), stamp)
    if len(index) != library.chunk_count():
        index = TantivyIndex.create(Stamp(stamp.epoch, -1), folder)
        index.update(library.passages(), (), stamp)
    return index


def _leads_to(index: Stamp, library: Stamp) -> bool:
    return index.epoch == library.epoch and index.generation <= library.generation
