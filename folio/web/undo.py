"""What people deleted or changed last, and how to put it back.

It is kept in memory, for what a person deletes is overwritten on disk. A restart of the server forgets it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Annotated

from fastapi import Query

from folio.errors import FolioError, NotKnown

MOST = 200  # keys; each page can undo its last change only
KEPT_S = 24 * 3600  # as long as removed papers can be brought back
PutBack = Callable[[], object]
UNDO = "^[0-9a-f]{16}$"
_UNDO = "Chosen by the client, at random: the change can be undone with it by `POST /undo/{key}`, for a day at most."
UndoKey = Annotated[str | None, Query(pattern=UNDO, description=_UNDO)]


class Undo:
    """Thread-safe. A key, which the client chooses, stands for all changes that were made with it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, list[PutBack]]] = OrderedDict()
        self._lock = Lock()

    def keep(self, key: str | None, put_back: PutBack) -> None:
        """Keep how to undo a change that was just made; without a key it cannot be undone."""
        with self._lock:
            while self._kept and (len(self._kept) > MOST or self._oldest() < monotonic() - KEPT_S):
                self._kept.popitem(last=False)
            if key is not None:
                self._kept.setdefault(key, (monotonic(), []))[1].append(put_back)

    def _oldest(self) -> float:
        return next(iter(self._kept.values()))[0]

    def run(self, key: str) -> None:
        """Undo the changes of a key, the last first. Those that fail can be tried again; the first error is raised.

        Raises NotKnown if nothing is kept under the key.
        """
        with self._lock:
            since, changes = self._kept.pop(key, (0.0, []))
        if not changes or since < monotonic() - KEPT_S:
            raise NotKnown(
                "This can no longer be undone.", "Changes are kept for a day, and until the server is started again."
            )
        failed: list[PutBack] = []
        first: FolioError | None = None
        for put_back in reversed(changes):
            try:
                put_back()
            except FolioError as error:
                first = first or error
                failed.insert(0, put_back)
        if first is not None:
            with self._lock:
                self._kept[key] = since, failed
            raise first
