"""`folio fetch --updates`: retractions, corrections and newer versions of the papers that are in the index."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from folio.console import output, progress_bar, say
from folio.shown_text import name_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.sources.lookup import Lookup
    from folio.sources.updates import Said, Subject
    from folio.sources.versions import NewVersion
    from folio.types import Paper
    from folio.work_notices import WorkNotice


@dataclass(frozen=True, slots=True)
class _News:
    """What is new about a paper."""

    paper: Paper
    notices: tuple[WorkNotice, ...]  # that were not known


def update(app: App, lookup: Lookup, names: Sequence[str], *, is_dry: bool, is_agreed: bool, keeps_both: bool) -> int:
    """Ask about these papers, all if none is named; show what is new, store it and bring newer versions in.

    is_dry: only show. is_agreed: nobody is to be asked. Returns 1 if a service failed or a version did not come.
    """
    from folio.commands.fetch_versions import bring_in, confirmed, planned
    from folio.sources.updates import ask, keep
    from folio.sources.versions import newer
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
    _show(news, versions, dates)
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
    from folio.search.aliases import aliases_in
    from folio.search.paper_names import file_names, the_paper
    from folio.sources.updates import subject
    from folio.store import works

    with closing(app.open_library()) as library, library.reading():
        app.require_same_settings(library)
        papers = library.papers()
        files, known_by = file_names(library.files()), aliases_in(library)
        chosen = {paper.id: paper for paper in (the_paper(name, papers, files, known_by) for name in names)}
        wanted = list(chosen.values()) if names else papers
        return papers, [subject(paper, works.of_paper(library.database, paper.id)) for paper in wanted]


def _unknown(paper: Paper, said: Said) -> tuple[WorkNotice, ...]:
    """The notices that are not stored yet."""
    known = {(each.kind, each.dated, each.link) for each in paper.notices}
    return tuple(each for each in said.told if (each.kind, each.dated, each.link) not in known)


def _show(news: Sequence[_News], versions: Sequence[NewVersion], dates: dict[str, str]) -> None:
    """Print what is new as a table; nothing if there is nothing. dates: arXiv id -> day of that version."""
    from rich.table import Table
    from rich.text import Text

    from folio.commands.fetch_versions import describe

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
