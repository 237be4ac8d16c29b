"""Adds numbered papers to a library in PostgreSQL in a thread, and knows which of them were acknowledged."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import replace

from folio.errors import StoreError
from folio.shared.postgres import PostgresDatabase
from folio.shared.store import SharedLibrary
from folio.store.library import Library
from tests.helpers.engines import TEXT, add, paper

# More in one run than any kill explains: it would go on for ever
_MOST_ERRORS = 1000


def number_of(paper_id: str) -> int:
    return int(paper_id[:8])


def add_numbered(library: Library, number: int) -> None:
    add(library, f"{number}.pdf", replace(paper("a", f"{TEXT}{number}"), id=f"{number:08}" + "a" * 56))


def open_library(url: str, *, create: bool = False) -> SharedLibrary:
    return SharedLibrary(PostgresDatabase(url, create=create), "author-year")


class Adder:
    """Adds papers by their numbers in a thread, and notes each that was acknowledged; after an error again."""

    def __init__(self, url: str) -> None:
        self.acknowledged: list[int] = []
        self.errors: list[StoreError] = []
        self._url, self._ends = url, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failure: BaseException | None = None

    def __enter__(self) -> Adder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def wait_for(self, more: int) -> None:
        """Until so many more were acknowledged."""
        wanted = len(self.acknowledged) + more
        while len(self.acknowledged) < wanted and self.failure is None:
            assert len(self.errors) < _MOST_ERRORS, self.errors[-1].happened[:200]
            time.sleep(0.005)

    def _run(self) -> None:
        try:
            with closing(open_library(self._url)) as library:
                number = 0
                while not self._ends.is_set():
                    try:
                        add_numbered(library, number)
                    except StoreError as error:
                        self.errors.append(error)
                        if len(self.errors) >= _MOST_ERRORS:  # it never ends: wait_for says so
                            return
                        continue
                    self.acknowledged.append(number)
                    number += 1
        except BaseException as error:
            self.failure = error
