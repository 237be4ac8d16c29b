"""An httpx transport whose requests can be cancelled while the server is silent.

A model may load for minutes before its first word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ssl import SSLContext
from time import monotonic
from typing import Any

import httpcore

from folio.models.ollama import tls_context
from folio.pooled_transport import PooledTransport

POLL_S = 0.25  # between two calls of check_cancelled while nothing arrives


class CancellableTransport(PooledTransport):
    """Sends each request over a connection of its own, without proxies, and can be cancelled while it reads."""

    def __init__(self, check_cancelled: Callable[[], None]) -> None:
        """check_cancelled: called before every read, and every POLL_S seconds while nothing arrives.

        An exception that it raises ends the request and closes the connection.
        """
        super().__init__(tls_context(), _Backend(check_cancelled))


class _Backend(httpcore.SyncBackend):
    def __init__(self, check_cancelled: Callable[[], None]) -> None:
        self._check_cancelled = check_cancelled

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _Stream(super().connect_tcp(host, port, timeout, local_address, socket_options), self._check_cancelled)


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
