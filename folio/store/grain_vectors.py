"""Dense search in a vector index of the library, limited to papers: implements `DenseIndex` (search_indexes.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from folio.store.library import Library
from folio.store.vector_index import VectorIndex
from folio.types import Grain, Vectors


class GrainVectors:
    """The vectors of one grain, in an index at the library's generation. Use it inside `Library.reading`."""

    def __init__(self, library: Library, index: VectorIndex, grain: Grain) -> None:
        self._library, self._index, self._grain = library, index, grain
        self._ids: tuple[frozenset[str], list[int]] = (frozenset(), [])  # the papers searched last, and their chunk ids

    def search(self, query: Vectors, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """See DenseIndex.search."""
        return self._index.search(query, k, None if papers is None else self._ids_of(papers))

    def search_all(
        self, query: Vectors, k: int, allowed: Callable[[Iterable[int]], set[int]]
    ) -> list[tuple[int, float]] | None:
        """See DenseIndex.search_all."""
        if k >= len(self._index):
            return None
        # A large index reads only some of its vectors, but all of them if it is given ids.
        return self._index.search(query, k, sorted(allowed(self._index.ids())))

    def cosines(self, ids: Sequence[int], query: Vectors) -> list[float]:
        """See DenseIndex.cosines."""
        return self._index.cosines(ids, query)

    def _ids_of(self, papers: frozenset[str]) -> list[int]:
        if self._ids[0] != papers:
            passages = self._library.chunk_ids_of(papers)
            self._ids = papers, passages if self._grain == "passage" else self._library.fine_ids_in(passages)
        return self._ids[1]
