"""The steps of a deep search. graph.py says which follows which.

Each step is a function (state, tools) -> the fields of the state that change. Too little evidence leads to
`reformulate`, then `expand`, then `offset`; each leads to the next if it finds nothing new.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from folio.deep.state import Context, DeepState, Query, Tools, Update
from folio.deep.types import (
    MOST_RELEVANCE,
    RELEVANT,
    Assessment,
    EvidenceScored,
    PapersFound,
    SearchAgain,
    SearchEnded,
)
from folio.papers.model import Hit, Paper
from folio.papers.versions import is_superseded
from folio.question.parts import shortened, spelled_out
from folio.question.question import Question
from folio.search.fusion import mmr
from folio.search.names import SAMPLE_ID
from folio.search.retriever import SearchRequest
from folio.text import plain_words

MOST_QUERIES, LONGEST_QUERY = 4, 300  # queries of a later round, characters of a query
_UNSCORED = RELEVANT - 0.5  # relevance of a passage that could not be scored: between the relevant and the others


def plan(state: DeepState, tools: Tools) -> Update:
    """Split the question into parts, by a model or by rules; search each part and the whole question."""
    tools.check_cancelled()
    named = tools.assessor.parts(state.question, tools.budget)
    if named is None:
        named = [part.text for part in Question(state.question).parts]
    parts = (state.question, *named)
    places = (*range(1, len(parts)), 0)  # the whole question last: a passage that both find counts for the part
    return _next_round(state, [Query(parts[place], place) for place in places]) | {"parts": parts}


def search_papers(state: DeepState, tools: Tools) -> Update:
    """Find papers for each query: the best as papers, and those of the best passages."""
    results: list[tuple[Query, tuple[Paper, ...]]] = []
    for query in state.queries:
        tools.check_cancelled()
        papers = _papers(query, state, tools)
        results.append((query, papers))
        tools.on_event(PapersFound(query.text, papers))
    return {"found": tuple(results)}


def _papers(query: Query, state: DeepState, tools: Tools) -> tuple[Paper, ...]:
    among, sections = tools.selection.papers, tools.selection.sections
    if query.unread:
        among = _unread(query.part, state, tools)
    best = tools.retriever.search_papers(query.text, tools.limits.papers, papers=among, sections=sections)
    most = 4 * tools.limits.evidence
    request = SearchRequest(Question(query.text), most, among, sections, rerank=False)
    passages = tools.retriever.find(request).hits
    papers = [*(hit.paper for hit in best), *(hit.paper for hit in passages)]
    return tuple(_current({paper.id: paper for paper in papers}.values(), tools))


def _current(papers: Iterable[Paper], tools: Tools) -> list[Paper]:
    """The papers without older versions, unless papers are selected."""
    return [paper for paper in papers if tools.selection.papers is not None or not is_superseded(paper)]


def _unread(part: int, state: DeepState, tools: Tools) -> list[Paper]:
    """The papers without an assessed passage for a part of the question."""
    read = {paper for place, paper in state.read if place == part}
    among = tools.retriever.papers() if tools.selection.papers is None else tools.selection.papers
    return _current((paper for paper in among if paper.id not in read and paper.id != SAMPLE_ID), tools)


def gather_evidence(state: DeepState, tools: Tools) -> Update:
    """Assess new, diverse passages of these papers.

    A round assesses `limits.evidence` passages: the best for each query in turn, then the second best.
    """
    assessed, contexts, read = set(state.assessed), list(state.contexts), set(state.read)
    lists: list[list[Hit]] = []
    for query, papers in state.found:
        tools.check_cancelled()
        hits = [hit for hit in _passages(query, papers, tools) if hit.chunk.id not in assessed]
        lists.append(_diverse(hits, tools))
    for (query, _), hits in zip(state.found, _in_turn(lists, tools.limits.evidence), strict=True):
        tools.check_cancelled()  # without a model, the scores of all these passages come at once
        for context in assess(state.parts[query.part], query.part, hits, tools):
            assessed.add(context.hit.chunk.id)
            read.add((query.part, context.hit.paper.id))
            if context.assessment.relevance != 0:
                contexts.append(context)
    return {"assessed": frozenset(assessed), "contexts": tuple(contexts), "read": frozenset(read)}


def assess(question: str, part: int, hits: Sequence[Hit], tools: Tools) -> Iterator[Context]:
    """Assess each passage for a part of the question, with an event for each."""
    with _closed(tools.assessor.assess(question, hits, tools.budget)) as assessments:
        for rank, (hit, assessment) in enumerate(zip(hits, assessments, strict=True)):
            tools.on_event(EvidenceScored(question, hit, assessment))
            yield Context(hit, part, assessment, rank)


def _in_turn(lists: Sequence[Sequence[Hit]], count: int) -> list[list[Hit]]:
    """At most `count` hits, taken from each list in turn; a passage goes to the list that ranks it highest."""
    kept: list[list[Hit]] = [[] for _ in lists]
    taken: set[int] = set()
    for row in zip_longest(*lists):
        for own, hit in zip(kept, row, strict=True):
            if hit is not None and hit.chunk.id not in taken and len(taken) < count:
                taken.add(hit.chunk.id)
                own.append(hit)
    return kept


@contextmanager
def _closed(assessments: Iterator[Assessment]) -> Iterator[Iterator[Assessment]]:
    """Ends the model's running calls, even if the results are not awaited."""
    try:
        yield assessments
    finally:
        if isinstance(assessments, Generator):
            assessments.close()


