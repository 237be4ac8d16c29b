"""Connections that hold the server: silent, slow, many, or with heads that are too long; and events of a request."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal, Self, cast

import pytest
import uvicorn
from anyio import CapacityLimiter

from folio.web.api import make_web
from folio.web.connections import BoundedProtocol, ConnectionLimits
from folio.web.request_guard import ALWAYS, AccessRules, ASGIApp, Receive, Scope, Send
from folio.web.schema import SavedEvent
from folio.web.server import make_config
from folio.web.sse import EventStream, RequestThreads
from tests.helpers.fakes import hashing_app
from tests.helpers.live_server import LIMIT_S, until

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PART = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
PATIENT = ConnectionLimits()
# A fifth of a second: a computer that is busy makes these end later, never sooner.
IMPATIENT = ConnectionLimits(head_s=0.2, window_s=0.2, min_bytes_per_s=10_000)


class Server:
    """An app behind the server's protocol, in a thread."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits, lifespan: Literal["on", "off"] = "off") -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        config = make_config(app, limits)
        config.lifespan = lifespan
        self.uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.uvicorn.run, kwargs={"sockets": [self._listening]})

    def __enter__(self) -> Self:
        self._thread.start()
        until(lambda: self.uvicorn.started)
        return self

    def __exit__(self, *_: object) -> None:
        self.uvicorn.should_exit = True
        self._thread.join(LIMIT_S)
        self._listening.close()
        assert not self._thread.is_alive()

    def connect(self) -> socket.socket:
        return socket.create_connection(self._listening.getsockname()[:2], timeout=LIMIT_S)

    def windows(self) -> int:
        """The number of windows that have passed for the only connection."""
        (protocol,) = self.uvicorn.server_state.connections
        return cast("BoundedProtocol", protocol).windows


class Echo:
    """An app that reads the body, unless told not to, and answers with it, `pieces` times. It waits for `begins`."""

    def __init__(self) -> None:
        self.pieces = 1
        self.reads = True
        self.begins: threading.Event | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while self.begins and not self.begins.is_set():
            await asyncio.sleep(0.01)
        body, more = bytearray(), self.reads
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"transfer-encoding", b"chunked")]})
        for _ in range(self.pieces):
            await send({"type": "http.response.body", "body": bytes(body) or b"empty", "more_body": True})
        await send({"type": "http.response.body", "body": b""})


Serve = Callable[[ConnectionLimits], Server]


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def serve(echo: Echo) -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda limits: stack.enter_context(Server(echo, limits))


def rest(connection: socket.socket) -> bytes:
    """What the server sends until it ends the connection."""
    pieces = []
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


def send_until_ended(connection: socket.socket, piece: bytes) -> bytes:
    """Sends a piece every few milliseconds until the server ends the connection; what the server sent."""
    connection.settimeout(0.02)
    received = b""
    for _ in range(LIMIT_S * 50):
        try:
            connection.sendall(piece)
            if not (got := connection.recv(65536)):
                return received
            received += got
        except TimeoutError:
            continue
        except OSError:
            return received
    raise AssertionError("it never ended")


def status(response: bytes) -> int:
    """The status of a response. An error has the usual form."""
    head, _, body = response.partition(b"\r\n\r\n")
    found = int(head.split()[1])
    if found >= 400:
        assert list(json.loads(body)) == ["error", "remedy"]
        assert all(f"{name}: {value}".encode() in head for name, value in ALWAYS.items())
        assert b"connection: close" in head
    return found


# Time


def test_a_silent_connection_is_ended(serve: Serve) -> None:
    with serve(IMPATIENT).connect() as silent:
        assert rest(silent) == b""


