"""`folio move`: copies the library into PostgreSQL, or back, without reading a PDF again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from folio.cli.command import Parser, run_command
from folio.console import output, progress_bar
from folio.shown_text import plain

if TYPE_CHECKING:
    from folio.app import App, Place
    from folio.shared.move import Moved


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Copy the library from the folder VECTORSTORE_DIR into PostgreSQL, or from PostgreSQL into the"
        " folder, with the log, the conversations and your edits. No PDF is read and nothing is embedded again. The"
        " original library does not change.",
        epilog="DATABASE_URL names the database in PostgreSQL. After the copy, set STORE to the new place, so that the"
        " other commands use it: see docs/scale.md.",
    )
    target = "the target: PostgreSQL, or the folder"
    parser.add_argument("--to", choices=("postgres", "local"), required=True, help=target)
    yes = "replace the library at the target, with its log and conversations; it stays in use until the copy is done"
    parser.add_argument("--yes", action="store_true", help=yes)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio move") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: run(app, arguments))


def run(app: App, arguments: argparse.Namespace) -> int:
    """Copy the library; returns the exit code."""
    from folio.store import indexes

    began = perf_counter()
    with indexes.writing(app.store_folder), progress_bar() as bar:
        moved = app.move(arguments.to, bar, replaces=arguments.yes)
    _report(app, arguments.to, moved, perf_counter() - began)
    return 0


def _report(app: App, to: Place, moved: Moved, seconds: float) -> None:
    counts = {
        "papers": moved.papers,
        "files": moved.files,
        "pages": moved.pages,
        "passages": moved.passages,
        "questions in the log": moved.questions,
        "conversations": moved.conversations,
        "works that services describe": moved.works,
        "notes": moved.notes,
    }
    totals = ", ".join(f"{what}: {number:,}" for what, number in counts.items())
    output().print(f"Copied, and compared row by row: {totals}.")
    output().print(f"{seconds:.1f} s. The library is now in {plain(app.store_at(to).place)} too.")
    if to == app.place_in_use:
        output().print(f"STORE={to} is already set, so the commands use this copy.")
    else:
        output().print(f"To use this copy, set STORE={to} in your settings: see docs/settings.md.")
