"""The FAISS index, derived from the library: exact search by inner product, which is the cosine of unit vectors.

On disk it is FAISS's own file, named by what it was made from, and a manifest that says which file is the current one,
its SHA-256, dimension and count. The manifest is replaced last, so a reader finds either the old pair or the new one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from folio.errors import IndexDamaged
from folio.files import sha256_file, sync, write_json
from folio.types import Stamp, Vectors

MANIFEST = "vectors.json"


class VectorIndex:
    """Vectors by chunk id, in memory."""

    def __init__(self, dimension: int, stamp: Stamp, index: Any = None) -> None:
        import faiss

        self.dimension = dimension
        self.stamp = stamp
        self.faiss = index if index is not None else faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))

    def __len__(self) -> int:
        return int(self.faiss.ntotal)

    def ids(self) -> set[int]:
        import faiss

        return set(faiss.vector_to_array(self.faiss.id_map).tolist())

    def vectors_of(self, ids: Sequence[int]) -> Vectors:
        """Shape (len(ids), dimension). Raises RuntimeError for an id that is not in the index."""
        found = np.empty((len(ids), self.dimension), dtype=np.float32)
        for row, chunk_id in enumerate(ids):
            self.faiss.reconstruct(chunk_id, found[row])
        return found

    def update(self, added: Iterable[tuple[list[int], Vectors]], removed: Iterable[int], stamp: Stamp) -> None:
        """Take chunks in and out. Taking in a chunk that is there replaces it, so an update may be repeated."""
        present = self.ids()
        self._remove(present.intersection(removed))
        for ids, vectors in added:
            self._remove(present.intersection(ids))
            self.faiss.add_with_ids(np.ascontiguousarray(vectors), np.asarray(ids, dtype=np.int64))
        self.stamp = stamp

    def _remove(self, ids: set[int]) -> None:
        import faiss

        if ids:
            self.faiss.remove_ids(faiss.IDSelectorBatch(np.asarray(sorted(ids), dtype=np.int64)))

    def search(self, query: Vectors, k: int, ids: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """At most k (chunk id, cosine), best first, ties by id; among these ids only where they are given."""
        import faiss

        if len(self) == 0 or k < 1 or (ids is not None and not ids):
            return []
        parameters = None
        if ids is not None:
            parameters = faiss.SearchParameters()
            parameters.sel = faiss.IDSelectorBatch(np.asarray(ids, dtype=np.int64))
        limit = k + 1
        while True:
            scores, found = self.faiss.search(query.reshape(1, -1), min(limit, len(self)), params=parameters)
            pairs = [(int(i), float(s)) for i, s in zip(found[0], scores[0], strict=True) if i >= 0]
            if len(pairs) < limit or pairs[-1][1] < pairs[k - 1][1]:
                return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:k]
            limit *= 2  # which of those that tie at the end are kept: by id

    def save(self, folder: Path) -> None:
        """Write beside, sync, rename into place; then the manifest likewise; then drop the file it replaces."""
        import faiss

        name = self._file_name()
        beside = folder / f"{name}.new"
        try:
            with beside.open("wb") as file:  # our own: FAISS does not tell when a full disk cuts its file short
                faiss.write_index(self.faiss, faiss.PyCallbackIOWriter(file.write))  # type: ignore[attr-defined]
        except OSError:
            beside.unlink()
            raise
        sync(beside)
        digest = sha256_file(beside)
        os.replace(beside, folder / name)
        manifest = {**asdict(self.stamp), "file": name, "sha256": digest}
        write_json(folder / MANIFEST, {**manifest, "dimension": self.dimension, "count": len(self)})
        self.tidy(folder)

    def tidy(self, folder: Path) -> None:
        """Drop the files of earlier states, and what a save left that was broken off."""
        for old in folder.glob("vectors-*.faiss*"):
            if old.name != self._file_name():
                old.unlink(missing_ok=True)

    def _file_name(self) -> str:
        return f"vectors-{self.stamp.epoch[:8]}-{self.stamp.generation}.faiss"

    @classmethod
    def load(cls, folder: Path) -> VectorIndex:
        """Read what `save` wrote. Raises IndexDamaged when a file is missing or is not what the manifest says."""
        import faiss

        try:
            manifest = json.loads((folder / MANIFEST).read_text())
            path = folder / Path(manifest["file"]).name
            if sha256_file(path) != manifest["sha256"]:
                raise IndexDamaged("the vectors on disk are not the ones that were written")
            index = faiss.read_index(str(path))
            stamp = Stamp(manifest["epoch"], manifest["generation"])
            if (index.d, index.ntotal) != (manifest["dimension"], manifest["count"]):
                raise IndexDamaged("the vector file has another size than its manifest says")
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise IndexDamaged(f"the vector index cannot be read: {error}") from error
        return cls(index.d, stamp, index)
