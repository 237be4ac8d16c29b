"""The steps of a deep search: each a plain function of the state and the tools, to the fields of the state that change.

Too little found leads to `reformulate`, then `expand`, then `offset`; each leads to the next if it has nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, cast

from folio.answer.extractive import LEAST_CONFIDENCE, confidence
from folio.answer_types import Evidence
from folio.deep.types import (
    MOST_RELEVANCE,
    RELEVANT,
    Assessment,
    Assessor,
    Budget,
    DeepLimits,
    EvidenceScored,
    LibraryHit,
    LibraryPaper,
    OnEvent,
    PapersFound,
    SearchAgain,
    SearchEnded,
)
from folio.papers.model import Hit, Paper
from folio.papers.versions import is_superseded
from folio.protocols import TermWeights, TokenEmbedder
from folio.question.followup import filled_in
from folio.question.kind import ASKING
from folio.question.parts import question_parts, shortened, spelled_out
from folio.question.question import Question
from folio.search.builtin_reranker import matches
from folio.search.filters import Selection
from folio.search.mmr import mmr
from folio.search.names import SAMPLE_ID
from folio.search.retriever import Retriever, SearchRequest
from folio.system.threads import IMPORTING
from folio.text import plain_words

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph


# The state of a deep search: what its nodes read, and replace parts of.

Decision = Literal["reformulate", "expand", "offset", "answer"]


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for one part of the question, as its place in DeepState.parts."""

    text: str
    part: int
    unread: bool = False  # only papers of which nothing was read for this part


@dataclass(frozen=True, slots=True)
class Context:
    """A passage that was assessed for a part of the question."""

    hit: LibraryHit
    part: int
    assessment: Assessment
    rank: int = 0  # among those that were assessed with it

    @property
    def is_relevant(self) -> bool:
        return (self.assessment.relevance or 0) >= RELEVANT


@dataclass(frozen=True)
class DeepState:
    """Everything that a deep search knows. A node gets it and returns the fields that change."""

    question: str
    parts: tuple[str, ...] = ()  # the first is the whole question; then its sub-questions, if it has any
    queries: tuple[Query, ...] = ()  # of this round
    asked: tuple[str, ...] = ()  # all queries so far
    round: int = 0
    found: tuple[tuple[Query, tuple[LibraryPaper, ...]], ...] = ()  # the papers of each query of this round
    assessed: frozenset[int] = frozenset()  # ids of all passages assessed so far
    read: frozenset[tuple[int, str]] = frozenset()  # a part, and the id of a paper of which a passage was assessed
    contexts: tuple[Context, ...] = ()  # what was assessed above 0, in the order in which it was found
    decision: Decision = "answer"
    why: str = ""  # the decision
    is_cut: bool = False  # whether too little was found, and for want of a budget something was left undone
    chosen: tuple[LibraryHit, ...] = ()  # what the answer is made from, best first

    @property
    def to_cover(self) -> tuple[int, ...]:
        """The places of the parts that need evidence of their own: the sub-questions, if there are any."""
        return tuple(range(1, len(self.parts))) or (0,)

    @property
    def uncovered(self) -> tuple[int, ...]:
        """Those of them without a relevant passage."""
        covered = {context.part for context in self.contexts if context.is_relevant}
        return tuple(part for part in self.to_cover if part not in covered)

    @property
    def relevant(self) -> int:
        """How many passages are relevant."""
        return sum(context.is_relevant for context in self.contexts)


@dataclass(frozen=True)
class Tools:
    """What the nodes work with, for one question."""

    retriever: Retriever
    assessor: Assessor
    limits: DeepLimits
    budget: Budget
    selection: Selection
    on_event: OnEvent
    check_cancelled: Callable[[], None]

    @property
    def is_spent(self) -> bool:
        """Whether the budget allows no more searching."""
        return self.budget.out_of_time or (self.assessor.uses_model and self.budget.spent)


Update = dict[str, Any]  # fields of DeepState

