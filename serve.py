"""Ask the papers in a browser: a page and an HTTP API, served from this computer.

python serve.py                                for this computer alone, at http://127.0.0.1:8420/
python serve.py --open                         and open it in the browser
python serve.py --port 0                       at a port that is free
python serve.py --host 0.0.0.0 --token TOKEN   for other computers too: they need the token, sent unencrypted
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from socket import socket

    from fastapi import FastAPI

    from folio.app import App

TOKEN_LENGTH = 16  # characters: what cannot be guessed by trying
FINISH_S = 3  # how long an answer may go on after Ctrl-C


def port(text: str) -> int:
    """The number of a port, for argparse; 0 is any that is free."""
    if not (text.isascii() and text.isdecimal()) or int(text) > 65535:
        raise argparse.ArgumentTypeError("a number from 1 to 65535, or 0 for a free one")
    return int(text)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="serve.py",
        description="Ask the papers in a browser: a page and an HTTP API. Ctrl-C ends it.",
        epilog="Settings such as LLM, RERANKER and TOP_K are in config.py; the environment overrides them.",
    )
    found.add_argument("--host", default="127.0.0.1", help="address to serve at (default: this computer alone)")
    found.add_argument("--port", type=port, default=8420, metavar="N", help="port (default: 8420); 0 for a free one")
    found.add_argument("--token", help="what who asks must bring; needed where other computers can reach the address")
    found.add_argument("--open", action="store_true", help="open the page in the browser")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    from folio.cli.command import command

    return command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    import socket

    from folio.offline import is_loopback
    from folio.web.request_guard import Allowed

    _require_token(arguments.host, arguments.token)
    try:
        with _listen(arguments.host, arguments.port) as listening:
            names = () if is_loopback(arguments.host) else (socket.gethostname(),)
            allowed = Allowed(arguments.host, listening.getsockname()[1], arguments.token, names)
            from folio.web.api import make_web

            web = make_web(app, allowed)
            address = f"{allowed.url}?token={arguments.token}" if arguments.token else allowed.url
            print(f"Folio is at {address} - Ctrl-C ends it.", flush=True)
            if arguments.open:
                _open(address)
            _serve(web, listening)
    except KeyboardInterrupt:  # how it is meant to end
        _let_go()
    return 0


def _require_token(host: str, token: str | None) -> None:
    """Raises UsageError for an address that others can reach without one, and for one that is easily guessed."""
    import re

    from folio.errors import UsageError
    from folio.offline import is_loopback

    make_one = 'Make one: python -c "import secrets; print(secrets.token_urlsafe())"'
    if token is None:
        if not is_loopback(host):
            raise UsageError(f"Other computers can reach {host}, and there is no --token.", make_one)
    elif len(token) < TOKEN_LENGTH:
        raise UsageError(f"The token is shorter than {TOKEN_LENGTH} characters.", make_one)
    elif not re.fullmatch(r"[A-Za-z0-9._~-]+", token):
        # It is part of an address, and of a cookie.
        raise UsageError("The token has characters other than A-Z, a-z, 0-9, and . _ ~ -", make_one)


def _listen(host: str, port: int) -> socket:
    """A socket that is bound and listens: what comes while the rest is loaded waits. Raises UsageError."""
    import errno
    import socket

    from folio.errors import UsageError

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


def _open(address: str) -> None:
    """Open the page, in a thread: a browser in a terminal comes back when it is closed."""
    import threading
    import webbrowser

    from folio.console import say

    def opened() -> None:
        if not webbrowser.open(address):
            say("No browser could be opened: open the address yourself.")

    threading.Thread(target=opened, daemon=True).start()


def _serve(web: FastAPI, listening: socket) -> None:
    """Answer until Ctrl-C, which is raised again when the last answer is finished or cut off."""
    import logging

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


def _let_go() -> None:
    """End now, although a thread may wait for minutes on a model that says nothing: nobody wants its answer."""
    import os
    import threading
    import time

    end = time.monotonic() + FINISH_S
    held_by = [thread for thread in threading.enumerate() if not thread.daemon and thread != threading.main_thread()]
    for thread in held_by:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in held_by):
        os._exit(0)  # the store is made to be left at any moment, as when the power fails


if __name__ == "__main__":
    sys.exit(main())
