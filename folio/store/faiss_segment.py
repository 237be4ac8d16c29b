"""Vectors in files of FAISS's, searched in place: they are mapped into memory, and only what a search needs is read.

A segment holds vectors of unit length in half precision, by chunk id. A small one is searched from end to end. A large
one has its vectors in lists, each around a centre that was found among them, and a search reads the few lists whose
centres are nearest: as many as are needed to find what a search of all would, which is measured when it is made.

Scores from here are near to the true ones (see ERROR); who needs those takes them from the vectors as they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from folio.errors import IndexDamaged
from folio.files import sync
from folio.types import Vectors

Ids = npt.NDArray[np.int64]
# Chunk ids -> their vectors, in that order: shape (len(ids), dimension)
Read = Callable[[Sequence[int]], Vectors]
Kind = Literal["flat", "lists"]

# At most so many vectors are searched from end to end: with 768 numbers each, that takes less than 5 ms.
FLAT_UP_TO = 30_000
# How far the score of a vector in half precision can be from its own: half precision rounds a number by at most 2^-11
# of itself, and the sum of |q_i x_i| is at most 1 for two vectors of unit length (Cauchy-Schwarz).
ERROR = 2.0**-11
# Lists: twice the square root of the vectors. Each centre is found from so many of the vectors near it.
TRAINED_ON = 40
# The check: so many questions, how many of their best are looked for, and the share of these that must be found.
QUESTIONS, BEST, RECALL = 200, 20, 0.99
# So many times the lists are then read that the check has shown to be enough. Questions that people asked about 55
# papers needed up to 1.5 times as many as those that are made here, and made ones that lie between two passages twice
# as many (LOG.md).
MARGIN = 3
_BATCH = 8192


@dataclass(frozen=True, slots=True)
class SegmentMeta:
    """What a manifest keeps of a segment's file."""

    file: str
    bytes: int
    sha256: str
    count: int
    kind: Kind
    probes: int  # how many lists a search reads; 0 for a flat one
    recall: float  # the share of the best BEST that it found when it was made; 1 for a flat one


