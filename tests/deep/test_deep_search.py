"""Rounds of a deep search over a small library, with a scripted assessor: the order of steps and their limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from folio.answer.confidence import LEAST_CONFIDENCE
from folio.app import App
from folio.deep.builtin_assessor import BuiltinAssessor, relevance_of
from folio.deep.search import DeepSearch
from folio.deep.types import (
    Assessment,
    Budget,
    DeepEvent,
    DeepLimits,
    DeepTrace,
    EvidenceScored,
    PapersFound,
    SearchAgain,
    SearchEnded,
)
from folio.papers.model import Hit
from folio.papers.work import Work
from folio.search.filters import EVERYTHING, PaperFilter
from folio.search.retriever import Retriever
from folio.store import works
from tests.helpers.factories import shelf

LIMITS = DeepLimits(papers=1, evidence=2, least=1, rounds=3, mmr_lambda=0.9, calls=100, seconds=60)
DIET = "What is the diet of the sea otter?"
BOTH = "How long is the Aletsch glacier, and what is the diet of the sea otter?"


class ScriptedAssessor:
    """Scores each passage by a function of its text, and always knows other words if it is to."""

    name = "scripted"

    def __init__(
        self,
        score: Callable[[str], int | None],
        *,
        asks: bool = False,
        uses_model: bool = False,
        plan: list[str] | None = None,
    ) -> None:
        self._score, self._asks, self.uses_model, self._plan = score, asks, uses_model, plan
        self.read: list[str] = []

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        for hit in hits:
            self.read.append(hit.text)
            yield Assessment(self._score(hit.text) if not self.uses_model or budget.take_call() else None)

    def parts(self, question: str, budget: Budget) -> list[str] | None:
        return self._plan

    def rephrase(self, question: str, earlier: Sequence[str], budget: Budget) -> list[str]:
        return [f"{question} in other words {len(earlier)}"] if self._asks else []


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    return shelf(tmp_path_factory.mktemp("shelf"))


@pytest.fixture
def retriever(app: App) -> Iterator[Retriever]:
    with closing(app.open_library()) as library:
        yield app.retriever(library)


def run(
    retriever: Retriever,
    assessor: ScriptedAssessor | BuiltinAssessor,
    question: str = DIET,
    limits: DeepLimits = LIMITS,
) -> tuple[DeepTrace, tuple[Hit, ...], list[DeepEvent]]:
    search = DeepSearch(retriever, assessor, limits)
    told: list[DeepEvent] = []
    hits = search.find(question, told.append).hits
    assert search.trace is not None
    assert list(search.trace.events) == told
    return search.trace, hits, told


def kinds(events: Sequence[DeepEvent]) -> list[str]:
    names = {PapersFound: "papers", EvidenceScored: "evidence", SearchEnded: "end"}
    return [event.how if isinstance(event, SearchAgain) else names[type(event)] for event in events]


def test_enough_at_once_takes_one_round(retriever: Retriever) -> None:
    trace, hits, events = run(retriever, ScriptedAssessor(lambda text: 8))
    assert kinds(events) == ["papers", "evidence", "evidence", "end"]
    assert [(hit.score, hit.paper.file) for hit in hits] == [(0.8, "otters.pdf")] * 2
    assert (trace.rounds, trace.calls) == (1, 0)


def test_irrelevant_passages_are_dropped_and_not_read_again(retriever: Retriever) -> None:
    assessor = ScriptedAssessor(lambda text: 0)
    _, hits, events = run(retriever, assessor)
    assert (hits, len(assessor.read), kinds(events)[-1]) == ((), len(set(assessor.read)), "end")


def test_other_words_come_first_and_then_the_next_papers(retriever: Retriever) -> None:
    _, hits, events = run(retriever, ScriptedAssessor(lambda text: 9 if "glacier" in text else 1, asks=True))
    order = [kind for kind in kinds(events) if kind != "evidence"]
    assert order == ["papers", "reformulate", "papers", "offset", "papers", "end"]
    found = [event.papers[0].file for event in events if isinstance(event, PapersFound)]
    assert found == ["otters.pdf", "otters.pdf", "glaciers.pdf"]
    assert hits[0].paper.file == "glaciers.pdf"


def test_cited_papers_are_read_before_the_next_ones(tmp_path: Path) -> None:
    app = shelf(tmp_path)
    with closing(app.open_library()) as library, library.database.transaction():
        otters = Work("openalex", title="On Sea Otters", openalex="W1", references=("W2",))
        ice = Work("openalex", title="Ice of the Alps", openalex="W2")
        for paper, id in zip(("otters.pdf", "glaciers.pdf"), works.put(library.database, [otters, ice]), strict=True):
            works.link_paper(library.database, paper, id, "openalex", 1.0)
    assessor = ScriptedAssessor(lambda text: 6 if "urchins" in text else 2, asks=True)
    with closing(app.open_library()) as library:
        _, hits, events = run(app.retriever(library), assessor, limits=replace(LIMITS, least=5))
    again = [event for event in events if isinstance(event, SearchAgain)]
    assert [event.how for event in again] == ["reformulate", "expand"]
    assert again[1].queries == ("Ice of the Alps",)
    read = [event.hit.paper.file for event in events if isinstance(event, EvidenceScored)]
    assert read[-1] == "glaciers.pdf"
    assert hits[0].paper.file == "otters.pdf"


@pytest.mark.parametrize(
    ("limit", "rounds", "why"),
    [*(({"rounds": rounds}, rounds, "") for rounds in (1, 2, 3, 7)), ({"seconds": 1e-9, "rounds": 50}, 1, "budget")],
)
def test_a_search_without_success_ends_at_its_limits(
    retriever: Retriever, limit: dict[str, Any], rounds: int, why: str
) -> None:
    assessor = ScriptedAssessor(lambda text: 1, asks=True)
    trace, _, events = run(retriever, assessor, limits=replace(LIMITS, **limit))
    assert trace.rounds <= rounds
    assert isinstance(events[-1], SearchEnded)
    assert why in events[-1].why


def test_the_budget_of_calls_is_kept(retriever: Retriever) -> None:
    assessor = ScriptedAssessor(lambda text: 1, asks=True, uses_model=True)
    trace, hits, events = run(retriever, assessor, limits=replace(LIMITS, calls=1))
    assert trace.calls == 1
    assert isinstance(events[-1], SearchEnded)
    assert "the budget is spent" in events[-1].why
    assert hits  # what could not be scored is kept


def test_each_part_gets_evidence_of_its_own(retriever: Retriever) -> None:
    limits = replace(LIMITS, evidence=4, papers=1, least=2)
    _, hits, events = run(retriever, ScriptedAssessor(lambda text: 8), BOTH, limits)
    assert {hit.paper.file for hit in hits[:2]} == {"otters.pdf", "glaciers.pdf"}
    assert queries(events) == ["How long is the Aletsch glacier", "what is the diet of the sea otter", BOTH]
    # Papers of the best passages are read whatever the best papers are, and all places are used, in turn
    found = next(event for event in events if isinstance(event, PapersFound) and event.query == BOTH)
    assert {paper.file for paper in found.papers} == {"otters.pdf", "glaciers.pdf"}
    parts = [event.part for event in events if isinstance(event, EvidenceScored)]
    assert len(hits) == len(parts) == len({hit.chunk.id for hit in hits}) == 4
    assert min(parts.count(part) for part in queries(events)[:2]) >= 1


def queries(events: Sequence[DeepEvent]) -> list[str]:
    return [event.query for event in events if isinstance(event, PapersFound)]


def test_a_question_is_searched_in_its_parts(retriever: Retriever) -> None:
    planned = ScriptedAssessor(lambda text: 8, plan=["otter food", "glacier length"])
    assert queries(run(retriever, planned, BOTH)[2]) == ["otter food", "glacier length", BOTH]
    no_parts = ScriptedAssessor(lambda text: 8, plan=[])
    assert queries(run(retriever, no_parts, BOTH)[2]) == [BOTH]
    assert len(queries(run(retriever, ScriptedAssessor(lambda text: 8), BOTH)[2])) == 3
    asked = "Where is the Aletsch glacier, and how many kilometres of the Alps does it cover?"
    _, _, events = run(retriever, ScriptedAssessor(lambda text: 8), asked)
    assert queries(events)[1] == "how many kilometres of the Alps does the Aletsch glacier cover"
    _, _, events = run(retriever, ScriptedAssessor(lambda text: 8), BOTH, replace(LIMITS, evidence=2))
    assert [event.part for event in events if isinstance(event, EvidenceScored)] == queries(events)[:2]


def test_the_better_passage_comes_first(retriever: Retriever) -> None:
    def score(text: str) -> int | None:
        return 9 if "urchins" in text else None if "fur" in text else 3

    _, hits, _ = run(retriever, ScriptedAssessor(score), limits=replace(LIMITS, papers=2, evidence=8))
    assert "urchins" in hits[0].text
    values = [hit.score for hit in hits]
    assert values == sorted(values, reverse=True)


def test_only_chosen_papers_are_searched(retriever: Retriever) -> None:
    chosen = retriever.select(PaperFilter.parse(["glaciers"]))
    search = DeepSearch(retriever, ScriptedAssessor(lambda text: 1, asks=True), LIMITS, chosen)
    assert {hit.paper.file for hit in search.find(DIET).hits} == {"glaciers.pdf"}


def test_an_interrupt_gives_the_hits_so_far(retriever: Retriever) -> None:
    def interrupt(event: DeepEvent) -> None:
        if isinstance(event, SearchAgain):
            raise KeyboardInterrupt

    search = DeepSearch(retriever, ScriptedAssessor(lambda text: 1, asks=True), LIMITS)
    assert search.find(DIET, interrupt).hits
    assert search.trace is not None
    assert search.trace.events[-1] == SearchEnded("stopped")
    nothing = DeepSearch(retriever, ScriptedAssessor(lambda text: 0, asks=True), LIMITS)
    with pytest.raises(KeyboardInterrupt):
        nothing.find(DIET, interrupt)


@pytest.mark.parametrize("at", range(4))
def test_a_cancellation_ends_every_searching_step(retriever: Retriever, at: int) -> None:
    class LeftError(Exception):
        pass

    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls > at:
            raise LeftError

    search = DeepSearch(retriever, ScriptedAssessor(lambda text: 1, asks=True), LIMITS, EVERYTHING, check)
    with pytest.raises(LeftError):
        search.find(DIET)
    assert calls == at + 1


@pytest.mark.parametrize(
    ("sure", "relevance"), [(0.0, 0), (LEAST_CONFIDENCE - 1e-6, 4), (LEAST_CONFIDENCE, 5), (1, 10)]
)
def test_relevance_is_five_where_the_answerer_stops_refusing(sure: float, relevance: int) -> None:
    assert relevance_of(sure) == relevance
