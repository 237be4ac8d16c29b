"""`folio fetch` and fetch.py: brings in papers from the internet by identifier, words or citation, and updates papers.

Only this command and, with --online, `folio ask` and `folio serve` use the internet.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from folio.cli.command import Parser, positive_int, run_command
from folio.console import errors, output, progress_bar, say
from folio.errors import PaperError, UsageError, command
from folio.papers.people import short_list
from folio.shown_text import counted, name_line, short_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.papers.identifiers import Identifier
    from folio.papers.metadata import Field
    from folio.papers.model import Paper, Progress
    from folio.papers.work import Work, WorkNotice
    from folio.services.answers import SearchQuery
    from folio.services.keep import Candidate, Direction, Linked, PaperFound
    from folio.services.lookup import Lookup
    from folio.services.updates import NewVersion, ServiceReport, Subject
    from folio.store.library import Library


_SOURCES = ("openalex", "semanticscholar", "arxiv", "europepmc")
_SORTS = ("relevance", "date", "citations")
_LARGEST_LIST = 2**20  # bytes of a list of identifiers
_DEFAULT_WORKS, _MOST_WORKS = 20, 500  # works of one run
_DIRECTIONS = ("cites", "cited-by")
_DEEPEST = 3
_CAP, _LARGEST_CAP = 200, 1000  # works found by following citations
_LONGEST_VALUE = 70  # characters of a metadata field
_NO_WORK = "no service is known to have it."


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Bring in papers from the internet: arXiv, OpenAlex, Semantic Scholar, Crossref, Europe PMC.",
        epilog="Files go into PAPERS_DIR. CONTACT_EMAIL and keys for the services are settings: see docs/settings.md.",
    )
    identifiers = "arXiv ids, DOIs, PubMed ids, links to them; a file with one on each line; - for standard input"
    named = f"{identifiers}; with --expand and --updates: papers in the index"
    parser.add_argument("identifiers", nargs="*", metavar="ID", help=named)
    search = 'find works by words; arXiv takes "phrases", AND, OR, ANDNOT, (), ti:, au:, abs:, cat:'
    parser.add_argument("--search", metavar="WORDS", help=search)
    category = "works of this arXiv category, such as cs.CL; without --search, all of the dates"
    parser.add_argument("--category", action="append", default=[], metavar="NAME", help=category)
    expand = "find works that papers in the index cite, or that cite them (default: all papers)"
    parser.add_argument("--expand", choices=_DIRECTIONS, help=expand)
    depth = f"with --expand: number of steps to follow (1 to {_DEEPEST}; default: 1)"
    parser.add_argument("--depth", type=positive_int, metavar="N", help=depth)
    cap = f"with --expand: maximum number of works in all (default: {_CAP}, at most {_LARGEST_CAP:,})"
    parser.add_argument("--cap", type=positive_int, metavar="N", help=cap)
    source = "with --search: the service (default: openalex, or semanticscholar if that fails)"
    parser.add_argument("--source", choices=_SOURCES, help=source)
    since = "only works from this date on: 2024, 2024-03, 2024-03-15"
    parser.add_argument("--since", type=_first_day, metavar="DATE", help=since)
    parser.add_argument("--until", type=_last_day, metavar="DATE", help="only works up to this date")
    parser.add_argument("--open-access", action="store_true", help="only works that are free to read")
    cited = "only works cited at least N times"
    parser.add_argument("--min-cited", type=positive_int, default=0, metavar="N", help=cited)
    most = f"maximum number of works (default: {_DEFAULT_WORKS}, with --expand up to --cap; at most {_MOST_WORKS})"
    parser.add_argument("--max", type=positive_int, metavar="N", help=most)
    parser.add_argument("--sort", choices=_SORTS, default="relevance", help="with --search: the order")
    metadata = "find title, authors, year and more for the papers in the index; your edits stay"
    parser.add_argument("--metadata", action="store_true", help=metadata)
    updates = "look for retractions, corrections and newer versions of these papers in the index, or of all"
    parser.add_argument("--updates", action="store_true", help=updates)
    both = "keep the old version next to the newer one instead of replacing it"
    parser.add_argument("--keep-versions", action="store_true", help=both)
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--yes", action="store_true", help="do not ask before downloading")
    return parser


def _first_day(text: str) -> date:
    """The first day of a year, a month or a day."""
    try:
        day = date.fromisoformat(f"{text}-01-01"[: len("2024-03-15")])
    except ValueError:
        day = date.min
    if not re.fullmatch(r"\d{4}(-\d\d){0,2}", text, re.ASCII) or not 1800 <= day.year <= 2100:
        raise argparse.ArgumentTypeError("must be a year, a month or a day: 2023, 2023-06 or 2023-06-15")
    return day


def _last_day(text: str) -> date:
    """The last day of a year, a month or a day."""
    first = _first_day(text)
    if len(text) == len("2024"):
        return first.replace(month=12, day=31)
    if len(text) == len("2024-03"):
        return (first.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    return first


def main(argv: Sequence[str] | None = None, prog: str = "fetch.py") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    _check_options(arguments)
    from folio.services.online import open_lookup

    with open_lookup(app.internet, say) as lookup:
        if arguments.metadata:
            return _update_metadata(app, lookup, is_dry=arguments.dry_run)
        if arguments.updates:
            return _update(app, lookup, arguments)
        return _fetch(app, lookup, arguments)


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that cannot be combined."""
    ids = bool(arguments.identifiers) and not (arguments.expand or arguments.updates)
    searches = arguments.search is not None or bool(arguments.category)
    ways = [ids, searches, arguments.metadata, bool(arguments.expand), arguments.updates]
    if sum(ways) != 1:
        raise UsageError(
            "Give one of identifiers, --search, --category, --expand, --metadata or --updates.",
            f"For example: {command('fetch 2312.10997')}, or {command('fetch --help')}.",
        )
    if arguments.keep_versions and not (ids or arguments.updates):
        raise UsageError("--keep-versions is for newer versions of papers.", "Add --updates, or an arXiv id.")
    if arguments.source and arguments.search is None:
        raise UsageError("--source names the service that is searched.", "Add --search WORDS.")
    filters = (arguments.since, arguments.until, arguments.open_access, arguments.min_cited)
    if not searches and not arguments.expand and any(filters):
        remedy = "Add --search WORDS or --expand cites."
        raise UsageError("--since, --until, --open-access and --min-cited choose among works.", remedy)
    if arguments.category and (arguments.source or "arxiv") != "arxiv":
        raise UsageError("--category is for arXiv.", "Leave out --source, or the category.")
    if arguments.category and not (arguments.search or arguments.since):
        raise UsageError("A whole category is too large.", "Add --since 2024-03-15, or --search WORDS.")
    if arguments.search is not None and not arguments.search.strip():
        raise UsageError("--search has no words.", 'Name some: --search "dense retrieval".')
    if (arguments.depth or arguments.cap) and not arguments.expand:
        raise UsageError("--depth and --cap need --expand.", "Add --expand cites or --expand cited-by.")
    if (arguments.depth or 1) > _DEEPEST or (arguments.cap or 1) > _LARGEST_CAP:
        raise UsageError(
            "--depth or --cap is too large.",
            f"Give a --depth of at most {_DEEPEST}, and a --cap of at most {_LARGEST_CAP:,}.",
        )


