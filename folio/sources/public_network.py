"""Connections to public addresses alone: a host's name is resolved once, checked, and the connection made to that.

A name that stands for an address of a private network is refused, whatever it stands for a moment later.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from ssl import SSLContext
from time import monotonic
from typing import Any

import httpcore

from folio.errors import SourceError

# host, port -> IP addresses
Resolve = Callable[[str, int], list[str]]


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system knows them. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class PublicBackend(httpcore.SyncBackend):
    """Connects to the addresses that `may_connect` allows, and ends what lasts beyond the deadline."""

    def __init__(
        self,
        may_connect: Callable[[str, int, str], bool],
        resolve: Resolve = resolve,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        """may_connect: whether a host at a port may be reached at an IP address. check_cancelled: called before each
        read and write; raises to end them."""
        self._may_connect = may_connect
        self._resolve = resolve
        self._check_cancelled = check_cancelled
        self._deadline = float("inf")

    def limit(self, seconds: float) -> None:
        """Let what follows last so many seconds altogether."""
        self._deadline = monotonic() + seconds

    def seconds_left(self, timeout: float | None) -> float:
        """The part of a timeout that the deadline leaves."""
        self._check_cancelled()
        left = self._deadline - monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("it took too long")
        return left if timeout is None else min(timeout, left)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"the name {host} is not known") from error
        if not all(self._may_connect(host, port, address) for address in addresses):
            raise SourceError(f"Not asked: {host} is in a private network.", "Nothing was sent there.")
        failed: Exception = httpcore.ConnectError(f"the name {host} is not known")
        for address in addresses:
            try:
                stream = super().connect_tcp(address, port, self.seconds_left(timeout), local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(stream, self.seconds_left)
        raise failed


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, seconds_left: Callable[[float | None], float]) -> None:
        self._stream = stream
        self._seconds_left = seconds_left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._seconds_left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._seconds_left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(
            self._stream.start_tls(ssl_context, server_hostname, self._seconds_left(timeout)), self._seconds_left
        )

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
