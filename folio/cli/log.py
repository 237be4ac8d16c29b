"""`folio log`: what was asked and answered, and how answers were rated: list, show, export."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.cli.command import Parser, positive_int, run_subcommand, write_json
from folio.console import output, say
from folio.errors import UsageError, command
from folio.shown_text import plain_line

if TYPE_CHECKING:
    from folio.app import App


# Their modules are imported when they are needed: --help needs none.
LISTED = 20  # questions, if not told otherwise


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="List the questions that were asked, with their answers and what people thought of them.",
        epilog="Without COMMAND, the last questions are listed. The log is in the index, on this computer;"
        f" QUERY_LOG=false keeps none, and `{command('ask --forget')}` deletes it.",
    )
    listed = parser.add_subparsers(title="commands", metavar="COMMAND")
    made = listed.add_parser("list", help="list questions, the newest first", description="List questions.")
    _add_marks(made)
    made.add_argument(
        "-n", type=positive_int, dest="number", default=LISTED, metavar="N", help=f"at most N (default: {LISTED})"
    )
    made.add_argument("--json", action="store_true", help="print only JSON, one object per line")
    made.set_defaults(run=_list)
    made = listed.add_parser("show", help="show one question with its answer", description="Show one question.")
    made.add_argument(
        "number", type=positive_int, nargs="?", metavar="NUMBER", help="its number in the list (default: the last)"
    )
    made.add_argument("--json", action="store_true", help="print only JSON")
    made.set_defaults(run=_show)
    made = listed.add_parser("export", help="write questions as JSON Lines", description="Write them as JSON Lines.")
    _add_marks(made)
    made.add_argument("--out", type=Path, metavar="FILE", help="write to FILE instead of standard output")
    made.set_defaults(run=_export)
    return parser


def _add_marks(parser: argparse.ArgumentParser) -> None:
    marks = parser.add_mutually_exclusive_group()
    for mark in ("good", "bad"):
        marks.add_argument(
            f"--{mark}", action="store_const", const=mark, dest="feedback", help=f"only answers that were rated {mark}"
        )


def main(argv: Sequence[str] | None = None, prog: str = "folio log") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    return run_subcommand(parser(prog), argv, default="list")


def _list(app: App, arguments: argparse.Namespace) -> int:
    from folio.cli.show import entry_json, show_entries

    with closing(app.open_library()) as library:
        log = app.query_log(library)
        found, counts = log.entries(arguments.feedback, arguments.number), log.counts()
    if arguments.json:
        for number, entry in found:
            write_json(entry_json(number, entry))
    else:
        show_entries(output(), found, counts)
    return 0


def _show(app: App, arguments: argparse.Namespace) -> int:
    from folio.cli.show import entry_json, show_entry

    with closing(app.open_library()) as library:
        log = app.query_log(library)
        if arguments.number is None:
            found = log.entries(most=1)
        else:
            one = log.entry(arguments.number)
            found = [] if one is None else [(arguments.number, one)]
    if not found:
        which = "no question" if arguments.number is None else f"no question {arguments.number}"
        raise UsageError(f"The log has {which}.", f"`{command('log list')}` shows the questions and their numbers.")
    if arguments.json:
        write_json(entry_json(*found[0]))
    else:
        show_entry(output(), *found[0])
    return 0


def _export(app: App, arguments: argparse.Namespace) -> int:
    from folio.cli.show import entry_json
    from folio.schema.answers import line
    from folio.system.files import write_text

    with closing(app.open_library()) as library:
        found = app.query_log(library).entries(arguments.feedback)
    text = "".join(f"{line(entry_json(number, entry))}\n" for number, entry in reversed(found))
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    write_text(arguments.out, text)
    say(f"Questions written to {plain_line(str(arguments.out))}: {len(found):,}.")
    return 0