# Queries of a later round, and characters of one
MOST_QUERIES, LONGEST_QUERY = 4, 300
# Of a passage that could not be scored: behind the relevant ones, before the others
_UNSCORED = RELEVANT - 0.5


def plan(state: DeepState, tools: Tools) -> Update:
    """Find the question's parts, by a model or by rules; each is searched, and so is the whole question."""
    tools.check_cancelled()
    found = tools.assessor.parts(state.question, tools.budget)
    parts = (state.question, *(_by_rules(state.question) if found is None else found))
    places = (*range(1, len(parts)), 0)  # a passage that both find counts for the part
    return _asking(state, [Query(parts[place], place) for place in places]) | {"parts": parts}


def _by_rules(question: str) -> list[str]:
    """The parts, what later ones say of an earlier one filled in."""
    parts = question_parts(question)
    return [filled_in(part, parts[:place]) for place, part in enumerate(parts)]


def search_papers(state: DeepState, tools: Tools) -> Update:
    """The papers for each query: the best as papers, and those of the best passages."""
    found: list[tuple[Query, tuple[Paper, ...]]] = []
    for query in state.queries:
        tools.check_cancelled()
        papers = _papers(query, state, tools)
        found.append((query, papers))
        tools.on_event(PapersFound(query.text, papers))
    return {"found": tuple(found)}


def _papers(query: Query, state: DeepState, tools: Tools) -> tuple[Paper, ...]:
    among, sections = tools.selection.papers, tools.selection.sections
    if query.unread:
        among = _unread(query.part, state, tools)
    best = tools.retriever.search_papers(query.text, tools.limits.papers, papers=among, sections=sections)
    most = 4 * tools.limits.evidence
    request = SearchRequest(Question(query.text), most, among, sections, rerank=False)
    passages = tools.retriever.find(request).hits
    papers = [*(hit.paper for hit in best), *(hit.paper for hit in passages)]
    return tuple(_searched({paper.id: paper for paper in papers}.values(), tools))


def _searched(papers: Iterable[Paper], tools: Tools) -> list[Paper]:
    """Those of these papers that are searched: an older version only if it was chosen."""
    return [paper for paper in papers if tools.selection.papers is not None or not is_superseded(paper)]


def _unread(part: int, state: DeepState, tools: Tools) -> list[Paper]:
    """The papers of which nothing was read for a part of the question."""
    read = {paper for place, paper in state.read if place == part}
    among = tools.retriever.papers() if tools.selection.papers is None else tools.selection.papers
    return _searched((paper for paper in among if paper.id not in read and paper.id != SAMPLE_ID), tools)


def gather_evidence(state: DeepState, tools: Tools) -> Update:
    """Passages of these papers that were not read yet, as different as they can be, each assessed.

    A round assesses `limits.evidence` of them: the best for each query in turn, then the second best.
    """
    assessed, contexts, read = set(state.assessed), list(state.contexts), set(state.read)
    lists: list[list[Hit]] = []
    for query, papers in state.found:
        tools.check_cancelled()
        hits = [hit for hit in _passages(query, papers, tools) if hit.chunk.id not in assessed]
        lists.append(_different(hits, tools))
    for (query, _), hits in zip(state.found, _in_turn(lists, tools.limits.evidence), strict=True):
        tools.check_cancelled()  # without a model, the scores of all these passages come at once
        for context in assess(state.parts[query.part], query.part, hits, tools):
            assessed.add(context.hit.chunk.id)
            read.add((query.part, context.hit.paper.id))
            if context.assessment.relevance != 0:
                contexts.append(context)
    return {"assessed": frozenset(assessed), "contexts": tuple(contexts), "read": frozenset(read)}


def assess(question: str, part: int, hits: Sequence[Hit], tools: Tools) -> Iterator[Context]:
    """Each of these passages with its assessment for a part of the question, which is told as it comes."""
    with _closed(tools.assessor.assess(question, hits, tools.budget)) as assessments:
        for rank, (hit, assessment) in enumerate(zip(hits, assessments, strict=True)):
            tools.on_event(EvidenceScored(question, hit, assessment))
            yield Context(hit, part, assessment, rank)


