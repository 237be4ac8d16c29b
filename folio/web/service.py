"""The work behind the web API, for many clients at once: questions, conversations, papers and page pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import asdict, astuple
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from folio.answer.chat import warm_up
from folio.app import App
from folio.console import say
from folio.errors import ModelError, PaperError, StoreError, StoreMissing
from folio.ingest.discovery import Outcome
from folio.papers.edits import edited, key_in, retagged, reverted
from folio.papers.metadata import NO_METADATA, Metadata, Source
from folio.papers.model import Paper, require_page
from folio.pdf.render import PagePicture
from folio.schema import web as schema
from folio.schema.papers import PaperJson, With, listed_paper_json, paper_json
from folio.search.pool import RetrieverPool
from folio.store import citation_names, indexes
from folio.store.conversations import Turn, branches, path_through, path_to
from folio.store.readings import readings, record_reading
from folio.store.works import publishers_bibtex
from folio.sync import Hooks, Sync, ZoteroChoice
from folio.system.threads import run_in_background
from folio.web.about import PaperPages
from folio.web.events import StoreWatch
from folio.web.export import markdown, zotero_note
from folio.web.fetcher import Online, PaperFetcher
from folio.web.own_questions import OwnQuestions
from folio.web.pages import CACHED_TEXTS, Cache, PageOfText, PageReader, PageView, find_words, page_text_json
from folio.web.papers import PaperFiles, list_papers, removed_papers, require_papers
from folio.web.projects import Projects
from folio.web.questions import Questions, as_known_now, is_listed, papers_of_replies, unanswered_json
from folio.web.stream import RequestCancelled
from folio.web.suggestions import Suggestions
from folio.web.tasks import FolderReading, PapersProgress, Report, Tasks
from folio.web.undo import Undo
from folio.web.uploads import UploadQueue

T = TypeVar("T")
_ALL = schema.PaperQuery()
# Changed files that are read before others may write to the library
_SYNCED_AT_ONCE = 20


class Service:
    """Thread-safe; a slow call does not delay the others."""

    def __init__(self, app: App, online: Online | None = None) -> None:
        limits = app.limits(1)
        self._app = app
        self.paper_files = PaperFiles(app)
        self.uploads = UploadQueue(
            app.store_folder / "uploads", self.paper_files.add_queued, self.paper_files.take_back, self.listed_paper
        )
        self.fetcher = PaperFetcher(app, self.paper_files, online)
        self.retrievers = RetrieverPool(app.open_library, app.retriever, app.open_indexes)
        self._conversations = app.conversations()
        self._pages = PageReader(timeout_s=limits.timeout_s, memory_mb=limits.memory_mb)
        self._page_texts = Cache[bytes](CACHED_TEXTS, len)
        self.questions = Questions(app, self.retrievers, self._conversations)
        self.suggestions = Suggestions(app, self.retrievers, self._conversations)
        self.paper_pages = PaperPages(app, self._conversations)
        self.projects = Projects(app, self._conversations)
        self.undo = Undo()
        self.tasks = Tasks()
        self._reading = FolderReading(self.tasks)
        self._sync = self._made_sync()

    def _made_sync(self) -> Sync | None:
        """What keeps the library in step with the folders that the settings name."""
        watched = self._app.watched
        if not watched.folders and not watched.zotero:
            return None

        reading = self._reading = FolderReading(self.tasks)
        hooks = Hooks(
            self.paper_files.writing, reading.progress, lambda _: None, most=_SYNCED_AT_ONCE, planned=reading.planned
        )
        zotero = ZoteroChoice() if watched.zotero else None
        return Sync(self._app, watched.folders, zotero, hooks, watched.poll_s)

    def follow_folders(self) -> None:
        """Keep the library in step with the folders that the settings name now."""
        self._stop_sync()
        self._sync = self._made_sync()
        if self._sync is not None:
            self._sync.start(RequestCancelled)

    def _stop_sync(self) -> None:
        if self._sync is not None:
            self._reading.stopping.set()
            self._sync.stop()

    def sync_zotero(self, report: Report) -> list[Outcome]:
        """Take over what is in Zotero now. Raises as `Sync.run` does when it is strict."""
        outcomes: list[Outcome] = []

        def progress(files: int) -> AbstractContextManager[PapersProgress]:
            return nullcontext(PapersProgress(report, 0, files))

        hooks = Hooks(self.paper_files.writing, progress, outcomes.extend)
        sync = Sync(self._app, (), ZoteroChoice(), hooks)
        report.step("looking")
        sync.run(sync.stop, strict=True)
        return outcomes

    def start(self) -> None:
        """Start background threads: the queue of uploads, loading models, checking indexes, deleting stale uploads."""
        with suppress(StoreError):  # the first request reports an index that cannot be opened
            if self._app.logs_questions and not self._conversations.are_stored:
                unlogged = "questions are not logged, and conversations are kept until Folio stops."
                say(f"The folder of the index cannot be written: {unlogged}")
        run_in_background(self.paper_files.delete_stale_uploads)
        run_in_background(self.paper_files.delete_expired)
        self.uploads.start()
        if self._sync is not None:
            self._sync.start(RequestCancelled)
        warm_up()
        self._app.check_indexes_in_background()
        run_in_background(self.health)

    def prepare_pages(self) -> None:
        """A person has opened the page, and may soon open one of a paper."""
        run_in_background(self._pages.start)

    def close(self) -> None:
        self._stop_sync()
        self.tasks.stop()
        self.uploads.stop()
        self._pages.close()
        self.retrievers.close()
        self._conversations.close()

    def own_questions(self, is_answering: Callable[[], bool]) -> OwnQuestions:
        """What measures a person's own questions. is_answering: whether it has to wait."""
        return OwnQuestions(self._app, self.retrievers, self._conversations, self.questions, is_answering)

    def watch(self) -> StoreWatch:
        return StoreWatch(self._app.open_library, self._conversations, self.uploads, self.tasks)

    # State of the index

    def health(self) -> schema.Health:
        """The contents of the store, and the models in use. Raises StoreMismatch, StoreDamaged."""
        app = self._app.at_a_glance()
        store, made_with, models = None, dict[str, str](), {"embedder": "", "reranker": "", "llm": ""}
        model, model_errors = "", list[str]()
        with suppress(StoreMissing), self.retrievers.acquire() as reader:
            models["embedder"] = app.embedder_for_questions(reader.library).name
            reranker = app.models.reranker()
            models["reranker"] = reranker.name if reranker else "none"
            try:
                models["llm"] = app.models.answerer(reader.retriever).name
                model = app.models.answering_name()
            except ModelError as error:  # the settings name a model that cannot be used
                model_errors.append(f"{error.happened} {error.remedy}")
            made_with = reader.made_with
            counts = reader.library.counts()
            with reader.library.reading() as stamp:
                generation = stamp.generation
            store = schema.StoreJson(
                folder=str(app.store_folder),
                papers=counts["papers"],
                chunks=reader.library.chunk_count(),
                bytes=indexes.size(app.store_folder),
                generation=generation,
            )
        return schema.Health(
            status="ready" if store else "empty",
            store=store,
            fingerprint=made_with,
            models=models,
            better=[*model_errors, *app.models.better],
            chat_models=app.models.chat_models(),
            model=model,
            logged=self.questions.are_logged,
            online=self.fetcher.is_online,
            network=self.fetcher.note,
            max_file_mb=app.limits(1).max_file_mb,
        )

    def model_servers(self) -> schema.ModelServerList:
        """The model servers on this computer, whatever the settings name."""
        from folio.models.discovery import find_servers

        found = [schema.ModelServerJson(**asdict(server)) for server in find_servers()]
        return schema.ModelServerList(servers=found)

    def papers(self, query: schema.PaperQuery = _ALL) -> schema.PaperList:
        """The chosen papers, ranked if there is a query, and the unreadable files. Raises StoreMismatch, ModelError."""
        return list_papers(self._app, self.retrievers, query)

    def papers_tag(self) -> str:
        """An ETag of papers(): it changes with every paper or unreadable file that is added, changed or removed."""
        parts: list[object] = []
        with suppress(StoreMissing), closing(self._app.open_library()) as library, library.reading():
            parts = [
                library.papers_stamp(),
                library.failures(),
                sorted(map(astuple, readings(library.database).values())),
            ]
        return f'"{sha256(repr(parts).encode(errors="replace")).hexdigest()[:32]}"'

    def paper(self, paper: str) -> schema.PaperDetails:
        """Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            with library.reading():
                (stored,) = require_papers(library, [paper])
                files = [file.name for file in library.files() if file.sha256 == paper]
                published = publishers_bibtex(library.database, [paper]).get(paper, "")
                added = library.added()[paper]
            key = library.citation_key(stored)
        return schema.paper_details(stored, added, files, key, published, self._sizes(paper))

    def _sizes(self, paper: str) -> Sequence[tuple[float, float]]:
        with suppress(PaperError, OSError):  # everything else about the paper is known without its file
            return self._pages.sizes(paper, self.pdf(paper))
        return ()

    def edit(self, paper: str, request: schema.PaperEdits, undo: str | None = None) -> schema.PaperDetails:
        """Change the metadata of a paper. undo: the key under which the change can be undone.

        Raises NotKnown, UsageError for a value that a field cannot have.
        """
        self.edit_many(schema.ManyEdits(papers=[paper], edits=request), undo)
        return self.paper(paper)

    def edit_many(self, request: schema.ManyEdits, undo: str | None = None) -> int:
        """Change the metadata of papers, of all or none; returns the number of changed ones. undo: as in `edit`.

        Raises NotKnown, UsageError for a value that a field cannot have.
        """
        made: list[tuple[Metadata, Metadata]] = []  # what a person said of each paper, before and after
        with closing(self._app.open_library()) as library:
            papers = [paper.id for paper in require_papers(library, request.papers)]
            edits = schema.paper_edits(request.edits)
            library.require_free_key(papers, key_in(edits))

            def change(layers: Mapping[Source, Metadata]) -> Metadata:
                before = layers.get("person", NO_METADATA)
                person = edited(before, edits)
                if request.add_tags or request.remove_tags:
                    person = retagged({**layers, "person": person}, request.add_tags, request.remove_tags)
                if request.add_collections or request.remove_collections:
                    added, removed = request.add_collections, request.remove_collections
                    person = retagged({**layers, "person": person}, added, removed, "collections")
                made.append((before, person))
                return person

            changes = library.change_metadata_of(papers, "person", change)
        if changes.papers:
            self.paper_files.finish_edit(is_renamed=changes.renamed)
            last = made[-len(papers) :]  # the transaction may have been done again
            self.undo.keep(undo, lambda: self._undo_edits(dict(zip(papers, last, strict=True))))
        return changes.papers

    def _undo_edits(self, made: Mapping[str, tuple[Metadata, Metadata]]) -> None:
        """Undo changes of papers. Raises ChangedElsewhere, UsageError if another paper has got the citation key."""
        is_renamed = False
        with closing(self._app.open_library()) as library:
            for paper, (before, after) in made.items():
                library.require_free_key([paper], key_in(before.known()))
                undo = partial(reverted, before=before, after=after)
                is_renamed |= library.change_metadata(paper, "person", undo)
                if key_in(after.known()) != key_in(before.known()):
                    citation_names.take_back(library.database, paper, key_in(after.known()))
        self.paper_files.finish_edit(is_renamed=is_renamed)

    def remove(self, papers: Sequence[str], undo: str | None = None) -> schema.RemovedFiles:
        """Remove papers from the index: all, or none if one is unknown. undo: as in `edit`."""

        def put_back() -> None:
            for failed in self.paper_files.restore(*papers):
                raise PaperError(failed.happened, failed.remedy)

        removed = self.paper_files.remove(*papers)
        self.undo.keep(undo, put_back)
        return schema.RemovedFiles(removed=[schema.RemovedJson.model_validate(each) for each in removed])

    def record_reading(self, paper: str, page: int) -> None:
        """A person has this page of a paper open. Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            (stored,) = require_papers(library, [paper])
            require_page(stored, page)
            record_reading(library.database, paper, page)

    def removed(self) -> schema.RemovedPapers:
        """The papers that can be brought back. Deletes the files of those whose day is over."""
        self.paper_files.delete_expired()
        return schema.removed_papers(removed_papers(self._app))

    def restore(self, papers: Sequence[str]) -> schema.RestoredPapers:
        """Bring removed papers back. Raises NotKnown, StoreBusy and as an ingest does."""
        failed = self.paper_files.restore(*papers)
        with closing(self._app.open_library()) as library, library.reading():
            back = library.papers_by_id(papers)
            added, read = library.added(), readings(library.database, [paper.id for paper in back])
            listed = [listed_paper_json(paper, added[paper.id], read.get(paper.id)) for paper in back]
        failures = [schema.FailureJson.model_validate(failure) for failure in failed]
        return schema.RestoredPapers(restored=listed, failed=failures)

    def listed_paper(self, paper: str) -> PaperJson:
        """A paper as papers() lists it. Raises NotKnown."""
        with closing(self._app.open_library()) as library:
            (stored,) = require_papers(library, [paper])
            return paper_json(stored, library.added()[paper])

    def pdf(self, paper: str) -> Path:
        """Raises NotKnown, PaperError."""
        with closing(self._app.open_library()) as library:
            return self.paper_files.pdf(library, paper)

    def read_page(self, read: Callable[..., T], *arguments: object, is_ahead: bool) -> T:
        """read(*arguments), a picture or a text of a page. is_ahead: nobody waits for it yet, so others come before."""
        if is_ahead:
            self._pages.wait_until_idle()
            return read(*arguments)
        with self._pages.asked():
            return read(*arguments)

    def picture(self, paper: str, page: int, quotes: Sequence[str], dpi: int) -> PagePicture:
        """A page, from 1, with these quotes marked. Raises NotKnown, PaperError."""
        path = self._page(paper, page).path
        return self._pages.picture(PageView(paper, path, page, tuple(quotes), dpi))

    def page_text(self, paper: str, page: int) -> bytes:
        """A schema.PageText as JSON. Raises NotKnown, PaperError."""
        place = self._page(paper, page)

        def read() -> bytes:
            with closing(self._app.open_library()) as library:
                (stored,) = require_papers(library, [paper])
                text = library.text(paper, 0, stored.length)
            return page_text_json(stored, place, self._pages.text_layer(place), text).encode()

        return self._page_texts.get(place, read)

    def _page(self, paper: str, page: int) -> PageOfText:
        """A page, from 1. Raises NotKnown, PaperError."""
        with closing(self._app.open_library()) as library, library.reading():
            (stored,) = require_papers(library, [paper])
            require_page(stored, page)
            start, end = stored.pages.bounds(page, stored.length)
            path = self.paper_files.pdf(library, paper)
            return PageOfText(paper, path, page, library.text(paper, start, end), start)

    def find(self, paper: str, words: str) -> schema.PlacesJson:
        """Where words stand in a paper. Raises NotKnown."""
        with closing(self._app.open_library()) as library, library.reading():
            (stored,) = require_papers(library, [paper])
            places = find_words(library.text(paper, 0, stored.length), words)
        hits = [[start, end, stored.pages.page_at(start)] for start, end in places.spans]
        return schema.PlacesJson(count=places.total, hits=hits)

    # Conversations

    def conversations(self, query: str = "") -> schema.ConversationList:
        """The listed conversations; with a query, those with all of its words."""
        listed = filter(is_listed, self._conversations.search(query) if query else self._conversations.summaries())
        return schema.ConversationList(conversations=list(map(schema.ConversationSummary.model_validate, listed)))

    def conversation(self, conversation: str, turn: int | None = None) -> schema.Conversation:
        """Its path to the latest turn; with `turn`, the path through that turn. Raises NotKnown."""
        summary = self._conversations.require(conversation)
        turns = self._conversations.turns(conversation)
        path = path_through(turns, turn)
        shown = self._replies([each for each in path if each.question is None], turns)
        return schema.Conversation.model_validate(With(summary, turns=shown, unanswered=_unanswered(path, turns)))

    def turn(self, conversation: str, turn: int) -> schema.ChatReply | schema.UnansweredJson:
        """A turn with its answer, or without. Raises NotKnown."""
        turns = self._conversations.turns(conversation)
        asked = path_to(turns, turn)[-1]
        (found,) = _unanswered([asked], turns) or self._replies([asked], turns)
        return found

    def stop_elsewhere(self, conversation: str, turn: int) -> None:
        """Have another server stop its answer."""
        self._conversations.stop(conversation, turn)

    def renew_answers(self) -> set[tuple[str, int]]:
        """Say again which questions this server answers; returns those that nobody has stopped or deleted."""
        return self._conversations.renew(self.questions.server)

    def change_conversation(
        self, conversation: str, changes: schema.ConversationChanges, undo: str | None = None
    ) -> schema.ConversationSummary:
        """Rename it, pin it, or take it down. undo: as in `edit`. Raises NotKnown."""
        before = self._conversations.require(conversation)
        if changes.title is not None:
            self._conversations.rename(conversation, changes.title)
            self.undo.keep(undo, lambda: self._conversations.rename(conversation, before.title))
        if changes.pinned is not None:
            self._conversations.pin(conversation, pinned=changes.pinned)
            self.undo.keep(undo, lambda: self._conversations.pin(conversation, pinned=before.pinned))
        return schema.ConversationSummary.model_validate(self._conversations.require(conversation))

    def _replies(self, shown: Sequence[Turn], turns: Sequence[Turn]) -> list[schema.ChatReply]:
        """The replies of some turns, with the current names of their papers. turns: all turns of the conversation."""
        stored = [each.reply for each in shown]
        papers: dict[str, Paper] = {}
        with suppress(StoreMissing), closing(self._app.open_library()) as library, library.reading():
            papers = {paper.id: paper for paper in library.papers_by_id(papers_of_replies(stored))}
        following = branches(turns)
        return [
            schema.ChatReply.model_validate(
                {**as_known_now(each.reply, papers), "parent": each.parent, "branches": following[each.parent]}
            )
            for each in shown
        ]

    def delete_conversation(self, conversation: str, undo: str | None = None) -> None:
        """Delete a conversation. undo: as in `edit`. Raises NotKnown."""
        removed = self._conversations.remove(conversation)
        self.undo.keep(undo, lambda: self._conversations.restore(removed))

    def markdown(self, conversation: str, turn: int | None = None) -> tuple[str, str]:
        """A path of a conversation (as `conversation`) with its citations as Markdown, and a file name for it.

        Raises NotKnown.
        """
        shown = self.conversation(conversation, turn)
        title = re.sub(r"[^a-z0-9]+", "-", shown.title.lower()).strip("-")[:50].strip("-")
        name = "-".join(filter(None, ["folio", title, shown.updated[:10]]))
        return markdown(shown.title, _in_order(shown), numbered=self._app.numbers_citations), f"{name}.md"

    def zotero_note(self, conversation: str, turn: int | None, through: int | None = None) -> str:
        """A path of a conversation, or only its answer number `turn`, as a note for Zotero. Raises NotKnown."""
        if turn is None:
            shown = self.conversation(conversation, through)
            return zotero_note(shown.title, _in_order(shown))
        reply = self.turn(conversation, turn)
        return zotero_note(reply.message, [reply.model_dump()])


def _unanswered(shown: Sequence[Turn], turns: Sequence[Turn]) -> list[schema.UnansweredJson]:
    """Those of some turns without an answer. turns: all turns of the conversation."""
    following = branches(turns)
    return [unanswered_json(each, following[each.parent]) for each in shown if each.question is not None]


def _in_order(conversation: schema.Conversation) -> list[dict[str, Any]]:
    """Its turns, with and without an answer, in the order of its path."""
    both: list[schema.ChatReply | schema.UnansweredJson] = [*conversation.turns, *conversation.unanswered]
    return [each.model_dump() for each in sorted(both, key=lambda each: each.turn)]
