"""The nodes as a LangGraph graph: the one module that imports LangGraph, which takes half a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from folio.agent import nodes
from folio.agent.state import DeepState, Tools

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

# Steps of one round, at most: a search, a gathering, a decision, and three ways to look again
STEPS_OF_ROUND = 6


def compiled(tools: Tools | None) -> CompiledStateGraph[DeepState, None, DeepState, DeepState]:
    """The graph over these tools; without tools, to be drawn."""
    from langgraph.graph import END, START, StateGraph

    graph, given = StateGraph(DeepState), cast(Tools, tools)
    for node in (
        nodes.plan,
        nodes.search_papers,
        nodes.gather_evidence,
        nodes.is_enough,
        nodes.reformulate,
        nodes.expand,
        nodes.offset,
        nodes.answer,
    ):
        step: Callable[..., Any] = partial(node, tools=given)
        graph.add_node(node.__name__, step)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "search_papers")
    graph.add_edge("search_papers", "gather_evidence")
    graph.add_edge("gather_evidence", "is_enough")
    graph.add_conditional_edges("is_enough", _decision, ["reformulate", "expand", "answer"])
    graph.add_conditional_edges("reformulate", _searching("expand"), ["search_papers", "expand"])
    graph.add_conditional_edges("expand", _reading, ["gather_evidence", "offset"])
    graph.add_conditional_edges("offset", _searching("answer"), ["search_papers", "answer"])
    graph.add_edge("answer", END)
    return graph.compile()


def states(question: str, tools: Tools) -> Iterator[DeepState]:
    """The state after each step; the last one has the evidence."""
    limit: RunnableConfig = {"recursion_limit": STEPS_OF_ROUND * tools.limits.rounds + 4}
    for values in compiled(tools).stream(DeepState(question), limit, stream_mode="values"):
        yield DeepState(**values)


def drawn() -> str:
    """The graph as Mermaid text, a line for each edge; dotted where the state decides."""
    edges = compiled(None).get_graph().edges
    lines = (f"    {_name(e.source)} {'-.->' if e.conditional else '-->'} {_name(e.target)}" for e in edges)
    return "\n".join(["```mermaid", "graph TD", *sorted(lines), "```"])


def _name(node: str) -> str:
    return {"__start__": "question([question])", "__end__": "evidence([evidence])"}.get(node, node)


def _decision(state: DeepState) -> str:
    return state.decision


def _searching(otherwise: str) -> Callable[[DeepState], str]:
    return lambda state: "search_papers" if state.queries else otherwise


def _reading(state: DeepState) -> str:
    return "gather_evidence" if state.found else "offset"
