"""A person's own questions over the API: opened citations are logged, and measuring runs in the background."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.helpers.web_client import NOBODY, ask, client_of, json_of, refusal, small_app

QUESTION = "Which mammal has the densest fur?"


def state(client: TestClient) -> dict[str, Any]:
    return json_of(client.get("/own-questions"))


def measured(client: TestClient) -> dict[str, Any]:
    """How things stand once measuring has ended."""
    assert client.post("/own-questions/measure").status_code == 202
    deadline = time.monotonic() + 60
    while (now := state(client))["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return now


def open_citation(client: TestClient, reply: dict[str, Any], **other: Any) -> int:
    cited = reply["citations"][0]
    place = {"conversation": reply["conversation"], "turn": reply["turn"]}
    opened = {**place, "paper": cited["paper"], "page": cited["page"], **other}
    return int(client.post("/opened", json=opened).status_code)


def test_opened_citations_and_ratings_are_measured_until_the_log_changes(client: TestClient) -> None:
    assert state(client) == {
        "questions": 0, "opened": 0, "bad": 0, "logged": True, "state": "idle", "done": 0, "total": 0, "problem": "",
        "result": None,
    }  # fmt: skip
    reply = ask(client, QUESTION)
    assert state(client)["questions"] == 0  # nobody has opened anything
    assert open_citation(client, reply) == 204
    assert open_citation(client, reply, page=reply["citations"][0]["page"] + 50) == 204  # it cites no such page
    assert (state(client)["questions"], state(client)["opened"]) == (1, 1)
    now = measured(client)
    result = now["result"]
    assert (result["questions"], result["opened"], result["now"]["found"], result["missed"]) == (1, 1, 1, [])
    assert {each["verdict"] for each in result["others"]} <= {"same", "unclear", "more passages"}
    assert now["done"] == now["total"] > 1
    assert state(client)["result"] == result
    rated = {"conversation": reply["conversation"], "turn": reply["turn"], "feedback": "bad"}
    assert client.post("/feedback", json=rated).status_code == 204
    assert (state(client)["result"], state(client)["questions"], state(client)["bad"]) == (None, 0, 1)


def test_a_run_is_stopped(client: TestClient) -> None:
    reply = ask(client, QUESTION)
    open_citation(client, reply)
    client.post("/own-questions/measure")
    assert client.post("/own-questions/stop").status_code == 204
    deadline = time.monotonic() + 60
    while state(client)["state"] == "running" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (state(client)["state"], state(client)["problem"]) == ("idle", "")


def test_opened_citations_go_with_their_conversation_and_come_back_with_it(client: TestClient) -> None:
    reply = ask(client, QUESTION, listed=True)
    open_citation(client, reply)
    key = "0" * 16
    assert client.delete(f"/conversations/{reply['conversation']}?undo={key}").status_code == 204
    assert state(client)["questions"] == 0
    assert client.post(f"/undo/{key}").status_code == 204
    assert state(client)["opened"] == 1


def test_without_a_log_nothing_is_recorded(tmp_path: Path) -> None:
    with client_of(small_app(tmp_path, QUERY_LOG=False)) as client:
        reply = ask(client, QUESTION)
        assert open_citation(client, reply) in (204, 404)
        assert (state(client)["logged"], state(client)["questions"]) == (False, 0)


def test_an_answer_that_does_not_exist_is_not_found(client: TestClient) -> None:
    body = {"conversation": "A" * 16, "turn": 1, "paper": NOBODY, "page": 1}
    assert "no such conversation" in refusal(client.post("/opened", json=body), 404)


@pytest.mark.parametrize("path", ["/own-questions/measure"])
def test_measuring_without_questions_ends_at_once(client: TestClient, path: str) -> None:
    now = measured(client)
    assert (now["state"], now["problem"], now["questions"]) == ("idle", "", 0)
