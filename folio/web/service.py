"""What people ask of Folio through the web, many at once: search, answers, conversations, papers, their pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Protocol

from folio.answer.chat import Chat, import_aside, log_entry
from folio.app import App
from folio.background import run_in_background
from folio.errors import ModelError, NotKnown, StoreError, StoreMissing, UsageError
from folio.files import unusable
from folio.pdf.render import PagePicture
from folio.schema import SentenceJson, answer_json, passages_json, sentence_json
from folio.search.retriever_pool import Reader, RetrieverPool
from folio.store import indexes
from folio.store.conversations import Conversations
from folio.store.library import Library
from folio.store.query_log import Feedback
from folio.types import Answer, Paper
from folio.web.markdown_export import markdown
from folio.web.page_images import PageImages, PageView
from folio.web.paper_files import PaperFiles, Removed, not_here
from folio.web.schema import (
    ChatReply,
    ChatRequest,
    Conversation,
    ConversationList,
    ConversationSummary,
    FailureJson,
    Health,
    PaperDetails,
    PaperJson,
    PaperList,
    Retrieved,
    SearchReply,
    SearchRequest,
    StoreJson,
    chat_reply,
    paper_details,
    paper_json,
)

DPI = 150  # of a page's picture: 1240 pixels across A4, sharp at twice the width of a column


class Listener(Protocol):
    """Told how an answer goes on. What it raises ends the answer."""

    def retrieved(self, found: Retrieved) -> None: ...

    def sentence(self, sentence: SentenceJson) -> None: ...

    def check_cancelled(self) -> None:
        """Called often while a model writes."""
        ...


class Busy(UsageError):
    """A conversation is still answering."""


class Service:
    """Any number of threads may call; what takes long holds up nobody else."""

    def __init__(self, app: App) -> None:
        limits = app.limits(1)
        self._app = app
        self.shelf = PaperFiles(app)
        self._readers = RetrieverPool(app.library_path, app.retriever, app.open_indexes)
        self._conversations = Conversations(app.library_path if app.logs_questions else None)
        self._pages = PageImages(timeout_s=limits.timeout_s, memory_mb=limits.memory_mb)
        self._answering: set[str] = set()
        self._lock = Lock()

    def warm_up(self) -> None:
        """Load, beside whatever else is done, what the first question needs; sweep up what a kill left."""
        run_in_background(self.shelf.sweep)
        import_aside()
        run_in_background(self.health)

    def close(self) -> None:
        self._pages.close()
        self._readers.close()
        self._conversations.close()

    # What there is

    def health(self) -> Health:
        """What is in the store, and what works on it. Raises StoreMismatch, StoreDamaged."""
        app = self._app.at_a_glance()
        facts, made_with, models = None, dict[str, str](), {"embedder": "", "reranker": "", "llm": ""}
        faults: list[str] = []
        with suppress(StoreMissing), self._readers.acquire() as reader:
            models["embedder"] = app.embedder(reader.library).name
            reranker = app.models.reranker()
            models["reranker"] = reranker.name if reranker else "none"
            try:
                models["llm"] = app.models.answerer(reader.retriever).name
            except ModelError as error:  # a model that was asked for by name
                faults.append(f"{error.happened} {error.remedy}")
            made_with = reader.made_with
            counts = reader.library.counts()
            with reader.library.reading() as stamp:
                generation = stamp.generation
            facts = StoreJson(
                folder=str(app.store_folder),
                papers=counts["papers"],
                chunks=counts["chunks"],
                bytes=indexes.size(app.store_folder),
                generation=generation,
            )
        return Health(
            status="ready" if facts else "empty",
            store=facts,
            fingerprint=made_with,
            models=models,
            better=[*faults, *app.models.better],
            chat_models=app.models.chat_models(),
            logged=app.logs_questions,
            max_file_mb=app.limits(1).max_file_mb,
        )

    def papers(self) -> PaperList:
        """Every paper, and every file that gave none; empty before the first."""
        try:
            opened = self._app.open_library()
        except StoreMissing:
            return PaperList(papers=[], failures=[])
        with closing(opened) as library:
            added = library.added()
            failures = library.failures()
            return PaperList(
                papers=[paper_json(paper, added[paper.id]) for paper in library.papers() if paper.id in added],
                failures=[FailureJson(file=f.file.name, error=f.happened, remedy=f.remedy) for f in failures],
            )

    def paper(self, paper: str) -> PaperDetails:
        """Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            (found,) = _known(library, [paper])
            return paper_details(found, library.added()[paper])

    def added(self, paper: str) -> PaperJson:
        """A paper as it is listed. Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            (found,) = _known(library, [paper])
            return paper_json(found, library.added()[paper])

    def pdf(self, paper: str) -> Path:
        """Raises NotKnown, PaperError."""
        with closing(self._app.open_library()) as library:
            return self.shelf.pdf(library, paper)

    def picture(self, paper: str, page: int, quotes: Sequence[str]) -> PagePicture:
        """A page, from 1, with these quotes marked. Raises NotKnown, PaperError."""
        with closing(self._app.open_library()) as library:
            (found,) = _known(library, [paper])
            if not 1 <= page <= found.page_count:
                raise NotKnown(f"The paper has no page {page}.", f"Its last one is {found.page_count}.")
            path = self.shelf.pdf(library, paper)
        return self._pages.picture(PageView(path, page, tuple(quotes), DPI))

    def remove(self, paper: str) -> Removed:
        """Raises NotKnown, StoreBusy."""
        return self.shelf.remove(paper)

    # What is asked

    def search(self, asked: SearchRequest) -> SearchReply:
        """Passages without an answer. Raises NotKnown, StoreMissing, StoreMismatch, ModelError."""
        began = perf_counter()
        with self._readers.acquire() as reader:
            papers = _known(reader.library, asked.papers) or None
            found = reader.retriever.search(asked.query, asked.top_k, papers, rerank=asked.use_reranker)
            models = reader.retriever.models_in(rerank=asked.use_reranker)
            passages = passages_json(asked.query, found.hits, models, found.timings_ms)
        return SearchReply(
            query=asked.query, hits=passages.hits, models=passages.models, elapsed_ms=_milliseconds(began)
        )

    def require_answerable(self, asked: ChatRequest) -> None:
        """Raises what can be told before anything is looked for: NotKnown, Busy, StoreMissing, StoreMismatch."""
        with closing(self._app.open_library()) as library:
            self._app.require_paper(library)
            self._app.require_same_settings(library)
            _known(library, asked.papers)
        if asked.conversation is not None:
            with self._lock:
                if asked.conversation in self._answering:
                    raise _busy()
            self._conversations.require(asked.conversation)

    def ask(self, asked: ChatRequest, listener: Listener) -> ChatReply:
        """One answer; it is kept when it is whole. Where that fails, its notice says so.

        Raises NotKnown, Busy, StoreMissing, StoreMismatch and ModelError; and what the listener raises.
        """
        listener.check_cancelled()  # whoever left while others were before it needs no answer
        began = perf_counter()
        at = datetime.now(UTC).isoformat(timespec="seconds")
        conversation = asked.conversation or self._conversations.begin()
        with self._one_at_a_time(conversation), self._readers.acquire() as reader:
            before = self._conversations.turns(conversation, reader.library) if asked.conversation else ()
            chat = self._chat(reader, asked, listener, [turn.answer for turn in before if turn.answer is not None])
            models = chat.models
            reply = chat.ask(
                asked.message,
                lambda sentence: listener.sentence(sentence_json(sentence)),
                lambda hits: listener.retrieved(
                    Retrieved(
                        conversation=conversation,
                        turn=len(before) + 1,
                        hits=passages_json(asked.message, hits, models, {}).hits,
                        elapsed_ms=_milliseconds(began),
                    )
                ),
            )
            listener.check_cancelled()
            said = answer_json(reply.answer, reply.hits, models, reply.timings_ms)
            made = chat_reply(asked.message, said, conversation, len(before) + 1, _milliseconds(began))
            entry = log_entry(reply, at, models["llm"]) if self._app.logs_questions else None
            try:
                self._conversations.add(conversation, made.model_dump(), reply.answer, entry)
            except (StoreError, OSError) as error:  # as in a terminal: it is told, and the answer stands
                told = (error if isinstance(error, StoreError) else unusable(error)).happened
                return made.model_copy(update={"notice": f"{made.notice} This could not be kept: {told}".strip()})
            return made

    def _chat(self, reader: Reader, asked: ChatRequest, listener: Listener, turns: Sequence[Answer]) -> Chat:
        papers = _known(reader.library, asked.papers) or None
        return Chat(
            reader.retriever,
            self._app.models.answerer(reader.retriever, model=asked.model, check_cancelled=listener.check_cancelled),
            top_k=asked.top_k or self._app.top_k,
            papers=papers,
            style=asked.style,
            rerank=asked.use_reranker,
            turns=turns,
        )

    def mark(self, conversation: str, turn: int, feedback: Feedback) -> None:
        """Raises NotKnown, and UsageError for a question that is not in the log."""
        row = self._conversations.query(conversation, turn)
        if row is None:
            raise UsageError("The question is not in the log.", "QUERY_LOG=true keeps questions from now on.")
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
        turns = self._conversations.turns(conversation)
        return Conversation(
            id=found.id,
            title=found.title,
            updated=found.updated,
            turns=[ChatReply.model_validate(turn.reply) for turn in turns],
        )

    def forget(self, conversation: str) -> None:
        """Raises NotKnown."""
        self._conversations.remove(conversation)

    def markdown(self, conversation: str) -> tuple[str, str]:
        """A conversation with its citations, and a file's name for it. Raises NotKnown."""
        found = self._conversations.require(conversation)
        title = re.sub(r"[^a-z0-9]+", "-", found.title.lower()).strip("-")[:50].strip("-")
        name = "-".join(filter(None, ["folio", title, found.updated[:10]]))
        return markdown(found.title, [turn.reply for turn in self._conversations.turns(conversation)]), f"{name}.md"

    @contextmanager
    def _one_at_a_time(self, conversation: str) -> Iterator[None]:
        """A follow-up to what has not been said yet would be answered as if it had never been asked."""
        with self._lock:
            if conversation in self._answering:
                raise _busy()
            self._answering.add(conversation)
        try:
            yield
        finally:
            with self._lock:
                self._answering.discard(conversation)


def _known(library: Library, ids: Sequence[str]) -> list[Paper]:
    """The papers of these ids. Raises NotKnown for one that is not here."""
    wanted = list(dict.fromkeys(ids))
    papers = library.papers_by_id(wanted)
    if len(papers) < len(wanted):
        raise not_here()
    return papers


def _busy() -> Busy:
    return Busy("This conversation is still answering.", "Wait for the answer, or stop it.")


def _milliseconds(began: float) -> float:
    return round((perf_counter() - began) * 1000, 2)
