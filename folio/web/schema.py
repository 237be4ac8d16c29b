"""What the web API takes and gives, as models: its OpenAPI description is made from them. Answers are schema.py's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from folio.answer.bibliography import bibtex, reference
from folio.errors import FolioError
from folio.ingest.progress import Status
from folio.schema import (
    AnswerJson,
    CitationJson,
    Count,
    FromOne,
    HitJson,
    Models,
    SentenceJson,
    Sha256,
    Strict,
)
from folio.store.query_log import Feedback
from folio.types import Paper, Style

MOST_PASSAGES = 50
ConversationId = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{16}$", description="Opaque; given with the first reply.")]
Passages = Annotated[int, Field(ge=1, le=MOST_PASSAGES)]
Turn = Annotated[int, Field(ge=1, le=10**6, description="The place of an answer in its conversation.")]
NOT_BLANK = r"\S"
Text = Annotated[str, Field(pattern=NOT_BLANK, max_length=10_000)]
Milliseconds = Annotated[float, Field(ge=0)]
Chosen = Annotated[list[Sha256], Field(max_length=100_000, description="Asked among these papers only; empty for all.")]


class ErrorBody(Strict):
    """Whatever went wrong."""

    error: str
    """What happened."""
    remedy: str
    """What to do about it."""


# What is asked


class SearchRequest(Strict):
    query: Text
    top_k: Passages = 10
    papers: Chosen = Field(default_factory=list)
    use_reranker: bool = True


class ChatRequest(Strict):
    message: Text
    conversation: ConversationId | None = None
    """The conversation that this follows up on; null begins one."""
    top_k: Passages | None = None
    """Passages of evidence; null for the setting TOP_K."""
    use_reranker: bool = True
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """A model that Ollama serves, or "builtin"; null as the settings have it."""
    papers: Chosen = Field(default_factory=list)
    style: Style = "plain"


class FeedbackRequest(Strict):
    conversation: ConversationId
    turn: Turn
    feedback: Feedback


# What is answered


class SearchReply(Strict):
    query: str
    hits: list[HitJson]
    """Best first."""
    models: Models
    elapsed_ms: Milliseconds


class ChatReply(Strict):
    """A question that was answered, or refused: a refusal has one wording, no sentence and no citation."""

    message: str
    answer: str
    refused: bool
    sources_used: list[str]
    """The files that are cited, in the order of the answer."""
    citations: list[CitationJson]
    elapsed_ms: Milliseconds
    conversation: ConversationId
    turn: Turn
    standalone_question: str
    sentences: list[SentenceJson]
    dropped_sentences: Count
    notice: str
    style: Style
    models: Models
    hits: list[HitJson]
    feedback: Literal["", "good", "bad"] = ""


class Retrieved(Strict):
    """What was found, before the first sentence."""

    conversation: ConversationId
    turn: Turn
    hits: list[HitJson]
    elapsed_ms: Milliseconds


class Citations(Strict):
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
    """When, as an ISO time in UTC."""
    problems: list[str]
    """What was odd when it was read."""


class PaperDetails(PaperJson):
    labels: list[str]
    """What is printed on each page; empty where the file does not say."""
    bibtex: str
    reference: str


class FailureJson(Strict):
    """A file that gave no text."""

    file: str
    error: str
    remedy: str


class PaperList(Strict):
    papers: list[PaperJson]
    failures: list[FailureJson]


class RemovedJson(Strict):
    file: str
    kept_at: str | None
    """Where its file is now, within PAPERS_DIR; null where it was left alone."""


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
    """What the store was made with."""
    models: Models
    better: list[str]
    """What would make it better."""
    chat_models: list[str]
    """What may be asked for by name, beside "builtin"."""
    logged: bool
    """Whether questions and conversations are kept."""
    max_file_mb: FromOne


class Saved(Strict):
    file: str


class IngestProgress(Strict):
    stage: Literal["reading", "embedding"]
    done: Count
    of: Count


class TakenIn(Strict):
    status: Status
    paper: PaperJson
    notes: list[str]


def paper_json(paper: Paper, added: str) -> PaperJson:
    """added: when, as an ISO time in UTC."""
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
    """The same with what is needed to cite it."""
    about = paper_json(paper, added).model_dump()
    return PaperDetails(**about, labels=list(paper.pages.labels), bibtex=bibtex(paper), reference=reference(paper, ()))


def chat_reply(message: str, said: AnswerJson, conversation: str, turn: int, elapsed_ms: float) -> ChatReply:
    """An answer as the web gives it. message: as it was sent. turn: its place in the conversation."""
    return ChatReply(
        message=message,
        answer=said.answer,
        refused=said.refused,
        sources_used=list(dict.fromkeys(citation.file for citation in said.citations)),
        citations=said.citations,
        elapsed_ms=elapsed_ms,
        conversation=conversation,
        turn=turn,
        standalone_question=said.standalone_question,
        sentences=said.sentences,
        dropped_sentences=said.dropped_sentences,
        notice=said.notice,
        style=said.style,
        models=said.models,
        hits=said.hits,
    )


def error_body(error: FolioError) -> ErrorBody:
    return ErrorBody(error=error.happened, remedy=error.remedy)


def event(kind: str, value: BaseModel) -> dict[str, str]:
    """One server-sent event, its data on one line of JSON."""
    return {"event": kind, "data": value.model_dump_json()}
