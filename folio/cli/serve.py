"""`folio serve` and serve.py: serves the page and the HTTP API."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from folio.cli.command import Parser, run_command
from folio.console import say
from folio.errors import UsageError
from folio.system.network import PORT

if TYPE_CHECKING:
    from folio.app import App
    from folio.services.online import OnlineServices
    from folio.web.guard import AccessRules


TOKEN_LENGTH = 16  # characters; a shorter token could be guessed by trying
MAX_TOKEN_LENGTH = 4096  # characters; browsers store no longer cookie


def port(text: str) -> int:
    """Parse a port number, for argparse; 0 means any free port."""
    if not (text.isascii() and text.isdecimal()) or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a number from 1 to 65535, or 0 for any free port")
    return int(text)


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Ask the papers in a browser: a page and an HTTP API. Ctrl-C stops the server.",
        epilog="Settings such as LLM, RERANKER and TOP_K come from the environment or .env: see docs/settings.md.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this computer only)")
    parser.add_argument(
        "--port", type=port, default=PORT, metavar="N", help=f"port (default: {PORT}); 0 for any free port"
    )
    token = parser.add_mutually_exclusive_group()
    token.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the token that clients must send (default: the setting FOLIO_TOKEN); required if other"
        " computers can reach the address",
    )
    token.add_argument("--token", help="the token itself; other users can see it in the list of processes")
    online = "let the page search services on the internet, and download papers (default: ONLINE)"
    parser.add_argument("--online", action="store_true", help=online)
    write = "let assistants at /mcp add notes, and log their questions: docs/mcp.md"
    parser.add_argument("--mcp-write", action="store_true", help=write)
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "serve.py") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    import socket
    from urllib.parse import urlsplit

    from folio.system.network import is_loopback
    from folio.system.threads import leave
    from folio.web import server
    from folio.web.guard import AccessRules

    token, public_host = _token(app, arguments), urlsplit(app.public_url).hostname
    _require_token(arguments.host, token)
    if public_host:
        _require_token(public_host, token)
    online = _online(app) if arguments.online or app.internet.is_for_server else None
    try:
        with server.listen(arguments.host, arguments.port) as listening:
            names = () if is_loopback(arguments.host) else (socket.gethostname(),)
            rules = AccessRules(arguments.host, listening.getsockname()[1], token, names, app.public_url)
            from folio.web.api import make_web

            def announce() -> None:
                if arguments.open and token:
                    say("The browser was not opened: its address would show the token in the list of processes.")
                print(f"Folio is at {_shown_address(rules, arguments)} - Ctrl-C stops it.", flush=True)
                if arguments.open and not token:
                    _open(rules.url)

            go_online = partial(_online, app)  # once a person allows it in the page
            web = make_web(app, rules, online, assistants_write=arguments.mcp_write, go_online=go_online)
            server.serve(web, listening, announce)
    except (KeyboardInterrupt, SystemExit):  # Ctrl-C and SIGTERM, the normal ways to stop
        leave(server.FINISH_S)
    return 0


def _online(app: App) -> OnlineServices:
    """The services on the internet, as the settings are now."""
    from folio.services.online import OnlineServices

    return OnlineServices(app.internet)


def _token(app: App, arguments: argparse.Namespace) -> str | None:
    """The token of --token, the first line of --token-file, or the setting FOLIO_TOKEN. Raises UsageError."""
    if arguments.token_file is None:
        return app.server_token if arguments.token is None else str(arguments.token)

    try:
        with open(arguments.token_file, encoding="ascii") as file:
            return file.readline(MAX_TOKEN_LENGTH).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise UsageError(f"{arguments.token_file} cannot be read: {reason}.", "Give a file with a token.") from error


def _shown_address(rules: AccessRules, arguments: argparse.Namespace) -> str:
    """The page's address for the terminal.

    The token is shown only to a person who typed it: the output of a container is stored in a log, and a token from the
    environment or a file is meant to stay secret.
    """
    if rules.token is None:
        return rules.url
    if arguments.token is not None and sys.stdout.isatty():
        return f"{rules.url}?token={rules.token}"
    return f"{rules.url}?token=TOKEN, with your token for TOKEN"


def _require_token(host: str, token: str | None) -> None:
    """Raise UsageError for a public address without a token, and for a weak or malformed token."""
    from folio.system.network import is_loopback

    command = 'python -c "import secrets; print(secrets.token_urlsafe())"'
    remedy = f"Make one with {command} and put it into FOLIO_TOKEN, or into a file for --token-file."
    if token is None:
        if not is_loopback(host):
            raise UsageError(f"Other computers can reach {host}, so a token is required.", remedy)
    elif len(token) < TOKEN_LENGTH:
        raise UsageError(f"The token is shorter than {TOKEN_LENGTH} characters.", remedy)
    elif not re.fullmatch(r"[A-Za-z0-9._~-]+", token):  # what both a URL and a cookie allow
        raise UsageError("The token has characters other than A-Z, a-z, 0-9, and . _ ~ -", remedy)


def _open(address: str) -> None:
    """Open the page in a thread, because a terminal browser returns only when it is closed."""
    import threading
    import webbrowser

    def open_page() -> None:
        if not webbrowser.open(address):
            say("No browser could be opened. Open the address yourself.")

    threading.Thread(target=open_page, daemon=True).start()
