"""Three servers over one library in Milvus, with requests in turn: whoever asks them cannot tell them from one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

from folio import workers
from folio.cli import session
from folio.commands import evaluate_log, log
from folio.evaluate import dataset
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingApp, read_here
from tests.helpers.live_server import HTTP_ONLY, LIMIT_S, Live
from tests.helpers.milvus import computer, lite_app, milvus_of

TALKS = (
    (
        "What length has the Aletsch glacier?",
        "And how thick is its ice?",
        "Where is the Aletsch glacier?",
        "Who painted it?",
    ),
    ("What do sea otters eat?", "And how do they sleep?", "Why?"),
    ("What is the mass of the electron?", "What length has the Aletsch glacier?"),
)
# Of a reply: what is another each time
_PASSING = ("conversation", "elapsed_ms", "timings_ms")


class InTurn(httpx.BaseTransport):
    """A balancer: each request goes to the next server."""

    def __init__(self, servers: list[Live]) -> None:
        self._ports = [server.port for server in servers]
        self._requests = count()
        self._transport = httpx.HTTPTransport(**HTTP_ONLY)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        port = self._ports[next(self._requests) % len(self._ports)]
        request.url = request.url.copy_with(port=port)
        request.headers["host"] = f"127.0.0.1:{port}"
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()


class Servers:
    """The servers, and clients of all of them in turn or of one alone."""

    def __init__(self, apps: list[HashingApp], live: list[Live]) -> None:
        self.apps, self.live = apps, live

    def balanced(self) -> httpx.Client:
        return httpx.Client(transport=InTurn(self.live), base_url="http://127.0.0.1", timeout=LIMIT_S, **HTTP_ONLY)

    def each(self) -> Iterator[httpx.Client]:
        for live in self.live:
            with live.client() as client:
                yield client


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Each server is a computer of its own; only the first has the PDFs."""
    folder = tmp_path_factory.mktemp("servers")
    small_papers(folder / "papers")
    chosen = {"LLM": "builtin", "RERANKER": "builtin", "CHUNK_SIZE": 300, "CHUNK_OVERLAP": 50}
    with ExitStack() as stack:
        app = stack.enter_context(lite_app(folder, folder / "papers", **chosen))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers, "run_guarded", read_here)
            app.run()
        apps = [app, *(computer(app, folder / f"computer {n}") for n in (1, 2))]
        yield Servers(apps, [stack.enter_context(Live(each)) for each in apps])


@pytest.fixture(autouse=True)
def _forgotten(servers: Servers) -> None:
    """Nothing has been asked."""
    with closing(servers.apps[0].open_library()) as library:
        servers.apps[0].backend.conversations().clear()
        servers.apps[0].query_log(library).clear()


def talk(client: httpx.Client, questions: tuple[str, ...], **more: Any) -> list[dict[str, Any]]:
    """The replies of a conversation."""
    replies: list[dict[str, Any]] = []
    for question in questions:
        begun = {"conversation": replies[0]["conversation"]} if replies else {}
        answered = client.post("/chat", json={"message": question, **begun, **more})
        assert answered.status_code == 200, answered.text
        replies.append(answered.json())
    return replies


def lasting(reply: Any) -> Any:
    """A reply without times and the id of its conversation."""
    if isinstance(reply, dict):
        return {name: lasting(value) for name, value in reply.items() if name not in _PASSING}
    return [lasting(each) for each in reply] if isinstance(reply, list) else reply


@pytest.fixture(scope="module")
def expected(servers: Servers) -> list[str]:
    """What one server alone says."""
    with servers.live[0].client() as client:
        found = [talk(client, questions) for questions in TALKS]
    assert {reply["refused"] for replies in found for reply in replies} == {True, False}
    return [json.dumps(lasting(replies)) for replies in found]


def logged(app: HashingApp) -> list[tuple[str, str]]:
    """The questions in the log and their feedback, the first first."""
    with closing(app.open_library()) as library:
        return [(entry.question, entry.feedback) for _, entry in reversed(app.query_log(library).entries())]


def test_a_conversation_goes_on_at_any_server_as_at_one(servers: Servers, expected: list[str]) -> None:
    with servers.balanced() as client:
        found = [talk(client, questions) for questions in TALKS]
        assert [json.dumps(lasting(replies)) for replies in found] == expected
        for replies in found:
            for each in servers.each():  # all show it the same
                kept = each.get(f"/conversations/{replies[0]['conversation']}").json()
                assert [lasting(turn) for turn in kept["turns"]] == [lasting(reply) for reply in replies]
    asked = [(question, "") for questions in TALKS for question in questions]
    assert [logged(app) for app in servers.apps] == [asked] * 3
    lists = [each.get("/conversations").json() for each in servers.each()]
    assert [found["title"] for found in lists[0]["conversations"]] == [questions[0] for questions in reversed(TALKS)]
    assert lists == [lists[0]] * 3


def test_events_come_from_any_server(servers: Servers) -> None:
    with servers.balanced() as client:
        (first,) = talk(client, TALKS[0][:1])
        follow_up = {"message": TALKS[0][1], "conversation": first["conversation"]}
        with client.stream("POST", "/chat/stream", json=follow_up) as response:
            events = [line for line in response.iter_lines() if line.startswith(("event: ", "data: "))]
    assert events[-2] == "event: done"
    done = json.loads(events[-1].removeprefix("data: "))
    assert done["turn"] == 2
    assert "could not be saved" not in done["notice"]


