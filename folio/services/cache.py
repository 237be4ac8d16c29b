"""Answers of the services on disk: one file for each address, for a day without asking, later to ask if it changed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from folio.system.files import open_regular, write_text

# The time, and waiting: given to whatever keeps rates or ages, so that a test can hold the clock.

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


FRESH_S = 24 * 3600
_KEPT_S = 30 * 24 * 3600
_LARGEST = 64 * 2**20  # bytes of a file; what is larger was not written here


class Reply(BaseModel):
    """What a service answered."""

    model_config = ConfigDict(frozen=True, strict=True)

    url: str  # without keys and mail addresses
    status: int
    text: str
    etag: str = ""
    modified: str = ""  # Last-Modified, as the service wrote it
    stored: float = Field(default=0.0, allow_inf_nan=False)  # seconds since 1970


class ResponseCache:
    """The replies in a folder, which need not exist yet."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def get(self, url: str) -> Reply | None:
        """The reply to an address, of any age; None if there is none that can be read."""
        try:
            with open_regular(self._path(url)) as file:
                data = file.read(_LARGEST + 1)
            found = Reply.model_validate_json(data) if len(data) <= _LARGEST else None
        except (OSError, ValidationError):
            return None
        return found if found is not None and found.url == url else None

    def is_fresh(self, reply: Reply) -> bool:
        """Whether a reply is less than a day old."""
        return 0 <= self._clock.now() - reply.stored < FRESH_S

    def put(self, reply: Reply) -> Reply:
        """Keep a reply, as of now. Raises OSError, DiskFull."""
        kept = reply.model_copy(update={"stored": self._clock.now()})
        write_text(self._path(reply.url), kept.model_dump_json())
        return kept

    def drop_old(self) -> None:
        """Remove the files that nobody has asked for in a month."""
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            try:
                if self._clock.now() - path.stat().st_mtime > _KEPT_S:
                    path.unlink()
            except OSError:  # another process was faster
                continue

    def _path(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode('utf-8', 'replace')).hexdigest()}.json"
