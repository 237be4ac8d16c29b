"""Questions over the web API before they have an answer: stored at once, answered whoever looks, stopped, repeated."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from folio.answer_types import Evidence, Sentence
from folio.app import App
from folio.errors import StoreBusy
from folio.model_choice import ModelChoice
from folio.schema.web import ChatRequest
from folio.store.conversations import Conversations
from folio.web import answering, server
from folio.web.service import Service
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.scripted_answerer import IS_LONG, IS_THICK, Part, ScriptedAnswerer, cited
from tests.helpers.web_client import events_in, json_of, refusal, send_request

LENGTH, THICK, SLEEP = "What length has the Aletsch glacier?", "How thick is its ice?", "How do sea otters sleep?"
KEY = "a-key-of-16-char"


class Gate:
    """Holds a scripted answer before its first and its second sentence."""

    def __init__(self) -> None:
        self.first, self.second = threading.Event(), threading.Event()
        self.asked = 0
        self.error: Exception | None = None

    def open(self) -> None:
        self.first.set()
        self.second.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate()
    real: Callable[..., Any] = ModelChoice.answerer

    def answerer(models: ModelChoice, *arguments: Any, **chosen: Any) -> Any:
        if chosen.get("model") == "builtin":
            return real(models, *arguments, **chosen)

        def wait(event: threading.Event) -> None:
            while not event.wait(0.02):
                chosen["check_cancelled"]()

        def script(evidence: Sequence[Evidence]) -> Iterator[Part]:
            made.asked += 1
            wait(made.first)
            if made.error:
                raise made.error
            yield Sentence(IS_LONG, (cited(evidence, IS_LONG),))
            wait(made.second)
            yield Sentence(IS_THICK, (cited(evidence, IS_THICK),))

        return ScriptedAnswerer(script)

    monkeypatch.setattr(ModelChoice, "answerer", answerer)
    yield made
    made.open()


@pytest.fixture
def app(tmp_path: Path) -> App:
    return builtin_app(tmp_path, small_papers(tmp_path / "papers"))


@pytest.fixture
def live(app: App, gate: Gate) -> Iterator[Live]:
    """A server whose answers wait at the gate."""
    with Live(app) as running:
        yield running
        gate.open()


@pytest.fixture
def client(live: Live) -> Iterator[httpx.Client]:
    with live.client() as opened:
        yield opened


def send_and_leave(live: Live, message: str = LENGTH, **more: Any) -> dict[str, Any]:
    """Asks as the page does, and leaves once the question is stored; returns the event that says so."""
    connection = send_request(live.port, "/chat/stream", {"message": message, "listed": True, **more})
    received = b""
    while not re.search(rb"event: asked\r?\ndata: .*\r?\n", received):
        received += connection.recv(2**16)
    connection.close()
    body = received.decode().split("event: asked", 1)[1]
    ((_, asked), *_) = events_in("event: asked" + body.split("\r\n\r\n")[0])
    return asked


def path_of(asked: dict[str, Any], what: str = "") -> str:
    path = f"/conversations/{asked['conversation']}"
    return f"{path}/turns/{asked['turn']}/{what}" if what else path


def shown(client: httpx.Client, asked: dict[str, Any]) -> list[tuple[str, str]]:
    """The questions of a conversation with "answered" or their state, in order."""
    found = client.get(path_of(asked)).json()
    turns = [(each["turn"], each["message"], each.get("state", "answered")) for each in found["turns"]]
    turns += [(each["turn"], each["message"], each["state"]) for each in found["unanswered"]]
    return [(message, state) for _, message, state in sorted(turns)]


def listed(client: httpx.Client) -> list[tuple[str, int, int]]:
    found = client.get("/conversations").json()["conversations"]
    return [(each["title"], each["turns"], each["running"]) for each in found]


# Asking and leaving


def test_a_question_is_listed_at_once_and_answered_when_nobody_looks(
    live: Live, client: httpx.Client, gate: Gate
) -> None:
    asked = send_and_leave(live)
    assert listed(client) == [(LENGTH, 1, 1)]
    assert shown(client, asked) == [(LENGTH, "running")]
    gate.open()
    until(lambda: shown(client, asked) == [(LENGTH, "answered")])
    assert listed(client) == [(LENGTH, 1, 0)]
    (turn,) = client.get(path_of(asked)).json()["turns"]
    assert (len(turn["sentences"]), turn["stopped"], turn["key"]) == (2, False, asked["key"])


def test_whoever_comes_later_sees_the_answer_from_its_beginning(live: Live, client: httpx.Client, gate: Gate) -> None:
    asked = send_and_leave(live)
    gate.first.set()

    def follow() -> list[tuple[str, Any]]:
        return events_in(client.get(path_of(asked, "events")).text)

    with ThreadPoolExecutor() as pool:
        followed = [pool.submit(follow) for _ in range(3)]
        gate.second.set()
        for each in followed:
            kinds = [kind for kind, _ in each.result()]
            assert kinds == ["asked", "retrieved", "sentence", "sentence", "citations", "done"]
    assert [kind for kind, _ in follow()] == ["citations", "done"]  # it is stored


def test_a_program_that_leaves_stops_its_answer(live: Live, client: httpx.Client, gate: Gate) -> None:
    asked = send_and_leave(live, listed=False)
    assert asked["conversation"].endswith("-once")
    until(lambda: shown(client, asked) == [(LENGTH, "stopped")])
    assert listed(client) == []


def test_a_question_that_is_sent_twice_is_asked_once(live: Live, client: httpx.Client, gate: Gate) -> None:
    asked = send_and_leave(live, key=KEY)
    assert (asked["conversation"], asked["turn"]) == (KEY, 1)
    assert send_and_leave(live, key=KEY) == asked
    more = {"conversation": KEY, "key": KEY.replace("k", "K")}
    gate.open()
    until(lambda: shown(client, asked) == [(LENGTH, "answered")])
    second = send_and_leave(live, THICK, **more)
    until(lambda: shown(client, asked) == [(LENGTH, "answered"), (THICK, "answered")])
    for body in ({"message": LENGTH, "listed": True, "key": KEY}, {"message": THICK, **more}):
        assert client.post("/chat", json=body).is_success
    assert [turn["turn"] for turn in client.get(path_of(asked)).json()["turns"]] == [1, second["turn"]] == [1, 2]
    assert gate.asked == 2


# Stopping


@pytest.mark.parametrize(("sentences", "state"), [(0, "stopped"), (1, "answered")])
def test_anybody_stops_an_answer(live: Live, client: httpx.Client, gate: Gate, sentences: int, state: str) -> None:
    asked = send_and_leave(live)
    if sentences:
        gate.first.set()
    with client.stream("GET", path_of(asked, "events")) as response:
        lines = response.iter_lines()
        assert any(("event: sentence" if sentences else "event: retrieved") in line for line in lines)
        assert client.post(path_of(asked, "stop")).status_code == 204
        kinds = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert kinds == (["citations", "done"] if sentences else ["stopped"])
    assert shown(client, asked) == [(LENGTH, state)]
    assert client.post(path_of(asked, "stop")).status_code == 204  # nothing is left to stop


def test_what_waits_for_its_turn_is_stopped_at_once(
    live: Live, client: httpx.Client, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = [send_and_leave(live) for _ in range(answering.MAX_CONCURRENT_ANSWERS)]
    waiting = send_and_leave(live, SLEEP)
    assert client.post(path_of(waiting, "stop")).status_code == 204
    assert shown(client, waiting) == [(SLEEP, "stopped")]
    monkeypatch.setattr(answering, "MOST_ANSWERS", len(running))
    body = {"message": SLEEP, "listed": True}
    assert "questions are waiting" in refusal(client.post("/chat/stream", json=body), 409)
    gate.open()
    until(lambda: all(shown(client, asked) == [(LENGTH, "answered")] for asked in running))
    assert gate.asked == len(running)


def test_a_deleted_conversation_is_answered_no_more(live: Live, client: httpx.Client, gate: Gate) -> None:
    asked = send_and_leave(live)
    until(lambda: gate.asked)
    assert client.delete(path_of(asked)).status_code == 204
    gate.open()
    assert client.get(path_of(asked)).status_code == 404
    assert listed(client) == []


# Failures, and asking again


def test_asking_again_replaces_that_question_only(live: Live, client: httpx.Client, gate: Gate) -> None:
    def is_failed(message: str, asked: dict[str, Any]) -> bool:
        return (message, "failed") in shown(client, asked)

    gate.error = RuntimeError("a bug")
    gate.open()
    conversation: dict[str, Any] = {}
    for message in (LENGTH, THICK, SLEEP):
        asked = send_and_leave(live, message, **conversation)
        conversation = {"conversation": asked["conversation"]}
        until(partial(is_failed, message, asked))
    assert [state for _, state in shown(client, asked)] == ["failed"] * 3
    first = client.get(path_of(asked)).json()["unanswered"][0]
    assert first["error"]["error"] == "Folio failed with an internal error."
    gate.error = None
    events = events_in(client.post(path_of(first, "again"), json={}).text)
    assert [events[0][0], events[-1][0]] == ["asked", "done"]
    assert shown(client, asked) == [(LENGTH, "answered"), (THICK, "failed"), (SLEEP, "failed")]
    exported = client.get(path_of(asked) + "/markdown").text
    assert exported.count("*This question has no answer.*") == 2
    assert exported.index(f"## {LENGTH}") < exported.index(f"## {THICK}") < exported.index(f"## {SLEEP}")
    note = client.get(path_of(asked) + "/zotero-note").text
    assert note.count("This question has no answer.") == 2
    assert client.get(path_of({**asked, "turn": 3}, "followups")).json() == {"questions": []}
    client.post(path_of({**asked, "turn": 3}, "again"), json={"model": "builtin"})
    third = client.get(path_of(asked)).json()["turns"][1]
    assert (third["turn"], third["models"]["llm"]) == (3, "extractive (built in)")
    again = events_in(client.post(path_of(first, "again"), json={}).text)
    assert [kind for kind, _ in again] == ["citations", "done"]  # it has its answer


def test_a_question_may_be_answered_though_it_cannot_be_stored(
    live: Live, client: httpx.Client, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bool:
        raise StoreBusy("Another process is writing.", "Wait.")

    gate.open()
    monkeypatch.setattr(Conversations, "ask", refuse)
    reply = json_of(client.post("/chat", json={"message": LENGTH, "listed": True}))
    assert len(reply["sentences"]) == 2
    assert client.get(path_of(reply)).json()["turns"] == [reply]  # it could be stored later


def test_a_question_that_failed_is_asked_again_if_it_is_sent_again(
    live: Live, client: httpx.Client, gate: Gate
) -> None:
    gate.error = RuntimeError("a bug")
    gate.open()
    body = {"message": LENGTH, "listed": True, "key": KEY}
    assert events_in(client.post("/chat/stream", json=body).text)[-1][0] == "error"
    gate.error = None
    sent = events_in(client.post("/chat/stream", json=body).text)
    assert [sent[0][0], sent[-1][0]] == ["asked", "done"]
    assert shown(client, sent[0][1]) == [(LENGTH, "answered")]


# Several servers, and servers that end


def test_another_server_shows_and_stops_an_answer(
    app: App, live: Live, client: httpx.Client, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "RENEW_S", 0.1)
    asked = send_and_leave(live)
    with Live(App(app.settings, lambda text: None)) as other_live, other_live.client() as other:
        assert shown(other, asked) == [(LENGTH, "running")]
        body = {"message": THICK, "conversation": asked["conversation"]}
        assert "still answering" in refusal(other.post("/chat", json=body), 409)
        assert other.post(path_of(asked, "stop")).status_code == 204
        events = events_in(other.get(path_of(asked, "events")).text)
        assert [kind for kind, _ in events][-1] == "stopped"
    assert shown(client, asked) == [(LENGTH, "stopped")]


def test_a_server_that_stops_leaves_its_question_to_be_asked_again(
    app: App, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FINISH_S", 0.2)
    with Live(app) as stopped:
        most = answering.MAX_CONCURRENT_ANSWERS
        asked = [send_and_leave(stopped, key=f"{number:0>16}") for number in range(most + 1)]
        until(lambda: gate.asked == most)  # the last one waits
    gate.open()
    with Live(app) as again, again.client() as client:
        assert [shown(client, each) for each in asked] == [[(LENGTH, "failed")]] * len(asked)
        left = client.get(path_of(asked[0])).json()["unanswered"][0]
        assert left["error"]["error"] == "Folio was stopped while it answered."
        assert events_in(client.post(path_of(left, "again"), json={}).text)[-1][0] == "done"
        assert shown(client, left) == [(LENGTH, "answered")]


def test_a_killed_server_leaves_its_question_to_be_asked_again(app: App, client: httpx.Client, gate: Gate) -> None:
    """As its store is then: campaign/asking.py kills real ones."""
    with closing(Service(app)) as killed:
        asked = killed.questions.begin(ChatRequest(message=LENGTH, listed=True)).unanswered().model_dump()
    assert shown(client, asked) == [(LENGTH, "running")]
    with client.stream("GET", path_of(asked, "events")) as response:
        kinds = (line.removeprefix("event: ") for line in response.iter_lines() if line.startswith("event: "))
        assert next(kinds) == "asked"  # it waits for the other server
        with closing(app.open_library()) as library, library.database.transaction("user"):
            library.database.execute("UPDATE answering SET until = ''")  # which has renewed nothing for long
        assert list(kinds) == ["error"]
    assert shown(client, asked) == [(LENGTH, "failed")]
    assert listed(client) == [(LENGTH, 1, 0)]
    gate.open()
    assert events_in(client.post(path_of(asked, "again"), json={}).text)[-1][0] == "done"
    assert shown(client, asked) == [(LENGTH, "answered")]
