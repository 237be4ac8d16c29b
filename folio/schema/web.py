"""Requests, replies and events of the web API, as pydantic models; the OpenAPI document is generated from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from folio.answer_types import Style
from folio.bibliography.export import bibtex, reference
from folio.errors import FolioError
from folio.ingest.discovery import Status
from folio.papers.edits import FIRST_YEAR, MOST_AUTHORS, MOST_TAGS, checked_field
from folio.papers.identifiers import LONGEST
from folio.papers.metadata import Field as PaperField
from folio.papers.metadata import PersonName
from folio.papers.model import Paper
from folio.papers.work import Work
from folio.schema.answers import (
    AnswerJson,
    CitationJson,
    EvidenceProfileJson,
    HitJson,
    Models,
    PaperFoundJson,
    Timings,
    TraceJson,
)
from folio.schema.papers import (
    Count,
    FromOne,
    ListedPaperJson,
    PaperDetailsJson,
    PaperJson,
    PersonJson,
    Sha256,
    Strict,
    With,
    at,
    details,
)
from folio.search.filters import YEARS, PaperFilter
from folio.services.answers import SearchQuery, SearchSource, Sort
from folio.services.keep import Candidate, identifier_of
from folio.store.query_log import Feedback
from folio.zotero.link import open_pdf

MAX_PASSAGES = 50
CONVERSATION = "^[A-Za-z0-9_-]{16}(-once)?$"
ConversationId = Annotated[str, Field(pattern=CONVERSATION, description="Opaque; returned with the first reply.")]
PassageCount = Annotated[int, Field(ge=1, le=MAX_PASSAGES)]
TurnNumber = Annotated[int, Field(ge=1, le=10**6, description="The number of an answer in its conversation, from 1.")]
# \s of JSON Schema has fewer characters than str.strip() removes.
NOT_BLANK = r"[^\s\x1c-\x1f\x85]"
Text = Annotated[str, Field(pattern=NOT_BLANK, max_length=10_000)]
Milliseconds = Annotated[float, Field(ge=0)]
FilterValue = Annotated[str, Field(pattern=NOT_BLANK, max_length=500)]
FilterValues = Annotated[list[FilterValue], Field(max_length=50)]
YEARS_PATTERN = f"^({YEARS})$"
Years = Annotated[str, Field(pattern=YEARS_PATTERN)]
NewText = Annotated[str, Field(max_length=20_000)] | None
PaperIds = Annotated[list[Sha256], Field(max_length=100_000, description="Ask only these papers; empty for all.")]


class ErrorBody(Strict):
    """An error, in the form that all errors have."""

    error: Annotated[str, at("happened")]
    """What happened."""
    remedy: str
    """What to do."""


# Requests


class PaperFields(Strict):
    """Which papers are wanted. A paper must fit every field that is given, and of a field one of its values. A name
    that no paper has is an error, which names those that are close to it."""

    year: Annotated[list[Years], Field(max_length=50)] = Field(default_factory=list)
    """Years and ranges of years: "2014", "2010-2015", "2020-", "-1999"."""
    author: FilterValues = Field(default_factory=list)
    """Family names or full names."""
    venue: FilterValues = Field(default_factory=list)
    """Words of the name of a journal or a conference."""
    section: FilterValues = Field(default_factory=list)
    """Kinds of sections, such as "methods", or words of their titles."""
    collection: FilterValues = Field(default_factory=list)
    """Names or paths of collections, "Consensus" or "Systems/Consensus"; those below them count."""
    tag: FilterValues = Field(default_factory=list)
    cited_by: FilterValues = Field(default_factory=list)
    """Names of papers that cite what is wanted."""


class FilterRequest(PaperFields):
    """What to ask. Only sections that fit are searched, and references and licences only if `section` names them or
    the question asks for them."""

    papers: PaperIds = Field(default_factory=list)


class SearchRequest(FilterRequest):
    query: Text
    top_k: PassageCount = 10
    use_reranker: bool = True


class ChatRequest(FilterRequest):
    message: Text
    conversation: ConversationId | None = None
    """The conversation to continue; null starts a new one."""
    listed: bool = False
    """Whether a new conversation is in the list at once. Otherwise it is from its second question on."""
    top_k: PassageCount | None = None
    """Number of passages used as evidence; null for the setting TOP_K."""
    use_reranker: bool = True
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """A model that Ollama serves, or "builtin"; null for the model in the settings."""
    style: Style = "plain"
    mode: Literal["quick", "deep"] = "quick"
    """"deep" searches in rounds: papers, passages in them that are scored, and again while too little is found."""


class FeedbackRequest(Strict):
    conversation: ConversationId
    turn: TurnNumber
    feedback: Feedback


class PaperQuery(PaperFields):
    """Which papers are wanted; all that are given must hold."""

    warnings: bool | None = None
    """Whether something was odd when they were read."""
    unsure: bool | None = None
    """Whether a field of them is not sure."""
    query: Annotated[str, Field(max_length=500)] = ""
    """What they are about: ranks them by their title, abstract, headings and text, the best first."""
    limit: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Maximum number of results; default: all papers, or 20 when `query` is given."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of results to skip."""


