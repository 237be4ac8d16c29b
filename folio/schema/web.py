"""Requests, replies and events of the web API as pydantic models, from which the OpenAPI document is generated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from folio.answer_types import Selected, Style
from folio.bibliography.export import bibtex, reference
from folio.errors import FolioError
from folio.ingest.discovery import Status
from folio.papers.edits import FIRST_YEAR, MOST_AUTHORS, MOST_TAGS, checked_field
from folio.papers.identifiers import LONGEST
from folio.papers.metadata import Field as PaperField
from folio.papers.metadata import PersonName
from folio.papers.model import Paper
from folio.papers.sections import Kind
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
    PaperId,
    PaperJson,
    PersonJson,
    Score,
    Sha256,
    Strict,
    With,
    at,
    details,
)
from folio.schema.remedies import OnPage, on_page
from folio.search.filters import YEARS, PaperFilter
from folio.services.answers import SearchQuery, SearchSource, Sort
from folio.services.keep import Candidate, identifier_of
from folio.store.query_log import Feedback
from folio.store.readings import Removal
from folio.zotero.link import open_pdf

MAX_PASSAGES = 50
KEY = "^[A-Za-z0-9_-]{16}$"
CONVERSATION = "^[A-Za-z0-9_-]{16}(-once)?$"
TABLE = "^[0-9a-f]{16}$"
TableId = Annotated[str, Field(pattern=TABLE, description="Returned with a new table.")]
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
ModelName = Annotated[str, Field(min_length=1, max_length=200)]
NewText = Annotated[str, Field(max_length=20_000)] | None
PaperIds = Annotated[list[Sha256], Field(max_length=100_000)]


class ErrorBody(Strict):
    """An error. All errors have this form."""

    error: Annotated[str, at("happened")]
    """What happened."""
    remedy: OnPage
    """What to do, with no command: the page has a place for it."""


class InvalidBody(ErrorBody):
    """The error of a request with a wrong field."""

    field: str
    """Its name, with which `error` begins: "year.0"."""


class AnswerErrorJson(ErrorBody):
    """Why a question has no answer."""

    model_failed: bool = False
    """Whether a model failed or is away, so that the model "builtin" may answer."""


# Requests


class PaperRule(Strict):
    """A filter of papers. A paper must fit every given field, and one value of each field."""

    year: Annotated[list[Years], Field(max_length=50)] = Field(default_factory=list)
    """Years and ranges of years: "2014", "2010-2015", "2020-", "-1999"."""
    author: FilterValues = Field(default_factory=list)
    """Family names or full names."""
    venue: FilterValues = Field(default_factory=list)
    """Words of the name of a journal or a conference."""
    section: FilterValues = Field(default_factory=list)
    """Kinds of sections, such as "methods", or words of their titles."""
    collection: FilterValues = Field(default_factory=list)
    """Names or paths of collections, "Consensus" or "Systems/Consensus", with the collections below them."""
    tag: FilterValues = Field(default_factory=list)
    cited_by: FilterValues = Field(default_factory=list)
    """Names of papers that cite the wanted papers."""
    category: FilterValues = Field(default_factory=list)
    """Categories of arXiv, "cs.CL", or whole archives: "cs"."""


class PaperFields(PaperRule):
    """A filter of papers. A paper must fit every given field, and one value of each field. A name that no paper has is
    an error, which lists similar names."""

    project: FilterValues = Field(default_factory=list)
    """Names or ids of projects; a collection of Zotero or a bibliography is one, too."""


class FilterRequest(PaperFields):
    """Where to search: in sections that fit, and in references and licences only if `section` names them or the
    question asks for them."""

    papers: PaperIds = Field(default_factory=list)
    """Ask only these papers; empty for all."""


class SearchRequest(FilterRequest):
    query: Text
    top_k: PassageCount = 10
    use_reranker: bool = True


class SelectionRequest(Strict):
    """Words of a paper that a reader selected: "this" in a question."""

    paper: Sha256
    start: Count
    end: FromOne
    quote: str = ""
    """The words that were shown there. If the text has changed since, the closest place with them is taken."""
    everywhere: bool = False
    """Search all papers. Otherwise only this one is searched, unless the request names papers, or the question asks for
    other places: "Where else is this said?", "Who disagrees?"."""


class ChatRequest(FilterRequest):
    message: Text
    conversation: ConversationId | None = None
    """The conversation to continue; null starts a new one."""
    after: TurnNumber | None = None
    """The turn to follow, in a conversation with branches; null for its latest turn."""
    replaces: TurnNumber | None = None
    """The turn that this question replaces: an edited question, or the same one for another model. It follows the turn
    before that one, instead of `after`; the earlier turns are kept as another branch."""
    key: Annotated[str, Field(pattern=KEY)] | None = None
    """Chosen by the client, another one for each question, at random: a question that is sent again with its key is
    asked once. A new conversation has it as its id."""
    listed: bool = False
    """Whether a person asks: a new conversation is listed at once, not from its second question on, and the answer is
    finished even if the client disconnects."""
    top_k: PassageCount | None = None
    """Number of passages used as evidence; null for the setting TOP_K."""
    selection: SelectionRequest | None = None
    """The words that the question is about."""
    use_reranker: bool = True
    model: ModelName | None = None
    """A model that Ollama serves, or "builtin"; null for the model in the settings."""
    style: Style = "plain"
    instruction: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """The id of an instruction for the wording of the answer; null for none."""
    mode: Literal["quick", "deep"] = "quick"
    """"deep" searches in rounds: papers, passages in them that are scored, and again while too little is found."""


class AgainRequest(Strict):
    """How to ask a question again that has no answer."""

    model: ModelName | None = None
    """Another model; null for the one it was asked with."""


class FeedbackRequest(Strict):
    conversation: ConversationId
    turn: TurnNumber
    feedback: Feedback


class PaperQuery(PaperFields):
    """A filter of papers. A paper must fit every given field."""

    warnings: bool | None = None
    """Whether reading them gave warnings."""
    unsure: bool | None = None
    """Whether one of their fields is not sure."""
    query: Annotated[str, Field(max_length=500)] = ""
    """Words to rank the papers by, in their title, abstract, headings and text; the best first."""
    limit: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Maximum number of results; default: all papers, or 20 when `query` is given."""
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of results to skip."""


class PaperEdits(Strict):
    """Changes of a paper. Empty text or an empty list empties a field; null resets it to the value that was read."""

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
    date: NewText = None
    """An ISO date, of a day or a month: "2014-06-19", "2014-06"."""
    categories: Annotated[list[Text], Field(max_length=MOST_TAGS)] | None = None
    tags: Annotated[list[Text], Field(max_length=MOST_TAGS)] | None = None


class ManyEdits(Strict):
    """The same changes of several papers: of all, or after an error of none."""

    papers: Annotated[PaperIds, Field(min_length=1)]
    add_tags: Annotated[list[Text], Field(max_length=MOST_TAGS)] = Field(default_factory=list)
    remove_tags: Annotated[list[Text], Field(max_length=MOST_TAGS)] = Field(default_factory=list)
    add_collections: Annotated[list[Text], Field(max_length=MOST_TAGS)] = Field(default_factory=list)
    """Paths: "Systems/Consensus"."""
    remove_collections: Annotated[list[Text], Field(max_length=MOST_TAGS)] = Field(default_factory=list)
    edits: PaperEdits = PaperEdits()


class ChosenPapers(Strict):
    papers: Annotated[PaperIds, Field(min_length=1)]


class ReadingRequest(Strict):
    page: Annotated[int, Field(ge=1, le=10**6)]
    """The physical page that is open, from 1."""


# Replies and events


class SearchHitJson(HitJson):
    """A passage of a search."""

    noted: list[tuple[Count, Count]] = Field(default_factory=list)
    """The words of its text that you highlighted or noted, here or in Zotero, in Unicode code points: [start, end)."""


class SearchReply(Strict):
    query: str
    hits: list[SearchHitJson]
    """Best first; none if no word of the query is known."""
    notice: OnPage = ""
    """A remark to show with them, such as that no passage has the query's words; "" for none."""
    models: Models
    elapsed_ms: Milliseconds


