"""The server's socket, the loop that serves until Ctrl-C, and a prompt exit afterwards."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, cast

from folio.errors import UsageError

if TYPE_CHECKING:
    from types import FrameType

    import uvicorn

    from folio.web.guard import ASGIApp

# Seconds that running answers get after Ctrl-C; and after SIGTERM, by which a system replaces a server while others
# answer in its place
FINISH_S, FINISH_REPLACED_S = 3, 60
# Connections that wait to be accepted; all of them are accepted at once, and each needs a file descriptor.
_BACKLOG = 100
# The most connections that are open; one more gets 503. uvicorn does not limit how slow a client is: a proxy does.
CONNECTIONS = 200
# Seconds that a connection may be idle between two requests
_IDLE_S = 10


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound and listening; connections queue until serve() runs. Raises UsageError."""
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
            f"{host} is not an address of this computer.", "Omit --host, or give an address that it has."
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


def ready(web: ASGIApp) -> uvicorn.Server:
    """A server that has imported what it needs to run.

    Ctrl-C during an import may be lost: Python calls weak references' callbacks then, and ignores what these raise.
    """
    import uvicorn

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if sig == signal.SIGTERM:
                self.config.timeout_graceful_shutdown = FINISH_REPLACED_S
            super().handle_exit(sig, frame)

    config = make_config(web)
    config.load()
    config.get_loop_factory()
    server = Server(config)
    # An answer cut off by the shutdown is not an error worth logging.
    logging.getLogger("uvicorn.error").addFilter(lambda record: not server.should_exit)
    return server


def serve(server: uvicorn.Server, listening: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM, which is raised again once the last answer has finished or been cut off."""
    server.run(sockets=[listening])


def leave() -> None:
    """Exit within FINISH_S seconds, even if a thread is still waiting for a silent model."""
    end = time.monotonic() + FINISH_S
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread != threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        os._exit(0)  # safe: the store survives a power failure at any moment