def _in_turn(lists: Sequence[Sequence[Hit]], count: int) -> list[list[Hit]]:
    """What each list may keep of `count` places, taken in turn; a passage goes to the list that ranks it highest."""
    kept: list[list[Hit]] = [[] for _ in lists]
    taken: set[int] = set()
    for row in zip_longest(*lists):
        for mine, hit in zip(kept, row, strict=True):
            if hit is not None and hit.chunk.id not in taken and len(taken) < count:
                taken.add(hit.chunk.id)
                mine.append(hit)
    return kept


@contextmanager
def _closed(assessments: Iterator[Assessment]) -> Iterator[Iterator[Assessment]]:
    """Ends the calls of a model that are under way, also if nobody waits for them any more."""
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


def _different(hits: Sequence[Hit], tools: Tools) -> list[Hit]:
    if len(hits) < 2:
        return list(hits)
    vectors = tools.retriever.vectors_of([hit.chunk.id for hit in hits])
    largest = max(1e-9, *(hit.score for hit in hits))
    relevance = [hit.score / largest for hit in hits]
    return [hits[place] for place in mmr(relevance, vectors, tools.limits.mmr_lambda, len(hits))]


def is_enough(state: DeepState, tools: Tools) -> Update:
    """Decide whether the evidence is enough; if not, how to look again."""
    missing = _missing(state, tools)
    if not missing:
        each = ", and some for each part of the question" if len(state.parts) > 1 else ""
        return _answering(tools, f"{state.relevant} relevant passages{each}")
    if state.round >= tools.limits.rounds:
        why = f"{missing}; all {tools.limits.rounds} rounds are used"
        return _answering(tools, why) | {"is_cut": tools.budget.fell_short}
    if tools.is_spent:
        return _answering(tools, f"{missing}; the budget is spent") | {"is_cut": True}
    return {"decision": "reformulate" if state.round % 2 else "expand", "why": missing}


def _answering(tools: Tools, why: str) -> Update:
    tools.on_event(SearchEnded(why))
    return {"decision": "answer", "why": why}


def _missing(state: DeepState, tools: Tools) -> str:
    """What the evidence lacks, in words; "" if nothing."""
    if len(state.parts) > 1 and state.uncovered:
        return "nothing relevant for " + ", ".join(f"“{state.parts[part]}”" for part in state.uncovered)
    if state.relevant < tools.limits.least:
        return f"{state.relevant} of at least {tools.limits.least} relevant passages"
    return ""


def reformulate(state: DeepState, tools: Tools) -> Update:
    """Ask for what is missing in other words: a model's, or by rules."""
    queries: list[Query] = []
    for place in state.uncovered or state.to_cover:
        part = state.parts[place]
        texts = [context.hit.text for context in state.contexts if context.part == place]
        words = tools.assessor.rephrase(part, state.asked, tools.budget) or _in_other_words(part, texts, tools)
        queries += [Query(text[:LONGEST_QUERY], place) for text in words]
    return _again(state, tools, "reformulate", _new(queries, state.asked))


def _in_other_words(part: str, texts: Sequence[str], tools: Tools) -> list[str]:
    """By rules: with acronyms spelled out as the papers do, and with those that these texts define."""
    return [text for text in (spelled_out(part, tools.retriever.long_form), shortened(part, texts)) if text]


def _new(queries: Iterable[Query], asked: Sequence[str]) -> list[Query]:
    """The queries that were not asked yet, at most MOST_QUERIES."""
    known = {tuple(plain_words(text)) for text in asked}
    new: list[Query] = []
    for query in queries:
        words = tuple(plain_words(query.text))
        if words and words not in known:
            known.add(words)
            new.append(query)
    return new[:MOST_QUERIES]


