"""The answers that are being made. Each is made to its end, whoever looks: a stream of its events is only a view."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import CapacityLimiter, to_thread

from folio.answer_types import AnswerStopped
from folio.errors import FolioError
from folio.schema import web as schema
from folio.store.conversations import RENEW_S
from folio.web.earlier import EarlierTurn
from folio.web.questions import Asked, Busy, is_stop
from folio.web.stream import RequestCancelled, RequestThreads, contained, error_event, log_internal

if TYPE_CHECKING:
    from pydantic import BaseModel

    from folio.web.service import Service

logger = logging.getLogger(__name__)

T = TypeVar("T")
Sent = dict[str, str]

# Answers that are made at once; further questions wait. Other requests have their own threads and never wait for them.
MAX_CONCURRENT_ANSWERS = 8
# Deep searches may take minutes; with their own slots, they delay no other question.
MAX_CONCURRENT_DEEP_ANSWERS = 4
# Questions that are being answered or wait
MOST_ANSWERS = 100
# Events that are kept of an answer, for those who look later; of a longer one, the progress is not
MOST_EVENTS = 2000
_NOT_PROGRESS = ("asked", "retrieved", "sentence")
# Seconds that a question waits for a stopped answer of its conversation to be stored
_STOPPING_S = 3
# Seconds between two looks at an answer that another server makes
_LOOK_S = 1.0


class LiveAnswer:
    """An answer that is being made, with its events from the beginning. Implements AnswerCallbacks."""

    def __init__(self, asked: Asked, threads: RequestThreads) -> None:
        self.asked = asked
        self.result: asyncio.Future[schema.ChatReply] = asyncio.get_running_loop().create_future()
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._events = [schema.event("asked", asked.unanswered())]
        self._news = asyncio.Event()
        self._stopped = Event()
        self._lock = Lock()
        self._has_begun = False

    @property
    def place(self) -> tuple[str, int]:
        return self.asked.conversation, self.asked.place.turn

    def begin(self) -> None:
        """Called by the thread that answers, once it has a slot. Raises AnswerStopped if it was stopped before."""
        with self._lock:
            if self._stopped.is_set():
                raise AnswerStopped
            self._has_begun = True

    def on_event(self, kind: str, value: BaseModel) -> None:
        """Send an event to all who look. Raises as `check_cancelled`."""
        self.check_cancelled()
        self._loop.call_soon_threadsafe(self._add, schema.event(kind, value))

    def check_cancelled(self) -> None:
        """Raises AnswerStopped, and RequestCancelled once the server shuts down."""
        self._threads.check_cancelled()
        if self._stopped.is_set():
            raise AnswerStopped

    def stop(self) -> bool:
        """Stop the answer. Returns whether it has not begun: then nobody else ends it."""
        with self._lock:
            was_waiting = not (self._has_begun or self._stopped.is_set())
            self._stopped.set()
        return was_waiting

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def end(self, *last: Sent, result: schema.ChatReply | BaseException) -> None:
        """Send the last events, unless it has ended. Called in the event loop, as all below."""
        if self.result.done():
            return
        if isinstance(result, BaseException):
            self.result.set_exception(result)
            self.result.exception()  # asyncio logs exceptions that are never retrieved
        else:
            self.result.set_result(result)
        for event in last:
            self._events.append(event)
        self._tell()

    def _add(self, event: Sent) -> None:
        if not self.result.done() and (len(self._events) < MOST_EVENTS or event["event"] in _NOT_PROGRESS):
            self._events.append(event)
            self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def events(self) -> AsyncIterator[Sent]:
        """All events from the beginning, as they come. The last one is `done`, `stopped` or `error`; there is none of
        these if the server stops."""
        seen = 0
        while True:
            news = self._news
            while seen < len(self._events):
                seen += 1
                yield self._events[seen - 1]
            if self.result.done():
                return
            await news.wait()


class Answers:
    """The answers that this server makes. All of it runs in the server's event loop, but the work."""

    def __init__(self, service: Service, threads: RequestThreads) -> None:
        self._service = service
        self._questions = service.questions
        self._threads = threads
        self._live: dict[tuple[str, int], LiveAnswer] = {}
        self._renewing: asyncio.Task[None] | None = None
        self._stopping: set[asyncio.Task[None]] = set()
        self._slots = {
            "quick": CapacityLimiter(MAX_CONCURRENT_ANSWERS),
            "deep": CapacityLimiter(MAX_CONCURRENT_DEEP_ANSWERS),
        }

    @property
    def is_answering(self) -> bool:
        """Whether an answer is being made; asked by other threads too."""
        return bool(self._live)

    async def start(self, request: schema.ChatRequest, earlier: Sequence[EarlierTurn] = ()) -> tuple[str, int]:
        """Store a question and begin to answer it; returns its conversation and its turn. See Questions.begin.

        A question that was sent before is asked again, unless it has an answer or is being answered.
        """
        if (before := await _in_thread(self._questions.asked_before, request)) is not None:
            await self.start_again(*before, None)
            return before
        await self._wait_until_stopped(request.conversation)
        self._require_room()
        return self._start(await _in_thread(self._questions.begin, request, earlier))

    async def start_again(self, conversation: str, turn: int, model: str | None) -> None:
        """Ask a question again, unless it has an answer or is being answered. Raises as Questions.begin_again."""
        await self._wait_until_stopped(conversation)
        self._require_room()
        asked = await _in_thread(self._questions.begin_again, conversation, turn, model)
        if asked is not None:
            self._start(asked)

    def _start(self, asked: Asked) -> tuple[str, int]:
        live = LiveAnswer(asked, self._threads)
        if live.place not in self._live:  # else it was sent twice at once
            self._live[live.place] = live
            working = self._threads.start(self._work, live, slots=self._slots[asked.request.mode])
            working.add_done_callback(lambda done: self._finish(live, done))
            if self._renewing is None:
                self._renewing = asyncio.ensure_future(self._renew())
        return live.place

    def _work(self, live: LiveAnswer) -> schema.ChatReply:
        live.begin()
        return self._questions.answer(live.asked, live)

    def _finish(self, live: LiveAnswer, working: asyncio.Future[schema.ChatReply]) -> None:
        if working.cancelled():
            return self._end(live, RequestCancelled())
        error = working.exception()
        return self._end(live, working.result() if error is None else error)

    def _end(self, live: LiveAnswer, result: schema.ChatReply | BaseException) -> None:
        """End an answer, for all who look at it."""
        if self._live.get(live.place) is live:  # else it was stopped before it had a slot, and is asked again
            del self._live[live.place]
        if isinstance(result, schema.ChatReply):
            return live.end(*_last_events(result), result=result)
        if isinstance(result, RequestCancelled):  # whoever looks connects again
            return live.end(result=result)
        if is_stop(result):
            return live.end(schema.event("stopped", live.asked.unanswered("stopped")), result=result)
        log_internal(result)
        return live.end(error_event(self._questions.failure(live.asked, result)), result=result)

    async def result(self, conversation: str, turn: int) -> schema.ChatReply:
        """The answer of a turn, once it is there. Raises what its work raises, and Busy if it was stopped."""
        try:
            if live := self._live.get((conversation, turn)):
                return await asyncio.shield(live.result)
            found = await _in_thread(self._service.turn, conversation, turn)
            if isinstance(found, schema.ChatReply):
                return found
        except RequestCancelled:
            raise
        except AnswerStopped:
            pass
        raise Busy("This question has no answer: it was stopped.", "Ask again.")

    async def require(self, conversation: str, turn: int) -> None:
        """Raises NotKnown."""
        if (conversation, turn) not in self._live:
            await _in_thread(self._service.turn, conversation, turn)

    async def events(self, conversation: str, turn: int) -> AsyncGenerator[Sent, None]:
        """The events of a turn, as LiveAnswer.events; if another server makes the answer, or it is there, the last."""
        if live := self._live.get((conversation, turn)):
            async for event in live.events():
                yield event
            return
        first = True
        while True:
            try:
                found = await _in_thread(self._service.turn, conversation, turn)
            except FolioError as error:
                yield error_event(schema.error_body(error))
                return
            if isinstance(found, schema.ChatReply):
                for event in _last_events(found):
                    yield event
                return
            if found.state != "running":
                yield error_event(found.error) if found.error else schema.event("stopped", found)
                return
            if first:
                yield schema.event("asked", found)
                first = False
            await asyncio.sleep(_LOOK_S)

    async def viewed(self, conversation: str, turn: int, *, is_owned: bool) -> AsyncIterator[Sent]:
        """As `events`. is_owned: if its client leaves, the answer is stopped."""
        async with aclosing(self.events(conversation, turn)) as events:
            ended = False
            try:
                async for event in events:
                    ended = event["event"] in ("done", "stopped", "error")
                    yield event
            finally:
                if is_owned and not ended:
                    self.abandon(conversation, turn)

    def abandon(self, conversation: str, turn: int) -> None:
        """Stop an answer, if it is still being made, without waiting for that."""
        if (conversation, turn) not in self._live:
            return
        stopping = asyncio.ensure_future(self.stop(conversation, turn))
        self._stopping.add(stopping)  # asyncio keeps no reference
        stopping.add_done_callback(self._stopping.discard)

    async def stop(self, conversation: str, turn: int) -> None:
        """Stop an answer, which this or another server makes."""
        live = self._live.get((conversation, turn))
        if live is None:
            await _in_thread(self._service.stop_elsewhere, conversation, turn)
        elif live.stop():
            await self._end_waiting(live)

    async def _end_waiting(self, live: LiveAnswer) -> None:
        """End an answer that was stopped before it had a slot."""
        stopped = AnswerStopped()
        await _in_thread(self._questions.leave, live.asked, stopped)
        self._end(live, stopped)

    def stop_deleted(self, conversation: str) -> None:
        for live in [each for each in self._live.values() if each.asked.conversation == conversation]:
            self.abandon(*live.place)

    async def _wait_until_stopped(self, conversation: str | None) -> None:
        """A question may come just after the answer before it was stopped, which is still being stored."""
        for live in [each for each in self._live.values() if each.asked.conversation == conversation]:
            if live.is_stopped:
                await asyncio.wait([live.result], timeout=_STOPPING_S)

    def _require_room(self) -> None:
        if len(self._live) >= MOST_ANSWERS:
            raise Busy(f"{MOST_ANSWERS} questions are waiting for their answers.", "Ask again once some are answered.")

    async def _renew(self) -> None:
        """Say again and again that this server answers; stop what was stopped or deleted elsewhere."""
        try:
            while True:
                await asyncio.sleep(RENEW_S)
                live = [each for each in self._live.values() if each.asked.is_stored]
                if not self._live:
                    return
                with suppress(FolioError, OSError):  # it is said again soon
                    going_on = await _in_thread(self._service.renew_answers)
                    for each in live:
                        if each.place not in going_on and not each.result.done():
                            await self.stop(*each.place)
        finally:
            self._renewing = None

    async def close(self) -> None:
        """End what did not stop in time, so that it is asked again. Called once all threads were told to stop."""
        if self._renewing is not None:
            self._renewing.cancel()
        for live in list(self._live.values()):
            await _in_thread(self._questions.leave, live.asked, RequestCancelled())


def _last_events(reply: schema.ChatReply) -> tuple[Sent, Sent]:
    citations = schema.CitationsEvent(citations=reply.citations)
    return schema.event("citations", citations), schema.event("done", reply)


async def _in_thread(work: Callable[..., T], *arguments: Any) -> T:
    return await to_thread.run_sync(contained, work, *arguments)
