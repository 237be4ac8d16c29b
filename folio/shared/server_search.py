"""`SearchIndexes` in a shared library: search by its server, in the tables of server_index.py.

Results equal those of the indexes on disk. BM25: one statement reads all postings of a question's terms, and this
module scores them. Dense: an HNSW graph, or a comparison of all vectors if there are few, gives the candidates, and the
library's vectors their exact scores.

Everything is read in the library's snapshot. If the tables are of an earlier generation, results leave out passages
that were removed since, and miss those that were added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from folio.errors import IndexDamaged
from folio.papers.model import Grain, Vectors
from folio.shared.postgres import PostgresDatabase
from folio.shared.server_index import (
    NONE,
    Bm25,
    Numbers,
    Postings,
    State,
    damaged,
    ids_of,
    joined,
    key,
    read_state,
    unpack,
)
from folio.store import bm25
from folio.store.bm25 import MOST_TERMS, tied, vocabulary_of
from folio.store.index_files import Hits, require_possible
from folio.store.indexes import Trust
from folio.store.library import Library
from folio.store.rows import Stamp
from folio.store.vectors import ERROR as ROUNDING
from folio.text import tokenize

NAME = "vector"
# The largest error of a score; here the question is in half precision too
SCORE_ERROR = 2 * ROUNDING + ROUNDING**2
# Up to this many vectors, all are compared: 60,000 of 768 numbers take up to 120 ms. More use the graph.
EXACT_UP_TO, EXACT_AMONG_UP_TO = 10_000, 60_000
# Candidates that a search of the graph keeps (ef_search): pgvector allows at most MOST_KEPT, and then scans iteratively
LEAST_KEPT, MOST_KEPT = 200, 1000
# The most vectors that a search of the graph visits
_MOST_VISITED = 200_000
# The first limit of a search whose results are filtered
_FIRST_PAGE = 1000
# The number of postings that are cached
_POSTINGS_KEPT = 2**22
_AMONG = "= ANY(:papers)"
Ids = Collection[int]


class ServerIndexes:
    """The indexes of a library on its server; see SearchIndexes."""

    fine_passages: ServerVectors | None

    def __init__(self, database: PostgresDatabase, library: Library, state: State) -> None:
        self._database, self._library, self._state = database, library, state
        papers = _Papers(database, library, state)
        self.passages = ServerVectors(database, papers, "passage")
        self.fine_passages = ServerVectors(database, papers, "fine") if state.is_dual else None
        self.lexical = ServerPostings(database, papers)

    @property
    def stamp(self) -> Stamp:
        """The state of the library that the tables were made from, which may be older than the snapshot."""
        return self._state.stamp

    def found_damaged(self) -> bool:
        """See SearchIndexes: every row is checked when it is read."""
        return False

    @property
    def reopen(self) -> Callable[[Trust], ServerIndexes]:
        """See SearchIndexes. A reader repairs nothing: server_index.update does, with `rebuild`."""
        return lambda trust: open_server_indexes(self._database, self._library)


def open_server_indexes(database: PostgresDatabase, library: Library) -> ServerIndexes:
    """The indexes on the server. Raises IndexDamaged if there are none, or if they belong to another library."""
    with library.reading() as stamp:
        state = read_state(database)
        if state is None or state.epoch != stamp.epoch or state.generation > stamp.generation:
            raise IndexDamaged("the server has no indexes of this library")
        return ServerIndexes(database, library, state)


class _Papers:
    """The numbers of passages in the tables, by paper."""

    def __init__(self, database: PostgresDatabase, library: Library, state: State) -> None:
        self.library, self.state = library, state
        self._database = database
        self._ranges: tuple[frozenset[str], Numbers] = frozenset(), np.zeros((0, 2), np.int64)

    def ranges(self, papers: frozenset[str]) -> Numbers:
        """The first number and the count of each paper's passages: shape (papers, 2). Caches the last result."""
        if self._ranges[0] != papers:
            sql = f"SELECT first, passages FROM {self.state.papers} WHERE paper {_AMONG}"
            rows = self._database.query(sql, papers=sorted(papers)) if papers else []
            self._ranges = papers, np.array(rows, dtype=np.int64).reshape(-1, 2)
        return self._ranges[1]

    def ids(self, numbers: Sequence[int]) -> list[int]:
        """The ids of the passages with these numbers. Raises IndexDamaged."""
        sql = (
            "SELECT DISTINCT first, passages, ids FROM json_each(:numbers) CROSS JOIN LATERAL (SELECT first, passages,"
            f" ids FROM {self.state.papers} WHERE first <= value ORDER BY first DESC LIMIT 1) nearest"
        )
        id_of: dict[int, int] = {}
        for first, passages, stored in self._database.query_binary(sql, numbers=list(numbers)) if numbers else []:
            id_of.update(enumerate(ids_of(first, passages, stored), first))
        try:
            return [id_of[number] for number in numbers]
        except KeyError:
            raise damaged() from None

    def present(self, ids: Ids) -> Ids:
        """The chunks among these that the library still has."""
        with self.library.reading() as stamp:
            return ids if stamp == self.state.stamp else self.library.chunks(ids).keys()


