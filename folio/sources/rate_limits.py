"""How often each host is asked: sliding windows of pyrate-limiter, with a clock that is given."""

from __future__ import annotations

from threading import Lock

from pyrate_limiter import InMemoryBucket, Rate, RateItem

from folio.sources.clock import Clock


class RateLimits:
    """Waits until a request may be sent; thread-safe, so that the clients of one process can share it.

    Pyrate's own Limiter waits by the system's clock alone, so it is not used.
    """

    def __init__(self) -> None:
        self._windows: dict[str, InMemoryBucket] = {}
        self._lock = Lock()

    def wait(self, lane: str, rate: tuple[int, float], clock: Clock) -> None:
        """Wait for a turn. lane: requests of different lanes do not wait for each other.

        rate: so many requests in so many seconds; the first one of a lane counts.
        """
        while wait_ms := self._ms_to_wait(lane, rate, clock):
            clock.sleep(wait_ms / 1000)

    def _ms_to_wait(self, lane: str, rate: tuple[int, float], clock: Clock) -> int:
        """0 if the turn is taken; else the milliseconds after which to ask again, 1 or more."""
        requests, seconds = rate
        with self._lock:
            if lane not in self._windows:
                self._windows[lane] = InMemoryBucket([Rate(requests, round(seconds * 1000))])
            window = self._windows[lane]
            if window.put(turn := RateItem(lane, int(clock.now() * 1000))):
                return 0
            wait_ms = window.waiting(turn)
        assert isinstance(wait_ms, int)
        return max(1, wait_ms)
