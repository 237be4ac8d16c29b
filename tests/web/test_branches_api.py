"""Conversations over the web API: branches, stopped answers, search, titles and pins."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel

from folio.answer_types import AnswerStopped, Evidence, Sentence
from folio.schema.web import ChatReply, ChatRequest
from folio.web.service import Service
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.scripted_answerer import IS_LONG, IS_THICK, Part, cited, script_answers
from tests.helpers.web_client import ask, ask_streamed, client_of, json_of, refusal, send_request

SLEEP, LENGTH = "How do sea otters sleep?", "How long is the Aletsch glacier?"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("branches")
    with client_of(builtin_app(folder, small_papers(folder / "papers"))) as opened:
        yield opened


def shown(client: TestClient, conversation: str, turn: int | None = None) -> list[tuple[int, int, list[int]]]:
    """The number, the parent and the branches of each turn on a path."""
    turns = client.get(f"/conversations/{conversation}", params={"turn": turn} if turn else {}).json()["turns"]
    return [(each["turn"], each["parent"], each["branches"]) for each in turns]


# Branches


def test_a_replaced_question_begins_a_branch(client: TestClient) -> None:
    first = ask(client, SLEEP)
    id = first["conversation"]
    assert (first["turn"], first["parent"], first["branches"]) == (1, 0, [1])
    ask(client, "What do they eat?", conversation=id)
    edited = ask(client, LENGTH, conversation=id, replaces=1)
    assert (edited["turn"], edited["parent"], edited["branches"]) == (3, 0, [1, 3])
    follow_up = ask(client, "How thick is its ice?", conversation=id)
    assert (follow_up["turn"], follow_up["parent"]) == (4, 3)
    *_, (_, again) = ask_streamed(client, "How thick is the ice there?", conversation=id, replaces=4, model="builtin")
    assert (again["turn"], again["parent"], again["branches"]) == (5, 3, [4, 5])
    assert shown(client, id) == [(3, 0, [1, 3]), (5, 3, [4, 5])]
    assert shown(client, id, 4) == [(3, 0, [1, 3]), (4, 3, [4, 5])]
    assert shown(client, id, 1) == shown(client, id, 2) == [(1, 0, [1, 3]), (2, 1, [2])]
    late = ask(client, "And how dense is their fur?", conversation=id, after=2)
    assert (late["turn"], late["parent"]) == (6, 2)
    assert shown(client, id) == shown(client, id, 1) == [(1, 0, [1, 3]), (2, 1, [2]), (6, 2, [6])]
    assert shown(client, id, 3) == [(3, 0, [1, 3]), (5, 3, [4, 5])]
    assert client.get(f"/conversations/{id}").json()["turns"][-1] == late


def test_a_follow_up_knows_its_own_path_only(client: TestClient) -> None:
    glacier = ask(client, LENGTH)
    id = glacier["conversation"]
    otters = ask(client, SLEEP, conversation=id, replaces=1)
    of_otters = ask(client, "And how dense is their fur?", conversation=id, after=otters["turn"])
    of_glacier = ask(client, "And how thick is its ice?", conversation=id, after=glacier["turn"])
    assert of_otters["sources_used"] == ["otters.pdf"]
    assert of_glacier["sources_used"][0] == "alps/glaciers.pdf"
    alone = ask(client, LENGTH)["conversation"]
    same = ask(client, "And how thick is its ice?", conversation=alone)
    assert same["standalone_question"] == of_glacier["standalone_question"]


def test_an_export_has_the_path_that_is_shown(client: TestClient) -> None:
    id = ask(client, SLEEP)["conversation"]
    ask(client, LENGTH, conversation=id, replaces=1)
    path = f"/conversations/{id}"
    for kind, name in (("markdown", "turn"), ("zotero-note", "through")):
        latest, earlier = client.get(f"{path}/{kind}").text, client.get(f"{path}/{kind}", params={name: 1}).text
        assert ("23 kilometres" in latest, "kelp" in latest) == (True, False)
        assert ("23 kilometres" in earlier, "kelp" in earlier) == (False, True)
    assert "kelp" in client.get(f"{path}/zotero-note", params={"turn": 1}).text
    assert client.delete(path).status_code == 204
    assert client.get(path, params={"turn": 1}).status_code == 404


@pytest.mark.parametrize("more", [{"replaces": 9}, {"after": 9}])
def test_a_branch_from_an_unknown_turn_is_refused(client: TestClient, more: dict[str, int]) -> None:
    id = ask(client, SLEEP)["conversation"]
    for body in ({"message": SLEEP, "conversation": id, **more}, {"message": SLEEP, "replaces": 1}):
        for path in ("/chat", "/chat/stream"):
            assert "no such turn" in refusal(client.post(path, json=body), 404)
    assert refusal(client.get(f"/conversations/{id}", params={"turn": 9}), 404)
    assert len(shown(client, id)) == 1


def test_a_conversation_of_an_older_folio_is_one_path(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = BaseModel.model_dump

    def without_parent(model: BaseModel, **options: Any) -> dict[str, Any]:
        return {name: value for name, value in dump(model, **options).items() if name not in ("parent", "branches")}

    monkeypatch.setattr("folio.schema.web.ChatReply.model_dump", without_parent, raising=False)
    id = ask(client, SLEEP)["conversation"]
    ask(client, "What do they eat?", conversation=id)
    monkeypatch.undo()
    assert shown(client, id) == [(1, 0, [1]), (2, 1, [2])]
    ask(client, LENGTH, conversation=id, replaces=2)
    assert shown(client, id) == [(1, 0, [1]), (3, 1, [2, 3])]


# Stopped answers


def two_sentences(evidence: Sequence[Evidence]) -> Iterator[Part]:
    for quote in (IS_LONG, IS_THICK):
        yield Sentence(quote, (cited(evidence, quote),))


class Stops:
    """A client that leaves after some sentences."""

    def __init__(self, after: int) -> None:
        self.left = after

    def on_event(self, kind: str, value: BaseModel) -> None:
        self.check_cancelled()
        self.left -= kind == "sentence"

    def check_cancelled(self) -> None:
        if self.left <= 0:
            raise AnswerStopped


def answered(service: Service, request: ChatRequest, callbacks: Stops) -> ChatReply:
    return service.questions.answer(service.questions.begin(request), callbacks)


@pytest.mark.parametrize("after", [1, 2])
def test_a_stopped_answer_keeps_what_was_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    script_answers(monkeypatch, two_sentences)
    app = builtin_app(tmp_path, small_papers(tmp_path / "papers"))
    with closing(Service(app)) as service:
        reply = answered(service, ChatRequest(message=LENGTH, listed=True), Stops(after))
        assert reply.stopped
        assert [sentence.text for sentence in reply.sentences] == [IS_LONG, IS_THICK][:after]
        assert (reply.notice, len(reply.citations)) == ("You stopped this answer.", after)
        (kept,) = service.conversation(reply.conversation).turns
        assert kept.model_dump() == reply.model_dump()
        assert "Note: You stopped this answer." in service.markdown(reply.conversation)[0]
        with closing(app.open_library()) as library, closing(app.conversations()) as conversations:
            (turn,) = conversations.turns(reply.conversation, library)
            assert turn.answer is not None  # a follow-up can refer to it
            assert turn.answer.text == reply.answer
            assert app.query_log(library).counts().questions == 1
        more = ChatRequest(message="And how thick is its ice?", conversation=reply.conversation)
        follow_up = answered(service, more, Stops(9))
        assert (follow_up.turn, follow_up.parent, follow_up.stopped) == (2, 1, False)


def test_a_question_of_which_nothing_was_shown_stays_without_an_answer(tmp_path: Path) -> None:
    app = builtin_app(tmp_path, small_papers(tmp_path / "papers"))
    with closing(Service(app)) as service:
        with pytest.raises(AnswerStopped):
            answered(service, ChatRequest(message=LENGTH, listed=True), Stops(0))
        (listed,) = service.conversations().conversations
        assert (listed.title, listed.turns, listed.running) == (LENGTH, 1, 0)
        shown = service.conversation(listed.id)
        assert (shown.turns, [each.state for each in shown.unanswered]) == ([], ["stopped"])


def test_a_client_that_leaves_the_stream_finds_what_it_saw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def slowly(evidence: Sequence[Evidence]) -> Iterator[Part]:
        first, second = two_sentences(evidence)
        yield first
        assert goes_on.wait(60)
        yield second

    script_answers(monkeypatch, slowly)
    app = builtin_app(tmp_path, small_papers(tmp_path / "papers"))
    with Live(app) as live, live.client() as client:
        connection = send_request(live.port, "/chat/stream", {"message": LENGTH})
        received = b""
        while b"event: sentence" not in received:
            received += connection.recv(2**16)
        connection.close()
        threading.Timer(1, goes_on.set).start()  # the server notices that the client has left
        conversation = re.findall(r'"conversation":"([^"]+)"', received.decode())[0]
        until(lambda: client.get(f"/conversations/{conversation}").json()["turns"])
        (turn,) = client.get(f"/conversations/{conversation}").json()["turns"]
    assert (turn["stopped"], turn["answer"]) == (True, IS_LONG)


# Search, titles, pins


def ids(client: TestClient, query: str = "") -> list[str]:
    listed = json_of(client.get("/conversations", params={"query": query}))["conversations"]
    return [each["id"] for each in listed]


def test_conversations_are_found_renamed_and_pinned(tmp_path: Path) -> None:
    with client_of(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as client:
        otters = ask(client, SLEEP, listed=True)["conversation"]
        glacier = ask(client, LENGTH, listed=True)["conversation"]
        assert ids(client) == [glacier, otters]
        assert ids(client, "OTTERS sleep") == [otters]
        assert ids(client, "kilometres") == [glacier]  # in its answer
        assert ids(client, "otters aletsch") == []
        changed = client.patch(f"/conversations/{otters}", json={"title": " Größe <b>\n der Otter "}).json()
        assert (changed["title"], changed["pinned"], changed["turns"]) == ("Größe <b> der Otter", False, 1)
        assert ids(client, "grosse otter") == ids(client, "groß") == [otters]
        ask(client, LENGTH, conversation=otters)
        assert client.get(f"/conversations/{otters}").json()["title"] == "Größe <b> der Otter"
        assert ids(client, "grosse aletsch") == [otters]
        ask(client, SLEEP, conversation=glacier)
        assert ids(client) == [glacier, otters]
        assert client.patch(f"/conversations/{otters}", json={"pinned": True}).json()["pinned"]
        assert ids(client) == [otters, glacier]
        assert client.get(f"/conversations/{otters}").json()["pinned"]
        client.patch(f"/conversations/{otters}", json={"title": None, "pinned": False})
        assert ids(client) == [glacier, otters]
        for body in ({"title": " "}, {"title": "x" * 201}, {"id": "x"}):
            assert client.patch(f"/conversations/{otters}", json=body).status_code == 422
        assert client.patch(f"/conversations/{'x' * 16}", json={"pinned": True}).status_code == 404
        assert client.delete(f"/conversations/{otters}").status_code == 204
        assert (ids(client, "grosse"), ids(client, "aletsch")) == ([], [glacier])


def test_health_names_the_model_that_answers(client: TestClient) -> None:
    assert client.get("/health").json()["model"] == "builtin"
