"""The OpenAI-compatible API: other programs ask the papers as if they were a model, and embed as the library does.

An answer is Markdown; each citation is a link to the cited words in Folio's reader, and an annotation. The client keeps
the conversation: earlier.py reads it. Chores such as titles are answered without a search: chores.py.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from secrets import token_urlsafe
from threading import Event
from time import time
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from sse_starlette import EventSourceResponse

from folio.answer import instructions
from folio.errors import NotKnown, StoreMissing, UsageError
from folio.papers.lists import names_of
from folio.schema import openai as schema
from folio.schema.invalid import what_is_wrong
from folio.schema.web import ChatReply, ChatRequest, PaperFields
from folio.search.filters import PaperFilter, fitting_papers
from folio.shown_text import name_line
from folio.store import projects
from folio.web.chores import chore_reply, without_context
from folio.web.earlier import MOST_TURNS, EarlierTurn
from folio.web.export import Statements, ending, with_links
from folio.web.server import FINISH_REPLACED_S
from folio.web.stream import RequestCancelled, RequestThreads, reply_unless_left

if TYPE_CHECKING:
    from folio.app import App
    from folio.web.answering import Answers
    from folio.web.guard import AccessRules
    from folio.web.service import Service

MODELS: Mapping[str, Literal["quick", "deep"]] = {"folio": "quick", "folio-deep": "deep"}
EMBEDDING = "folio-embedding"
# The words of a scope: the filters, the first year, and an instruction for the wording
SCOPE = ("paper", *PaperFields.model_fields, "since", "instruction")
_NEXT = re.compile(rf"&(?=(?:{'|'.join(SCOPE)})=)")  # a tag may have an "&" too
MOST_SCOPES = 50  # projects, tags, and collections, in the list of models
MAX_CONCURRENT_EMBEDDINGS = 2
_LIST = "`GET /v1/models` lists the models."
_TEXT_ALONE = "Send text alone."
CONTEXT_UNUSED = "*Folio answers from its papers alone: the other documents in the message were not used.*"
# A link as export.py writes it
_LINK = re.compile(r"\[(?:\\.|[^\\\[\]])*\]\((?P<url>[^()\s]+)\)")
_STOPPED = ("Folio was stopped while it answered.", "Ask again.")


def openai_routes(
    app: App,
    service: Service,
    answers: Answers,
    threads: RequestThreads,
    rules: AccessRules,
    route_class: type[APIRoute],
) -> APIRouter:
    responses: dict[int | str, dict[str, Any]] = {status: {"model": schema.OpenAIError} for status in ("4XX", "5XX")}
    prefix = schema.PREFIX.rstrip("/")
    routes = APIRouter(prefix=prefix, tags=["OpenAI"], route_class=route_class, responses=responses)
    began, embedding_slots = int(time()), CapacityLimiter(MAX_CONCURRENT_EMBEDDINGS)

    @routes.get("/models")
    def list_models() -> schema.ModelsJson:
        """The models: "folio", "folio-deep", which searches in rounds, "folio" for each project, tag and collection of
        the library, and "folio-embedding"."""
        ids = [*MODELS, *_scopes(app), EMBEDDING]
        return schema.ModelsJson(data=[schema.ModelJson(id=id, created=began) for id in ids])

    @routes.get("/models/{model:path}")
    def get_model(model: schema.ModelId) -> schema.ModelJson:
        """A model, also with filters that the list does not have: "folio:since=2015&author=Ongaro"."""
        if model != EMBEDDING and (question := question_for(app, model, "?")) != ChatRequest(message="?"):
            service.questions.require_scope(question)
        return schema.ModelJson(id=model, created=began)

    @routes.post("/chat/completions", response_model=schema.CompletionJson)
    async def complete_chat(request: Request, wanted: schema.CompletionRequest) -> Response:
        """Answer the last message from the papers. With `stream`, as server-sent events, each a ChunkJson, then
        `[DONE]`. If the client disconnects, the answer is stopped."""
        mode_of(wanted.model)
        talk = Talk.of(wanted.messages)
        chore = chore_reply(talk.system, talk.texts)
        writer = CompletionWriter(wanted, _page_url(rules, request), talk.has_context)
        if chore is not None:
            return writer.fixed(chore)
        _require_supported(wanted)
        question = await to_thread.run_sync(question_for, app, wanted.model, talk.question)
        place = await answers.start(question, talk.earlier)
        if wanted.stream:
            return _events(writer.chunks(answers.viewed(*place, is_owned=True)))
        result = asyncio.ensure_future(answers.result(*place))
        result.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody may ask for it any more
        return writer.whole(await reply_unless_left(request, result, partial(answers.abandon, *place)))

    @routes.post("/embeddings", response_model=schema.EmbeddingsJson)
    async def embed_texts(request: Request, wanted: schema.EmbeddingRequest) -> Response:
        """Embed texts as the library embeds its passages."""
        left = Event()

        def check_cancelled() -> None:
            threads.check_cancelled()
            if left.is_set():
                raise RequestCancelled

        running = threads.start(
            lambda: _embedded(app, service, wanted, check_cancelled).model_dump_json(), slots=embedding_slots
        )
        return _json(await reply_unless_left(request, running, left.set))

    return routes


def _page_url(rules: AccessRules, request: Request) -> str:
    """The address of the page, for links: the public one, or that of the request, whose host the guard has checked."""
    return rules.url if rules.public_url else f"http://{request.headers['host']}/"


def _scopes(app: App) -> Iterator[str]:
    """A model for each project, and for each of the tags and collections that most papers have."""
    counts: dict[str, dict[str, int]] = {"project": {}, "tag": {}, "collection": {}}
    with suppress(StoreMissing), closing(app.open_library()) as library:
        counts["project"] = {project.name: 0 for project in projects.read(library.database)}
        for paper in library.papers():
            for word, names in (("tag", paper.metadata.tags.value), ("collection", names_of(paper.metadata))):
                for name in names:
                    counts[word][name] = counts[word].get(name, 0) + 1
    for word, known in counts.items():
        for name in sorted(known, key=lambda name: (-known[name], name))[:MOST_SCOPES]:
            yield f"folio:{word}={name}"


def mode_of(model: str) -> Literal["quick", "deep"]:
    """How a model searches. Raises NotKnown for one that does not answer."""
    name = model.partition(":")[0]
    if name not in MODELS:
        happened = "only embeds" if model == EMBEDDING else "is not one of Folio's models"
        raise NotKnown(f"“{name_line(model, 80)}” {happened}.", _LIST)
    return MODELS[name]


def question_for(app: App, model: str, message: str) -> ChatRequest:
    """A question to a model: "folio:tag=consensus&since=2015". Raises NotKnown for an unknown one, UsageError."""
    mode, (_, colon, scope) = mode_of(model), model.partition(":")
    filters: dict[str, list[str]] = {}
    for part in _NEXT.split(scope) if colon else ():
        word, _, value = part.partition("=")
        if word not in SCOPE or not value.strip():
            words = ", ".join(SCOPE)
            raise NotKnown(f"“{name_line(part, 80)}” is no filter.", f"Write folio:tag=consensus; filters are {words}.")
        since = "-" * (word == "since")
        filters.setdefault("year" if since else word, []).append(value.strip() + since)
    wording, names = filters.pop("instruction", None), filters.pop("paper", None)
    chosen: dict[str, object] = {}
    if wording or names:
        with closing(app.open_library()) as library:
            if wording:
                chosen["instruction"] = instructions.find(library.database, wording[-1]).id
            if names:
                chosen["papers"] = [paper.id for paper in fitting_papers(library, PaperFilter.parse(names))]
    try:
        return ChatRequest.model_validate({"message": message, "mode": mode, **filters, **chosen})
    except ValidationError as error:
        first = error.errors()[0]
        place = str(first["loc"][0])
        raise UsageError(f"{place}: {what_is_wrong(first)}.", "/docs describes every field.") from error


def _require_supported(wanted: schema.CompletionRequest) -> None:
    """Raise UsageError for what a client could not do without. Everything else that Folio has not is ignored."""
    if wanted.n not in (None, 1):
        raise UsageError("Folio gives one answer to a question.", "Leave `n` out, or set it to 1.")
    if wanted.tool_choice not in (None, "none", "auto"):
        raise UsageError("Folio calls no tools.", "Leave `tool_choice` out.")
    if wanted.response_format and wanted.response_format.type != "text":
        raise UsageError(
            "Folio answers in Markdown, and in no other form.",
            "Leave `response_format` out; `POST /chat` has the answer as JSON.",
        )


def _text(message: schema.Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part.text for part in message.content or () if part.type == "text")


@dataclass(frozen=True)
class Talk:
    """What the messages of a request are: a question, the turns before it, what the system says."""

    question: str
    has_context: bool  # whether the message also has other documents, which are not used
    earlier: tuple[EarlierTurn, ...]
    texts: tuple[str, ...]  # everything that the person said
    system: str

    @classmethod
    def of(cls, messages: Sequence[schema.Message]) -> Talk:
        """Raises UsageError unless the last one is a person's, of text alone."""
        spoken = [message for message in messages if message.role in ("user", "assistant")]
        if not spoken or spoken[-1].role != "user":
            raise UsageError("The last message is not a question.", "Send one of the role user last.")
        last = spoken[-1]
        if isinstance(last.content, list) and any(part.type != "text" for part in last.content):
            raise UsageError("Folio reads no pictures, sounds or files in a message.", _TEXT_ALONE)
        question, has_context = without_context(_text(last))
        if not question.strip():
            raise UsageError("The question is empty.", "Write one.")
        turns: list[EarlierTurn] = []
        for message in spoken[:-1]:
            if message.role == "user":
                turns.append(EarlierTurn(without_context(_text(message))[0], ""))
            elif turns:
                turns[-1] = EarlierTurn(turns[-1].question, f"{turns[-1].reply}\n{_text(message)}")
        asked = [turn for turn in turns if turn.question.strip()][-MOST_TURNS:]
        texts = tuple(_text(message) for message in spoken if message.role == "user")
        system = "\n".join(_text(message) for message in messages if message.role in ("system", "developer"))
        return cls(question, has_context, tuple(asked), texts, system)


