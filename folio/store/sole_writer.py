"""A library that one process at a time writes: whoever holds the writer lock need not claim what it changes."""

from __future__ import annotations

from folio.types import SourceFile


class SoleWriter:
    """The part of PaperStore that several writers need."""

    def claim(self, file: SourceFile, *, is_known: bool = False) -> bool:
        """See PaperStore."""
        return True

    def release(self, file: SourceFile) -> None:
        """See PaperStore."""
