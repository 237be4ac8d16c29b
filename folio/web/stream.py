"""Server-sent events from the thread that works on a request to its client, and the threads that work on requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Literal, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel
from sse_starlette import EventSourceResponse
from starlette.requests import Request

from folio.answer_types import AnswerStopped
from folio.errors import FolioError
from folio.ingest.discovery import Outcome
from folio.papers.model import SourceFile
from folio.schema.web import ErrorBody, error_body, event
from folio.system.files import unusable
from folio.web.server import FINISH_REPLACED_S

logger = logging.getLogger(__name__)

T = TypeVar("T")
SendEvent = Callable[[str, BaseModel], None]

# Seconds between checks whether a client is still connected
_POLL_S = 0.5
# Seconds that threads get to stop at shutdown: enough to finish embedding a batch of passages
_SHUTDOWN_S = 5


class RequestCancelled(AnswerStopped):
    """The client has disconnected, or the server is shutting down."""


class RequestThreads:
    """The threads that work on requests. They are stopped before the parts of the server that they need."""

    def __init__(self) -> None:
        self._shutting_down = Event()
        self._running: set[asyncio.Future[Any]] = set()

    def start(self, work: Callable[..., T], *arguments: object, slots: CapacityLimiter) -> asyncio.Future[T]:
        """Call work(*arguments) in a thread as soon as a slot is free."""
        future = asyncio.ensure_future(to_thread.run_sync(contained, work, *arguments, limiter=slots))
        self._running.add(future)
        future.add_done_callback(self._remove)
        return future

    def check_cancelled(self) -> None:
        """Raises RequestCancelled once the server shuts down."""
        if self._shutting_down.is_set():
            raise RequestCancelled

    async def shut_down(self) -> None:
        """Stop all threads. A thread that does not stop in time waits for a model, so nothing is lost."""
        self._shutting_down.set()
        if self._running:
            await asyncio.wait(self._running, timeout=_SHUTDOWN_S)

    def _remove(self, future: asyncio.Future[Any]) -> None:
        self._running.discard(future)
        if not future.cancelled():
            future.exception()  # asyncio logs exceptions that are never retrieved


def finishing_response(events: AsyncIterator[dict[str, str]]) -> EventSourceResponse:
    """A response that continues after the server is told to stop, until the time for running answers is over."""
    return EventSourceResponse(events, shutdown_event=anyio.Event(), shutdown_grace_period=FINISH_REPLACED_S)


class EventStream:
    """Events for one client, sent from the thread that works on its request."""

    def __init__(self, threads: RequestThreads) -> None:
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[dict[str, str] | None] = asyncio.Queue()
        self._cancelled = Event()
        self._ended = False  # whether `done` or `error` has been sent

    def send(self, kind: str, value: BaseModel) -> None:
        """Queue an event, unless the client has disconnected."""
        if not self._cancelled.is_set():
            self._ended = self._ended or kind in ("done", "error")
            self._loop.call_soon_threadsafe(self._events.put_nowait, event(kind, value))

    def check_cancelled(self) -> None:
        """Raises RequestCancelled."""
        self._threads.check_cancelled()
        if self._cancelled.is_set():
            raise RequestCancelled

    def on_event(self, kind: str, value: BaseModel) -> None:
        """Queue an event. Raises RequestCancelled."""
        self.check_cancelled()
        self.send(kind, value)

    def cancel(self) -> None:
        self._cancelled.set()

    async def run(self, work: Callable[[], None], slots: CapacityLimiter) -> AsyncIterator[dict[str, str]]:
        """Run work in a thread and yield the events that it sends. The last one is `done` or `error`.

        Only the stream of a client that has left, or of a server that stops, may end without it. Closing the iterator
        cancels the request.
        """
        # The events of a thread that has ended, or could not be started, are already in the queue.
        self._threads.start(work, slots=slots).add_done_callback(self._finish)
        try:
            while (next_event := await self._events.get()) is not None:
                yield next_event
        finally:
            self.cancel()

    def _finish(self, work: asyncio.Future[None]) -> None:
        error = None if work.cancelled() else work.exception()
        # For a client that has left, send() drops `done`: its absence is no error.
        is_unread = error is None and self._cancelled.is_set()
        if not (self._ended or work.cancelled() or is_unread or isinstance(error, RequestCancelled)):
            log_internal(error)
            self._events.put_nowait(error_event(error_of(error)))
        self._events.put_nowait(None)


async def reply_unless_left(request: Request, running: asyncio.Future[T], cancel: Callable[[], object]) -> T:
    """The result of a thread. `cancel` is called once the client has disconnected, and at the end."""
    try:
        while not (await asyncio.wait([running], timeout=_POLL_S))[0]:
            if await request.is_disconnected():
                cancel()
        return running.result()
    finally:
        cancel()


def contained(work: Callable[..., T], *arguments: object) -> T:
    """work(*arguments). A BaseException such as a panic in Rust becomes a RuntimeError: some would end the server."""
    try:
        return work(*arguments)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def error_of(error: BaseException | None) -> ErrorBody:
    """The `error` event of work that has failed, or ended without a result."""
    if isinstance(error, FolioError):
        return error_body(error)
    return error_body(unusable(error)) if isinstance(error, OSError) else _INTERNAL_ERROR


def error_event(body: ErrorBody) -> dict[str, str]:
    """The `error` event with this body, or with another one if that cannot be sent."""
    try:
        return event("error", body)
    except Exception:
        logger.exception("An error could not be shown.")
        return event("error", _INTERNAL_ERROR)


def log_internal(error: BaseException | None) -> None:
    """Log an error that is no user's."""
    if error is None:
        logger.error("A request failed: its work ended without a result.")
    elif not isinstance(error, FolioError | OSError):
        logger.error("A request failed: %s: %s", type(error).__name__, error, exc_info=error)


_INTERNAL_ERROR = ErrorBody(
    error="Folio failed with an internal error.", remedy="Try again. The terminal that Folio runs in shows details."
)


Stage = Literal["reading", "embedding"]


class StageProgress:
    """Reports the stage of ingesting a file, how much of it is done, and of how much. Implements IngestProgress."""

    def __init__(self, report: Callable[[Stage, int, int], None], check_cancelled: Callable[[], None]) -> None:
        """check_cancelled: called before each report; raises to cancel."""
        self._report = report
        self._check_cancelled = check_cancelled
        self._chunks = 0

    def hashed(self, file: Path) -> None: ...

    def planned(self, files: Sequence[SourceFile]) -> None:
        self._check_cancelled()
        self._report("reading", 0, len(files))

    def scanned(self, file: SourceFile, pages: int, of: int) -> None:
        self._check_cancelled()
        self._report("reading", pages, of)

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None:
        self._check_cancelled()
        self._chunks += chunks
        self._report("embedding", self._chunks, of)

    def done(self, outcome: Outcome) -> None: ...
