"""Deep answers over the web API: the order of streamed events, what is kept, and what cancels a search."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio import workers
from folio.app import App
from folio.deep_schema import TraceJson, from_log
from folio.store.query_log import QueryLog
from folio.web import server
from folio.web.api import MAX_CONCURRENT_DEEP_ANSWERS, make_web
from folio.web.request_guard import AccessRules
from tests.helpers.factories import small_papers
from tests.helpers.fakes import hashing_app, read_here
from tests.helpers.live_server import LIMIT_S, Live, until
from tests.helpers.ollama_models import Json, answer_from_evidence
from tests.helpers.ollama_server import OllamaStandIn

LENGTH = "What length has the Aletsch glacier?"
BOTH = "How long is the Aletsch glacier, and what is the diet of the sea otter?"
SLEEP = "How do sea otters sleep?"
MODEL = "llama3.1:8b"
SEARCHING = {"papers", "evidence", "search_again", "search_ended"}
HOSTILE = "<img src=x onerror=alert(1)> [otters p.1] \u202eold"


def model(messages: list[Json]) -> str:
    """Scores what is about the glacier, and writes markup where a summary is asked for."""
    prompt = str(messages[-1]["content"])
    if '"relevance"' in prompt:
        return json.dumps({"summary": HOSTILE, "relevance": 9 if "Aletsch glacier has" in prompt else 0})
    if '"queries"' in prompt:
        return json.dumps({"queries": [f"glacier {HOSTILE}"]})
    return answer_from_evidence(messages)


@pytest.fixture(scope="module")
def ollama() -> Iterator[OllamaStandIn]:
    with OllamaStandIn(dimension=64) as server:
        server.reply = model
        yield server


def shelf(folder: Path, server: OllamaStandIn) -> App:
    """Two papers; answers without a model, or with that of the stand-in if a request names it."""
    chosen: dict[str, Any] = {"RERANKER": "builtin", "VERIFIER": "none", "CHUNK_SIZE": 300, "CHUNK_OVERLAP": 50}
    app = hashing_app(folder, LLM="builtin", OLLAMA_HOST=server.url, **chosen)
    small_papers(app.settings.PAPERS_DIR)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(workers, "run_guarded", read_here)
        app.run()
    return app


@pytest.fixture(scope="module")
def papers_app(ollama: OllamaStandIn, tmp_path_factory: pytest.TempPathFactory) -> App:
    return shelf(tmp_path_factory.mktemp("deep"), ollama)


@pytest.fixture(scope="module")
def client(papers_app: App) -> Iterator[TestClient]:
    web = make_web(papers_app, AccessRules(host="127.0.0.1", port=8420))
    with TestClient(web, base_url="http://127.0.0.1:8420") as made:
        yield made


def said(client: TestClient, message: str, **more: Any) -> dict[str, Any]:
    response = client.post("/chat", json={"message": message, "mode": "deep", **more})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def streamed(client: TestClient, message: str, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    response = client.post("/chat/stream", json={"message": message, "mode": "deep", **more})
    assert response.status_code == 200, response.text
    found = []
    for block in response.text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def test_a_stream_tells_the_steps_of_the_search_and_then_the_answer(client: TestClient) -> None:
    told = streamed(client, BOTH)
    kinds = [kind for kind, _ in told]
    steps = kinds.index("retrieved")
    assert set(kinds[:steps]) <= SEARCHING
    assert (kinds[0], kinds[steps - 1]) == ("papers", "search_ended")
    sentences = len(kinds) - steps - 3
    assert kinds[steps:] == ["retrieved", *["sentence"] * sentences, "citations", "done"]
    done = told[-1][1]
    assert [data for _, data in told[:steps]] == done["trace"]["events"]
    assert done["trace"].items() >= {"assessor": "built in", "calls": 0}.items()
    assert "23 kilometres" in done["answer"]
    assert "urchins, clams and crabs" in done["answer"]
    read = [data for kind, data in told if kind == "evidence"]
    assert {data["title"] for data in read} == {"On Sea Otters", "The Aletsch Glacier"}
    assert all(data["text"] and 0 <= data["relevance"] <= 10 for data in read)


def test_a_quick_answer_and_a_greeting_have_no_trace(client: TestClient) -> None:
    assert said(client, LENGTH, mode="quick")["trace"] is None
    assert client.post("/chat", json={"message": LENGTH}).json()["trace"] is None
    assert said(client, "Hello!")["trace"] is None


def test_a_mode_is_one_of_two(client: TestClient) -> None:
    for path in ("/chat", "/chat/stream"):
        refused = client.post(path, json={"message": LENGTH, "mode": "slow"})
        assert refused.status_code == 422
        assert refused.json()["error"].startswith("mode: ")


def test_a_stored_conversation_has_the_trace_and_its_export_a_line(client: TestClient) -> None:
    first = said(client, LENGTH)
    second = said(client, SLEEP, mode="quick", conversation=first["conversation"])
    path = f"/conversations/{first['conversation']}"
    assert client.get(path).json()["turns"] == [first, second]
    exported = client.get(f"{path}/markdown").text
    read = sum(event["event"] == "evidence" for event in first["trace"]["events"])
    assert exported.count("Deep search") == 1
    assert f"\n\n*Deep search: 1 round, {read} passages of 2 papers read, " in exported
    assert "Deep search" not in client.get(f"{path}/zotero-note").text


def test_the_log_has_the_trace(client: TestClient, papers_app: App) -> None:
    trace = said(client, LENGTH)["trace"]
    with closing(papers_app.open_library()) as library:
        entry = QueryLog(library.database).last()
    assert entry is not None
    assert from_log(entry.trace) == TraceJson.model_validate(trace)


def test_a_follow_up_is_searched_for_as_it_was_understood(client: TestClient) -> None:
    first = said(client, LENGTH)
    then = said(client, "And what thickness has its ice at the Konkordiaplatz?", conversation=first["conversation"])
    assert then["turn"] == 2
    assert then["trace"]["events"][0]["query"] == then["standalone_question"]
    assert "Aletsch" in then["standalone_question"]
    assert "thickness of 800 metres" in then["answer"]


def test_filters_and_the_number_of_passages_hold_for_the_search(client: TestClient) -> None:
    listed = client.get("/papers").json()["papers"]
    (otters,) = (paper["id"] for paper in listed if paper["file"] == "otters.pdf")
    reply = said(client, BOTH, papers=[otters], top_k=1)
    events = reply["trace"]["events"]
    assert {paper["file"] for event in events if event["event"] == "papers" for paper in event["papers"]} == {
        "otters.pdf"
    }
    assert len(reply["hits"]) == 1


def test_the_model_of_the_request_scores_and_what_it_writes_is_text_alone(client: TestClient) -> None:
    trace = said(client, LENGTH, model=MODEL)["trace"]
    assert trace["assessor"] == f"{MODEL} (Ollama)"
    assert trace["calls"] > 0
    scored = [event for event in trace["events"] if event["event"] == "evidence"]
    assert {event["relevance"] for event in scored} == {0, 9}
    assert {event["summary"] for event in scored} == {"[otters p.1] old"}
    again = [event["queries"] for event in trace["events"] if event["event"] == "search_again"]
    assert again[0] == ["glacier <img src=x onerror=alert(1)> [otters p.1] old"]
    assert said(client, LENGTH, model="builtin")["trace"]["assessor"] == "built in"
    refused = client.post("/chat", json={"message": LENGTH, "mode": "deep", "model": "nobody-has-this"})
    assert refused.status_code == 503


# Cancelling


@pytest.fixture
def silent(ollama_server: OllamaStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A server whose model never answers, and that gives running answers no time to finish when it stops."""
    monkeypatch.setattr(server, "FINISH_S", 0.2)
    ollama_server.faults.first_byte_s, ollama_server.faults.paths = 10 * LIMIT_S, ("/api/chat",)
    with Live(shelf(tmp_path, ollama_server)) as live:
        yield live


