"""Deep answers over the web API: the order of streamed events, what is kept, and what cancels a search."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.app import App
from folio.papers.work import WorkNotice
from folio.schema.answers import TraceJson, from_log
from folio.store.query_log import QueryLog
from folio.web import server
from folio.web.answering import MAX_CONCURRENT_DEEP_ANSWERS
from folio.web.questions import as_known_now, papers_of_replies
from tests.helpers.factories import hit_on, small_papers, write_pdf
from tests.helpers.live_server import LIMIT_S, Live, until
from tests.helpers.ollama_models import Json, answer_from_evidence
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.web_client import ask, ask_streamed, client_of, papers_by_file, send_request, small_app

LENGTH = "What length has the Aletsch glacier?"
BOTH = "How long is the Aletsch glacier, and what is the diet of the sea otter?"
SLEEP = "How do sea otters sleep?"
MODEL = "llama3.1:8b"
DEEP = {"message": LENGTH, "mode": "deep", "model": MODEL}
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


@pytest.fixture(scope="module")
def papers_app(ollama: OllamaStandIn, tmp_path_factory: pytest.TempPathFactory) -> App:
    """Two papers; answers without a model, or with that of the stand-in if a request names it."""
    return small_app(tmp_path_factory.mktemp("deep"), VERIFIER="none", OLLAMA_HOST=ollama.url)


@pytest.fixture(scope="module")
def client(papers_app: App) -> Iterator[TestClient]:
    with client_of(papers_app) as opened:
        yield opened


def deep(client: TestClient, message: str, **more: Any) -> dict[str, Any]:
    return ask(client, message, **{"mode": "deep", **more})


def test_a_stream_has_the_search_steps_before_the_answer(client: TestClient) -> None:
    sent = ask_streamed(client, BOTH, mode="deep")
    kinds = [kind for kind, _ in sent]
    steps = kinds.index("retrieved")
    assert set(kinds[:steps]) <= SEARCHING
    assert (kinds[0], kinds[steps - 1]) == ("papers", "search_ended")
    sentences = len(kinds) - steps - 3
    assert kinds[steps:] == ["retrieved", *["sentence"] * sentences, "citations", "done"]
    done = sent[-1][1]
    assert [data for _, data in sent[:steps]] == done["trace"]["events"]
    assert done["trace"].items() >= {"assessor": "built in", "calls": 0}.items()
    assert "23 kilometres" in done["answer"]
    assert "urchins, clams and crabs" in done["answer"]
    read = [data for kind, data in sent if kind == "evidence"]
    assert {data["title"] for data in read} == {"On Sea Otters", "The Aletsch Glacier"}
    assert all(data["text"] and 0 <= data["relevance"] <= 10 for data in read)


def test_a_quick_answer_and_a_greeting_have_no_trace(client: TestClient) -> None:
    assert deep(client, LENGTH, mode="quick")["trace"] is None
    assert client.post("/chat", json={"message": LENGTH}).json()["trace"] is None
    assert deep(client, "Hello!")["trace"] is None


def test_a_stored_conversation_has_the_search_trace(client: TestClient) -> None:
    first = deep(client, LENGTH)
    second = deep(client, SLEEP, mode="quick", conversation=first["conversation"])
    path = f"/conversations/{first['conversation']}"
    assert client.get(path).json()["turns"] == [first, second]
    exported = client.get(f"{path}/markdown").text
    read = sum(event["event"] == "evidence" for event in first["trace"]["events"])
    assert exported.count("Deep search") == 1
    assert f"\n\n*Deep search: 1 round, {read} passages of 2 papers read, " in exported
    assert "Deep search" not in client.get(f"{path}/zotero-note").text


def test_the_log_has_the_trace(client: TestClient, papers_app: App) -> None:
    trace = deep(client, LENGTH)["trace"]
    with closing(papers_app.open_library()) as library:
        entry = QueryLog(library.database).last()
    assert entry is not None
    assert from_log(entry.trace) == TraceJson.model_validate(trace)


def test_a_follow_up_is_searched_for_as_it_was_understood(client: TestClient) -> None:
    first = deep(client, LENGTH)
    then = deep(client, "And what thickness has its ice at the Konkordiaplatz?", conversation=first["conversation"])
    assert then["turn"] == 2
    assert then["trace"]["events"][0]["query"] == then["standalone_question"]
    assert "Aletsch" in then["standalone_question"]
    assert "thickness of 800 metres" in then["answer"]


def test_filters_and_the_number_of_passages_hold_for_the_search(client: TestClient) -> None:
    reply = deep(client, BOTH, papers=[papers_by_file(client)["otters.pdf"]["id"]], top_k=1)
    events = reply["trace"]["events"]
    assert {paper["file"] for event in events if event["event"] == "papers" for paper in event["papers"]} == {
        "otters.pdf"
    }
    assert len(reply["hits"]) == 1


def test_the_requested_model_scores_and_writes_plain_text(client: TestClient) -> None:
    trace = deep(client, LENGTH, model=MODEL)["trace"]
    assert trace["assessor"] == f"{MODEL} (Ollama)"
    assert trace["calls"] > 0
    scored = [event for event in trace["events"] if event["event"] == "evidence"]
    assert {event["relevance"] for event in scored} == {0, 9}
    assert {event["summary"] for event in scored} == {"[otters p.1] old"}
    again = [event["queries"] for event in trace["events"] if event["event"] == "search_again"]
    assert again[0] == ["glacier <img src=x onerror=alert(1)> [otters p.1] old"]
    assert deep(client, LENGTH, model="builtin")["trace"]["assessor"] == "built in"
    refused = client.post("/chat", json={"message": LENGTH, "mode": "deep", "model": "nobody-has-this"})
    assert refused.status_code == 503


# Cancelling


@pytest.fixture
def silent(ollama_server: OllamaStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A server whose model never answers, and that gives running answers no time to finish when it stops."""
    monkeypatch.setattr(server, "FINISH_S", 0.2)
    ollama_server.faults.first_byte_s, ollama_server.faults.paths = 10 * LIMIT_S, ("/api/chat",)
    with Live(small_app(tmp_path, VERIFIER="none", OLLAMA_HOST=ollama_server.url)) as live:
        yield live


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_a_client_that_leaves_ends_its_search(silent: Live, ollama_server: OllamaStandIn, path: str) -> None:
    with silent.client() as client:
        conversation = client.post("/chat", json={"message": LENGTH, "model": "builtin"}).json()["conversation"]
        places = [{"conversation": conversation}, *[{}] * (MAX_CONCURRENT_DEEP_ANSWERS - 1)]
        leaving = [send_request(silent.port, path, {**DEEP, **place}) for place in places]
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
    connection = send_request(silent.port, "/chat/stream", DEEP)
    until(lambda: ollama_server.bodies("/api/chat"))
    silent.stop()
    while connection.recv(65536):  # until the server has closed it
        pass
    connection.close()


