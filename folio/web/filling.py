"""The tables that this server fills. Each goes on whoever looks, and is resumed if a server was stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from folio.answer_types import AnswerStopped
from folio.app import App
from folio.errors import FolioError
from folio.store import tables
from folio.store.tables import Fill
from folio.table.filling import Filler, Filling
from folio.table.scope import add_later_papers
from folio.web.questions import Busy
from folio.web.stream import RequestThreads, contained, log_internal

logger = logging.getLogger(__name__)

T = TypeVar("T")
# Tables that are filled at once; further ones wait. A cell that is asked by itself waits for no table.
MAX_CONCURRENT_TABLES, MAX_CONCURRENT_CELLS = 2, 2
# Cells that are asked by themselves, or wait for that
MOST_CELLS = 100
# Seconds between two looks for papers that were added, and for tables that another server left
LOOK_S = 5.0


class Fillings:
    """All of it runs in the server's event loop, but the work."""

    def __init__(self, app: App, threads: RequestThreads) -> None:
        self.filler = Filler(app.open_library, app.cell_finder)
        self._app = app
        self._threads = threads
        self._tables: set[str] = set()  # those that are filled here, or wait
        self._cells = 0
        self._table_slots = CapacityLimiter(MAX_CONCURRENT_TABLES)
        self._cell_slots = CapacityLimiter(MAX_CONCURRENT_CELLS)
        self._looking: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._seen: object = None  # the state of the library at the last look

    async def fill(self, table: str) -> None:
        """Fill a table, unless it is being filled. Raises NotKnown, StoreProtected."""
        filling = await _in_thread(partial(self.filler.begin, Fill(table), resumes=True))
        if filling is not None:
            self._tables.add(table)
            self._start(filling, self._table_slots, lambda: self._tables.discard(table))

    async def ask(self, table: str, column: str, paper: str) -> None:
        """Ask one cell, unless it is being asked by itself. Raises NotKnown, StoreProtected, Busy."""
        if self._cells >= MOST_CELLS:
            raise Busy(f"{MOST_CELLS} cells are waiting for their answers.", "Ask again once some are answered.")
        filling = await _in_thread(partial(self.filler.begin, Fill(table, column, paper)))
        if filling is not None:
            self._cells += 1
            self._start(filling, self._cell_slots, self._end_cell)

    def _end_cell(self) -> None:
        self._cells -= 1

    def _start(self, filling: Filling, slots: CapacityLimiter, on_end: Callable[[], None]) -> None:
        def end(done: asyncio.Future[None]) -> None:
            on_end()
            if not done.cancelled() and (error := done.exception()) and not isinstance(error, AnswerStopped):
                log_internal(error)

        self._threads.start(self._run, filling, slots=slots).add_done_callback(end)

    def _run(self, filling: Filling) -> None:
        try:
            self.filler.run(filling, check_cancelled=self._threads.check_cancelled)
        except FolioError as error:  # the table says so
            logger.info("A table could not be filled: %s", error)

    def watch(self) -> None:
        """Begin to look for what is to be filled."""
        self._looking = asyncio.ensure_future(self._watch())

    def look_soon(self) -> None:
        """Look now: rows or columns were added."""
        self._changed.set()

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _watch(self) -> None:
        is_first = True
        while True:
            for table in await _in_thread(self._due, is_first):
                if table not in self._tables:
                    with suppress(FolioError, OSError):  # it is tried again at the next look
                        await self.fill(table)
            is_first = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), LOOK_S)
            self._changed.clear()

    def _due(self, is_first: bool) -> list[str]:
        """The tables to resume, or with new rows. is_first: after a start, also those that a problem ended."""
        try:
            with closing(self._app.open_library()) as library:
                if library.is_read_only:
                    return []
                state = library.identity(), library.state()
                if state != self._seen:
                    add_later_papers(library, tables.following(library.database))
                    self._seen = state
                due = tables.resumable(library.database, after_problems=is_first)
                counts = tables.counts(library.database, due) if due else {}
                return [id for id in due if counts[id].waiting]
        except (FolioError, OSError) as error:
            logger.debug("A look for tables failed: %s", error)
            return []


async def _in_thread(work: Callable[..., T], *arguments: object) -> T:
    return await to_thread.run_sync(contained, work, *arguments)