class ScopePaperJson(PaperFoundJson):
    """A paper that was chosen."""


class ScopeJson(PaperFields):
    """The searched papers and sections; all if the fields are empty. The fields are those of the request."""

    papers: list[ScopePaperJson] = Field(default_factory=list)


class SelectionJson(Strict):
    """The words of a paper that a question is about."""

    paper: PaperId
    start: Count
    end: FromOne
    page: FromOne
    text: str


class ChatReply(AnswerJson):
    """An answer, a remark or a refusal, as a turn of a conversation. A refusal has fixed words. Remarks and refusals
    have no sentences and no citations."""

    model_config = ConfigDict(json_schema_extra=None)

    # Neither sent nor stored: a reply has the message, and the cited evidence.
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
    """The searched papers and sections; empty in answers of older versions."""
    selection: SelectionJson | None = None
    """The selected words that the question is about; null for none."""
    trace: TraceJson | None = None
    """The trace of a deep search; null for a quick one, or without a search."""
    evidence_profile: EvidenceProfileJson | None = None
    """The evidence behind a deep answer; null for a quick one, a refusal and a remark."""
    feedback: Literal["", "good", "bad"] = ""
    parent: Annotated[int, Field(ge=0, le=10**6)] = 0
    """The turn that it follows; 0 for none."""
    branches: list[TurnNumber] = Field(default_factory=list)
    """The turns that follow the same turn, itself included, in order. Several: the conversation branches here."""
    stopped: bool = False
    """Whether the answer was stopped: it has the sentences that were sent before."""
    key: str = ""
    """The `key` of the request, or one that the server chose; "" in answers of older versions."""
    notice: OnPage

    @model_validator(mode="after")
    def _say_remark_on_page(self) -> Self:
        """A remark has no quote, and may name the command that lists the same papers."""
        if self.remark and (said := on_page(self.remark).text) != self.remark.strip():
            vars(self).update(answer=self.answer.replace(self.remark, said), remark=said)  # before anybody has it
        return self

    @model_validator(mode="before")
    @classmethod
    def _with_remark(cls, value: Any) -> Any:
        """Older versions stored a remark only as the text of the answer."""
        if not isinstance(value, dict) or "remark" in value or value.get("refused") or value.get("sentences"):
            return value
        return {**value, "remark": value.get("answer", "")}


