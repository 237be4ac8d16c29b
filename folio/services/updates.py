"""Updates of the library's papers: notices at Crossref and OpenAlex, withdrawals and newer versions at arXiv.

A new version takes over the place and name of the old file, so that the library replaces the paper in one transaction
and keeps what people wrote about it. The old file moves to .removed in the papers' folder. A file outside this folder
stays where it is, and the new version is added.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TypeVar

from folio.errors import PaperError, SourceError, command
from folio.papers.identifiers import bare_arxiv, parse_doi, version_number
from folio.papers.metadata import Metadata
from folio.papers.model import Paper, Progress, SourceFile
from folio.papers.people import families
from folio.papers.work import NoticeKind, SourceName, Work, WorkNotice, ordered
from folio.services import arxiv, crossref, openalex
from folio.services import keep as paper_match
from folio.services.arxiv import LatestVersion
from folio.services.crossref import Registered
from folio.services.download import download_pdf
from folio.services.http import HttpClient
from folio.services.keep import pdf_name
from folio.services.lookup import Lookup
from folio.store import works
from folio.store.database import Database
from folio.store.library import Library
from folio.store.works import FoundBy, KeptWork, Notice
from folio.system.files import KEPT_S, REMOVED, no_space, sha256_file, shortened, sync
from folio.system.files import replace as replace_file

AnswerT = TypeVar("AnswerT")
_QUESTIONS = 4  # arXiv, Crossref twice, OpenAlex
_LONGEST_STEM = 200  # bytes of an old file's name: file systems allow 255
_INCOMING = ".incoming"  # complete files that have not taken their places yet; ingestion skips hidden folders


@dataclass(frozen=True, slots=True)
class Subject:
    """A paper of the library with its identifiers."""

    paper: Paper
    doi: str = ""  # in lower case
    arxiv: str = ""  # without its version
    published: tuple[str, ...] = ()  # the DOIs of a preprint's publications

    @property
    def is_known(self) -> bool:
        """Whether any service can be asked about the paper."""
        return bool(self.doi or self.arxiv or self.published)


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """What the services report about a paper."""

    notices: tuple[WorkNotice, ...] = ()  # of all sources, newer versions included
    answered: frozenset[SourceName] = frozenset()  # the services whose answer is complete
    newest: LatestVersion | None = None  # at arXiv, unless it is withdrawn
    works: tuple[tuple[FoundBy, Work], ...] = ()  # the paper's work, for a paper that is not linked with one yet
    note: str = ""  # why an identifier was rejected
    arxiv_is_ours: bool = False  # whether the arXiv id is confirmed as the paper's

    @property
    def shown_notices(self) -> tuple[WorkNotice, ...]:
        """The distinct notices for people, gravest first, without newer versions at arXiv."""
        return tuple(each for each in ordered(self.notices) if (each.kind, each.source) != ("new-version", "arxiv"))


def subject(paper: Paper, kept: Sequence[KeptWork]) -> Subject:
    """A paper with its identifiers. kept: the paper's work and its other versions (works.of_paper)."""
    own = kept[0].work if kept else Work("crossref")
    doi = parse_doi(paper.metadata.doi.value or own.doi)
    number = paper.arxiv or own.arxiv or (doi.value if doi and doi.kind == "arxiv" else "")
    published = [each.work.doi for each in kept[1:] if own.is_preprint and not each.work.is_preprint and each.work.doi]
    return Subject(paper, doi.value if doi and doi.kind == "doi" else "", bare_arxiv(number), tuple(published))


def ask(
    client: HttpClient, subjects: Sequence[Subject], on_failure: Callable[[str], None], progress: Progress
) -> list[ServiceReport]:
    """Ask the services about each paper. A service that fails is reported and skipped.

    on_failure: gets one sentence about each failure.
    """
    dois = [doi for each in subjects for doi in (each.doi, *each.published) if doi]
    numbers = [each.arxiv for each in subjects if each.arxiv]
    asked = 0

    def attempt(question: Callable[[], AnswerT]) -> AnswerT | None:
        nonlocal asked
        try:
            return question()
        except SourceError as error:
            on_failure(error.happened)
            return None
        finally:
            asked += 1
            progress("asking", asked, _QUESTIONS)

    answers = _Answers(
        attempt(lambda: arxiv.latest(client, numbers)),
        attempt(lambda: crossref.registered(client, dois)),
        attempt(lambda: crossref.updating(client, dois)),
        attempt(lambda: openalex.retracted(client, dois, numbers)),
    )
    return [answers.about(each) for each in subjects]


