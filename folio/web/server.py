"""The server's socket, the loop that serves until Ctrl-C, and a prompt exit afterwards."""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING

from folio.errors import UsageError

if TYPE_CHECKING:
    from fastapi import FastAPI

FINISH_S = 3  # seconds that running answers get after Ctrl-C


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


def serve(web: FastAPI, listening: socket.socket) -> None:
    """Serve until Ctrl-C, which is raised again once the last answer has finished or been cut off."""
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(
            web,
            http="h11",
            ws="none",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=FINISH_S,
        )
    )
    # An answer cut off by the shutdown is not an error worth logging.
    logging.getLogger("uvicorn.error").addFilter(lambda record: not server.should_exit)
    server.run(sockets=[listening])


def leave() -> None:
    """Exit within FINISH_S seconds, even if a thread is still waiting for a silent model."""
    end = time.monotonic() + FINISH_S
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread != threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        os._exit(0)  # safe: the store survives a power failure at any moment
