"""Passages and answers for many clients at once. Answers become turns of a conversation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from secrets import token_urlsafe
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from folio.answer import instructions
from folio.answer.chat import Chat, Find, Reply, log_entry, stopped
from folio.answer_types import Answer, AnswerStopped, Checking, Selected, Thinking, warnings
from folio.app import App
from folio.errors import FolioError, ModelError, NotKnown, StoreError, UsageError
from folio.model_choice import BUILTIN
from folio.papers.model import Hit, Paper, Vectors
from folio.question.question import asks_elsewhere
from folio.schema import web as schema
from folio.schema.answers import (
    AnswerJson,
    HitJson,
    SentenceJson,
    answer_json,
    cited_as,
    deep_answer_json,
    event_json,
    logged_trace,
)
from folio.schema.papers import NoticeJson, With
from folio.search.filters import PaperFilter, Selection, Shelf, select
from folio.search.pool import Reader, RetrieverPool
from folio.search.scope import scope_of
from folio.store import notes, projects
from folio.store.conversations import ID_LENGTH, Conversations, Summary, Turn, branches, path_to
from folio.store.database import storable
from folio.store.instructions import Instruction
from folio.store.library import Library
from folio.store.note_places import span_now
from folio.store.query_log import Feedback, LogEntry
from folio.system.files import unusable
from folio.web.earlier import EarlierTurn, earlier_answers
from folio.web.papers import require_papers
from folio.web.stream import RequestCancelled, error_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from folio.deep.search import DeepSearch
    from folio.deep.types import DeepEvent

logger = logging.getLogger(__name__)

MOST_SELECTED_CHARACTERS = 20_000
# Suffix of the id of a conversation that a program began: it is listed from its second question on
_ONCE = "-once"
LOST = schema.AnswerErrorJson(error="Folio was stopped while it answered.", remedy="Ask again.")
State = Literal["running", "failed", "stopped"]


class AnswerCallbacks(Protocol):
    """Called while an answer is made. Any exception they raise ends the answer."""

    def on_event(self, kind: str, value: BaseModel) -> None:
        """A step of a deep search, "retrieved", "sentence", "checking" or "thinking", as POST /chat/stream sends it."""
        ...

    def check_cancelled(self) -> None:
        """Called often while a model writes; raises AnswerStopped to cancel, RequestCancelled if the server stops."""
        ...


def is_listed(conversation: Summary) -> bool:
    """Whether a conversation is in the list: not if it is a single question of a program such as curl."""
    return conversation.turns > 1 or len(conversation.id) == ID_LENGTH


class Busy(UsageError):
    """Something is in use, so that the same request may succeed later."""


class Questions:
    """Thread-safe; a slow answer does not delay the others."""

    def __init__(self, app: App, retrievers: RetrieverPool, conversations: Conversations) -> None:
        self._app = app
        self._retrievers = retrievers
        self._conversations = conversations
        self.server = token_urlsafe()  # who answers, among the servers that share the library

    @property
    def are_logged(self) -> bool:
        """Whether questions and conversations are stored: not if the settings or a read-only folder forbid that."""
        return self._app.logs_questions and self._conversations.are_stored

    def search(self, request: schema.SearchRequest) -> schema.SearchReply:
        """Passages without an answer. Raises NotKnown, StoreMissing, StoreMismatch, ModelError."""
        began = perf_counter()
        with self._retrievers.acquire() as reader:
            chosen = select_for(reader.library, request)
            result = reader.retriever.find_typed(request.query, request.top_k, chosen, rerank=request.use_reranker)
            marked = notes.marked_words(reader.library.database, {hit.paper.id for hit in result.hits})
            return schema.SearchReply(
                query=request.query,
                hits=[
                    schema.SearchHitJson.model_validate(With(hit, noted=_noted(hit, marked.get(hit.paper.id, ()))))
                    for hit in result.hits
                ],
                notice=result.notice,
                models=reader.retriever.models_in(rerank=request.use_reranker),
                elapsed_ms=_milliseconds(began),
            )

    def embed(self, texts: Sequence[str], *, is_query: bool, check_cancelled: Callable[[], None]) -> Iterator[Vectors]:
        """The vectors of texts by the library's embedder, in batches: rows of unit length. Raises as `search`."""
        with self._retrievers.acquire() as reader:
            embedder, batch = reader.retriever.embedder, self._app.embed_batch
            for start in range(0, len(texts), batch):
                check_cancelled()
                part = texts[start : start + batch]
                yield embedder.embed_queries(part) if is_query else embedder.embed_passages(part)

    def require_scope(self, request: schema.FilterRequest) -> None:
        """Raises NotKnown unless papers and sections fit a request, UsageError, StoreMissing."""
        with closing(self._app.open_library()) as library:
            select_for(library, request)

    def begin(self, request: schema.ChatRequest, earlier: Sequence[EarlierTurn] = ()) -> Asked:
        """Check and store a question. earlier: the turns before it, of a conversation that its client keeps.

        Raises NotKnown, UsageError, Busy, StoreMissing, StoreMismatch.
        """
        with closing(self._app.open_library()) as library:
            self._app.require_paper(library)
            self._app.require_same_settings(library)
            select_for(library, _scoped(request))
            _instruction(library, request)
            selected = _selected(library, request.selection)
        key = request.key or self._conversations.begin()
        conversation = _conversation_of(request, key)
        turns = self._conversations.turns(conversation) if request.conversation else ()
        if request.conversation is None and request.listed:
            self._join_project(conversation, request.project)
        request = request.model_copy(update={"key": key, "conversation": conversation})
        place = _place_of(request, turns)
        return self._keep(Asked(request, place, schema.selection_json(selected), tuple(earlier)))

    def _join_project(self, conversation: str, named: Sequence[str]) -> None:
        """Put a new conversation into the projects that it begins in; that fails if nothing can be stored."""
        if not named or not self._conversations.are_stored:
            return
        with suppress(StoreError, OSError), closing(self._app.open_library()) as library:
            with library.reading():
                found = Shelf(library).projects(named)
            for project in found:
                if project.own:
                    member = projects.Member("conversation", conversation)
                    projects.change_members(library.database, project.id, added=[member])

    def begin_again(self, conversation: str, turn: int, model: str | None) -> Asked | None:
        """Ask a question again that has no answer; None if it has one, or is being answered.

        model: another one than it was asked with. Raises NotKnown, Busy.
        """
        turns = self._conversations.turns(conversation)
        asked = path_to(turns, turn)[-1]
        if asked.question is None or asked.is_running:
            return None
        request = schema.ChatRequest.model_validate(asked.question["request"])
        request = request.model_copy(update={"model": model} if model else {})
        place = _Place(turn, asked.parent, branches(turns)[asked.parent])
        return self._keep(Asked(request, place, schema.UnansweredJson.model_validate(_shown(asked.question)).selection))

    def asked_before(self, request: schema.ChatRequest) -> tuple[str, int] | None:
        """The conversation and the turn of this question, if it was sent before, with its key; None otherwise."""
        if request.key is None:
            return None
        conversation = _conversation_of(request, request.key)
        with suppress(NotKnown):
            for turn in self._conversations.turns(conversation):
                if (turn.question or turn.reply).get("key") == request.key:
                    return conversation, turn.place
        return None

    def _keep(self, asked: Asked) -> Asked:
        """Store a question. If the store cannot be written, it is answered all the same. Raises Busy."""
        try:
            if self._conversations.ask(asked.conversation, asked.stored("running"), self.server):
                return asked
        except (StoreError, OSError) as error:
            logger.warning("A question could not be stored: %s", error)
            return replace(asked, is_stored=False)
        raise Busy("This conversation is still answering.", "Wait for the answer, or stop it.")

    def answer(self, asked: Asked, callbacks: AnswerCallbacks) -> schema.ChatReply:
        """Answer a question and store the answer. If that fails, the reply's notice says so.

        If the callbacks raise AnswerStopped after the first sentence, those until then are stored as the answer.
        Without an answer, the question stays, and says why. Raises NotKnown, StoreMissing, StoreMismatch, ModelError,
        and whatever the callbacks raise.
        """
        try:
            callbacks.check_cancelled()  # it may have been stopped while it was queued
            with self._retrievers.acquire() as reader:
                return self._answer(reader, asked, callbacks)
        except BaseException as error:
            self.leave(asked, error)
            raise

    def _answer(self, reader: Reader, asked: Asked, callbacks: AnswerCallbacks) -> schema.ChatReply:
        began = perf_counter()
        question, place = _scoped(asked.request), asked.place
        before = self._conversations.turns(asked.conversation, reader.library) if place.parent else ()
        turns = [turn.answer for turn in path_to(before, place.parent) if turn.answer is not None]
        turns += earlier_answers(reader, asked.earlier)
        # Before the answer, which must not fail if a paper is removed meanwhile.
        scope = schema.scope_json(question, require_papers(reader.library, question.papers))
        selected = _selected(reader.library, question.selection)
        chat = self._chat(reader, question, callbacks, turns)
        search = None
        if question.mode == "deep":
            search = self._app.models.deep_search(
                chat, evidence=question.top_k, model=question.model, check_cancelled=callbacks.check_cancelled
            )
        models = chat.models
        reply = chat.ask(
            question.message,
            lambda sentence: callbacks.on_event("sentence", SentenceJson.model_validate(sentence)),
            lambda hits: callbacks.on_event(
                "retrieved",
                schema.RetrievedEvent(
                    conversation=asked.conversation,
                    turn=place.turn,
                    hits=list(map(HitJson.model_validate, hits)),
                    elapsed_ms=_milliseconds(began),
                ),
            ),
            partial(_on_progress, callbacks, models["llm"]),
            _find(search, callbacks) if search else None,
            selected,
        )
        try:
            callbacks.check_cancelled()
            answer = self._answer_json(reply, chat, search)
        except RequestCancelled:  # the server stops: the question is asked again
            raise
        except AnswerStopped:
            if not reply.answer.sentences:
                raise
            reply = stopped(reply)
            answer = self._answer_json(reply, chat, search)
        web_reply = schema.chat_reply(
            question.message,
            answer,
            asked.conversation,
            place.turn,
            _milliseconds(began),
            scope,
            selected,
            parent=place.parent,
            branches=place.branches,
            stopped=reply.stopped,
            key=question.key,
        )
        if not self._app.shows_understood:  # the page and exports show it if it differs from the message
            web_reply = web_reply.model_copy(update={"standalone_question": question.message})
        entry = log_entry(reply, asked.at, models["llm"]) if self.are_logged else None
        if entry and search and search.trace:
            entry = replace(entry, trace=logged_trace(search.trace))
        return self._store(asked, web_reply, reply.answer, entry)

    def leave(self, asked: Asked, error: BaseException) -> None:
        """Leave a question without an answer, for this reason."""
        left = asked.stored("stopped") if is_stop(error) else asked.stored("failed", self.failure(asked, error))
        with suppress(FolioError, OSError):  # then its server is said to have been stopped
            if asked.is_stored:
                self._conversations.leave(asked.conversation, self.server, left)

    def failure(self, asked: Asked, error: BaseException) -> schema.AnswerErrorJson:
        """Why a question has no answer."""
        if isinstance(error, RequestCancelled):
            return LOST
        has_failed = isinstance(error, ModelError) and asked.request.model != BUILTIN
        texts = {name: storable(text) for name, text in dict(error_of(error)).items()}
        return schema.AnswerErrorJson(**texts, model_failed=has_failed and self._needs_model(asked))

    def _needs_model(self, asked: Asked) -> bool:
        with suppress(ModelError):
            return self._app.models.answer_model(asked.request.model) != BUILTIN
        return True

    def _chat(
        self, reader: Reader, question: schema.ChatRequest, callbacks: AnswerCallbacks, turns: Sequence[Answer]
    ) -> Chat:
        return self._app.chat_over(
            reader.retriever,
            top_k=question.top_k,
            chosen=select_for(reader.library, question),
            style=question.style,
            model=question.model,
            check_cancelled=callbacks.check_cancelled,
            rerank=question.use_reranker,
            turns=turns,
            instruction=_instruction(reader.library, question),
        )

    def _answer_json(self, reply: Reply, chat: Chat, search: DeepSearch | None) -> AnswerJson:
        """The answer as JSON; a deep answer with its trace and, unless it was stopped, its profile."""
        answer = answer_json(reply.answer, reply.hits, chat.models, reply.timings_ms, chat.instruction)
        if search is None or search.trace is None:
            return answer
        if reply.stopped:
            return deep_answer_json(answer, search.trace)
        profile = search.weigher(self._app.models.meaning).profile(reply.answer, search.trace)
        return deep_answer_json(answer, search.trace, profile)

    def _store(
        self, asked: Asked, reply: schema.ChatReply, answer: Answer, entry: LogEntry | None
    ) -> schema.ChatReply:
        """Store the reply as the answer of its turn, and return it; its notice says if that failed."""
        try:
            if asked.is_stored:
                self._conversations.answer(asked.conversation, self.server, reply.model_dump(), answer, entry)
            else:
                self._conversations.add(asked.conversation, reply.model_dump(), answer, entry)
        except (StoreError, OSError) as error:  # the answer is still good
            happened = (error if isinstance(error, StoreError) else unusable(error)).happened
            notice = f"{reply.notice} This answer could not be saved: {happened}".strip()
            return reply.model_copy(update={"notice": notice})
        return reply

    def record_feedback(self, conversation: str, turn: int, feedback: Feedback) -> None:
        """Rate an answer. Raises NotKnown, and UsageError for a question that is not in the log."""
        row = self._conversations.query(conversation, turn)
        if row is None:
            raise UsageError("The question is not in the log.", "Set QUERY_LOG=true to log questions from now on.")
        with closing(self._app.open_library()) as library:
            self._app.query_log(library).mark_row(row, feedback)
        self._conversations.mark(conversation, turn, feedback)