def _fetch(app: App, lookup: Lookup, arguments: argparse.Namespace) -> int:
    from folio.services.keep import candidates

    papers, marks = app.papers_and_marks()
    works, links, missing = _works(app, lookup, arguments)
    found = candidates(works, papers, app.papers_folder, marks)[: arguments.max]
    if not found:
        say("No works were found.")
        return 1
    _show_works(found, links)
    by_id = bool(arguments.identifiers) and not arguments.expand
    versions = _new_versions(app, papers, found, keeps_both=arguments.keep_versions) if by_id else []
    for candidate in found if by_id else ():
        if candidate.paper and candidate.paper_id not in {version.paper.id for version in versions}:
            is_other = ", another version of it" if candidate.is_other_version else ""
            say(f'"{candidate.work.title[:80]}": already here as {candidate.paper}{is_other}.')
    wanted = [candidate for candidate in found if not candidate.paper]
    downloads = len(versions) + sum(not candidate.is_here for candidate in wanted)
    if arguments.dry_run:
        return 1 if missing else 0
    if by_id:
        _update_works(app, papers, found)
    if not wanted and not versions:
        output().print("All of them are in the index.")
        return 1 if missing else 0
    if downloads and not arguments.yes:
        if not sys.stdin.isatty():
            raise UsageError("Folio cannot ask here whether to download these papers.", "Add --yes, or --dry-run.")
        if not _confirm_download(downloads, "paper"):
            return 1
    files = _download(app, lookup, wanted)
    code = ingest_fetched(app, files) if files else 0
    if versions:
        code = max(code, _bring_in(app, lookup, versions))
    return max(code, 1 if missing or len(files) < len(wanted) else 0)