class ServerVectors:
    """The vectors of one grain; see DenseIndex."""

    def __init__(self, database: PostgresDatabase, papers: _Papers, grain: Grain) -> None:
        self._database, self._papers, self._library = database, papers, papers.library
        self._table = papers.state.vectors(grain)
        self._type = f"{papers.state.extension}.halfvec"
        self._distance = f"data OPERATOR({papers.state.extension}.<#>) CAST(:query AS {self._type})"
        self._grain = grain

    def search(self, query: Vectors, k: int, papers: frozenset[str] | None = None) -> Hits:
        """See DenseIndex.search. A search of the graph may miss some of the nearest."""
        with self._library.reading():
            if papers is None:
                is_small = self._library.chunk_count(self._grain) <= EXACT_UP_TO
                return self._best(query, k, self._compare if is_small else self._walk)
            passages = int(self._papers.ranges(papers)[:, 1].sum())
            if not passages:
                return []
            count = passages * self._library.chunk_count(self._grain) / max(1, self._library.chunk_count())
            if count > EXACT_AMONG_UP_TO:
                hits = self._best(query, k, lambda text, limit: self._walk(text, limit, papers))
                if len(hits) >= k:
                    return hits
            return self._best(query, k, lambda text, limit: self._compare(text, limit, papers))

    def search_all(
        self, query: Vectors, k: int, allowed: Callable[[Iterable[int]], set[int]]
    ) -> list[tuple[int, float]] | None:
        """See DenseIndex.search_all. Reads more and more of the nearest until enough are allowed."""
        with self._library.reading():
            if k >= self._library.chunk_count(self._grain):
                return None
            return self._best(query, k, self._compare, allowed, _FIRST_PAGE)

    def cosines(self, ids: Sequence[int], query: Vectors) -> list[float]:
        if not ids:
            return []
        # No matrix product, because its last digit may depend on a vector's row.
        cosines: list[float] = (self._library.vectors_of(ids) * query).sum(axis=1).tolist()
        return cosines

    def _best(
        self,
        query: Vectors,
        k: int,
        nearest: Callable[[str, int], Hits],
        allowed: Callable[[Iterable[int]], set[int]] = set,
        limit: int = 0,
    ) -> Hits:
        """The best k allowed chunks.

        nearest: returns at most `limit` nearest chunks to a vector, with scores within ERROR.
        """
        if k < 1:
            return []
        text, limit = _as_text(query), max(limit, 2 * k)
        while True:
            hits = require_possible(NAME, nearest(text, limit), limit)
            permitted = allowed(self._papers.present({chunk for chunk, _ in hits}))
            near = [(chunk, score) for chunk, score in hits if chunk in permitted]
            # Every other chunk is at most as near as the last hit, within ERROR.
            least = near[min(k, len(near)) - 1][1] - 2 * SCORE_ERROR if near else 0.0
            if len(hits) < limit or (len(near) >= k and hits[-1][1] < least):
                break
            limit *= 4
        near = [(chunk, score) for chunk, score in near if score >= least]
        chunks = [chunk for chunk, _ in near]
        exact = list(zip(chunks, self.cosines(chunks, query), strict=True))
        if any(not abs(cosine - score) < 2 * SCORE_ERROR for (_, cosine), (_, score) in zip(exact, near, strict=True)):
            raise IndexDamaged("the vector index on the server holds a vector that is not the library's")
        return sorted(exact, key=lambda pair: (-pair[1], pair[0]))[:k]

    def _compare(self, query: str, limit: int, papers: frozenset[str] | None = None) -> Hits:
        """The nearest of all vectors, or of these papers' vectors, by comparing all of them."""
        joined_to = "" if papers is None else f"JOIN chunks ON id = chunk WHERE paper {_AMONG}"
        sql = f"SELECT chunk, -({self._distance}) FROM {self._table} {joined_to} ORDER BY ({self._distance}) + 0, chunk"
        values = {} if papers is None else {"papers": sorted(papers)}
        return self._database.query(f"{sql} LIMIT :limit", query=query, limit=limit, **values)

    def _walk(self, query: str, limit: int, papers: frozenset[str] | None = None) -> Hits:
        """The nearest of all vectors, or of these papers' vectors, by the graph."""
        joined_to = "" if papers is None else f"JOIN chunks ON id = chunk AND paper {_AMONG}"
        values = {} if papers is None else {"papers": sorted(papers)}
        settings = {
            "hnsw.ef_search": min(MOST_KEPT, max(LEAST_KEPT, limit)),
            "hnsw.iterative_scan": "strict_order",
            "hnsw.max_scan_tuples": max(_MOST_VISITED, 4 * limit),
        }
        # Set within the statement to save a round trip: pgvector reads them when the scan of the graph begins.
        set_all = " || ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
        return self._database.query(
            f"SELECT chunk, score FROM (SELECT {set_all} AS made) settings CROSS JOIN LATERAL (SELECT chunk,"
            f" -({self._distance}) AS score FROM {self._table} {joined_to} WHERE made IS NOT NULL"
            f" ORDER BY {self._distance} LIMIT :limit) nearest ORDER BY score DESC, chunk",
            query=query,
            limit=limit,
            **values,
        )


