"""Hybrid retrieval: searches FAISS and BM25, fuses and reranks. Loads no model before it is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from typing import TypeVar

import numpy as np

from folio.errors import EmbedderAway, IndexDamaged
from folio.papers.model import Candidate, Chunk, Hit, Paper, PaperHit, Vectors
from folio.protocols import NOTHING_WRITTEN, Embedder, QueryWriter, Reranker, TermWeights, Written
from folio.question import parts
from folio.question.question import Question
from folio.question.spelling import Respelling, respelled
from folio.search.coarse_fine import DenseSearch, Highlights
from folio.search.definitions import (
    SURELY_DEFINED,
    Term,
    algorithms_named,
    by_definition,
    first_where_defined,
    raised_by_definition,
)
from folio.search.filters import (
    CandidateFilter,
    PaperFilter,
    SectionFilter,
    Selection,
    deep_enough,
    first_depth,
    select,
)
from folio.search.fusion import FusionSettings, Mode, Scored, fuse_in, mmr
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
from folio.store.readings import Use, uses
from folio.store.rows import Stamp
from folio.store.works import cited_papers
from folio.system.threads import Stopwatch
from folio.text import one_line, plain_words, tokenize

T = TypeVar("T")

# Passages to read for the spelling of a stem, or for the words of an acronym
SURFACE_PASSAGES = 10
# The topic of a paper is in this many of TOPIC_PASSAGES passages of one paper, and in this many papers at most
TOPIC_PASSAGES, OFTEN, FEW_PAPERS = 64, 3, 6
PAPERS_KEPT = 8  # whose passages are kept as tokens; a question names fewer
AMONG_BEST = 8  # hits, most of which are of the paper that may define the asked term
NOTHING_KNOWN = "None of these words is in your papers."
NO_WORDS = "No passage has these words. These are the nearest in meaning."
FREQUENT = 0.02  # share of the passages that use a function word of their language


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question, and how to search for it."""

    question: Question
    top_k: int
    papers: Sequence[Paper] | None = None  # search only these
    sections: SectionFilter | None = None  # and only these sections
    also: Sequence[int] = ()  # chunk ids to add to the candidates, such as the evidence of earlier turns
    readings: Sequence[str] = ()  # other readings of the question to search (fuse_readings), instead of a model's texts
    rerank: bool = True  # False keeps the order of the fused scores
    defined: bool = True  # whether what defines a name in the question comes first (definitions.py), reranked or not
    written: bool = True  # whether a model may write more texts to search with (QueryWriter)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits for a question, best first, and the time of each stage."""

    hits: tuple[Hit, ...]
    timings_ms: dict[str, float]
    ranked: dict[str, tuple[int, ...]]  # stage -> chunk ids in its order: dense, bm25, fused, reranked, mmr
    notice: str = ""  # why only words were searched; "" if vectors were too, or the settings ask for words alone
    missing: tuple[str, ...] = ()  # parts of the question for which a search in rounds found nothing relevant


