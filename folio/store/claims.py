"""Which of several writers of a library adds a paper."""

from __future__ import annotations

from typing import Protocol

from folio.papers.model import SourceFile


class Claims(Protocol):
    """The papers that one writer alone may add, until it releases them or ends."""

    def claim(self, file: SourceFile, *, is_known: bool = False) -> bool:
        """Whether this writer may add this file's paper.

        False if another writer is adding it, or has added it. is_known: the paper was in the library before.
        """
        ...

    def release(self, file: SourceFile) -> None:
        """Give up the claim to a file."""
        ...


class OneWriter:
    """The claims of a writer that has the library alone: a lock keeps the others out."""

    def claim(self, file: SourceFile, *, is_known: bool = False) -> bool:
        return True

    def release(self, file: SourceFile) -> None:
        pass