def _as_text(vector: Vectors) -> str:
    """A vector in half precision, in pgvector's text format."""
    return f"[{','.join(map(str, vector.astype(np.float16).tolist()))}]"


class ServerPostings:
    """BM25 over the passages; see LexicalIndex."""

    def __init__(self, database: PostgresDatabase, papers: _Papers) -> None:
        self._database, self._papers, self._state = database, papers, papers.state
        self._bm25 = Bm25(papers.state.passages, papers.state.tokens)
        self._cache: dict[str, Postings] = {}
        self._counts: dict[str, int] = {}
        self._words: dict[str, int] | None = None

    def rarity(self, token: str) -> float:
        return bm25.rarity(self.passages_with(token), self._state.passages)

    def passages_with(self, token: str) -> int:
        if token not in self._counts:
            sql = f"SELECT CAST(coalesce(sum(count), 0) AS BIGINT) FROM {self._state.postings} WHERE term = :term"
            self._counts[token] = self._database.query(sql, term=key(token))[0][0]
        return self._counts[token]

    def vocabulary(self) -> Mapping[str, int]:
        if self._words is None:
            sql = (
                f"SELECT term, passages FROM (SELECT term, CAST(sum(count) AS BIGINT) AS passages FROM"
                f" {self._state.postings} GROUP BY term ORDER BY passages DESC, term LIMIT {MOST_TERMS}) most"
                " WHERE passages > 1 AND length(term) BETWEEN 4 AND 40"
            )
            self._words = vocabulary_of(self._database.query(sql))
        return self._words

    def search(self, query: str, k: int, papers: frozenset[str] | None = None) -> Hits:
        return self._best(list(dict.fromkeys(tokenize(query))), k, papers)

    def passages_of(self, token: str, k: int) -> list[int]:
        return [chunk for chunk, _ in self._best([token], k, None)]

    def _best(self, tokens: Sequence[str], k: int, papers: frozenset[str] | None) -> Hits:
        if not tokens or k < 1 or not self._state.passages:
            return []
        with self._papers.library.reading():
            scores = self._scores(tokens)
            if papers is not None:
                within = np.zeros(len(scores), dtype=bool)
                for first, count in self._papers.ranges(papers).tolist():
                    within[first : first + count] = True
                scores[~within] = 0
            return self._first(scores, k, len(tokens) * 2.0**-23)

    def _first(self, scores: npt.NDArray[np.float64], k: int, rounding: float) -> Hits:
        """The best k hits, ties by id. scores: of the passages by number. rounding: see bm25.tied."""
        matching, count = int(np.count_nonzero(scores)), k
        while True:
            last = np.partition(scores, -count)[-count] if count < matching else 0.0
            numbers = np.flatnonzero((scores > 0) & (scores >= last * (1 - 2 * rounding))).tolist()
            chunks = self._papers.ids(numbers)
            present = self._papers.present(chunks)
            hits = [(chunk, float(scores[number])) for chunk, number in zip(chunks, numbers, strict=True)]
            hits = [pair for pair in hits if pair[0] in present]
            if len(hits) >= k or count >= matching:
                return tied(require_possible(bm25.NAME, hits, self._state.passages), rounding)[:k]
            count *= 4

    def _scores(self, tokens: Sequence[str]) -> npt.NDArray[np.float64]:
        """The score of each passage by number, shape (numbers,); 0 for a passage without any of these tokens."""
        scores = np.zeros(self._state.numbers)
        for postings in self._read(tokens):
            if len(postings):
                if postings.numbers[-1] >= len(scores):
                    raise damaged()
                scores[postings.numbers] += self._bm25.scores(postings)
        return scores

    def _read(self, tokens: Sequence[str]) -> list[Postings]:
        """The postings of each token, in one statement. Raises IndexDamaged."""
        if sum(map(len, self._cache.values())) > _POSTINGS_KEPT:
            self._cache.clear()
        if missing := [key(token) for token in tokens if key(token) not in self._cache]:
            sql = (
                f"SELECT term, block, count, data FROM {self._state.postings}"
                " WHERE term IN (SELECT value FROM json_each(:terms)) ORDER BY term, block"
            )
            parts: dict[str, list[Postings]] = {term: [] for term in missing}
            for term, block, count, stored in self._database.query_binary(sql, terms=missing):
                parts[term].append(unpack(term, block, count, stored))
            self._cache |= {term: joined(of_term) if of_term else NONE for term, of_term in parts.items()}
        all_postings = [self._cache[key(token)] for token in tokens]
        self._counts |= {token: len(postings) for token, postings in zip(tokens, all_postings, strict=True)}
        return all_postings


