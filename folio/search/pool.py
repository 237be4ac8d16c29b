"""A pool of retrievers for concurrent questions. Each has its own connection and indexes; all share the models.

A SQLite snapshot belongs to its connection, so threads cannot share one. Opening another takes a few milliseconds: the
indexes are memory-mapped and the models are loaded. It is kept for the next question.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from folio.search.retriever import Retriever
from folio.store.indexes import SearchIndexes
from folio.store.library import Library

# Idle readers to keep open. Each has open files, and indexes in memory.
MAX_IDLE = 8


@dataclass(frozen=True, slots=True)
class Reader:
    """A connection to the store and a retriever over it, for one question at a time."""

    library: Library
    retriever: Retriever
    identity: Hashable  # the library's identity when it was opened
    made_with: dict[str, str]  # the library's fingerprint
    made: int  # see RetrieverPool.renew


class RetrieverPool:
    """Lends a Reader to each question. Thread-safe."""

    def __init__(
        self,
        open_library: Callable[[], Library],
        make: Callable[[Library], Retriever],
        open_indexes: Callable[[Library], SearchIndexes],
    ) -> None:
        """make: loads the models and returns a retriever; called again for a new store."""
        self._open_library = open_library
        self._make = make
        self._open_indexes = open_indexes
        self._free: list[Reader] = []
        self._closed = False
        self._model_owner: Reader | None = None  # shares its models with later readers
        self._made = 0  # how often models were made again
        self._lock = Lock()

    @contextmanager
    def acquire(self) -> Iterator[Reader]:
        """A reader for one question. Raises StoreMissing, StoreMismatch and ModelError, as App.retriever does."""
        reader = self._take()
        try:
            yield reader
        except BaseException:
            reader.library.close()  # its state is unknown
            raise
        with self._lock:
            if len(self._free) < MAX_IDLE and not self._closed and reader.made == self._made:
                self._free.append(reader)
                return
        reader.library.close()

    def renew(self) -> None:
        """Make the models again for the next question: the settings have changed."""
        with self._lock:
            self._model_owner = None
            idle, self._free = self._free, []
            self._made += 1
        for reader in idle:
            reader.library.close()

    def close(self) -> None:
        """Close every idle library now, and the others when they come back."""
        with self._lock:
            self._closed = True
            for reader in self._free:
                reader.library.close()
            self._free.clear()

    def _take(self) -> Reader:
        while True:
            with self._lock:
                reader = self._free.pop() if self._free else None
            if reader is None:
                return self._open()
            try:
                is_current = self._is_current(reader)
            except BaseException:
                reader.library.close()
                raise
            if is_current:
                return reader
            reader.library.close()

    def _open(self) -> Reader:
        library = self._open_library()
        try:
            identity, made_with = library.identity(), library.fingerprint()
            with self._lock:
                owner, made = self._model_owner, self._made
            if owner is not None and (owner.identity, owner.made_with) == (identity, made_with):
                retriever = owner.retriever.with_library(library, lambda: self._open_indexes(library))
                return Reader(library, retriever, identity, made_with, made)
            reader = Reader(library, self._make(library), identity, made_with, made)
        except BaseException:
            library.close()
            raise
        with self._lock:
            if made == self._made:
                self._model_owner = reader
        return reader

    def _is_current(self, reader: Reader) -> bool:
        """Whether the store was neither replaced by another one nor rebuilt with another model."""
        identity = reader.library.identity()
        if identity is None or identity != reader.identity:
            return False
        return reader.library.fingerprint() == reader.made_with