@dataclass(frozen=True, slots=True)
class _Plan:
    """A search request, prepared for the indexes."""

    request: SearchRequest
    within: frozenset[str] | None  # the ids of the papers to search; None for all
    readings: tuple[str, ...]  # the question, then its other readings
    passage: str  # another reading, with its own vector and the words of the first; "" for none
    depth: int  # candidates of each index
    filter: CandidateFilter
    clock: Stopwatch
    ranked: dict[str, tuple[int, ...]] = field(default_factory=dict)  # SearchResult.ranked so far


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The results of each index for each reading, with the scores to fuse."""

    mode: Mode
    scores: tuple[tuple[Scored, Scored], ...]  # of each reading: cosines and BM25 scores by chunk id
    added: frozenset[int]  # the candidates of SearchRequest.also that may be returned
    highlights: Highlights


@dataclass(frozen=True, slots=True)
class _Passages:
    """The passages to rerank, best first, read from one state of the library."""

    hits: list[Hit]
    weights: TermWeights  # of the question's tokens
    vectors: dict[int, Vectors]  # by chunk id, for an order by MMR; else empty


class Retriever:
    """Searches one store. Each search reads one consistent generation, even while an ingest is running."""

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
        """is_word: whether a lower-case word is English; such a word is never corrected.

        writer: writes more texts to search with.
        """
        self._is_word = is_word
        self._writer = writer
        self._library = library
        self._open_indexes = open_indexes
        self._indexes: SearchIndexes | None = None
        self._papers: PaperIndex | None = None
        self._names: tuple[tuple[Stamp, int], PaperNames] | None = None
        self._sample: tuple[tuple[Stamp, int], bool] | None = None  # whether the sample paper is among others
        self._words: dict[tuple[Stamp, str], frozenset[str]] = {}  # the tokens of a paper, by its id
        self._passage_words: dict[tuple[Stamp, str], list[frozenset[str]]] = {}  # the tokens of each of its passages
        self._front_words: tuple[tuple[Stamp, int], dict[str, frozenset[str]]] | None = None  # of titles and abstracts
        self.embedder = embedder
        self.notice = ""  # of the last search: see SearchResult
        self._check_cancelled: Callable[[], None] = lambda: None
        self._reranker = reranker
        self._fusion = fusion

    def with_library(self, library: Library, open_indexes: Callable[[], SearchIndexes]) -> Retriever:
        """A retriever with the same models for another thread: only one thread can use a library."""
        return self._over(library, open_indexes, self._writer)

    def without_writer(self) -> Retriever:
        """A retriever over the same library, for this thread, that searches only with the question itself."""
        return self._over(self._library, self._open_indexes, None) if self._writer else self

    def with_fusion(self, fusion: FusionSettings) -> Retriever:
        """A retriever over the same library, for this thread, that fuses in another way."""
        return self._over(self._library, self._open_indexes, self._writer, fusion)

    @property
    def has_reranker(self) -> bool:
        return self._reranker is not None

    def _over(
        self,
        library: Library,
        opened: Callable[[], SearchIndexes],
        writer: QueryWriter | None,
        fusion: FusionSettings | None = None,
    ) -> Retriever:
        fusion = fusion or self._fusion
        return Retriever(library, opened, self.embedder, self._reranker, fusion, self._is_word, writer)

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
        """The top_k passages for a question. Arguments: see SearchRequest. Raises ModelError and StoreDamaged."""
        return self.find(SearchRequest(Question.of(question), top_k, papers, also=also, rerank=rerank))

    def find(self, request: SearchRequest) -> SearchResult:
        """The passages for a question: candidates of both indexes, filtered, fused, reranked and selected.

        filters.py, fusion.py, the reranker and MMR do these steps. While the embedder is away, BM25 searches alone.
        Raises ModelError and StoreDamaged.
        """
        clock = Stopwatch()
        self.notice = ""
        written = self._written(request, clock)
        self._check_cancelled()
        with self._library.reading() as stamp:
            self._open_at(stamp)
            clock.lap("open")
            plan = self._plan(request, written, clock)
            candidates = self._on_indexes(partial(self._candidates, plan))
            self._check_cancelled()
            fused = self._fused(candidates, plan)
            passages = self._read(fused, candidates, plan)
            clock.lap("read")
        self._check_cancelled()
        reranked = self._reranked(passages, plan)
        selected = first_distinct(self._selected(reranked, plan), request.top_k)
        return SearchResult(tuple(selected), clock.laps, plan.ranked, self.notice)

    def find_typed(self, words: str, top_k: int, within: Selection, *, rerank: bool = True) -> SearchResult:
        """The passages for words that a person typed, with their spelling corrected; none if no word is known.

        The notice says so, and whether no passage has the words. Raises as `find`.
        """
        spelt = self.respelled(words)
        if not self.is_understood(spelt.question):
            return SearchResult((), {}, {}, NOTHING_KNOWN)
        question = Question(spelt.question, words if spelt.typed else "")
        result = self.find(SearchRequest(question, top_k, within.papers, within.sections, rerank=rerank))
        has_words = any(hit.lexical is not None for hit in result.hits)
        no_words = "" if has_words or not result.hits else NO_WORDS
        return replace(result, notice=" ".join(filter(None, [spelt.note, result.notice, no_words])))

    @contextmanager
    def cancellable(self, check_cancelled: Callable[[], None]) -> Iterator[None]:
        """Inside, a search calls this between its stages: it raises to end the search."""
        before, self._check_cancelled = self._check_cancelled, check_cancelled
        try:
            yield
        finally:
            self._check_cancelled = before

    def search_papers(
        self,
        query: str,
        limit: int,
        offset: int = 0,
        papers: Sequence[Paper] | None = None,
        *,
        sections: SectionFilter | None = None,
    ) -> list[PaperHit]:
        """Papers ranked for a query (papers.py), best first: at most `limit` of them, from `offset` on.

        papers: rank only these. sections: take passages only from these. While the embedder is away, words alone rank.
        Raises ModelError and StoreDamaged.
        """
        with self._library.reading():
            index = self._paper_index()
            hidden = self._hidden(query) if papers is None else frozenset[str]()
            within = frozenset(index.ids) - hidden if papers is None else {paper.id for paper in papers}
            fused = SearchRequest(
                Question(query), PASSAGES, papers, sections, rerank=False, defined=False, written=False
            )
            hits = self.find(fused).hits
            cosines = index.cosines(self._paper_vector(query) if index.has_vectors else None)
            scores = PaperScores(index.bm25(query, MOST_BY_WORDS), cosines, by_passages(index, hits))
            ranked = scores.fused(PaperWeights())
            places = best_places(index, ranked, within)[offset : offset + limit]
            papers_by_id = {paper.id: paper for paper in self._library.papers_by_id(index.ids[p] for p in places)}
        best = {hit.paper.id: hit for hit in reversed(hits)}
        return [paper_hit(query, papers_by_id[index.ids[place]], place, ranked, scores, best) for place in places]

    def _paper_vector(self, query: str) -> Vectors | None:
        """The vector to rank papers with; None while the embedder is away, or in a search by words alone."""
        if self.notice or self._fusion.mode == "lexical":
            return None
        try:
            return self.embedder.embed_query(query)
        except EmbedderAway as error:
            self.notice = _words_alone(error)
            return None

    def papers_without_vector(self) -> int:
        """The number of papers without a vector of their current metadata. The next ingest makes it."""
        with self._library.reading():
            return self._paper_index().outdated

    def _paper_index(self) -> PaperIndex:
        """The index of papers for this state of the library. The caller holds its snapshot."""
        if self._papers is None or self._papers.stamp != self._library.papers_stamp():
            self._papers = PaperIndex.of(self._library)
        return self._papers

    def respelled(self, question: str) -> Respelling:
        """The question with misspelt words replaced by words of the index (spelling.py). Raises StoreDamaged."""
        with self._library.reading() as stamp:
            self._open_at(stamp)
            return self._on_indexes(
                lambda indexes: respelled(
                    question,
                    lambda token: indexes.lexical.passages_with(token) > 0,
                    self._is_word,
                    indexes.lexical.vocabulary,
                    partial(self._texts_with, indexes),
                )
            )

    def is_understood(self, query: str) -> bool:
        """Whether the papers or the embedder know one of a query's words. Raises ModelError and StoreDamaged.

        Otherwise, as for "xqzzyv", the nearest passages are near by accident. An embedder without a vocabulary to look
        up is assumed to know English words, and words with other letters.
        """
        knows: Callable[[str], bool] = getattr(self.embedder, "is_word", self._is_english)
        words = [word for word in plain_words(query) if tokenize(word)]
        if not words:
            return True
        with self._library.reading() as stamp:
            self._open_at(stamp)
            tokens = tokenize(query)
            if self._on_indexes(lambda indexes: any(indexes.lexical.passages_with(token) for token in tokens)):
                return True
        return any(map(knows, words))  # may load a model

    def _is_english(self, word: str) -> bool:
        return not word.isascii() or self._is_word(word)

    def has_language(self, words: Collection[str]) -> bool:
        """Whether the papers may be in the language of these words of a question. Raises StoreDamaged.

        They are if most of the words, which are function words, are frequent; or, of another script, one is there.
        """
        tokens = [token for word in words for token in tokenize(word)]
        with self._library.reading() as stamp:
            self._open_at(stamp)
            least = FREQUENT * self._library.chunk_count()
            counts = self._on_indexes(lambda indexes: [indexes.lexical.passages_with(token) for token in tokens])
        if not any(map(str.isascii, tokens)):
            return any(counts)
        return 2 * sum(count > least for count in counts) > len(tokens)

    def has_new_topic(self, question: Question, paper: Paper) -> bool:
        """Whether a question has a word that this paper does not use, and another paper does more than most.

        A word that no paper uses is one, too. Raises StoreDamaged.
        """
        with self._library.reading() as stamp:
            self._open_at(stamp)
            if (stamp, paper.id) not in self._words:
                text = f"{paper.title}\n{self._library.text(paper.id, 0, paper.length)}"
                self._words = {(stamp, paper.id): frozenset(tokenize(text))}  # of one paper: that of the last answer
            strange = [token for token in question.terms - self._words[stamp, paper.id] if not token.isdigit()]
            return any(self._on_indexes(partial(self._is_topic, token=token)) for token in strange)

    def _is_topic(self, indexes: SearchIndexes, token: str) -> bool:
        """Whether few papers use a word, and one of them does often; or none does."""
        chunks = self._library.chunks(indexes.lexical.passages_of(token, TOPIC_PASSAGES)).values()
        counts = Counter(chunk.paper_id for chunk in chunks)
        return not counts or (max(counts.values()) >= OFTEN and len(counts) <= FEW_PAPERS)

    def long_form(self, acronym: str) -> str:
        """The words that an acronym stands for; "" if the papers do not say. Raises StoreDamaged."""
        with self._library.reading() as stamp:
            self._open_at(stamp)
            return self._on_indexes(partial(self._long_form, acronym=acronym))

    def _long_form(self, indexes: SearchIndexes, acronym: str) -> str:
        """The long form in the passages that use the acronym most; see parts.long_form."""
        ids = [id for token in tokenize(acronym)[:1] for id in indexes.lexical.passages_of(token, SURFACE_PASSAGES)]
        return parts.long_form(acronym, [text for _, _, text in self._library.read_chunks(ids)])

    def _texts_with(self, indexes: SearchIndexes, stems: Collection[str]) -> dict[str, list[str]]:
        """The passages that use each stem most, with their papers' titles; all are read together."""
        ids = {stem: indexes.lexical.passages_of(stem, SURFACE_PASSAGES) for stem in stems}
        distinct = list(dict.fromkeys(chain.from_iterable(ids.values())))
        read = self._library.read_chunks(distinct)
        texts = {id: f"{paper.title}\n{text}" for id, (_, paper, text) in zip(distinct, read, strict=True)}
        return {stem: [texts[id] for id in found] for stem, found in ids.items()}

    def _open_at(self, stamp: Stamp) -> None:
        """Open the indexes of this generation. The caller holds its snapshot."""
        if self._indexes is None or self._indexes.stamp != stamp:
            self._indexes = self._open_indexes()
        elif self._indexes.found_damaged():
            self._indexes = self._indexes.reopen("checked")

    # The stages of a search

    def _written(self, request: SearchRequest, clock: Stopwatch) -> Written:
        """The texts that a model writes to search with, if a model is in use."""
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
        """The results of the indexes for each reading. The orders "dense" and "bm25" are those of the first reading.

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
        try:
            vectors = [] if mode == "lexical" else self._vectors(plan)
        except EmbedderAway as error:
            if mode == "dense":
                raise
            mode, vectors, self.notice = "lexical", [], _words_alone(error)
        plan.clock.lap("embed")
        ids_by_words = {id for scored in first for id, _ in scored}
        self._library.expect_vectors_of(ids_by_words.union(request.also) if vectors else ())
        counts = wanted, max(self._fusion.dual_candidates, request.top_k)
        searches = [DenseSearch(self._library, indexes, vector, counts, within) for vector in vectors]
        # Read all chunks together: the library may be far away.
        plan.filter.allowed(ids_by_words.union(*(search.first for search in searches)))
        lexical = [deep_enough(search, wanted, plan.filter, best) for search, best in zip(words, first, strict=True)]
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
            # Passages of BM25 or another reading need their cosine too, or they would rank too low.
            dense, nearest = search.scores(sorted(found | added)) if search else ([(id, 0.0) for id in added], {})
            highlights = nearest | highlights  # those of the first reading win
            scores.append((dense, by_words))
        plan.ranked.update(ranked)
        return _Candidates(mode, tuple(scores), added, highlights)

    def _fused(self, found: _Candidates, plan: _Plan) -> list[Candidate]:
        """One ranking of the candidates of all readings."""
        rankings = [fuse_in(found.mode, self._fusion, dense, lexical) for dense, lexical in found.scores]
        # A dual search finds more; rerank at most as many as a single search finds.
        most = 2 * plan.depth * len(rankings)
        fused = [c for place, c in enumerate(fuse_readings(rankings)) if place < most or c.chunk_id in found.added]
        plan.ranked["fused"] = tuple(candidate.chunk_id for candidate in fused)
        return fused

    def _read(self, fused: Sequence[Candidate], found: _Candidates, plan: _Plan) -> _Passages:
        """The passages for the reranker. The caller holds a snapshot of the library."""
        reranker, request = self._reranker_of(plan.request), plan.request
        reads = reranker.reads if reranker else 0
        limit = len(fused) if reads is None else max(reads, request.top_k)
        fused = self._distinct(fused)
        kept = [c for place, c in enumerate(fused) if place < limit or (reranker and c.chunk_id in found.added)]
        texts = self._library.read_chunks([candidate.chunk_id for candidate in kept])
        hits = [
            Hit(*chunk_paper_text, each.score, each.dense, each.lexical, found.highlights.get(each.chunk_id, ()))
            for each, chunk_paper_text in zip(kept, texts, strict=True)
        ]
        hits += self._named(hits, plan) or self._defining(hits, plan)
        is_spread = request.rerank and hits and self._fusion.mmr_lambda < 1
        ids = [hit.chunk.id for hit in hits] if is_spread else []
        vectors = dict(zip(ids, self._library.vectors_of(ids), strict=True)) if ids else {}
        return _Passages(hits, self.term_weights(request.question), vectors)

    def _distinct(self, fused: Sequence[Candidate]) -> list[Candidate]:
        """The candidates without those that repeat the text of a better one, such as a page of a second file."""
        texts = self._library.text_hashes(candidate.chunk_id for candidate in fused)
        best = {texts[each.chunk_id]: each for each in reversed(fused)}
        return [each for each in fused if best[texts[each.chunk_id]] is each]

    def _named(self, hits: Sequence[Hit], plan: _Plan) -> list[Hit]:
        """The passages with the algorithms that the question names, from the papers of these hits, if none has them.

        A label has only common words: other passages mention "Algorithm 19" more often than its own does.
        """
        missing = algorithms_named(plan.request.question.named, hits)
        if not missing:
            return []
        own = plan.filter.allowed(self._library.chunk_ids_of(dict.fromkeys(paper for paper, _ in missing)))
        chunks = [plan.filter.chunks[id] for id in sorted(own)]
        ids = [c.id for c in chunks if any(c.paper_id == paper and c.start <= at < c.end for paper, at in missing)]
        lowest = min(hit.score for hit in hits)
        return [Hit(*chunk_paper_text, lowest) for chunk_paper_text in self._library.read_chunks(ids)]

    def _defining(self, hits: Sequence[Hit], plan: _Plan) -> list[Hit]:
        """The passage that defines the asked term, from the paper of most of the best hits, if these define it less.

        Its words are often few: a paper says once what its subject is, and then speaks of it on every page.
        """
        term, best = Term(plan.request.question.term), Counter(hit.paper.id for hit in hits[:AMONG_BEST])
        if not term.name or not best or not plan.request.defined:
            return []
        known = max(term.defined_by(hit.text) for hit in hits)
        if known >= SURELY_DEFINED:
            return []
        own = sorted(plan.filter.allowed(self._library.chunk_ids_of([best.most_common(1)[0][0]])))
        passages = sorted(self._library.read_chunks(own), key=lambda passage: passage[0].start)
        sure = [term.defined_by(text) for _, _, text in passages]
        place = max(range(len(passages)), key=lambda at: (sure[at], -at), default=None)
        lowest = min(hit.score for hit in hits)
        return [] if place is None or sure[place] <= known else [Hit(*passages[place], lowest)]

    def _reranked(self, passages: _Passages, plan: _Plan) -> _Passages:
        """The passages in the order of the reranker, if there is one, after those that define what is asked."""
        reranker, named, hits = self._reranker_of(plan.request), plan.request.question.named, passages.hits
        if not hits or (reranker is None and not plan.request.defined):
            return passages
        if plan.request.defined and named.is_bare:
            hits = by_definition(named, hits)
        elif reranker is not None:
            hits = reranked(reranker, plan.request.question, hits, passages.weights)
        if plan.request.defined and not named.is_bare:
            hits = first_where_defined(named, raised_by_definition(plan.request.question.term, hits))
        if reranker is not None:
            plan.clock.lap("rerank")
            plan.ranked["reranked"] = tuple(hit.chunk.id for hit in hits)
        return replace(passages, hits=hits)

    def _selected(self, passages: _Passages, plan: _Plan) -> list[Hit]:
        """The hits; in the order of MMR if the settings ask for it."""
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
        """The id of the sample paper, if there are other papers and the question does not name it."""
        if names_sample(question):
            return frozenset()
        state = self._library.papers_stamp()
        if self._sample is None or self._sample[0] != state:
            own = len(self._library.chunk_ids_of([SAMPLE_ID]))
            self._sample = state, 0 < own < self._library.chunk_count()
        return frozenset([SAMPLE_ID]) if self._sample[1] else frozenset()

    def _vectors(self, plan: _Plan) -> list[Vectors]:
        """A vector for each reading. The first is the mean for the question and its typed form, if they differ."""
        if typed := plan.request.question.typed:
            first, *others, as_typed = self.embedder.embed_queries([*plan.readings, typed])
            vectors = [(first + as_typed) / max(float(np.linalg.norm(first + as_typed)), 1e-6), *others]
        else:
            vectors = list(self.embedder.embed_queries(plan.readings))
        return [*vectors, *self.embedder.embed_passages([plan.passage])] if plan.passage and vectors else vectors

    def _on_indexes(self, work: Callable[[SearchIndexes], T]) -> T:
        """Do work on the indexes. If an index is damaged, repair it and repeat the work.

        The second repair rebuilds both indexes without reading their files: the damage passed every checksum.
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
        """The IDF of each token of a question, in the last searched generation."""
        tokens = list(dict.fromkeys(question.tokens))
        return self._on_indexes(lambda indexes: {token: indexes.lexical.rarity(token) for token in tokens})

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All reads inside see one state of the library. Do nothing slow inside."""
        if self._writer is not None:  # a model writes within each search
            yield
            return
        with self._library.reading():
            yield

    def repeat(self, do: Callable[[], T]) -> T:
        """See Database.repeat."""
        return self._library.database.repeat(do)

    def text(self, paper: str, start: int, end: int) -> str:
        """The characters [start, end) of a paper's text, as last read. paper: its id."""
        return self._library.text_as_read(paper, start, end)

    def select(self, wanted: PaperFilter) -> Selection:
        """The papers and sections to search. Raises UsageError if nothing fits."""
        return select(self._library, wanted)

    def vectors_of(self, chunks: Sequence[int]) -> Vectors:
        """The vectors of these passages, in order: shape (n, dimension), rows of unit length. Raises StoreDamaged."""
        return self._library.vectors_of(chunks)

    def cited_papers(self, paper: str) -> set[str]:
        """The ids of the papers that a paper cites, as far as known. paper: its id. Raises StoreDamaged."""
        return cited_papers(self._library.database, paper) or set()

    def papers_by_id(self, ids: Sequence[str]) -> list[Paper]:
        """The papers with these ids that still exist. Raises StoreDamaged."""
        return self._library.papers_by_id(ids)

    def passages_by_id(self, ids: Iterable[int]) -> dict[int, tuple[Chunk, Paper, str]]:
        """The passages with these ids that still exist, with papers and texts. Raises StoreDamaged."""
        with self._library.reading():
            known = list(self._library.chunks(ids))
            return dict(zip(known, self._library.read_chunks(known), strict=True))

    @property
    def state(self) -> str:
        """A text that changes whenever the searched content of the library changes. Raises StoreDamaged."""
        stamp, described = self._library.papers_stamp()
        return f"{stamp.epoch} {stamp.generation} {described}"

    def papers(self) -> list[Paper]:
        """All papers, sorted by file name."""
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

    def mentions(self, words: str, among: Collection[str] | None = None) -> frozenset[str]:
        """The ids of the papers with a passage that has all of these words, or the long form of an acronym.

        A title or an abstract counts as a passage. among: read only the papers with these ids; their passages are
        kept for the next words. Raises StoreDamaged.
        """
        wordings = [words, self.long_form(words.upper())] if words.isalpha() else [words]
        wanted = [tokens for wording in wordings if (tokens := frozenset(tokenize(wording)))]
        with self._library.reading() as stamp:
            fronts = self._fronts()
            if among is None:
                self._open_at(stamp)
                ids = {id for tokens in wanted for id in self._on_indexes(partial(_with_all, tokens=tokens))}
                found = {chunk.paper_id for chunk in self._library.chunks(ids).values()}
                texts = {id: [front] for id, front in fronts.items()}
            else:
                found = set()
                texts = {id: [fronts[id], *self._passages_words(stamp, id)] for id in among if id in fronts}
        has_one = {id for id, read in texts.items() if any(tokens <= text for tokens in wanted for text in read)}
        return frozenset(found | has_one)

    def _fronts(self) -> dict[str, frozenset[str]]:
        """Paper id -> the tokens of its title and abstract. The caller holds a snapshot of the library."""
        state = self._library.papers_stamp()
        if self._front_words is None or self._front_words[0] != state:
            texts = ((paper.id, f"{paper.title} {paper.metadata.abstract.value}") for paper in self.papers())
            self._front_words = state, {id: frozenset(tokenize(text)) for id, text in texts}
        return self._front_words[1]

    def _passages_words(self, stamp: Stamp, paper: str) -> list[frozenset[str]]:
        """The tokens of each passage of a paper. The caller holds a snapshot of the library."""
        if (stamp, paper) not in self._passage_words:
            if len(self._passage_words) >= PAPERS_KEPT:
                self._passage_words.clear()
            read = self._library.read_chunks(self._library.chunk_ids_of([paper]))
            self._passage_words[stamp, paper] = [frozenset(tokenize(text)) for _, _, text in read]
        return self._passage_words[stamp, paper]

    def uses(self) -> dict[str, Use]:
        """Paper id -> when it was added and opened, and its notes. Raises StoreDamaged."""
        return uses(self._library.database)

    def unread_files(self) -> list[str]:
        """The names of the files that could not be read. Raises StoreDamaged."""
        return [failure.file.name for failure in self._library.failures()]

    def passages(self, paper: Paper, most: int | None = None) -> list[Hit]:
        """The passages of a paper in reading order, at most `most`, with score 0. Raises StoreDamaged."""
        chunks = self._library.chunks(self._library.chunk_ids_of([paper.id])).values()
        ids = [chunk.id for chunk in sorted(chunks, key=lambda chunk: (chunk.start, chunk.end))]
        return [Hit(*chunk_paper_text, 0.0) for chunk_paper_text in self._library.read_chunks(ids[:most])]


