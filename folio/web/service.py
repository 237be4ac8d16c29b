"""What the web API does, for many clients at once: search, answers, conversations, papers and page pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, Protocol

from folio.answer.chat import Chat, log_entry, warm_up
from folio.answer_types import Answer
from folio.app import App
from folio.background import run_in_background
from folio.console import say
from folio.edits import edited
from folio.errors import ModelError, NotKnown, StoreError, StoreMissing, UsageError
from folio.files import unusable
from folio.paper_schema import PaperJson, paper_json
from folio.pdf.render import PagePicture
from folio.schema import SentenceJson, answer_json, passages_json, sentence_json
from folio.search.paper_filter import PaperFilter, Selection
from folio.search.retriever_pool import Reader, RetrieverPool
from folio.store import indexes
from folio.store.citations import cited_papers
from folio.store.conversations import Conversations
from folio.store.library import Library
from folio.store.query_log import Feedback
from folio.store.works import publishers_bibtex
from folio.types import Paper
from folio.web.kept_replies import papers_of_replies, with_notices
from folio.web.markdown_export import markdown
from folio.web.page_images import PageImages, PageView
from folio.web.paper_fetcher import Online, PaperFetcher
from folio.web.paper_files import PaperFiles, Removed, unknown_paper
from folio.web.paper_list import list_papers
from folio.web.schema import (
    ChatReply,
    ChatRequest,
    CheckingEvent,
    Conversation,
    ConversationList,
    ConversationSummary,
    FilterRequest,
    Health,
    PaperDetails,
    PaperEdits,
    PaperList,
    PaperQuery,
    RetrievedEvent,
    SearchReply,
    SearchRequest,
    StoreJson,
    chat_reply,
    paper_details,
    paper_edits,
    paper_filter,
)
from folio.web.zotero_note import zotero_note

_ALL = PaperQuery()
DPI = 150  # of a page's picture: 1240 pixels across A4, sharp even on displays with two pixels per CSS pixel


class AnswerCallbacks(Protocol):
    """Called while an answer is made. Any exception they raise ends the answer."""

    def on_hits(self, found: RetrievedEvent) -> None: ...

    def on_sentence(self, sentence: SentenceJson) -> None: ...

    def on_checking(self, waiting: CheckingEvent) -> None: ...

    def check_cancelled(self) -> None:
        """Called often while a model writes; raises to cancel."""
        ...


class Busy(UsageError):
    """A conversation is still answering."""


class Service:
    """Thread-safe; a slow call does not delay the others."""

    def __init__(self, app: App, online: Online | None = None) -> None:
        limits = app.limits(1)
        self._app = app
        self.paper_files = PaperFiles(app)
        self.fetcher = PaperFetcher(app, self.paper_files, online)
        self._retrievers = RetrieverPool(app.library_path, app.open_library, app.retriever, app.open_indexes)
        self._conversations = Conversations(app.library_path if app.logs_questions else None)
        self._page_images = PageImages(timeout_s=limits.timeout_s, memory_mb=limits.memory_mb)
        self._answering: set[str] = set()
        self._lock = Lock()

    def warm_up(self) -> None:
        """Load what the first question needs, check the indexes and delete stale uploads, in background threads."""
        with suppress(StoreError):  # an index that cannot be opened is reported with the first request
            if self._app.logs_questions and not self._conversations.are_stored:
                say(
                    "The folder of the index cannot be written: questions are not logged, and conversations are kept"
                    " until Folio stops."
                )
        run_in_background(self.paper_files.delete_stale_uploads)
        warm_up()
        self._app.check_indexes_in_background()
        run_in_background(self.health)

    def close(self) -> None:
        self._page_images.close()
        self._retrievers.close()
        self._conversations.close()

    # State of the index

    def health(self) -> Health:
        """What is in the store, and which models are in use. Raises StoreMismatch, StoreDamaged."""
        app = self._app.at_a_glance()
        store, made_with, models = None, dict[str, str](), {"embedder": "", "reranker": "", "llm": ""}
        model_errors: list[str] = []
        with suppress(StoreMissing), self._retrievers.acquire() as reader:
            models["embedder"] = app.embedder(reader.library).name
            reranker = app.models.reranker()
            models["reranker"] = reranker.name if reranker else "none"
            try:
                models["llm"] = app.models.answerer(reader.retriever).name
            except ModelError as error:  # the settings name a model that cannot be used
                model_errors.append(f"{error.happened} {error.remedy}")
            made_with = reader.made_with
            counts = reader.library.counts()
            with reader.library.reading() as stamp:
                generation = stamp.generation
            store = StoreJson(
                folder=str(app.store_folder),
                papers=counts["papers"],
                chunks=reader.library.chunk_count(),
                bytes=indexes.size(app.store_folder),
                generation=generation,
            )
        return Health(
            status="ready" if store else "empty",
            store=store,
            fingerprint=made_with,
            models=models,
            better=[*model_errors, *app.models.better],
            chat_models=app.models.chat_models(),
            logged=self._logs_questions,
            online=self.fetcher.is_online,
            network=self.fetcher.note,
            max_file_mb=app.limits(1).max_file_mb,
        )

    def papers(self, query: PaperQuery = _ALL) -> PaperList:
        """The papers wanted, and the files that no text could be read from; empty if there is no index yet.

        With a query, they are ranked: raises StoreMismatch, ModelError.
        """
        return list_papers(self._app, self._retrievers, query)

    def paper(self, paper: str) -> PaperDetails:
        """Raises NotKnown."""
        with closing(self._app.open_library()) as library, library.reading():
            (found,) = _require_papers(library, [paper])
            files = [file.name for file in library.files() if file.sha256 == paper]
            published = publishers_bibtex(library.database, [paper]).get(paper, "")
            return paper_details(found, library.added()[paper], files, published)

    def edit(self, paper: str, wanted: PaperEdits) -> PaperDetails:
        """Change what is known about a paper. Raises NotKnown, UsageError for a value that a field cannot have."""
        with closing(self._app.open_library()) as library:
            _require_papers(library, [paper])
            edits = paper_edits(wanted)
            is_renamed = library.change_metadata(paper, "person", lambda person: edited(person, edits))
        self.paper_files.finish_edit(is_renamed=is_renamed)
        return self.paper(paper)

    def listed_paper(self, paper: str) -> PaperJson:
        """A paper as papers() lists it. Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            (found,) = _require_papers(library, [paper])
            return paper_json(found, library.added()[paper])

    def pdf(self, paper: str) -> Path:
        """Raises NotKnown, PaperError."""
        with closing(self._app.open_library()) as library:
            return self.paper_files.pdf(library, paper)

    def picture(self, paper: str, page: int, quotes: Sequence[str]) -> PagePicture:
        """A page, from 1, with these quotes marked. Raises NotKnown, PaperError."""
        with closing(self._app.open_library()) as library:
            (found,) = _require_papers(library, [paper])
            if not 1 <= page <= found.page_count:
                raise NotKnown(f"The paper has no page {page}.", f"Its last page is {found.page_count}.")
            path = self.paper_files.pdf(library, paper)
        return self._page_images.picture(PageView(path, page, tuple(quotes), DPI))

    def remove(self, paper: str) -> Removed:
        """Raises NotKnown, StoreBusy."""
        return self.paper_files.remove(paper)

    # Questions

    def search(self, request: SearchRequest) -> SearchReply:
        """Passages without an answer. Raises NotKnown, StoreMissing, StoreMismatch, ModelError."""
        began = perf_counter()
        with self._retrievers.acquire() as reader:
            chosen = _select(reader.library, request)
            spelt = reader.retriever.respelled(request.query)
            found = reader.retriever.search(
                spelt.question,
                request.top_k,
                chosen.papers,
                sections=chosen.sections,
                rerank=request.use_reranker,
                typed=request.query if spelt.typed else "",
            )
            models = reader.retriever.models_in(rerank=request.use_reranker)
            passages = passages_json(request.query, found.hits, models, found.timings_ms)
        return SearchReply(
            query=request.query, hits=passages.hits, models=passages.models, elapsed_ms=_milliseconds(began)
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
        conversation = question.conversation or self._conversations.begin()
        with self._lock_conversation(conversation), self._retrievers.acquire() as reader:
            before = self._conversations.turns(conversation, reader.library) if question.conversation else ()
            turns = [turn.answer for turn in before if turn.answer is not None]
            chat = self._chat(reader, question, callbacks, turns)
            models = chat.models
            reply = chat.ask(
                question.message,
                lambda sentence: callbacks.on_sentence(sentence_json(sentence)),
                lambda hits: callbacks.on_hits(
                    RetrievedEvent(
                        conversation=conversation,
                        turn=len(before) + 1,
                        hits=passages_json(question.message, hits, models, {}).hits,
                        elapsed_ms=_milliseconds(began),
                    )
                ),
                lambda count: callbacks.on_checking(CheckingEvent(count=count)),
            )
            callbacks.check_cancelled()
            answer = answer_json(reply.answer, reply.hits, models, reply.timings_ms)
            web_reply = chat_reply(question.message, answer, conversation, len(before) + 1, _milliseconds(began))
            if not self._app.shows_understood:  # the page and exports show it where it differs from the message
                web_reply = web_reply.model_copy(update={"standalone_question": question.message})
            entry = log_entry(reply, at, models["llm"]) if self._logs_questions else None
            try:
                self._conversations.add(conversation, web_reply.model_dump(), reply.answer, entry)
            except (StoreError, OSError) as error:  # the answer is still good, so report the problem with it
                happened = (error if isinstance(error, StoreError) else unusable(error)).happened
                notice = f"{web_reply.notice} This answer could not be saved: {happened}".strip()
                return web_reply.model_copy(update={"notice": notice})
            return web_reply

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

    @property
    def _logs_questions(self) -> bool:
        """Whether questions and conversations are stored: not if the settings or a read-only folder forbid it."""
        return self._app.logs_questions and self._conversations.are_stored

    def record_feedback(self, conversation: str, turn: int, feedback: Feedback) -> None:
        """Raises NotKnown, and UsageError for a question that is not in the log."""
        row = self._conversations.query(conversation, turn)
        if row is None:
            raise UsageError("The question is not in the log.", "Set QUERY_LOG=true to log questions from now on.")
        with closing(self._app.open_library()) as library:
            self._app.query_log(library).mark_row(row, feedback)
        self._conversations.mark(conversation, turn, feedback)

    # Conversations

    def conversations(self) -> ConversationList:
        return ConversationList(
            conversations=[
                ConversationSummary(id=found.id, title=found.title, updated=found.updated, turns=found.turns)
                for found in self._conversations.summaries()
            ]
        )

    def conversation(self, conversation: str) -> Conversation:
        """Raises NotKnown."""
        found = self._conversations.require(conversation)
        return Conversation(
            id=found.id,
            title=found.title,
            updated=found.updated,
            turns=[ChatReply.model_validate(reply) for reply in self._replies(conversation)],
        )

    def _replies(self, conversation: str, turn: int | None = None) -> list[dict[str, Any]]:
        """The replies of a conversation, or only number `turn`, with what is known of the cited papers by now."""
        kept = [one.reply for one in self._conversations.turns(conversation) if turn in (None, one.place)]
        try:
            library = self._app.open_library()
        except StoreMissing:
            return kept
        with closing(library), library.reading():
            papers = {paper.id: paper for paper in library.papers_by_id(papers_of_replies(kept))}
        return [with_notices(reply, papers) for reply in kept]

    def delete_conversation(self, conversation: str) -> None:
        """Raises NotKnown."""
        self._conversations.remove(conversation)

    def markdown(self, conversation: str) -> tuple[str, str]:
        """A conversation with its citations as Markdown, and a file name for it. Raises NotKnown."""
        found = self._conversations.require(conversation)
        title = re.sub(r"[^a-z0-9]+", "-", found.title.lower()).strip("-")[:50].strip("-")
        name = "-".join(filter(None, ["folio", title, found.updated[:10]]))
        return markdown(found.title, self._replies(conversation)), f"{name}.md"

    def zotero_note(self, conversation: str, turn: int | None) -> str:
        """A conversation, or only its answer number `turn`, as a note for Zotero. Raises NotKnown."""
        found = self._conversations.require(conversation)
        replies = self._replies(conversation, turn)
        if not replies:
            raise NotKnown("There is no such answer in this conversation.", "Reload the page.")
        return zotero_note(found.title if turn is None else replies[0]["message"], replies)

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


def _require_papers(library: Library, ids: Sequence[str]) -> list[Paper]:
    """The papers with these ids. Raises NotKnown."""
    wanted = list(dict.fromkeys(ids))
    papers = library.papers_by_id(wanted)
    if len(papers) < len(wanted):
        raise unknown_paper()
    return papers


def _select(library: Library, request: FilterRequest) -> Selection:
    """The papers and sections to search. Raises NotKnown."""
    papers = _require_papers(library, request.papers)
    wanted = paper_filter(request)
    if wanted == PaperFilter():
        return Selection(papers or None, None)
    wanted = replace(wanted, ids=frozenset(request.papers))
    return wanted.select(library.papers(), library.files(), partial(cited_papers, library.database))


def _busy() -> Busy:
    return Busy("This conversation is still answering.", "Wait for the answer, or stop it.")


def _milliseconds(began: float) -> float:
    return round((perf_counter() - began) * 1000, 2)