def expand(state: DeepState, tools: Tools) -> Update:
    """Read the papers of the library that those with relevant passages cite, as far as references are known."""
    allowed = None if tools.selection.papers is None else {paper.id for paper in tools.selection.papers}
    best = dict.fromkeys(context.hit.paper.id for context in state.contexts if context.is_relevant)
    cited = dict.fromkeys(id for paper in best for id in sorted(tools.retriever.cited_papers(paper)))
    read = {paper for _, paper in state.read}
    new = [id for id in cited if id not in read and (allowed is None or id in allowed)][: tools.limits.papers]
    if not new:
        return {"found": ()}
    papers = tuple(_searched(tools.retriever.papers_by_id(new), tools))
    tools.on_event(SearchAgain("expand", state.why, tuple(paper.title or paper.file for paper in papers)))
    found = tuple((Query(state.parts[place], place), papers) for place in state.uncovered or state.to_cover)
    return {"found": found, "round": state.round + 1}


def offset(state: DeepState, tools: Tools) -> Update:
    """Ask for what is missing again, of the papers that were not read yet."""
    places = [place for place in state.uncovered or state.to_cover if _unread(place, state, tools)]
    if not places:
        tools.on_event(SearchEnded(f"{state.why}; there is nothing more to search"))
        return {"queries": (), "is_cut": tools.budget.fell_short}
    return _again(state, tools, "offset", [Query(state.parts[place], place, unread=True) for place in places])


def _again(state: DeepState, tools: Tools, how: Any, queries: Sequence[Query]) -> Update:
    if not queries:
        return {"queries": ()}
    tools.on_event(SearchAgain(how, state.why, tuple(query.text for query in queries)))
    return _asking(state, queries)


def _asking(state: DeepState, queries: Sequence[Query]) -> Update:
    return {
        "queries": tuple(queries),
        "asked": tuple(dict.fromkeys((*state.asked, *(query.text for query in queries)))),
        "round": state.round + 1,
    }


def answer(state: DeepState, tools: Tools) -> Update:
    """Choose the evidence: the best passage of each part in turn, then the second best, `limits.evidence` in all."""
    parts = dict.fromkeys((*state.to_cover, *range(len(state.parts))))
    lists = [sorted((c for c in state.contexts if c.part == part), key=_order) for part in parts]
    in_turn = [context for row in zip_longest(*lists) for context in row if context is not None]
    best = sorted(in_turn, key=lambda context: not context.is_relevant)[: tools.limits.evidence]
    return {"chosen": tuple(map(chosen, best))}


def chosen(context: Context) -> Hit:
    """Its passage as evidence, with its relevance as the score."""
    return replace(context.hit, score=_value(context) / MOST_RELEVANCE, summary=context.assessment.summary)


def _order(context: Context) -> tuple[float, int]:
    return -_value(context), context.rank


def _value(context: Context) -> float:
    relevance = context.assessment.relevance
    return _UNSCORED if relevance is None else relevance


# The nodes as a LangGraph graph: the one module that imports LangGraph, which takes half a second.

# Steps of one round, at most: a search, a gathering, a decision, and three ways to look again
STEPS_OF_ROUND = 6


def compiled(tools: Tools | None, first: str = "plan") -> CompiledStateGraph[DeepState, None, DeepState, DeepState]:
    """The graph over these tools, from its step `first` on; without tools, to be drawn."""
    with IMPORTING:
        from langgraph.graph import END, START, StateGraph

    graph, given = StateGraph(DeepState), cast(Tools, tools)
    for node in STEPS:
        graph.add_node(node.__name__, _with(node, given))
    graph.add_edge(START, first)
    for before, after in _ALWAYS.items():
        graph.add_edge(before, after)
    for before, (decide, ways) in _DECIDED.items():
        graph.add_conditional_edges(before, decide, list(ways))
    graph.add_edge(LAST, END)
    return graph.compile()


def states(state: DeepState, tools: Tools, finished: str = "") -> Iterator[tuple[str, DeepState]]:
    """Each step's name, and the state after it; the last one has the evidence.

    finished: the step after which the state was as it is; "" for none. Nothing comes after the last one.
    """
    if finished == LAST:
        return
    limit: RunnableConfig = {"recursion_limit": STEPS_OF_ROUND * tools.limits.rounds + 4}
    for updates in compiled(tools, _next(finished, state)).stream(state, limit, stream_mode="updates"):
        for step, update in updates.items():
            state = replace(state, **update)
            yield step, state


