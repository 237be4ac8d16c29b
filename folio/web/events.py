"""What changes in the store, as server-sent events for every page that is open.

The store is looked at once a second while somebody listens: other servers and terminals change it too. What this
server was asked to change is looked for at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread

from folio.errors import FolioError, StoreMissing
from folio.schema import web as schema
from folio.schema.settings import TasksJson
from folio.store import notes, projects, tables
from folio.store.conversations import Conversations, Summary
from folio.store.library import Library
from folio.store.rows import Stamp
from folio.web.questions import Busy, is_listed
from folio.web.tasks import Tasks
from folio.web.uploads import UploadQueue

if TYPE_CHECKING:
    from pydantic import BaseModel
    from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)

Event = tuple[str, "BaseModel"]
# Seconds between two looks at the store
LOOK_S = 1.0
# Events that wait for a listener. One that is further behind has to load everything again.
MOST_WAITING = 100
# Listeners at once. Each holds one of the server's connections (server.CONNECTIONS), which others need too.
MOST_LISTENERS = 100


class TooManyListeners(Busy):
    """The server has no room for one more listener now."""


class StoreWatch:
    """Compares the store with what it was at the last look. For one thread at a time."""

    def __init__(
        self, open_library: Callable[[], Library], conversations: Conversations, uploads: UploadQueue, tasks: Tasks
    ) -> None:
        self._tasks = tasks
        self._open_library = open_library
        self._conversations = conversations
        self._uploads = uploads
        self._library: Library | None = None
        self._identity: Hashable = None  # of that library
        self.forget()

    def forget(self) -> None:
        """Make the next look the first one, and close the library."""
        self._close_library()
        self._stamp: tuple[Stamp, Hashable] | None = None
        self._papers: dict[str, Hashable] = {}
        self._failures: Hashable = None
        self._notes: Hashable = None
        self._projects: Hashable = None
        self._tables: dict[str, Hashable] = {}
        self._listed: dict[str, Summary] = {}
        self._queue_version: Hashable = None
        self._queue: schema.UploadsEvent | None = None
        self._tasks_version = self._tasks.version

    def hello(self) -> Event:
        """The event for a listener that has to load everything."""
        return "hello", schema.HelloEvent(generation=self._stamp[0].generation if self._stamp else 0)

    def look(self) -> list[Event]:
        """The changes since the last look; what cannot be read now is compared at the next one."""
        events: list[Event] = []
        for changes in (self._library_changes, self._conversation_changes, self._upload_changes, self._task_changes):
            try:
                events += changes()
            except (FolioError, OSError) as error:
                logger.debug("A look at the store failed: %s", error)
                self._close_library()
        return events

    def _close_library(self) -> None:
        if self._library is not None:
            self._library.close()
            self._library = None

    def _current_library(self) -> Library:
        """The library, opened again if another one replaced it. Raises StoreError."""
        if self._library is not None and self._library.identity() != self._identity:
            self._close_library()
        if self._library is None:
            self._library = self._open_library()
            self._identity = self._library.identity()
        return self._library

    def _library_changes(self) -> Iterator[Event]:
        try:
            library = self._current_library()
        except StoreMissing:
            if self._stamp is not None:
                self._stamp = None
                yield self.hello()
            return
        with library.reading():
            stamp, before = library.state(), self._stamp
            papers = _papers(library) if stamp != before else self._papers
            failures = tuple(library.database.query("SELECT path, sha256, happened FROM failures ORDER BY path"))
            noted = notes.state(library.database)
            in_projects = projects.state(library.database)
            made = tables.state(library.database)
        self._stamp, known = stamp, self._papers
        self._papers = papers
        if before is None or before[0].epoch != stamp[0].epoch:
            yield self.hello()
        elif stamp != before:
            yield (
                "papers",
                schema.PapersEvent(
                    added=[paper for paper in papers if paper not in known],
                    changed=[paper for paper in papers if paper in known and papers[paper] != known[paper]],
                    removed=[paper for paper in known if paper not in papers],
                    generation=stamp[0].generation,
                ),
            )
        if failures != self._failures:
            self._failures = failures
            yield "failures", schema.FailuresEvent()
        if noted != self._notes:
            self._notes = noted
            yield "notes", schema.NotesEvent()
        if in_projects != self._projects:
            self._projects = in_projects
            yield "projects", schema.ProjectsEvent()
        known_tables, self._tables = self._tables, made
        if made != known_tables:
            yield (
                "tables",
                schema.TablesEvent(
                    changed=[id for id in made if made[id] != known_tables.get(id)],
                    deleted=[id for id in known_tables if id not in made],
                ),
            )

    def _conversation_changes(self) -> Iterator[Event]:
        listed = {each.id: each for each in filter(is_listed, self._conversations.summaries())}
        known, self._listed = self._listed, listed
        if listed != known:
            yield (
                "conversations",
                schema.ConversationsEvent(
                    changed=[id for id, summary in listed.items() if summary != known.get(id)],
                    deleted=[id for id in known if id not in listed],
                ),
            )

    def _upload_changes(self) -> Iterator[Event]:
        version, before = self._uploads.version, self._queue
        if version != self._queue_version:
            self._queue_version, self._queue = version, self._uploads.counts()
            if self._queue != before:
                yield "uploads", self._queue

    def _task_changes(self) -> Iterator[Event]:
        version = self._tasks.version
        if version != self._tasks_version:
            self._tasks_version = version
            yield "tasks", TasksJson(tasks=self._tasks.state())


def _papers(library: Library) -> dict[str, Hashable]:
    """Paper id -> a value that changes with what is known about the paper."""
    described: dict[str, list[object]] = {}
    sql = "SELECT paper, source, updated, length(fields) FROM metadata ORDER BY paper, source"
    for paper, *state in library.database.query(sql):
        described.setdefault(paper, []).append(tuple(state))
    papers = library.database.query("SELECT id, generation FROM papers ORDER BY id")
    return {paper: (generation, *described.get(paper, ())) for paper, generation in papers}


class Broadcast:
    """Sends what a StoreWatch sees to all listeners. All of it runs in the server's event loop, but the looks."""

    def __init__(self, watch: StoreWatch) -> None:
        self._watch = watch
        self._listeners: set[asyncio.Queue[Event]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._has_begun = False  # whether the watch has had its first look
        self._changed = asyncio.Event()
        self._slot = CapacityLimiter(1)

    def require_room(self) -> None:
        """Raise TooManyListeners."""
        if len(self._listeners) >= MOST_LISTENERS:
            raise TooManyListeners(
                f"{MOST_LISTENERS} pages of Folio are open, as many as this server tells of changes.",
                "Close some of them.",
            )

    async def listen(self) -> AsyncIterator[dict[str, str]]:
        """`hello`, then each change. A listener that lags too far behind gets `hello` in place of what it missed."""
        if len(self._listeners) >= MOST_LISTENERS:  # others came between require_room and this
            return
        queue: asyncio.Queue[Event] = asyncio.Queue(MOST_WAITING)
        self._listeners.add(queue)
        try:
            if self._has_begun:
                queue.put_nowait(self._watch.hello())
            if self._looking is None:
                self._looking = asyncio.ensure_future(self._look())
            while True:
                yield schema.event(*await queue.get())
        finally:
            self._listeners.discard(queue)

    def look_soon(self) -> None:
        """Look at the store now: else what comes and goes between two looks would be told to nobody."""
        self._changed.set()

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    async def _look(self) -> None:
        """Look at the store until nobody listens."""
        try:
            await to_thread.run_sync(self._watch.look, limiter=self._slot)
            self._has_begun = True
            self._send(self._watch.hello())
            while self._listeners:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), LOOK_S)
                self._changed.clear()
                for event in await to_thread.run_sync(self._watch.look, limiter=self._slot):
                    self._send(event)
        finally:
            self._has_begun, self._looking = False, None
            self._watch.forget()

    def _send(self, event: Event) -> None:
        for queue in self._listeners:
            lags = queue.full()
            while lags and not queue.empty():
                queue.get_nowait()
            queue.put_nowait(self._watch.hello() if lags else event)


class TellsOfChanges:
    """ASGI middleware: what a request may have changed is looked for at once."""

    def __init__(self, web: ASGIApp, broadcast: Broadcast) -> None:
        self._web = web
        self._broadcast = broadcast

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._web(scope, receive, send)
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            self._broadcast.look_soon()
