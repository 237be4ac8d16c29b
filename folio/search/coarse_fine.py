"""Dense search over the passages and, if the library has them, the fine passages, merged into one ranking.

A passage is found by its own vector or by that of a fine passage in it. In a library with fine passages its score is

    COARSE_WEIGHT * cosine(passage) + (1 - COARSE_WEIGHT) * largest cosine(fine passage in it)

The first cosine says what the passage is about, the second whether a part of it speaks of the question. The nearest
fine passages are its highlights. LOG.md has the figures for the weight.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from folio.errors import IndexDamaged
from folio.papers.model import Vectors
from folio.search.filters import CandidateFilter, Scored, deep_enough, first_depth
from folio.store.indexes import DenseIndex, SearchIndexes
from folio.store.library import Library

# Passage -> spans of its paper: its best fine passages, best first
Highlights = dict[int, tuple[tuple[int, int], ...]]

COARSE_WEIGHT = 0.6
HIGHLIGHTS = 3  # fine passages of a passage


class DenseSearch:
    """The search for one question among the vectors of a library. Use it inside `Library.reading`."""

    def __init__(
        self,
        library: Library,
        indexes: SearchIndexes,
        query: Vectors,
        counts: tuple[int, int],
        papers: frozenset[str] | None,
    ) -> None:
        """query: the question's vector, of unit length. papers: search only these. Raises IndexDamaged.

        counts: how many passages to find without fine passages; how many of each grain to find with them.
        """
        fine = indexes.fine_passages
        self._library = library
        self._passages = _Nearest(indexes.passages, query, counts[0 if fine is None else 1], papers)
        self._fine = None if fine is None else _Nearest(fine, query, counts[1], papers)

    @property
    def first(self) -> list[int]:
        """The nearest chunks, before the filter."""
        return [chunk for chunk, _ in (*self._passages.first, *(self._fine.first if self._fine else ()))]

    def find(self, candidates: CandidateFilter) -> dict[str, tuple[int, ...]]:
        """Stage -> the nearest passages that may be returned, best first. Raises IndexDamaged."""
        if self._fine is None:
            return {"dense": self._passages.allowed(candidates)}
        fine = self._fine.allowed(candidates)
        parents = [candidates.chunks[id].parent if id in candidates.chunks else None for id in fine]
        if None in parents:
            raise IndexDamaged("an index names a fine passage that is not in the library")
        by_fine = list(dict.fromkeys(parent for parent in parents if parent is not None))
        allowed = candidates.allowed(by_fine)
        dense = self._passages.allowed(candidates)
        return {"dense": dense, "fine": tuple(id for id in by_fine if id in allowed)}

    def scores(self, passages: Iterable[int]) -> tuple[Scored, Highlights]:
        """The score of each of these passages, in this order, and their highlights. Raises IndexDamaged."""
        if self._fine is None:
            ids = list(passages)
            return list(zip(ids, self._cosines(ids), strict=True)), {}
        fine = self._library.fine_in(passages)
        ids = [*fine, *(chunk.id for chunks in fine.values() for chunk in chunks)]
        cosines = dict(zip(ids, self._cosines(ids), strict=True))
        scores: Scored = []
        highlights: Highlights = {}
        for passage, chunks in fine.items():
            nearest = sorted(chunks, key=lambda chunk: (-cosines[chunk.id], chunk.start))
            highlights[passage] = tuple((chunk.start, chunk.end) for chunk in nearest[:HIGHLIGHTS])
            own = cosines[passage]
            best = cosines[nearest[0].id] if nearest else own
            scores.append((passage, COARSE_WEIGHT * own + (1 - COARSE_WEIGHT) * best))
        return scores, highlights

    def _cosines(self, ids: list[int]) -> list[float]:
        return self._passages.index.cosines(ids, self._passages.query)


class _Nearest:
    """The chunks of one grain, passages or fine passages, that are nearest to a question."""

    def __init__(self, index: DenseIndex, query: Vectors, count: int, papers: frozenset[str] | None) -> None:
        self.index, self.query = index, query
        self._count, self._papers = count, papers
        self.first = index.search(query, first_depth(count), papers)

    def allowed(self, candidates: CandidateFilter) -> tuple[int, ...]:
        """The nearest chunks that may be returned, best first."""
        search = partial(self.index.search, self.query, papers=self._papers)
        scored = deep_enough(search, self._count, candidates, self.first)
        if len(scored) < self._count and self._papers is None:
            exact = self.index.search_all(self.query, self._count, candidates.allowed)
            scored = scored if exact is None else exact
        return tuple(chunk for chunk, _ in scored)
