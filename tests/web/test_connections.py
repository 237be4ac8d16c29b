"""Connections over real sockets: requests that are no HTTP, and more connections than the server takes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from folio.web.server import CONNECTIONS, make_config
from tests.helpers.live_server import LIMIT_S, until

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


async def length_of_body(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that answers with the last digit of the length of the body."""
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message["body"])
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": str(length % 10).encode()})


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    config = make_config(length_of_body)
    config.lifespan = "off"
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=2 * CONNECTIONS) as listening:
        thread = threading.Thread(target=asyncio.run, args=(server.serve(sockets=[listening]),))
        thread.start()
        until(lambda: server.started)
        yield listening.getsockname()[:2]
        server.should_exit = True
        thread.join(LIMIT_S)
    assert not thread.is_alive()


def response_to(address: tuple[str, int], request: bytes) -> bytes:
    """What the server sends until it ends the connection."""
    pieces = []
    with socket.create_connection(address, timeout=LIMIT_S) as client, suppress(ConnectionResetError):
        with suppress(OSError):  # the server may end the connection before it has read everything
            client.sendall(request)
        while piece := client.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200_000,
        b"GET /" + b"x" * 1_000_000,
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nnot a length\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 200_000,
    ],
    ids=["headers", "address", "no HTTP", "TLS", "length", "chunk", "chunk's length"],
)
def test_unreadable_requests_are_refused_and_the_next_is_served(
    address: tuple[str, int], request_: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not response_to(address, request_).startswith(b"HTTP/1.1 200")
    assert response_to(address, HEAD + b"Content-Length: 2\r\n\r\nab").endswith(b"\r\n\r\n2")
    assert "Traceback" not in capfd.readouterr().err


def test_too_many_connections_are_refused_until_some_end(address: tuple[str, int]) -> None:
    with ExitStack() as stack:
        for _ in range(CONNECTIONS + 1):
            stack.enter_context(socket.create_connection(address, timeout=LIMIT_S))
        until(lambda: response_to(address, HEAD + b"\r\n").startswith(b"HTTP/1.1 503"))
    until(lambda: response_to(address, HEAD + b"\r\n").startswith(b"HTTP/1.1 200"))