class Segment:
    """Some vectors, and which of them have been taken out since they were written."""

    def __init__(self, index: Any, probes: int = 0, recall: float = 1.0) -> None:
        self.index = index
        self.probes = probes
        self.recall = recall
        self.removed: frozenset[int] = frozenset()
        self.facts: SegmentMeta | None = None  # once it is in a file

    @property
    def kind(self) -> Kind:
        return "lists" if self.probes else "flat"

    def __len__(self) -> int:
        return int(self.index.ntotal) - len(self.removed)

    def ids(self) -> Ids:
        """Every id in it that has not been taken out, in their order; reads those of all its vectors."""
        import faiss

        if self.probes:
            lists = self.index.invlists
            sizes = [(place, lists.list_size(place)) for place in range(lists.nlist)]
            found = np.concatenate([faiss.rev_swig_ptr(lists.get_ids(place), size) for place, size in sizes if size])
        else:
            found = faiss.vector_to_array(self.index.id_map)
        return np.setdiff1d(found, _array(self.removed))

    def stored(self) -> Iterator[tuple[Ids, Vectors]]:
        """Every id that has not been taken out, with its vector in half precision, in parts; reads the whole file."""
        gone = _array(self.removed)
        for ids, rows in self._lists() if self.probes else self._rows():
            kept = ~np.isin(ids, gone)
            yield ids[kept], rows[kept]

    def _rows(self) -> Iterator[tuple[Ids, Vectors]]:
        import faiss

        ids = faiss.vector_to_array(self.index.id_map)
        for first in range(0, len(ids), _BATCH):
            part = ids[first : first + _BATCH]
            yield part, self.index.index.reconstruct_n(first, len(part))

    def _lists(self) -> Iterator[tuple[Ids, Vectors]]:
        import faiss

        lists = self.index.invlists
        for place in range(lists.nlist):
            size = lists.list_size(place)
            if size:
                codes = faiss.rev_swig_ptr(lists.get_codes(place), size * lists.code_size).view(np.float16)
                ids = faiss.rev_swig_ptr(lists.get_ids(place), size)
                yield ids, codes.reshape(size, -1).astype(np.float32)

    def near(self, query: Vectors, limit: int, among: frozenset[int] | None = None) -> list[tuple[int, float]]:
        """At most `limit` (chunk id, score within ERROR), best first.

        among: nothing but these ids is looked at, wherever they are: none of them is missed.
        """
        import faiss

        chosen: Any = None
        if among is not None:
            chosen = batch = faiss.IDSelectorBatch(_array(among - self.removed))
        elif self.removed:
            batch = faiss.IDSelectorBatch(_array(self.removed))
            chosen = faiss.IDSelectorNot(batch)
        parameters: Any = faiss.SearchParameters()
        if self.probes:
            parameters = faiss.SearchParametersIVF()
            parameters.nprobe = self.probes if among is None else self.index.nlist
        parameters.sel = chosen
        with _one_thread():
            scores, ids = self.index.search(query.reshape(1, -1), min(limit, self.index.ntotal), params=parameters)
        return [(int(i), float(score)) for i, score in zip(ids[0], scores[0], strict=True) if i >= 0]

    def write(self, path: Path) -> None:
        """Write beside, sync, rename into place. Raises OSError."""
        import faiss

        beside = path.with_name(f"{path.name}.new")
        hashed, size = hashlib.sha256(), 0
        try:
            with beside.open("wb") as file:  # our own: FAISS does not tell when a full disk cuts its file short

                def take(data: bytes) -> None:
                    nonlocal size
                    hashed.update(data)
                    size += file.write(data)

                faiss.write_index(self.index, faiss.PyCallbackIOWriter(take))  # type: ignore[attr-defined]
            sync(beside)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        beside.replace(path)
        self.facts = SegmentMeta(
            path.name, size, hashed.hexdigest(), int(self.index.ntotal), self.kind, self.probes, self.recall
        )

    @classmethod
    def open(cls, folder: Path, facts: SegmentMeta, dimension: int) -> Segment:
        """Map a file into memory. Raises IndexDamaged for one of another size or kind than its facts say.

        It is not read: what was changed inside it, `sha256_file` finds.
        """
        import faiss

        path = folder / facts.file
        if path.stat().st_size != facts.bytes:
            raise IndexDamaged(f"{facts.file} has another size than was written")
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        wanted = faiss.IndexIVFScalarQuantizer if facts.kind == "lists" else faiss.IndexIDMap
        if (type(index), index.d, index.ntotal) != (wanted, dimension, facts.count):
            raise IndexDamaged(f"{facts.file} is not what its manifest says")
        segment = cls(index, facts.probes, facts.recall)
        segment.facts = facts
        return segment


def flat(ids: Ids, read: Read, dimension: int) -> Segment:
    """A segment that is searched from end to end."""
    import faiss

    vectors = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    vectors.is_trained = True  # half precision has nothing to learn
    index = faiss.IndexIDMap(vectors)
    for part, batch in _batches(ids, read):
        index.add_with_ids(batch, part)
    return Segment(index)


def build(ids: Ids, read: Read, dimension: int, flat_up_to: int = FLAT_UP_TO) -> Segment:
    """A segment of these vectors: with lists where there are more than `flat_up_to` and they serve, else flat.

    They serve when reading at most half of them finds RECALL of the best. The same vectors give the same segment.
    """
    if len(ids) > flat_up_to:
        made = _lists(ids, read, dimension)
        if made.probes <= made.index.nlist // 2:
            return made
    return flat(ids, read, dimension)


