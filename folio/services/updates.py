"""What became of papers since they came in: notices at Crossref and OpenAlex, withdrawals, newer versions at arXiv."""

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


@dataclass(frozen=True, slots=True)
class Subject:
    """A paper of the library, and what services know it by."""

    paper: Paper
    doi: str = ""  # in lower case
    arxiv: str = ""  # without its version
    published: tuple[str, ...] = ()  # the DOIs of the publications of a preprint

    @property
    def is_known(self) -> bool:
        """Whether any service can be asked about it."""
        return bool(self.doi or self.arxiv or self.published)


@dataclass(frozen=True, slots=True)
class Said:
    """What the services say of a paper."""

    notices: tuple[WorkNotice, ...]  # as each source says them, newer versions too
    answered: frozenset[SourceName] = frozenset()  # who was asked about it, and said everything
    newest: LatestVersion | None = None  # at arXiv, if it is not withdrawn
    works: tuple[tuple[FoundBy, Work], ...] = ()  # what it is, for a paper of which that is not known yet
    note: str = ""  # why an identifier was not believed
    arxiv_is_ours: bool = False  # whether the arXiv id was found to be the paper's

    @property
    def told(self) -> tuple[WorkNotice, ...]:
        """The notices for people, without newer versions at arXiv: the gravest first, each once."""
        return tuple(each for each in ordered(self.notices) if (each.kind, each.source) != ("new-version", "arxiv"))


def subject(paper: Paper, kept: Sequence[KeptWork]) -> Subject:
    """What services know a paper by. kept: the work that it is, and its other versions (works.of_paper)."""
    own = kept[0].work if kept else Work("crossref")
    doi = parse_doi(paper.metadata.doi.value or own.doi)
    number = paper.arxiv or own.arxiv or (doi.value if doi and doi.kind == "arxiv" else "")
    published = [each.work.doi for each in kept[1:] if own.is_preprint and not each.work.is_preprint and each.work.doi]
    return Subject(paper, doi.value if doi and doi.kind == "doi" else "", bare_arxiv(number), tuple(published))


