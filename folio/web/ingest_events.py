"""The progress of ingesting one file, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from folio.ingest.progress import Outcome
from folio.types import SourceFile

Stage = Literal["reading", "embedding"]


class StageProgress:
    """Reports a stage, how much of it is done, and of how much. Implements IngestProgress."""

    def __init__(self, report: Callable[[Stage, int, int], None], check_cancelled: Callable[[], None]) -> None:
        """check_cancelled: called before each report; raises to cancel."""
        self._report = report
        self._check_cancelled = check_cancelled
        self._chunks = 0

    def hashed(self, file: Path) -> None: ...

    def planned(self, files: Sequence[SourceFile]) -> None:
        self._check_cancelled()
        self._report("reading", 0, len(files))

    def scanned(self, file: SourceFile, pages: int, of: int) -> None:
        self._check_cancelled()
        self._report("reading", pages, of)

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None:
        self._check_cancelled()
        self._chunks += chunks
        self._report("embedding", self._chunks, of)

    def done(self, outcome: Outcome) -> None: ...