def _lists(ids: Ids, read: Read, dimension: int) -> Segment:
    import faiss

    rng = np.random.default_rng(len(ids))
    count = max(1, round(2 * len(ids) ** 0.5))
    sample = read(_chosen(rng, ids, TRAINED_ON * count))
    quantizer = faiss.IndexFlatIP(dimension)
    half = faiss.ScalarQuantizer.QT_fp16
    index = faiss.IndexIVFScalarQuantizer(quantizer, dimension, count, half, faiss.METRIC_INNER_PRODUCT, False)
    index.cp.spherical, index.cp.niter, index.cp.min_points_per_centroid = True, 10, 1
    index.train(sample)
    del sample
    # A question is about as near to the passage that answers it as a vector with noise of its own length: 0.7.
    asked = read(_chosen(rng, ids, QUESTIONS))
    noise = rng.standard_normal(asked.shape, dtype=np.float32)
    asked = _unit(asked + _unit(noise))
    best = _Best(asked)
    for part, batch in _batches(ids, read):
        index.add_with_ids(batch, part)
        best.see(part, batch)
    enough = _enough(index, asked, best.ids)
    probes = min(count, MARGIN * enough)
    return Segment(index, probes, _recall(index, asked, best.ids, probes))


class _Best:
    """The ids of the BEST vectors for each question, exactly, out of all that it sees."""

    def __init__(self, asked: Vectors) -> None:
        self._asked = asked
        self.ids = np.empty((len(asked), 0), dtype=np.int64)
        self._scores = np.empty((len(asked), 0), dtype=np.float32)

    def see(self, ids: Ids, vectors: Vectors) -> None:
        scores = np.concatenate([self._scores, self._asked @ vectors.T], axis=1)
        known = np.concatenate([self.ids, np.broadcast_to(ids, (len(self._asked), len(ids)))], axis=1)
        if scores.shape[1] > BEST:
            kept = np.argpartition(-scores, BEST - 1, axis=1)[:, :BEST]
            scores, known = np.take_along_axis(scores, kept, axis=1), np.take_along_axis(known, kept, axis=1)
        self.ids, self._scores = known, scores


def _enough(index: Any, asked: Vectors, best: Ids) -> int:
    """The smallest number of lists with which RECALL is reached; all of them where it is not."""
    low, high = 1, int(index.nlist)
    while low < high:
        middle = (low + high) // 2
        if _recall(index, asked, best, middle) >= RECALL:
            high = middle
        else:
            low = middle + 1
    return low


def _recall(index: Any, asked: Vectors, best: Ids, probes: int) -> float:
    """The share of the best that a search of so many lists finds."""
    import faiss

    parameters = faiss.SearchParametersIVF()
    parameters.nprobe = probes
    _, found = index.search(asked, best.shape[1], params=parameters)
    shared = sum(len(np.intersect1d(one, other)) for one, other in zip(found, best, strict=True))
    return shared / best.size


def in_full(dimension: int, batches: Iterator[tuple[list[int], Vectors]]) -> Any:
    """A FAISS index in memory that holds these vectors as they are: for programs that search it themselves."""
    import faiss

    index = faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))
    for ids, vectors in batches:
        index.add_with_ids(vectors, np.asarray(ids, dtype=np.int64))
    return index


def _batches(ids: Ids, read: Read) -> Iterator[tuple[Ids, Vectors]]:
    for first in range(0, len(ids), _BATCH):
        part = ids[first : first + _BATCH]
        yield part, np.ascontiguousarray(read(part.tolist()))


def _chosen(rng: np.random.Generator, ids: Ids, count: int) -> list[int]:
    """So many of the ids, in their order, or all where there are no more."""
    found: list[int] = np.sort(rng.choice(ids, size=min(count, len(ids)), replace=False)).tolist()
    return found


def _array(ids: frozenset[int]) -> Ids:
    return np.fromiter(ids, dtype=np.int64, count=len(ids))


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One question is not shared among threads: waking them costs more than it saves where others keep them busy."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
