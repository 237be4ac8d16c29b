"""The API over an index that was made with Ollama, while its server is away, and after it has come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

import pytest
from fastapi.testclient import TestClient

from config import Settings
from folio.app import App
from folio.ingest.discovery import find_pdfs, hash_files
from folio.system import workers
from tests.helpers.factories import small_papers
from tests.helpers.fakes import RecordedProgress, read_here
from tests.helpers.ollama_models import NOMIC
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.web_client import ask, client_of, json_of, refusal

LENGTH = "What length has the Aletsch glacier?"
TIMEOUT_S = 4.0
WORDS_ALONE = "So only words were searched (BM25), and not their meaning."


@pytest.fixture
def client(tmp_path: Path, ollama_server: OllamaStandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    papers = tmp_path / "papers"
    small_papers(papers)
    chosen = {
        "PAPERS_DIR": papers,
        "VECTORSTORE_DIR": tmp_path / "store",
        "INGESTED_JSON": tmp_path / "ingested.json",
        "CACHE_DIR": tmp_path / "cache",
        "OLLAMA_HOST": ollama_server.url,
        "OLLAMA_TIMEOUT_S": TIMEOUT_S,
        "LLM": "builtin",
        "RERANKER": "builtin",
    }
    app = App(Settings(_env_file=None, **chosen), print)  # type: ignore[call-arg,arg-type]
    files, _ = hash_files(find_pdfs([papers]), RecordedProgress())
    list(app.ingest(files, RecordedProgress(), retry=frozenset()))
    app.finish_ingest()
    with client_of(app) as client:
        yield client


def go_away(server: OllamaStandIn) -> None:
    server.faults.paths, server.faults.busy = ("/api/tags", "/api/embed"), 10**6


def come_back(server: OllamaStandIn) -> None:
    server.faults.busy = 0


def notices(client: TestClient) -> list[str]:
    """What an answer, a search for passages and one for papers say."""
    passages = json_of(client.post("/search", json={"query": LENGTH}))
    papers = json_of(client.get("/papers", params={"query": "glacier"}))
    answer = ask(client, LENGTH)
    assert [answer["citations"][0]["file"], passages["hits"][0]["file"]] == ["alps/glaciers.pdf"] * 2
    assert papers["papers"][0]["file"] == "alps/glaciers.pdf"
    return [answer["notice"], passages["notice"], papers["notice"]]


def test_a_server_that_is_away_is_no_reason_not_to_answer(client: TestClient, ollama_server: OllamaStandIn) -> None:
    go_away(ollama_server)
    assert [notice.count(WORDS_ALONE) for notice in notices(client)] == [1, 1, 1]
    health = json_of(client.get("/health"))
    assert (health["status"], health["models"]["embedder"]) == ("ready", "nomic-embed-text:latest (Ollama, away)")


def test_when_it_comes_back_the_next_question_uses_it(client: TestClient, ollama_server: OllamaStandIn) -> None:
    assert WORDS_ALONE not in " ".join(notices(client))
    go_away(ollama_server)
    begun = monotonic()
    assert all(WORDS_ALONE in notice for notice in notices(client))
    come_back(ollama_server)
    sleep(monotonic() - begun)  # it is not tried again before as much time has passed as the last attempt took
    before = len(ollama_server.embedded())
    assert WORDS_ALONE not in " ".join(notices(client))
    asked = (LENGTH, "glacier", "glacier", LENGTH)
    assert ollama_server.embedded()[before:] == [f"search_query: {text}" for text in asked]


def test_a_question_waits_for_a_silent_server_twice_at_most(client: TestClient, ollama_server: OllamaStandIn) -> None:
    notices(client)
    ollama_server.faults.paths, ollama_server.faults.first_byte_s = ("/api/tags", "/api/embed"), 600
    begun = monotonic()
    assert WORDS_ALONE in ask(client, "What length has the Aletsch glacier, and what do sea otters eat?")["notice"]
    assert monotonic() - begun < 3 * TIMEOUT_S  # for its vector and its list of models; each part has its own search


def test_another_model_in_its_place_is_refused(client: TestClient, ollama_server: OllamaStandIn) -> None:
    go_away(ollama_server)
    notices(client)
    ollama_server.models[NOMIC.name] = replace(NOMIC, weights=("v2",))
    come_back(ollama_server)
    assert "made with other settings" in refusal(client.post("/search", json={"query": LENGTH}), 409)
