"""How long each stage of a question takes."""

from __future__ import annotations

from time import perf_counter


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
