"""Segments of the vector index: FAISS files that are memory-mapped, so that a search reads only what it needs.

A segment holds unit vectors in half precision, by chunk id. A small segment is flat: every vector is compared. A large
one is an inverted file (IVF): its vectors are clustered into lists, and a search reads only the lists with the nearest
centroids. How many lists it must read (nprobe) is calibrated when the segment is built.

Scores are approximate (see ERROR); exact ones need the vectors in full precision.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from time import sleep
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from folio.errors import IndexDamaged
from folio.files import PAUSE_S, TRIES, is_in_use, sync
from folio.store.checksums import Checksums, Summing
from folio.types import Vectors

Ids = npt.NDArray[np.int64]
# Chunk ids -> their vectors in full precision, in that order: shape (len(ids), dimension)
ReadVectors = Callable[[Sequence[int]], Vectors]
Kind = Literal["flat", "lists"]

# Segments up to this size are flat: a search takes less than 5 ms for vectors of 768 numbers.
FLAT_UP_TO = 30_000
# The largest error of a score in half precision: numbers are rounded by at most 2^-11 of their size, and for two unit
# vectors the sum of |q_i x_i| is at most 1 (Cauchy-Schwarz).
ERROR = 2.0**-11
# Training vectors per list; the number of lists is twice the square root of the number of vectors.
TRAINING_VECTORS_PER_LIST = 40
# Calibration of nprobe: the number of synthetic queries, and the recall to reach on the BEST nearest vectors of each
QUERIES, BEST, RECALL = 200, 20, 0.99
# Safety factor on the calibrated nprobe. Real questions about 55 papers needed up to 1.5 times the calibrated value,
# synthetic queries halfway between two passages twice (LOG.md).
SAFETY_FACTOR = 3
_BATCH = 8192


@dataclass(frozen=True, slots=True)
class SegmentMeta:
    """The manifest's entry for a segment's file."""

    file: str
    sums: Checksums
    count: int
    kind: Kind
    probes: int  # nprobe: how many lists a search reads; 0 if flat
    recall: float  # at BEST, measured when the segment was built; 1 if flat


class Segment:
    """Some vectors, and the ids that have been removed since they were written."""

    def __init__(self, index: Any, probes: int = 0, recall: float = 1.0) -> None:
        self.index = index
        self.probes = probes
        self.recall = recall
        self.removed: frozenset[int] = frozenset()
        self.meta: SegmentMeta | None = None  # None until it is written to a file
        self._mapped: npt.NDArray[np.uint8] | None = None  # the mapped file that `index` reads from

    @property
    def kind(self) -> Kind:
        return "lists" if self.probes else "flat"

    def __len__(self) -> int:
        return int(self.index.ntotal) - len(self.removed)

    def ids(self) -> Ids:
        """The ids that have not been removed, sorted."""
        import faiss

        if self.probes:
            lists = self.index.invlists
            sizes = [(number, lists.list_size(number)) for number in range(lists.nlist)]
            ids = np.concatenate([faiss.rev_swig_ptr(lists.get_ids(number), size) for number, size in sizes if size])
        else:
            ids = faiss.vector_to_array(self.index.id_map)
        return np.setdiff1d(ids, _array(self.removed))

    def stored(self) -> Iterator[tuple[Ids, Vectors]]:
        """The ids that have not been removed and their stored vectors, in batches; reads the whole file."""
        removed = _array(self.removed)
        for ids, vectors in self._stored_ivf() if self.probes else self._stored_flat():
            is_current = ~np.isin(ids, removed)
            yield ids[is_current], vectors[is_current]

    def _stored_flat(self) -> Iterator[tuple[Ids, Vectors]]:
        import faiss

        ids = faiss.vector_to_array(self.index.id_map)
        for first in range(0, len(ids), _BATCH):
            part = ids[first : first + _BATCH]
            yield part, self.index.index.reconstruct_n(first, len(part))

    def _stored_ivf(self) -> Iterator[tuple[Ids, Vectors]]:
        import faiss

        lists = self.index.invlists
        for number in range(lists.nlist):
            size = lists.list_size(number)
            if size:
                codes = faiss.rev_swig_ptr(lists.get_codes(number), size * lists.code_size).view(np.float16)
                ids = faiss.rev_swig_ptr(lists.get_ids(number), size)
                yield ids, codes.reshape(size, -1).astype(np.float32)

    def search(self, query: Vectors, limit: int, among: frozenset[int] | None = None) -> list[tuple[int, float]]:
        """At most `limit` (chunk id, score within ERROR), best first.

        among: search only these ids, reading every list so that none is missed.
        """
        import faiss

        selector: Any = None
        if among is not None:
            selector = batch = faiss.IDSelectorBatch(_array(among - self.removed))
        elif self.removed:
            batch = faiss.IDSelectorBatch(_array(self.removed))
            selector = faiss.IDSelectorNot(batch)
        parameters: Any = faiss.SearchParameters()
        if self.probes:
            parameters = faiss.SearchParametersIVF()
            parameters.nprobe = self.probes if among is None else self.index.nlist
        parameters.sel = selector
        with _one_thread():
            scores, ids = self.index.search(query.reshape(1, -1), min(limit, self.index.ntotal), params=parameters)
        return [(int(i), float(score)) for i, score in zip(ids[0], scores[0], strict=True) if i >= 0]

    def write(self, path: Path) -> None:
        """Write to a temporary file, sync it and rename it to `path`, or a similar name. Raises OSError."""
        import faiss

        temporary = path.with_name(f"{path.name}.new")
        summing = Summing()
        try:
            with temporary.open("wb") as file:  # opened here: FAISS does not report a full disk

                def write(data: bytes) -> None:
                    summing.update(data)
                    file.write(data)

                faiss.write_index(self.index, faiss.PyCallbackIOWriter(write))  # type: ignore[attr-defined]
            sync(temporary)
            name = _rename(temporary, path)
        except OSError:
            with suppress(OSError):  # on Windows a reader may keep it; the next write removes it
                temporary.unlink(missing_ok=True)
            raise
        self.meta = SegmentMeta(name, summing.sums(), int(self.index.ntotal), self.kind, self.probes, self.recall)

    @classmethod
    def open(cls, folder: Path, meta: SegmentMeta, dimension: int) -> Segment:
        """Map a file into memory. Raises IndexDamaged if its size or kind differs from `meta`.

        The caller has checked its content (checksums.check).
        """
        import faiss

        # Mapped here: FAISS opens a file by a name in the system's narrow encoding, which on Windows lacks most
        # characters (https://github.com/facebookresearch/faiss/issues/3073), and in the locale C all but ASCII.
        with (folder / meta.file).open("rb") as file:
            if os.fstat(file.fileno()).st_size != meta.sums.bytes:
                raise IndexDamaged(f"{meta.file} has changed in size since it was written")
            mapped = np.frombuffer(mmap(file.fileno(), 0, access=ACCESS_READ), dtype=np.uint8)
        reader = faiss.ZeroCopyIOReader(faiss.swig_ptr(mapped), mapped.size)  # type: ignore[attr-defined]
        index = faiss.read_index(reader)
        expected = faiss.IndexIVFScalarQuantizer if meta.kind == "lists" else faiss.IndexIDMap
        if (type(index), index.d, index.ntotal) != (expected, dimension, meta.count):
            raise IndexDamaged(f"{meta.file} does not match its manifest")
        segment = cls(index, meta.probes, meta.recall)
        segment.meta, segment._mapped = meta, mapped
        return segment


def _rename(temporary: Path, path: Path) -> str:
    """Rename a file to `path`, or to a similar name if Windows keeps `path` for a reader; returns the new name.

    If Windows keeps the new file, as for a virus scanner, this retries for a second. Raises OSError.
    """
    stem, tries_left = path.stem, TRIES
    for number in itertools.count(2):
        try:
            os.replace(temporary, path)
            break
        except OSError as error:
            if not is_in_use(error) or not tries_left:
                raise
        if not os.path.lexists(path):  # the name is free, or its file is about to go
            tries_left -= 1
            sleep(PAUSE_S)
        path = path.with_stem(f"{stem}-{number}")
    return path.name


def build_flat(ids: Ids, read: ReadVectors, dimension: int) -> Segment:
    """A segment that compares every vector."""
    import faiss

    vectors = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    vectors.is_trained = True  # half precision has nothing to learn
    index = faiss.IndexIDMap(vectors)
    for part, batch in _batches(ids, read):
        index.add_with_ids(batch, part)
    return Segment(index)


def build(ids: Ids, read: ReadVectors, dimension: int, flat_up_to: int = FLAT_UP_TO) -> Segment:
    """A segment of these vectors: IVF if there are more than `flat_up_to` and it pays off, otherwise flat.

    IVF pays off if a search reads at most half of the lists. The same vectors always give the same segment.
    """
    if len(ids) > flat_up_to:
        segment = _build_ivf(ids, read, dimension)
        if segment.probes <= segment.index.nlist // 2:
            return segment
    return build_flat(ids, read, dimension)


def _build_ivf(ids: Ids, read: ReadVectors, dimension: int) -> Segment:
    import faiss

    rng = np.random.default_rng(len(ids))
    count = max(1, round(2 * len(ids) ** 0.5))
    sample = read(_sample(rng, ids, TRAINING_VECTORS_PER_LIST * count))
    quantizer = faiss.IndexFlatIP(dimension)
    half = faiss.ScalarQuantizer.QT_fp16
    index = faiss.IndexIVFScalarQuantizer(quantizer, dimension, count, half, faiss.METRIC_INNER_PRODUCT, False)
    index.cp.spherical, index.cp.niter, index.cp.min_points_per_centroid = True, 10, 1
    index.train(sample)
    del sample
    # Synthetic queries are passages' vectors plus noise of the same length. Their cosine, about 0.7, is that of a
    # question and the passage that answers it.
    queries = read(_sample(rng, ids, QUERIES))
    noise = rng.standard_normal(queries.shape, dtype=np.float32)
    queries = _unit(queries + _unit(noise))
    nearest = _ExactNearest(queries)
    for part, vectors in _batches(ids, read):
        index.add_with_ids(vectors, part)
        nearest.add(part, vectors)
    probes = min(count, SAFETY_FACTOR * _calibrate_nprobe(index, queries, nearest.ids))
    return Segment(index, probes, _recall(index, queries, nearest.ids, probes))


class _ExactNearest:
    """The ids of the BEST vectors nearest to each query, by exact search; vectors are added in batches."""

    def __init__(self, queries: Vectors) -> None:
        self._queries = queries
        self.ids = np.empty((len(queries), 0), dtype=np.int64)
        self._scores = np.empty((len(queries), 0), dtype=np.float32)

    def add(self, ids: Ids, vectors: Vectors) -> None:
        scores = np.concatenate([self._scores, self._queries @ vectors.T], axis=1)
        candidates = np.concatenate([self.ids, np.broadcast_to(ids, (len(self._queries), len(ids)))], axis=1)
        if scores.shape[1] > BEST:
            top = np.argpartition(-scores, BEST - 1, axis=1)[:, :BEST]
            scores, candidates = np.take_along_axis(scores, top, axis=1), np.take_along_axis(candidates, top, axis=1)
        self.ids, self._scores = candidates, scores


def _calibrate_nprobe(index: Any, queries: Vectors, nearest: Ids) -> int:
    """The smallest nprobe that reaches RECALL, or the number of lists if none does."""
    low, high = 1, int(index.nlist)
    while low < high:
        middle = (low + high) // 2
        if _recall(index, queries, nearest, middle) >= RECALL:
            high = middle
        else:
            low = middle + 1
    return low


def _recall(index: Any, queries: Vectors, nearest: Ids, probes: int) -> float:
    """The share of the nearest vectors that a search with this nprobe finds."""
    import faiss

    parameters = faiss.SearchParametersIVF()
    parameters.nprobe = probes
    _, ids = index.search(queries, nearest.shape[1], params=parameters)
    shared = sum(
        len(np.intersect1d(found_ids, nearest_ids)) for found_ids, nearest_ids in zip(ids, nearest, strict=True)
    )
    return shared / nearest.size


def full_precision_index(dimension: int, batches: Iterator[tuple[list[int], Vectors]]) -> Any:
    """An in-memory FAISS index of these vectors in full precision, for code that searches FAISS itself."""
    import faiss

    index = faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))
    for ids, vectors in batches:
        index.add_with_ids(vectors, np.asarray(ids, dtype=np.int64))
    return index


def _batches(ids: Ids, read: ReadVectors) -> Iterator[tuple[Ids, Vectors]]:
    for first in range(0, len(ids), _BATCH):
        part = ids[first : first + _BATCH]
        yield part, np.ascontiguousarray(read(part.tolist()))


def _sample(rng: np.random.Generator, ids: Ids, count: int) -> list[int]:
    """A random sample of `count` ids, sorted; all of them if there are fewer."""
    sample: list[int] = np.sort(rng.choice(ids, size=min(count, len(ids)), replace=False)).tolist()
    return sample


def _array(ids: frozenset[int]) -> Ids:
    return np.fromiter(ids, dtype=np.int64, count=len(ids))


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Search with a single thread: for one query, waking threads on a busy machine costs more than it saves."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
