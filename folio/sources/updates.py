"""What became of papers since they came in: notices at Crossref and OpenAlex, withdrawals, newer versions at arXiv."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from folio.errors import SourceError
from folio.identifiers import bare_arxiv, parse_doi, version_number
from folio.paper_metadata import Metadata
from folio.people import families
from folio.sources import arxiv, crossref_notices, openalex, paper_match
from folio.sources.arxiv import LatestVersion
from folio.sources.crossref_notices import Registered
from folio.sources.http_client import HttpClient
from folio.store import notices, works
from folio.store.database import Database
from folio.store.library import Library
from folio.store.work_rows import FoundBy, KeptWork, Notice
from folio.types import Paper, Progress
from folio.work import SourceName, Work
from folio.work_notices import NoticeKind, WorkNotice, ordered

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
        attempt(lambda: crossref_notices.registered(client, dois)),
        attempt(lambda: crossref_notices.updating(client, dois)),
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
            for kept in notices.of_works(database, [work]):
                if kept.source in answered:
                    notices.drop(database, kept)
            for notice in dict.fromkeys(notice for said in all_said for notice in said.notices):
                notices.add(database, Notice(work, notice.kind, notice.dated, notice.link, notice.source, now))


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
