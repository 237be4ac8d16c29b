"""GET /events: what changes in the store, by whomever, is sent to every page that is open."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from folio.schema.web import HelloEvent, NotesEvent
from folio.store.tables import Fill
from folio.table.filling import Filler
from folio.web import events
from folio.web.events import MOST_WAITING, Broadcast, Event, StoreWatch
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import pdf_of, write_pdf
from tests.helpers.fakes import HashingApp, hashing_app
from tests.helpers.live_server import Live, until
from tests.helpers.paths import ROOT
from tests.helpers.serve_process import Served
from tests.helpers.table_finder import WordFinder
from tests.helpers.web_client import ask, json_of, papers_by_file, send_request

SLEEP = "How do sea otters sleep?"
Seen = list[tuple[str, dict[str, Any]]]
# Another process that reads the folder of papers into the library
INGEST = """
import sys
from pathlib import Path
from folio.system import workers
from tests.helpers.fakes import hashing_app, read_here
workers.run_guarded = read_here
hashing_app(Path(sys.argv[1]), CHUNK_SIZE=300, CHUNK_OVERLAP=50).run()
"""


@pytest.fixture
def live(app: HashingApp) -> Iterator[Live]:
    with Live(app) as running:
        yield running


@contextmanager
def listening(port: int) -> Iterator[Seen]:
    """The events that a page gets, from its `hello` on."""
    seen: Seen = []

    def read() -> None:
        kind = ""
        for line in lines:
            if line.startswith("event: "):
                kind = line.removeprefix("event: ").strip()
            elif line.startswith("data: "):
                seen.append((kind, json.loads(line.removeprefix("data: "))))

    with send_request(port, "/events") as connection, connection.makefile(encoding="utf-8") as lines:
        reader = threading.Thread(target=read)
        reader.start()
        try:
            until(lambda: seen)
            yield seen
        finally:
            with suppress(OSError):  # the server has ended
                connection.shutdown(socket.SHUT_RDWR)
            reader.join()


def of_kind(seen: Seen, kind: str) -> list[dict[str, Any]]:
    return [data for name, data in seen if name == kind]


def test_two_pages_and_their_changes(live: Live) -> None:
    with live.client() as client, listening(live.port) as one, listening(live.port) as two:
        generation = json_of(client.get("/health"))["store"]["generation"]
        assert one == two == [("hello", {"generation": generation})]
        otters = papers_by_file(client)["otters.pdf"]["id"]
        conversation = ask(client, SLEEP, listed=True)["conversation"]
        for seen in (one, two):
            until(lambda seen=seen: of_kind(seen, "conversations"))  # type: ignore[misc]
        before = len(of_kind(two, "conversations"))
        client.patch(f"/conversations/{conversation}", json={"title": "Otters", "pinned": True})
        until(lambda: len(of_kind(two, "conversations")) > before)
        client.delete(f"/conversations/{conversation}")
        until(lambda: of_kind(two, "conversations")[-1]["deleted"])
        client.patch(f"/papers/{otters}", json={"year": 2014})
        until(lambda: of_kind(two, "papers"))
        bees = pdf_of(("Bees dance to tell where flowers are. They do it in the hive.",))
        sent = client.post("/uploads?name=bees.pdf", content=bees, headers={"Content-Type": "application/pdf"})
        assert sent.status_code == 202
        until(lambda: {"waiting": 0, "running": 0, "done": 1} in of_kind(two, "uploads"))
        client.delete(f"/papers/{otters}")
        until(lambda: of_kind(two, "papers")[-1]["removed"])
        until(lambda: one == two)
    *changed, deleted = of_kind(one, "conversations")
    assert len(changed) >= 2  # one more where a look came between the question and its answer
    assert all(each == {"changed": [conversation], "deleted": []} for each in changed)
    assert deleted == {"changed": [], "deleted": [conversation]}
    edited, *_, removed = of_kind(one, "papers")
    assert edited == {"added": [], "changed": [otters], "removed": [], "generation": generation}
    assert (removed["removed"], removed["generation"] > generation) == ([otters], True)


def test_a_table_and_its_cells_are_announced(
    app: HashingApp, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HashingApp, "cell_finder", lambda self, library: WordFinder(library))
    with live.client() as client, listening(live.port) as seen:
        table = json_of(client.post("/tables", json={"columns": [{"name": "Kelp"}]}), 201)["id"]
        until(lambda: of_kind(seen, "tables"))
        filler = Filler(app.open_library, app.cell_finder)  # of another program
        filling = filler.begin(Fill(table))
        assert filling is not None
        filler.run(filling)
        until(lambda: len(of_kind(seen, "tables")) > 1)
        client.delete(f"/tables/{table}")
        until(lambda: of_kind(seen, "tables")[-1]["deleted"])
    *changed, deleted = of_kind(seen, "tables")
    assert all(each == {"changed": [table], "deleted": []} for each in changed)
    assert deleted == {"changed": [], "deleted": [table]}


def test_a_single_question_of_a_program_is_no_news(live: Live) -> None:
    with live.client() as client, listening(live.port) as seen:
        once = ask(client, SLEEP)["conversation"]
        listed = ask(client, SLEEP, listed=True)["conversation"]
        until(lambda: of_kind(seen, "conversations"))
        ask(client, "And what do they eat?", conversation=once)
        until(lambda: len(of_kind(seen, "conversations")) == 2)
    assert [each["changed"] for each in of_kind(seen, "conversations")] == [[listed], [once]]


def test_what_comes_and_goes_between_two_looks_is_told(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_S", 3600.0)
    with live.client() as client, listening(live.port) as seen:
        conversation = ask(client, SLEEP, listed=True)["conversation"]
        until(lambda: of_kind(seen, "conversations"))
        client.delete(f"/conversations/{conversation}")
        until(lambda: of_kind(seen, "conversations")[-1]["deleted"] == [conversation])


def test_another_process_is_seen(live: Live, tmp_path: Path) -> None:
    with live.client() as client, listening(live.port) as seen:
        write_pdf(tmp_path / "papers" / "bees.pdf", ["Bees dance to tell where flowers are. They do it in the hive."])
        (tmp_path / "papers" / "torn.pdf").write_bytes(b"no PDF")
        subprocess.run([sys.executable, "-c", INGEST, str(tmp_path)], check=True, cwd=ROOT)
        done = time.monotonic()
        until(lambda: of_kind(seen, "papers") and of_kind(seen, "failures"))
        assert time.monotonic() - done < 10
        (bees,) = {id for each in of_kind(seen, "papers") for id in each["added"]}
        assert papers_by_file(client)["bees.pdf"]["id"] == bees
        assert of_kind(seen, "failures")[0] == {}


def test_a_first_library_says_hello(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    with (
        Live(hashing_app(tmp_path, LLM="builtin", CHUNK_SIZE=300, CHUNK_OVERLAP=50)) as live,
        listening(live.port) as seen,
    ):
        assert seen == [("hello", {"generation": 0})]
        write_pdf(tmp_path / "papers" / "bees.pdf", ["Bees dance to tell where flowers are. They do it in the hive."])
        subprocess.run([sys.executable, "-c", INGEST, str(tmp_path)], check=True, cwd=ROOT)
        until(lambda: len(of_kind(seen, "hello")) == 2 or of_kind(seen, "papers"))


def test_a_page_that_stops_reading_delays_no_other(live: Live) -> None:
    stuck = send_request(live.port, "/events")
    with live.client() as client, listening(live.port) as seen:
        conversation = ask(client, SLEEP, listed=True)["conversation"]
        until(lambda: of_kind(seen, "conversations"))
        client.delete(f"/conversations/{conversation}")
        until(lambda: len(of_kind(seen, "conversations")) == 2)
    stuck.close()


@pytest.mark.slow
def test_a_server_with_20_pages_stops_at_once(desk: CliRunner) -> None:
    with Served(desk) as served, ExitStack() as pages:
        for _ in range(20):
            pages.enter_context(listening(served.port))
        assert served.interrupt() in (0, 130)
        assert served.err == ""  # no answer was cut off, and no error was logged


class CountedWatch(StoreWatch):
    """Sees a change of the notes at each look but the first."""

    def __init__(self) -> None:
        self.looks = 0

    def forget(self) -> None:
        """There is nothing to forget."""

    def hello(self) -> Event:
        return "hello", HelloEvent(generation=self.looks)

    def look(self) -> list[Event]:
        self.looks += 1
        return [("notes", NotesEvent())] if self.looks > 1 else []


def test_a_page_that_lags_loads_everything_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_S", 0.0)
    watch = CountedWatch()

    async def kinds() -> tuple[list[str], list[str]]:
        broadcast = Broadcast(watch)
        slow, fast = broadcast.listen(), broadcast.listen()
        first = [(await anext(each))["event"] for each in (slow, fast)]
        kept = [(await anext(fast))["event"] for _ in range(MOST_WAITING + 5)]
        late = [(await anext(slow))["event"]]
        await slow.aclose()  # type: ignore[attr-defined]
        await fast.aclose()  # type: ignore[attr-defined]
        await broadcast.close()
        return [*first, *late], kept

    slow, fast = asyncio.run(kinds())
    assert slow == ["hello", "hello", "hello"]
    assert fast == ["notes"] * (MOST_WAITING + 5)


def test_nobody_looks_while_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_S", 0.01)
    watch = CountedWatch()

    async def looks() -> list[int]:
        broadcast, counts = Broadcast(watch), [watch.looks]
        for _ in range(2):
            page = broadcast.listen()
            assert (await anext(page))["event"] == "hello"
            await anext(page)
            await page.aclose()  # type: ignore[attr-defined]
            await asyncio.sleep(0.1)
            counts.append(watch.looks)
            await asyncio.sleep(0.1)
            counts.append(watch.looks)
        return counts

    before, one, still_one, two, still_two = asyncio.run(looks())
    assert before < one == still_one < two == still_two


def test_listeners_leave_connections_for_others(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_LISTENERS", 2)
    with live.client() as client, listening(live.port), listening(live.port):
        reply = client.get("/events")
        assert reply.status_code == 503
        assert reply.json()["error"] == "2 pages of Folio are open, as many as this server tells of changes."
        assert reply.headers["Retry-After"].isdecimal()
        json_of(client.get("/health"))


def test_listeners_that_come_at_once_are_not_more_than_there_is_room_for(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_LISTENERS", 3)
    request = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\nConnection: close\r\n\r\n".encode()
    with ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection(("127.0.0.1", live.port), timeout=60)) for _ in range(40)
        ]
        for connection in connections:
            connection.sendall(request)
        replies = [_received(connection) for connection in connections]
    assert sum(b"event: hello" in reply for reply in replies) == 3
    assert all(reply.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 503 ")) for reply in replies)


def _received(connection: socket.socket) -> bytes:
    """What a server sends until the hello, or the end."""
    received = b""
    with suppress(TimeoutError):
        while b"event: hello" not in received and (data := connection.recv(65536)):
            received += data
    return received
