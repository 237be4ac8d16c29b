"""Retrievers for many askers at once: each question has a connection and indexes of its own, and shares the models.

SQLite's snapshots belong to a connection, so no two threads may read through one. Opening one more takes some
milliseconds, as indexes are mapped and models are there already; it is kept for the next question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from folio.files import identity
from folio.search.retriever import Retriever
from folio.store.indexes import Indexes
from folio.store.library import Library

# Readers that stay for the next question; each has files open, and indexes in memory
KEPT = 8


@dataclass(frozen=True, slots=True)
class Reader:
    """One question's own view of the store."""

    library: Library
    retriever: Retriever
    file: tuple[int, int] | None  # device and inode of the library
    made_with: dict[str, str]  # its fingerprint


class RetrieverPool:
    """Any number of threads may take one."""

    def __init__(
        self,
        path: Path,
        make: Callable[[Library], Retriever],
        open_indexes: Callable[[Library], Indexes],
    ) -> None:
        """path: of the library. make: a retriever over a library, with its models; called again for a new store."""
        self._path = path
        self._make = make
        self._open_indexes = open_indexes
        self._free: list[Reader] = []
        self._first: Reader | None = None  # whose models the others share
        self._lock = Lock()

    @contextmanager
    def one(self) -> Iterator[Reader]:
        """A reader for the time of a question. Raises StoreMissing, StoreMismatch and ModelError, as App.retriever."""
        reader = self._taken()
        try:
            yield reader
        except BaseException:
            reader.library.close()  # whatever state it is in
            raise
        with self._lock:
            if len(self._free) < KEPT:
                self._free.append(reader)
                return
        reader.library.close()

    def close(self) -> None:
        with self._lock:
            for reader in self._free:
                reader.library.close()
            self._free.clear()

    def _taken(self) -> Reader:
        while True:
            with self._lock:
                reader = self._free.pop() if self._free else None
            if reader is None:
                return self._opened()
            if self._is_current(reader):
                return reader
            reader.library.close()

    def _opened(self) -> Reader:
        library = Library(self._path)
        try:
            file, made_with = identity(self._path), library.fingerprint()
            with self._lock:
                known = self._first
            if known is not None and (known.file, known.made_with) == (file, made_with):
                retriever = known.retriever.with_library(library, lambda: self._open_indexes(library))
                return Reader(library, retriever, file, made_with)
            reader = Reader(library, self._make(library), file, made_with)
        except BaseException:
            library.close()
            raise
        with self._lock:
            self._first = reader
        return reader

    def _is_current(self, reader: Reader) -> bool:
        """Whether the store is still the one that it was: not put in another's place, nor made with another model."""
        file = identity(self._path)
        return file is not None and file == reader.file and reader.library.fingerprint() == reader.made_with
