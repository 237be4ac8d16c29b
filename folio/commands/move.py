"""`folio move --to milvus`: copy the library into Milvus, or back, without reading a PDF again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from folio.cli.parser import Parser

if TYPE_CHECKING:
    from folio.app import App
    from folio.app_settings import Place
    from folio.ingest.move import Moved


def parser(prog: str) -> argparse.ArgumentParser:
    found = Parser(
        prog=prog,
        description="Copy the library from the folder VECTORSTORE_DIR into Milvus, or from Milvus into the folder."
        " No PDF is read and nothing is embedded again. The library that is copied stays as it is.",
        epilog="MILVUS_URI, MILVUS_PREFIX and RECORDS_URI say where in Milvus. Interrupt it at any moment: the same"
        " command goes on. Then set STORE to the new place, and the other commands use it: see docs/scale.md.",
    )
    found.add_argument(
        "--to", choices=("milvus", "local"), required=True, help="where to: into Milvus, or into the folder"
    )
    yes = "replace the library that is there, its log and its conversations too; it serves until the new one is whole"
    found.add_argument("--yes", action="store_true", help=yes)
    return found


def main(argv: Sequence[str] | None = None, prog: str = "folio move") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    from folio.cli.command import command

    return command(lambda app: run(app, arguments))


def run(app: App, arguments: argparse.Namespace) -> int:
    """Do what the parsed arguments say; returns the exit code."""
    from folio.console import progress_bar, say
    from folio.errors import StoreDamaged, StoreError
    from folio.store import indexes

    began, done, of = perf_counter(), 0, 0
    with indexes.writing(app.store_folder):
        try:
            with progress_bar() as bar:

                def progress(label: str, moved: int, papers: int) -> None:
                    nonlocal done, of
                    done, of = moved, papers
                    bar(label, moved, papers)

                moved = app.move(arguments.to, progress, replaces=arguments.yes)
        except (KeyboardInterrupt, StoreError) as error:
            if done and not isinstance(error, StoreDamaged):
                count = f"Papers moved so far: {done} of {of}."
                say(f"Stopped. {count} They are kept; run the same command again to continue.")
            raise
    _report(app, arguments.to, moved, perf_counter() - began)
    return 0


def _report(app: App, to: Place, moved: Moved, seconds: float) -> None:
    from rich.table import Table

    from folio.console import output
    from folio.shown_text import plain

    table = Table("", "papers", "files", "pages", "passages", box=None, pad_edge=False, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    numbers = (moved.papers, moved.files, moved.pages, moved.passages)
    table.add_row("moved", *(f"{number:,}" for number in numbers))
    output().print(table)
    others = {
        "fine passages": moved.fine_passages,
        "files that could not be read": moved.failures,
        "questions in the log": moved.questions,
        "conversations": moved.conversations,
        "works that services describe": moved.works,
    }
    if listed := ", ".join(f"{what}: {number:,}" for what, number in others.items() if number):
        output().print(f"With them: {listed}.")
    if moved.kept:
        output().print(f"{moved.kept:,} of the papers had been moved before.")
    print_ = output().print
    print_(f"\n{seconds:.1f} s. The library is now in {plain(app.backend_of(to).place)} too, and was compared.")
    if to == app.place_in_use:
        print_(f"STORE={to} is set already: the commands use it.")
    else:
        print_(f"To use it, set STORE={to} in the environment or in {plain(str(app.settings_file))}.")
