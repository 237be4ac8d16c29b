"""Threads that prepare results before they are needed, and a stopwatch for the stages of a question."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, RLock, Thread
from time import monotonic, perf_counter
from typing import Generic, TypeVar

T = TypeVar("T")

# Held while LangChain or LangGraph is imported: two threads that import parts of them in different orders wait for each
# other, and Python then lets one continue with half a module.
IMPORTING = RLock()


class SharedResult(Generic[T]):
    """The result of work that the first thread does, once, while the others wait.

    All threads get its exception. That matters for imports: a failed import leaves some modules loaded, and a second
    try fails at another place, with an error that hides the cause.
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
    """Run work in a thread. Ignores exceptions: the code that needs the result repeats the work and gets them.

    The program waits for the thread before it exits: unloading a library that is loading a model crashes.
    """

    def quietly() -> None:
        with suppress(Exception):
            work()

    Thread(target=quietly, daemon=False).start()


def leave(within_s: float) -> None:
    """End the program within these seconds, even if a thread still waits for a model that does not respond."""
    end = monotonic() + within_s
    threads = [thread for thread in threading.enumerate() if not thread.daemon and thread != threading.main_thread()]
    for thread in threads:
        thread.join(max(0.0, end - monotonic()))
    if any(thread.is_alive() for thread in threads):
        os._exit(0)  # safe: the store survives a power failure at any moment


class Stopwatch:
    """Milliseconds of each stage of a question, by name; laps of the same name add up."""

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