def test_questions_at_the_same_time_are_answered_as_one_after_the_other(servers: Servers, expected: list[str]) -> None:
    with servers.balanced() as client, ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda questions: talk(client, questions), TALKS * 2))
    assert [json.dumps(lasting(replies)) for replies in found] == expected * 2
    assert len({replies[0]["conversation"] for replies in found}) == 6
    assert sorted(logged(servers.apps[2])) == sorted((each, "") for questions in TALKS * 2 for each in questions)


def test_feedback_and_deletions_are_seen_by_all(servers: Servers) -> None:
    with servers.balanced() as client:
        kept, gone = talk(client, TALKS[0]), talk(client, TALKS[1])
        rated = {"conversation": kept[0]["conversation"], "turn": 2, "feedback": "good"}
        assert client.post("/feedback", json=rated).status_code == 204
        for each in servers.each():
            turns = each.get(f"/conversations/{kept[0]['conversation']}").json()["turns"]
            assert [turn["feedback"] for turn in turns] == ["", "good", "", ""]
        assert client.delete(f"/conversations/{gone[0]['conversation']}").status_code == 204
        for each in servers.each():
            assert each.get(f"/conversations/{gone[0]['conversation']}").status_code == 404
            assert len(each.get("/conversations").json()["conversations"]) == 1
            again = each.post("/chat", json={"message": "Why?", "conversation": gone[0]["conversation"]})
            assert again.status_code == 404
    for app in servers.apps:
        assert logged(app) == [(question, "good" if n == 1 else "") for n, question in enumerate(TALKS[0])]


def test_the_commands_of_another_computer_list_rate_and_delete_what_was_asked(
    servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with servers.live[0].client() as client:
        talk(client, TALKS[1])
    other = servers.apps[2]
    assert (
        log.parser("folio log").parse_args(["export"]).run(other, log.parser("folio log").parse_args(["export"])) == 0
    )
    exported = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["question"] for entry in exported] == list(TALKS[1])
    with closing(other.open_library()) as library:
        session.mark(other.query_log(library), "bad")
        shown = log.parser("folio log").parse_args(["show", str(exported[2]["number"]), "--json"])
        assert shown.run(other, shown) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["feedback"] == "bad"
        other.query_log(library).mark_row(exported[0]["number"], "good")
        evaluate_log.make(other, tmp_path / "set.json")
        assert [each.text for each in dataset.load(tmp_path / "set.json").questions] == [TALKS[1][0]]
        session.forget(other, library)
    assert "Deleted: 3 questions, 1 conversation" in capsys.readouterr().out
    assert [logged(app) for app in servers.apps] == [[], [], []]
    for each in servers.each():
        assert each.get("/conversations").json() == {"conversations": []}


def test_what_people_say_of_a_paper_is_shown_by_all(servers: Servers) -> None:
    with servers.balanced() as client:
        paper = client.get("/papers").json()["papers"][0]["id"]
        before = client.get(f"/papers/{paper}").json()["title"]
        for title in ("A Title by Hand", None):
            assert client.patch(f"/papers/{paper}", json={"title": title}).status_code == 200
            assert [each.get(f"/papers/{paper}").json()["title"] for each in servers.each()] == [title or before] * 3


def test_a_page_is_shown_by_servers_that_have_the_folder_of_papers_wherever_it_is(
    servers: Servers, tmp_path: Path
) -> None:
    first = servers.apps[0]
    shutil.copytree(first.settings.PAPERS_DIR, tmp_path / "mounted elsewhere")
    shared, without = (
        HashingApp(first.settings.model_copy(update={"PAPERS_DIR": folder}), first.notice, first.hashing)
        for folder in (tmp_path / "mounted elsewhere", tmp_path / "nothing")
    )
    away = first.settings.PAPERS_DIR.with_name("away")
    with servers.live[0].client() as client:
        papers = [paper["id"] for paper in client.get("/papers").json()["papers"]]
    first.settings.PAPERS_DIR.rename(away)
    try:
        for app, status in ((shared, 200), (without, 422)):
            with Live(app) as live, live.client() as client:
                answers = [client.get(f"/papers/{paper}/pages/1.png") for paper in papers]
                assert [answer.status_code for answer in answers] == [status] * len(papers)
                if status != 200:
                    assert "is missing or has changed since it was ingested" in answers[0].json()["error"]
                    assert client.post("/chat", json={"message": TALKS[0][0]}).json()["citations"]
    finally:
        away.rename(first.settings.PAPERS_DIR)


def test_without_a_log_nothing_is_written_and_each_server_has_its_own_conversations(servers: Servers) -> None:
    app = servers.apps[1]
    settings = app.settings.model_copy(update={"QUERY_LOG": False})
    before = list(milvus_of(app).rows("folio_history", 'key >= ""', ["key"], strong=True))
    with Live(HashingApp(settings, app.notice, app.hashing)) as live, live.client() as client:
        replies = talk(client, TALKS[0])
        assert client.get("/health").json()["logged"] is False
        assert len(client.get("/conversations").json()["conversations"]) == 1
        for each in servers.each():
            assert each.get(f"/conversations/{replies[0]['conversation']}").status_code == 404
    assert list(milvus_of(app).rows("folio_history", 'key >= ""', ["key"], strong=True)) == before
