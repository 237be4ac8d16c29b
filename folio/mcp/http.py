"""The server over streamable HTTP: an ASGI application for one address of the web server, which guards it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from folio.mcp.tools import Backend

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

logger = logging.getLogger(__name__)

MOST_SESSIONS = 100
IDLE_S = 1800  # without a request, until a session ends
MOST_BYTES = 2**22  # of a request


class Endpoint:
    """Starts with the first request: the SDK's import would delay the page by a second."""

    def __init__(self, make_backend: Callable[[], Backend]) -> None:
        self._make_backend = make_backend
        self._running: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._manager))
        manager = await asyncio.shield(self._manager)
        await manager.handle_request(scope, receive, send)

    async def _run(self, started: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Serve until `close`."""
        try:
            await asyncio.to_thread(import_module, "folio.mcp.server")  # for a second, in which others are served
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

            from folio.mcp.server import make_server, stopping

            server, requests = make_server(self._make_backend())
            manager = StreamableHTTPSessionManager(
                server, max_sessions=MOST_SESSIONS, session_idle_timeout=IDLE_S, max_request_body_size=MOST_BYTES
            )
            async with stopping(requests), manager.run():
                started.set_result(manager)
                await self._stop.wait()
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            raise

    async def close(self) -> None:
        """End all sessions. Their work is told to stop."""
        self._stop.set()
        if self._running is not None:
            await asyncio.wait([self._running])
            if not self._running.cancelled() and (error := self._running.exception()):
                logger.error("The server of assistants failed: %s", error, exc_info=error)
