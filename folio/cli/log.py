"""`folio log`: lists, shows and exports the questions of the log, with their answers and ratings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.cli.command import Parser, positive_int, run_subcommand, write_json, write_or_print
from folio.console import output
from folio.errors import UsageError, command
from folio.shown_text import counted

if TYPE_CHECKING:
    from folio.app import App

LISTED = 20  # questions by default


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="List the questions that were asked, with their answers and ratings.",
        epilog="Without COMMAND, the last questions are listed. The log is in the index, on this computer;"
        f" QUERY_LOG=false keeps none, and `{command('ask --forget')}` deletes it.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    listing = commands.add_parser("list", help="list questions, the newest first", description="List questions.")
    _add_ratings(listing)
    number = f"maximum number of questions (default: {LISTED})"
    listing.add_argument("-n", type=positive_int, dest="number", default=LISTED, metavar="N", help=number)
    listing.add_argument("--json", action="store_true", help="print only JSON, one object per line")
    listing.set_defaults(run=_list)
    show = commands.add_parser("show", help="show one question with its answer", description="Show one question.")
    number = "its number in the list (default: the last)"
    show.add_argument("number", type=positive_int, nargs="?", metavar="NUMBER", help=number)
    show.add_argument("--json", action="store_true", help="print only JSON")
    show.set_defaults(run=_show)
    export = commands.add_parser(
        "export", help="write questions as JSON Lines", description="Write questions as JSON Lines."
    )
    _add_ratings(export)
    export.add_argument("--out", type=Path, metavar="FILE", help="write to FILE instead of standard output")
    export.set_defaults(run=_export)
    return parser


def _add_ratings(parser: argparse.ArgumentParser) -> None:
    ratings = parser.add_mutually_exclusive_group()
    for rating in ("good", "bad"):
        text = f"only answers that were rated {rating}"
        ratings.add_argument(f"--{rating}", action="store_const", const=rating, dest="feedback", help=text)


def main(argv: Sequence[str] | None = None, prog: str = "folio log") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    return run_subcommand(parser(prog), argv, default="list")


def _list(app: App, arguments: argparse.Namespace) -> int:
    from folio.cli.show_log import show_entries
    from folio.schema.log import entry_json

    with closing(app.open_library()) as library:
        log = app.query_log(library)
        entries, counts = log.entries(arguments.feedback, arguments.number), log.counts()
    if arguments.json:
        for number, entry in entries:
            write_json(entry_json(number, entry))
    else:
        show_entries(output(), entries, counts)
    return 0


def _show(app: App, arguments: argparse.Namespace) -> int:
    from folio.cli.show_log import show_entry
    from folio.schema.log import entry_json

    with closing(app.open_library()) as library:
        log = app.query_log(library)
        if arguments.number is None:
            number, entry = next(iter(log.entries(most=1)), (0, None))
        else:
            number, entry = arguments.number, log.entry(arguments.number)
    if entry is None:
        which = "no question" if arguments.number is None else f"no question {arguments.number}"
        raise UsageError(f"The log has {which}.", f"`{command('log list')}` shows the questions and their numbers.")
    if arguments.json:
        write_json(entry_json(number, entry))
    else:
        show_entry(output(), number, entry)
    return 0


def _export(app: App, arguments: argparse.Namespace) -> int:
    from folio.schema.answers import line
    from folio.schema.log import entry_json

    with closing(app.open_library()) as library:
        entries = app.query_log(library).entries(arguments.feedback)
    text = "".join(f"{line(entry_json(number, entry))}\n" for number, entry in reversed(entries))
    return write_or_print(arguments.out, text.encode(), f"{counted(len(entries), 'question')} written to")
