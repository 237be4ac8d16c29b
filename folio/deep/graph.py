"""The LangGraph graph that joins the steps of a deep search. Importing LangGraph takes half a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from folio.deep.state import DeepState, Tools, Update
from folio.deep.steps import answer, expand, gather_evidence, is_enough, offset, plan, reformulate, search_papers
from folio.system.threads import IMPORTING

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

STEPS_OF_ROUND = 6  # at most: a search, a gathering, a decision, and three ways to search again


def compiled(tools: Tools | None, first: str = "plan") -> CompiledStateGraph[DeepState, None, DeepState, DeepState]:
    """The graph from the step `first` on. tools: None for a drawing."""
    with IMPORTING:
        from langgraph.graph import END, START, StateGraph

    graph, given = StateGraph(DeepState), cast(Tools, tools)
    for node in STEPS:
        graph.add_node(node.__name__, _bound(node, given))
    graph.add_edge(START, first)
    for before, after in _ALWAYS.items():
        graph.add_edge(before, after)
    for before, (decide, ways) in _DECIDED.items():
        graph.add_conditional_edges(before, decide, list(ways))
    graph.add_edge(LAST, END)
    return graph.compile()


def states(state: DeepState, tools: Tools, finished: str = "") -> Iterator[tuple[str, DeepState]]:
    """Run the steps; yields each step's name and the state after it. The last state has the evidence.

    finished: the last step that is already in the state; "" for none.
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
    """The graph as Mermaid text, one line per edge; conditional edges are dotted."""
    edges = compiled(None).get_graph().edges
    names = {"__start__": "question([question])", "__end__": "evidence([evidence])"}
    lines = (
        f"    {names.get(e.source, e.source)} {'-.->' if e.conditional else '-->'} {names.get(e.target, e.target)}"
        for e in edges
    )
    return "\n".join(["```mermaid", "graph TD", *sorted(lines), "```"])


def _bound(node: Callable[[DeepState, Tools], Update], tools: Tools) -> Any:
    return lambda state: node(state, tools)


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
# Step -> the function that chooses the next step, and its choices
_DECIDED: dict[str, tuple[Callable[[DeepState], str], tuple[str, ...]]] = {
    "is_enough": (lambda state: state.decision, ("reformulate", "expand", "answer")),
    "reformulate": (lambda state: "search_papers" if state.queries else "expand", ("search_papers", "expand")),
    "expand": (lambda state: "gather_evidence" if state.found else "offset", ("gather_evidence", "offset")),
    "offset": (lambda state: "search_papers" if state.queries else "answer", ("search_papers", "answer")),
}
