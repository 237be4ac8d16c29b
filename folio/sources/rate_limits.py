"""How often each host is asked: sliding windows of pyrate-limiter, kept with a clock that is given."""

from __future__ import annotations

from pyrate_limiter import InMemoryBucket, Rate, RateItem

from folio.sources.clock import Clock


class RateLimits:
    """Waits until a request may be sent. Pyrate's own Limiter waits by the system's clock alone, so it is not used."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[str, InMemoryBucket] = {}

    def wait(self, lane: str, rate: tuple[int, float]) -> None:
        """Wait for a turn. lane: requests of different lanes do not wait for each other.

        rate: so many requests in so many seconds; the first one of a lane counts.
        """
        requests, seconds = rate
        if lane not in self._windows:
            self._windows[lane] = InMemoryBucket([Rate(requests, round(seconds * 1000))])
        window = self._windows[lane]
        while not window.put(turn := RateItem(lane, int(self._clock.now() * 1000))):
            wait_ms = window.waiting(turn)
            assert isinstance(wait_ms, int)
            self._clock.sleep(max(1, wait_ms) / 1000)