class _Place(NamedTuple):
    """Where a new turn stands in its conversation."""

    turn: int  # its number
    parent: int
    branches: list[int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its place in a conversation."""

    request: schema.ChatRequest  # with its key and its conversation
    place: _Place
    selection: schema.SelectionJson | None
    earlier: tuple[EarlierTurn, ...] = ()  # before it, in a conversation that its client keeps
    is_stored: bool = True  # False: the store cannot be written
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def conversation(self) -> str:
        return self.request.conversation or ""

    def unanswered(
        self, state: State = "running", error: schema.AnswerErrorJson | None = None
    ) -> schema.UnansweredJson:
        """The turn without an answer."""
        return schema.UnansweredJson(
            message=self.request.message,
            conversation=self.conversation,
            **self.place._asdict(),
            key=self.request.key or "",
            selection=self.selection,
            model=self.request.model,
            state=state,
            error=error,
        )

    def stored(self, state: State, error: schema.AnswerErrorJson | None = None) -> dict[str, Any]:
        """That turn, and what is needed to ask it again."""
        request = self.request.model_dump(exclude_defaults=True)
        return {**self.unanswered(state, error).model_dump(), "request": request}


def _conversation_of(request: schema.ChatRequest, key: str) -> str:
    return request.conversation or key + ("" if request.listed else _ONCE)


def _shown(question: Mapping[str, Any]) -> dict[str, Any]:
    """What of a stored question is shown."""
    return {name: value for name, value in question.items() if name != "request"}


def unanswered_json(turn: Turn, branches: Sequence[int]) -> schema.UnansweredJson:
    """A turn without an answer, as it is now. branches: those of its parent."""
    question = {**_shown(turn.question or {}), "branches": branches}
    if question["state"] == "running" and not turn.is_running:
        question |= {"state": "failed", "error": LOST}
    return schema.UnansweredJson.model_validate(question)


def is_stop(error: BaseException) -> bool:
    """Whether a person, or a client that has left, has stopped the answer."""
    return isinstance(error, AnswerStopped) and not isinstance(error, RequestCancelled)


def _place_of(question: schema.ChatRequest, turns: Sequence[Turn]) -> _Place:
    """turns: all turns of its conversation. Raises NotKnown."""
    new = len(turns) + 1
    if question.replaces is not None:
        parent = path_to(turns, question.replaces)[-1].parent
    else:
        parent = len(turns) if question.after is None else question.after
    path_to(turns, parent)
    return _Place(new, parent, [*branches(turns).get(parent, ()), new])


def _on_progress(callbacks: AnswerCallbacks, model: str, part: Checking | Thinking) -> None:
    if isinstance(part, Checking):
        callbacks.on_event("checking", schema.CheckingEvent(count=part.count))
    else:
        callbacks.on_event("thinking", schema.ThinkingEvent(model=model))


def _find(search: DeepSearch, callbacks: AnswerCallbacks) -> Find:
    def on_event(step: DeepEvent) -> None:
        value = event_json(step)
        callbacks.on_event(value.event, value)

    return partial(search.find, on_event=on_event)


def select_for(library: Library, request: schema.FilterRequest) -> Selection:
    """The papers and sections to search. Raises NotKnown."""
    papers = require_papers(library, request.papers)
    wanted = replace(schema.paper_filter(request), ids=frozenset(request.papers))
    if papers and wanted == PaperFilter(ids=wanted.ids):  # without reading the others
        return Selection(papers, None, scope_of(wanted, papers, total=0))
    return select(library, wanted)


def _instruction(library: Library, request: schema.ChatRequest) -> Instruction | None:
    """What is asked of the wording. Raises NotKnown."""
    return None if request.instruction is None else instructions.find(library.database, request.instruction)


def _scoped(question: schema.ChatRequest) -> schema.ChatRequest:
    """The question, to be asked of the paper of its selection unless it names papers or asks for other places."""
    chosen = question.selection
    if chosen is None or question.papers or chosen.everywhere or asks_elsewhere(question.message):
        return question
    anything = {name: list[str]() for name in schema.PaperFields.model_fields if name != "section"}
    return question.model_copy(update={**anything, "papers": [chosen.paper]})


def _selected(library: Library, wanted: schema.SelectionRequest | None) -> Selected | None:
    """The selected words. Raises NotKnown, and UsageError if the paper has no words there."""
    if wanted is None:
        return None
    (paper,) = require_papers(library, [wanted.paper])
    start, end = span_now(library.text(paper.id, 0, paper.length), wanted.start, wanted.end, wanted.quote)
    is_inside = start < end <= paper.length and end - start <= MOST_SELECTED_CHARACTERS
    text = library.text(paper.id, start, end) if is_inside else ""
    if not text.strip():
        raise UsageError("The selection has no words, or too many.", "Select some words or some paragraphs of a page.")
    return Selected(paper, start, end, text)


def _milliseconds(began: float) -> float:
    return round((perf_counter() - began) * 1000, 2)


# Stored replies, which get the current names, labels and notices of their papers


def papers_of_replies(replies: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of the papers that these replies name anywhere. replies: ChatReply objects as dictionaries."""
    return {part["paper"] for reply in replies for part in _parts_of_papers(reply)}


def as_known_now(reply: Mapping[str, Any], papers: Mapping[str, Paper]) -> dict[str, Any]:
    """A reply with the current names of its papers; those of removed papers stay. papers: the library's, by id."""
    cited = [citation["paper"] for citation in reply["citations"]]
    current = _renewed(reply, papers)
    return {
        **current,
        "sources_used": list(dict.fromkeys(citation["file"] for citation in current["citations"])),
        "warnings": list(warnings(papers[paper] for paper in cited if paper in papers).values()),
    }


def _parts_of_papers(value: Any) -> Iterator[Mapping[str, Any]]:
    """All objects in a reply that are about a paper: citations, passages, steps of a search, the scope."""
    if isinstance(value, Mapping):
        if isinstance(value.get("paper"), str):
            yield value
        value = value.values()
    elif not isinstance(value, list):
        return
    for item in value:
        yield from _parts_of_papers(item)


def _renewed(value: Any, papers: Mapping[str, Paper]) -> Any:
    """The value, with current names in the fields that each object about a paper has."""
    if isinstance(value, list):
        return [_renewed(item, papers) for item in value]
    if not isinstance(value, Mapping):
        return value
    renewed = {name: _renewed(item, papers) for name, item in value.items()}
    paper = papers.get(value["paper"]) if isinstance(value.get("paper"), str) else None
    if paper is None:
        return renewed
    current = cited_as(paper, value.get("page", 1))
    current["notice"] = NoticeJson.model_validate(paper.flag).model_dump() if paper.flag else None
    return renewed | {name: current[name] for name in current if name in value}


def _noted(hit: Hit, marked: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those parts of marked words of its paper that are in a passage, counted from its start."""
    first, last = hit.chunk.start, hit.chunk.end
    inside = ((max(start, first), min(end, last)) for start, end in marked)
    return [(start - first, end - first) for start, end in inside if start < end]