class PaperEdits(Strict):
    """What to change of a paper. Empty text or an empty list empties a field, null resets it to what was read."""

    title: NewText = None
    authors: Annotated[list[PersonJson | Text], Field(max_length=MOST_AUTHORS)] | None = None
    """Each in two parts, or as text: "Family, Given", "Given Family", "{Organisation}"."""
    year: Annotated[int, Field(ge=FIRST_YEAR, le=9999)] | Literal[""] | None = None
    venue: NewText = None
    doi: NewText = None
    arxiv: NewText = None
    abstract: NewText = None
    kind: NewText = None
    """A CSL type such as "article-journal"."""
    volume: NewText = None
    issue: NewText = None
    pages: NewText = None
    publisher: NewText = None
    url: NewText = None
    citation_key: NewText = None
    tags: Annotated[list[Text], Field(max_length=MOST_TAGS)] | None = None


# Replies and events


class SearchReply(Strict):
    query: str
    hits: list[HitJson]
    """Best first; none for a query of which nothing is known."""
    notice: str = ""
    """What to say with them, such as that no passage has the query's words; "" if nothing."""
    models: Models
    elapsed_ms: Milliseconds


class ScopePaperJson(PaperFoundJson):
    """A paper that was chosen."""


class ScopeJson(PaperFields):
    """Which papers and sections were asked; all where nothing is named. The fields are those of the request."""

    papers: list[ScopePaperJson] = Field(default_factory=list)


class ChatReply(AnswerJson):
    """An answer, a remark or a refusal, as a turn of a conversation. A refusal has a fixed text; it and a remark have
    no sentences and no citations."""

    model_config = ConfigDict(json_schema_extra=None)

    # Neither sent nor kept: a reply has the message, and what was cited of the evidence.
    question: Annotated[str, Field(exclude=True)] = ""
    evidence: Annotated[list[Any], Field(exclude=True)] = Field(default_factory=list)
    timings_ms: Annotated[Timings, Field(exclude=True)] = Field(default_factory=dict)

    message: str
    sources_used: list[str]
    """The cited files, in the order of the answer."""
    elapsed_ms: Milliseconds
    conversation: ConversationId
    turn: TurnNumber
    scope: ScopeJson = ScopeJson()
    """What was asked; an answer of an older Folio says nothing of it."""
    trace: TraceJson | None = None
    """How a deep search found the passages; null for a quick one, and where nothing was searched."""
    evidence_profile: EvidenceProfileJson | None = None
    """What a deep answer rests on, as a whole; null for a quick one, a refusal and a remark."""
    feedback: Literal["", "good", "bad"] = ""

    @model_validator(mode="before")
    @classmethod
    def _with_remark(cls, value: Any) -> Any:
        """An older Folio kept a remark as the text of the answer alone."""
        if not isinstance(value, dict) or "remark" in value or value.get("refused") or value.get("sentences"):
            return value
        return {**value, "remark": value.get("answer", "")}


class RetrievedEvent(Strict):
    """The passages found, sent before the first sentence."""

    conversation: ConversationId
    turn: TurnNumber
    hits: list[HitJson]
    elapsed_ms: Milliseconds


class CheckingEvent(Strict):
    """Sent each time the number of statements that wait for their verifier changes."""

    count: Count


class ThinkingEvent(Strict):
    """Sent when the model begins to think, which may take minutes; what it thinks is not sent."""

    model: str


class CitationsEvent(Strict):
    citations: list[CitationJson]


class ConversationSummary(Strict):
    id: ConversationId
    title: str
    updated: str
    turns: Count


class ConversationList(Strict):
    conversations: list[ConversationSummary]
    """Latest first."""


class Conversation(Strict):
    id: ConversationId
    title: str
    updated: str
    turns: list[ChatReply]


class PaperDetails(PaperDetailsJson):
    """A paper with everything known about it."""

    labels: Annotated[list[str], at("pages", "labels")]
    """The printed label of each page; empty if the file does not give one."""
    bibtex: str
    reference: str
    zotero: str
    """The link that opens it in Zotero, to which "?page=7" may be added; empty if it is not there."""


class FailureJson(Strict):
    """A file that no text could be read from."""

    file: Annotated[str, at("file", "name")]
    error: Annotated[str, at("happened")]
    remedy: str


class PaperList(Strict):
    papers: list[ListedPaperJson]
    failures: list[FailureJson]
    notice: str = ""
    """What the ranking for a query lacked; "" if nothing."""


class RemovedJson(Strict):
    file: str
    kept_at: str | None
    """The new place of its file, relative to PAPERS_DIR; null if the file was not moved."""


class StoreJson(Strict):
    folder: str
    papers: Count
    chunks: Count
    bytes: Count
    generation: Count


