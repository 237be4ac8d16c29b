"""`folio fetch` and fetch.py: bring papers in from the internet, by identifier, words or citation; describe the others.

It opens the network, as only `folio serve --online` does besides.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from folio.cli.command import positive_int, run_command
from folio.cli.parser import Parser
from folio.errors import command
from folio.people import short_list

if TYPE_CHECKING:
    from folio.app import App
    from folio.identifiers import Identifier
    from folio.sources.fetching import Candidate
    from folio.sources.lookup import Lookup
    from folio.sources.versions import NewVersion
    from folio.types import Paper
    from folio.work import Work

_SOURCES = ("openalex", "semanticscholar", "arxiv")
_SORTS = ("relevance", "date", "citations")
_LARGEST_LIST = 2**20  # bytes of a list of identifiers
_FOUND, _MOST = 20, 500  # works of one run
_DIRECTIONS = ("cites", "cited-by")
_DEEPEST = 3
_CAP, _LARGEST_CAP = 200, 1000  # works that are found along citations


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Bring papers in from arXiv, OpenAlex, Semantic Scholar and Crossref. Uses the internet.",
        epilog="Files go into PAPERS_DIR. CONTACT_EMAIL and keys for the services are settings: see docs/settings.md.",
    )
    identifiers = "arXiv ids, DOIs, links to them; a file with one on each line; - for standard input"
    named = f"{identifiers}; with --expand and --updates: papers of the index"
    parser.add_argument("identifiers", nargs="*", metavar="ID", help=named)
    parser.add_argument("--search", metavar="WORDS", help="find works by words instead")
    expand = "find works that papers of the index cite, or that cite them (default: all papers)"
    parser.add_argument("--expand", choices=_DIRECTIONS, help=expand)
    depth = f"with --expand: number of steps to follow (1 to {_DEEPEST}; default: 1)"
    parser.add_argument("--depth", type=positive_int, metavar="N", help=depth)
    cap = f"with --expand: maximum number of works in all (default: {_CAP}, at most {_LARGEST_CAP:,})"
    parser.add_argument("--cap", type=positive_int, metavar="N", help=cap)
    source = "with --search: the service (default: openalex, or semanticscholar if that fails)"
    parser.add_argument("--source", choices=_SOURCES, help=source)
    parser.add_argument("--since", type=_year, metavar="YEAR", help="only works of this year or later")
    parser.add_argument("--open-access", action="store_true", help="only works that are free to read")
    cited = "only works that are cited at least N times"
    parser.add_argument("--min-cited", type=positive_int, default=0, metavar="N", help=cited)
    most = f"maximum number of works (default: {_FOUND}, with --expand all up to --cap; at most {_MOST})"
    parser.add_argument("--max", type=positive_int, metavar="N", help=most)
    parser.add_argument("--sort", choices=_SORTS, default="relevance", help="with --search: the order")
    metadata = "find title, authors, year and more for the papers in the index; your edits stay"
    parser.add_argument("--metadata", action="store_true", help=metadata)
    updates = "look for retractions, corrections and newer versions of these papers of the index, or of all"
    parser.add_argument("--updates", action="store_true", help=updates)
    both = "keep the old version beside a newer one, instead of replacing it"
    parser.add_argument("--keep-versions", action="store_true", help=both)
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--yes", action="store_true", help="do not ask before downloading")
    return parser


def _year(text: str) -> int:
    if not text.isdecimal() or not 1800 <= int(text) <= 2100:
        raise argparse.ArgumentTypeError("must be a year, such as 2023")
    return int(text)


def main(argv: Sequence[str] | None = None, prog: str = "fetch.py") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    _check_options(arguments)
    if arguments.metadata:
        from folio.commands.fetch_metadata import update
        from folio.console import say
        from folio.sources.online import open_lookup

        with open_lookup(app.internet, say) as lookup:
            return update(app, lookup, is_dry=arguments.dry_run)
    if arguments.updates:
        return _update(app, arguments)
    return _fetch(app, arguments)


def _update(app: App, arguments: argparse.Namespace) -> int:
    from folio.commands import fetch_updates
    from folio.console import say
    from folio.sources.online import open_lookup

    with open_lookup(app.internet, say) as lookup:
        return fetch_updates.update(
            app,
            lookup,
            arguments.identifiers,
            is_dry=arguments.dry_run,
            is_agreed=arguments.yes,
            keeps_both=arguments.keep_versions,
        )


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that cannot be combined."""
    from folio.errors import UsageError

    ids = bool(arguments.identifiers) and not (arguments.expand or arguments.updates)
    ways = [ids, arguments.search is not None, arguments.metadata, bool(arguments.expand), arguments.updates]
    if sum(ways) != 1:
        raise UsageError(
            "Say what to fetch: identifiers, --search, --expand, --metadata or --updates, one of them.",
            f"For example: {command('fetch 2312.10997')}, or {command('fetch --help')}.",
        )
    if arguments.keep_versions and not (ids or arguments.updates):
        raise UsageError("--keep-versions is for newer versions of papers.", "Add --updates, or an arXiv id.")
    if arguments.source and arguments.search is None:
        raise UsageError("--source names the service that is searched.", "Add --search WORDS.")
    filters = (arguments.since, arguments.open_access, arguments.min_cited)
    if arguments.search is None and not arguments.expand and any(filters):
        remedy = "Add --search WORDS or --expand cites."
        raise UsageError("--since, --open-access and --min-cited choose among works.", remedy)
    if arguments.search is not None and not arguments.search.strip():
        raise UsageError("--search has no words.", 'Name some: --search "dense retrieval".')
    if (arguments.depth or arguments.cap) and not arguments.expand:
        raise UsageError("--depth and --cap are of --expand.", "Add --expand cites or --expand cited-by.")
    if (arguments.depth or 1) > _DEEPEST or (arguments.cap or 1) > _LARGEST_CAP:
        raise UsageError(
            "Citations branch too much to follow them further.",
            f"Give a --depth of at most {_DEEPEST}, and a --cap of at most {_LARGEST_CAP:,}.",
        )


