"""Passages and answers for many clients at once. Answers become turns of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from folio.answer.chat import Chat, Find, Reply, log_entry, stopped
from folio.answer_types import Answer, AnswerStopped, Checking, Selected, Thinking, warnings
from folio.app import App
from folio.errors import StoreError, UsageError
from folio.papers.model import Hit, Paper
from folio.question.question import Question, asks_elsewhere
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
from folio.schema.papers import NoticeJson
from folio.search.filters import PaperFilter, Selection, select
from folio.search.pool import Reader, RetrieverPool
from folio.search.retriever import SearchRequest
from folio.store.conversations import ID_LENGTH, Conversations, Summary, Turn, branches, path_to
from folio.store.library import Library
from folio.store.note_places import span_now
from folio.store.query_log import Feedback, LogEntry
from folio.system.files import unusable
from folio.web.papers import NOTHING_KNOWN, require_papers

if TYPE_CHECKING:
    from pydantic import BaseModel

    from folio.deep.search import DeepSearch
    from folio.deep.types import DeepEvent


MOST_SELECTED_CHARACTERS = 20_000
NO_WORDS = "No passage has these words. These are the nearest in meaning."
# Suffix of the id of a conversation that a program began: it is listed from its second question on
_ONCE = "-once"
# Seconds that a question waits for a stopped answer of its conversation to be stored, and between two looks
_STOPPING_S, _POLL_S = 3, 0.05


class AnswerCallbacks(Protocol):
    """Called while an answer is made. Any exception they raise ends the answer."""

    def on_event(self, kind: str, value: BaseModel) -> None:
        """A step of a deep search, "retrieved", "sentence", "checking" or "thinking", as POST /chat/stream sends it."""
        ...

    def check_cancelled(self) -> None:
        """Called often while a model writes; raises to cancel."""
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
        self._answering: dict[str, AnswerCallbacks] = {}  # conversation -> the client of its answer
        self._lock = Lock()

    @property
    def are_logged(self) -> bool:
        """Whether questions and conversations are stored: not if the settings or a read-only folder forbid that."""
        return self._app.logs_questions and self._conversations.are_stored

    def search(self, request: schema.SearchRequest) -> schema.SearchReply:
        """Passages without an answer. Raises NotKnown, StoreMissing, StoreMismatch, ModelError."""
        began = perf_counter()
        with self._retrievers.acquire() as reader:
            chosen = _select(reader.library, request)
            spelt = reader.retriever.respelled(request.query)
            hits, notice = tuple[Hit, ...](), NOTHING_KNOWN
            if reader.retriever.is_understood(spelt.question):
                question = Question(spelt.question, request.query if spelt.typed else "")
                rerank = request.use_reranker
                result = reader.retriever.find(
                    SearchRequest(question, request.top_k, chosen.papers, chosen.sections, rerank=rerank)
                )
                hits, has_words = result.hits, any(hit.lexical is not None for hit in result.hits)
                no_words = "" if has_words or not hits else NO_WORDS
                notice = " ".join(filter(None, [spelt.note, result.notice, no_words]))
            return schema.SearchReply(
                query=request.query,
                hits=list(map(HitJson.model_validate, hits)),
                notice=notice,
                models=reader.retriever.models_in(rerank=request.use_reranker),
                elapsed_ms=_milliseconds(began),
            )

    def require_answerable(self, question: schema.ChatRequest) -> None:
        """Check the request before retrieval. Raises NotKnown, Busy, StoreMissing, StoreMismatch."""
        with closing(self._app.open_library()) as library:
            self._app.require_paper(library)
            self._app.require_same_settings(library)
            _select(library, _scoped(question))
            _selected(library, question.selection)
        if question.conversation is not None:
            self._wait_until_stopped(question.conversation)
            self._conversations.require(question.conversation)
        if question.after or question.replaces:
            _place_of(question, self._conversations.turns(question.conversation) if question.conversation else ())

    def ask(
        self, question: schema.ChatRequest, callbacks: AnswerCallbacks, *, keeps_stopped: bool = False
    ) -> schema.ChatReply:
        """Answer a message and store the answer. If that fails, the reply's notice says so.

        keeps_stopped: the client gets each sentence at once; if the callbacks raise AnswerStopped after the first one,
        the sentences until then are stored as the answer. Raises NotKnown, Busy, StoreMissing, StoreMismatch,
        ModelError, and whatever the callbacks raise.
        """
        callbacks.check_cancelled()  # the client may have left while it was queued
        question = _scoped(question)
        began = perf_counter()
        at = datetime.now(UTC).isoformat(timespec="seconds")
        conversation = question.conversation
        if conversation is None:
            conversation = self._conversations.begin() + ("" if question.listed else _ONCE)
        with self._lock_conversation(conversation, callbacks), self._retrievers.acquire() as reader:
            before = self._conversations.turns(conversation, reader.library) if question.conversation else ()
            place = _place_of(question, before)
            turns = [turn.answer for turn in path_to(before, place.parent) if turn.answer is not None]
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
                        conversation=conversation,
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
                answer = self._answer_json(reply, models, search)
            except AnswerStopped:
                if not (keeps_stopped and reply.answer.sentences):
                    raise
                reply = stopped(reply)
                answer = self._answer_json(reply, models, search)
            web_reply = schema.chat_reply(
                question.message,
                answer,
                conversation,
                place.turn,
                _milliseconds(began),
                scope,
                selected,
                parent=place.parent,
                branches=place.branches,
                stopped=reply.stopped,
            )
            if not self._app.shows_understood:  # the page and exports show it if it differs from the message
                web_reply = web_reply.model_copy(update={"standalone_question": question.message})
            entry = log_entry(reply, at, models["llm"]) if self.are_logged else None
            if entry and search and search.trace:
                entry = replace(entry, trace=logged_trace(search.trace))
            return self._store(web_reply, reply.answer, entry)

    def _chat(
        self, reader: Reader, question: schema.ChatRequest, callbacks: AnswerCallbacks, turns: Sequence[Answer]
    ) -> Chat:
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

    def _answer_json(self, reply: Reply, models: dict[str, str], search: DeepSearch | None) -> AnswerJson:
        """The answer as JSON; a deep answer with its trace and, unless it was stopped, its profile."""
        answer = answer_json(reply.answer, reply.hits, models, reply.timings_ms)
        if search is None or search.trace is None:
            return answer
        if reply.stopped:
            return deep_answer_json(answer, search.trace)
        profile = search.weigher(self._app.models.meaning).profile(reply.answer, search.trace)
        return deep_answer_json(answer, search.trace, profile)

    def _store(self, reply: schema.ChatReply, answer: Answer, entry: LogEntry | None) -> schema.ChatReply:
        """Store the reply as a turn of its conversation, and return it; its notice says if that failed."""
        try:
            self._conversations.add(reply.conversation, reply.model_dump(), answer, entry)
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

    def _wait_until_stopped(self, conversation: str) -> None:
        """Wait until an answer that was stopped is stored. Raises Busy while an answer is made."""
        end = perf_counter() + _STOPPING_S
        while (callbacks := self._answering.get(conversation)) is not None:
            try:
                callbacks.check_cancelled()
            except AnswerStopped:
                if perf_counter() < end:
                    sleep(_POLL_S)
                    continue
            raise _busy()

    @contextmanager
    def _lock_conversation(self, conversation: str, callbacks: AnswerCallbacks) -> Iterator[None]:
        """Raises Busy while the conversation is answering: a follow-up needs the answer before it."""
        self._wait_until_stopped(conversation)
        with self._lock:
            if conversation in self._answering:
                raise _busy()
            self._answering[conversation] = callbacks
        try:
            yield
        finally:
            with self._lock:
                del self._answering[conversation]


class _Place(NamedTuple):
    """Where a new turn stands in its conversation."""

    turn: int  # its number
    parent: int
    branches: list[int]


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


def _select(library: Library, request: schema.FilterRequest) -> Selection:
    """The papers and sections to search. Raises NotKnown."""
    papers = require_papers(library, request.papers)
    wanted = schema.paper_filter(request)
    if wanted == PaperFilter():
        return Selection(papers or None, None)
    wanted = replace(wanted, ids=frozenset(request.papers))
    return select(library, wanted)


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


def _busy() -> Busy:
    return Busy("This conversation is still answering.", "Wait for the answer, or stop it.")


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
