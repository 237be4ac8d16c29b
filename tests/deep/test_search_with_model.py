"""A deep search with a model on a stand-in for Ollama: order, calls at once, budgets, odd replies, cancellation."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from folio.app import App
from folio.deep.checkpoint import CheckpointFile, SearchOptions, checkpoint_path, read
from folio.deep.llm import LlmAssessor
from folio.deep.search import DeepSearch
from folio.deep.types import DeepLimits
from folio.models.ollama import OllamaServer
from folio.search.filters import EVERYTHING
from folio.search.retriever import Retriever, SearchResult
from tests.helpers.factories import shelf
from tests.helpers.ollama_models import Json, Scripted
from tests.helpers.ollama_server import OllamaStandIn

LIMITS = DeepLimits(papers=2, evidence=8, least=3, rounds=3, mmr_lambda=1.0, calls=100, seconds=60)
SMALL = DeepLimits(papers=1, evidence=2, least=3, rounds=3, mmr_lambda=1.0, calls=100, seconds=60)
DIET = "What is the diet of the sea otter?"


class LeftError(Exception):
    """Whoever asked is gone."""


def is_scoring(messages: list[Json]) -> bool:
    return '"relevance"' in str(messages[-1]["content"])


def scored(relevance: object) -> str:
    return json.dumps({"summary": "So it says.", "relevance": relevance})


def reply(messages: list[Json]) -> str:
    """Glaciers are relevant; other words are always known."""
    prompt = str(messages[-1]["content"])
    if is_scoring(messages):
        return scored(8 if "Aletsch glacier" in prompt.partition("</evidence>")[0] else 1)
    if '"parts"' in prompt:
        return json.dumps({"parts": []})
    return json.dumps({"queries": [f"otters, put in {prompt.count('- ')} other ways"]})


class SilentAfter:
    """Answers so many times, and is then silent until whoever asked is gone."""

    def __init__(self, answers: int, server: OllamaStandIn) -> None:
        self._left, self._server = answers, server
        self._lock = threading.Lock()
        self.since = 0.0  # when it became silent

    def __call__(self, messages: list[Json]) -> str:
        with self._lock:
            self._left -= 1
            is_due = self._left == -1
        if is_due:
            self.since = time.monotonic()
            self._server.wait(30)
        return reply(messages)

    def check(self) -> None:
        if self.since:
            raise LeftError


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, Retriever]]:
    app = shelf(tmp_path_factory.mktemp("shelf"), RERANKER="none")
    with closing(app.open_library()) as opened:
        yield app, app.retriever(opened)


def search(
    library: tuple[App, Retriever],
    server: OllamaStandIn,
    limits: DeepLimits = LIMITS,
    check_cancelled: Callable[[], None] = lambda: None,
    parallel: int = 4,
) -> DeepSearch:
    app, retriever = library
    assessor = LlmAssessor(
        OllamaServer(server.url, 5.0), "llama3.1:8b", parallel=parallel, tokens=6768, check_cancelled=check_cancelled
    )
    checkpoints = CheckpointFile(
        checkpoint_path(app.store_folder), SearchOptions("plain", None, ()), writes=True, notice=lambda text: None
    )
    return DeepSearch(retriever, assessor, limits, EVERYTHING, check_cancelled, checkpoints)


@pytest.mark.parametrize("calls", [1, 3, 5])
def test_the_server_never_gets_more_calls_than_the_budget_has(library: tuple[App, Retriever], calls: int) -> None:
    limits = DeepLimits(papers=1, evidence=8, least=9, rounds=3, mmr_lambda=1.0, calls=calls, seconds=60)
    with OllamaStandIn(reply=["none"] * 50) as server:  # malformed ones count, too
        server.ignores_format = True
        one = search(library, server, limits)
        hits = one.find(DIET).hits
        assert len(server.bodies("/api/chat")) == calls
    assert one.end == "spent"
    assert hits  # unscored


def test_a_search_cancelled_anywhere_can_be_resumed(library: tuple[App, Retriever]) -> None:
    with OllamaStandIn(reply=reply) as server:
        whole = search(library, server, SMALL)
        hits = whole.find(DIET).hits
        calls = len(server.bodies("/api/chat"))
    assert calls > 4
    assert whole.trace is not None
    for answered in range(calls):
        with OllamaStandIn() as server:
            server.reply = SilentAfter(answered, server)
            stopped = search(library, server, SMALL, server.reply.check)
            with pytest.raises(LeftError):
                stopped.find(DIET)
            assert time.monotonic() - server.reply.since < 20
            assert stopped.is_kept
        with OllamaStandIn(reply=reply) as server:
            resumed = search(library, server, SMALL)
            progress = resumed.progress_of(read(checkpoint_path(library[0].store_folder)))
            assert progress is not None
            assert resumed.find("", resumed=progress).hits == hits
            resumed.finish()
        assert resumed.trace is not None
        assert resumed.trace.events == whole.trace.events


def test_a_server_that_restarts_loses_nothing(library: tuple[App, Retriever]) -> None:
    with OllamaStandIn(reply=reply) as server:
        hits = search(library, server, SMALL).find(DIET).hits
        server.faults.dropped = 2
        assert search(library, server, SMALL).find(DIET).hits == hits


def test_a_lying_model_only_chooses_passages(library: tuple[App, Retriever]) -> None:
    with OllamaStandIn(reply=lambda messages: Scripted(scored(10))) as server:
        hits = search(library, server, SMALL).find("Which bank lent the money for the opera?").hits
    assert {hit.score for hit in hits} == {1.0}
    app, retriever = library
    chat = app.chat(retriever._library, top_k=4)
    found = SearchResult(hits, {}, {})
    assert chat.ask("Which bank lent the money for the opera?", find=lambda question: found).answer.refused