def _next(finished: str, state: DeepState) -> str:
    """The step after one that finished."""
    if not finished:
        return "plan"
    return _ALWAYS[finished] if finished in _ALWAYS else _DECIDED[finished][0](state)


def drawn() -> str:
    """The graph as Mermaid text, a line for each edge; dotted where the state decides."""
    edges = compiled(None).get_graph().edges
    lines = (f"    {_name(e.source)} {'-.->' if e.conditional else '-->'} {_name(e.target)}" for e in edges)
    return "\n".join(["```mermaid", "graph TD", *sorted(lines), "```"])


def _name(node: str) -> str:
    return {"__start__": "question([question])", "__end__": "evidence([evidence])"}.get(node, node)


def _with(node: Callable[[DeepState, Tools], Update], tools: Tools) -> Any:
    return lambda state: node(state, tools)


def _decision(state: DeepState) -> str:
    return state.decision


def _searching(otherwise: str) -> Callable[[DeepState], str]:
    return lambda state: "search_papers" if state.queries else otherwise


def _reading(state: DeepState) -> str:
    return "gather_evidence" if state.found else "offset"


STEPS: tuple[Callable[[DeepState, Tools], Update], ...] = (
    plan,
    search_papers,
    gather_evidence,
    is_enough,
    reformulate,
    expand,
    offset,
    answer,
)
LAST = "answer"
_ALWAYS = {"plan": "search_papers", "search_papers": "gather_evidence", "gather_evidence": "is_enough"}
# What decides where a step leads, and where it may lead
_DECIDED: dict[str, tuple[Callable[[DeepState], str], tuple[str, ...]]] = {
    "is_enough": (_decision, ("reformulate", "expand", "answer")),
    "reformulate": (_searching("expand"), ("search_papers", "expand")),
    "expand": (_reading, ("gather_evidence", "offset")),
    "offset": (_searching("answer"), ("search_papers", "answer")),
}


# Passages scored without a model: how much of the question each covers, as the built-in answerer measures it.


class BuiltinAssessor:
    """See deep_types.Assessor. It takes no model calls; the search has rules for parts and for other words."""

    name = "built in"
    uses_model = False

    def __init__(self, embedder: TokenEmbedder, term_weights: Callable[[Question], TermWeights]) -> None:
        self._embedder = embedder
        self._term_weights = term_weights

    def parts(self, question: str, budget: Budget) -> list[str] | None:
        """See deep_types.Assessor."""
        return None

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        """See deep_types.Assessor."""
        asked = Question(question)
        weights = {term: weight for term, weight in self._term_weights(asked).items() if term not in ASKING}
        evidence = [Evidence(1, hit.paper, hit.chunk.start, hit.chunk.end, hit.text, (hit,)) for hit in hits]
        if budget.out_of_time:
            yield from (Assessment(None) for _ in hits)
            return
        found = matches(self._embedder, question, [(hit.paper.title, hit.text) for hit in hits], weights)
        for piece, match in zip(evidence, found, strict=True):
            # A sentence with the number may be split, or a table's row: the passage is what is scored here.
            sure = confidence(asked, [piece], [match], weights, needs_number=False)
            yield Assessment(relevance_of(sure))

    def rephrase(self, question: str, asked: Sequence[str], budget: Budget) -> list[str]:
        """See deep_types.Assessor."""
        return []


def relevance_of(sure: float) -> int:
    """A confidence (answer/extractive.py) as a relevance: RELEVANT where the answerer stops refusing, 10 at 1."""
    if sure >= LEAST_CONFIDENCE:
        above = (sure - LEAST_CONFIDENCE) / (1 - LEAST_CONFIDENCE)
        return min(MOST_RELEVANCE, RELEVANT + int((MOST_RELEVANCE - RELEVANT) * above))
    return min(RELEVANT - 1, int(RELEVANT * sure / LEAST_CONFIDENCE))