def _query(arguments: argparse.Namespace, words: str, most: int) -> SearchQuery:
    from folio.services.answers import SearchQuery

    return SearchQuery(
        words,
        arguments.since,
        arguments.open_access,
        arguments.min_cited,
        most,
        arguments.sort,
        until=arguments.until,
        categories=tuple(arguments.category),
    )


def _works(app: App, lookup: Lookup, arguments: argparse.Namespace) -> tuple[list[Work], dict[str, int] | None, int]:
    """The works that the arguments describe, the links, and the number of identifiers that no service has.

    The links, with --expand: mark of a work -> the number of papers in the index that it is linked with.
    """
    if arguments.expand:
        query = _query(arguments, "", arguments.cap or _CAP)
        depth = arguments.depth or 1
        linked = _expand(app, lookup, arguments.identifiers, arguments.expand, query, depth, is_dry=arguments.dry_run)
        links = {mark: len(each.papers) for each in linked for work in each.works for mark in work.marks()}
        return [work for each in linked for work in each.works], links, 0
    if arguments.search is not None or arguments.category:
        most = min(arguments.max or _DEFAULT_WORKS, _MOST_WORKS)
        query = _query(arguments, (arguments.search or "").strip()[:500], most)
        return [work for group in lookup.search(query, arguments.source) for work in group], None, 0
    identifiers = _identifiers(arguments.identifiers)
    works = lookup.find(identifiers)
    for identifier, work in zip(identifiers, works, strict=True):
        if work is None:
            say(f"{identifier}: no service has it.")
    return [work for work in works if work], None, works.count(None)


def _identifiers(words: Sequence[str]) -> list[Identifier]:
    """The identifiers on the command line, in files and on standard input, each once. Raises UsageError."""
    from folio.papers.identifiers import parse_identifier

    texts: list[str] = []
    for word in words:
        if word == "-":
            texts += _lines(sys.stdin.read(_LARGEST_LIST + 1), "standard input")
        elif os.path.isfile(word):
            texts += _lines(_content(Path(word)), word)
        else:
            texts.append(word)
    identifiers = list(dict.fromkeys(map(parse_identifier, texts)))
    if not identifiers or len(identifiers) > _MOST_WORKS:
        remedy = f"Name at least one and at most {_MOST_WORKS}."
        raise UsageError(f"{len(identifiers):,} identifiers are named.", remedy)
    return identifiers


