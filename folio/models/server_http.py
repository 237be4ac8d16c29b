"""The httpx transport for all requests to model servers: cancellable while one is silent, with bounded replies.

A model may load for minutes before its first word. Any program may listen on a server's port, so no reply may need
unlimited memory. Reading can be cancelled; connecting and writing cannot.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from ssl import SSLContext
from time import monotonic
from typing import Any

import httpcore
import httpx

from folio.models.server_errors import OLLAMA, ServerWords, not_a_server
from folio.system.transport import PooledTransport

POLL_S = 0.25  # between two calls of check_cancelled while nothing arrives
# Bytes, many times those of a real server: 0.4 kB for a piece of an answer (some kB with log probabilities), 57 kB for
# a vector of 4,096 numbers, 0.7 kB for each model of a list
MAX_LINE = 2**20  # of a stream
MAX_BODY = 2**22  # lists, descriptions, errors
MAX_VECTOR = 2**18  # for each text of a request to embed
MAX_STREAM = 2**23  # an answer: 40,000 pieces


class CancellableTransport(PooledTransport):
    """Sends each request over its own connection, without proxies. Reading can be cancelled.

    A reply that is larger than a real one raises ModelServerError while it arrives, and so does a compressed reply,
    which could become any size.
    """

    def __init__(self, check_cancelled: Callable[[], None], words: ServerWords = OLLAMA) -> None:
        """check_cancelled: called before every read, and every POLL_S seconds while nothing arrives.

        An exception that it raises ends the request and closes the connection.
        """
        super().__init__(_Backend(check_cancelled))
        self._words = words

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["Accept-Encoding"] = "identity"
        response = super().handle_request(request)
        try:
            _bound(request, response, self._words)
        except BaseException:
            response.close()
            raise
        return response


def _bound(request: httpx.Request, response: httpx.Response, words: ServerWords) -> None:
    """Make the body of a response raise ModelServerError when it is too large. Raises it for a compressed one."""
    server = f"{request.url.scheme}://{request.url.netloc.decode()}"
    if response.headers.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
        raise not_a_server("a compressed reply, which was not requested", server, words)
    # JSON is UTF-8. Otherwise httpx would decode the text with any of Python's codecs that the server names.
    response.headers.pop("Content-Type", None)
    assert isinstance(response.stream, httpx.SyncByteStream)
    longest_line, longest = _limits(request) if response.is_success else (math.inf, MAX_BODY)
    response.stream = _BoundedBody(response.stream, longest_line, longest, server, words)


def _limits(request: httpx.Request) -> tuple[float, float]:
    """The most bytes of a line and of the whole body in the reply to a request."""
    path = request.url.path
    if path.endswith(("/api/chat", "/chat/completions")):
        return MAX_LINE, MAX_STREAM
    if path.endswith("/api/pull"):  # may take a day; lines are not kept
        return MAX_LINE, math.inf
    if path.endswith(("/api/embed", "/embeddings")):
        texts = json.loads(request.read())["input"]
        return math.inf, MAX_BODY + MAX_VECTOR * (1 if isinstance(texts, str) else len(texts))
    return math.inf, MAX_BODY


class _BoundedBody(httpx.SyncByteStream):
    """A body that raises ModelServerError when a line or the whole is too long. Lengths in bytes."""

    def __init__(
        self, body: httpx.SyncByteStream, longest_line: float, longest: float, server: str, words: ServerWords
    ) -> None:
        self._body, self._longest_line, self._longest = body, longest_line, longest
        self._server, self._words = server, words

    def __iter__(self) -> Iterator[bytes]:
        total = line = 0
        for chunk in self._body:
            total += len(chunk)
            last = chunk.rfind(b"\n") + 1  # where the last line of the chunk begins
            line = len(chunk) - last + (0 if last else line)
            if line > self._longest_line:
                raise not_a_server(f"a line of more than {MAX_LINE // 2**20} MB", self._server, self._words)
            if total > self._longest:
                raise not_a_server(f"a reply of more than {int(self._longest) // 2**20} MB", self._server, self._words)
            yield chunk

    def close(self) -> None:
        self._body.close()


class _Backend(httpcore.SyncBackend):
    def __init__(self, check_cancelled: Callable[[], None]) -> None:
        self._check_cancelled = check_cancelled

    def connect_tcp(self, *arguments: Any, **options: Any) -> httpcore.NetworkStream:
        return _Stream(super().connect_tcp(*arguments, **options), self._check_cancelled)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, check_cancelled: Callable[[], None]) -> None:
        self._stream = stream
        self._check_cancelled = check_cancelled

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        end = float("inf") if timeout is None else monotonic() + timeout
        while True:
            self._check_cancelled()
            try:
                return self._stream.read(max_bytes, min(POLL_S, max(0.001, end - monotonic())))
            except httpcore.ReadTimeout:
                if monotonic() >= end:
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._check_cancelled)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
