"""Requests, replies and events of searching for papers on the internet and fetching them, as pydantic models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from folio.identifiers import LONGEST
from folio.ingest.progress import Status
from folio.paper_schema import PaperJson
from folio.schema_parts import Count, Sha256, Strict, With, at
from folio.sources.fetching import Candidate, identifier_of
from folio.sources.search_query import SearchQuery, SearchSource, Sort
from folio.web.schema import NOT_BLANK
from folio.work import Work

MOST_AT_ONCE = 100  # works of a request
_MOST_AUTHORS = 100

FetchStage = Literal["downloading", "reading", "embedding"]
WorkId = Annotated[str, Field(pattern=NOT_BLANK, max_length=LONGEST)]


class DiscoverQuery(Strict):
    """Which works are wanted."""

    query: Annotated[str, Field(pattern=NOT_BLANK, max_length=LONGEST)]
    """Words; or a DOI, an arXiv id, or a link to either, which finds that work and nothing else."""
    source: SearchSource | None = None
    """The service; if it is not given, OpenAlex, or Semantic Scholar where that fails."""
    since: Annotated[int, Field(ge=1800, le=2100)] | None = None
    """Only works of this year or later."""
    open_access: bool = False
    """Only works that somebody may read without paying."""
    min_cited: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Only works that so many others cite. arXiv does not count citations."""
    max: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 20
    sort: Sort = "relevance"

    def to_search(self) -> SearchQuery:
        return SearchQuery(self.query.strip(), self.since, self.open_access, self.min_cited, self.max, self.sort)


class WorkJson(Strict):
    """A work, as services describe it."""

    id: str
    """What `POST /papers/fetch` takes: an OpenAlex, arXiv or Semantic Scholar id or a DOI; "" if it has none."""
    link: str
    """The address of a page about it; "" if it has none."""
    title: str
    authors: list[str]
    year: int | None
    venue: str
    abstract: str
    doi: str
    arxiv: str
    cited: Count | None
    """How many works cite it; null if that is not known."""
    open: Annotated[bool | None, at("is_open")]
    """Whether somebody may read it without paying; null if that is not known."""
    retracted: Annotated[bool, at("is_retracted")]
    paper: Sha256 | None
    """The paper of the library that it is; null if it is not there."""
    other_version: bool
    """Whether that paper is another version of it, such as its preprint."""
    file: str
    """The file of that paper, or of a download that is not in the library yet; "" for none."""


class DiscoverReply(Strict):
    works: list[WorkJson]
    notices: list[str]
    """Services that failed, in words."""


class FetchRequest(Strict):
    ids: Annotated[list[WorkId], Field(min_length=1, max_length=MOST_AT_ONCE)]
    """As `GET /discover` gives them; DOIs, arXiv ids and links to them too."""


class FetchProgressEvent(Strict):
    """How far a work is."""

    id: str
    """As in the request."""
    title: str
    stage: FetchStage
    done: Count
    of: Count
    """0 if that is not known."""


class FetchNoticeEvent(Strict):
    """Why it takes longer, or which service failed."""

    text: str


class FetchedEvent(Strict):
    """A work is in the library."""

    id: str
    status: Status
    """"unchanged" if it was there before."""
    paper: PaperJson
    notes: list[str]


class FetchFailedEvent(Strict):
    """A work could not be brought in. The others are not affected."""

    id: str
    title: str
    error: str
    remedy: str


class FetchDoneEvent(Strict):
    added: Count
    unchanged: Count
    failed: Count


class PaperCitations(Strict):
    """What a paper cites and what cites it, as far as services have said. Works of the library come first."""

    known: bool
    """Whether it is known which work the paper is; if not, nobody has asked yet."""
    references: list[WorkJson]
    """A reference that is known by its identifier alone has no title."""
    cited_by: list[WorkJson]
    reference_count: Count
    """How many are kept; the list ends after 1,000."""
    cited_by_count: Count


class CitationEdge(Strict):
    citing: Sha256
    cited: Sha256


class LibraryCitations(Strict):
    """Which paper of the library cites which, as far as services have said."""

    edges: list[CitationEdge]


def candidate_json(found: Candidate) -> WorkJson:
    file = found.paper or (found.path.name if found.is_here else "")
    return work_json(found.work, found.paper_id, file, is_other_version=found.is_other_version)


def work_json(work: Work, paper: str = "", file: str = "", *, is_other_version: bool = False) -> WorkJson:
    """paper: the id of the paper of the library that it is. file: its file."""
    identifier = identifier_of(work)
    shown = With(
        work,
        id=str(identifier or ""),
        link=identifier.page if identifier else "",
        authors=[str(author.name) for author in work.authors[:_MOST_AUTHORS]],
        is_open=True if work.pdfs else work.is_open,
        paper=paper or None,
        other_version=is_other_version,
        file=file,
    )
    return WorkJson.model_validate(shown)
