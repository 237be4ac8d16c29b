"""`folio mcp`: offers the library to an assistant that starts this program (Model Context Protocol, stdio)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from folio.cli.command import Parser, run_command
from folio.console import say

if TYPE_CHECKING:
    from folio.app import App


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Offer the library as tools to an assistant, over standard input and output. An assistant starts"
        " this command: docs/mcp.md shows how.",
        epilog="`folio serve` offers the same at /mcp. Settings come from the environment or .env: docs/settings.md.",
    )
    parser.add_argument("--write", action="store_true", help="also let the assistant add notes, and log its questions")
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio mcp") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    from folio.mcp.stdio import serve

    if sys.stdin.isatty():
        say("This waits for an assistant that starts it: docs/mcp.md shows how. Ctrl-C ends it.")
    serve(app, writes=arguments.write)
    return 0
