"""Requests and replies of the OpenAI-compatible API, as far as Folio has them. Fields it does not know are ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from folio.schema.papers import Count
from folio.schema.web import NOT_BLANK, ErrorBody, InvalidBody

PREFIX = "/v1/"
MOST_INPUTS = 2048  # texts to embed in a request, as at OpenAI
TextToEmbed = Annotated[str, Field(pattern=NOT_BLANK)]
ModelId = Annotated[str, Field(min_length=1, max_length=2000)]


class Lenient(BaseModel):
    """An object with at least these fields: clients send others too."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


# Requests


class ContentPart(Lenient):
    """A part of a message. Only those of the type "text" are read."""

    type: str
    text: str = ""


class Message(Lenient):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(Lenient):
    include_usage: bool | None = None


class ResponseFormat(Lenient):
    type: str = "text"


class CompletionRequest(Lenient):
    """A conversation whose last message is a question. Settings of a model, such as `temperature` and `max_tokens`, are
    ignored."""

    model: ModelId
    """"folio", "folio-deep", or one of these with filters: "folio:tag=consensus&since=2015"."""
    messages: Annotated[list[Message], Field(min_length=1, max_length=2000)]
    """The earlier ones let a follow-up be understood. Those of the system are no evidence, and are not followed."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    """Must be 1."""
    tool_choice: Any = None
    """Folio calls no tools: a tool that must be called is refused."""
    response_format: ResponseFormat | None = None
    """Must have the type "text"."""


class EmbeddingRequest(Lenient):
    model: ModelId
    """"folio-embedding", or the name of the library's embedding model."""
    input: TextToEmbed | Annotated[list[TextToEmbed], Field(min_length=1, max_length=MOST_INPUTS)]
    """None may be empty. Numbers of tokens are not taken."""
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1)] | None = None
    """Must be those of the model."""
    input_type: Literal["query", "document", "passage"] | None = None
    """Not one of OpenAI's fields: some embedding models read a query in another way than a passage, the default."""


# Replies


class ModelJson(Lenient):
    id: str
    object: Literal["model"] = "model"
    created: Count
    owned_by: Literal["folio"] = "folio"


class ModelsJson(Lenient):
    object: Literal["list"] = "list"
    data: list[ModelJson]


class UrlCitation(Lenient):
    start_index: Count
    """Where the citation, a link, begins in the content, in Unicode code points."""
    end_index: Count
    """Where it ends: the first character after it."""
    url: str
    """The cited words in Folio's reader."""
    title: str
    """Of the paper."""


class Annotation(Lenient):
    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class ReplyMessage(Lenient):
    role: Literal["assistant"] = "assistant"
    content: str
    """Markdown. Each citation is a link to the cited words in Folio's reader."""
    refusal: None = None
    annotations: list[Annotation]


class Choice(Lenient):
    index: Literal[0] = 0
    message: ReplyMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class Usage(Lenient):
    """Always 0: an answer is made by a search and several short calls of a model, or none, whose tokens are not
    counted."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    total_tokens: Count = 0


class CompletionJson(Lenient):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: Count
    model: str
    choices: list[Choice]
    usage: Usage = Usage()


class Delta(Lenient):
    role: Literal["assistant"] | None = None
    content: str | None = None
    annotations: list[Annotation] | None = None


class ChunkChoice(Lenient):
    index: Literal[0] = 0
    delta: Delta
    finish_reason: Literal["stop"] | None = None


class ChunkJson(Lenient):
    """A part of a streamed reply."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: Count
    model: str
    choices: list[ChunkChoice]
    usage: Usage | None = None


class EmbeddingJson(Lenient):
    object: Literal["embedding"] = "embedding"
    index: Count
    embedding: list[float] | str
    """Of unit length; with "base64", its little-endian 32-bit numbers in base64."""


class EmbeddingUsage(Lenient):
    """Always 0: tokens are not counted."""

    prompt_tokens: Count = 0
    total_tokens: Count = 0


class EmbeddingsJson(Lenient):
    object: Literal["list"] = "list"
    data: list[EmbeddingJson]
    model: str
    usage: EmbeddingUsage = EmbeddingUsage()


# Errors

# Status -> the `type` of OpenAI's errors; others below 500 are of "invalid_request_error", the rest of "server_error"
_TYPES = {403: "permission_error", 429: "rate_limit_error"}


class OpenAIErrorBody(Lenient):
    message: str
    """What happened, and what to do."""
    type: str
    param: str | None = None
    """The field that is wrong."""
    code: str | None = None


class OpenAIError(Lenient):
    """An error, in OpenAI's form."""

    error: OpenAIErrorBody


def openai_error(
    status: int, happened: str, remedy: str, *, param: str | None = None, code: str | None = None
) -> OpenAIError:
    """status: of the response. param: the field that is wrong."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code = "invalid_api_key" if status == 401 else code
    return OpenAIError(
        error=OpenAIErrorBody(message=f"{happened} {remedy}".strip(), type=kind, param=param, code=code)
    )


def error_at(path: str, status: int, body: ErrorBody, code: str | None = None) -> BaseModel:
    """An error in the form that the address of its request has."""
    if not path.startswith(PREFIX):
        return body
    param = body.field if isinstance(body, InvalidBody) else None
    return openai_error(status, body.error, body.remedy, param=param, code=code)