class UnansweredJson(Strict):
    """A question without an answer, as a turn of a conversation."""

    message: str
    conversation: ConversationId
    turn: TurnNumber
    parent: Annotated[int, Field(ge=0, le=10**6)]
    branches: list[TurnNumber]
    key: str
    selection: SelectionJson | None = None
    model: str | None = None
    """The model that was asked for; null for the one in the settings."""
    state: Literal["running", "failed", "stopped"]
    """"stopped": before a first sentence."""
    error: AnswerErrorJson | None = None
    """Why it failed."""


class RetrievedEvent(Strict):
    """The found passages, sent before the first sentence."""

    conversation: ConversationId
    turn: TurnNumber
    hits: list[HitJson]
    elapsed_ms: Milliseconds


class CheckingEvent(Strict):
    """The number of statements waiting for the verifier, sent after each change."""

    count: Count


class ThinkingEvent(Strict):
    """Sent when the model begins to think, which may take minutes. The thought is not sent."""

    model: str


class CitationsEvent(Strict):
    citations: list[CitationJson]


class ConversationSummary(Strict):
    id: ConversationId
    title: str
    updated: str
    turns: Count
    """The turns of all branches, also those without an answer."""
    pinned: bool
    running: Count
    """The turn that is being answered; 0 for none."""


