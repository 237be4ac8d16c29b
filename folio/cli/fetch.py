"""`folio fetch` and fetch.py: bring papers in from the internet, by identifier, words or citation; describe the others.

It opens the network, as only `folio serve --online` does besides.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from folio.cli.command import Parser, positive_int, run_command
from folio.console import errors, output, progress_bar, say
from folio.errors import command
from folio.papers.people import short_list
from folio.shown_text import name_line, short_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.papers.identifiers import Identifier
    from folio.papers.metadata import Field
    from folio.papers.model import Paper
    from folio.papers.work import Work, WorkNotice
    from folio.services.answers import SearchQuery
    from folio.services.keep import Candidate, Direction, Linked, PaperFound
    from folio.services.lookup import Lookup
    from folio.services.updates import NewVersion, ServiceReport, Subject
    from folio.store.library import Library


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
        from folio.console import say
        from folio.services.online import open_lookup

        with open_lookup(app.internet, say) as lookup:
            return update_metadata(app, lookup, is_dry=arguments.dry_run)
    if arguments.updates:
        return _update(app, arguments)
    return _fetch(app, arguments)


def _update(app: App, arguments: argparse.Namespace) -> int:
    from folio.console import say
    from folio.services.online import open_lookup

    with open_lookup(app.internet, say) as lookup:
        return show_updates(
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
    from folio.console import output, say
    from folio.errors import UsageError
    from folio.services.keep import candidates
    from folio.services.online import open_lookup

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
            code = max(code, bring_in(app, lookup, versions))
    return max(code, 1 if missing or len(files) < len(wanted) else 0)


def _versions(app: App, papers: Sequence[Paper], found: Sequence[Candidate], *, keeps_both: bool) -> list[NewVersion]:
    """The newer versions of papers among these works, and older ones too if both are to be kept. Told each."""
    from folio.console import say
    from folio.services.updates import is_missing, newer
    from folio.shown_text import name_line

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
    from folio.services.answers import SearchQuery

    filters = (arguments.since, arguments.open_access, arguments.min_cited)
    if arguments.expand:
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
    from folio.papers.identifiers import parse_identifier

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
    from folio.system.files import open_regular

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
    from folio.services import keep
    from folio.services.keep import PaperFound, keep_papers
    from folio.store import indexes

    by_id = {paper.id: paper.metadata for paper in papers}
    said = {
        each.paper_id: PaperFound(each.works, "fetched", keep.score(by_id[each.paper_id], each.work))
        for each in found
        if each.paper and not each.is_other_version and not keep.contradicts(by_id[each.paper_id], each.work)
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
    from folio.services.download import download

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
    from folio.cli import ingest
    from folio.services.keep import PaperFound, keep_papers
    from folio.store import indexes
    from folio.system.files import sha256_file

    found = {sha256_file(each.path): PaperFound(each.works, "fetched", 1.0) for each in files}
    with indexes.writing(app.store_folder), closing(app.open_library(create=True)) as library:
        app.require_same_settings(library)
        keep_papers(library, found)
    return ingest.run(app, ingest.parser("ingest.py").parse_args([str(each.path) for each in files]))


# `folio fetch --expand`: works that papers of the index cite, or that cite them.

NO_WORK = "no service is known to have it."


def expand(
    app: App,
    lookup: Lookup,
    names: Sequence[str],
    direction: Direction,
    query: SearchQuery,
    depth: int,
    *,
    is_dry: bool,
) -> list[Linked]:
    """Follow the citations of these papers, all if none is named; store who cites whom unless `is_dry`.

    query: the filters; its `most` is the cap. Returns what was found, best first.
    """
    from folio.services.citations import follow
    from folio.services.keep import keep_followed, link_papers
    from folio.store import indexes, works

    with closing(app.open_library()) as library:
        papers = {paper.id: paper for paper in _named_papers(library, names)}
        database = library.database
        kept = {id: works.of_paper(database, id) for id in papers}
    try:
        with progress_bar() as progress:
            followed = follow(papers, kept, lookup, direction, query, depth, progress)
    except KeyboardInterrupt:
        say("Stopped. Nothing was stored; the answers so far are kept for a day.")
        raise
    for id in papers.keys() - followed.expansion.starts.keys():
        say(f"{name_line(papers[id].file)}: {NO_WORK}")
    if not is_dry:
        with indexes.writing(app.store_folder), closing(app.open_library()) as library:
            keep_followed(library, followed)
            link_papers(library)
    return followed.expansion.found


def _named_papers(library: Library, names: Sequence[str]) -> list[Paper]:
    """The papers of these names; all without any. Raises NotKnown."""
    from folio.search.names import aliases_in, file_names, papers_named, unknown_paper

    papers, files, known_by = library.papers(), file_names(library.files()), aliases_in(library)
    chosen: dict[str, Paper] = {}
    for name in names:
        found = papers_named(name, papers, files, known_by)
        if not found:
            raise unknown_paper(name, papers, files)
        chosen |= {paper.id: paper for paper in found}
    return list(chosen.values()) if names else papers


# `folio fetch --metadata`: what services know of the papers that are in the index, and what changes by it.

_SHOWN = 70  # characters of a value


def update_metadata(app: App, lookup: Lookup, *, is_dry: bool) -> int:
    """Ask about every paper, print what changes, and store it unless `is_dry`; returns the exit code."""
    from folio.papers.metadata import NO_METADATA, merged
    from folio.services.keep import keep_papers, metadata_then
    from folio.services.lookup import SERVICE_NAMES, changes, describe_paper
    from folio.store import indexes, works

    with closing(app.open_library()) as library:
        papers = library.papers()
        layers = {paper.id: library.metadata_layers(paper.id) for paper in papers}
        database = library.database
        kept = {paper.id: next(iter(works.of_paper(database, paper.id)), None) for paper in papers}
    said: dict[str, PaperFound] = {}
    changed = unknown = 0
    try:
        with progress_bar() as progress:
            for done, paper in enumerate(papers, 1):
                # What services said before tells nothing about this time.
                about = merged({**layers[paper.id], "online": NO_METADATA})
                described = describe_paper(about, lookup)
                if described.note:
                    output().print(f"{name_line(paper.file)}: {described.note}.")
                if (found := described.found) is None:
                    unknown += 1
                    output().print(f"{name_line(paper.file)}: no service is known to have it.")
                else:
                    said[paper.id] = found
                    differing = changes(layers[paper.id], metadata_then(found, kept[paper.id]))
                    changed += bool(differing)
                    _show_metadata(
                        paper,
                        f"by {SERVICE_NAMES.get(found.found_by, found.found_by)}, match {found.score:.2f}",
                        differing,
                    )
                progress("looking up", done, len(papers))
    except KeyboardInterrupt:
        say("Stopped. Nothing was changed; the answers so far are kept for a day.")
        raise
    if not is_dry and said:
        with indexes.writing(app.store_folder):
            with closing(app.open_library()) as library:
                keep_papers(library, said)
            app.finish_ingest()
    counts = f"Papers: {len(papers):,}, found: {len(said):,}, changed: {changed:,}, not found: {unknown:,}."
    output().print(f"{counts} Nothing was stored, because of --dry-run." if is_dry else counts)
    return 0


def _show_metadata(paper: Paper, how: str, differing: Sequence[tuple[str, Field[Any], Field[Any]]]) -> None:
    if not differing:
        return
    output().print(f"{name_line(paper.file)} ({how}):")
    for name, old, new in differing:
        output().print(f"  {name}: {_value(old)} -> {_value(new)}")


def _value(field: Field[Any]) -> str:
    value = field.value
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value or "")
    return short_line(text, _SHOWN) if text else "(none)"


# `folio fetch --updates`: retractions, corrections and newer versions of the papers that are in the index.


@dataclass(frozen=True, slots=True)
class _News:
    """What is new about a paper."""

    paper: Paper
    notices: tuple[WorkNotice, ...]  # that were not known


def show_updates(
    app: App, lookup: Lookup, names: Sequence[str], *, is_dry: bool, is_agreed: bool, keeps_both: bool
) -> int:
    """Ask about these papers, all if none is named; show what is new, store it and bring newer versions in.

    is_dry: only show. is_agreed: nobody is to be asked. Returns 1 if a service failed or a version did not come.
    """
    from folio.services.updates import ask, keep, newer
    from folio.store import indexes

    every, subjects = _subjects(app, names)
    failures: list[str] = []
    asked = [each for each in subjects if each.is_known]
    try:
        with progress_bar() as progress:
            said = ask(lookup.client, asked, failures.append, progress)
    except KeyboardInterrupt:
        say("Stopped. Nothing was changed; the answers so far are kept for a day.")
        raise
    for failure in dict.fromkeys(failures):
        say(failure)
    for about, answer in zip(asked, said, strict=True):
        if answer.note:
            say(f"{name_line(about.paper.file)}: {answer.note}.")
    news = [_News(each.paper, _unknown(each.paper, answer)) for each, answer in zip(asked, said, strict=True)]
    versions = planned(
        app,
        [
            (each.paper, answer.newest.work)
            for each, answer in zip(asked, said, strict=True)
            if answer.newest and newer(each.paper, answer.newest.work, every)
        ],
        keeps_both=keeps_both,
    )
    dates = {answer.newest.work.arxiv: answer.newest.updated for answer in said if answer.newest}
    _show_news(news, versions, dates)
    _count(len(subjects), asked, news, versions, is_dry=is_dry)
    if is_dry:
        return 1 if failures else 0
    if asked:
        with indexes.writing(app.store_folder), closing(app.open_library()) as library:
            keep(library, zip(asked, said, strict=True))
    code = 1 if failures else 0
    if not versions:
        return code
    if not is_agreed and not sys.stdin.isatty():
        say("Newer versions were not downloaded, as nobody can be asked. Add --yes.")
        return code
    if not is_agreed and not confirmed(len(versions)):
        return code
    return max(code, bring_in(app, lookup, versions))


def _subjects(app: App, names: Sequence[str]) -> tuple[list[Paper], list[Subject]]:
    """All papers of the index, and those of these names as services know them. Raises NotKnown, UsageError."""
    from folio.search.names import aliases_in, file_names, the_paper
    from folio.services.updates import subject
    from folio.store import works

    with closing(app.open_library()) as library, library.reading():
        app.require_same_settings(library)
        papers = library.papers()
        files, known_by = file_names(library.files()), aliases_in(library)
        chosen = {paper.id: paper for paper in (the_paper(name, papers, files, known_by) for name in names)}
        wanted = list(chosen.values()) if names else papers
        return papers, [subject(paper, works.of_paper(library.database, paper.id)) for paper in wanted]


def _unknown(paper: Paper, report: ServiceReport) -> tuple[WorkNotice, ...]:
    """The notices that are not stored yet."""
    known = {(each.kind, each.dated, each.link) for each in paper.notices}
    return tuple(each for each in report.shown_notices if (each.kind, each.dated, each.link) not in known)


def _show_news(news: Sequence[_News], versions: Sequence[NewVersion], dates: dict[str, str]) -> None:
    """Print what is new as a table; nothing if there is nothing. dates: arXiv id -> day of that version."""
    from rich.table import Table
    from rich.text import Text

    table = Table("paper", "new", "date", box=None, pad_edge=False, header_style="bold")
    for each in news:
        for notice in each.notices:
            style = "bold red" if notice.is_grave else ""
            table.add_row(name_line(each.paper.file, 80), Text(notice.without_date, style=style), notice.dated)
    for version in versions:
        date = dates.get(version.work.arxiv, "")
        table.add_row(name_line(version.paper.file, 80), Text(describe(version)), date)
    if table.row_count:
        output().print(table)


def _count(
    papers: int, asked: Sequence[Subject], news: Sequence[_News], versions: Sequence[NewVersion], *, is_dry: bool
) -> None:
    notices = sum(len(each.notices) for each in news)
    unknown = papers - len(asked)
    without = f" Without DOI and arXiv id, so not asked about: {unknown:,}." if unknown else ""
    stored = " Nothing was stored, because of --dry-run." if is_dry else ""
    output().print(f"Papers: {papers:,}, new notices: {notices:,}, newer versions: {len(versions):,}.{without}{stored}")


# Newer versions of papers that are in the index: downloaded, put in the old ones' places, and read.


def planned(app: App, found: Iterable[tuple[Paper, Work]], *, keeps_both: bool) -> list[NewVersion]:
    """How these versions are to come in, each for one paper."""
    from folio.services.updates import new_version

    pairs = {work.arxiv: (paper, work) for paper, work in reversed(list(found))}
    if not pairs:
        return []
    with closing(app.open_library()) as library:
        files = library.files()
    return [
        new_version(paper, work, files, app.papers_folder, keeps_both=keeps_both)
        for paper, work in reversed(pairs.values())
    ]


def describe(version: NewVersion) -> str:
    """What is to become of it, in words."""
    return f"version {version.number}, here: {_own(version)}{', which stays' if not version.files else ''}"


def _own(version: NewVersion) -> str:
    from folio.papers.identifiers import version_number

    own = version_number(version.paper.arxiv)
    return f"version {own}" if own else "a version that is not known"


def confirmed(count: int) -> bool:
    """Ask whether to download so many."""
    errors().print(f"Download {count} {'newer version' if count == 1 else 'newer versions'}? [y/N] ", end="")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def bring_in(app: App, lookup: Lookup, versions: Sequence[NewVersion]) -> int:
    """Download, put in place and read these versions; returns 1 if one of them did not come."""
    from folio.services.updates import download

    there: list[NewVersion] = []
    try:
        with progress_bar() as progress:
            for done, version in enumerate(versions, 1):
                there += [version] if download(version, lookup, app.internet.largest_mb * 10**6, say) else []
                progress("downloading", done, len(versions))
    except KeyboardInterrupt:
        say("Stopped. Nothing was replaced. Run the same command again to continue.")
        raise
    came = [_take_in(app, version) for version in there]
    return 0 if all(came) and len(there) == len(versions) else 1


def _take_in(app: App, version: NewVersion) -> bool:
    """Put one version in place and read it; whether it is in the index then. If not, the old one is as it was."""
    from folio.cli import ingest
    from folio.errors import PaperError
    from folio.services.keep import PaperFound, keep_papers
    from folio.services.updates import install, undo
    from folio.store import indexes
    from folio.system.files import sha256_file

    name = name_line(version.paper.file)
    id = sha256_file(version.incoming)
    if id == version.paper.id:
        version.incoming.unlink()
        _record(app, version)
        output().print(f"{name} is version {version.number} already.")
        return True
    with indexes.writing(app.store_folder), closing(app.open_library()) as library:
        app.require_same_settings(library)
        keep_papers(library, {id: PaperFound((version.work,), "fetched", 1.0)})
    try:
        kept = install(version)
    except PaperError as error:
        say(f"{error.happened} {error.remedy}")
        return False
    ingest.run(app, ingest.parser("ingest.py").parse_args([str(path) for path in version.targets]))
    with closing(app.open_library()) as library:
        is_in = bool(library.papers_by_id([id]))
    if not is_in:
        undo(version, kept)
        with indexes.writing(app.store_folder), closing(app.open_library()) as library:
            for path in version.files:
                library.forget_failure(str(path))
        say(f"{name}: version {version.number} could not be read. {_own(version).capitalize()} stays.")
        return False
    output().print(_outcome(version, kept))
    return True


def _record(app: App, version: NewVersion) -> None:
    """Note which version a paper is whose own file does not say so."""
    from dataclasses import replace

    from folio.papers.metadata import Field
    from folio.store import indexes

    with indexes.writing(app.store_folder), closing(app.open_library()) as library:
        arxiv = Field(version.work.arxiv, "arxiv", True)
        library.change_metadata(version.paper.id, "online", lambda online: replace(online, arxiv=arxiv))


def _outcome(version: NewVersion, kept: Sequence[Path]) -> str:
    """What became of a version, in words."""
    name = name_line(version.paper.file)
    if not version.files:
        why = f": {name_line(version.why_both)}" if version.why_both else ""
        new = name_line(version.targets[0].name)
        return f"{new} (version {version.number}) is in the index beside {name} ({_own(version)}){why}."
    places = ", ".join(name_line(path.relative_to(version.folder).as_posix()) for path in kept)
    return f"{name}: version {version.number} replaces {_own(version)}. The old file is kept: {places}."