@dataclass
class CompletionText:
    """The text of an answer, statement by statement: what was written stays as it is."""

    page: str  # the address of Folio's page
    _statements: Statements = field(default_factory=Statements)
    _count: int = 0  # statements
    _length: int = 0  # characters
    _titles: dict[str, str] = field(default_factory=dict)  # link -> the title of its paper

    def add(self, sentence: Mapping[str, Any]) -> schema.Delta:
        """The next statement. sentence: a SentenceJson as a dictionary."""
        self._count += 1
        return self._piece(self._statements.add(self._linked(sentence)))

    def end(self, reply: Mapping[str, Any], note: str = "") -> schema.Delta:
        """The statements that were not added yet, and what follows them. reply: a ChatReply as a dictionary."""
        linked = self._linked(reply)
        missing = "".join(map(self._statements.add, linked["sentences"][self._count :]))
        blocks = filter(None, [missing, *ending(linked), note])
        text = "\n\n".join(blocks)
        return self._piece(f"\n\n{text}" if text and self._length and not missing else text)

    def _linked(self, value: Mapping[str, Any]) -> Any:
        linked = with_links(value, self.page)
        self._titles |= dict(_titles(linked))
        return linked

    def _piece(self, text: str) -> schema.Delta:
        begins, self._length = self._length, self._length + len(text)
        citations = [
            schema.UrlCitation(
                start_index=begins + match.start(),
                end_index=begins + match.end(),
                url=match["url"],
                title=self._titles[match["url"]],
            )
            for match in _LINK.finditer(text)
            if match["url"] in self._titles
        ]
        return schema.Delta(
            content=text, annotations=[schema.Annotation(url_citation=each) for each in citations] or None
        )


