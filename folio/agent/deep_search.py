"""A deep search: a question to the passages that an answer is made from, as Chat.ask takes them, and how they came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from folio.agent import graph, nodes
from folio.agent.state import DeepState, Tools
from folio.deep_types import Assessor, Budget, DeepEvent, DeepLimits, DeepTrace, OnEvent, SearchEnded
from folio.search.paper_filter import EVERYTHING, Selection
from folio.search.retriever import Retriever, SearchResult, Stopwatch


class DeepSearch:
    """Searches one library in rounds. One question at a time; `trace` is of the last one."""

    def __init__(
        self,
        retriever: Retriever,
        assessor: Assessor,
        limits: DeepLimits,
        selection: Selection = EVERYTHING,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        self._retriever = retriever
        self._assessor = assessor
        self._limits = limits
        self._selection = selection
        self._check_cancelled = check_cancelled
        self.trace: DeepTrace | None = None

    def find(self, question: str, on_event: OnEvent = lambda event: None) -> SearchResult:
        """The evidence for a question, best first. on_event is called as it happens.

        Ctrl-C ends the search, and gives what was found before it; with nothing found it is raised.
        Raises ModelError and StoreDamaged.
        """
        events: list[DeepEvent] = []

        def record(event: DeepEvent) -> None:
            events.append(event)
            on_event(event)

        budget = Budget(self._limits.calls, self._limits.seconds)
        tools = Tools(
            self._retriever, self._assessor, self._limits, budget, self._selection, record, self._check_cancelled
        )
        clock, state = Stopwatch(), DeepState(question)
        self.trace = None
        try:
            for state in graph.states(question, tools):  # noqa: B007
                pass
        except KeyboardInterrupt:
            if not state.contexts:
                raise
            record(SearchEnded("stopped"))
            state = replace(state, **nodes.answer(state, tools))
        clock.lap("search")
        self.trace = DeepTrace(tuple(events), self._assessor.name, state.round, budget.calls, round(budget.seconds, 2))
        return SearchResult(state.chosen, clock.laps, {})