def _content(path: Path) -> str:
    from folio.system.files import open_regular

    try:
        with open_regular(path) as file:
            return file.read(_LARGEST_LIST + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        remedy = "Name a text file with one identifier on each line."
        raise UsageError(f"The list {path} cannot be read.", remedy) from error


def _lines(text: str, name: str) -> list[str]:
    """The lines of a list, without empty lines and comments."""
    if len(text) > _LARGEST_LIST:
        raise UsageError(f"The list in {name} is larger than 1 MB.", "Name a shorter one.")
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _update_works(app: App, papers: Sequence[Paper], found: Sequence[Candidate]) -> None:
    """Store what services now know about works that are papers in the index."""
    from folio.services import keep
    from folio.services.keep import PaperFound, keep_papers
    from folio.store import indexes

    by_id = {paper.id: paper.metadata for paper in papers}
    descriptions = {
        each.paper_id: PaperFound(each.works, "fetched", keep.score(by_id[each.paper_id], each.work))
        for each in found
        if each.paper and not each.is_other_version and not keep.contradicts(by_id[each.paper_id], each.work)
    }
    if not descriptions:
        return
    with indexes.writing(app.store_folder):
        with closing(app.open_library()) as library:
            changed = keep_papers(library, descriptions)
        if changed:
            app.finish_ingest()


def _show_works(found: Sequence[Candidate], links: dict[str, int] | None) -> None:
    """Print the works as a table. links: mark of a work -> the number of papers that it is linked with."""
    from rich.table import Table

    columns = ("title", "authors", "year", "cited", "open", *(["links"] if links is not None else []), "here")
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for candidate in found:
        work = candidate.work
        title = f"RETRACTED: {work.title}" if work.is_retracted else work.title
        cells = [
            name_line(title, 100),
            name_line(short_list([author.name.family for author in work.authors]), 60),
            str(work.year or ""),
            "" if work.cited is None else f"{work.cited:,}",
            "yes" if work.pdfs or work.is_open else "" if work.is_open is None else "no",
        ]
        if links is not None:
            cells.append(str(max((links.get(mark, 0) for mark in work.marks()), default=0)))
        here = candidate.paper or (candidate.path.name if candidate.is_here else "")
        table.add_row(*cells, name_line(here, 60))
    output().print(table)


def _confirm_download(count: int, what: str) -> bool:
    errors().print(f"Download {counted(count, what)}? [y/N] ", end="")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


@contextmanager
def _progress(if_stopped: str) -> Iterator[Progress]:
    """A progress bar. if_stopped: printed after Ctrl-C."""
    try:
        with progress_bar() as progress:
            yield progress
    except KeyboardInterrupt:
        say(f"Stopped. {if_stopped}")
        raise


def _download(app: App, lookup: Lookup, wanted: Sequence[Candidate]) -> list[Candidate]:
    """Download the files that are missing; returns the candidates whose file is there afterwards."""
    from folio.services.download import download

    complete: list[Candidate] = []
    try:
        with progress_bar() as progress:
            for done, candidate in enumerate(download(wanted, lookup, app.internet.largest_mb * 10**6, say), 1):
                complete += [candidate] if candidate else []
                progress("downloading", done, len(wanted))
    except KeyboardInterrupt:
        say(f"Stopped. Complete files: {len(complete)}. Run the same command again to continue.")
        raise
    return complete


def ingest_fetched(app: App, files: Sequence[Candidate]) -> int:
    """Store what services know about the papers, then read the files."""
    from folio.cli import ingest
    from folio.services.keep import PaperFound, keep_papers
    from folio.store import indexes
    from folio.system.files import sha256_file

    descriptions = {sha256_file(each.path): PaperFound(each.works, "fetched", 1.0) for each in files}
    with indexes.writing(app.store_folder), closing(app.open_library(create=True)) as library:
        app.require_same_settings(library)
        keep_papers(library, descriptions)
    return ingest.run(app, ingest.parser("ingest.py").parse_args([str(each.path) for each in files]))


# --expand


def _expand(
    app: App,
    lookup: Lookup,
    names: Sequence[str],
    direction: Direction,
    query: SearchQuery,
    depth: int,
    *,
    is_dry: bool,
) -> list[Linked]:
    """Follow the citations of the named papers, of all if none is named; store who cites whom unless `is_dry`.

    query: the filters; its `most` is the cap. Returns the works, best first.
    """
    from folio.services.citations import follow
    from folio.services.keep import keep_followed, link_papers
    from folio.store import indexes, works

    with closing(app.open_library()) as library:
        papers = {paper.id: paper for paper in _named_papers(library, names)}
        kept = {id: works.of_paper(library.database, id) for id in papers}
    with _progress("Nothing was stored; the answers so far are kept for a day.") as progress:
        followed = follow(papers, kept, lookup, direction, query, depth, progress)
    for id in papers.keys() - followed.expansion.starts.keys():
        say(f"{name_line(papers[id].file)}: {_NO_WORK}")
    if not is_dry:
        with indexes.writing(app.store_folder), closing(app.open_library()) as library:
            keep_followed(library, followed)
            link_papers(library)
    return followed.expansion.found


def _named_papers(library: Library, names: Sequence[str]) -> list[Paper]:
    """The papers with these names; all papers if none is named. Raises NotKnown."""
    from folio.search.names import aliases_in, file_names, papers_named, unknown_paper

    papers, files, known_by = library.papers(), file_names(library.files()), aliases_in(library)
    chosen: dict[str, Paper] = {}
    for name in names:
        named = papers_named(name, papers, files, known_by)
        if not named:
            raise unknown_paper(name, papers, files)
        chosen |= {paper.id: paper for paper in named}
    return list(chosen.values()) if names else papers


# --metadata


def _update_metadata(app: App, lookup: Lookup, *, is_dry: bool) -> int:
    """Look up every paper, print the changes, and store them unless `is_dry`; returns the exit code."""
    from folio.papers.metadata import NO_METADATA, merged
    from folio.services.keep import keep_papers, metadata_then
    from folio.services.lookup import SERVICE_NAMES, changes, describe_paper
    from folio.store import indexes, works

    with closing(app.open_library()) as library:
        papers = library.papers()
        layers = {paper.id: library.metadata_layers(paper.id) for paper in papers}
        kept = {paper.id: next(iter(works.of_paper(library.database, paper.id)), None) for paper in papers}
    descriptions: dict[str, PaperFound] = {}
    changed = 0
    with _progress("Nothing was changed; the answers so far are kept for a day.") as progress:
        for done, paper in enumerate(papers, 1):
            # Earlier answers of services must not influence this lookup.
            about = merged({**layers[paper.id], "online": NO_METADATA})
            described = describe_paper(about, lookup)
            if described.note:
                output().print(f"{name_line(paper.file)}: {described.note}.")
            if (found := described.found) is None:
                output().print(f"{name_line(paper.file)}: {_NO_WORK}")
            else:
                descriptions[paper.id] = found
                fields = changes(layers[paper.id], metadata_then(found, kept[paper.id]))
                changed += bool(fields)
                service = SERVICE_NAMES.get(found.found_by, found.found_by)
                _show_changes(paper, f"by {service}, match {found.score:.2f}", fields)
            progress("looking up", done, len(papers))
    if not is_dry and descriptions:
        with indexes.writing(app.store_folder):
            with closing(app.open_library()) as library:
                keep_papers(library, descriptions)
            app.finish_ingest()
    unknown = len(papers) - len(descriptions)
    counts = f"Papers: {len(papers):,}, found: {len(descriptions):,}, changed: {changed:,}, not found: {unknown:,}."
    output().print(f"{counts} Nothing was stored, because of --dry-run." if is_dry else counts)
    return 0


def _show_changes(paper: Paper, source: str, fields: Sequence[tuple[str, Field[Any], Field[Any]]]) -> None:
    if fields:
        output().print(f"{name_line(paper.file)} ({source}):")
    for name, old, new in fields:
        output().print(f"  {name}: {_value(old)} -> {_value(new)}")


def _value(field: Field[Any]) -> str:
    value = field.value
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value or "")
    return short_line(text, _LONGEST_VALUE) if text else "(none)"