class Health(Strict):
    status: Literal["ready", "empty"]
    store: StoreJson | None
    fingerprint: dict[str, str]
    """The models and settings that the index was built with."""
    models: Models
    better: list[str]
    """What would improve answers."""
    chat_models: list[str]
    """Models that a request may name, in addition to "builtin"."""
    logged: bool
    """Whether questions and conversations are stored."""
    online: bool
    """Whether this server may search services on the internet for papers, and download them."""
    network: str
    """The same in words, with the services."""
    max_file_mb: FromOne


class SavedEvent(Strict):
    file: str


class ProgressEvent(Strict):
    stage: Literal["reading", "embedding"]
    done: Count
    of: Count


class AddedEvent(Strict):
    status: Status
    paper: PaperJson
    notes: list[str]


def paper_details(paper: Paper, added: str, files: Sequence[str], published: str) -> PaperDetails:
    """paper_details_json with page labels, a reference and BibTeX. published: the publisher's BibTeX, "" for none."""
    shown = {"bibtex": bibtex(paper, published=published), "reference": reference(paper, ())}
    zotero = open_pdf(paper.metadata.zotero.value)
    return PaperDetails.model_validate(details(paper, added, files, **shown, zotero=zotero))


def paper_filter(query: PaperFields, **more: Any) -> PaperFilter:
    """What the fields say. more: other arguments of PaperFilter.parse. Raises UsageError."""
    return PaperFilter.parse(
        years=query.year,
        authors=query.author,
        venues=query.venue,
        sections=query.section,
        collections=query.collection,
        tags=query.tag,
        cited_by=query.cited_by,
        **more,
    )


def paper_edits(wanted: PaperEdits) -> dict[str, PaperField[Any] | None]:
    """The fields that a request names, checked; None resets one. Raises UsageError."""
    given = {name: getattr(wanted, name) for name in PaperEdits.model_fields if name in wanted.model_fields_set}
    if given.get("authors"):
        people = given["authors"]
        given["authors"] = [PersonName(p.family, p.given) if isinstance(p, PersonJson) else p for p in people]
    return {name: None if value is None else checked_field(name, value) for name, value in given.items()}


def chat_reply(
    message: str, answer: AnswerJson, conversation: str, turn: int, elapsed_ms: float, scope: ScopeJson | None = None
) -> ChatReply:
    """The reply to a message. message: exactly as it was sent. turn: the answer's number, from 1.

    It has all that the answer has, with the trace and the profile of a deep one.
    """
    return ChatReply(
        **dict(answer),
        message=message,
        sources_used=list(dict.fromkeys(citation.file for citation in answer.citations)),
        elapsed_ms=elapsed_ms,
        conversation=conversation,
        turn=turn,
        scope=scope or ScopeJson(),
    )


def scope_json(request: FilterRequest, chosen: Sequence[Paper]) -> ScopeJson:
    """What a request asks. chosen: the papers that it names."""
    return ScopeJson.model_validate(With(request, papers=chosen))


def error_body(error: FolioError) -> ErrorBody:
    return ErrorBody.model_validate(error)


def event(kind: str, value: BaseModel) -> dict[str, str]:
    """One server-sent event, with its data as one line of JSON."""
    return {"event": kind, "data": value.model_dump_json()}


# Requests, replies and events of searching for papers on the internet and fetching them, as pydantic models.

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


# What the web API says of uploads: files that the server has, and adds to the library one after the other.

UPLOAD = "^[0-9]{19}-[0-9a-f]{8}$"
UploadId = Annotated[str, Field(pattern=UPLOAD, description="Opaque; sorts by time of arrival.")]
# A folder's path before a file's name is allowed, and ignored.
UploadName = Annotated[str, Field(max_length=4000, description="The file's name.")]
UploadState = Literal["waiting", "reading", "embedding", "stopping", "added", "failed"]


class UploadJson(Strict):
    """A file in the queue. One that was added leaves it soon after a client was told; one that failed stays."""

    id: UploadId
    file: str
    """Its name, as it is saved unless another file has that name."""
    state: UploadState
    done: Count
    """Passages that were embedded."""
    of: Count
    """Passages that it has; 0 until it was read."""
    status: Status | None
    """Of a file that was added: whether it is new, replaces an older version, or was there before."""
    paper: Sha256 | None
    """The paper's id, once it was added."""
    title: str
    pages: Count
    notes: list[str]
    error: str
    """Why it failed; empty if it did not."""
    remedy: str


class UploadsJson(Strict):
    """The queue of uploads."""

    uploads: list[UploadJson]
    """In the order of their arrival, which is the order in which they are added."""
    active: bool
    """Whether some wait or are being added."""
    notice: str
    """Why nothing is being added at the moment, although some wait; empty otherwise."""


class CancelledUploads(Strict):
    cancelled: Count
    """How many were taken from the queue, or will be as soon as they can be stopped."""


class RetriedUploads(Strict):
    retried: Count