def ask(
    client: HttpClient, subjects: Sequence[Subject], on_failure: Callable[[str], None], progress: Progress
) -> list[Said]:
    """What the services say of each paper. A service that fails is told and left out.

    on_failure: told one sentence about each failure.
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
    """What the services say of all papers; None from one that failed."""

    latest: Mapping[str, LatestVersion] | None  # by arXiv id
    registered: Mapping[str, Registered] | None  # by DOI
    updating: Mapping[str, Sequence[WorkNotice]] | None  # by DOI
    retracted: Mapping[str, Work] | None  # by DOI or arXiv id

    def about(self, subject: Subject) -> Said:
        said = Said(())
        about = subject.paper.metadata
        record = (self.registered or {}).get(subject.doi)
        dois = list(subject.published)
        if record is not None and _is_another(about, record.work):
            said = replace(said, note=f'its DOI is that of another work, "{record.work.title[:80]}"')
        elif record is not None or (subject.doi and about.doi.sure):
            dois.append(subject.doi)
            said = replace(said, works=(("doi", record.work),) if record else ())
        said = self._with_arxiv(said, subject)
        if dois:
            said = self._with_crossref(said, dois)
        return self._with_openalex(said, [*dois, *([subject.arxiv] if said.arxiv_is_ours else [])])

    def _with_arxiv(self, said: Said, subject: Subject) -> Said:
        """With what arXiv says: a withdrawal, or which version is the newest."""
        latest = (self.latest or {}).get(subject.arxiv)
        if latest is None:
            return said
        if _is_another(subject.paper.metadata, latest.work):
            return replace(said, note=f'its arXiv id is that of another work, "{latest.work.title[:80]}"')
        number = latest.work.arxiv
        kind: NoticeKind = "withdrawal" if latest.is_withdrawn else "new-version"
        found = [WorkNotice(kind, latest.updated, number, "arxiv")]
        return replace(
            said,
            notices=(*said.notices, *(found if latest.is_withdrawn or (version_number(number) or 1) > 1 else [])),
            answered=said.answered | {"arxiv"},
            newest=None if latest.is_withdrawn else latest,
            works=(*said.works, ("arxiv", latest.work)),
            arxiv_is_ours=True,
        )

    def _with_crossref(self, said: Said, dois: Sequence[str]) -> Said:
        """With the notices of publishers, from their own records and from those of the works."""
        found = [notice for doi in dois for notice in (self.updating or {}).get(doi, ())]
        records = [(self.registered or {}).get(doi) for doi in dois]
        found += [notice for record in records if record for notice in record.notices]
        is_whole = self.updating is not None and self.registered is not None
        answered: frozenset[SourceName] = frozenset(["crossref"]) if is_whole else frozenset()
        return replace(said, notices=(*said.notices, *dict.fromkeys(found)), answered=said.answered | answered)

    def _with_openalex(self, said: Said, identifiers: Sequence[str]) -> Said:
        """With a retraction that OpenAlex knows of; it has neither its date nor its notice."""
        if self.retracted is None or not identifiers:
            return said
        said = replace(said, answered=said.answered | {"openalex"})
        flagged = next((self.retracted[each] for each in identifiers if each in self.retracted), None)
        if flagged is None:
            return said
        found = WorkNotice("retraction", source="openalex")
        return replace(said, notices=(*said.notices, found), works=said.works or (("doi", flagged),))


def _is_another(about: Metadata, work: Work) -> bool:
    """Whether a work is not the paper whose identifier it has. A new version may have another title: authors tell."""
    theirs = families(author.name for author in work.authors)
    return paper_match.contradicts(about, work) and not families(about.authors.value) & theirs


def keep(library: Library, found: Iterable[tuple[Subject, Said]]) -> None:
    """Store what services say of papers; what a service that answered says no longer is removed.

    The caller holds the writer lock.
    """
    now = works.now()
    with library.changing_works() as database:
        said_of: dict[str, list[Said]] = {}  # of one work, by the papers that are it
        for subject, said in found:
            if work := _work_of(database, subject.paper, said):
                said_of.setdefault(work, []).append(said)
        for work, all_said in said_of.items():
            answered = frozenset().union(*(said.answered for said in all_said))
            for kept in works.of_works(database, [work]):
                if kept.source in answered:
                    works.drop(database, kept)
            for notice in dict.fromkeys(notice for said in all_said for notice in said.notices):
                works.add(database, Notice(work, notice.kind, notice.dated, notice.link, notice.source, now))


def _work_of(database: Database, paper: Paper, said: Said) -> str:
    """The work that a paper is; "" if that is not known, and nothing is to be kept about it."""
    known = works.of_papers(database, [paper.id]).get(paper.id)
    if known is not None:
        return known.work
    if not said.works:
        return ""
    ids = works.put(database, [work for _, work in said.works])
    found_by, work = said.works[0]
    works.link_paper(database, paper.id, ids[0], found_by, paper_match.score(paper.metadata, work))
    return ids[0]


# Newer versions of papers that are in the library: where the new file goes, and what becomes of the old one.
#
# The new file takes over the old one's place and name, so that the library replaces the paper in one transaction, with
# what people wrote about it. The old file is kept in .removed of the papers' folder. A file that lies elsewhere is its
# owner's: it stays, and the new version comes beside it.

_LONGEST_STEM = 200  # bytes of an old file's name: file systems allow 255
_INCOMING = ".incoming"  # whole files that have not taken their places yet; ingestion skips hidden folders


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version of a paper that is newer than the one in the library."""

    paper: Paper
    work: Work  # its arXiv identifier has the version
    files: tuple[Path, ...]  # of the old version, to be replaced; none if both are kept
    folder: Path  # of the papers
    why_both: str = ""  # why the old one stays; "" if it does not, or if that is wanted

    @property
    def number(self) -> int:
        return version_number(self.work.arxiv) or 1

    @property
    def incoming(self) -> Path:
        """Where its file is until it takes its place."""
        return self.folder / _INCOMING / f"{self.work.arxiv.replace('/', '_')}.pdf"

    @property
    def targets(self) -> tuple[Path, ...]:
        """Where its file goes."""
        return self.files or (self.folder / pdf_name(self.work, with_version=True),)