def _fetch(app: App, arguments: argparse.Namespace) -> int:
    from folio.commands import fetch_versions
    from folio.console import output, say
    from folio.errors import UsageError
    from folio.sources.fetching import candidates
    from folio.sources.online import open_lookup

    with open_lookup(app.internet, say) as lookup:
        papers, kept = _papers(app)
        works, links, missing = _works(app, lookup, arguments)
        found = candidates(works, papers, app.papers_folder, kept)[: arguments.max]
        if not found:
            say("No works were found.")
            return 1
        _show(found, links)
        by_id = bool(arguments.identifiers) and not arguments.expand
        versions = _versions(app, papers, found, keeps_both=arguments.keep_versions) if by_id else []
        for each in found if by_id else ():
            if each.paper and each.paper_id not in {version.paper.id for version in versions}:
                is_other = ", another version of it" if each.is_other_version else ""
                say(f'"{each.work.title[:80]}": already here as {each.paper}{is_other}.')
        wanted = [each for each in found if not each.paper]
        new = [*(each for each in wanted if not each.is_here), *versions]
        if arguments.dry_run:
            return 1 if missing else 0
        if by_id:
            _describe_again(app, papers, found)
        if not wanted and not versions:
            output().print("All of them are in the index.")
            return 1 if missing else 0
        if new and not arguments.yes:
            if not sys.stdin.isatty():
                raise UsageError("Nobody can be asked whether to download these.", "Add --yes, or --dry-run.")
            if not _confirmed(len(new)):
                return 1
        files = _download(app, lookup, wanted)
        code = _ingest(app, files) if files else 0
        if versions:
            code = max(code, fetch_versions.bring_in(app, lookup, versions))
    return max(code, 1 if missing or len(files) < len(wanted) else 0)


def _versions(app: App, papers: Sequence[Paper], found: Sequence[Candidate], *, keeps_both: bool) -> list[NewVersion]:
    """The newer versions of papers among these works, and older ones too if both are to be kept. Told each."""
    from folio.commands.fetch_versions import describe, planned
    from folio.console import say
    from folio.shown_text import name_line
    from folio.sources.versions import is_missing, newer

    by_id = {paper.id: paper for paper in papers}
    here = [(by_id[each.paper_id], each.work) for each in found if each.paper and not each.is_other_version]
    fits = is_missing if keeps_both else newer
    versions = planned(app, [pair for pair in here if fits(*pair, papers)], keeps_both=keeps_both)
    for version in versions:
        say(f"{name_line(version.paper.file)}: {describe(version)}.")
    return versions


