"""The web API over real connections: concurrent clients, clients that disconnect, slow answers."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from folio.pdf import drawing
from folio.system import workers
from folio.web.answering import MAX_CONCURRENT_ANSWERS
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.factories import small_papers, write_pdf
from tests.helpers.fakes import hashing_app, read_here
from tests.helpers.live_server import HTTP_ONLY, LIMIT_S, Live, builtin_app, until
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.pdfs import slow_page
from tests.helpers.web_client import ask, ask_streamed, refusal, send_request, small_app

LENGTH, SLEEP = "What length has the Aletsch glacier?", "How do sea otters sleep?"


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ollama_server: OllamaStandIn) -> Iterator[Live]:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    with Live(small_app(tmp_path, OLLAMA_HOST=ollama_server.url)) as running:
        yield running


def endless(server: OllamaStandIn) -> None:
    """Makes the model write for minutes."""
    server.faults.endless, server.faults.between_pieces_s = "nothing", 0.02


def slowly(model: str = "llama3.1:8b", **more: Any) -> dict[str, Any]:
    return {"message": LENGTH, "model": model, **more}


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_a_disconnected_client_cancels_its_answer(live: Live, ollama_server: OllamaStandIn, path: str) -> None:
    endless(ollama_server)
    with live.client() as client:
        connection = send_request(live.port, path, slowly())
        until(lambda: ollama_server.bodies("/api/chat"))
        connection.close()
        until(lambda: ollama_server.left)
        assert client.get("/conversations").json() == {"conversations": []}
        assert client.post("/chat", json={"message": SLEEP}).status_code == 200


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_leaving_before_the_first_token_frees_the_slot(live: Live, ollama_server: OllamaStandIn, path: str) -> None:
    ollama_server.faults.first_byte_s, ollama_server.faults.paths = 10 * LIMIT_S, ("/api/chat",)
    with live.client() as client:
        conversation = client.post("/chat", json={"message": LENGTH}).json()["conversation"]
        asked = [slowly(conversation=conversation), *[slowly()] * (MAX_CONCURRENT_ANSWERS - 1)]
        leaving = [send_request(live.port, path, body) for body in asked]
        until(lambda: len(ollama_server.bodies("/api/chat")) == MAX_CONCURRENT_ANSWERS)
        for each in leaving:
            each.close()
        until(lambda: client.post("/chat", json={"message": SLEEP, "conversation": conversation}).status_code == 200)


def test_a_slow_answer_delays_no_other_client(live: Live, ollama_server: OllamaStandIn) -> None:
    with live.client() as client:
        conversation = ask(client, LENGTH)["conversation"]
        endless(ollama_server)
        body, then = slowly(conversation=conversation), {"message": SLEEP, "conversation": conversation}
        with httpx.stream("POST", f"{live.url}/chat/stream", json=body, timeout=LIMIT_S, **HTTP_ONLY):
            until(lambda: ollama_server.bodies("/api/chat"))
            for path in ("/chat", "/chat/stream"):  # its conversation is busy
                assert "still answering" in refusal(client.post(path, json=then), 409)
            assert ask(client, SLEEP)["sources_used"] == ["otters.pdf"]
            assert client.post("/search", json={"query": SLEEP}).status_code == 200
            assert [client.get(path).status_code for path in ("/papers", "/health")] == [200, 200]
            assert not ollama_server.left  # still running
        until(lambda: ollama_server.left)
        until(lambda: client.post("/chat", json=then).status_code == 200)
        turns = client.get(f"/conversations/{conversation}").json()["turns"]
        assert [turn["message"] for turn in turns] == [LENGTH, SLEEP]


def test_a_queued_paper_is_read_even_if_its_client_disconnects(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on = threading.Event()

    def held(*arguments: Any, **options: Any) -> Any:
        assert going_on.wait(LIMIT_S)
        yield from read_here(*arguments, **options)

    monkeypatch.setattr(workers, "run_guarded", held)

    def put_in(name: str, text: str) -> str:
        """Disconnects after the first event."""
        content = write_pdf(tmp_path / name, [text]).read_bytes()
        url = f"{live.url}/papers"
        with httpx.stream("POST", url, files={"file": (name, content)}, timeout=LIMIT_S, **HTTP_ONLY) as response:
            return next(response.iter_lines())

    first = put_in("first.pdf", "The first one tells of bees. It is short.")
    second = put_in("second.pdf", "The second one tells of wasps. It is short.")
    assert [first, second] == ["event: saved"] * 2
    going_on.set()
    with live.client() as client:
        until(lambda: len(client.get("/papers").json()["papers"]) == 4)


def test_an_endless_rendering_delays_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    monkeypatch.setattr(drawing, "_FILE_PIXELS", 0)
    app = hashing_app(tmp_path, LLM="builtin", PARSE_TIMEOUT_S=10 * LIMIT_S)
    app.settings.PAPERS_DIR.mkdir()
    slow_page(app.settings.PAPERS_DIR / "slow.pdf", "It tells of moss.", 100_000)
    app.run()
    with Live(app) as live, live.client() as client:
        paper = client.get("/papers").json()["papers"][0]["id"]
        picture = f"/papers/{paper}/pages/1.png?quote=moss"
        looking = [send_request(live.port, f"{picture}+{number}") for number in range(45)]
        for _ in range(50):
            assert client.get("/health").status_code == 200
        answered, _, _ = select.select(looking, [], [], 0)
        assert answered == []
        for each in looking:
            each.close()


@pytest.mark.slow
def test_concurrent_clients_get_their_own_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    app = builtin_app(tmp_path, small_papers(tmp_path / "papers"))
    clients = 50 if EXHAUSTIVE else 20
    talks = (
        (LENGTH, "And how thick is its ice at the Konkordiaplatz?", "alps/glaciers.pdf", "800 metres"),
        ("How dense is the fur of a sea otter?", "And what is its diet made of?", "otters.pdf", "urchins, clams"),
    )

    def talk(url: str, number: int) -> tuple[str, str]:
        question, follow_up, file, fact = talks[number % 2]
        question += " " * number  # unique to this client, with the same meaning
        with httpx.Client(base_url=url, timeout=LIMIT_S * 2, **HTTP_ONLY) as client:
            reply = ask(client, question)
            assert reply["sources_used"][0] == file
            *_, (_, done) = ask_streamed(client, follow_up, conversation=reply["conversation"])
            assert (done["conversation"], done["turn"]) == (reply["conversation"], 2)
            assert fact in done["answer"]
            kept = client.get(f"/conversations/{reply['conversation']}").json()
            assert [turn["message"] for turn in kept["turns"]] == [question, follow_up]
            return reply["conversation"], kept["title"]

    with Live(app) as live, ThreadPoolExecutor(clients) as pool:
        kept = list(pool.map(partial(talk, live.url), range(clients)))
        assert len({conversation for conversation, _ in kept}) == clients
        listed = live.send("GET", "/conversations")["conversations"]
        assert {(one["id"], one["title"]) for one in listed} == set(kept)


def test_the_server_starts_over_a_damaged_index_and_says_so(tmp_path: Path) -> None:
    app = hashing_app(tmp_path, LLM="builtin")
    app.library_path.parent.mkdir(parents=True)
    app.library_path.write_bytes(b"no database" * 1000)
    with Live(app) as live, live.client() as client:
        reply = client.get("/papers")
    assert (reply.status_code, "ebuild" in reply.json()["remedy"]) == (500, True)
