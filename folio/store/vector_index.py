"""The vectors of the library, searched by inner product, which is the cosine of unit vectors.

On disk they are segments (faiss_segment.py): an update writes one file, of what is new. vectors.json lists the
segments, and what has been taken out of each since. It is replaced last, so a reader finds the old state or the new
one, whole. An update takes in the segments that are no larger than what it writes, so each is larger than all the later
ones
together: there are few, and a vector is written again only when what holds it doubles (as in a log-structured merge
tree, O'Neil et al. 1996).

Which chunks are near, the segments say; how near, the library's own vectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from folio.errors import IndexDamaged
from folio.files import sha256_file, write_json
from folio.store.faiss_segment import ERROR, FLAT_UP_TO, Ids, Read, Segment, SegmentMeta, build, flat
from folio.types import Stamp, Vectors

MANIFEST = "vectors.json"
# A segment is written again when more than one in so many of its vectors has been taken out.
_REMOVED = 4
# Half precision's smallest number: what is nearer to 0 is rounded to that, or to 0.
_SMALLEST = 2.0**-24


class VectorIndex:
    """Vectors by chunk id."""

    def __init__(
        self, dimension: int, stamp: Stamp, read: Read, segments: Iterable[Segment] = (), flat_up_to: int = FLAT_UP_TO
    ) -> None:
        """read: the vectors of ids, as the library has them. flat_up_to: see segments.build."""
        self.dimension = dimension
        self.stamp = stamp
        self.segments = list(segments)
        self._read = read
        self._flat_up_to = flat_up_to

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    def ids(self) -> set[int]:
        return {chunk for segment in self.segments for chunk in segment.ids().tolist()}

    def cosines(self, ids: Sequence[int], query: Vectors) -> list[float]:
        """How near each of these chunks is to a vector of shape (dimension,), from the library's own vectors."""
        if not ids:
            return []
        # Not a matrix product: there the same vector may get another last digit in another row.
        cosines: list[float] = (self._read(ids) * query).sum(axis=1).tolist()
        return cosines

    def search(self, query: Vectors, k: int, ids: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """At most k (chunk id, cosine), best first, ties by id; among these ids only where they are given.

        Among given ids, and where no segment has lists, these are the best of all; else of the lists that are read.
        The library is to be at the state that this was made from: within `Library.reading`, where others may write.
        """
        if len(self) == 0 or k < 1 or (ids is not None and not ids):
            return []
        among = None if ids is None else frozenset(ids)
        limit = 2 * k
        while True:
            near = [pair for segment in self.segments for pair in segment.near(query, limit, among)]
            near = sorted(near, key=lambda pair: -pair[1])[:limit]
            chunks = [chunk for chunk, _ in near]
            exact = zip(chunks, self.cosines(chunks, query), strict=True)
            best = sorted(exact, key=lambda pair: (-pair[1], pair[0]))[:k]
            # What is not among them is no nearer than the last of them, as far as its segment can tell.
            if len(near) < limit or best[-1][1] > near[-1][1] + ERROR:
                return best
            limit *= 2

    def update(self, added: Iterable[int], removed: Iterable[int], stamp: Stamp, folder: Path | None = None) -> None:
        """Take chunks in, that are not there or are among the removed, and out; on disk where a folder is given.

        Raises OSError; the index is not to be used then.
        """
        self._take_out(np.unique(np.fromiter(removed, dtype=np.int64)))
        new = np.unique(np.fromiter(added, dtype=np.int64))
        self.stamp = stamp
        if folder is None:
            if len(new):
                self.segments.append(flat(new, self._read, self.dimension))
            return
        merged = self._merged_with(len(new))
        kept = [segment for segment in self.segments if segment not in merged]
        ids = np.sort(np.concatenate([new, *(segment.ids() for segment in merged)]))
        if len(ids):
            made = build(ids, self._read, self.dimension, self._flat_up_to)
            made.write(folder / f"vectors-{stamp.epoch[:8]}-{stamp.generation}.faiss")
            assert made.facts is not None
            kept.append(Segment.open(folder, made.facts, self.dimension))
        self.segments = kept
        self._write_manifest(folder)
        self.tidy(folder)

    def _take_out(self, ids: Ids) -> None:
        for segment in self.segments if len(ids) else ():
            segment.removed |= frozenset(np.intersect1d(segment.ids(), ids).tolist())

    def _merged_with(self, new: int) -> list[Segment]:
        """The segments that are to be written again, together with so many new vectors."""
        merged = [segment for segment in self.segments if segment.facts is None or _is_thin(segment)]
        size = new + sum(map(len, merged))
        for segment in sorted((segment for segment in self.segments if segment not in merged), key=len):
            if len(segment) > size:
                break
            merged.append(segment)
            size += len(segment)
        return merged

    def _write_manifest(self, folder: Path) -> None:
        listed = [
            {**asdict(segment.facts), "removed": sorted(segment.removed)} for segment in self.segments if segment.facts
        ]
        head = {**asdict(self.stamp), "dimension": self.dimension, "count": len(self)}
        write_json(folder / MANIFEST, {**head, "segments": listed})

    def tidy(self, folder: Path) -> None:
        """Drop the files of earlier states, and what a write left that was broken off."""
        current = {segment.facts.file for segment in self.segments if segment.facts}
        for old in folder.glob("vectors-*.faiss*"):
            if old.name not in current:
                old.unlink(missing_ok=True)

    def unlike(self) -> int:
        """How many of the vectors are not the library's; reads them all, as `damage` does."""
        wrong = 0
        for segment in self.segments:
            for ids, stored in segment.stored():
                own = self._read(ids.tolist()) if len(ids) else stored
                wrong += int((~(abs(stored - own) <= ERROR * abs(own) + _SMALLEST)).any(axis=1).sum())
        return wrong

    def damage(self, folder: Path) -> list[str]:
        """The files that do not hold what was written into them."""
        facts = [segment.facts for segment in self.segments if segment.facts]
        return [one.file for one in facts if sha256_file(folder / one.file) != one.sha256]

    @classmethod
    def load(cls, folder: Path, read: Read, flat_up_to: int = FLAT_UP_TO) -> VectorIndex:
        """Open what `update` wrote. Raises IndexDamaged when a file is missing or has another size than was written.

        The files are mapped, not read: `damage` looks inside.
        """
        while True:
            said = _manifest(folder)
            try:
                return cls._open(folder, said, read, flat_up_to)
            except FileNotFoundError as error:
                if _manifest(folder) == said:
                    raise IndexDamaged(f"the vector index cannot be read: {error}") from error
                # A writer has replaced the manifest meanwhile, and dropped a file that it no longer lists.

    @classmethod
    def _open(cls, folder: Path, said: str, read: Read, flat_up_to: int) -> VectorIndex:
        try:
            manifest = json.loads(said)
            dimension, stamp = int(manifest["dimension"]), Stamp(manifest["epoch"], manifest["generation"])
            segments = []
            for entry in manifest["segments"]:
                removed = frozenset(entry.pop("removed"))
                facts = SegmentMeta(**{**entry, "file": Path(entry["file"]).name})
                segment = Segment.open(folder, facts, dimension)
                segment.removed = removed
                segments.append(segment)
            index = cls(dimension, stamp, read, segments, flat_up_to)
            if len(index) != manifest["count"]:
                raise IndexDamaged("the vector files hold another number of vectors than their manifest says")
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, MemoryError) as error:
            raise IndexDamaged(f"the vector index cannot be read: {error}") from error
        return index


def _manifest(folder: Path) -> str:
    try:
        return (folder / MANIFEST).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise IndexDamaged(f"the vector index cannot be read: {error}") from error


def _is_thin(segment: Segment) -> bool:
    return _REMOVED * len(segment.removed) > len(segment) + len(segment.removed)
