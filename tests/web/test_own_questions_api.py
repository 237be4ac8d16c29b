"""A person's own questions over the API: opened citations are logged, and measuring runs in the background."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.schema import own_questions as schema
from folio.search.own_questions import KnownQuestion
from folio.store.rows import Stamp
from folio.web.own_results import FILE, keep_result, kept_result, result_key
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


def test_a_result_is_kept_over_a_restart_until_settings_change(tmp_path: Path) -> None:
    app = small_app(tmp_path)
    with client_of(app) as client:
        reply = ask(client, QUESTION)
        assert open_citation(client, reply) == 204
        result = measured(client)["result"]
        assert result["now"]["found"] == 1
    file = app.settings.CACHE_DIR / FILE
    assert QUESTION not in file.read_text(encoding="utf-8")
    with client_of(small_app(tmp_path, TOP_K=3)) as client:
        assert state(client)["result"] is None
    with client_of(small_app(tmp_path)) as client:
        assert state(client)["result"] == result
        file.write_text("{", encoding="utf-8")
        assert state(client)["result"] == result  # what is in memory
    with client_of(small_app(tmp_path)) as client:
        assert (state(client)["result"], state(client)["questions"]) == (None, 1)


def test_missed_questions_are_kept_by_their_places(tmp_path: Path) -> None:
    asked = [KnownQuestion(number, f"Question {number}?", (), "", False) for number in range(3)]
    tried = schema.TriedJson(settings={}, found=1, gained=0, lost=0, verdict="same")
    missed = ["Question 0?", "Question 2?"]
    result = schema.OwnResultJson(questions=3, opened=0, now=tried, others=[tried], missed=missed)
    keep_result(tmp_path / "new", "key", asked, result)
    assert kept_result(tmp_path / "new", "key", asked) == result
    assert kept_result(tmp_path / "new", "other", asked) is None
    assert kept_result(tmp_path / "new", "key", asked[:2]) is None
    assert kept_result(tmp_path / "none", "key", asked) is None
    (tmp_path / "file").touch()
    keep_result(tmp_path / "file", "key", asked, result)  # no folder: nothing is kept, and nothing is raised


def test_a_key_changes_with_all_that_a_result_depends_on() -> None:
    asked = [KnownQuestion(1, "How long?", (), "", False)]
    stamp = (Stamp("epoch", 1), 1)
    keys = [
        result_key(asked, stamp, {"TOP_K": "5"}),
        result_key(asked, stamp, {"TOP_K": "6"}),
        result_key([], stamp, {"TOP_K": "5"}),
        result_key([replace(asked[0], is_opened=True)], stamp, {"TOP_K": "5"}),
        result_key(asked, (Stamp("epoch", 2), 1), {"TOP_K": "5"}),
        result_key(asked, (Stamp("other", 1), 1), {"TOP_K": "5"}),
        result_key(asked, (Stamp("epoch", 1), 2), {"TOP_K": "5"}),
        result_key(asked, stamp, {"TOP_K": "5"}, "9.9"),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0] == result_key(list(asked), stamp, {"TOP_K": "5"})


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
