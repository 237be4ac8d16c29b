"""The time, and waiting: given to whatever keeps rates or ages, so that a test can hold the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

_STEP_S = 0.2  # of a wait that can be cancelled


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""

    def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class CancellableClock(SystemClock):
    """The system's clock, with waits that end when `check` raises."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check

    def sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._check()
            time.sleep(min(left, _STEP_S))