def _passages(query: Query, papers: Sequence[Paper], tools: Tools) -> Sequence[Hit]:
    if not papers:
        return ()
    request = SearchRequest(Question(query.text), tools.limits.evidence, papers, tools.selection.sections)
    return tools.retriever.find(request).hits


def _diverse(hits: Sequence[Hit], tools: Tools) -> list[Hit]:
    if len(hits) < 2:
        return list(hits)
    vectors = tools.retriever.vectors_of([hit.chunk.id for hit in hits])
    largest = max(1e-9, *(hit.score for hit in hits))
    relevance = [hit.score / largest for hit in hits]
    return [hits[place] for place in mmr(relevance, vectors, tools.limits.mmr_lambda, len(hits))]


def is_enough(state: DeepState, tools: Tools) -> Update:
    """Decide whether the evidence is enough; if not, how to search again."""
    missing = _missing(state, tools)
    if not missing:
        each = ", and some for each part of the question" if len(state.parts) > 1 else ""
        return _end(tools, f"{state.relevant} relevant passages{each}")
    if state.round >= tools.limits.rounds:
        why = f"{missing}; all {tools.limits.rounds} rounds are used"
        return _end(tools, why) | {"is_cut": tools.budget.fell_short}
    if tools.is_spent:
        return _end(tools, f"{missing}; the budget is spent") | {"is_cut": True}
    return {"decision": "reformulate" if state.round % 2 else "expand", "why": missing}


def _end(tools: Tools, why: str) -> Update:
    tools.on_event(SearchEnded(why))
    return {"decision": "answer", "why": why}


def missing_parts(state: DeepState) -> tuple[str, ...]:
    """The parts of the question for which nothing relevant was found; the question if nothing was at all."""
    if len(state.parts) > 1:
        return tuple(state.parts[place] for place in state.uncovered)
    return () if state.relevant else (state.question,)


def _missing(state: DeepState, tools: Tools) -> str:
    """What the evidence lacks, in words; "" for nothing."""
    if len(state.parts) > 1 and state.uncovered:
        return "nothing relevant for " + ", ".join(f"“{state.parts[part]}”" for part in state.uncovered)
    if state.relevant < tools.limits.least:
        return f"{state.relevant} of at least {tools.limits.least} relevant passages"
    return ""