def _works(app: App, lookup: Lookup, arguments: argparse.Namespace) -> tuple[list[Work], dict[str, int] | None, int]:
    """The works that are asked for, and the number of identifiers that no service has.

    Between them, with --expand: mark of a work -> the number of papers of the index that it is linked with.
    """
    from folio.console import say
    from folio.sources.search_query import SearchQuery

    filters = (arguments.since, arguments.open_access, arguments.min_cited)
    if arguments.expand:
        from folio.commands.fetch_expand import expand

        query = SearchQuery("", *filters, arguments.cap or _CAP)
        depth = arguments.depth or 1
        linked = expand(app, lookup, arguments.identifiers, arguments.expand, query, depth, is_dry=arguments.dry_run)
        links = {mark: len(each.papers) for each in linked for work in each.works for mark in work.marks()}
        return [work for each in linked for work in each.works], links, 0
    if arguments.search is not None:
        most = min(arguments.max or _FOUND, _MOST)
        query = SearchQuery(arguments.search.strip()[:500], *filters, most, arguments.sort)
        return [work for group in lookup.search(query, arguments.source) for work in group], None, 0
    identifiers = _identifiers(arguments.identifiers)
    found = lookup.find(identifiers)
    for identifier, work in zip(identifiers, found, strict=True):
        if work is None:
            say(f"{identifier}: no service has it.")
    return [work for work in found if work], None, found.count(None)


def _identifiers(words: Sequence[str]) -> list[Identifier]:
    """The identifiers, each once: of the command line, of files, of standard input. Raises UsageError."""
    from folio.errors import UsageError
    from folio.identifiers import parse_identifier

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


def _papers(app: App) -> tuple[list[Paper], dict[str, str]]:
    """The papers of the index, and what their works are recognised by; none before the first ingest."""
    from folio.errors import StoreMissing
    from folio.store import works

    try:
        library = app.open_library()
    except StoreMissing:  # or a first run was killed while it made the library
        return [], {}
    with closing(library):
        app.require_same_settings(library)  # before anything is downloaded
        papers = library.papers()
        return papers, works.marks_of_papers(library.database, [paper.id for paper in papers])


def _describe_again(app: App, papers: Sequence[Paper], found: Sequence[Candidate]) -> None:
    """Store what services say now of works that are papers of the index."""
    from folio.sources import paper_match
    from folio.sources.work_keeping import PaperFound, keep_papers
    from folio.store import indexes

    by_id = {paper.id: paper.metadata for paper in papers}
    said = {
        each.paper_id: PaperFound(each.works, "fetched", paper_match.score(by_id[each.paper_id], each.work))
        for each in found
        if each.paper and not each.is_other_version and not paper_match.contradicts(by_id[each.paper_id], each.work)
    }
    if not said:
        return
    with indexes.writing(app.store_folder):
        with closing(app.open_library()) as library:
            changed = keep_papers(library, said)
        if changed:
            app.finish_ingest()


def _show(found: Sequence[Candidate], links: dict[str, int] | None) -> None:
    """Print the works as a table. links: mark of a work -> the number of papers that it is linked with."""
    from rich.table import Table

    from folio.console import output
    from folio.shown_text import name_line

    columns = ("title", "authors", "year", "cited", "open", *(["links"] if links is not None else []), "here")
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for each in found:
        work = each.work
        cited = "" if work.cited is None else f"{work.cited:,}"
        is_open = "yes" if work.pdfs or work.is_open else "" if work.is_open is None else "no"
        here = each.paper or (each.path.name if each.is_here else "")
        title = f"RETRACTED: {work.title}" if work.is_retracted else work.title
        shown = [
            name_line(title, 100),
            name_line(short_list([author.name.family for author in work.authors]), 60),
            str(work.year or ""),
            cited,
            is_open,
        ]
        if links is not None:
            shown.append(str(max((links.get(mark, 0) for mark in work.marks()), default=0)))
        table.add_row(*shown, name_line(here, 60))
    output().print(table)


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
    from folio.sources.work_keeping import PaperFound, keep_papers
    from folio.store import indexes

    found = {sha256_file(each.path): PaperFound(each.works, "fetched", 1.0) for each in files}
    with indexes.writing(app.store_folder), closing(app.open_library(create=True)) as library:
        app.require_same_settings(library)
        keep_papers(library, found)
    return ingest.run(app, ingest.parser("ingest.py").parse_args([str(each.path) for each in files]))
