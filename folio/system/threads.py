"""Work that runs in a thread so that its result is ready, or nearly, when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock, RLock, Thread
from time import perf_counter
from typing import Generic, TypeVar

T = TypeVar("T")

# Held while LangChain or LangGraph is imported: two threads that import parts of them in different orders would wait
# for each other, and Python then lets one go on with half a module.
IMPORTING = RLock()


class SharedResult(Generic[T]):
    """The result of work that is done once, by the first thread that asks for it; the others wait.

    What the work raises is raised to all of them. That matters for imports: one that failed leaves half of its modules
    loaded, and a second try would fail at another place, with an error that hides the cause.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._lock = Lock()
        self._result: list[T] = []  # none, or one
        self._error: Exception | None = None

    def get(self) -> T:
        with self._lock:
            if self._error is not None:
                raise self._error
            if not self._result:
                try:
                    self._result.append(self._work())
                except Exception as error:
                    self._error = error
                    raise
            return self._result[0]


def run_in_background(work: Callable[[], object]) -> None:
    """Run work in a thread. Its exceptions are ignored: the code that needs the result repeats the work and gets them.

    The program waits for the thread before it exits: tearing down a library that is loading a model crashes.
    """

    def quietly() -> None:
        with suppress(Exception):
            work()

    Thread(target=quietly, daemon=False).start()


# How long each stage of a question takes.


class Stopwatch:
    """Milliseconds per named lap; a name that is used again adds up."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.inside: dict[str, float] = {}  # the stages within one of the laps
        self._last = perf_counter()

    def skip(self) -> None:
        """Do not count the time since the last lap."""
        self._last = perf_counter()

    def lap(self, name: str) -> None:
        now = perf_counter()
        self.laps[name] = round(self.laps.get(name, 0.0) + (now - self._last) * 1000, 2)
        self._last = now
