"""What an ingest reports: progress while it runs, and an outcome for each file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from folio.types import SourceFile

Status = Literal["added", "replaced", "unchanged", "duplicate", "failed", "pruned"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one file."""

    file: SourceFile
    status: Status
    pages: int = 0
    chunks: int = 0
    notes: tuple[str, ...] = ()  # its problems, or why it failed and what to do


class IngestProgress(Protocol):
    """Receives the progress of an ingest."""

    def hashed(self, file: Path) -> None: ...

    def planned(self, files: Sequence[SourceFile]) -> None: ...

    def scanned(self, file: SourceFile, pages: int, of: int) -> None:
        """OCR has read `pages` of a scan's `of` pages, in this run or before."""
        ...

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None: ...

    def done(self, outcome: Outcome) -> None: ...