def _words_alone(error: EmbedderAway) -> str:
    return f"{error.happened} So only words were searched (BM25), and not their meaning."


def _with_all(indexes: SearchIndexes, tokens: Iterable[str]) -> set[int]:
    """The ids of the passages with all of these tokens."""
    lexical = indexes.lexical
    rarest, *others = sorted(tokens, key=lexical.passages_with)
    found = set(lexical.passages_of(rarest, lexical.passages_with(rarest)))
    for token in others:
        if not found:
            break
        found &= set(lexical.passages_of(token, lexical.passages_with(token)))
    return found


def _require_known(found: set[int], plan: _Plan) -> None:
    """Raise IndexDamaged if a found chunk is not in the library, or belongs to another paper."""
    chunks, within = plan.filter.chunks, plan.within
    if not found <= chunks.keys():
        raise IndexDamaged("an index names a chunk that is not in the library")
    if within is not None and any(chunks[chunk].paper_id not in within for chunk in found):
        raise IndexDamaged("an index names a chunk of another paper")


def _added(plan: _Plan) -> frozenset[int]:
    """The candidates that the request adds, if they may be returned."""
    chunks, within = plan.filter.chunks, plan.within
    known = plan.filter.allowed(plan.request.also) & chunks.keys()
    return frozenset(id for id in known if within is None or chunks[id].paper_id in within)


def fuse_readings(rankings: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """The candidates of several readings of a question, by the mean of their fused scores, best first, ties by id.

    A follow-up can be read as typed, with its references filled in, and with the questions before it. Each reading
    fails on some follow-ups; passages on which readings agree come first. CombSUM (Fox and Shaw 1994, "Combination of
    multiple searches"), divided by the number of readings: a reading without a candidate gives it 0. A candidate keeps
    the cosine and the BM25 score of its first reading. Raises ValueError without a reading.
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


def reranked(reranker: Reranker, question: Question, hits: Sequence[Hit], weights: TermWeights) -> list[Hit]:
    """The hits with the reranker's scores, best first; ties keep their order."""
    scores = reranker.scores(question, hits, weights)
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(scored, key=lambda hit: -hit.score)


def first_distinct(hits: Sequence[Hit], most: int) -> list[Hit]:
    """The best hits, at most this many, without those whose text stands in a better one word for word.

    An answer would drop them, and have less evidence than there is.
    """
    kept: list[tuple[Hit, str]] = []
    for hit in hits:
        if len(kept) == most:
            break
        line = one_line(hit.text)
        if not any(line in other for _, other in kept):
            kept.append((hit, line))
    return [hit for hit, _ in kept]
