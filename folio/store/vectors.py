"""The vector index: cosine search over the library's unit vectors (inner product).

On disk it consists of segments (store/vectors.py): an update writes one file with the new vectors. vectors.json lists
the segments and the ids removed from each. It is replaced last, so a reader finds either the old state or the new one.
An update also merges segments that are no larger than the new one, so each segment is larger than all later ones
together: there are few segments, and a vector is rewritten only when its segment doubles (as in a log-structured merge
tree, O'Neil et al. 1996).

Segments give the candidates; their exact scores come from the library's vectors.

A segment holds unit vectors in half precision, by chunk id, in a FAISS file that is memory-mapped, so that a search
reads only what it needs. A small segment is flat: every vector is compared. A large one is an inverted file (IVF): its
vectors are clustered into lists, and a search reads only the lists with the nearest centroids. How many lists it must
read (nprobe) is calibrated when the segment is built.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from time import sleep
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from folio.errors import IndexDamaged
from folio.papers.model import Vectors
from folio.store.index_files import (
    Checksums,
    Identity,
    Summing,
    check,
    engine_errors,
    from_json,
    read_manifest,
    require_possible,
    to_json,
    write_manifest,
)
from folio.store.rows import Stamp
from folio.system.files import PAUSE_S, TRIES, discard, is_in_use, sync

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


MANIFEST = "vectors.json"
NAME = "vector"
# The most bytes that are checked when an index is opened: 16,000 vectors of 768 numbers have 24 MiB, which takes 16 ms.
CHECKED_BYTES = 24 * 2**20
# A segment is rewritten when more than this share of its vectors has been removed.
_MAX_REMOVED = 1 / 4
# The smallest positive number in half precision; smaller ones are rounded to it or to 0.
_SMALLEST = 2.0**-24


class VectorIndex:
    """Vector search by chunk id."""

    def __init__(
        self,
        dimension: int,
        stamp: Stamp,
        read: ReadVectors,
        segments: Iterable[Segment] = (),
        flat_up_to: int = FLAT_UP_TO,
    ) -> None:
        """read: returns the library's vectors of ids. flat_up_to: see build."""
        self.dimension = dimension
        self.stamp = stamp
        self.segments = list(segments)
        self.files: frozenset[Identity] = frozenset()  # when the index was opened
        self._read = read
        self._flat_up_to = flat_up_to

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    def ids(self) -> set[int]:
        return {chunk for segment in self.segments for chunk in segment.ids().tolist()}

    def cosines(self, ids: Sequence[int], query: Vectors) -> list[float]:
        """The exact cosine of each chunk with a unit vector of shape (dimension,)."""
        if not ids:
            return []
        # No matrix product, because its last digit may depend on a vector's row.
        cosines: list[float] = (self._read(ids) * query).sum(axis=1).tolist()
        return cosines

    def search(self, query: Vectors, k: int, ids: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """At most k (chunk id, cosine), best first, ties by id. ids: search only these; None for all.

        Exact if ids are given or all segments are flat; otherwise a search reads only some lists of the inverted files.
        The library must be at this index's stamp: search inside `Library.reading` if others may write.
        """
        if len(self) == 0 or k < 1 or (ids is not None and not ids):
            return []
        among = None if ids is None else frozenset(ids)
        limit = 2 * k
        while True:
            with engine_errors(NAME):
                candidates = [pair for segment in self.segments for pair in segment.search(query, limit, among)]
                candidates = sorted(require_possible(NAME, candidates, len(self)), key=lambda pair: -pair[1])[:limit]
            chunks = [chunk for chunk, _ in candidates]
            exact = list(zip(chunks, self.cosines(chunks, query), strict=True))
            if any(
                not abs(cosine - score) < 2 * ERROR for (_, cosine), (_, score) in zip(exact, candidates, strict=True)
            ):
                raise IndexDamaged("the vector index holds a vector that is not the library's")
            best = sorted(exact, key=lambda pair: (-pair[1], pair[0]))[:k]
            # Every other chunk scores at most as high as the last candidate, within ERROR.
            if len(candidates) < limit or best[-1][1] > candidates[-1][1] + ERROR:
                return best
            limit *= 2

    def update(self, added: Iterable[int], removed: Iterable[int], stamp: Stamp, folder: Path | None = None) -> None:
        """Remove chunks, then add chunks, and save the index if a folder is given.

        Chunks that are already in the index may be added only if they are also among the removed. Raises OSError; the
        index must not be used after that.
        """
        self._mark_removed(np.unique(np.fromiter(removed, dtype=np.int64)))
        new = np.unique(np.fromiter(added, dtype=np.int64))
        self.stamp = stamp
        if folder is None:
            if len(new):
                self.segments.append(build_flat(new, self._read, self.dimension))
            return
        merged = self._segments_to_merge(len(new))
        remaining = [segment for segment in self.segments if segment not in merged]
        ids = np.sort(np.concatenate([new, *(segment.ids() for segment in merged)]))
        if len(ids):
            segment = build(ids, self._read, self.dimension, self._flat_up_to)
            segment.write(folder / f"vectors-{stamp.epoch[:8]}-{stamp.generation}.faiss")
            assert segment.meta is not None
            remaining.append(Segment.open(folder, segment.meta, self.dimension))
        self.segments = remaining
        del merged  # unmaps their files, so that Windows lets them go
        self._write_manifest(folder)
        self.delete_old_files(folder)

    def _mark_removed(self, ids: Ids) -> None:
        for segment in self.segments if len(ids) else ():
            segment.removed |= frozenset(np.intersect1d(segment.ids(), ids).tolist())

    def _segments_to_merge(self, new: int) -> list[Segment]:
        """The segments to be rewritten together with `new` new vectors."""
        merged = [segment for segment in self.segments if segment.meta is None or _has_many_removed(segment)]
        size = new + sum(map(len, merged))
        for segment in sorted((segment for segment in self.segments if segment not in merged), key=len):
            if len(segment) > size:
                break
            merged.append(segment)
            size += len(segment)
        return merged

    def _write_manifest(self, folder: Path) -> None:
        listed = [
            {**asdict(segment.meta), "sums": to_json(segment.meta.sums), "removed": sorted(segment.removed)}
            for segment in self.segments
            if segment.meta
        ]
        head = {**asdict(self.stamp), "dimension": self.dimension, "count": len(self)}
        write_manifest(folder / MANIFEST, {**head, "segments": listed})

    def delete_old_files(self, folder: Path) -> None:
        """Delete files of earlier states and of interrupted writes, once no reader has them open."""
        current = {segment.meta.file for segment in self.segments if segment.meta}
        for old in folder.glob("vectors-*.faiss*"):
            if old.name not in current:
                discard(old)

    def count_mismatches(self) -> int:
        """How many vectors differ from the library's by more than rounding; reads them all."""
        wrong = 0
        for segment in self.segments:
            for ids, stored in segment.stored():
                expected = self._read(ids.tolist()) if len(ids) else stored
                wrong += int((~(abs(stored - expected) <= ERROR * abs(expected) + _SMALLEST)).any(axis=1).sum())
        return wrong

    @classmethod
    def load(
        cls, folder: Path, read: ReadVectors, flat_up_to: int = FLAT_UP_TO, *, thorough: bool = False
    ) -> VectorIndex:
        """Open a saved index. Raises IndexDamaged if its files differ from their checksums in the manifest.

        The files are mapped into memory. thorough: read them to the end, even if they have more than CHECKED_BYTES.
        """
        with engine_errors(NAME):
            while True:
                manifest = read_manifest(folder / MANIFEST)
                try:
                    return cls._open(folder, manifest, read, flat_up_to, None if thorough else CHECKED_BYTES)
                except FileNotFoundError:
                    if read_manifest(folder / MANIFEST) == manifest:
                        raise
                    # A writer has replaced the manifest, and deleted a file that it no longer lists.

    @classmethod
    def _open(
        cls, folder: Path, manifest: dict[str, Any], read: ReadVectors, flat_up_to: int, budget: int | None
    ) -> VectorIndex:
        dimension, stamp = int(manifest["dimension"]), Stamp(manifest["epoch"], manifest["generation"])
        entries = [dict(entry) for entry in manifest["segments"]]
        removed = [frozenset(map(int, entry.pop("removed"))) for entry in entries]
        metas = [
            SegmentMeta(**{**entry, "file": Path(entry["file"]).name, "sums": from_json(entry["sums"])})
            for entry in entries
        ]
        identities = check(folder, {meta.file: meta.sums for meta in metas}, budget)
        segments = [Segment.open(folder, meta, dimension) for meta in metas]
        for segment, ids in zip(segments, removed, strict=True):
            segment.removed = ids
        index = cls(dimension, stamp, read, segments, flat_up_to)
        index.files = identities
        if len(index) != manifest["count"]:
            raise IndexDamaged("the number of vectors in the files differs from their manifest")
        return index


def listed_files(folder: Path) -> dict[str, Checksums]:
    """The files in the manifest of a saved index, with their checksums. Raises IndexDamaged."""
    with engine_errors(NAME):
        entries = read_manifest(folder / MANIFEST)["segments"]
        return {Path(entry["file"]).name: from_json(entry["sums"]) for entry in entries}


def _has_many_removed(segment: Segment) -> bool:
    return len(segment.removed) > _MAX_REMOVED * (len(segment) + len(segment.removed))


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
