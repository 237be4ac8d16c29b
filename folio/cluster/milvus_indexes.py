"""Search in Milvus: candidates from its HNSW and BM25 indexes, scored as a library on one computer scores them.

Milvus finds the candidates. The cosines that are fused are computed from their vectors (`MilvusVectors.cosines`), and
their BM25 scores from their words and the library's term statistics. So the scores do not depend on how Milvus has laid
out its segments, and fusion.py gives the order that it gives on one computer. Milvus's own WeightedRanker does not: it
first maps each score by itself (an arc tangent for BM25), so that 0.7 : 0.3 weighs other numbers than ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from folio.cluster.milvus_client import MOST_RESULTS, Row
from folio.cluster.milvus_filters import all_of, one_of, passages_with
from folio.cluster.milvus_papers import CHUNK, FINE_CHUNK
from folio.cluster.milvus_reader import MilvusReader
from folio.cluster.term_statistics import TermStatistics
from folio.cluster.token_words import bm25, word, words_of
from folio.errors import IndexDamaged
from folio.store.bm25_index import MOST_TERMS, rarity, tied, vocabulary_of
from folio.store.paper_store import Trust
from folio.store.rows import Stamp
from folio.types import ANYWHERE, Grain, PassageFields, Vectors

Found = list[tuple[int, float]]
# Candidates for each passage that is wanted: segments weigh words by themselves, so the best are among so many.
_SPARE = 4
# Candidates at least, and besides those that are wanted of a search by vectors: some may be of removed papers.
_LEAST = 16
# Papers that one filter names
_PAPERS = 2_000


class MilvusVectors:
    """Dense search among the chunks of a grain; see paper_store.DenseIndex."""

    def __init__(self, library: MilvusReader, grain: Grain) -> None:
        self._library, self._grain = library, grain

    def search(
        self, query: Vectors, k: int, papers: frozenset[str] | None = None, fields: PassageFields = ANYWHERE
    ) -> Found:
        """See DenseIndex.search."""
        with self._library.reading():
            rows = _candidates(self._library, self._grain, query, k, papers, fields)
            best = sorted(rows, key=lambda row: -row["score"])[: k + _LEAST]
            ids = [int(row["chunk"]) for row in best]
            found = zip(ids, self.cosines(ids, query), strict=True)
            return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]

    def search_all(self, query: Vectors, k: int, allowed: Callable[[Iterable[int]], set[int]]) -> Found | None:
        """See DenseIndex.search_all: a search goes as deep as Milvus lets it."""
        return None

    def cosines(self, ids: Sequence[int], query: Vectors) -> list[float]:
        """See DenseIndex.cosines."""
        if not ids:
            return []
        cosines: list[float] = (self._library.vectors_of(ids) * query).sum(axis=1).tolist()
        return cosines


class MilvusWords:
    """BM25; see protocols.LexicalIndex."""

    def __init__(self, library: MilvusReader, statistics: TermStatistics) -> None:
        self._library, self._statistics = library, statistics
        self._vocabulary: dict[str, int] | None = None

    def search(
        self, query: str, k: int, papers: frozenset[str] | None = None, fields: PassageFields = ANYWHERE
    ) -> Found:
        """See LexicalIndex.search."""
        return self._best(words_of(query), k, papers, fields)

    def rarity(self, token: str) -> float:
        """See LexicalIndex.rarity."""
        return rarity(self.passages_with(token), self._statistics.passages)

    def passages_with(self, token: str) -> int:
        """See LexicalIndex.passages_with."""
        return self._statistics.frequency[word(token)]

    def passages_of(self, token: str, k: int) -> list[int]:
        """See LexicalIndex.passages_of."""
        return [chunk for chunk, _ in self._best([word(token)], k, None, ANYWHERE)]

    def vocabulary(self) -> Mapping[str, int]:
        """See LexicalIndex.vocabulary."""
        if self._vocabulary is None:
            self._vocabulary = vocabulary_of(self._statistics.frequency.most_common(MOST_TERMS))
        return self._vocabulary

    def _best(self, words: Sequence[str], k: int, papers: frozenset[str] | None, fields: PassageFields) -> Found:
        known = self._statistics
        if not words or k < 1:
            return []
        rows = _candidates(self._library, "passage", " ".join(words), k, papers, fields)
        bodies = [str(row["body"]) for row in rows]
        scores = bm25(words, bodies, known.frequency, known.passages, known.length)
        found = [(int(row["chunk"]), score) for row, score in zip(rows, scores, strict=True) if score > 0]
        return tied(found, len(words) * 2.0**-23)[:k]


@dataclass(frozen=True, slots=True)
class MilvusIndexes:
    """See paper_store.SearchIndexes."""

    stamp: Stamp
    passages: MilvusVectors
    lexical: MilvusWords
    open: Callable[[], MilvusIndexes]
    fine_passages: MilvusVectors | None = None

    def found_damaged(self) -> bool:
        """See SearchIndexes: Milvus checks its own files."""
        return False

    @property
    def reopen(self) -> Callable[[Trust], MilvusIndexes]:
        """See SearchIndexes."""
        return lambda trust: self.open()


def _candidates(
    library: MilvusReader,
    grain: Grain,
    query: Vectors | str,
    k: int,
    papers: frozenset[str] | None,
    fields: PassageFields,
) -> list[Row]:
    """The rows of k chunks or more that count, if there are so many; papers: only of these."""
    where = passages_with(fields)
    with library.reading():
        if papers is None:
            return _deep(library, grain, query, k, where)
        versions = sorted(library.versions_of(papers))
        groups = [versions[at : at + _PAPERS] for at in range(0, len(versions), _PAPERS)]
        filters = [all_of([one_of("version", group), where]) for group in groups]
        return [row for each in filters for row in _deep(library, grain, query, k, each)]


def _deep(library: MilvusReader, grain: Grain, query: Vectors | str, k: int, where: str) -> list[Row]:
    """Rows of papers that were removed are found too; then the search goes deeper.

    Those that a vector finds come with their own vectors: nearly all of them are scored.
    """
    words = isinstance(query, str)
    limit = max(_LEAST, _SPARE * k if words else k + _LEAST)
    name = library.names.fine if grain == "fine" else library.names.chunks
    fields = (*(FINE_CHUNK if grain == "fine" else CHUNK), "body" if words else "vector")
    while True:
        rows = library.milvus.search(name, query, limit, where, fields, strong=library.strong)
        kept = library.admitted(rows)
        if len({row["chunk"] for row in kept}) < len(kept):
            raise IndexDamaged("Milvus finds a passage twice")
        if len(kept) >= k or len(rows) < limit or limit >= MOST_RESULTS:
            return kept
        limit = min(2 * limit, MOST_RESULTS)
