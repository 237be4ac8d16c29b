"""A PostgreSQL server that restarts, is away for longer, or whose connections are cut again and again."""

from __future__ import annotations

import math
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from fastapi.testclient import TestClient

from folio.errors import StoreAway, StoreError
from folio.ingest.discovery import Outcome
from folio.shared import postgres as engine
from folio.store.query_log import QueryLog
from folio.system import workers
from folio.web.api import make_web
from folio.web.guard import AccessRules
from tests.helpers.adder import add_numbered, open_library
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingApp, read_once
from tests.helpers.libraries import ENTRY
from tests.helpers.paths import ROOT
from tests.helpers.postgres import PostgresServer, running_server
from tests.helpers.shared_writer import shared_app
from tests.helpers.tcp_proxy import TcpProxy
from tests.shared.test_several_writers import make_papers

T = TypeVar("T")
LENGTH = "How long is the Aletsch glacier?"
# Seconds that the server is away in these tests, longer than the time that most of them let Folio wait
AWAY_S = 1.5


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as started:
        yield started


@pytest.fixture
def own_url(server: PostgresServer) -> str:
    return server.url(server.new_database())


def while_away(server: PostgresServer, do: Callable[[], T], seconds: float = AWAY_S) -> T:
    """The result of `do`, which begins while the server is killed and is not there again before so many seconds."""
    server.kill()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(do)
        time.sleep(seconds)
        server.start()  # in this thread: the server ends with the thread that started it
        return running.result()


@pytest.fixture
def app(tmp_path: Path, own_url: str, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    """The tool over a shared library of two papers."""
    monkeypatch.setattr(workers, "run_guarded", read_once)
    small_papers(tmp_path / "papers")
    made = shared_app(tmp_path, tmp_path / "store", own_url, RERANKER="builtin")
    made.run()
    return made


def client_of(app: HashingApp) -> TestClient:
    return TestClient(make_web(app, AccessRules("127.0.0.1", 8420)), base_url="http://127.0.0.1:8420")


def test_a_request_while_the_server_restarts_is_answered(app: HashingApp, server: PostgresServer) -> None:
    with client_of(app) as client:
        for ask in (
            lambda: client.get("/papers"),
            lambda: client.post("/search", json={"query": LENGTH}),
            lambda: client.post("/chat", json={"message": LENGTH}),
            lambda: client.get("/conversations"),
        ):
            reply = while_away(server, ask)
            assert reply.status_code == 200, reply.text


def test_commands_wait_for_a_server_that_restarts(desk: CliRunner, server: PostgresServer, own_url: str) -> None:
    small_papers(desk.papers)
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "STORE": "postgres", "DATABASE_URL": own_url}
    assert desk.ingest().code == 0
    asked = while_away(server, lambda: desk.query(LENGTH))
    assert asked.code == 0
    assert asked.err.startswith("Waiting for the database ")
    assert while_away(server, desk.ingest).code == 0