def sent(live: Live, path: str, **more: Any) -> socket.socket:
    """A connection on which a deep question to the model was sent."""
    content = json.dumps({"message": LENGTH, "mode": "deep", "model": MODEL, **more}).encode()
    connection = socket.create_connection(("127.0.0.1", live.port), timeout=LIMIT_S)
    headers = f"Host: 127.0.0.1:{live.port}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    connection.sendall(f"POST {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode() + content)
    return connection


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_a_client_that_leaves_ends_the_search_and_frees_its_slot_and_conversation(
    silent: Live, ollama_server: OllamaStandIn, path: str
) -> None:
    with silent.client() as client:
        conversation = client.post("/chat", json={"message": LENGTH, "model": "builtin"}).json()["conversation"]
        places = [{"conversation": conversation}, *[{}] * (MAX_CONCURRENT_DEEP_ANSWERS - 1)]
        leaving = [sent(silent, path, **place) for place in places]
        until(lambda: len(ollama_server.bodies("/api/chat")) >= MAX_CONCURRENT_DEEP_ANSWERS)
        # All deep slots are taken: quick questions do not wait for them, and the conversation is busy.
        assert client.post("/chat", json={"message": SLEEP, "model": "builtin"}).status_code == 200
        body = {"message": SLEEP, "model": "builtin", "mode": "deep", "conversation": conversation}
        until(lambda: client.post("/chat", json={**body, "mode": "quick"}).status_code == 409)
        for each in leaving:
            each.close()
        until(lambda: client.post("/chat", json=body).status_code == 200)
        asked = len(ollama_server.bodies("/api/chat"))
        assert asked <= 4 * MAX_CONCURRENT_DEEP_ANSWERS  # PARALLEL each, and none after they left
        turns = client.get(f"/conversations/{conversation}").json()["turns"]
        assert [turn["message"] for turn in turns] == [LENGTH, SLEEP]


def test_a_server_that_stops_ends_the_search(silent: Live, ollama_server: OllamaStandIn) -> None:
    connection = sent(silent, "/chat/stream")
    until(lambda: ollama_server.bodies("/api/chat"))
    silent.stop()
    while connection.recv(65536):  # until the server has closed it
        pass
    connection.close()
