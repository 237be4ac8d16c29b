"""`folio instructions`: lists, adds, changes and deletes instructions for the wording of answers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from folio.cli.command import Parser, run_subcommand, write_json
from folio.console import output, say
from folio.errors import UsageError
from folio.shown_text import name_line, plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.store.database import Database
    from folio.store.instructions import Instruction


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="List and write instructions for the wording of answers, such as “Answer in two sentences.” They"
        " never change what may be shown, and need a chat model.",
        epilog="Without COMMAND, the instructions are listed. `ask --instruction NAME` asks with one.",
    )
    parser.add_commands(
        ("list", "list instructions", _add_list, _list),
        ("add", "add an instruction", _add_words, _add),
        ("change", "change the words of an instruction", _add_words, _change),
        ("delete", "delete an instruction", _add_name, _delete),
    )
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio instructions") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    return run_subcommand(parser(prog), argv, default="list")


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print only JSON, one object per line")


def _list(app: App, arguments: argparse.Namespace) -> int:
    from folio.answer.instructions import READY, every
    from folio.schema.instructions import instruction_json

    with closing(app.open_library()) as library:
        known = every(library.database)
    for each in known:
        if arguments.json:
            write_json(instruction_json(each))
        else:
            ready = " (ready)" if each in READY else ""
            output().print(f"{name_line(each.name)}{ready}: {plain_line(each.text)}", markup=False, highlight=False)
    return 0


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name of the instruction, in quotes")


def _add_words(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("text", metavar="TEXT", help="what you ask of the wording of answers, in quotes")


def _add(app: App, arguments: argparse.Namespace) -> int:
    from folio.answer.instructions import RESERVED
    from folio.store import instructions

    with closing(app.open_library()) as library:
        added = instructions.add(library.database, arguments.name, arguments.text, RESERVED)
    say(f"Added “{name_line(added.name)}”.")
    return 0


def _change(app: App, arguments: argparse.Namespace) -> int:
    from folio.store import instructions

    with closing(app.open_library()) as library:
        own = _own(library.database, arguments.name)
        instructions.change(library.database, own.id, text=arguments.text)
    say(f"Changed “{name_line(own.name)}”.")
    return 0


def _delete(app: App, arguments: argparse.Namespace) -> int:
    from folio.store import instructions

    with closing(app.open_library()) as library:
        own = _own(library.database, arguments.name)
        instructions.remove(library.database, own.id)
    say(f"Deleted “{name_line(own.name)}”.")
    return 0


def _own(database: Database, name: str) -> Instruction:
    """The instruction with this name. Raises NotKnown, and UsageError for one that comes with Folio."""
    from folio.answer.instructions import READY, find

    found = find(database, name)
    if found in READY:
        raise UsageError(f"“{found.name}” comes with Folio.", "Add one of your own in other words.")
    return found