class ConversationList(Strict):
    conversations: list[ConversationSummary]
    """Pinned ones first, then the latest first."""


class Conversation(Strict):
    id: ConversationId
    title: str
    updated: str
    pinned: bool
    turns: list[ChatReply]
    """The answers of one path: each follows the one before."""
    unanswered: list[UnansweredJson]
    """The questions of this path without an answer; `turn` says where they stand between the answers."""


class ConversationChanges(Strict):
    """Changes of a conversation; null leaves a value as it is."""

    title: Annotated[str, Field(pattern=NOT_BLANK, max_length=200)] | None = None
    pinned: bool | None = None
    """Whether it stands above the others."""


Offset = Annotated[Count, Field(description="In the text of the paper, in Unicode code points.")]
Box = Annotated[
    tuple[float, float, float, float],
    Field(description="Left, top, right, bottom, in points from the left top of the page as shown."),
]


class OutlineJson(Strict):
    """A section of a paper, in the order of the paper. Its subsections follow it, with a higher level."""

    title: str
    """With its number: "5.2 Leader election"."""
    level: FromOne
    kind: Kind
    page: FromOne
    start: Offset
    end: Offset


class PaperDetails(PaperDetailsJson):
    """A paper with everything known about it."""

    outline: list[OutlineJson]
    """Its sections, with their places."""
    sizes: list[Annotated[list[float], Field(min_length=2, max_length=2)]]
    """Width and height of each page as shown, in points; empty if its file cannot be read."""

    labels: Annotated[list[str], at("pages", "labels")]
    """The printed label of each page; empty if the file gives none."""
    bibtex: str
    reference: str
    zotero: str
    """The link to open it in Zotero, to which "?page=7" may be added; empty if the paper is not there."""


class HeadingJson(Strict):
    """The heading of a section that begins on a page."""

    start: Offset
    end: Offset
    level: FromOne
    title: str


class LinkJson(Strict):
    """A link inside a PDF."""

    box: Box
    page: FromOne | None
    """The physical page that it leads to, from 1; null for an address."""
    uri: str
    """An address that begins with http:, https:, mailto: or doi:; "" for a page."""
    at: Annotated[list[float], Field(min_length=2, max_length=2)] | None
    """Where on that page it leads, from its left and its top, in points; null: to the page."""


class InnerCitationJson(Strict):
    """Words that cite an entry of the paper's own references: "[12]", or "(Smith, 2010)"."""

    start: Offset
    end: Offset
    page: FromOne
    """The physical page on which the entry begins."""
    entry: Annotated[list[Count], Field(min_length=2, max_length=2)]
    """The start and the end of the entry in the text of the paper."""


class PageText(Strict):
    """The text of a page in the library, and where it is drawn."""

    page: FromOne
    label: str
    """Label printed on the page; the page's number if the file gives none."""
    width: float
    """Points, of the page as shown."""
    height: float
    start: Offset
    end: Offset
    text: str
    """The paper's text from `start` to `end`: cleaned, in reading order."""
    words: list[Annotated[list[int | float], Field(min_length=6, max_length=6)]]
    """Each drawn word: start, end (in the paper), left, top, right, bottom; one for each line that it is on."""
    placed: bool
    """False without words: the page was read by OCR, or its text is not found on it."""
    direction: Literal["ltr", "rtl"]
    headings: list[HeadingJson]
    paragraphs: list[Annotated[list[Count], Field(min_length=2, max_length=2)]]
    """The start and the end of each."""
    links: list[LinkJson]
    citations: list[InnerCitationJson]
    references: list[Annotated[list[Count], Field(min_length=2, max_length=2)]]
    """The start and the end of each entry of the paper's references that begins on this page."""


