"""Hybrid retrieval: FAISS and BM25 are searched, fused and reranked. No model is loaded before it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from typing import TypeVar

import numpy as np

from folio.errors import IndexDamaged
from folio.papers.model import Candidate, Chunk, Hit, Paper, PaperHit, Vectors
from folio.protocols import NOTHING_WRITTEN, Embedder, QueryWriter, Reranker, TermWeights, Written
from folio.question import parts
from folio.question.question import Question
from folio.question.spelling import Respelling, respelled, surface_of
from folio.search.coarse_fine import Highlights, dense_search
from folio.search.filters import (
    CandidateFilter,
    PaperFilter,
    SectionFilter,
    Selection,
    deep_enough,
    first_depth,
    select,
)
from folio.search.fusion import FusionSettings, Mode, Scored, fuse_in
from folio.search.mmr import mmr
from folio.search.names import SAMPLE_ID, PaperNames, indexed_aliases, names_sample, papers_with
from folio.search.papers import (
    MOST_BY_WORDS,
    PASSAGES,
    PaperIndex,
    PaperScores,
    PaperWeights,
    best_places,
    by_passages,
    paper_hit,
)
from folio.store.indexes import SearchIndexes, Trust
from folio.store.library import Library
from folio.store.rows import Stamp
from folio.store.works import cited_papers
from folio.system.threads import Stopwatch
from folio.text import plain_words, tokenize

# Hits in the order of a reranker.


def reranked(reranker: Reranker, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[Hit]:
    """The hits with the reranker's scores, best first; ties keep their order."""
    scores = reranker.scores(question, hits, weights)
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(scored, key=lambda hit: -hit.score)


# Searches with several readings of one question, and fuses what they find: passages that readings agree on come first.
#
# A follow-up can be read as typed, with its references filled in, and together with the questions before it. Each
# reading alone fails on some follow-ups, and they fail on different ones.


