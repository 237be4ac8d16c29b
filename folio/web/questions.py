"""Questions to the papers, for many clients at once: passages, and answers that become turns of a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from folio.answer.chat import Chat, Find, Reply, log_entry
from folio.answer_types import Answer, Checking, Thinking
from folio.app import App
from folio.deep_schema import EventJson, deep_answer_json, event_json, logged_trace
from folio.errors import StoreError, UsageError
from folio.files import unusable
from folio.schema import AnswerJson, HitJson, SentenceJson, answer_json
from folio.search.paper_filter import PaperFilter, Selection
from folio.search.paper_selection import select
from folio.search.question import Question
from folio.search.retriever import SearchRequest as PassageRequest
from folio.search.retriever_pool import Reader, RetrieverPool
from folio.store.conversations import ID_LENGTH, Conversations, Summary
from folio.store.library import Library
from folio.store.query_log import Feedback, LogEntry
from folio.types import Hit
from folio.web.paper_files import require_papers
from folio.web.schema import (
    ChatReply,
    ChatRequest,
    CheckingEvent,
    FilterRequest,
    RetrievedEvent,
    SearchReply,
    SearchRequest,
    ThinkingEvent,
    chat_reply,
    paper_filter,
    scope_json,
)

if TYPE_CHECKING:
    from folio.agent.deep_search import DeepSearch

NOTHING_KNOWN = "None of these words is in your papers."
NO_WORDS = "No passage has these words. These are the nearest in meaning."
# The end of the id of a conversation that a program began by a question: it is listed from the second one on
_ONCE = "-once"


class AnswerCallbacks(Protocol):
    """Called while an answer is made. Any exception they raise ends the answer."""

    def on_search(self, found: EventJson) -> None:
        """A step of a deep search."""
        ...

    def on_hits(self, found: RetrievedEvent) -> None: ...

    def on_sentence(self, sentence: SentenceJson) -> None: ...

    def on_checking(self, waiting: CheckingEvent) -> None: ...

    def on_thinking(self, thinking: ThinkingEvent) -> None: ...

    def check_cancelled(self) -> None:
        """Called often while a model writes; raises to cancel."""
        ...


def is_listed(conversation: Summary) -> bool:
    """Whether a conversation is in the list: not one question of a program, such as one by curl."""
    return conversation.turns > 1 or len(conversation.id) == ID_LENGTH


class Busy(UsageError):
    """A conversation is still answering."""


class Questions:
    """Thread-safe; a slow answer does not delay the others."""

    def __init__(self, app: App, retrievers: RetrieverPool, conversations: Conversations) -> None:
        self._app = app
        self._retrievers = retrievers
        self._conversations = conversations
        self._answering: set[str] = set()
        self._lock = Lock()

    @property
    def are_logged(self) -> bool:
        """Whether questions and conversations are stored: not if the settings or a read-only folder forbid it."""
        return self._app.logs_questions and self._conversations.are_stored

    def search(self, request: SearchRequest) -> SearchReply:
        """Passages without an answer. Raises NotKnown, StoreMissing, StoreMismatch, ModelError."""
        began = perf_counter()
        with self._retrievers.acquire() as reader:
            chosen = _select(reader.library, request)
            spelt = reader.retriever.respelled(request.query)
            hits, notice = tuple[Hit, ...](), NOTHING_KNOWN
            if reader.retriever.is_understood(spelt.question):
                question = Question(spelt.question, request.query if spelt.typed else "")
                rerank = request.use_reranker
                hits = reader.retriever.find(
                    PassageRequest(question, request.top_k, chosen.papers, chosen.sections, rerank=rerank)
                ).hits
                has_words = any(hit.lexical is not None for hit in hits)
                notice = " ".join(filter(None, [spelt.note, "" if has_words or not hits else NO_WORDS]))
            return SearchReply(
                query=request.query,
                hits=list(map(HitJson.model_validate, hits)),
                notice=notice,
                models=reader.retriever.models_in(rerank=request.use_reranker),
                elapsed_ms=_milliseconds(began),
            )

    def require_answerable(self, question: ChatRequest) -> None:
        """Check what can be checked before retrieval. Raises NotKnown, Busy, StoreMissing, StoreMismatch."""
        with closing(self._app.open_library()) as library:
            self._app.require_paper(library)
            self._app.require_same_settings(library)
            _select(library, question)
        if question.conversation is not None:
            with self._lock:
                if question.conversation in self._answering:
                    raise _busy()
            self._conversations.require(question.conversation)

    def ask(self, question: ChatRequest, callbacks: AnswerCallbacks) -> ChatReply:
        """Answer a message, and store the whole answer. If it cannot be stored, the reply's notice says so.

        Raises NotKnown, Busy, StoreMissing, StoreMismatch, ModelError, and whatever the callbacks raise.
        """
        callbacks.check_cancelled()  # the client may have left while it was queued
        began = perf_counter()
        at = datetime.now(UTC).isoformat(timespec="seconds")
        conversation = question.conversation or self._begin(question)
        with self._lock_conversation(conversation), self._retrievers.acquire() as reader:
            before = self._conversations.turns(conversation, reader.library) if question.conversation else ()
            turns = [turn.answer for turn in before if turn.answer is not None]
            # Before the answer: a paper that is removed meanwhile must not take the answer with it.
            scope = scope_json(question, require_papers(reader.library, question.papers))
            chat = self._chat(reader, question, callbacks, turns)
            search = self._deep_search(chat, question, callbacks) if question.mode == "deep" else None
            models = chat.models
            reply = chat.ask(
                question.message,
                lambda sentence: callbacks.on_sentence(SentenceJson.model_validate(sentence)),
                lambda hits: callbacks.on_hits(
                    RetrievedEvent(
                        conversation=conversation,
                        turn=len(before) + 1,
                        hits=list(map(HitJson.model_validate, hits)),
                        elapsed_ms=_milliseconds(began),
                    )
                ),
                partial(_on_progress, callbacks, models["llm"]),
                _find(search, callbacks) if search else None,
            )
            callbacks.check_cancelled()
            answer = self._answer_json(reply, models, search)
            place, elapsed_ms = len(before) + 1, _milliseconds(began)
            web_reply = chat_reply(question.message, answer, conversation, place, elapsed_ms, scope)
            if not self._app.shows_understood:  # the page and exports show it where it differs from the message
                web_reply = web_reply.model_copy(update={"standalone_question": question.message})
            entry = log_entry(reply, at, models["llm"]) if self.are_logged else None
            if entry and search and search.trace:
                entry = replace(entry, trace=logged_trace(search.trace))
            return self._stored(web_reply, reply.answer, entry)

    def _begin(self, question: ChatRequest) -> str:
        """The id of a new conversation; it says whether one question is enough to be listed."""
        return self._conversations.begin() + ("" if question.listed else _ONCE)

    def _chat(self, reader: Reader, question: ChatRequest, callbacks: AnswerCallbacks, turns: Sequence[Answer]) -> Chat:
        chosen = _select(reader.library, question)
        return Chat(
            reader.retriever,
            self._app.models.answerer(
                reader.retriever, model=question.model, check_cancelled=callbacks.check_cancelled
            ),
            top_k=question.top_k or self._app.top_k,
            papers=chosen.papers,
            sections=chosen.sections,
            style=question.style,
            rerank=question.use_reranker,
            turns=turns,
        )

    def _deep_search(self, chat: Chat, question: ChatRequest, callbacks: AnswerCallbacks) -> DeepSearch:
        return self._app.models.deep_search(
            chat, evidence=question.top_k, model=question.model, check_cancelled=callbacks.check_cancelled
        )

    def _answer_json(self, reply: Reply, models: dict[str, str], search: DeepSearch | None) -> AnswerJson:
        """The answer as every face has it; a deep one with its trace and its profile."""
        answer = answer_json(reply.answer, reply.hits, models, reply.timings_ms)
        if search is None or search.trace is None:
            return answer
        profile = search.weigher(self._app.models.meaning).profile(reply.answer, search.trace)
        return deep_answer_json(answer, search.trace, profile)

    def _stored(self, reply: ChatReply, answer: Answer, entry: LogEntry | None) -> ChatReply:
        """The reply, as a turn of its conversation; its notice says if it could not be stored."""
        try:
            self._conversations.add(reply.conversation, reply.model_dump(), answer, entry)
        except (StoreError, OSError) as error:  # the answer is still good, so report the problem with it
            happened = (error if isinstance(error, StoreError) else unusable(error)).happened
            notice = f"{reply.notice} This answer could not be saved: {happened}".strip()
            return reply.model_copy(update={"notice": notice})
        return reply

    def record_feedback(self, conversation: str, turn: int, feedback: Feedback) -> None:
        """Raises NotKnown, and UsageError for a question that is not in the log."""
        row = self._conversations.query(conversation, turn)
        if row is None:
            raise UsageError("The question is not in the log.", "Set QUERY_LOG=true to log questions from now on.")
        with closing(self._app.open_library()) as library:
            self._app.query_log(library).mark_row(row, feedback)
        self._conversations.mark(conversation, turn, feedback)

    @contextmanager
    def _lock_conversation(self, conversation: str) -> Iterator[None]:
        """Raises Busy while the conversation is answering: a follow-up needs the answer before it."""
        with self._lock:
            if conversation in self._answering:
                raise _busy()
            self._answering.add(conversation)
        try:
            yield
        finally:
            with self._lock:
                self._answering.discard(conversation)


def _on_progress(callbacks: AnswerCallbacks, model: str, part: Checking | Thinking) -> None:
    if isinstance(part, Checking):
        callbacks.on_checking(CheckingEvent(count=part.count))
    else:
        callbacks.on_thinking(ThinkingEvent(model=model))


def _find(search: DeepSearch, callbacks: AnswerCallbacks) -> Find:
    return partial(search.find, on_event=lambda event: callbacks.on_search(event_json(event)))


def _select(library: Library, request: FilterRequest) -> Selection:
    """The papers and sections to search. Raises NotKnown."""
    papers = require_papers(library, request.papers)
    wanted = paper_filter(request)
    if wanted == PaperFilter():
        return Selection(papers or None, None)
    wanted = replace(wanted, ids=frozenset(request.papers))
    return select(library, wanted)


def _busy() -> Busy:
    return Busy("This conversation is still answering.", "Wait for the answer, or stop it.")


def _milliseconds(began: float) -> float:
    return round((perf_counter() - began) * 1000, 2)