class PlacesJson(Strict):
    """Where words stand in a paper."""

    count: Count
    hits: list[Annotated[list[Count], Field(min_length=3, max_length=3)]]
    """Start and end in the text of the paper, and the page, in order; at most 2,000."""


class FailureJson(Strict):
    """A file that could not be read, or not be found."""

    file: Annotated[str, at("file", "name")]
    error: Annotated[str, at("happened")]
    remedy: OnPage


class PaperList(Strict):
    papers: list[ListedPaperJson]
    failures: list[FailureJson]
    notice: OnPage = ""
    """What is missing in the ranking; "" if nothing."""


class RemovedJson(Strict):
    file: str
    kept_at: str | None
    """The new place of its file, relative to PAPERS_DIR; null if the file was not moved."""


class RemovedFiles(Strict):
    removed: list[RemovedJson]


class ChangedPapers(Strict):
    changed: Count
    """Number of papers whose metadata is another one now."""


class RemovedPaperJson(Strict):
    """A paper that was removed."""

    paper: Sha256
    title: str
    file: str
    """The name of its file."""
    removed: str
    """ISO time in UTC."""


class RemovedPapers(Strict):
    papers: list[RemovedPaperJson]
    """Those of the last day, latest first."""


class EmptiedJson(Strict):
    deleted: Count
    """Number of files."""
    stay: list[str]
    """A sentence about each file that was not deleted."""


class RestoredPapers(Strict):
    restored: list[ListedPaperJson]
    failed: list[FailureJson]
    """Papers that stay removed."""


class AboutQuoteJson(Strict):
    """A sentence of a paper that says what it is about."""

    kind: Literal["claim", "method", "result", "limits"]
    start: Count
    """The span of the sentence in the paper's text, in characters."""
    end: Count
    page: FromOne
    """Physical, from 1."""
    label: str
    """The label printed on the page, or its number."""
    section: str
    quote: str


class ReferenceJson(Strict):
    """An entry of a paper's references, as its own pages list it."""

    text: str
    paper: str
    """The id of the paper of the library that it cites; empty if that is not here."""
    title: str
    """The title of that paper, or of a work that a service has described; empty if not known."""
    year: int | None
    start: Count
    """The span of the entry in the paper's text, in characters."""
    end: Count
    page: FromOne
    """Physical, from 1."""


class LikePaperJson(Strict):
    paper: Sha256
    title: str
    year: int | None


class SimilarPaperJson(LikePaperJson):
    score: Score
    """Cosine of the vectors of both papers."""


class CitingConversation(Strict):
    id: ConversationId
    title: str
    updated: str


class PaperAbout(Strict):
    """What a paper is about, and what it has to do with the other papers and with the conversations."""

    abstract: str
    quotes: list[AboutQuoteJson]
    """At most one of each kind."""
    references: list[ReferenceJson]
    """In the order of its pages; empty if they cannot be told apart."""
    cited_here_by: list[LikePaperJson]
    """Papers of the library that cite it, as their own references or services say; the newest first."""
    similar: list[SimilarPaperJson]
    """The nearest first."""
    conversations: list[CitingConversation]
    """Those with an answer that cites it, latest first."""
    notes: Count
    """Number of notes with a quote from it."""


class SuggestedQuestions(Strict):
    questions: list[str]
    """Each was checked: the papers answer it."""


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
    """The models and settings of the index."""
    models: Models
    better: list[OnPage]
    """What would improve answers."""
    chat_models: list[str]
    """Models that a request may name, in addition to "builtin"."""
    model: str
    """The model that answers if a request names none: one of those, or "builtin"; "" if it cannot be used."""
    logged: bool
    """Whether questions and conversations are stored."""
    online: bool
    """Whether this server may search services on the internet for papers, and download papers."""
    network: str
    """`online` in words, with the services."""
    max_file_mb: FromOne


