"""`folio`: chooses the command to run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from folio.cli.command import Parser
from folio.version import __version__

# A command -> what it does. Each is a module of this package, imported when it runs.
COMMANDS = {
    "ingest": "read PDFs into the index",
    "fetch": "bring in papers from the internet",
    "ask": "ask one question, or chat",
    "papers": "list papers, show and correct their metadata",
    "projects": "keep papers, conversations, notes and tables together",
    "table": "put the same questions to many papers",
    "notes": "list, add, delete and export notes on papers",
    "instructions": "list and write instructions for the wording of answers",
    "check": "check the sentences of a draft against the papers that they cite",
    "cite": "print the citation for a sentence of a draft",
    "review": "write a review of papers, in quotes",
    "export": "write papers, notes and answers as a folder of Markdown",
    "log": "list questions, with their answers and ratings",
    "move": "copy the library into PostgreSQL, or back",
    "serve": "ask in a browser",
    "mcp": "offer the library to an assistant",
    "evaluate": "measure search and answers on questions with known answers",
    "doctor": "show what is ready and what is not",
}


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="folio",
        description="Ask a folder of PDF papers, offline, and get answers that cite their pages.",
        epilog="folio COMMAND --help shows a command's options.",
    )
    parser.add_argument("--version", action="version", version=f"folio {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        commands.add_parser(name, help=purpose, add_help=False)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in COMMANDS:
        code: int = import_module(f"folio.cli.{words[0]}").main(words[1:], prog=f"folio {words[0]}")
        return code
    if not words:
        parser().print_help(sys.stderr)
        return 2
    parser().parse_args(words[:1])  # prints help, the version or an error
    return 2