def test_a_server_that_stays_away_is_503_and_says_when_to_ask_again(
    app: HashingApp, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RETRY_S", 0.5)
    paper = "0" * 64
    with client_of(app) as client:
        server.kill()
        try:
            began = time.monotonic()
            for reply in (
                client.get("/papers"),
                client.get(f"/papers/{paper}"),
                client.post("/search", json={"query": LENGTH}),
                client.post("/chat", json={"message": LENGTH}),
                client.post("/chat/stream", json={"message": LENGTH}),
                client.post("/feedback", json={"conversation": "a" * 22, "turn": 1, "feedback": "good"}),
                client.patch(f"/papers/{paper}", json={"title": "New"}),
                client.get("/conversations"),
                client.get("/health"),
                client.post("/notes", json={"quotes": [], "text": "x"}),
            ):
                assert reply.status_code in (503, 422), reply.text
                if reply.status_code == 503:
                    assert reply.headers["Retry-After"].isdecimal()
                    assert set(reply.json()) == {"error", "remedy"}
            assert time.monotonic() - began < 5  # not all wait for a server that is known to be away
        finally:
            server.start()
        assert client.get("/papers").status_code == 200


def test_a_lasting_failure_is_not_waited_for(server: PostgresServer) -> None:
    for url in (server.url("no_such_database"), server.url("postgres", "nobody_known")):
        began = time.monotonic()
        with pytest.raises(StoreError, match="does not exist") as refused:
            open_library(url)
        assert "cannot be used now" in refused.value.happened
        assert time.monotonic() - began < 2


def test_a_server_that_never_replies_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt takes longer than two failures of one outage are apart."""
    for name, seconds in (("RETRY_S", 1.0), ("CONNECT_S", 2), ("_SAME_S", 0.5)):
        monkeypatch.setattr(engine, name, seconds)
    refused: list[StoreError] = []

    def open_it() -> None:
        try:
            open_library(f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/papers?sslmode=disable")
        except StoreError as error:
            refused.append(error)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        thread = threading.Thread(target=open_it, daemon=True)
        thread.start()
        thread.join(15)
    assert [type(error) for error in refused] == [StoreAway]


# An ingest


def ingest_of(app: HashingApp) -> tuple[list[Outcome], Callable[[], None]]:
    """The outcomes of an ingest that waits, as the command does, in a thread; and a function that waits for its end."""
    outcomes: list[Outcome] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            outcomes.extend(replace(app, patience_s=math.inf).run())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def finish() -> None:
        thread.join(90)
        assert not thread.is_alive()
        if failures:
            raise failures[0]

    return outcomes, finish


def require_read(app: HashingApp, outcomes: list[Outcome], papers: int) -> None:
    assert sorted(outcome.status for outcome in outcomes if outcome.status != "duplicate") == ["added"] * papers
    with closing(app.open_library()) as library:
        assert len(library.papers()) == papers
        assert library.check() == []
        assert app.backend.index_faults(library) == []


@pytest.mark.parametrize("lines", [1, 3, 5])
def test_an_ingest_waits_as_long_as_its_server_is_away(
    tmp_path: Path, server: PostgresServer, own_url: str, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)
    monkeypatch.setattr(engine, "RETRY_S", 0.3)
    make_papers(tmp_path / "papers")
    told: list[str] = []
    app = replace(shared_app(tmp_path, tmp_path / "store", own_url, pause_s=0.05), notice=told.append)
    open_library(own_url, create=True).close()
    outcomes, finish = ingest_of(app)
    with closing(open_library(own_url)) as library:
        while library.counts()["papers"] < lines:
            time.sleep(0.01)
    while_away(server, lambda: None, 3)
    finish()
    require_read(app, outcomes, 6)
    assert len([line for line in told if line.startswith("Waiting for the database ")]) == 1


def test_an_ingest_that_waits_is_stopped_at_once(desk: CliRunner, server: PostgresServer, own_url: str) -> None:
    make_papers(desk.papers, end=40)
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "STORE": "postgres", "DATABASE_URL": own_url}
    open_library(own_url, create=True).close()
    command = [sys.executable, str(ROOT / "ingest.py"), "--jobs", "1"]
    with subprocess.Popen(
        command, env=desk.environment(), cwd=desk.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        with closing(open_library(own_url)) as library:
            while not library.counts()["papers"]:
                assert process.poll() is None
                time.sleep(0.01)
        server.kill()
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Waiting for the database ")
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
            server.start()
    assert process.returncode == 130
    assert "They are kept; run the same command again to continue." in told


@contextmanager
def cut_every(proxy: TcpProxy, seconds: float) -> Iterator[None]:
    ends = threading.Event()

    def cut() -> None:
        while not ends.wait(seconds):
            proxy.cut()

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[TcpProxy]:
    with closing(TcpProxy(server.port)) as made:
        yield made


def through(proxy: TcpProxy, server: PostgresServer, url: str) -> str:
    return server.url(str(psycopg.conninfo.conninfo_to_dict(url)["dbname"]), port=proxy.port)


def test_an_ingest_ends_although_its_connections_are_cut_again_and_again(
    tmp_path: Path, server: PostgresServer, proxy: TcpProxy, own_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)
    make_papers(tmp_path / "papers")
    app = shared_app(tmp_path, tmp_path / "store", through(proxy, server, own_url), pause_s=0.05)
    with cut_every(proxy, 0.2):
        outcomes, finish = ingest_of(app)
        finish()
    require_read(app, outcomes, 6)


def test_requests_are_answered_although_connections_are_cut_again_and_again(
    app: HashingApp, server: PostgresServer, proxy: TcpProxy, own_url: str, tmp_path: Path
) -> None:
    far = shared_app(tmp_path, tmp_path / "far", through(proxy, server, own_url), RERANKER="builtin")
    with client_of(far) as client, cut_every(proxy, 0.1):
        (paper, _) = [each["id"] for each in client.get("/papers").json()["papers"]]
        for _ in range(6):
            replies = [client.get(path) for path in ("/papers", f"/papers/{paper}", "/conversations", "/health")]
            replies.append(client.post("/search", json={"query": LENGTH}))
            replies.append(client.post("/chat", json={"message": LENGTH, "listed": True}))
            assert [reply.status_code for reply in replies] == [200] * len(replies)
            assert replies[-1].json()["notice"].count("could not be saved") == 0
        assert len(client.get("/conversations").json()["conversations"]) == 6


def test_what_always_takes_longer_than_a_connection_lasts_ends_with_a_sentence(
    server: PostgresServer, proxy: TcpProxy, own_url: str
) -> None:
    url = through(proxy, server, own_url)
    with closing(open_library(url, create=True)) as library:
        database = library.database
        assert isinstance(database, engine.PostgresDatabase)

        def work() -> None:
            with database.transaction():
                database.query("SELECT pg_sleep(0.3)")

        with cut_every(proxy, 0.1):
            for do in (lambda: database.repeat(work), lambda: database.query("SELECT pg_sleep(0.3)")):
                with pytest.raises(StoreAway, match="was lost 20 times in a row"):
                    do()
        add_numbered(library, 1)
        assert library.check() == []


def test_what_is_written_under_cuts_is_written_once(server: PostgresServer, proxy: TcpProxy, own_url: str) -> None:
    with closing(open_library(through(proxy, server, own_url), create=True)) as library:
        with cut_every(proxy, 0.12):
            for number in range(60):
                add_numbered(library, number)
        with closing(open_library(own_url)) as other:
            assert len(other.papers()) == 60
            assert other.check() == []
            assert QueryLog(other.database).add(ENTRY) == 1