class ModelServerJson(Strict):
    """A model server on the computer of this server."""

    url: str
    program: str
    """As far as it can be told."""
    chat_models: list[str]
    settings: str
    """Settings that make Folio use it."""


class ModelServerList(Strict):
    servers: list[ModelServerJson]


class SavedEvent(Strict):
    file: str


class ProgressEvent(Strict):
    stage: Literal["reading", "embedding"]
    done: Count
    of: Count


class AddedEvent(Strict):
    status: Status
    paper: PaperJson
    notes: list[OnPage]


def paper_details(
    paper: Paper,
    added: str,
    files: Sequence[str],
    key: str,
    published: str,
    sizes: Sequence[tuple[float, float]],
) -> PaperDetails:
    """paper_details_json with page labels, a reference, BibTeX and an outline.

    key: its citation key. published: the publisher's BibTeX, "" for none. sizes: of the pages, () if unknown.
    """
    page_at, sections = paper.pages.page_at, paper.sections.headed
    shown = {
        "bibtex": bibtex(paper, key, published=published),
        "reference": reference(paper, ()),
        "outline": [With(section, title=section.plain, page=page_at(section.start)) for section in sections],
        "sizes": list(map(list, sizes)),
    }
    zotero = open_pdf(paper.metadata.zotero.value)
    return PaperDetails.model_validate(details(paper, added, files, key, **shown, zotero=zotero))


def paper_filter(query: PaperFields, **more: Any) -> PaperFilter:
    """The filter of these fields. more: other arguments of PaperFilter.parse. Raises UsageError."""
    return PaperFilter.parse(
        years=query.year,
        authors=query.author,
        venues=query.venue,
        sections=query.section,
        collections=query.collection,
        tags=query.tag,
        cited_by=query.cited_by,
        categories=query.category,
        projects=query.project,
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
    message: str,
    answer: AnswerJson,
    conversation: str,
    turn: int,
    elapsed_ms: float,
    scope: ScopeJson | None = None,
    selected: Selected | None = None,
    **more: Any,
) -> ChatReply:
    """The reply to a message: all fields of the answer, also of a deep one, and these. turn: its number, from 1.

    more: other fields of ChatReply.
    """
    return ChatReply(
        **dict(answer),
        message=message,
        sources_used=list(dict.fromkeys(citation.file for citation in answer.citations)),
        elapsed_ms=elapsed_ms,
        conversation=conversation,
        turn=turn,
        scope=scope or ScopeJson(),
        selection=selection_json(selected),
        **more,
    )


def selection_json(selected: Selected | None) -> SelectionJson | None:
    return SelectionJson.model_validate(selected) if selected else None


def scope_json(request: FilterRequest, chosen: Sequence[Paper]) -> ScopeJson:
    """The scope of a request. chosen: the papers that it names."""
    return ScopeJson.model_validate(With(request, papers=chosen))


def removed_papers(removals: Sequence[Removal]) -> RemovedPapers:
    return RemovedPapers(
        papers=[RemovedPaperJson.model_validate(With(each, file=each.files[0].name)) for each in removals]
    )


def error_body(error: FolioError) -> ErrorBody:
    return ErrorBody.model_validate(error)


def event(kind: str, value: BaseModel) -> dict[str, str]:
    """One server-sent event, with its data as one line of JSON."""
    return {"event": kind, "data": value.model_dump_json()}


# Searching for papers on the internet, and fetching them

MOST_AT_ONCE = 100  # works of a request
_MOST_AUTHORS = 100

FetchStage = Literal["downloading", "reading", "embedding"]
WorkId = Annotated[str, Field(pattern=NOT_BLANK, max_length=LONGEST)]