def fuse_readings(rankings: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """The candidates of all readings with the mean of their fused scores, best first, ties by id.

    CombSUM (Fox and Shaw 1994, "Combination of multiple searches"), over the number of readings; a candidate that a
    reading does not have gets 0 from it. A candidate keeps the cosine and the BM25 score of the first reading that has
    it. Raises ValueError without a reading.
    """
    if not rankings:
        raise ValueError("no reading")
    scores: dict[int, float] = {}
    first: dict[int, Candidate] = {}
    for candidate in chain.from_iterable(rankings):
        scores[candidate.chunk_id] = scores.get(candidate.chunk_id, 0.0) + candidate.score
        first.setdefault(candidate.chunk_id, candidate)
    merged = [replace(candidate, score=scores[id] / len(rankings)) for id, candidate in first.items()]
    return sorted(merged, key=lambda candidate: (-candidate.score, candidate.chunk_id))


T = TypeVar("T")

# Passages in which the spelling of a stem, or the words of an acronym, are looked up
SURFACE_PASSAGES = 10


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question, and how it is to be searched."""

    question: Question
    top_k: int
    papers: Sequence[Paper] | None = None  # search only these
    sections: SectionFilter | None = None  # and only these sections
    also: Sequence[int] = ()  # chunk ids to add to the candidates, such as the evidence of earlier turns
    # Other readings of the question, searched too (search/retriever.py), in place of what a model writes
    readings: Sequence[str] = ()
    rerank: bool = True  # False keeps the order of the fused scores
    written: bool = True  # whether a model may write what else is searched (QueryWriter)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits for a question, best first, and how long each stage took."""

    hits: tuple[Hit, ...]
    timings_ms: dict[str, float]
    ranked: dict[str, tuple[int, ...]]  # the chunk ids in each stage's order: dense, bm25, fused, reranked, mmr


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the indexes are searched for."""

    request: SearchRequest
    within: frozenset[str] | None  # the ids of the papers to search; None for all
    readings: tuple[str, ...]  # the question, then its other readings
    passage: str  # a reading, too, with its own vector and the words of the first; "" for none
    depth: int  # candidates of each index
    filter: CandidateFilter
    clock: Stopwatch
    ranked: dict[str, tuple[int, ...]] = field(default_factory=dict)  # SearchResult.ranked, as far as it has come


@dataclass(frozen=True, slots=True)
class _Candidates:
    """What each index found for each reading, with the scores that are fused."""

    mode: Mode
    scores: tuple[tuple[Scored, Scored], ...]  # of each reading: cosines and BM25 scores by chunk id
    added: frozenset[int]  # the candidates that were asked for (SearchRequest.also) and may be found
    highlights: Highlights


@dataclass(frozen=True, slots=True)
class _Passages:
    """The passages to rerank, best first, as read from one state of the library."""

    hits: list[Hit]
    weights: TermWeights  # of the question's tokens
    vectors: dict[int, Vectors]  # by chunk id, where the passages are to be spread (mmr.py)


class Retriever:
    """Searches one store. Each search reads one consistent generation of it, even while an ingest is running."""

    def __init__(
        self,
        library: Library,
        open_indexes: Callable[[], SearchIndexes],
        embedder: Embedder,
        reranker: Reranker | None,
        fusion: FusionSettings,
        is_word: Callable[[str], bool] = lambda word: False,
        writer: QueryWriter | None = None,
    ) -> None:
        """is_word: whether this is an English word, in small letters; one is never taken for a misspelt word.

        writer: what a question is searched with besides.
        """
        self._is_word = is_word
        self._writer = writer
        self._library = library
        self._open_indexes = open_indexes
        self._indexes: SearchIndexes | None = None
        self._papers: PaperIndex | None = None
        self._names: tuple[tuple[Stamp, int], PaperNames] | None = None
        self._sample: tuple[tuple[Stamp, int], bool] | None = None  # whether the sample paper is among others
        self.embedder = embedder
        self._reranker = reranker
        self._fusion = fusion

    def with_library(self, library: Library, open_indexes: Callable[[], SearchIndexes]) -> Retriever:
        """A retriever with the same models for another thread: a library can be used by only one at a time."""
        return self._over(library, open_indexes, self._writer)

    def without_writer(self) -> Retriever:
        """A retriever over the same library that searches questions as they are, in this thread."""
        return self._over(self._library, self._open_indexes, None) if self._writer else self

    def _over(self, library: Library, opened: Callable[[], SearchIndexes], writer: QueryWriter | None) -> Retriever:
        return Retriever(library, opened, self.embedder, self._reranker, self._fusion, self._is_word, writer)

    @property
    def models(self) -> dict[str, str]:
        """The display names of the embedder and the reranker."""
        return self.models_in(rerank=True)

    def models_in(self, *, rerank: bool) -> dict[str, str]:
        """`models` for a search with or without the reranker."""
        reranker = self._reranker if rerank else None
        return {"embedder": self.embedder.name, "reranker": reranker.name if reranker else "none"}

    def search(
        self,
        question: Question | str,
        top_k: int,
        papers: Sequence[Paper] | None = None,
        also: Sequence[int] = (),
        *,
        rerank: bool = True,
    ) -> SearchResult:
        """The top_k passages for a question. The others are as of SearchRequest. Raises ModelError and StoreDamaged."""
        return self.find(SearchRequest(Question.of(question), top_k, papers, also=also, rerank=rerank))

    def find(self, request: SearchRequest) -> SearchResult:
        """The passages for a question: candidates of both indexes, fused, reranked, and the best of them selected.

        The best `candidates` (FusionSettings) of each index that may be found (search/filters.py) are fused
        (fusion.py) and then reranked, and with FusionSettings.mmr_lambda ordered by what each adds to those before it.
        Raises ModelError and StoreDamaged.
        """
        clock = Stopwatch()
        written = self._written(request, clock)
        with self._library.reading() as stamp:
            self._open_at(stamp)
            clock.lap("open")
            plan = self._plan(request, written, clock)
            candidates = self._on_indexes(partial(self._candidates, plan))
            fused = self._fused(candidates, plan)
            passages = self._read(fused, candidates, plan)
            clock.lap("read")
        reranked = self._reranked(passages, plan)
        selected = self._selected(reranked, plan)
        return SearchResult(tuple(selected[: request.top_k]), clock.laps, plan.ranked)

    def search_papers(
        self,
        query: str,
        limit: int,
        offset: int = 0,
        papers: Sequence[Paper] | None = None,
        *,
        sections: SectionFilter | None = None,
    ) -> list[PaperHit]:
        """Papers ranked for a query (search/papers.py), the best first: at most `limit` of them, from `offset` on.

        papers: rank only these. sections: take passages only from these. Raises ModelError and StoreDamaged.
        """
        with self._library.reading():
            index = self._paper_index()
            hidden = self._hidden(query) if papers is None else frozenset[str]()
            within = frozenset(index.ids) - hidden if papers is None else {paper.id for paper in papers}
            request = SearchRequest(Question(query), PASSAGES, papers, sections, rerank=False, written=False)
            hits = self.find(request).hits
            cosines = index.cosines(self.embedder.embed_query(query) if index.has_vectors else np.zeros(1, np.float32))
            scores = PaperScores(index.bm25(query, MOST_BY_WORDS), cosines, by_passages(index, hits))
            fused = scores.fused(PaperWeights())
            places = best_places(index, fused, within)[offset : offset + limit]
            found = {paper.id: paper for paper in self._library.papers_by_id(index.ids[place] for place in places)}
        best = {hit.paper.id: hit for hit in reversed(hits)}
        return [paper_hit(query, found[index.ids[place]], place, fused, scores, best) for place in places]

    def papers_without_vector(self) -> int:
        """How many papers have no vector of what is known about them now: the next ingest gives them one."""
        with self._library.reading():
            return self._paper_index().outdated

    def _paper_index(self) -> PaperIndex:
        """The index of papers of this state of the library. The caller holds its snapshot."""
        if self._papers is None or self._papers.stamp != self._library.papers_stamp():
            self._papers = PaperIndex.of(self._library)
        return self._papers

    def respelled(self, question: str) -> Respelling:
        """The question with words of the index in place of misspelt ones (spelling.py). Raises StoreDamaged."""
        with self._library.reading() as stamp:
            self._open_at(stamp)
            return self._on_indexes(
                lambda indexes: respelled(
                    question,
                    lambda token: indexes.lexical.passages_with(token) > 0,
                    self._is_word,
                    indexes.lexical.vocabulary,
                    partial(self._surface, indexes),
                )
            )

    def is_understood(self, query: str) -> bool:
        """Whether a query says anything: the papers have one of its words, or the embedder knows one.

        What is nearest to "xqzzyv" is near by accident. Of an embedder whose words nobody can look up, it is taken that
        it knows English, and words with other letters, which may be of another language.
        Raises ModelError and StoreDamaged.
        """
        knows: Callable[[str], bool] = getattr(self.embedder, "is_word", self._is_english)
        words = [word for word in plain_words(query) if tokenize(word)]
        if not words:
            return True
        with self._library.reading() as stamp:
            self._open_at(stamp)
            tokens = tokenize(query)
            if self._on_indexes(lambda found: any(found.lexical.passages_with(token) for token in tokens)):
                return True
        return any(map(knows, words))  # may load a model

    def _is_english(self, word: str) -> bool:
        return not word.isascii() or self._is_word(word)

    def long_form(self, acronym: str) -> str:
        """The words that an acronym stands for, "" if the papers do not say. Raises StoreDamaged."""
        with self._library.reading() as stamp:
            self._open_at(stamp)
            return self._on_indexes(partial(self._long_form, acronym=acronym))

    def _long_form(self, indexes: SearchIndexes, acronym: str) -> str:
        """Those of the passages that use it most; see acronyms.long_form."""
        found = [id for token in tokenize(acronym)[:1] for id in indexes.lexical.passages_of(token, SURFACE_PASSAGES)]
        return parts.long_form(acronym, [text for _, _, text in self._library.read_chunks(found)])

    def _surface(self, indexes: SearchIndexes, stem: str, typed: str) -> str:
        """The word with this stem in the passages that use it most; see spelling.surface_of."""
        read = self._library.read_chunks(indexes.lexical.passages_of(stem, SURFACE_PASSAGES))
        return surface_of(stem, typed, [f"{paper.title}\n{text}" for _, paper, text in read])

    def _open_at(self, stamp: Stamp) -> None:
        """Have the indexes of this generation. The caller holds its snapshot."""
        if self._indexes is None or self._indexes.stamp != stamp:
            self._indexes = self._open_indexes()
        elif self._indexes.found_damaged():
            self._indexes = self._indexes.reopen("checked")

    # The stages of a search

    def _written(self, request: SearchRequest, clock: Stopwatch) -> Written:
        """What a model writes to search with, if one may."""
        if not self._writer or not request.written or request.readings:
            return NOTHING_WRITTEN
        written = self._writer.write(request.question.text)
        clock.lap("write")
        return written

    def _plan(self, request: SearchRequest, written: Written, clock: Stopwatch) -> _Plan:
        """The caller holds a snapshot of the library."""
        question, is_everywhere = request.question, request.papers is None
        within = None if request.papers is None else frozenset(paper.id for paper in request.papers)
        readings = tuple(dict.fromkeys((question.text, *(request.readings or written.wordings))))
        hidden = self._hidden(question.text) if is_everywhere else frozenset[str]()
        allowed = CandidateFilter.of(self._library, question, request.sections, hidden, newest_only=is_everywhere)
        depth = max(self._fusion.candidates, request.top_k)
        return _Plan(request, within, readings, written.passage, depth, allowed, clock)

    def _candidates(self, plan: _Plan, indexes: SearchIndexes) -> _Candidates:
        """What the indexes find for each reading; the orders "dense" and "bm25" are of the first.

        Raises IndexDamaged if an index fails, or names a chunk that the library does not have in these papers.
        """
        request, wanted, within = plan.request, plan.depth, plan.within
        texts = (f"{plan.readings[0]} {request.question.typed}", *plan.readings[1:])
        mode, depth = self._fusion.mode, first_depth(wanted)
        words = [] if mode == "dense" else [partial(indexes.lexical.search, text, papers=within) for text in texts]
        first = [search(depth) for search in words]
        if mode == "lexical" and self._fusion.min_hits > len(deep_enough(words[0], wanted, plan.filter, first[0])):
            mode = "hybrid"
        plan.clock.lap("bm25")
        # After BM25, because the model may still be loading in the background (App.retriever).
        vectors = [] if mode == "lexical" else self._vectors(plan)
        plan.clock.lap("embed")
        ids_by_words = {id for scored in first for id, _ in scored}
        self._library.expect_vectors_of(ids_by_words.union(request.also) if vectors else ())
        counts = wanted, max(self._fusion.dual_candidates, request.top_k)
        searches = [dense_search(self._library, indexes, vector, counts, within) for vector in vectors]
        # All of them are read together, from a library that may be far away.
        plan.filter.allowed(ids_by_words.union(*(search.first for search in searches)))
        lexical = [deep_enough(search, wanted, plan.filter, found) for search, found in zip(words, first, strict=True)]
        lexical = lexical or [[] for _ in texts]
        lexical += lexical[:1] if plan.passage and vectors else []
        stages = [search.find(plan.filter) for search in searches]
        plan.clock.lap("dense")
        ranked = dict(stages[0]) if stages else {}
        if mode != "dense":
            ranked["bm25"] = tuple(chunk for chunk, _ in lexical[0])
        found = {chunk for stage in stages for order in stage.values() for chunk in order}
        found.update(chunk for scored in lexical for chunk, _ in scored)
        _require_known(found, plan)
        added = _added(plan)
        scores: list[tuple[Scored, Scored]] = []
        highlights: Highlights = {}
        for search, by_words in zip_longest(searches, lexical):
            # Passages that BM25 or another reading found get their cosine too; without it they would rank too low.
            dense, nearest = search.scores(sorted(found | added)) if search else ([(id, 0.0) for id in added], {})
            highlights = nearest | highlights  # of the first reading
            scores.append((dense, by_words))
        plan.ranked.update(ranked)
        return _Candidates(mode, tuple(scores), added, highlights)

    def _fused(self, found: _Candidates, plan: _Plan) -> list[Candidate]:
        """One ranking of what was found for all readings."""
        rankings = [fuse_in(found.mode, self._fusion, dense, lexical) for dense, lexical in found.scores]
        # A dual search finds more; as many are reranked as a single one finds at most.
        most = 2 * plan.depth * len(rankings)
        fused = [c for place, c in enumerate(fuse_readings(rankings)) if place < most or c.chunk_id in found.added]
        plan.ranked["fused"] = tuple(candidate.chunk_id for candidate in fused)
        return fused

    def _read(self, fused: Sequence[Candidate], found: _Candidates, plan: _Plan) -> _Passages:
        """Those that the reranker is to read. The caller holds a snapshot of the library."""
        reranker, request = self._reranker_of(plan.request), plan.request
        reads = reranker.reads if reranker else 0
        limit = len(fused) if reads is None else max(reads, request.top_k)
        kept = [c for place, c in enumerate(fused) if place < limit or (reranker and c.chunk_id in found.added)]
        texts = self._library.read_chunks([candidate.chunk_id for candidate in kept])
        hits = [
            Hit(*chunk_paper_text, each.score, each.dense, each.lexical, found.highlights.get(each.chunk_id, ()))
            for each, chunk_paper_text in zip(kept, texts, strict=True)
        ]
        is_spread = request.rerank and hits and self._fusion.mmr_lambda < 1
        ids = [hit.chunk.id for hit in hits] if is_spread else []
        vectors = dict(zip(ids, self._library.vectors_of(ids), strict=True)) if ids else {}
        return _Passages(hits, self.term_weights(request.question), vectors)

    def _reranked(self, passages: _Passages, plan: _Plan) -> _Passages:
        """The passages in the order of the reranker, if there is one."""
        reranker = self._reranker_of(plan.request)
        if reranker is None or not passages.hits:
            return passages
        hits = reranked(reranker, plan.request.question.text, passages.hits, passages.weights)
        plan.clock.lap("rerank")
        plan.ranked["reranked"] = tuple(hit.chunk.id for hit in hits)
        return replace(passages, hits=hits)

    def _selected(self, passages: _Passages, plan: _Plan) -> list[Hit]:
        """The hits; where they are to be spread, ordered by what each adds to those before it."""
        hits, vectors = passages.hits, passages.vectors
        if not vectors:
            return hits
        rows = np.array([vectors[hit.chunk.id] for hit in hits])
        order = mmr([hit.score for hit in hits], rows, self._fusion.mmr_lambda, len(hits))
        hits = [hits[place] for place in order]
        plan.ranked["mmr"] = tuple(hit.chunk.id for hit in hits)
        plan.clock.lap("mmr")
        return hits

    def _reranker_of(self, request: SearchRequest) -> Reranker | None:
        return self._reranker if request.rerank else None

    def _hidden(self, question: str) -> frozenset[str]:
        """The sample paper if there are other papers and the question does not name it; else none."""
        if names_sample(question):
            return frozenset()
        state = self._library.papers_stamp()
        if self._sample is None or self._sample[0] != state:
            own = len(self._library.chunk_ids_of([SAMPLE_ID]))
            self._sample = state, 0 < own < self._library.chunk_count()
        return frozenset([SAMPLE_ID]) if self._sample[1] else frozenset()

    def _vectors(self, plan: _Plan) -> list[Vectors]:
        """A vector for each reading; the first is between the question and how it was typed, if that differs."""
        if typed := plan.request.question.typed:
            first, *others, as_typed = self.embedder.embed_queries([*plan.readings, typed])
            vectors = [(first + as_typed) / max(float(np.linalg.norm(first + as_typed)), 1e-6), *others]
        else:
            vectors = list(self.embedder.embed_queries(plan.readings))
        return [*vectors, *self.embedder.embed_passages([plan.passage])] if plan.passage and vectors else vectors

    def _on_indexes(self, work: Callable[[SearchIndexes], T]) -> T:
        """Do work on the indexes. If one turns out to be damaged, it is repaired, and the work done again.

        The second time, both are rebuilt without a look at their files: something was wrong that no checksum shows.
        """
        if self._indexes is None:
            self._indexes = self._open_indexes()
        repairs: tuple[Trust, ...] = ("checked", "none")
        for trust in repairs:
            try:
                return work(self._indexes)
            except IndexDamaged:
                self._indexes = self._indexes.reopen(trust)
        return work(self._indexes)

    def term_weights(self, question: Question) -> dict[str, float]:
        """The IDF of each token of a question, in the generation that was searched last."""
        tokens = list(dict.fromkeys(question.tokens))
        return self._on_indexes(lambda indexes: {token: indexes.lexical.rarity(token) for token in tokens})

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is read inside is read of one state of the library; nothing may take long inside."""
        if self._writer is not None:  # a model writes within each search
            yield
            return
        with self._library.reading():
            yield

    def text(self, paper: str, start: int, end: int) -> str:
        """The characters [start, end) of a paper's text, as it was when it was read last; paper is its id."""
        return self._library.text_as_read(paper, start, end)

    def select(self, wanted: PaperFilter) -> Selection:
        """The papers and sections to search. Raises UsageError if none is as wanted."""
        return select(self._library, wanted)

    def vectors_of(self, chunks: Sequence[int]) -> Vectors:
        """The vectors of these passages, in order: shape (n, dimension), rows of unit length. Raises StoreDamaged."""
        return self._library.vectors_of(chunks)

    def cited_papers(self, paper: str) -> set[str]:
        """The ids of the papers that one of them cites, as far as its references are known. Raises StoreDamaged."""
        return cited_papers(self._library.database, paper) or set()

    def papers_by_id(self, ids: Sequence[str]) -> list[Paper]:
        """These papers, without those that are gone. Raises StoreDamaged."""
        return self._library.papers_by_id(ids)

    def passages_by_id(self, ids: Iterable[int]) -> dict[int, tuple[Chunk, Paper, str]]:
        """These passages with their papers and texts, without those that are gone. Raises StoreDamaged."""
        with self._library.reading():
            known = list(self._library.chunks(ids))
            return dict(zip(known, self._library.read_chunks(known), strict=True))

    @property
    def state(self) -> str:
        """Names the state of the library: another one after each change of what is searched. Raises StoreDamaged."""
        stamp, described = self._library.papers_stamp()
        return f"{stamp.epoch} {stamp.generation} {described}"

    def papers(self) -> list[Paper]:
        """Every paper, sorted by file name."""
        return self._library.papers()

    def paper_names(self) -> PaperNames:
        """The names of all papers in this state of the library. Raises StoreDamaged."""
        with self._library.reading() as stamp:
            self._open_at(stamp)
            state = self._library.papers_stamp()
            if self._names is None or self._names[0] != state:
                aliases = indexed_aliases(self._library, self._papers_with)
                self._names = state, PaperNames(self._library.papers(), aliases)
            return self._names[1]

    def _papers_with(self, word: str) -> Sequence[Paper]:
        return self._on_indexes(lambda indexes: papers_with(word, self._library, indexes.lexical))

    def unread_files(self) -> list[str]:
        """The names of the files that could not be read. Raises StoreDamaged."""
        return [failure.file.name for failure in self._library.failures()]

    def passages(self, paper: Paper, most: int | None = None) -> list[Hit]:
        """The passages of a paper in its order, or the first of them, with the score 0. Raises StoreDamaged."""
        chunks = self._library.chunks(self._library.chunk_ids_of([paper.id])).values()
        ids = [chunk.id for chunk in sorted(chunks, key=lambda chunk: (chunk.start, chunk.end))]
        return [Hit(*found, 0.0) for found in self._library.read_chunks(ids[:most])]


def _require_known(found: set[int], plan: _Plan) -> None:
    """Raise IndexDamaged if the indexes found a chunk that the library does not have, or that is of another paper."""
    chunks, within = plan.filter.chunks, plan.within
    if not found <= chunks.keys():
        raise IndexDamaged("an index names a chunk that is not in the library")
    if within is not None and any(chunks[chunk].paper_id not in within for chunk in found):
        raise IndexDamaged("an index names a chunk of another paper")


def _added(plan: _Plan) -> frozenset[int]:
    """The candidates that the request adds, as far as they may be found."""
    chunks, within = plan.filter.chunks, plan.within
    known = plan.filter.allowed(plan.request.also) & chunks.keys()
    return frozenset(id for id in known if within is None or chunks[id].paper_id in within)
