"""The progress of an ingest, in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from folio.console import errors
from folio.ingest.discovery import Outcome
from folio.papers.model import SourceFile
from folio.shown_text import name_line

_READING = "Reading and embedding"


class IngestProgressBar:
    """A progress bar: bytes of PDF processed, papers, pages, chunks and time left. Silent on a pipe."""

    def __init__(self, files: int) -> None:
        self._progress: Progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeRemainingColumn(),
            console=errors(),
            transient=True,
            disable=not errors().is_terminal,
        )
        self._task: TaskID = self._progress.add_task("Hashing", total=files, counts="")
        self._sizes: dict[str, float] = {}
        self._counts: Counter[str] = Counter()
        self.added = 0
        self.scan = ""  # the page that OCR is reading: "page 3 of 9 of scan.pdf"

    def __enter__(self) -> IngestProgressBar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._progress.stop()

    def hashed(self, file: Path) -> None:
        self._progress.advance(self._task)

    def planned(self, files: Sequence[SourceFile]) -> None:
        self._sizes = {file.path: Path(file.path).stat().st_size for file in files if Path(file.path).exists()}
        total = sum(self._sizes.values())
        self._progress.reset(self._task, total=total, description=_READING, counts="")

    def scanned(self, file: SourceFile, pages: int, of: int) -> None:
        self.scan = f"page {pages} of {of} of {name_line(file.name)}" if pages < of else ""
        description = f"Reading by OCR: {self.scan}" if self.scan else _READING
        self._progress.update(self._task, description=description)

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None:
        self._counts["chunks"] += chunks
        share = self._sizes.get(file.path, 0) * chunks / of
        self._progress.update(self._task, advance=share, counts=self._text())

    def done(self, outcome: Outcome) -> None:
        self._counts["pages"] += outcome.pages
        if outcome.status in ("added", "replaced"):
            self.added += 1
        elif outcome.status == "failed":
            self._progress.advance(self._task, self._sizes.get(outcome.file.path, 0))
        self._progress.update(self._task, counts=self._text())

    def _text(self) -> str:
        return f"{self.added} papers, {self._counts['pages']} pages, {self._counts['chunks']} passages"
