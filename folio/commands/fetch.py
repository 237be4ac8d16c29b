"""`folio fetch` and fetch.py: bring papers in from the internet, by identifier or words; describe those that are here.

The one command that opens the network.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.cli.command import positive_int

if TYPE_CHECKING:
    from folio.app import App
    from folio.sources.fetching import Candidate
    from folio.sources.identifiers import Identifier
    from folio.sources.lookup import Lookup
    from folio.types import Paper
    from folio.work import Work

_SOURCES = ("openalex", "semanticscholar", "arxiv")
_SORTS = ("relevance", "date", "citations")
_LARGEST_LIST = 2**20  # bytes of a list of identifiers
_MOST = 500  # works of one run


def parser(prog: str) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog=prog,
        description="Bring papers in from arXiv, OpenAlex, Semantic Scholar and Crossref. Uses the internet.",
        epilog="Files go into PAPERS_DIR. CONTACT_EMAIL and keys for the services are settings: see docs/settings.md.",
    )
    identifiers = "arXiv ids, DOIs, links to them; a file with one on each line; - for standard input"
    found.add_argument("identifiers", nargs="*", metavar="ID", help=identifiers)
    found.add_argument("--search", metavar="WORDS", help="find works by words instead")
    source = "with --search: the service (default: openalex, or semanticscholar if that fails)"
    found.add_argument("--source", choices=_SOURCES, help=source)
    found.add_argument("--since", type=_year, metavar="YEAR", help="with --search: only works of this year or later")
    found.add_argument("--open-access", action="store_true", help="with --search: only works that are free to read")
    cited = "with --search: only works that so many others cite"
    found.add_argument("--min-cited", type=positive_int, default=0, metavar="N", help=cited)
    most = "with --search: at most so many works (default: 20, no more than 500)"
    found.add_argument("--max", type=positive_int, default=20, metavar="N", help=most)
    found.add_argument("--sort", choices=_SORTS, default="relevance", help="with --search: the order")
    metadata = "find title, authors, year and more for the papers that are in the index; what you edited stays"
    found.add_argument("--metadata", action="store_true", help=metadata)
    found.add_argument("--dry-run", action="store_true", help="only show what would be done")
    found.add_argument("--yes", action="store_true", help="do not ask before downloading")
    return found


def _year(text: str) -> int:
    if not text.isdecimal() or not 1800 <= int(text) <= 2100:
        raise argparse.ArgumentTypeError("must be a year, such as 2023")
    return int(text)


def main(argv: Sequence[str] | None = None, prog: str = "fetch.py") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    from folio.cli.command import command

    return command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    from folio.errors import UsageError

    ways = [bool(arguments.identifiers), arguments.search is not None, arguments.metadata]
    if sum(ways) != 1:
        raise UsageError(
            "Say what to fetch: identifiers, --search or --metadata, one of them.",
            "For example: python fetch.py 2312.10997, or python fetch.py --help.",
        )
    filters = (arguments.source, arguments.since, arguments.open_access, arguments.min_cited)
    if arguments.search is None and any(filters):
        raise UsageError("--source, --since, --open-access and --min-cited choose among works.", "Add --search WORDS.")
    if arguments.search is not None and not arguments.search.strip():
        raise UsageError("--search has no words.", 'Name some: --search "dense retrieval".')
    if arguments.metadata:
        from folio.commands.fetch_metadata import update
        from folio.console import say
        from folio.sources.online import open_lookup

        with open_lookup(app.internet, say) as lookup:
            return update(app, lookup, is_dry=arguments.dry_run)
    return _fetch(app, arguments)


def _fetch(app: App, arguments: argparse.Namespace) -> int:
    from folio.console import output, say
    from folio.errors import UsageError
    from folio.sources.fetching import candidates
    from folio.sources.online import open_lookup

    with open_lookup(app.internet, say) as lookup:
        works, missing = _works(lookup, arguments)
        found = candidates(works, _papers(app), app.papers_folder)
        if not found:
            say("No works were found.")
            return 1
        _show(found)
        wanted = [each for each in found if not each.paper]
        new = [each for each in wanted if not each.is_here]
        if arguments.dry_run:
            return 1 if missing else 0
        if not wanted:
            output().print("All of them are in the index.")
            return 1 if missing else 0
        if new and not arguments.yes:
            if not sys.stdin.isatty():
                raise UsageError("Nobody can be asked whether to download these.", "Add --yes, or --dry-run.")
            if not _confirmed(len(new)):
                return 1
        files = _download(app, lookup, wanted)
    code = _ingest(app, files) if files else 0
    return max(code, 1 if missing or len(files) < len(wanted) else 0)


def _works(lookup: Lookup, arguments: argparse.Namespace) -> tuple[list[Work], int]:
    """The works that are asked for, and the number of identifiers that no service has."""
    from folio.console import say
    from folio.sources.search_query import SearchQuery

    if arguments.search is not None:
        query = SearchQuery(
            arguments.search.strip()[:500],
            arguments.since,
            arguments.open_access,
            arguments.min_cited,
            min(arguments.max, _MOST),
            arguments.sort,
        )
        return [work for group in lookup.search(query, arguments.source) for work in group], 0
    identifiers = _identifiers(arguments.identifiers)
    found = lookup.find(identifiers)
    for identifier, work in zip(identifiers, found, strict=True):
        if work is None:
            say(f"{identifier}: no service has it.")
    return [work for work in found if work], found.count(None)


def _identifiers(words: Sequence[str]) -> list[Identifier]:
    """The identifiers, each once: of the command line, of files, of standard input. Raises UsageError."""
    from folio.errors import UsageError
    from folio.sources.identifiers import parse_identifier

    written: list[str] = []
    for word in words:
        if word == "-":
            written += _lines(sys.stdin.read(_LARGEST_LIST + 1), "standard input")
        elif os.path.isfile(word):
            written += _lines(_content(Path(word)), word)
        else:
            written.append(word)
    found = list(dict.fromkeys(map(parse_identifier, written)))
    if not found or len(found) > _MOST:
        remedy = f"Name at least one and at most {_MOST}."
        raise UsageError(f"{len(found):,} identifiers are named.", remedy)
    return found


def _content(path: Path) -> str:
    from folio.errors import UsageError
    from folio.files import open_regular

    try:
        with open_regular(path) as file:
            return file.read(_LARGEST_LIST + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The list {path} cannot be read.", "Name a text file with one identifier a line.") from error


def _lines(text: str, name: str) -> list[str]:
    """The lines of a list that are not empty and no comments."""
    from folio.errors import UsageError

    if len(text) > _LARGEST_LIST:
        raise UsageError(f"The list in {name} is larger than 1 MB.", "Name a shorter one.")
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _papers(app: App) -> list[Paper]:
    """The papers of the index; none before the first ingest."""
    if not app.library_path.exists():
        return []
    with closing(app.open_library()) as library:
        app.require_same_settings(library)  # before anything is downloaded
        return library.papers()


def _show(found: Sequence[Candidate]) -> None:
    """Print the works as a table."""
    from rich.table import Table

    from folio.console import output
    from folio.shown_text import name_line

    table = Table("title", "authors", "year", "cited", "open", "here", box=None, pad_edge=False, header_style="bold")
    for each in found:
        work = each.work
        cited = "" if work.cited is None else f"{work.cited:,}"
        is_open = "yes" if work.pdfs or work.is_open else "" if work.is_open is None else "no"
        here = each.paper or (each.path.name if each.is_here else "")
        title = f"RETRACTED: {work.title}" if work.is_retracted else work.title
        shown = (name_line(title, 100), name_line(_authors(work), 60), str(work.year or ""), cited, is_open)
        table.add_row(*shown, name_line(here, 60))
    output().print(table)


def _authors(work: Work) -> str:
    names = [author.name.family for author in work.authors]
    return f"{names[0]} et al." if len(names) > 2 else " & ".join(names)


def _confirmed(count: int) -> bool:
    from folio.console import errors

    errors().print(f"Download {count} {'paper' if count == 1 else 'papers'}? [y/N] ", end="")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _download(app: App, lookup: Lookup, wanted: Sequence[Candidate]) -> list[Candidate]:
    """Download what is not there; returns what is there then."""
    from folio.console import progress_bar, say
    from folio.sources.pdf_download import download

    found: list[Candidate] = []
    try:
        with progress_bar() as progress:
            for done, each in enumerate(download(wanted, lookup, app.internet.largest_mb * 10**6, say), 1):
                found += [each] if each else []
                progress("downloading", done, len(wanted))
    except KeyboardInterrupt:
        say(f"Stopped. Files that are whole: {len(found)}. Run the same command again to continue.")
        raise
    return found


def _ingest(app: App, files: Sequence[Candidate]) -> int:
    """Store what is known of the papers, then read them."""
    from folio.commands import ingest
    from folio.files import sha256_file
    from folio.sources.fetching import describe
    from folio.store import indexes
    from folio.store.library import Library

    metadata = {sha256_file(each.path): each.metadata for each in files}
    with indexes.writing(app.store_folder), closing(Library(app.library_path, create=True)) as library:
        app.require_same_settings(library)
        describe(library, metadata)
    return ingest.run(app, ingest.parser("ingest.py").parse_args([str(each.path) for each in files]))
