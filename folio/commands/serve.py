"""`folio serve` and serve.py: the page in a browser and the HTTP API."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from folio.app import App

TOKEN_LENGTH = 16  # characters: what cannot be guessed by trying


def port(text: str) -> int:
    """Parse a port number, for argparse; 0 means any free port."""
    if not (text.isascii() and text.isdecimal()) or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a number from 1 to 65535, or 0 for any free port")
    return int(text)


def parser(prog: str) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog=prog,
        description="Ask the papers in a browser: a page and an HTTP API. Ctrl-C stops the server.",
        epilog="Settings such as LLM, RERANKER and TOP_K come from the environment or .env: see docs/settings.md.",
    )
    found.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this computer only)")
    found.add_argument("--port", type=port, default=8420, metavar="N", help="port (default: 8420); 0 for any free port")
    found.add_argument("--token", help="token that clients must send; required if others can reach the address")
    found.add_argument("--open", action="store_true", help="open the page in the browser")
    return found


def main(argv: Sequence[str] | None = None, prog: str = "serve.py") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    from folio.cli.command import command

    return command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    import socket

    from folio.offline import is_loopback
    from folio.web import server
    from folio.web.request_guard import AccessRules

    _require_token(arguments.host, arguments.token)
    try:
        with server.listen(arguments.host, arguments.port) as listening:
            names = () if is_loopback(arguments.host) else (socket.gethostname(),)
            rules = AccessRules(arguments.host, listening.getsockname()[1], arguments.token, names)
            from folio.web.api import make_web

            web = make_web(app, rules)
            address = f"{rules.url}?token={arguments.token}" if arguments.token else rules.url
            print(f"Folio is at {address} - Ctrl-C stops it.", flush=True)
            if arguments.open:
                _open(address)
            server.serve(web, listening)
    except KeyboardInterrupt:  # the normal way to stop
        server.leave()
    return 0


def _require_token(host: str, token: str | None) -> None:
    """Raise UsageError for a public address without a token, and for a weak or malformed token."""
    import re

    from folio.errors import UsageError
    from folio.offline import is_loopback

    make_one = 'Make one: python -c "import secrets; print(secrets.token_urlsafe())"'
    if token is None:
        if not is_loopback(host):
            raise UsageError(f"Other computers can reach {host}, so a --token is required.", make_one)
    elif len(token) < TOKEN_LENGTH:
        raise UsageError(f"The token is shorter than {TOKEN_LENGTH} characters.", make_one)
    elif not re.fullmatch(r"[A-Za-z0-9._~-]+", token):
        # It is used in a URL and in a cookie.
        raise UsageError("The token has characters other than A-Z, a-z, 0-9, and . _ ~ -", make_one)


def _open(address: str) -> None:
    """Open the page in a thread, because a terminal browser returns only when it is closed."""
    import threading
    import webbrowser

    from folio.console import say

    def opened() -> None:
        if not webbrowser.open(address):
            say("No browser could be opened. Open the address yourself.")

    threading.Thread(target=opened, daemon=True).start()
