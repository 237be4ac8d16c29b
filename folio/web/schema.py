"""Requests, replies and events of the web API, as pydantic models; the OpenAPI document is generated from them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from folio.answer.bibliography import reference
from folio.answer.bibliography_entries import bibtex
from folio.answer_types import Style
from folio.errors import FolioError
from folio.ingest.progress import Status
from folio.schema import (
    AnswerJson,
    CitationJson,
    Count,
    FromOne,
    HitJson,
    LeftOutJson,
    Models,
    SentenceJson,
    Sha256,
    Strict,
)
from folio.store.query_log import Feedback
from folio.types import Paper

MAX_PASSAGES = 50
ConversationId = Annotated[
    str, Field(pattern="^[A-Za-z0-9_-]{16}$", description="Opaque; returned with the first reply.")
]
PassageCount = Annotated[int, Field(ge=1, le=MAX_PASSAGES)]
TurnNumber = Annotated[int, Field(ge=1, le=10**6, description="The number of an answer in its conversation, from 1.")]
# \s of JSON Schema has fewer characters than str.strip() removes.
NOT_BLANK = r"[^\s\x1c-\x1f\x85]"
Text = Annotated[str, Field(pattern=NOT_BLANK, max_length=10_000)]
Milliseconds = Annotated[float, Field(ge=0)]
PaperIds = Annotated[list[Sha256], Field(max_length=100_000, description="Ask only these papers; empty for all.")]


class ErrorBody(Strict):
    """An error, in the form that all errors have."""

    error: str
    """What happened."""
    remedy: str
    """What to do."""


# Requests


class SearchRequest(Strict):
    query: Text
    top_k: PassageCount = 10
    papers: PaperIds = Field(default_factory=list)
    use_reranker: bool = True


class ChatRequest(Strict):
    message: Text
    conversation: ConversationId | None = None
    """The conversation to continue; null starts a new one."""
    top_k: PassageCount | None = None
    """Number of passages used as evidence; null for the setting TOP_K."""
    use_reranker: bool = True
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """A model that Ollama serves, or "builtin"; null for the model in the settings."""
    papers: PaperIds = Field(default_factory=list)
    style: Style = "plain"


class FeedbackRequest(Strict):
    conversation: ConversationId
    turn: TurnNumber
    feedback: Feedback


# Replies and events


class SearchReply(Strict):
    query: str
    hits: list[HitJson]
    """Best first."""
    models: Models
    elapsed_ms: Milliseconds


class ChatReply(Strict):
    """An answer or a refusal. A refusal has a fixed text, no sentences and no citations."""

    message: str
    answer: str
    refused: bool
    sources_used: list[str]
    """The cited files, in the order of the answer."""
    citations: list[CitationJson]
    elapsed_ms: Milliseconds
    conversation: ConversationId
    turn: TurnNumber
    standalone_question: str
    sentences: list[SentenceJson]
    dropped_sentences: Count
    left_out: list[LeftOutJson] = Field(default_factory=list)
    """The sentences that were dropped, and why; empty for an answer of an older Folio."""
    notice: str
    style: Style
    models: Models
    hits: list[HitJson]
    feedback: Literal["", "good", "bad"] = ""


class RetrievedEvent(Strict):
    """The passages found, sent before the first sentence."""

    conversation: ConversationId
    turn: TurnNumber
    hits: list[HitJson]
    elapsed_ms: Milliseconds


class CheckingEvent(Strict):
    """Sent each time the number of statements that wait for their verifier changes."""

    count: Count


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


class PaperJson(Strict):
    id: Sha256
    file: str
    title: str
    authors: list[str]
    year: int | None
    arxiv: str
    pages: Count
    chunks: Count
    added: str
    """ISO time in UTC."""
    problems: list[str]
    """Problems found when the file was read."""


class PaperDetails(PaperJson):
    labels: list[str]
    """The printed label of each page; empty if the file does not give one."""
    bibtex: str
    reference: str


class FailureJson(Strict):
    """A file that no text could be read from."""

    file: str
    error: str
    remedy: str


class PaperList(Strict):
    papers: list[PaperJson]
    failures: list[FailureJson]


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


def paper_json(paper: Paper, added: str) -> PaperJson:
    """added: ISO time in UTC."""
    return PaperJson(
        id=paper.id,
        file=paper.file,
        title=paper.title,
        authors=list(paper.authors),
        year=paper.year,
        arxiv=paper.arxiv,
        pages=paper.page_count,
        chunks=paper.chunks,
        added=added,
        problems=list(paper.problems),
    )


def paper_details(paper: Paper, added: str) -> PaperDetails:
    """paper_json with page labels, a reference and BibTeX."""
    fields = paper_json(paper, added).model_dump()
    return PaperDetails(**fields, labels=list(paper.pages.labels), bibtex=bibtex(paper), reference=reference(paper, ()))


def chat_reply(message: str, answer: AnswerJson, conversation: str, turn: int, elapsed_ms: float) -> ChatReply:
    """The reply to a message. message: exactly as it was sent. turn: the answer's number, from 1."""
    return ChatReply(
        message=message,
        answer=answer.answer,
        refused=answer.refused,
        sources_used=list(dict.fromkeys(citation.file for citation in answer.citations)),
        citations=answer.citations,
        elapsed_ms=elapsed_ms,
        conversation=conversation,
        turn=turn,
        standalone_question=answer.standalone_question,
        sentences=answer.sentences,
        dropped_sentences=answer.dropped_sentences,
        left_out=answer.left_out,
        notice=answer.notice,
        style=answer.style,
        models=answer.models,
        hits=answer.hits,
    )


def error_body(error: FolioError) -> ErrorBody:
    return ErrorBody(error=error.happened, remedy=error.remedy)


def event(kind: str, value: BaseModel) -> dict[str, str]:
    """One server-sent event, with its data as one line of JSON."""
    return {"event": kind, "data": value.model_dump_json()}
