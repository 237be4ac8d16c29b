"""An httpx transport with its own network backend, which httpx.HTTPTransport does not accept.

It wraps an httpcore.ConnectionPool. A backend sees every connection and every read: one cancels a silent request,
another connects only to checked addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from ssl import SSLContext

import httpcore
import httpx

from folio.system.network import without_client_settings


@cache
def _tls_context() -> SSLContext:
    """The certificates for https, cached because reading them takes 0.1 s."""
    with without_client_settings():
        return httpx.create_ssl_context(trust_env=False)


class PooledTransport(httpx.BaseTransport):
    """Sends each request over a connection of its own, without proxies."""

    def __init__(self, network_backend: httpcore.NetworkBackend) -> None:
        self._connections = httpcore.ConnectionPool(
            ssl_context=_tls_context(), max_keepalive_connections=0, network_backend=network_backend
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        url = request.url
        with _httpx_errors():
            response = self._connections.handle_request(
                httpcore.Request(
                    request.method,
                    httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response), extensions=response.extensions
        )

    def close(self) -> None:
        self._connections.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with _httpx_errors():
            yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Raise httpcore's errors as httpx's errors of the same names."""
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.ProxyError,
        httpcore.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error
