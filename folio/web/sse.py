"""Events to a client that waits for something long, from the thread that works on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from threading import Event
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel

from folio.errors import FolioError
from folio.files import unusable
from folio.schema import SentenceJson
from folio.web.schema import ErrorBody, Retrieved, error_body, event

logger = logging.getLogger(__name__)

T = TypeVar("T")
Tell = Callable[[str, BaseModel], None]

# Seconds in which work stops when the server ends: a batch of passages is embedded to its end
_STOP_S = 5


class Gone(Exception):
    """Nobody waits for it any more: the client has left, or the server ends."""


class Work:
    """What threads are at for clients. It is over before the server is, which it needs to the end."""

    def __init__(self) -> None:
        self._ending = Event()
        self._at_work: set[asyncio.Future[Any]] = set()

    def begin(self, work: Callable[..., T], *arguments: object, slots: CapacityLimiter) -> asyncio.Future[T]:
        """Do it in a thread, as soon as there is a slot."""
        working = asyncio.ensure_future(to_thread.run_sync(work, *arguments, limiter=slots))
        self._at_work.add(working)
        working.add_done_callback(self._done)
        return working

    def check_cancelled(self) -> None:
        """Raises Gone when the server ends."""
        if self._ending.is_set():
            raise Gone

    async def end(self) -> None:
        """Stop it all. What does not stop in time waits for a model that says nothing, and has nothing to lose."""
        self._ending.set()
        if self._at_work:
            await asyncio.wait(self._at_work, timeout=_STOP_S)

    def _done(self, working: asyncio.Future[Any]) -> None:
        self._at_work.discard(working)
        if not working.cancelled():
            working.exception()  # looked at, or asyncio complains where nobody waits for it any more


class Client:
    """Who waits for something long: told how it goes on, from the thread that works on it."""

    def __init__(self, work: Work) -> None:
        self._all_work = work
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[dict[str, str] | None] = asyncio.Queue()
        self._gone = Event()

    def tell(self, kind: str, value: BaseModel) -> None:
        """Send an event; one who has left gets none."""
        if not self._gone.is_set():
            self._loop.call_soon_threadsafe(self._events.put_nowait, event(kind, value))

    def check_cancelled(self) -> None:
        """Raises Gone."""
        self._all_work.check_cancelled()
        if self._gone.is_set():
            raise Gone

    def retrieved(self, found: Retrieved) -> None:
        self.check_cancelled()
        self.tell("retrieved", found)

    def sentence(self, sentence: SentenceJson) -> None:
        self.check_cancelled()
        self.tell("sentence", sentence)

    def leave(self) -> None:
        self._gone.set()

    async def events(self, work: Callable[[], None], slots: CapacityLimiter) -> AsyncIterator[dict[str, str]]:
        """What is told while a thread works. One who stops listening has left."""
        self._all_work.begin(self._work, work, slots=slots)
        try:
            while (told := await self._events.get()) is not None:
                yield told
        finally:
            self.leave()

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Gone:
            pass
        except FolioError as error:
            self.tell("error", error_body(error))
        except OSError as error:
            self.tell("error", error_body(unusable(error)))
        except Exception:
            logger.exception("A request failed.")
            self.tell("error", _FAULT)
        finally:
            self._loop.call_soon_threadsafe(self._events.put_nowait, None)


_FAULT = ErrorBody(error="Folio itself failed at this.", remedy="Try again; the terminal of serve.py tells more.")