class DiscoverQuery(Strict):
    """A search for works."""

    query: Annotated[str, Field(pattern=NOT_BLANK, max_length=LONGEST)]
    """Words; or a DOI, an arXiv id or a link to either, which finds only that work."""
    source: SearchSource | None = None
    """The service; default: OpenAlex, or Semantic Scholar if OpenAlex fails."""
    since: Annotated[int, Field(ge=1800, le=2100)] | None = None
    """Only works of this year or later."""
    category: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=20)] = Field(default_factory=list)
    """Only works of these categories of arXiv, which is searched then."""
    open_access: bool = False
    """Only works that anybody may read without paying."""
    min_cited: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Only works with at least this many citations. arXiv does not count citations."""
    max: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 20
    sort: Sort = "relevance"

    def to_search(self) -> SearchQuery:
        since = date(self.since, 1, 1) if self.since else None
        return SearchQuery(
            self.query.strip(),
            since,
            self.open_access,
            self.min_cited,
            self.max,
            self.sort,
            categories=tuple(self.category),
        )


MOST_SEARCHES = 4


class MissingRequest(Strict):
    """A question that the papers do not answer."""

    question: Text
    missing: Annotated[list[Text], Field(max_length=20)] = Field(default_factory=list)
    """The parts that they do not answer (`missing` of an answer); empty for the whole question."""


class ProposedSearches(Strict):
    searches: list[str]
    """At most four, the most specific first; nothing was sent."""


class SearchesRequest(Strict):
    """Searches that a person agreed to send, word for word."""

    question: Text
    """The works are ordered by how well they fit it. It is not sent."""
    searches: Annotated[
        list[Annotated[str, Field(pattern=NOT_BLANK, max_length=200)]], Field(min_length=1, max_length=MOST_SEARCHES)
    ]


class WorkJson(Strict):
    """A work, as services describe it."""

    id: str
    """The id for `POST /papers/fetch`: an OpenAlex, arXiv or Semantic Scholar id or a DOI; "" for none."""
    link: str
    """The address of a page about it; "" for none."""
    title: str
    authors: list[str]
    year: int | None
    date: str
    """ISO date, "2021-03-04" or "2021-03"; "" if unknown."""
    categories: list[str]
    """Subjects as the service names them: "cs.CL"."""
    venue: str
    abstract: str
    doi: str
    arxiv: str
    cited: Count | None
    """Number of works that cite it; null if unknown."""
    open: Annotated[bool | None, at("is_open")]
    """Whether anybody may read it without paying; null if unknown."""
    retracted: Annotated[bool, at("is_retracted")]
    paper: Sha256 | None
    """The library's paper of this work; null if there is none."""
    other_version: bool
    """Whether that paper is another version of the work, such as its preprint."""
    file: str
    """The file of that paper, or of a download that is not in the library yet; "" for none."""
    sentence: str
    """The sentence of the abstract that fits a question best; "" without a question."""


class DiscoverReply(Strict):
    works: list[WorkJson]
    notices: list[str]
    """Services that failed, in words."""


class FetchRequest(Strict):
    ids: Annotated[list[WorkId], Field(min_length=1, max_length=MOST_AT_ONCE)]
    """Ids from `GET /discover`; or DOIs, arXiv ids and links to them."""


class FetchProgressEvent(Strict):
    """The progress of fetching a work."""

    id: str
    """As in the request."""
    title: str
    stage: FetchStage
    done: Count
    of: Count
    """0 if unknown."""


class FetchNoticeEvent(Strict):
    """A reason for a delay, or a service that failed."""

    text: str


class FetchedEvent(Strict):
    """A work is in the library."""

    id: str
    status: Status
    """"unchanged" if it was there before."""
    paper: PaperJson
    notes: list[OnPage]


class FetchFailedEvent(Strict):
    """A work could not be fetched. The others are not affected."""

    id: str
    title: str
    error: str
    remedy: OnPage


class FetchDoneEvent(Strict):
    added: Count
    unchanged: Count
    failed: Count