def _titles(value: Any) -> Iterator[tuple[str, str]]:
    """The link of each citation in a part of a reply, and the title of its paper, or its file."""
    if isinstance(value, Mapping):
        if link := value.get("link"):
            yield link, name_line(value["title"].strip() or value["file"])
        value = value.values()
    elif not isinstance(value, list):
        return
    for item in value:
        yield from _titles(item)


class CompletionWriter:
    """Writes the reply to a request, whole or in chunks."""

    def __init__(self, wanted: schema.CompletionRequest, page: str, has_context: bool) -> None:
        self._wanted = wanted
        self._id = f"chatcmpl-{token_urlsafe(12)}"
        self._created = int(time())
        self._text = CompletionText(page)
        self._note = CONTEXT_UNUSED if has_context else ""

    def fixed(self, text: str) -> Response:
        """A reply with this text, without an answer."""
        delta = schema.Delta(content=text)
        return _events(self._fixed_chunks(delta)) if self._wanted.stream else self._completion([delta])

    def whole(self, reply: ChatReply) -> Response:
        return self._completion([self._text.end(reply.model_dump(), self._note)])

    def _completion(self, deltas: Sequence[schema.Delta]) -> Response:
        message = schema.ReplyMessage(
            content="".join(delta.content or "" for delta in deltas),
            annotations=[each for delta in deltas for each in delta.annotations or ()],
        )
        choices = [schema.Choice(message=message)]
        completion = schema.CompletionJson(
            id=self._id, created=self._created, model=self._wanted.model, choices=choices
        )
        return _json(completion.model_dump_json())

    async def chunks(self, events: AsyncIterator[dict[str, str]]) -> AsyncIterator[dict[str, str]]:
        """The answer as it is made. events: those of POST /chat/stream; closing this closes them."""
        yield self._chunk(schema.Delta(role="assistant", content=""))
        async with aclosing(events):  # type: ignore[type-var]
            async for event in events:
                kind = event["event"]
                if kind == "sentence":
                    yield self._chunk(self._text.add(json.loads(event["data"])))
                elif kind == "done":
                    yield self._chunk(self._text.end(json.loads(event["data"]), self._note))
                    for last in self._last():
                        yield last
                    return
                elif kind == "error":
                    body = json.loads(event["data"])
                    yield _error(body["error"], body["remedy"])
                    return
        yield _error(*_STOPPED)

    async def _fixed_chunks(self, delta: schema.Delta) -> AsyncIterator[dict[str, str]]:
        yield self._chunk(schema.Delta(role="assistant", content=""))
        yield self._chunk(delta)
        for last in self._last():
            yield last

    def _last(self) -> Iterator[dict[str, str]]:
        yield self._chunk(schema.Delta(), ends=True)
        if (options := self._wanted.stream_options) and options.include_usage:
            yield self._chunk(usage=schema.Usage())
        yield {"data": "[DONE]"}

    def _chunk(
        self, delta: schema.Delta | None = None, *, ends: bool = False, usage: schema.Usage | None = None
    ) -> dict[str, str]:
        choices = [] if delta is None else [schema.ChunkChoice(delta=delta, finish_reason="stop" if ends else None)]
        chunk = schema.ChunkJson(
            id=self._id, created=self._created, model=self._wanted.model, choices=choices, usage=usage
        )
        sent = chunk.model_dump(exclude_none=True)
        for choice in sent["choices"]:
            choice.setdefault("finish_reason", None)
        return {"data": json.dumps(sent, ensure_ascii=False)}