@dataclass(frozen=True, slots=True)
class _Answers:
    """The replies about all papers; None from a service that failed."""

    latest: Mapping[str, LatestVersion] | None  # by arXiv id
    registered: Mapping[str, Registered] | None  # by DOI
    updating: Mapping[str, Sequence[WorkNotice]] | None  # by DOI
    retracted: Mapping[str, Work] | None  # by DOI or arXiv id

    def about(self, subject: Subject) -> ServiceReport:
        report = ServiceReport()
        about = subject.paper.metadata
        record = (self.registered or {}).get(subject.doi)
        dois = list(subject.published)
        if record is not None and _is_another(about, record.work):
            report = replace(report, note=f'its DOI is that of another work, "{record.work.title[:80]}"')
        elif record is not None or (subject.doi and about.doi.sure):
            dois.append(subject.doi)
            report = replace(report, works=(("doi", record.work),) if record else ())
        report = self._with_arxiv(report, subject)
        if dois:
            report = self._with_crossref(report, dois)
        return self._with_openalex(report, [*dois, *([subject.arxiv] if report.arxiv_is_ours else [])])

    def _with_arxiv(self, report: ServiceReport, subject: Subject) -> ServiceReport:
        """Add a withdrawal or the newest version at arXiv."""
        latest = (self.latest or {}).get(subject.arxiv)
        if latest is None:
            return report
        if _is_another(subject.paper.metadata, latest.work):
            return replace(report, note=f'its arXiv id is that of another work, "{latest.work.title[:80]}"')
        number = latest.work.arxiv
        kind: NoticeKind = "withdrawal" if latest.is_withdrawn else "new-version"
        notices = report.notices
        if latest.is_withdrawn or (version_number(number) or 1) > 1:
            notices = (*notices, WorkNotice(kind, latest.updated, number, "arxiv"))
        return replace(
            report,
            notices=notices,
            answered=report.answered | {"arxiv"},
            newest=None if latest.is_withdrawn else latest,
            works=(*report.works, ("arxiv", latest.work)),
            arxiv_is_ours=True,
        )

    def _with_crossref(self, report: ServiceReport, dois: Sequence[str]) -> ServiceReport:
        """Add publishers' notices, from the records of the notices and of the works."""
        notices = [notice for doi in dois for notice in (self.updating or {}).get(doi, ())]
        records = [(self.registered or {}).get(doi) for doi in dois]
        notices += [notice for record in records if record for notice in record.notices]
        is_complete = self.updating is not None and self.registered is not None
        answered: frozenset[SourceName] = frozenset(["crossref"]) if is_complete else frozenset()
        return replace(report, notices=(*report.notices, *dict.fromkeys(notices)), answered=report.answered | answered)

    def _with_openalex(self, report: ServiceReport, identifiers: Sequence[str]) -> ServiceReport:
        """Add a retraction known to OpenAlex, which has neither its date nor its notice."""
        if self.retracted is None or not identifiers:
            return report
        report = replace(report, answered=report.answered | {"openalex"})
        work = next((self.retracted[each] for each in identifiers if each in self.retracted), None)
        if work is None:
            return report
        notice = WorkNotice("retraction", source="openalex")
        return replace(report, notices=(*report.notices, notice), works=report.works or (("doi", work),))


def _is_another(about: Metadata, work: Work) -> bool:
    """Whether title and authors show that a work is not the paper. The title alone may change between versions."""
    authors = families(author.name for author in work.authors)
    return paper_match.contradicts(about, work) and not families(about.authors.value) & authors


def keep(library: Library, found: Iterable[tuple[Subject, ServiceReport]]) -> None:
    """Store the notices about papers; a notice that an answering service no longer reports is removed.

    The caller holds the writer lock.
    """
    now = works.now()
    with library.changing_works() as database:
        by_work: dict[str, list[ServiceReport]] = {}
        for subject, report in found:
            if work := _work_of(database, subject.paper, report):
                by_work.setdefault(work, []).append(report)
        for work, reports in by_work.items():
            answered = frozenset().union(*(report.answered for report in reports))
            for kept in works.notices_of_works(database, [work]):
                if kept.source in answered:
                    works.drop_notice(database, kept)
            for notice in dict.fromkeys(notice for report in reports for notice in report.notices):
                works.add_notice(database, Notice(work, notice.kind, notice.dated, notice.link, notice.source, now))


def _work_of(database: Database, paper: Paper, report: ServiceReport) -> str:
    """The id of a paper's work, linked with it now if necessary; "" if the work is unknown."""
    known = works.of_papers(database, [paper.id]).get(paper.id)
    if known is not None:
        return known.work
    if not report.works:
        return ""
    ids = works.put(database, [work for _, work in report.works])
    found_by, work = report.works[0]
    works.link_paper(database, paper.id, ids[0], found_by, paper_match.score(paper.metadata, work))
    return ids[0]


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version of a paper that is newer than the one in the library."""

    paper: Paper
    work: Work  # its arXiv id includes the version
    files: tuple[Path, ...]  # of the old version, to be replaced; none if both are kept
    folder: Path  # of the papers
    why_both: str = ""  # why the old version stays although the user did not ask for both

    @property
    def number(self) -> int:
        return version_number(self.work.arxiv) or 1

    @property
    def incoming(self) -> Path:
        """The new file's path until it takes its place."""
        return self.folder / _INCOMING / f"{self.work.arxiv.replace('/', '_')}.pdf"

    @property
    def targets(self) -> tuple[Path, ...]:
        """The new file's final paths."""
        return self.files or (self.folder / pdf_name(self.work, with_version=True),)