class PaperCitations(Strict):
    """The works that a paper cites and that cite it, as far as known. Works of the library come first."""

    known: bool
    """Whether the paper's work is known; if not, no service was asked yet."""
    references: list[WorkJson]
    """A reference of which only the identifier is known has no title."""
    cited_by: list[WorkJson]
    reference_count: Count
    """Number of known references; the list ends after 1,000."""
    cited_by_count: Count


class CitationEdge(Strict):
    citing: Sha256
    cited: Sha256


class LibraryCitations(Strict):
    """The citations between papers of the library, as far as known."""

    edges: list[CitationEdge]


def candidate_json(found: Candidate, sentence: str = "") -> WorkJson:
    """sentence: see WorkJson."""
    file = found.paper or (found.path.name if found.is_here else "")
    return work_json(found.work, found.paper_id, file, is_other_version=found.is_other_version, sentence=sentence)


def work_json(
    work: Work, paper: str = "", file: str = "", *, is_other_version: bool = False, sentence: str = ""
) -> WorkJson:
    """paper: the id of the library's paper of this work. file: that paper's file. sentence: see WorkJson."""
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
        sentence=sentence,
    )
    return WorkJson.model_validate(shown)


# Uploads: files that the server has received, and adds to the library one after the other

UPLOAD = "^[0-9]{19}-[0-9a-f]{8}$"
UploadId = Annotated[str, Field(pattern=UPLOAD, description="Opaque; sorts by time of arrival.")]
# A folder's path before a file's name is allowed, and ignored.
UploadName = Annotated[str, Field(max_length=4000, description="The file's name.")]
UploadState = Literal["waiting", "reading", "embedding", "stopping", "added", "failed"]


class UploadJson(Strict):
    """A file in the queue. An added file leaves it soon after a client knows; a failed file stays."""

    id: UploadId
    file: str
    """Its name; it is saved under another one if that is taken."""
    state: UploadState
    done: Count
    """Embedded passages."""
    of: Count
    """Its passages; 0 until it was read."""
    status: Status | None
    """For an added file: whether it is new, replaces an older version, or was there before."""
    paper: Sha256 | None
    """The paper's id, once it was added."""
    title: str
    pages: Count
    notes: list[OnPage]
    error: str
    """Why it failed; empty if it did not."""
    remedy: OnPage


class UploadsJson(Strict):
    """The queue of uploads."""

    uploads: list[UploadJson]
    """In the order of arrival, in which they are added."""
    active: bool
    """Whether files are waiting or being added."""
    notice: str
    """Why no waiting file is being added at the moment; else empty."""


class CancelledUploads(Strict):
    cancelled: Count
    """Number of files removed from the queue, or being stopped."""


class RetriedUploads(Strict):
    retried: Count


# What changes in the store (GET /events)


class HelloEvent(Strict):
    """The first event. Another one: changes were missed, or the library was replaced. Load everything."""

    generation: Count
    """Of the library; 0 without one."""


class PapersEvent(Strict):
    """Papers were added or removed, or something about them changed: also what is in none of the lists, such as a
    citation."""

    added: list[Sha256]
    changed: list[Sha256]
    removed: list[Sha256]
    generation: Count


class UploadsEvent(Strict):
    """The numbers of files in the queue."""

    waiting: Count
    running: Count
    """Being added or stopped."""
    done: Count
    """Added or failed, until they leave the queue."""


class NotesEvent(Strict):
    """Notes were added, changed or deleted."""


class ProjectsEvent(Strict):
    """Projects, or what belongs to them, were added, changed or deleted."""


class TablesEvent(Strict):
    """Tables that are new or changed, also in a cell, or begin or end being filled; and deleted ones."""

    changed: list[TableId]
    deleted: list[TableId]


class ConversationsEvent(Strict):
    """Listed conversations that are new or have another turn, title or pin; and deleted ones."""

    changed: list[ConversationId]
    deleted: list[ConversationId]


class FailuresEvent(Strict):
    """The list of files that could not be read changed."""