def newer(paper: Paper, work: Work, papers: Sequence[Paper]) -> bool:
    """Whether a work is a newer version of a paper, and that the newest one in the library.

    Of a paper whose version is not known, every version but the first may be newer.
    """
    theirs = version_number(work.arxiv)
    if theirs is None or theirs < 2 or bare_arxiv(work.arxiv) != bare_arxiv(paper.arxiv):
        return False
    same = [each for each in papers if bare_arxiv(each.arxiv) == bare_arxiv(work.arxiv)]
    return (version_number(paper.arxiv) or 0) == max(version_number(each.arxiv) or 0 for each in same) < theirs


def is_missing(paper: Paper, work: Work, papers: Sequence[Paper]) -> bool:
    """Whether a work is a version of a paper that the library does not have, newer or older."""
    same = [
        each.arxiv for each in papers if bare_arxiv(each.arxiv) == bare_arxiv(paper.arxiv) == bare_arxiv(work.arxiv)
    ]
    theirs = version_number(work.arxiv)
    return theirs is not None and bool(same) and all(version_number(arxiv) != theirs for arxiv in same)


def new_version(paper: Paper, work: Work, files: Sequence[SourceFile], folder: Path, *, keeps_both: bool) -> NewVersion:
    """How a version is to come in. files: of the library. folder: of the papers."""
    own = [Path(file.path) for file in files if file.sha256 == paper.id]
    if keeps_both:
        return NewVersion(paper, work, (), folder)
    outside = [path for path in own if not _is_inside(path, folder)]
    if outside:
        return NewVersion(paper, work, (), folder, f"{outside[0].name} is not in the papers' folder")
    return NewVersion(paper, work, tuple(own), folder)


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a file itself, and no link to one, lies in a folder."""
    real = Path(os.path.realpath(folder))
    return not path.is_symlink() and Path(os.path.realpath(path)).is_relative_to(real)


def download(version: NewVersion, lookup: Lookup, largest: int, on_failure: Callable[[str], None]) -> bool:
    """Bring its file to `incoming`; whether it is there. Raises OSError, DiskFull."""
    if version.incoming.is_file():  # of a run that was stopped
        return True
    for path in version.incoming.parent.glob("*.pdf"):  # of such runs that nobody went on with
        if time.time() - path.lstat().st_mtime > KEPT_S:
            path.unlink(missing_ok=True)
    links = [lookup.client.addresses.arxiv_pdf(version.work.arxiv)]
    return download_pdf(lookup.client, links, version.incoming, largest, on_failure)


def install(version: NewVersion) -> list[Path]:
    """Put its file into its places; returns where the old ones are kept. Each place has one or the other at any time.

    A place that has the new one already stays as it is: a run that was killed left it so. Raises PaperError if an old
    file is not the one that was read or another file has the new one's place, OSError, DiskFull.
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
    """Put the old files back, for a version that could not be read. One that came beside stays: it may be looked at."""
    for path, old in zip(version.files, kept, strict=True):
        _put(old, path)
        old.unlink()


def _kept(path: Path, version: NewVersion) -> Path:
    """Where an old file is kept in .removed, or a name that is free there."""
    own = version_number(version.paper.arxiv)
    folder = version.folder / REMOVED
    stem = shortened(path.stem, _LONGEST_STEM) + (f" v{own}" if own else f" before v{version.number}")
    names = (f"{stem}{f' ({number})' if number > 1 else ''}.pdf" for number in count(1))
    places = (folder / name for name in names)
    return next(place for place in places if not place.exists() or _has(place, version.paper.id))


def _keep(path: Path, version: NewVersion) -> Path:
    """Copy an old file into .removed."""
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
    """Copy a file to a place, whole at once."""
    part = target.with_name(f".{shortened(target.name, 100)}.part")
    try:
        shutil.copyfile(source, part)
        sync(part)
        replace_file(part, target)
    finally:
        part.unlink(missing_ok=True)