def reformulate(state: DeepState, tools: Tools) -> Update:
    """Rephrase the queries for what is missing, by a model or by rules."""
    queries: list[Query] = []
    for place in state.uncovered or state.to_cover:
        part = state.parts[place]
        texts = [context.hit.text for context in state.contexts if context.part == place]
        # By rules: with acronyms spelled out as the papers do, and with acronyms that these texts define
        by_rules = (spelled_out(part, tools.retriever.long_form), shortened(part, texts))
        words = tools.assessor.rephrase(part, state.asked, tools.budget) or filter(None, by_rules)
        queries += [Query(text[:LONGEST_QUERY], place) for text in words]
    return _again(state, tools, "reformulate", _new(queries, state.asked))


def _new(queries: Iterable[Query], earlier: Sequence[str]) -> list[Query]:
    """The new queries, at most MOST_QUERIES."""
    known = {tuple(plain_words(text)) for text in earlier}
    new: list[Query] = []
    for query in queries:
        words = tuple(plain_words(query.text))
        if words and words not in known:
            known.add(words)
            new.append(query)
    return new[:MOST_QUERIES]


def expand(state: DeepState, tools: Tools) -> Update:
    """Read the papers of the library that papers with relevant passages cite."""
    allowed = None if tools.selection.papers is None else {paper.id for paper in tools.selection.papers}
    best = dict.fromkeys(context.hit.paper.id for context in state.contexts if context.is_relevant)
    cited = dict.fromkeys(id for paper in best for id in sorted(tools.retriever.cited_papers(paper)))
    read = {paper for _, paper in state.read}
    new = [id for id in cited if id not in read and (allowed is None or id in allowed)][: tools.limits.papers]
    if not new:
        return {"found": ()}
    papers = tuple(_current(tools.retriever.papers_by_id(new), tools))
    tools.on_event(SearchAgain("expand", state.why, tuple(paper.title or paper.file for paper in papers)))
    each = tuple((Query(state.parts[place], place), papers) for place in state.uncovered or state.to_cover)
    return {"found": each, "round": state.round + 1}


def offset(state: DeepState, tools: Tools) -> Update:
    """Search for what is missing in the papers that were not read yet."""
    places = [place for place in state.uncovered or state.to_cover if _unread(place, state, tools)]
    if not places:
        tools.on_event(SearchEnded(f"{state.why}; there is nothing more to search"))
        return {"queries": (), "is_cut": tools.budget.fell_short}
    return _again(state, tools, "offset", [Query(state.parts[place], place, unread=True) for place in places])


def _again(state: DeepState, tools: Tools, how: Any, queries: Sequence[Query]) -> Update:
    if not queries:
        return {"queries": ()}
    tools.on_event(SearchAgain(how, state.why, tuple(query.text for query in queries)))
    return _next_round(state, queries)


def _next_round(state: DeepState, queries: Sequence[Query]) -> Update:
    return {
        "queries": tuple(queries),
        "asked": tuple(dict.fromkeys((*state.asked, *(query.text for query in queries)))),
        "round": state.round + 1,
    }


def answer(state: DeepState, tools: Tools) -> Update:
    """Choose the evidence: the best passage of each part in turn, then the second best, `limits.evidence` in all."""
    parts = dict.fromkeys((*state.to_cover, *range(len(state.parts))))
    ranked = sorted(state.contexts, key=lambda context: (-_value(context), context.rank))
    lists = [[context for context in ranked if context.part == part] for part in parts]
    in_turn = [context for row in zip_longest(*lists) for context in row if context is not None]
    best = sorted(in_turn, key=lambda context: not context.is_relevant)[: tools.limits.evidence]
    return {"chosen": tuple(map(chosen, best))}


def chosen(context: Context) -> Hit:
    """A passage as evidence, with its relevance as the score."""
    return replace(context.hit, score=_value(context) / MOST_RELEVANCE, summary=context.assessment.summary)


def _value(context: Context) -> float:
    relevance = context.assessment.relevance
    return _UNSCORED if relevance is None else relevance
