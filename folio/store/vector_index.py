"""The vector index: cosine search over the library's unit vectors (inner product).

On disk it consists of segments (faiss_segment.py): an update writes one file with the new vectors. vectors.json lists
the segments and the ids removed from each. It is replaced last, so a reader finds either the old state or the new one.
An update also merges segments that are no larger than the new one, so each segment is larger than all later ones
together: there are few segments, and a vector is rewritten only when its segment doubles (as in a log-structured merge
tree, O'Neil et al. 1996).

Segments give the candidates; their exact scores come from the library's vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from folio.errors import IndexDamaged
from folio.files import discard
from folio.store.checksums import Checksums, Identity, check, from_json, read_manifest, to_json, write_manifest
from folio.store.engine_errors import engine_errors, require_possible
from folio.store.faiss_segment import ERROR, FLAT_UP_TO, Ids, ReadVectors, Segment, SegmentMeta, build, build_flat
from folio.store.rows import Stamp
from folio.types import Vectors

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
        """read: returns the library's vectors of ids. flat_up_to: see faiss_segment.build."""
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
