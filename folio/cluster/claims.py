"""What one of several writers alone may change for now: papers, paths of files, the library itself.

Milvus has no locks and no compare-and-set, but a read with Strong sees every write that was acknowledged before it. So
a writer writes a claim of its own and then reads all claims: of two that claim the same thing, one at least sees the
other's, and whoever sees one takes its own back. A claim is renewed while it is held; one that has not changed for
EXPIRES_S under a reader's eyes is that of a writer that is gone. No clocks of two computers are compared.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

from folio.cluster.library_state import short_hash
from folio.cluster.milvus_client import Milvus
from folio.errors import FolioError, StoreBusy

# A name that nobody may have while others have any, nor while anybody else has it
LIBRARY = "the whole library"

_PREFIX = "claim."
_LIBRARY = short_hash(LIBRARY)
# Seconds between renewals; without one after which a claim is over; and that a writer waits for another's
RENEW_S, EXPIRES_S, WAIT_S = 10.0, 150.0, 165.0
# Seconds without a renewal after which a writer looks whether its own claims are still there. What it had begun to
# write by then, and repeated for MILVUS_TIMEOUT_S (60 unless it is set), has ended when they are over for others.
TRUSTED_S = 75.0
# Seconds between attempts
_AGAIN_S = 0.1
# Claims of others, by their server and key: what they said when they last said something else, and when that was
_SEEN: dict[tuple[str, str], tuple[str, float]] = {}


class Claims:
    """The claims of one writer. One thread at a time may use it."""

    def __init__(self, milvus: Milvus, collection: str, place: str, role: str) -> None:
        """place: of the writer: a computer and its folder. role: of one place and role there is one writer at a time,
        unless the role is ""; who begins then ends what the one before it has left.
        """
        self._milvus, self._collection, self._turns = milvus, collection, count()
        self._place = f"{place}.{role}"
        self._alone = bool(role)
        self._writer = f"{self._place}.{random.randbytes(8).hex()}"
        self._held: set[str] = set()  # hashes of names
        self._renewed = 0.0  # when all of them last were, at least: before that request
        self._lock = threading.Lock()  # of writing claims: a renewal must not bring back what was just released
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, names: Iterable[str]) -> bool:
        """Claim all of these things, or none if another writer has claimed one.

        Raises StoreBusy if another has claimed LIBRARY, or if claims of this writer may be over.
        """
        self._require_trusted()
        wanted = {short_hash(name) for name in names} - self._held
        if not wanted:
            return True
        if self._conflicts(wanted):
            return False
        with self._lock:
            if not self._held:
                self._renewed = time.monotonic()
            self._write(wanted)
            self._held |= wanted
        try:
            if not self._conflicts(wanted):
                self._renew()
                return True
        except BaseException:
            self._drop(wanted)
            raise
        self._drop(wanted)
        return False

    def wait_for(self, names: Iterable[str], wait_s: float | None = None) -> None:
        """Claim these things as soon as others let them go, after WAIT_S at most or wait_s. Raises StoreBusy."""
        wanted, until = list(names), time.monotonic() + (WAIT_S if wait_s is None else wait_s)
        while not self.take(wanted):
            if time.monotonic() > until:
                raise StoreBusy(
                    "Another process is changing the same part of the library.", "Run the same command again."
                )
            time.sleep(_AGAIN_S * (0.5 + random.random()))

    @contextmanager
    def holding(self, names: Iterable[str], wait_s: float | None = None) -> Iterator[None]:
        """Hold these things inside. See wait_for."""
        before = set(self._held)
        self.wait_for(names, wait_s)
        try:
            yield
        finally:
            self._drop(self._held - before)

    def release(self, names: Iterable[str]) -> None:
        """Let others have these things."""
        self._drop({short_hash(name) for name in names} & self._held)

    def close(self) -> None:
        """Let others have everything. Where Milvus does not answer, the claims expire."""
        self._stopped.set()
        try:
            self._drop(set(self._held))
        except FolioError:
            self._held.clear()

    def _drop(self, hashes: set[str]) -> None:
        if not hashes:
            return
        with self._lock:
            self._held -= hashes
            self._milvus.delete_of(self._collection, "key", [self._key(each) for each in hashes])

    def _conflicts(self, wanted: set[str]) -> bool:
        """Whether others have claimed any of these things. Raises StoreBusy if another has claimed LIBRARY."""
        others = self._others()
        if _LIBRARY in others:
            raise StoreBusy(
                "Another process is rebuilding or repairing the library, or moves one to its place.",
                "Run the same command again when it has ended.",
            )
        return bool(others) if _LIBRARY in wanted else not others.isdisjoint(wanted)

    def _require_trusted(self) -> None:
        """Raises StoreBusy if claims of this writer are gone: they were not renewed for long, and another saw that."""
        if not self._held or time.monotonic() - self._renewed <= TRUSTED_S:
            return
        keys = {self._key(each) for each in self._held}
        if len(list(self._milvus.rows_of(self._collection, "key", keys, ["key"], strong=True))) == len(keys):
            self._renew_all()
            if not self._conflicts(self._held):
                return
        with self._lock:
            self._held.clear()
        raise StoreBusy(
            "This computer was cut off from Milvus, or stood still, for minutes: others may have gone on meanwhile.",
            "Run the same command again.",
        )

    def _renew_all(self) -> None:
        with self._lock:
            if self._held:
                now = time.monotonic()
                self._write(self._held)
                self._renewed = now

    def _others(self) -> set[str]:
        """The hashes of what other writers claim. Claims of writers that are gone are deleted."""
        found, gone, now = set(), [], time.monotonic()
        rows = self._milvus.rows(self._collection, f'key like "{_PREFIX}%"', ["key", "value"], strong=True)
        there = {str(row["key"]): str(row["value"]) for row in rows}
        for key, value in there.items():
            _, name, writer = key.split(".", 2)
            if writer == self._writer:
                continue
            said, since = _SEEN.get((self._milvus.uri, key), ("", now))
            if said != value:
                _SEEN[self._milvus.uri, key] = value, now
            elif now - since > EXPIRES_S:
                gone.append(key)
                continue
            if self._alone and writer.startswith(f"{self._place}."):  # it was killed: its lock is ours
                gone.append(key)
                continue
            found.add(name)
        for _, key in [each for each in _SEEN if each[0] == self._milvus.uri and each[1] not in there]:
            del _SEEN[self._milvus.uri, key]
        self._milvus.delete_of(self._collection, "key", gone)
        return found

    def _key(self, name: str) -> str:
        return f"{_PREFIX}{name}.{self._writer}"

    def _write(self, hashes: Iterable[str]) -> None:
        value = str(next(self._turns))
        self._milvus.write(self._collection, [{"key": self._key(each), "value": value} for each in hashes])

    def _renew(self) -> None:
        """Have a thread renew the claims."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._renewing, name="claims", daemon=True)
            self._thread.start()

    def _renewing(self) -> None:
        while not self._stopped.wait(RENEW_S):
            with suppress(FolioError):  # the next time, or the writer itself will meet the error
                self._renew_all()
