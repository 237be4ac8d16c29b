"""Caches replies of the services on disk, one file for each address, and the clock that cache and rate limits share.

A reply is used without a request for a day; after that the service is asked whether it changed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from folio.system.files import open_regular, write_text

FRESH_S = 24 * 3600
_KEPT_S = 30 * 24 * 3600
_LARGEST = 64 * 2**20  # bytes of a file; Folio writes no larger ones
_STEP_S = 0.2  # between two checks while waiting


class Clock(Protocol):
    """The time and waiting; tests supply their own."""

    def now(self) -> float:
        """Seconds since 1970."""

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class CancellableClock(SystemClock):
    """The system's clock; `check` can raise to end a wait."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check

    def sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._check()
            time.sleep(min(left, _STEP_S))


class Reply(BaseModel):
    """A reply of a service."""

    model_config = ConfigDict(frozen=True, strict=True)

    url: str  # without keys and mail addresses
    status: int
    text: str
    etag: str = ""
    modified: str = ""  # the Last-Modified header, verbatim
    stored: float = Field(default=0.0, allow_inf_nan=False)  # seconds since 1970


class ResponseCache:
    """The replies in a folder; the folder need not exist yet."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def get(self, url: str) -> Reply | None:
        """The cached reply to an address, whatever its age; None if there is no readable one."""
        try:
            with open_regular(self._path(url)) as file:
                data = file.read(_LARGEST + 1)
            reply = Reply.model_validate_json(data) if len(data) <= _LARGEST else None
        except (OSError, ValidationError):
            return None
        return reply if reply is not None and reply.url == url else None

    def is_fresh(self, reply: Reply) -> bool:
        """Whether a reply is less than a day old."""
        return 0 <= self._clock.now() - reply.stored < FRESH_S

    def put(self, reply: Reply) -> Reply:
        """Store a reply with the present time. Raises OSError, DiskFull."""
        stored = reply.model_copy(update={"stored": self._clock.now()})
        write_text(self._path(reply.url), stored.model_dump_json())
        return stored

    def drop_old(self) -> None:
        """Delete replies stored more than a month ago."""
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            try:
                if self._clock.now() - path.stat().st_mtime > _KEPT_S:
                    path.unlink()
            except OSError:  # another process deleted it first
                continue

    def _path(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode('utf-8', 'replace')).hexdigest()}.json"
