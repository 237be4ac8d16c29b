"""The server's socket, answering on it until Ctrl-C, and a prompt end after that."""

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

FINISH_S = 3  # how long an answer may go on after Ctrl-C


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound and listens: what comes while the rest is loaded waits. Raises UsageError."""
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(place[:2], family=family)
    except (OSError, UnicodeError) as error:
        number = None if isinstance(error, UnicodeError | socket.gaierror) else error.errno
        if number == errno.EADDRINUSE:
            raise UsageError(
                f"Port {port} is taken, by a Folio that runs already or by another program.",
                "Use that Folio, or another port: --port 0 finds a free one.",
            ) from error
        if number in (errno.EACCES, errno.EPERM):
            raise UsageError(f"Port {port} is not open to you.", "Choose one from 1024 to 65535.") from error
        raise UsageError(f"{host} is no address of this computer.", "Leave --host out, or give one it has.") from error


def serve(web: FastAPI, listening: socket.socket) -> None:
    """Answer until Ctrl-C, which is raised again when the last answer is finished or cut off."""
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
    # An answer that is cut off at the end is no error to tell of.
    logging.getLogger("uvicorn.error").addFilter(lambda record: not server.should_exit)
    server.run(sockets=[listening])


def leave() -> None:
    """End now, although a thread may wait for minutes on a model that says nothing: nobody wants its answer."""
    end = time.monotonic() + FINISH_S
    held_by = [thread for thread in threading.enumerate() if not thread.daemon and thread != threading.main_thread()]
    for thread in held_by:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in held_by):
        os._exit(0)  # the store is made to be left at any moment, as when the power fails
