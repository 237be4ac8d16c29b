"""Hybrid retrieval: FAISS and BM25 are searched, fused and reranked. No model is loaded before it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TypeVar

import numpy as np

from folio.errors import IndexDamaged
from folio.protocols import NOTHING_WRITTEN, Embedder, QueryWriter, Reranker
from folio.search import acronyms
from folio.search.aliases import indexed_aliases, papers_with
from folio.search.candidate_filter import CandidateFilter, SectionFilter, deep_enough, first_depth
from folio.search.coarse_fine import Highlights, dense_search
from folio.search.fusion import FusionSettings, fuse_in
from folio.search.mmr import mmr
from folio.search.paper_filter import PaperFilter, Selection
from folio.search.paper_names import PaperNames
from folio.search.paper_ranking import (
    MOST_BY_WORDS,
    PASSAGES,
    PaperScores,
    PaperWeights,
    best_places,
    by_passages,
    paper_hit,
)
from folio.search.paper_selection import select
from folio.search.readings import fuse_readings
from folio.search.reranking import reranked
from folio.search.sample_paper import SAMPLE_ID, names_sample
from folio.search.spelling import Respelling, respelled, surface_of
from folio.search.stopwatch import Stopwatch
from folio.store.citations import cited_papers
from folio.store.library import Library
from folio.store.paper_index import PaperIndex
from folio.store.rows import Stamp
from folio.store.search_indexes import SearchIndexes, Trust
from folio.text import plain_words, tokenize
from folio.types import Candidate, Chunk, Hit, Paper, PaperHit, Vectors

T = TypeVar("T")

# Passages in which the spelling of a stem, or the words of an acronym, are looked up
SURFACE_PASSAGES = 10


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits for a question, best first, and how long each stage took."""

    hits: tuple[Hit, ...]
    timings_ms: dict[str, float]
    ranked: dict[str, tuple[int, ...]]  # the chunk ids in each stage's order: dense, bm25, fused, reranked, mmr


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
        question: str,
        top_k: int,
        papers: Sequence[Paper] | None = None,
        also: Sequence[int] = (),
        *,
        sections: SectionFilter | None = None,
        readings: Sequence[str] = (),
        rerank: bool = True,
        typed: str = "",
        written: bool = True,
    ) -> SearchResult:
        """The top_k passages for a question; `papers` and `sections` restrict the search to these.

        The best `candidates` (FusionSettings) of each index that may be found (candidate_filter.py) are fused
        (fusion.py) and then reranked, and with FusionSettings.mmr_lambda ordered by what each adds to those before it.

        also: chunk ids to add to the candidates, such as the evidence of earlier turns. readings: other readings of the
        question, searched too (readings.py), in place of what a model writes; the reranker reads `question`.
        rerank: False keeps the order of the fused scores. typed: the question as it was typed, if `respelled` changed
        it: it is searched too. written: False does without what a model writes (QueryWriter).
        Raises ModelError and StoreDamaged.
        """
        clock = Stopwatch()
        extra = NOTHING_WRITTEN
        if self._writer and written and not readings:
            extra = self._writer.write(question)
            clock.lap("write")
        reranker = self._reranker if rerank else None
        within = None if papers is None else frozenset(paper.id for paper in papers)
        with self._library.reading() as stamp:
            self._open_at(stamp)
            clock.lap("open")
            asked = tuple(dict.fromkeys((question, *(readings or extra.wordings))))
            hidden = self._hidden(question) if papers is None else frozenset[str]()
            candidates = CandidateFilter.of(self._library, question, sections, hidden, newest_only=within is None)
            fused, ranked, added, highlights = self._on_indexes(
                lambda indexes: self._candidates(
                    indexes, asked, typed, extra.passage, top_k, within, also, candidates, clock
                )
            )
            reads = reranker.reads if reranker else 0
            limit = len(fused) if reads is None else max(reads, top_k)
            kept = (c for place, c in enumerate(fused) if place < limit or (reranker and c.chunk_id in added))
            hits = self._read(list(kept), highlights)
            weights = self.term_weights(question)
            is_diverse = rerank and hits and self._fusion.mmr_lambda < 1
            vectors = self._library.vectors_of([hit.chunk.id for hit in hits]) if is_diverse else None
            places = {hit.chunk.id: place for place, hit in enumerate(hits)}
            clock.lap("read")
        if reranker is not None and hits:
            hits = reranked(reranker, question, hits, weights)
            clock.lap("rerank")
            ranked["reranked"] = tuple(hit.chunk.id for hit in hits)
        if vectors is not None:
            rows = vectors[[places[hit.chunk.id] for hit in hits]]
            hits = [hits[place] for place in mmr([hit.score for hit in hits], rows, self._fusion.mmr_lambda, len(hits))]
            ranked["mmr"] = tuple(hit.chunk.id for hit in hits)
            clock.lap("mmr")
        return SearchResult(tuple(hits[:top_k]), clock.laps, ranked)

    def search_papers(
        self,
        query: str,
        limit: int,
        offset: int = 0,
        papers: Sequence[Paper] | None = None,
        *,
        sections: SectionFilter | None = None,
    ) -> list[PaperHit]:
        """Papers ranked for a query (paper_ranking.py), the best first: at most `limit` of them, from `offset` on.

        papers: rank only these. sections: take passages only from these. Raises ModelError and StoreDamaged.
        """
        with self._library.reading():
            index = self._paper_index()
            hidden = self._hidden(query) if papers is None else frozenset[str]()
            within = frozenset(index.ids) - hidden if papers is None else {paper.id for paper in papers}
            hits = self.search(query, PASSAGES, papers, sections=sections, rerank=False, written=False).hits
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
        return acronyms.long_form(acronym, [text for _, _, text in self._library.read_chunks(found)])

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

    def _candidates(
        self,
        indexes: SearchIndexes,
        readings: Sequence[str],
        typed: str,
        passage: str,
        top_k: int,
        within: frozenset[str] | None,
        also: Sequence[int],
        candidates: CandidateFilter,
        clock: Stopwatch,
    ) -> tuple[list[Candidate], dict[str, tuple[int, ...]], set[int], Highlights]:
        """Fused candidates, the ids in each stage's order, the ids of `also` that may be searched, and highlights.

        The orders "dense" and "bm25" are of the first reading. typed: that one as it was typed, "" if it is the same.
        passage: is a reading, too, with its own vector and the words of the first.

        Raises IndexDamaged if an index fails, or names a chunk that the library does not have in these papers.
        """
        wanted = max(self._fusion.candidates, top_k)
        texts = (f"{readings[0]} {typed}", *readings[1:])
        mode, depth = self._fusion.mode, first_depth(wanted)
        words = [] if mode == "dense" else [partial(indexes.lexical.search, text, papers=within) for text in texts]
        first = [search(depth) for search in words]
        if mode == "lexical" and self._fusion.min_hits > len(deep_enough(words[0], wanted, candidates, first[0])):
            mode = "hybrid"
        clock.lap("bm25")
        # After BM25, because the model may still be loading in the background (App.retriever).
        vectors = [] if mode == "lexical" else self._vectors(readings, typed)
        if passage and vectors:
            vectors = [*vectors, *self.embedder.embed_passages([passage])]
        clock.lap("embed")
        ids_by_words = {id for scored in first for id, _ in scored}
        self._library.expect_vectors_of(ids_by_words.union(also) if vectors else ())
        dual_count = max(self._fusion.dual_candidates, top_k)
        searches = [dense_search(self._library, indexes, vector, wanted, dual_count, within) for vector in vectors]
        # All of them are read together, from a library that may be far away.
        candidates.allowed(ids_by_words.union(*(search.first for search in searches)))
        lexical = [deep_enough(search, wanted, candidates, found) for search, found in zip(words, first, strict=True)]
        lexical = lexical or [[] for _ in texts]
        lexical += lexical[:1] if passage and vectors else []
        stages = [search.find(candidates) for search in searches]
        clock.lap("dense")
        ranked = dict(stages[0]) if stages else {}
        if mode != "dense":
            ranked["bm25"] = tuple(chunk for chunk, _ in lexical[0])
        chunks = candidates.chunks
        found = {chunk for stage in stages for chunks_found in stage.values() for chunk in chunks_found}
        found.update(chunk for scored in lexical for chunk, _ in scored)
        if not found <= chunks.keys():
            raise IndexDamaged("an index names a chunk that is not in the library")
        if within is not None and any(chunks[chunk].paper_id not in within for chunk in found):
            raise IndexDamaged("an index names a chunk of another paper")
        known = candidates.allowed(also) & chunks.keys()
        added = {id for id in known if within is None or chunks[id].paper_id in within}
        rankings: list[list[Candidate]] = []
        highlights: Highlights = {}
        for search, by_words in zip_longest(searches, lexical):
            # Passages that BM25 or another reading found get their cosine too; without it they would rank too low.
            dense, nearest = search.scores(sorted(found | added)) if search else ([(id, 0.0) for id in added], {})
            highlights = nearest | highlights  # of the first reading
            rankings.append(fuse_in(mode, self._fusion, dense, by_words))
        # A dual search finds more; as many are reranked as a single one finds at most.
        most = 2 * wanted * len(lexical)
        fused = [c for place, c in enumerate(fuse_readings(rankings)) if place < most or c.chunk_id in added]
        ranked["fused"] = tuple(candidate.chunk_id for candidate in fused)
        return fused, ranked, added, highlights

    def _hidden(self, question: str) -> frozenset[str]:
        """The sample paper if there are other papers and the question does not name it; else none."""
        if names_sample(question):
            return frozenset()
        state = self._library.papers_stamp()
        if self._sample is None or self._sample[0] != state:
            own = len(self._library.chunk_ids_of([SAMPLE_ID]))
            self._sample = state, 0 < own < self._library.chunk_count()
        return frozenset([SAMPLE_ID]) if self._sample[1] else frozenset()

    def _vectors(self, readings: Sequence[str], typed: str) -> Sequence[Vectors]:
        """A vector for each reading; the first is between the question and how it was typed, if that differs."""
        if not typed:
            return list(self.embedder.embed_queries(readings))
        first, *others, as_typed = self.embedder.embed_queries([*readings, typed])
        return [(first + as_typed) / max(float(np.linalg.norm(first + as_typed)), 1e-6), *others]

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

    def term_weights(self, question: str) -> dict[str, float]:
        """The IDF of each token of a question, in the generation that was searched last."""
        tokens = list(dict.fromkeys(tokenize(question)))
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

    def _read(self, candidates: Sequence[Candidate], highlights: Highlights) -> list[Hit]:
        found = self._library.read_chunks([candidate.chunk_id for candidate in candidates])
        return [
            Hit(*chunk_paper_text, each.score, each.dense, each.lexical, highlights.get(each.chunk_id, ()))
            for each, chunk_paper_text in zip(candidates, found, strict=True)
        ]