@pytest.mark.parametrize(
    ("before", "piece"),
    [
        (HEAD, b"X: y\r\n"),
        (WHOLE + HEAD, b"X: y\r\n"),
        (HEAD + b"Content-Length: 1000000\r\n\r\n", b"1\r\nx\r\n"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["the first head", "the second head", "a body", "a chunked body"],
)
def test_a_request_that_drips_is_ended(serve: Serve, before: bytes, piece: bytes) -> None:
    with serve(IMPATIENT).connect() as slow:
        slow.sendall(before)
        received = send_until_ended(slow, piece)
    assert status(received[received.rindex(b"HTTP/1.1") :]) == 408


def test_a_body_that_comes_steadily_is_read_for_many_windows(serve: Serve) -> None:
    server = serve(IMPATIENT)
    with server.connect() as client:
        client.sendall(HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        until(lambda: server.uvicorn.server_state.tasks)
        while server.windows() < 3:
            client.sendall(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
            time.sleep(0.002)
        client.sendall(b"0\r\n\r\n")
        assert status(rest(client)) == 200


def test_a_client_waiting_for_the_app_is_not_ended(serve: Serve, echo: Echo) -> None:
    echo.begins = threading.Event()
    server = serve(IMPATIENT)
    with server.connect() as client:
        client.sendall(HEAD + b"Connection: close\r\nContent-Length: 100000\r\n\r\n" + b"x" * 99_999)
        until(lambda: server.uvicorn.server_state.tasks and server.windows() >= 3)
        client.sendall(b"x")
        echo.begins.set()
        assert status(rest(client)) == 200


def test_a_body_that_nobody_reads_is_ended_after_the_response(serve: Serve, echo: Echo) -> None:
    echo.reads = False
    with serve(IMPATIENT).connect() as client:
        client.sendall(HEAD + b"Content-Length: 1000000000000\r\n\r\n")
        assert status(send_until_ended(client, b"x" * 10_000)) == 200


def test_a_client_that_does_not_read_its_response_is_ended(serve: Serve, echo: Echo) -> None:
    echo.pieces = 100
    server = serve(IMPATIENT)
    with server.connect() as client:
        client.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1_000_000)
        until(lambda: server.uvicorn.server_state.tasks)
        until(lambda: not server.uvicorn.server_state.connections)
        assert len(rest(client)) < 90_000_000


def test_an_upload_or_a_question_that_stops_is_ended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    web = make_web(hashing_app(tmp_path, LLM="builtin", RERANKER="builtin"), AccessRules("127.0.0.1", 80))
    head = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: 9000000\r\n\r\n"
    form = head % (b"/papers", b"multipart/form-data; boundary=b") + PART
    question = head % (b"/chat", b"application/json")
    queued = head % (b"/uploads", b"application/pdf") + b"%PDF-1.7" + b"x" * 3_000_000
    starts = (question, question + b'{"message": "', form, form + b"%PDF-1.7" + b"x" * 3_000_000, queued)
    with Server(web, IMPATIENT, "on") as server:
        for start in starts:
            with server.connect() as client:
                client.sendall(start)
                assert status(rest(client)) == 408
        until(lambda: not server.uvicorn.server_state.tasks)
    assert capfd.readouterr().err == ""
    assert [*tmp_path.rglob("*.pdf"), *tmp_path.rglob("*.part")] == []


# Number


def test_idle_connections_do_not_keep_others_out(serve: Serve) -> None:
    server = serve(ConnectionLimits(connections=20))
    with ExitStack() as stack:
        idle = [stack.enter_context(server.connect()) for _ in range(90)]
        for connection in idle[::2]:
            send_all(connection, HEAD)
        with server.connect() as client:
            client.sendall(WHOLE)
            assert status(client.recv(65536)) == 200
        assert len(server.uvicorn.server_state.connections) <= 20
        assert rest(idle[0]) == b""


def test_connections_at_work_are_not_ended_for_others(serve: Serve) -> None:
    server = serve(ConnectionLimits(connections=2))
    with server.connect() as first, server.connect() as second:
        for client in (first, second):
            client.sendall(HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\nx")
        until(lambda: len(server.uvicorn.server_state.tasks) == 2)
        with server.connect() as third:
            assert status(rest(third)) == 503
        for client in (first, second):
            client.sendall(b"x")
            assert status(rest(client)) == 200


# Heads and bodies that cannot be read


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200_000, 431),
        (b"GET /" + b"x" * 1_000_000, 431),
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nnot a length\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 200_000, 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 200_000, 400),
    ],
    ids=["headers", "address", "no HTTP", "TLS", "length", "chunk", "chunk's length", "chunk's extension"],
)
def test_what_cannot_be_read_is_refused(
    serve: Serve, request_: bytes, expected: int, capfd: pytest.CaptureFixture[str]
) -> None:
    server = serve(PATIENT)
    with server.connect() as client:
        sending = threading.Thread(target=send_all, args=(client, request_))
        sending.start()
        assert status(rest(client)) == expected
        sending.join()
    until(lambda: not server.uvicorn.server_state.tasks)
    assert capfd.readouterr().err == ""


def test_an_unreadable_rest_of_a_body_ends_the_connection(
    serve: Serve, echo: Echo, capfd: pytest.CaptureFixture[str]
) -> None:
    echo.reads = False
    with serve(PATIENT).connect() as client:
        client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        received = client.recv(65536)
        client.sendall(b"not a length\r\n")
        assert status(received + rest(client)) == 200
    assert capfd.readouterr().err == ""


def send_all(connection: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # the server has ended it
        connection.sendall(data)


# Events of a request


def events_of(work: Callable[[EventStream], None]) -> list[str]:
    """The kinds of events that a client gets of a request with this work."""

    async def read() -> list[str]:
        stream = EventStream(RequestThreads())
        return [sent["event"] async for sent in stream.run(lambda: work(stream), CapacityLimiter(1))]

    return asyncio.run(read())


def ends_after_its_client_left(stream: EventStream) -> None:
    stream.cancel()
    stream.send("done", SavedEvent(file="a.pdf"))  # goes nowhere


def fails(_: EventStream) -> None:
    raise RuntimeError("a bug with a name")


@pytest.mark.parametrize(
    ("work", "sent", "logged"),
    [
        (ends_after_its_client_left, [], []),
        (fails, ["error"], ["A request failed: RuntimeError: a bug with a name"]),
        (lambda _: None, ["error"], ["A request failed: its work ended without a result."]),
    ],
    ids=["the client left", "a bug", "no result"],
)
def test_a_failed_request_is_logged_with_its_reason(
    caplog: pytest.LogCaptureFixture, work: Callable[[EventStream], None], sent: list[str], logged: list[str]
) -> None:
    with caplog.at_level(logging.ERROR, "folio.web.sse"):
        assert events_of(work) == sent
    assert [record.getMessage() for record in caplog.records] == logged