# What an answer rests on

IS_LONG, IS_SHORT = (
    f"The Aletsch glacier has a length of {length} kilometres and covers 82 square kilometres of the Bernese Alps."
    for length in (23, 20)
)


@pytest.fixture(scope="module")
def differing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Three papers, of which two give another length of one glacier."""
    folder = tmp_path_factory.mktemp("profile")
    small_papers(folder / "papers")
    write_pdf(folder / "papers" / "later.pdf", [IS_SHORT], "A Later Survey of Alpine Ice")
    with client_of(small_app(folder, CHUNK_OVERLAP=20)) as opened:
        yield opened


def test_a_deep_answer_says_what_its_evidence_is_worth(differing: TestClient) -> None:
    reply = deep(differing, LENGTH)
    profile = reply["evidence_profile"]
    assert profile["basis"]["scored"] == sum(event["event"] == "evidence" for event in reply["trace"]["events"])
    (difference,) = profile["differences"]
    quotes = [difference["some"][0]["quote"], difference["others"][0]["quote"]]
    assert sorted(" ".join(quote.split()) for quote in quotes) == sorted([IS_LONG, IS_SHORT])
    path = f"/conversations/{reply['conversation']}"
    assert differing.get(path).json()["turns"] == [reply]
    exported = differing.get(f"{path}/markdown").text
    assert "\n\n### About the evidence\n\nConfidence: " in exported
    assert "\n\n#### Where they differ\n\n- “The Aletsch glacier" in exported
    assert "\n\n  but\n\n  “The Aletsch glacier" in exported
    assert deep(differing, LENGTH, mode="quick")["evidence_profile"] is None
    assert deep(differing, "Who painted the Sistine chapel?")["evidence_profile"] is None


def test_a_kept_profile_says_what_became_of_its_papers(differing: TestClient) -> None:
    kept = deep(differing, LENGTH)
    (difference,) = kept["evidence_profile"]["differences"]
    quoted = {side[0]["paper"] for side in difference.values()}
    assert quoted <= papers_of_replies([kept])
    retracted = replace(hit_on(IS_SHORT).paper, notices=(WorkNotice("retraction", "2021-03-04", "10.1234/notice"),))
    (now,) = as_known_now(kept, dict.fromkeys(quoted, retracted))["evidence_profile"]["differences"]
    for side in ("some", "others"):
        assert now[side][0]["notice"]["mark"] == "RETRACTED"
        assert ", RETRACTED, p. 1]" in now[side][0]["shown"] or ", RETRACTED p.1]" in now[side][0]["shown"]
