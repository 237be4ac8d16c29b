"""A reverse proxy on the loopback that has a server under a path of its own, and takes that path off, as Caddy does."""

from __future__ import annotations

import socket
import threading
from contextlib import AsyncExitStack, suppress

import httpx
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.helpers.live_server import HTTP_ONLY, LIMIT_S

_OF_CONNECTION = frozenset({b"connection", b"keep-alive", b"transfer-encoding"})  # not of what is passed on


class PathProxy:
    """Listens at once, as a server must know its address before it starts; passes on from `forward_to` on."""

    def __init__(self, path: str) -> None:
        """path: such as "/folio"."""
        self.path = path
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}{path}"
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def forward_to(self, url: str) -> None:
        self._server = uvicorn.Server(uvicorn.Config(_forwarder(self.path, url), log_level="critical", ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()

    def close(self) -> None:
        if self._server and self._thread:
            self._server.force_exit = self._server.should_exit = True
            self._thread.join(LIMIT_S)
        self._socket.close()


def _forwarder(path: str, url: str) -> ASGIApp:
    async def forward(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if not scope["path"].startswith(f"{path}/"):
            await send({"type": "http.response.start", "status": 502, "headers": []})
            await send({"type": "http.response.body", "body": b"nothing of Folio's is here"})
            return

        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), bool(message.get("more_body"))
        target = httpx.URL(url + scope["path"][len(path) :], query=scope["query_string"])
        headers = [(name, value) for name, value in scope["headers"] if name not in _OF_CONNECTION]
        async with AsyncExitStack() as ended:
            ended.enter_context(suppress(httpx.RemoteProtocolError))  # the server has ended meanwhile
            client = await ended.enter_async_context(httpx.AsyncClient(timeout=LIMIT_S, **HTTP_ONLY))
            sent = client.stream(scope["method"], target, headers=headers, content=body)
            reply = await ended.enter_async_context(sent)
            kept = [(name, value) for name, value in reply.headers.raw if name.lower() not in _OF_CONNECTION]
            await send({"type": "http.response.start", "status": reply.status_code, "headers": kept})
            async for part in reply.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    return forward