def newer(paper: Paper, work: Work, papers: Sequence[Paper]) -> bool:
    """Whether a work is newer than a paper, which is the newest version in the library.

    If the paper's version is unknown, every version but the first may be newer.
    """
    version = version_number(work.arxiv)
    if version is None or version < 2 or bare_arxiv(work.arxiv) != bare_arxiv(paper.arxiv):
        return False
    same = [each for each in papers if bare_arxiv(each.arxiv) == bare_arxiv(work.arxiv)]
    return (version_number(paper.arxiv) or 0) == max(version_number(each.arxiv) or 0 for each in same) < version


def is_missing(paper: Paper, work: Work, papers: Sequence[Paper]) -> bool:
    """Whether a work is a version of a paper, newer or older, that the library does not have."""
    same = [
        each.arxiv for each in papers if bare_arxiv(each.arxiv) == bare_arxiv(paper.arxiv) == bare_arxiv(work.arxiv)
    ]
    version = version_number(work.arxiv)
    return version is not None and bool(same) and all(version_number(arxiv) != version for arxiv in same)


def new_version(paper: Paper, work: Work, files: Sequence[SourceFile], folder: Path, *, keeps_both: bool) -> NewVersion:
    """Plan where a new version goes. files: of the library. folder: of the papers."""
    own = [Path(file.path) for file in files if file.sha256 == paper.id]
    if keeps_both:
        return NewVersion(paper, work, (), folder)
    outside = [path for path in own if not _is_inside(path, folder)]
    if outside:
        return NewVersion(paper, work, (), folder, f"{outside[0].name} is not in the papers' folder")
    return NewVersion(paper, work, tuple(own), folder)


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a file, not a symbolic link, is in a folder."""
    real = Path(os.path.realpath(folder))
    return not path.is_symlink() and Path(os.path.realpath(path)).is_relative_to(real)


def download(version: NewVersion, lookup: Lookup, largest: int, on_failure: Callable[[str], None]) -> bool:
    """Download the new file to `incoming`; returns whether it is there. Raises OSError, DiskFull."""
    if version.incoming.is_file():  # left by an interrupted run
        return True
    for path in version.incoming.parent.glob("*.pdf"):  # left by interrupted runs long ago
        if time.time() - path.lstat().st_mtime > KEPT_S:
            path.unlink(missing_ok=True)
    links = [lookup.client.addresses.arxiv_pdf(version.work.arxiv)]
    return download_pdf(lookup.client, links, version.incoming, largest, on_failure)


def install(version: NewVersion) -> list[Path]:
    """Replace the old files by the new one; returns where the old files are kept. No path is ever without a file.

    A path that a killed run has already replaced stays. Raises PaperError if an old file has changed since it was read
    or the new path is taken by another file; OSError, DiskFull.
    """
    for path in version.files:
        is_new = _same(path, version.incoming) and _kept(path, version).exists()
        if not is_new and not _has(path, version.paper.id):
            raise PaperError(
                f"{path.name} is missing or has changed since it was read.",
                f"Run `{command('ingest')}`, then the same command again.",
            )
    for path in version.targets if not version.files else ():
        if path.exists() and not _same(path, version.incoming):
            raise PaperError(
                f"There is another file {path.name} already.", "Rename it, then run the same command again."
            )
    kept = [_keep(path, version) for path in version.files]
    with no_space(version.folder):
        for path in version.targets:
            _put(version.incoming, path)
    version.incoming.unlink()
    return kept


def undo(version: NewVersion, kept: Sequence[Path]) -> None:
    """Put the old files back if the new version could not be read. A new file without an old one stays for a look."""
    for path, old in zip(version.files, kept, strict=True):
        _put(old, path)
        old.unlink()


def _kept(path: Path, version: NewVersion) -> Path:
    """The path in .removed that has the old file, or else a free one."""
    own = version_number(version.paper.arxiv)
    folder = version.folder / REMOVED
    stem = shortened(path.stem, _LONGEST_STEM) + (f" v{own}" if own else f" before v{version.number}")
    names = (f"{stem}{f' ({number})' if number > 1 else ''}.pdf" for number in count(1))
    places = (folder / name for name in names)
    return next(place for place in places if not place.exists() or _has(place, version.paper.id))


def _keep(path: Path, version: NewVersion) -> Path:
    """Copy an old file into .removed; returns the copy's path."""
    target = _kept(path, version)
    target.parent.mkdir(exist_ok=True)
    with no_space(target.parent):
        if not target.exists():
            _put(path, target)
    return target


def _same(one: Path, other: Path) -> bool:
    return _has(one, sha256_file(other))


def _has(path: Path, sha256: str) -> bool:
    return path.is_file() and sha256_file(path) == sha256


def _put(source: Path, target: Path) -> None:
    """Copy a file to a path atomically."""
    part = target.with_name(f".{shortened(target.name, 100)}.part")
    try:
        shutil.copyfile(source, part)
        sync(part)
        replace_file(part, target)
    finally:
        part.unlink(missing_ok=True)
