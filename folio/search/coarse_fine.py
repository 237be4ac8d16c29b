"""Dense search: of the passages alone or, where the library has fine passages, of both, merged into one ranking.

A passage that its own vector finds keeps the fine passages in it that are nearest to the question, as highlights. A
fine passage that is found brings the passage that it lies in. A passage's score is then

    COARSE_WEIGHT * cosine(passage) + (1 - COARSE_WEIGHT) * largest cosine(fine passage in it)

whichever of the two found it: the one says what the passage is about, the other that the thing asked for is said in it.
LOG.md has the figures for the weight.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from folio.errors import IndexDamaged
from folio.search.candidate_filter import CandidateFilter, deep_enough
from folio.store.paper_store import DenseIndex, PaperStore, SearchIndexes
from folio.types import Vectors

# Passage -> spans of its paper: its best fine passages, best first
Highlights = dict[int, tuple[tuple[int, int], ...]]
Scored = list[tuple[int, float]]
# Stage -> the passages that it found, best first
Found = dict[str, tuple[int, ...]]

COARSE_WEIGHT = 0.6
# Fine passages that a passage keeps
HIGHLIGHTS = 3


class DenseSearch(Protocol):
    """The search for one question among the vectors of a library. Use it inside `Library.reading`."""

    def find(self, papers: frozenset[str] | None, candidates: CandidateFilter) -> Found:
        """The nearest passages that may be found, by stage. papers: only in these. Raises IndexDamaged."""
        ...

    def scores(self, passages: Iterable[int]) -> tuple[Scored, Highlights]:
        """The score of each of these passages, in this order, and their highlights. Raises IndexDamaged."""
        ...


def dense_search(
    library: PaperStore, indexes: SearchIndexes, query: Vectors, count: int, dual_count: int
) -> DenseSearch:
    """query: the question's vector, of unit length. count: how many passages to find; dual_count: how many passages,
    and as many fine ones, where there are fine ones."""
    if indexes.fine_passages is None:
        return _SingleSearch(indexes.passages, query, count)
    return _DualSearch(library, indexes.passages, indexes.fine_passages, query, dual_count)


class _SingleSearch:
    def __init__(self, vectors: DenseIndex, query: Vectors, count: int) -> None:
        self._vectors, self._query, self._count = vectors, query, count

    def find(self, papers: frozenset[str] | None, candidates: CandidateFilter) -> Found:
        return {"dense": _nearest(self._vectors, self._query, self._count, papers, candidates)}

    def scores(self, passages: Iterable[int]) -> tuple[Scored, Highlights]:
        ids = list(passages)
        return list(zip(ids, self._vectors.cosines(ids, self._query), strict=True)), {}


class _DualSearch:
    def __init__(self, library: PaperStore, vectors: DenseIndex, fine: DenseIndex, query: Vectors, count: int) -> None:
        self._library = library
        self._vectors, self._fine, self._query, self._count = vectors, fine, query, count

    def find(self, papers: frozenset[str] | None, candidates: CandidateFilter) -> Found:
        fine = _nearest(self._fine, self._query, self._count, papers, candidates)
        parents = [candidates.chunks[id].parent if id in candidates.chunks else None for id in fine]
        if None in parents:
            raise IndexDamaged("an index names a fine passage that is not in the library")
        by_fine = list(dict.fromkeys(parent for parent in parents if parent is not None))
        allowed = candidates.allowed(by_fine)
        dense = _nearest(self._vectors, self._query, self._count, papers, candidates)
        return {"dense": dense, "fine": tuple(id for id in by_fine if id in allowed)}

    def scores(self, passages: Iterable[int]) -> tuple[Scored, Highlights]:
        fine = self._library.fine_in(passages)
        ids = [*fine, *(chunk.id for chunks in fine.values() for chunk in chunks)]
        cosines = dict(zip(ids, self._vectors.cosines(ids, self._query), strict=True))
        scores: Scored = []
        highlights: Highlights = {}
        for passage, chunks in fine.items():
            nearest = sorted(chunks, key=lambda chunk: (-cosines[chunk.id], chunk.start))
            highlights[passage] = tuple((chunk.start, chunk.end) for chunk in nearest[:HIGHLIGHTS])
            own = cosines[passage]
            best = cosines[nearest[0].id] if nearest else own
            scores.append((passage, COARSE_WEIGHT * own + (1 - COARSE_WEIGHT) * best))
        return scores, highlights


def _nearest(
    index: DenseIndex, query: Vectors, count: int, papers: frozenset[str] | None, candidates: CandidateFilter
) -> tuple[int, ...]:
    """The nearest chunks of an index that may be found, best first."""
    found = deep_enough(lambda depth: index.search(query, depth, papers), count, candidates)
    if len(found) < count and papers is None:
        exact = index.search_all(query, count, candidates.allowed)
        found = found if exact is None else exact
    return tuple(chunk for chunk, _ in found)
