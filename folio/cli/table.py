"""`folio table`: lists, makes, fills, shows, exports and deletes tables of many papers by several questions."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.cli.command import (
    FILTERS,
    Parser,
    add_paper_options,
    format_of,
    run_subcommand,
    write_json,
    write_or_print,
)  # fmt: skip
from folio.console import output, progress_bar, say
from folio.errors import NotKnown, UsageError, command
from folio.shown_text import counted, name_line, plain_line
from folio.text import shorten

if TYPE_CHECKING:
    from folio.app import App
    from folio.store.library import Library
    from folio.store.tables import Counts, EvidenceTable
    from folio.table.cell import Column
    from folio.table.filling import Landed
    from folio.table.scope import Scope
    from folio.table.shown import ShownTable

# Formats, by the ending of a file
_FORMATS = ("csv", "md", "docx", "bib", "json")
# Options for files that a table is written to
FILES = {"csv": "csv", "markdown": "md", "docx": "docx", "bib": "bib"}
_SHOWN_ID = 8  # characters of an id in the list; any beginning that fits one table names it
_LONGEST_QUOTE, _LONGEST_NAME = 300, 60  # characters in a terminal


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Put the same questions to many papers: a table with a quote in every cell, or “not found”.",
        epilog="Without COMMAND, the tables are listed. Name a TABLE by its name, or by the beginning of its id.",
    )
    parser.add_commands(
        ("list", "list tables", _add_list, _list),
        ("new", "make a table from a file of questions, and fill it", _add_new, _new),
        ("fill", "ask the cells that wait or failed", _add_fill, _fill),
        ("show", "show a table", _add_show, _show),
        ("export", "write a table as CSV, Markdown, a Word document or JSON, or its papers as BibTeX", _add_export,
         _export),
        ("delete", "delete a table", _add_table, _delete),
    )  # fmt: skip
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio table") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    return run_subcommand(parser(prog), argv, default="list")


def add_files(parser: argparse.ArgumentParser, begin: str = "") -> None:
    """The options of FILES. begin: of their help."""
    for option, what in (
        ("csv", "the table for spreadsheets"),
        ("markdown", "the table as Markdown"),
        ("docx", "the table as a Word document"),
        ("bib", "the papers of its rows as BibTeX"),
    ):
        parser.add_argument(f"--{option}", type=Path, metavar="FILE", help=f"{begin}write {what} to FILE")


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE", help="its name, or its id in the list or the beginning of that")


def _table(library: Library, named: str) -> str:
    """The id of the table with this name, or with an id that begins so. Raises NotKnown, UsageError."""
    from folio.store import tables

    ids = tables.called(library.database, named)
    if len(ids) > 1:
        raise UsageError(f"{len(ids)} tables are called so.", "Give the id of one: " + command("table list"))
    if not ids:
        raise NotKnown(f"No table is called “{name_line(named, 80)}”.", f"`{command('table list')}` lists them.")
    return ids[0]


# Listing and showing


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print only JSON, one object per line")


def _list(app: App, arguments: argparse.Namespace) -> int:
    from folio.store import tables

    with closing(app.open_library()) as library:
        every = tables.every(library.database)
    for table, counts in every:
        if arguments.json:
            from folio.schema.tables import summary_json

            write_json(summary_json(table, counts))
        else:
            output().print(f"{table.id[:_SHOWN_ID]}  {name_line(table.name, _LONGEST_NAME)}: {_state(table, counts)}")
    if not arguments.json:
        output().print(f"{counted(len(every), 'table')}.")
    return 0


def _state(table: EvidenceTable, counts: Counts) -> str:
    """The size of a table, and what its cells are."""
    cells = ", ".join(
        f"{number:,} {what}"
        for number, what in (
            (counts.found, "found"), (counts.not_found, "not found"), (counts.failed, "failed"),
            (counts.waiting, "waiting"),
        )
        if number
    )  # fmt: skip
    is_filled = " (being filled)" if any(not fill.column for fill in table.fills) else ""
    size = f"{counted(counts.rows, 'paper')} by {counted(counts.columns, 'column')}"
    return f"{size}: {cells or 'no cells'}{is_filled}"


def _add_show(parser: argparse.ArgumentParser) -> None:
    _add_table(parser)
    parser.add_argument("--json", action="store_true", help="print only JSON")


def _show(app: App, arguments: argparse.Namespace) -> int:
    from folio.table.shown import shown_table

    with closing(app.open_library()) as library:
        shown = shown_table(library, _table(library, arguments.table))
    if arguments.json:
        _print_json(shown)
        return 0
    console, table = output(), shown.table
    console.print(f"{plain_line(table.name)}: {_state(table, shown.counts)}", style="bold")
    for row in table.rows:
        removed = "" if row.paper in shown.placed.papers else " (removed)"
        console.print(f"\n{plain_line(row.label)}: {name_line(row.title)}{removed}", style="bold")
        for column in table.columns:
            for line in _lines(shown, row.paper, column.id):
                console.print(f"  {plain_line(column.name)}: {line}")
    return 0


def _lines(shown: ShownTable, paper: str, column: str) -> list[str]:
    """What a cell says, a line for each finding."""
    from folio.table.export import said

    row = next(each for each in shown.table.rows if each.paper == paper)
    parts = said(shown, row, shown.table.column(column))
    return [shorten(part, _LONGEST_QUOTE) for part in parts] or ["(not asked yet)"]


def _print_json(shown: ShownTable) -> None:
    from folio.schema.tables import table_json

    write_json(table_json(shown))


# Making and filling


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the columns, one a line; - for standard input")
    parser.add_argument("--name", default="", help="default: the name of FILE")
    add_paper_options(parser, "ask")
    parser.add_argument("--no-fill", action="store_true", help="only make it")
    _add_model(parser)
    add_files(parser)
    parser.add_argument("--json", action="store_true", help="print only JSON, at the end")


def _add_model(parser: argparse.ArgumentParser) -> None:
    model = "the model on the server that answers this time; or builtin, which quotes"
    parser.add_argument("--model", metavar="NAME", help=model)


def _add_fill(parser: argparse.ArgumentParser) -> None:
    _add_table(parser)
    _add_model(parser)
    add_files(parser)
    parser.add_argument("--json", action="store_true", help="print only JSON, at the end")


def _new(app: App, arguments: argparse.Namespace) -> int:
    return fill_from(app, arguments.file, arguments, name=arguments.name, fills=not arguments.no_fill)


def fill_from(app: App, file: str, arguments: argparse.Namespace, *, name: str = "", fills: bool = True) -> int:
    """Make a table from a file of questions, or take the one that asks the same, fill it, and write it.

    arguments: with the options that choose papers, a model, and files. Raises UsageError, NotKnown.
    """
    from folio.table.filling import as_stored
    from folio.table.scope import new_table

    if arguments.model is not None:
        app = app.with_model(arguments.model)
    columns = _read(file)
    _require_writable(arguments)
    with closing(app.open_library()) as library:
        scope = _scope(library, arguments)
        id = _same(library, scope, columns) if not name else None
        if id is None:
            title = name or ("Table" if file == "-" else Path(file).stem)
            id = new_table(library, scope, list(map(as_stored, columns)), title)
        else:
            say("A table asks the same already, and is continued.")
    return _filled(app, id, arguments) if fills else _finish(app, id, arguments)


def _read(file: str) -> Sequence[Column]:
    from folio.table.columns import read_columns

    try:
        with open(0 if file == "-" else file, encoding="utf-8-sig") as opened:
            return read_columns(opened.read())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UsageError(f"{file} cannot be read: {reason}.", "Give a text file.") from error


def _scope(library: Library, arguments: argparse.Namespace) -> Scope:
    """The papers that the options choose; named ones are chosen as they are now. Raises UsageError, NotKnown."""
    from folio.table.scope import scope_of

    given = {name: list(getattr(arguments, name) or ()) for name in FILTERS}
    names = given.pop("paper")
    given["year"] = [year.strip() for each in given["year"] for year in each.split(",")]
    return scope_of(library, given, names)


def _same(library: Library, scope: Scope, columns: Sequence[Column]) -> str | None:
    """The last changed table of these papers with these columns; None if there is none."""
    from folio.store import tables
    from folio.table.filling import as_column

    for each, _ in tables.every(library.database):
        if dict(each.scope) == scope.as_json():
            table = tables.read(library.database, each.id, since=2**53)
            if [as_column(column) for column in table.columns] == list(columns):
                return table.id
    return None


def _fill(app: App, arguments: argparse.Namespace) -> int:
    if arguments.model is not None:
        app = app.with_model(arguments.model)
    _require_writable(arguments)
    with closing(app.open_library()) as library:
        id = _table(library, arguments.table)
    return _filled(app, id, arguments)


def _filled(app: App, id: str, arguments: argparse.Namespace) -> int:
    """Fill a table, showing each cell as it is found, and write it, also what was found until Ctrl+C."""
    from folio.store import tables
    from folio.store.tables import Fill
    from folio.table.filling import Filler, ask_again

    filler = Filler(app.open_library, app.cell_finder)
    with closing(app.open_library()) as library:
        ask_again(library, id)
        total = tables.counts(library.database, [id])[id].waiting
        keys = library.citation_keys()
    filling = filler.begin(Fill(id))
    if filling is None:
        raise UsageError("This table is being filled by another program.", "Wait until it is done, or stop it there.")
    stopped = True
    with progress_bar() as progress:
        try:
            filler.run(filling, _Printer(keys, total, progress, is_quiet=arguments.json))
            stopped = False
        except KeyboardInterrupt:
            say(f"Stopped. What was found is kept: `{command(f'table fill {id[:_SHOWN_ID]}')}` continues.")
    code = _finish(app, id, arguments)
    return 130 if stopped else code


class _Printer:
    """Prints each cell as it is found, below the name of its paper."""

    def __init__(
        self, keys: Mapping[str, str], total: int, progress: Callable[[str, int, int], None], *, is_quiet: bool
    ) -> None:
        self._keys, self._total, self._progress, self._is_quiet = keys, total, progress, is_quiet
        self._paper, self._count = "", 0

    def __call__(self, landed: Landed) -> None:
        from folio.table.export import found_lines

        self._count += 1
        self._progress("cells", self._count, max(self._total, self._count))
        if self._is_quiet:
            return
        console, paper = output(), landed.paper
        if self._paper != paper.id:
            console.print(("\n" if self._paper else "") + plain_line(paper.label or paper.key), style="bold")
            self._paper = paper.id
        for line in found_lines(landed.cell, self._keys.get(paper.id, paper.key)):
            console.print(f"  {plain_line(landed.column.name)}: {shorten(line, _LONGEST_QUOTE)}")


def _finish(app: App, id: str, arguments: argparse.Namespace) -> int:
    """Write the files, and say what the table has; 1 if cells failed or wait."""
    from folio.system.files import write_output
    from folio.table.shown import shown_table

    with closing(app.open_library()) as library:
        shown = shown_table(library, id)
        for option, kind in FILES.items():
            if file := getattr(arguments, option):
                write_output(file, _exported(app, library, shown, kind))
                say(f"Written: {plain_line(str(file))}.")
    if arguments.json:
        _print_json(shown)
    else:
        say(f"{id[:_SHOWN_ID]}  {name_line(shown.table.name, _LONGEST_NAME)}: {_state(shown.table, shown.counts)}.")
    if shown.table.problem:
        say(" ".join(shown.table.problem))
    return 1 if shown.counts.failed or shown.table.problem else 0


# Exporting and deleting


def _add_export(parser: argparse.ArgumentParser) -> None:
    _add_table(parser)
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="default: standard output")
    parser.add_argument("--format", choices=_FORMATS, help="default: by the ending of FILE, else csv")


def _export(app: App, arguments: argparse.Namespace) -> int:
    from folio.table.shown import shown_table

    kind = format_of(arguments.file, arguments.format, _FORMATS, "csv", "table.docx")
    with closing(app.open_library()) as library:
        shown = shown_table(library, _table(library, arguments.table))
        content = _exported(app, library, shown, kind)
    return write_or_print(arguments.file, content, f"{counted(len(shown.table.rows), 'paper')} written to")


def _exported(app: App, library: Library, shown: ShownTable, kind: str) -> bytes:
    from folio.schema.answers import line
    from folio.schema.tables import table_json
    from folio.store.works import publishers_bibtex
    from folio.table import export

    if kind == "csv":
        return export.csv_text(shown).encode()
    if kind == "md":
        return export.markdown(shown, app.page_url).encode()
    if kind == "docx":
        return export.word(shown, app.page_url)
    if kind == "bib":
        return export.bibtex(shown, publishers_bibtex(library.database, shown.keys)).encode()
    return f"{line(table_json(shown))}\n".encode()


def _require_writable(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a file in a folder that does not exist, before anything is asked."""
    for option in FILES:
        file = getattr(arguments, option)
        if file is not None and not file.absolute().parent.is_dir():
            raise UsageError(f"The folder of {plain_line(str(file))} does not exist.", "Make it, or name another file.")


def _delete(app: App, arguments: argparse.Namespace) -> int:
    from folio.store import tables

    with closing(app.open_library()) as library:
        id = _table(library, arguments.table)
        name = tables.read(library.database, id, since=2**53).name
        tables.remove(library.database, id)
    output().print(f"Deleted: the table {name_line(name, _LONGEST_NAME)}.")
    return 0
