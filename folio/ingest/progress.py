"""What an ingest reports: an outcome for each file, and progress while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from folio.types import SourceFile

Status = Literal["added", "replaced", "unchanged", "duplicate", "failed", "pruned"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file."""

    file: SourceFile
    status: Status
    pages: int = 0
    chunks: int = 0
    notes: tuple[str, ...] = ()  # what was odd, or why it failed and what to do


class IngestProgress(Protocol):
    """Told how an ingest goes on."""

    def hashed(self, file: Path) -> None: ...

    def planned(self, files: Sequence[SourceFile]) -> None: ...

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None: ...

    def done(self, outcome: Outcome) -> None: ...