def _error(happened: str, remedy: str) -> dict[str, str]:
    """The last event of a stream that failed."""
    return {"data": schema.openai_error(500, happened, remedy).model_dump_json()}


def _events(events: AsyncIterator[dict[str, str]]) -> EventSourceResponse:
    # Simple clients split at "\n\n". As finishing_response, it may end after the server is told to stop.
    return EventSourceResponse(
        events, sep="\n", shutdown_event=anyio.Event(), shutdown_grace_period=FINISH_REPLACED_S
    )


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


def _embedded(
    app: App, service: Service, wanted: schema.EmbeddingRequest, check_cancelled: Any
) -> schema.EmbeddingsJson:
    """The vectors of a request. Raises NotKnown, UsageError, StoreMissing, ModelError, RequestCancelled."""
    if wanted.model not in (EMBEDDING, app.made_with().get("model", EMBEDDING)):
        raise NotKnown(f"There is no embedding model “{name_line(wanted.model, 80)}”.", f"Use {EMBEDDING}.")
    texts, found = [wanted.input] if isinstance(wanted.input, str) else wanted.input, list[schema.EmbeddingJson]()
    for batch in service.questions.embed(
        texts, is_query=wanted.input_type == "query", check_cancelled=check_cancelled
    ):
        if wanted.dimensions not in (None, batch.shape[1]):
            raise UsageError(f"The vectors have {batch.shape[1]} dimensions.", "Leave `dimensions` out.")
        for row in batch.astype("<f4"):
            vector = b64encode(row.tobytes()).decode() if wanted.encoding_format == "base64" else row.tolist()
            found.append(schema.EmbeddingJson(index=len(found), embedding=vector))
    return schema.EmbeddingsJson(data=found, model=wanted.model)