# --updates


def _update(app: App, lookup: Lookup, arguments: argparse.Namespace) -> int:
    """Look up the named papers, all if none is named; show and store what is new, and download newer versions.

    Returns 1 if a service failed or a version could not be added.
    """
    from folio.services.updates import ask, keep, newer
    from folio.store import indexes

    papers, subjects = _subjects(app, arguments.identifiers)
    failures: list[str] = []
    known = [subject for subject in subjects if subject.is_known]
    with _progress("Nothing was changed; the answers so far are kept for a day.") as progress:
        answers = list(zip(known, ask(lookup.client, known, failures.append, progress), strict=True))
    for failure in dict.fromkeys(failures):
        say(failure)
    for subject, answer in answers:
        if answer.note:
            say(f"{name_line(subject.paper.file)}: {answer.note}.")
    notices = [(subject.paper, notice) for subject, answer in answers for notice in _new_notices(subject.paper, answer)]
    found = [
        (subject.paper, answer.newest.work)
        for subject, answer in answers
        if answer.newest and newer(subject.paper, answer.newest.work, papers)
    ]
    versions = _planned(app, found, keeps_both=arguments.keep_versions)
    dates = {answer.newest.work.arxiv: answer.newest.updated for _, answer in answers if answer.newest}
    _show_news(notices, versions, dates)
    unknown = len(subjects) - len(known)
    without = f" Without DOI and arXiv id, so not looked up: {unknown:,}." if unknown else ""
    stored = " Nothing was stored, because of --dry-run." if arguments.dry_run else ""
    counts = f"Papers: {len(subjects):,}, new notices: {len(notices):,}, newer versions: {len(versions):,}."
    output().print(f"{counts}{without}{stored}")
    code = 1 if failures else 0
    if arguments.dry_run:
        return code
    if known:
        with indexes.writing(app.store_folder), closing(app.open_library()) as library:
            keep(library, answers)
    if not versions:
        return code
    if not arguments.yes and not sys.stdin.isatty():
        say("Newer versions were not downloaded: Folio cannot ask here. Add --yes.")
        return code
    if not arguments.yes and not _confirm_download(len(versions), "newer version"):
        return code
    return max(code, _bring_in(app, lookup, versions))


