"""What one worker of a cluster does with a paper: read it in a guarded process, split it, embed it. Knows no Ray.

A PDF is read in a process of its own below the worker, under the limits that hold on one computer, so that a hostile
file ends that process and not the worker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock

import folio
from folio import workers
from folio.errors import FolioError, PaperError, StoreMismatch, UsageError
from folio.ingest import pipeline
from folio.ingest.embedding_queue import EmbeddedPaper, embed_paper
from folio.ingest.progress import Outcome
from folio.ingest.scanned_pages import FOLDER, ScannedPages
from folio.offline import go_offline
from folio.pdf.ocr import Scan
from folio.protocols import Embedder
from folio.store.fingerprint import Reading, differences
from folio.types import NewPaper, SourceFile


@dataclass(frozen=True)
class Job:
    """What all workers of an ingest do. It is sent to other computers, and holds no secret."""

    reading: Reading
    limits: pipeline.Limits
    made_with: dict[str, str]  # the identity of the embedder that the library was made with
    embedder: Callable[[int], Embedder]  # makes the embedder of the worker with this number
    batch: int  # passages per call of the embedder
    store: Path | None = None  # the store's folder, if this computer's processes do the work: pages of scans are kept


class PaperWorker:
    """Reads and embeds papers. Two threads at a time may use it: one paper is read while another is embedded."""

    def __init__(self, job: Job, number: int) -> None:
        """number: of this worker, from 0."""
        go_offline()
        for name in [name for name in os.environ if name.startswith("RAY_AUTH_")]:
            del os.environ[name]  # a process that reads a PDF has no use for it
        limits = job.limits
        self._job, self._number = job, number
        self._guarded = workers.PersistentWorker(
            partial(_read, reading=job.reading, seconds=limits.model_s),
            timeout_s=limits.patience_s,
            memory_mb=limits.memory_mb,
            cpu_s=limits.timeout_s,
        )
        self._embedder: Embedder | None = None
        self._embedding = Lock()

    def start(self, version: str) -> FolioError | None:
        """Get ready; what is wrong, if anything is. version: of Folio, on the computer that sends the papers."""
        if folio.__version__ != version:
            return UsageError(
                f"A worker of Ray has Folio {folio.__version__}, and this is {version}.",
                "Install the same version on every computer of the cluster.",
            )
        try:
            self._embedder = embedder = self._job.embedder(self._number)
            if other := differences(self._job.made_with, embedder.identity()):
                return StoreMismatch(
                    f"The embedder of a worker of Ray is another one: its {other[0]} is not the one of the index.",
                    "Give every computer of the cluster the same embedding model.",
                )
        except FolioError as error:
            return error.with_traceback(None)
        return None

    def read(self, file: SourceFile, content: bytes) -> EmbeddedPaper | FolioError:
        """A file's paper and vectors, or what went wrong with the file or the embedder. content: the file's bytes."""
        assert self._embedder is not None, "start comes first"
        try:
            paper = self._paper(file, content)
            with self._embedding:
                return embed_paper(paper, self._embedder, self._job.batch)
        except FolioError as error:
            return error.with_traceback(None)

    def _paper(self, file: SourceFile, content: bytes) -> NewPaper:
        """A file's paper. Pages of a scan are read one by one, each under the limits of a file. Raises PaperError."""
        folder = self._job.store and self._job.store / FOLDER
        scanning = pipeline.Scanning(ScannedPages(folder), _NoProgress(), self._job.reading, self._job.limits)
        for part in chain([pipeline.Part(file)], scanning):
            result: NewPaper | pipeline.Unscanned | Scan | PaperError
            try:
                result = self._guarded.run((part, content))
            except PaperError as error:
                result = error
            found = scanning.take(part, result)
            if isinstance(found, PaperError):
                raise found
            if found is not None:
                return found
        raise AssertionError("a file has a paper or an error")

    def close(self) -> None:
        """Stop the process that reads PDFs."""
        self._guarded.close()


def _read(item: tuple[pipeline.Part, bytes], reading: Reading, seconds: float) -> NewPaper | pipeline.Unscanned | Scan:
    """In the guarded process."""
    return pipeline.part_of(*item, reading, seconds)


class _NoProgress:
    """An IngestProgress that nobody looks at."""

    def hashed(self, file: Path) -> None: ...

    def planned(self, files: Sequence[SourceFile]) -> None: ...

    def scanned(self, file: SourceFile, pages: int, of: int) -> None: ...

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None: ...

    def done(self, outcome: Outcome) -> None: ...