_PAGE = 4000
# The smallest positive number in half precision; smaller ones are rounded to it or to 0.
_SMALLEST = 2.0**-24


def faults(database: PostgresDatabase, library: Library) -> list[str]:
    """The faults of the indexes on the server, one sentence each; reads all of them."""
    with library.reading() as stamp:
        state = read_state(database)
        if state is None or state.epoch != stamp.epoch:
            return ["The server has no indexes of this library."]
        if state.stamp != stamp:
            return ["The indexes on the server are not up to date with the library."]
        of_vectors = [fault for grain in state.grains for fault in _vector_faults(database, library, state, grain)]
        try:
            return [*of_vectors, *_posting_faults(database, library, state)]
        except IndexDamaged as error:
            return [*of_vectors, f"{error.happened[0].upper()}{error.happened[1:]}."]


def _vector_faults(database: PostgresDatabase, library: Library, state: State, grain: Grain) -> Iterator[str]:
    sql = (
        f"SELECT chunk, {state.extension}.halfvec_send(data) FROM {state.vectors(grain)} WHERE chunk > :last"
        f" ORDER BY chunk LIMIT {_PAGE}"
    )
    expected_ids, seen, wrong, last = library.chunk_ids(grain=grain), 0, 0, -1
    while rows := database.query_binary(sql, last=last):
        ids, last = [chunk for chunk, _ in rows], rows[-1][0]
        if not expected_ids.issuperset(ids):
            break
        stored = np.frombuffer(b"".join(data[4:] for _, data in rows), dtype=">f2").astype(np.float32)
        expected = library.vectors_of(ids)
        near = abs(stored.reshape(expected.shape) - expected) <= ROUNDING * abs(expected) + _SMALLEST
        wrong, seen = wrong + int((~near.all(axis=1)).sum()), seen + len(ids)
    name = "vector" if grain == "passage" else "fine vector"
    if seen != len(expected_ids):
        yield f"The {name} index on the server and the library hold different passages."
    if wrong:
        yield f"{wrong} vectors in the {name} index on the server differ from the library's."


def _posting_faults(database: PostgresDatabase, library: Library, state: State) -> Iterator[str]:
    """Raises IndexDamaged for a row that has changed since it was written."""
    papers = database.query_binary(f"SELECT first, passages, tokens, ids FROM {state.papers} ORDER BY first")
    ids = [chunk for first, passages, _, stored in papers for chunk in ids_of(first, passages, stored)]
    spans = [(first, first + passages) for first, passages, _, _ in papers]
    if len(ids) != len(set(ids)) or set(ids) != library.chunk_ids():
        yield "The BM25 index on the server and the library hold different passages."
    if any(end > start for (_, end), (start, _) in pairwise([*spans, (state.numbers, 0)])):
        yield "The BM25 index on the server gives a number to two passages."
    tokens = sum(int(unpack(*row).counts.sum()) for row in _posting_rows(database, state))
    if not tokens == state.tokens == sum(tokens for _, _, tokens, _ in papers):
        yield "The BM25 index on the server lacks words of the library, or has others."


def _posting_rows(database: PostgresDatabase, state: State) -> Iterator[tuple[Any, ...]]:
    sql = (
        f"SELECT term, block, count, data FROM {state.postings} WHERE (term, block) > (:term, :block)"
        f" ORDER BY term, block LIMIT {_PAGE}"
    )
    term, block = "", -1
    while rows := database.query_binary(sql, term=term, block=block):
        yield from rows
        term, block = rows[-1][:2]
