"""`folio`: chooses the command to run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from folio import __version__
from folio.cli import ask, doctor, evaluate, fetch, ingest, log, move, papers, serve
from folio.cli.command import Parser

COMMANDS = {
    "ingest": (ingest.main, "read PDFs into the index"),
    "fetch": (fetch.main, "bring in papers from the internet"),
    "ask": (ask.main, "ask one question, or chat"),
    "papers": (papers.main, "list papers, show and correct their metadata"),
    "log": (log.main, "list questions, with their answers and ratings"),
    "move": (move.main, "copy the library into PostgreSQL, or back"),
    "serve": (serve.main, "ask in a browser"),
    "evaluate": (evaluate.main, "measure search and answers on questions with known answers"),
    "doctor": (doctor.main, "show what is ready and what is not"),
}


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="folio",
        description="Ask a folder of PDF papers, offline, and get answers that cite their pages.",
        epilog="folio COMMAND --help shows a command's options.",
    )
    parser.add_argument("--version", action="version", version=f"folio {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (_, purpose) in COMMANDS.items():
        commands.add_parser(name, help=purpose, add_help=False)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in COMMANDS:
        run, _ = COMMANDS[words[0]]
        return run(words[1:], prog=f"folio {words[0]}")
    if not words:
        parser().print_help(sys.stderr)
        return 2
    parser().parse_args(words[:1])  # prints help, the version or an error
    return 2
