"""The nodes as a LangGraph graph: the one module that imports LangGraph, which takes half a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from folio.agent import nodes
from folio.agent.state import DeepState, Tools
from folio.background import IMPORTING

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

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


def _with(node: Callable[[DeepState, Tools], nodes.Update], tools: Tools) -> Any:
    return lambda state: node(state, tools)


def _decision(state: DeepState) -> str:
    return state.decision


def _searching(otherwise: str) -> Callable[[DeepState], str]:
    return lambda state: "search_papers" if state.queries else otherwise


def _reading(state: DeepState) -> str:
    return "gather_evidence" if state.found else "offset"


STEPS: tuple[Callable[[DeepState, Tools], nodes.Update], ...] = (
    nodes.plan,
    nodes.search_papers,
    nodes.gather_evidence,
    nodes.is_enough,
    nodes.reformulate,
    nodes.expand,
    nodes.offset,
    nodes.answer,
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
