"""`folio notes`: lists, adds, deletes and exports notes on places in papers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.cli.command import Parser, format_of, positive_int, run_subcommand, write_json, write_or_print
from folio.console import output, say
from folio.errors import UsageError
from folio.shown_text import counted, plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.store.library import Library
    from folio.store.note_places import PlacedNote

_COLOURS = ("yellow", "green", "blue", "pink")
_ORDERS = ("place", "created", "updated", "paper")  # as store.note_places.Order, which --help need not import
_FORMATS = ("md", "docx", "bib", "rdf")
_SHOWN_ID = 8  # characters of an id in the list; any beginning that fits one note names it


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="List, add, delete and export notes on places in papers. They stay when papers are read again.",
        epilog="Without COMMAND, the notes are listed. Name a PAPER by its key, its file, words of its title, the name"
        " of what it introduces, or the beginning of its id.",
    )
    parser.add_commands(
        ("list", "list notes", _add_list, _list),
        ("add", "add a note on words of a paper", _add_add, _add),
        ("delete", "delete a note", _add_delete, _delete),
        ("export", "write notes as Markdown, as a Word document, for Zotero (rdf), or into copies of the PDFs; or the"
         " papers that they cite as BibTeX", _add_export, _export),
    )  # fmt: skip
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio notes") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    return run_subcommand(parser(prog), argv, default="list")


def _add_filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--paper", metavar="PAPER", help="only notes on this paper")
    parser.add_argument("--colour", choices=_COLOURS, help="only notes of this colour")
    in_project = "only notes on papers of this project, of its conversations, and those put into it"
    parser.add_argument("--project", metavar="NAME", help=in_project)
    order = "by the paper and the place in it (default), the newest or last changed first, or by the paper and the time"
    parser.add_argument("--order", choices=_ORDERS, default="place", help=order)


def _chosen(library: Library, arguments: argparse.Namespace, words: Sequence[str] = ()) -> list[PlacedNote]:
    from folio.search.filters import notes_in
    from folio.search.names import paper_in
    from folio.store.note_places import NoteFilter, listed

    paper = paper_in(library, arguments.paper).id if arguments.paper else ""
    among = notes_in(library, arguments.project) if arguments.project else None
    return listed(library, NoteFilter(paper, " ".join(words), arguments.colour, among=among), arguments.order)


def _add_list(parser: argparse.ArgumentParser) -> None:
    words = "only notes with these words in their quotes, their text, or the title of their paper"
    parser.add_argument("words", nargs="*", metavar="WORDS", help=words)
    _add_filter(parser)
    parser.add_argument("--json", action="store_true", help="print only JSON, one object per line")


def _list(app: App, arguments: argparse.Namespace) -> int:
    with closing(app.open_library()) as library:
        notes = _chosen(library, arguments, arguments.words)
    if arguments.json:
        from folio.schema.notes import note_json

        for note in notes:
            write_json(note_json(note))
        return 0
    for note in notes:
        _show(note)
    output().print(f"{counted(len(notes), 'note')}.")
    return 0


def _show(placed: PlacedNote) -> None:
    """Print a note: its id and colour, its quotes with their places, its words."""
    from folio.bibliography.notes import REMARKS, where_of

    note = placed.note
    origin = "from Zotero" if note.origin else ""
    lines = [" ".join(filter(None, [note.id[:_SHOWN_ID], note.created[:10], note.colour, origin]))]
    lines += [f"  {plain_line(line)}" for line in note.statement.splitlines() if line.strip()]
    for each in placed.quotes:
        remark = REMARKS.get(each.place, "")
        words = f"“{plain_line(each.quote.quote)}” " if each.quote.quote else ""
        lines.append(f"  {words}{where_of(each)}{f' ({remark})' if remark else ''}")
    lines += [f"  {plain_line(line)}" for line in note.text.splitlines() if line.strip()]
    output().print("\n".join(lines), markup=False, highlight=False)


def _add_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", metavar="PAPER", help="its key, file, words of its title, or the start of its id")
    words = "words of the paper, as on its page; case, accents, hyphens and line ends may differ"
    parser.add_argument("words", metavar="WORDS", help=words)
    parser.add_argument("--page", type=positive_int, metavar="N", help="the page with the words, if others have them")
    parser.add_argument("--text", default="", help="your own words")
    parser.add_argument("--colour", choices=_COLOURS, default="", help="highlight the words in this colour")
    parser.add_argument("--json", action="store_true", help="print only JSON")


def _add(app: App, arguments: argparse.Namespace) -> int:
    from folio.search.names import paper_in
    from folio.store import notes
    from folio.store.note_places import placed, quote_of

    with closing(app.open_library()) as library:
        paper = paper_in(library, arguments.paper)
        quote = quote_of(library, paper, arguments.words, arguments.page)
        note = notes.add(library.database, [quote], colour=arguments.colour, text=arguments.text)
        added = placed(library, note.id)
    if arguments.json:
        from folio.schema.notes import note_json

        write_json(note_json(added))
    else:
        _show(added)
    return 0


def _add_delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the note's id in the list, or its beginning")


def _delete(app: App, arguments: argparse.Namespace) -> int:
    from folio.store import notes

    with closing(app.open_library()) as library:
        id = arguments.id.strip().lower()
        ids = [note.id for note in notes.read(library.database) if id and note.id.startswith(id)]
        if len(ids) > 1:
            raise UsageError(f"{len(ids)} notes have an id that begins so.", "Give more of the id.")
        if not ids:
            raise notes.unknown_note()
        notes.remove(library.database, ids[0])
    output().print(f"Deleted: note {ids[0][:_SHOWN_ID]}.")
    return 0


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="default: standard output")
    parser.add_argument("--format", choices=_FORMATS, help="default: by the ending of FILE, else md")
    pdf = "write a copy of each PDF into this folder, with its notes as highlights and comments"
    parser.add_argument("--pdf", type=Path, metavar="FOLDER", help=pdf)
    _add_filter(parser)


def _export(app: App, arguments: argparse.Namespace) -> int:
    from folio.bibliography.notes import cited_bibtex, markdown, zotero_rdf
    from folio.bibliography.word import word_document
    from folio.store import works

    if arguments.pdf is not None:
        if arguments.file or arguments.format:
            raise UsageError("--pdf writes copies of PDFs, and no other file.", "Run it without FILE and --format.")
        return _export_pdfs(app, arguments)
    kind = format_of(arguments.file, arguments.format, _FORMATS, "md", "notes.docx")
    with closing(app.open_library()) as library:
        notes = _chosen(library, arguments)
        if kind == "bib":
            keys = library.citation_keys()
            content = cited_bibtex(notes, keys, works.publishers_bibtex(library.database, keys)).encode()
        else:
            page = app.page_url
            as_text = zotero_rdf if kind == "rdf" else markdown
            content = word_document(notes, page) if kind == "docx" else as_text(notes, page).encode()
    return write_or_print(arguments.file, content, f"{counted(len(notes), 'note')} written to")


def _export_pdfs(app: App, arguments: argparse.Namespace) -> int:
    from functools import partial

    from folio.bibliography.annotated import require_outside, write_copies
    from folio.pdf.annotations import write_annotated

    failed = 0
    with closing(app.open_library()) as library:
        notes = _chosen(library, arguments)
        read = (app.papers_folder, *app.watched.folders)
        require_outside(arguments.pdf, read, [file.path for file in library.files()])
        write = partial(app.in_worker, write_annotated)

        def copy_of(paper: str) -> Path | None:
            return app.backend.copy_of(library, paper, app.fetched_pdfs)

        for copied in write_copies(library, notes, arguments.pdf, copy_of, write):
            name = plain_line(copied.paper.file)
            if copied.path is None:
                failed = 1
                say(f"{name}: no copy was written, because {plain_line(copied.why)}")
            else:
                output().print(f"{plain_line(str(copied.path))}: {counted(copied.notes, 'note')}", markup=False)
    return failed