def _subjects(app: App, names: Sequence[str]) -> tuple[list[Paper], list[Subject]]:
    """All papers in the index, and the named ones as services know them. Raises NotKnown, UsageError."""
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


def _new_notices(paper: Paper, report: ServiceReport) -> list[WorkNotice]:
    """The notices that are not stored yet."""
    stored = {(each.kind, each.dated, each.link) for each in paper.notices}
    return [each for each in report.shown_notices if (each.kind, each.dated, each.link) not in stored]


def _show_news(
    notices: Sequence[tuple[Paper, WorkNotice]], versions: Sequence[NewVersion], dates: dict[str, str]
) -> None:
    """Print a table of what is new, if anything is. dates: arXiv id -> day of that version."""
    from rich.table import Table
    from rich.text import Text

    table = Table("paper", "new", "date", box=None, pad_edge=False, header_style="bold")
    for paper, notice in notices:
        style = "bold red" if notice.is_grave else ""
        table.add_row(name_line(paper.file, 80), Text(notice.without_date, style=style), notice.dated)
    for version in versions:
        date = dates.get(version.work.arxiv, "")
        table.add_row(name_line(version.paper.file, 80), Text(_describe(version)), date)
    if table.row_count:
        output().print(table)


# Newer versions of papers in the index: downloaded, put in the place of the old ones, and read


def _new_versions(
    app: App, papers: Sequence[Paper], found: Sequence[Candidate], *, keeps_both: bool
) -> list[NewVersion]:
    """The works that are newer versions of papers, and older versions too if `keeps_both`; each is printed."""
    from folio.services.updates import is_missing, newer

    by_id = {paper.id: paper for paper in papers}
    here = [(by_id[each.paper_id], each.work) for each in found if each.paper and not each.is_other_version]
    fits = is_missing if keeps_both else newer
    versions = _planned(app, [pair for pair in here if fits(*pair, papers)], keeps_both=keeps_both)
    for version in versions:
        say(f"{name_line(version.paper.file)}: {_describe(version)}.")
    return versions


