"""The server's socket, the loop that serves until Ctrl-C, and a prompt exit afterwards."""

from __future__ import annotations

import errno
import logging
import signal
import socket
from typing import TYPE_CHECKING, Any, cast

from folio.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    import uvicorn
    from starlette.types import ASGIApp

# Seconds that running answers get after Ctrl-C; and after SIGTERM, which a system sends to a server that it replaces
FINISH_S, FINISH_REPLACED_S = 3, 60
# Connections that wait to be accepted; all of them are accepted at once, and each needs a file descriptor.
_BACKLOG = 100
# Maximum number of open connections; one more gets 503. Slow clients are not limited by uvicorn: use a proxy for that.
CONNECTIONS = 200
# Seconds that a connection may be idle between two requests
_IDLE_S = 10


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; connections queue until serve() runs. Raises UsageError."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, UnicodeError) as error:
        number = None if isinstance(error, UnicodeError | socket.gaierror) else error.errno
        if number == errno.EADDRINUSE:
            raise UsageError(
                f"Port {port} is already in use, by another Folio or another program.",
                "Use the Folio that is running, or choose another port: --port 0 finds a free one.",
            ) from error
        if number in (errno.EACCES, errno.EPERM):
            raise UsageError(f"You are not allowed to use port {port}.", "Choose one from 1024 to 65535.") from error
        raise UsageError(
            f"{host} is not an address of this computer.", "Leave out --host, or give an address of this computer."
        ) from error


def make_config(web: ASGIApp) -> uvicorn.Config:
    """The server's configuration."""
    import uvicorn

    return uvicorn.Config(
        cast(Any, web),
        http="h11",
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=_IDLE_S,
        ws="none",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=FINISH_S,
        backlog=_BACKLOG,
    )


def serve(web: ASGIApp, listening: socket.socket, announce: Callable[[], None]) -> None:
    """Serve until Ctrl-C or SIGTERM, which is raised again after the last answer has finished or been cut off.

    announce is called when both are handled: Ctrl-C before may be lost, because Python ignores exceptions in the
    callbacks of weak references.
    """
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if sig == signal.SIGTERM:
                self.config.timeout_graceful_shutdown = FINISH_REPLACED_S
            super().handle_exit(sig, frame)

    server = Server(make_config(web))
    # An answer cut off by the shutdown is not an error worth logging.
    logging.getLogger("uvicorn.error").addFilter(lambda record: not server.should_exit)
    server.run(sockets=[listening])
