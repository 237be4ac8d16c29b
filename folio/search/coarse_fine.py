"""Dense search: of the passages alone or, where the library has fine passages, of both, merged into one ranking.

A passage that its own vector finds keeps the fine passages in it that are nearest to the question, as highlights. A
fine passage that is found brings the passage that it lies in. A passage's score is then

    COARSE_WEIGHT * cosine(passage) + (1 - COARSE_WEIGHT) * largest cosine(fine passage in it)

whichever of the two found it: the one says what the passage is about, the other that the thing asked for is said in it.
LOG.md has the figures for the weight.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Protocol

from folio.errors import IndexDamaged
from folio.papers.model import Vectors
from folio.search.filters import CandidateFilter, deep_enough, first_depth
from folio.store.indexes import DenseIndex, SearchIndexes
from folio.store.library import Library

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

    @property
    def first(self) -> list[int]:
        """The nearest chunks, whether or not they may be found."""
        ...

    def find(self, candidates: CandidateFilter) -> Found:
        """The nearest passages that may be found, by stage. Raises IndexDamaged."""
        ...

    def scores(self, passages: Iterable[int]) -> tuple[Scored, Highlights]:
        """The score of each of these passages, in this order, and their highlights. Raises IndexDamaged."""
        ...


def dense_search(
    library: Library,
    indexes: SearchIndexes,
    query: Vectors,
    counts: tuple[int, int],
    papers: frozenset[str] | None,
) -> DenseSearch:
    """query: the question's vector, of unit length. papers: only in these. Raises IndexDamaged.

    counts: how many passages to find; and how many passages, and as many fine ones, where there are fine ones.
    """
    count, dual_count = counts
    if indexes.fine_passages is None:
        return _SingleSearch(_Nearest(indexes.passages, query, count, papers))
    passages = _Nearest(indexes.passages, query, dual_count, papers)
    return _DualSearch(library, passages, _Nearest(indexes.fine_passages, query, dual_count, papers))


class _Nearest:
    """The chunks of one grain that are nearest to a question."""

    def __init__(self, index: DenseIndex, query: Vectors, count: int, papers: frozenset[str] | None) -> None:
        self.index, self.query = index, query
        self._count, self._papers = count, papers
        self.first = index.search(query, first_depth(count), papers)

    def found(self, candidates: CandidateFilter) -> tuple[int, ...]:
        """The nearest that may be found, best first."""
        search = partial(self.index.search, self.query, papers=self._papers)
        found = deep_enough(search, self._count, candidates, self.first)
        if len(found) < self._count and self._papers is None:
            exact = self.index.search_all(self.query, self._count, candidates.allowed)
            found = found if exact is None else exact
        return tuple(chunk for chunk, _ in found)

    def cosines(self, ids: list[int]) -> list[float]:
        return self.index.cosines(ids, self.query)


class _SingleSearch:
    def __init__(self, passages: _Nearest) -> None:
        self._passages = passages

    @property
    def first(self) -> list[int]:
        return [chunk for chunk, _ in self._passages.first]

    def find(self, candidates: CandidateFilter) -> Found:
        return {"dense": self._passages.found(candidates)}

    def scores(self, passages: Iterable[int]) -> tuple[Scored, Highlights]:
        ids = list(passages)
        return list(zip(ids, self._passages.cosines(ids), strict=True)), {}


class _DualSearch:
    def __init__(self, library: Library, passages: _Nearest, fine: _Nearest) -> None:
        self._library, self._passages, self._fine = library, passages, fine

    @property
    def first(self) -> list[int]:
        return [chunk for chunk, _ in (*self._passages.first, *self._fine.first)]

    def find(self, candidates: CandidateFilter) -> Found:
        fine = self._fine.found(candidates)
        parents = [candidates.chunks[id].parent if id in candidates.chunks else None for id in fine]
        if None in parents:
            raise IndexDamaged("an index names a fine passage that is not in the library")
        by_fine = list(dict.fromkeys(parent for parent in parents if parent is not None))
        allowed = candidates.allowed(by_fine)
        dense = self._passages.found(candidates)
        return {"dense": dense, "fine": tuple(id for id in by_fine if id in allowed)}

    def scores(self, passages: Iterable[int]) -> tuple[Scored, Highlights]:
        fine = self._library.fine_in(passages)
        ids = [*fine, *(chunk.id for chunks in fine.values() for chunk in chunks)]
        cosines = dict(zip(ids, self._passages.cosines(ids), strict=True))
        scores: Scored = []
        highlights: Highlights = {}
        for passage, chunks in fine.items():
            nearest = sorted(chunks, key=lambda chunk: (-cosines[chunk.id], chunk.start))
            highlights[passage] = tuple((chunk.start, chunk.end) for chunk in nearest[:HIGHLIGHTS])
            own = cosines[passage]
            best = cosines[nearest[0].id] if nearest else own
            scores.append((passage, COARSE_WEIGHT * own + (1 - COARSE_WEIGHT) * best))
        return scores, highlights