def _planned(app: App, found: Sequence[tuple[Paper, Work]], *, keeps_both: bool) -> list[NewVersion]:
    """How each version will be added, each for one paper."""
    from folio.services.updates import new_version

    pairs = {work.arxiv: (paper, work) for paper, work in reversed(found)}
    if not pairs:
        return []
    with closing(app.open_library()) as library:
        files = library.files()
    return [
        new_version(paper, work, files, app.papers_folder, keeps_both=keeps_both)
        for paper, work in reversed(pairs.values())
    ]


def _describe(version: NewVersion) -> str:
    """ "version 3, here: version 1"."""
    return f"version {version.number}, here: {_old_version(version)}{', which stays' if not version.files else ''}"


def _old_version(version: NewVersion) -> str:
    from folio.papers.identifiers import version_number

    number = version_number(version.paper.arxiv)
    return f"version {number}" if number else "an unknown version"


def _bring_in(app: App, lookup: Lookup, versions: Sequence[NewVersion]) -> int:
    """Download, install and read these versions; returns 1 if one of them could not be added."""
    from folio.services.updates import download

    complete: list[NewVersion] = []
    with _progress("Nothing was replaced. Run the same command again to continue.") as progress:
        for done, version in enumerate(versions, 1):
            complete += [version] if download(version, lookup, app.internet.largest_mb * 10**6, say) else []
            progress("downloading", done, len(versions))
    added = [_install(app, version) for version in complete]
    return 0 if all(added) and len(complete) == len(versions) else 1


def _install(app: App, version: NewVersion) -> bool:
    """Put one version in place and read it; returns whether it is in the index. If not, the old one is restored."""
    from folio.cli import ingest
    from folio.services.keep import PaperFound, keep_papers
    from folio.services.updates import install, undo
    from folio.store import indexes
    from folio.system.files import sha256_file

    name = name_line(version.paper.file)
    id = sha256_file(version.incoming)
    if id == version.paper.id:
        version.incoming.unlink()
        _record_version(app, version)
        output().print(f"{name} is version {version.number} already.")
        return True
    with indexes.writing(app.store_folder), closing(app.open_library()) as library:
        app.require_same_settings(library)
        keep_papers(library, {id: PaperFound((version.work,), "fetched", 1.0)})
    try:
        old_files = install(version)
    except PaperError as error:
        say(f"{error.happened} {error.remedy}")
        return False
    ingest.run(app, ingest.parser("ingest.py").parse_args([str(path) for path in version.targets]))
    with closing(app.open_library()) as library:
        is_in = bool(library.papers_by_id([id]))
    if not is_in:
        undo(version, old_files)
        with indexes.writing(app.store_folder), closing(app.open_library()) as library:
            for path in version.files:
                library.forget_failure(str(path))
        say(f"{name}: version {version.number} could not be read. {_old_version(version).capitalize()} stays.")
        return False
    output().print(_outcome(version, old_files))
    return True


def _record_version(app: App, version: NewVersion) -> None:
    """Store the version of a paper whose file does not name it."""
    from dataclasses import replace

    from folio.papers.metadata import Field
    from folio.store import indexes

    with indexes.writing(app.store_folder), closing(app.open_library()) as library:
        arxiv = Field(version.work.arxiv, "arxiv", True)
        library.change_metadata(version.paper.id, "online", lambda online: replace(online, arxiv=arxiv))


def _outcome(version: NewVersion, old_files: Sequence[Path]) -> str:
    """A sentence about a version that was added."""
    name = name_line(version.paper.file)
    if not version.files:
        why = f": {name_line(version.why_both)}" if version.why_both else ""
        new = name_line(version.targets[0].name)
        return f"{new} (version {version.number}) is in the index beside {name} ({_old_version(version)}){why}."
    places = ", ".join(name_line(path.relative_to(version.folder).as_posix()) for path in old_files)
    return f"{name}: version {version.number} replaces {_old_version(version)}. The old file is kept: {places}."
