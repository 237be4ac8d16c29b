"""`folio papers`: lists papers, shows and corrects their metadata, and exports all of them as a bibliography."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from folio.cli.command import BY, Parser, add_paper_options, paper_filter, run_subcommand, write_json, write_or_print
from folio.console import output
from folio.errors import UsageError
from folio.shown_text import name_line, plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.papers.lists import By
    from folio.papers.model import Paper
    from folio.store.library import Library


_SORTS = ("file", "title", "author", "year", "venue")


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="List the papers in the index, show and correct their metadata.",
        epilog="Without COMMAND, the papers are listed. Name a PAPER by its key, its file, words of its title, the name"
        " of what it introduces, or the beginning of its id.",
    )
    parser.add_commands(
        ("list", "list papers, or count them", _add_list, _list),
        ("show", "show all metadata of a paper, and where each field comes from", _add_show, _show),
        ("edit", "correct the metadata of a paper", _add_edit, _edit),
        ("tag", "give papers a tag, or put them into a collection", _add_tag, _tag),
        ("untag", "take a tag from papers, or take them out of a collection", _add_untag, _untag),
        ("remove", "remove papers from the index; delete the files of removed papers", _add_remove, _remove),
        ("export", "write all papers as BibTeX or CSL-JSON", _add_export, _export),
    )
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio papers") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    return run_subcommand(parser(prog), argv, default="list")


def _add_list(parser: argparse.ArgumentParser) -> None:
    add_paper_options(parser, "list")
    parser.add_argument("--warnings", action="store_true", help="only papers with warnings, which are shown")
    parser.add_argument("--unsure", action="store_true", help="only papers with a field that is not sure")
    parser.add_argument("--sort", choices=_SORTS, default="file", help="the order (default: file)")
    parser.add_argument("--by", choices=BY, help="count these papers by this field instead")
    parser.add_argument("--json", action="store_true", help="print only JSON, one object per line")


def _list(app: App, arguments: argparse.Namespace) -> int:
    from folio.cli.show_papers import show_papers
    from folio.papers.lists import sort_papers
    from folio.schema.papers import paper_json
    from folio.search.filters import fitting_papers
    from folio.store.indexes import require_format

    wanted = paper_filter(arguments, warnings=arguments.warnings, unsure=arguments.unsure)
    with closing(app.open_library()) as library, library.reading():
        every, added = library.papers(), library.added()
        if not every:
            require_format(library)
        fitting = fitting_papers(library, wanted)
    papers = sort_papers(fitting, arguments.sort)
    if arguments.by:
        print_counts(papers, arguments.by, as_json=arguments.json)
    elif arguments.json:
        for paper in papers:
            write_json(paper_json(paper, added[paper.id]))
    else:
        show_papers(output(), papers, len(every), warnings=arguments.warnings)
    return 0


def print_counts(papers: Sequence[Paper], by: By, *, as_json: bool) -> None:
    """Print the number of papers for each value of a field."""
    from folio.cli.show_papers import show_counts
    from folio.papers.lists import count_by
    from folio.schema.answers import counts_json

    counts = count_by(papers, by)
    if as_json:
        write_json(counts_json(by, counts))
    else:
        show_counts(output(), by, counts)


def _add_paper(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", metavar="PAPER", help="its key, file, words of its title, or the start of its id")


def _add_show(parser: argparse.ArgumentParser) -> None:
    _add_paper(parser)
    parser.add_argument("--json", action="store_true", help="print only JSON")


def _show(app: App, arguments: argparse.Namespace) -> int:
    from folio.search.names import paper_in

    with closing(app.open_library()) as library:
        _show_paper(library, paper_in(library, arguments.paper).id, as_json=arguments.json)
    return 0


def _show_paper(library: Library, id: str, *, as_json: bool) -> None:
    from folio.cli.show_papers import show_paper
    from folio.schema.papers import paper_details_json

    with library.reading():
        (paper,) = library.papers_by_id([id])
        files = [file.name for file in library.files() if file.sha256 == id]
        added = library.added()[id]
    key = library.citation_key(paper)
    if as_json:
        write_json(paper_details_json(paper, added, files, key))
    else:
        show_paper(output(), paper, files, key)


def _add_edit(parser: argparse.ArgumentParser) -> None:
    _add_paper(parser)
    parser.add_argument(
        "changes",
        nargs="*",
        metavar="FIELD=VALUE",
        help='such as year=2014 or authors="Otter, Ann; Seal, Bo"; year= empties the field',
    )
    reset = "undo your edit of this field, or of all fields"
    parser.add_argument("--reset", action="append", default=[], metavar="FIELD", help=reset)
    parser.add_argument("--json", action="store_true", help="print only JSON")


def _edit(app: App, arguments: argparse.Namespace) -> int:
    from folio.cli.show_papers import show_edit
    from folio.papers.edits import edited, key_in, parse_edits
    from folio.search.names import paper_in

    edits = parse_edits(arguments.changes, arguments.reset)
    with closing(app.open_library()) as library:
        before = paper_in(library, arguments.paper)
        library.require_free_key([before.id], key_in(edits))
        is_renamed = library.change_metadata(before.id, "person", lambda person: edited(person, edits))
        app.finish_edit(is_renamed=is_renamed)
        if arguments.json:
            _show_paper(library, before.id, as_json=True)
        else:
            (after,) = library.papers_by_id([before.id])
            show_edit(output(), before, after, list(edits))
    return 0


def _add_tag(parser: argparse.ArgumentParser) -> None:
    _add_tagging(parser, "tag")


def _add_untag(parser: argparse.ArgumentParser) -> None:
    _add_tagging(parser, "untag")


def _add_tagging(parser: argparse.ArgumentParser, does: str) -> None:
    parser.add_argument("name", metavar="TAG", help="the tag; with --in, the path of a collection: Systems/Consensus")
    parser.add_argument("papers", nargs="*", metavar="PAPER", help="as for show; or give filters")
    parser.add_argument("--in", action="store_true", dest="is_collection", help="TAG is a collection")
    add_paper_options(parser, does)


def _tag(app: App, arguments: argparse.Namespace) -> int:
    return _retag(app, arguments, adds=True)


def _untag(app: App, arguments: argparse.Namespace) -> int:
    return _retag(app, arguments, adds=False)


def _retag(app: App, arguments: argparse.Namespace, *, adds: bool) -> int:
    """Add a tag or a collection to papers, or take it from them."""
    from folio.papers.edits import retagged
    from folio.search.filters import PaperFilter, fitting_papers
    from folio.search.names import paper_in
    from folio.shown_text import counted

    wanted = paper_filter(arguments)
    if not arguments.papers and wanted == PaperFilter():
        raise UsageError("No paper is named.", "Name papers, or give a filter, such as --author.")
    added, removed = ([arguments.name], []) if adds else ([], [arguments.name])
    field: Literal["tags", "collections"] = "collections" if arguments.is_collection else "tags"
    with closing(app.open_library()) as library:
        papers = {paper_in(library, name).id: None for name in arguments.papers}
        if wanted != PaperFilter():
            papers |= {paper.id: None for paper in fitting_papers(library, wanted)}
        changes = library.change_metadata_of(
            list(papers), "person", lambda layers: retagged(layers, added, removed, field)
        )
        app.finish_edit(is_renamed=changes.renamed)
    output().print(f"Changed: {counted(changes.papers, 'paper')}.")
    return 0


def _add_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("papers", metavar="PAPER", nargs="*", help="as for show")
    now = "delete all files in papers/.removed now, not after a day"
    parser.add_argument("--now", action="store_true", help=now)


def _remove(app: App, arguments: argparse.Namespace) -> int:
    from folio.search.names import paper_in
    from folio.web.papers import PaperFiles

    if not arguments.papers and not arguments.now:
        raise UsageError("No paper is named.", "Name one, or add --now to delete the files of those removed before.")
    files = PaperFiles(app)
    if arguments.papers:
        with closing(app.open_library()) as library:
            papers = [paper_in(library, name).id for name in arguments.papers]
        for removed in files.remove(*papers):
            place = f"its file is now {removed.kept_at}" if removed.kept_at else "its file stays where it is"
            output().print(f"{name_line(removed.file)}: removed from the index; {place}.", markup=False)
    if not arguments.now:
        return 0
    emptied = files.empty_removed()
    output().print(f"Deleted files of removed papers: {emptied.deleted}.")
    for sentence in emptied.stay:
        output().print(plain_line(sentence), markup=False)
    return 1 if emptied.stay else 0


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("bibtex", "csl-json"), default="bibtex", help="default: bibtex")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to FILE instead of standard output")


def _export(app: App, arguments: argparse.Namespace) -> int:
    """Write the bibliography; fields that are not sure are left out, with a note."""
    from folio.bibliography.export import library_bibtex, library_csl_json
    from folio.shown_text import counted
    from folio.store import works

    with closing(app.open_library()) as library:
        keys, papers = library.citation_keys(), library.papers()
        papers = [paper for paper in papers if paper.id in keys]
        published = works.publishers_bibtex(library.database, keys)
    text = library_bibtex(papers, keys, published) if arguments.format == "bibtex" else library_csl_json(papers, keys)
    return write_or_print(arguments.out, text.encode(), f"{counted(len(papers), 'paper')} written to")
