"""The work of a Ray worker: reads a paper in a guarded process, splits it and embeds it. Does not import Ray.

A child process of the worker reads the PDF, under the same limits as an ingest without Ray, so that a hostile file ends
that process and not the worker.
"""

from __future__ import annotations

import os
import random
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

import folio
from folio import workers
from folio.errors import FolioError, ModelError, PaperError, StoreMismatch, UsageError
from folio.ingest import pipeline
from folio.ingest.embedding_queue import EmbeddedPaper, embed_paper
from folio.ingest.scanned_pages import ScannedPages
from folio.offline import go_offline
from folio.pdf.ocr import Scan
from folio.protocols import Embedder
from folio.store.fingerprint import Reading, differences
from folio.types import NewPaper, SourceFile


@dataclass(frozen=True)
class Job:
    """The common settings of all workers of an ingest. It is sent to other computers, and contains no secret."""

    reading: Reading
    limits: pipeline.Limits
    made_with: dict[str, str]  # the identity of the embedder that the library was made with
    embedders: tuple[Callable[[], Embedder], ...]  # each makes that embedder, on a different server
    batch: int  # passages per call of the embedder
    scans: Path | None = None  # keeps the pages of scans, if this computer's processes do the work
    version: str = folio.__version__  # of Folio, on the computer that sends the papers
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class PaperWorker:
    """Reads and embeds papers, one at a time."""

    def __init__(self, job: Job) -> None:
        go_offline()
        for name in [name for name in os.environ if name.startswith("RAY_AUTH_")]:
            del os.environ[name]  # a process that reads a PDF does not need it
        self.job = job
        self._guarded = workers.PersistentWorker(
            partial(_read, reading=job.reading, seconds=job.limits.model_s),
            timeout_s=job.limits.patience_s,
            memory_mb=job.limits.memory_mb,
            cpu_s=job.limits.timeout_s,
        )
        self._place = random.randrange(len(job.embedders))  # of the current one; random, to spread workers over servers
        self._embedder: Embedder | None = None

    def read(self, file: SourceFile, content: bytes) -> EmbeddedPaper | FolioError:
        """A file's paper and vectors, or the error of the file or the embedder. content: the file's bytes."""
        try:
            if folio.__version__ != self.job.version:
                raise UsageError(
                    f"A worker of Ray has Folio {folio.__version__}, and this is {self.job.version}.",
                    "Install the same version on every computer of the cluster.",
                )
            return self._embedded(self._paper(file, content), retries=len(self.job.embedders) - 1)
        except FolioError as error:
            return error.with_traceback(None)

    def _paper(self, file: SourceFile, content: bytes) -> NewPaper:
        """A file's paper. Pages of a scan are read one by one, each under the limits of a file. Raises PaperError."""
        job = self.job
        scanning = pipeline.Scanning(ScannedPages(job.scans), lambda file, pages, of: None, job.reading, job.limits)
        for part in chain([pipeline.Part(file)], scanning):
            result: NewPaper | pipeline.Unscanned | Scan | PaperError
            try:
                result = self._guarded.run((part, content))
            except PaperError as error:
                result = error
            outcome = scanning.take(part, result)
            if isinstance(outcome, PaperError):
                raise outcome
            if outcome is not None:
                return outcome
        raise AssertionError("a file has a paper or an error")

    def _embedded(self, paper: NewPaper, retries: int) -> EmbeddedPaper:
        """Embed with the current embedder; if it fails, with the next, up to `retries` times.

        Raises ModelError, StoreMismatch.
        """
        try:
            self._embedder = self._embedder or self._new_embedder()
            return embed_paper(paper, self._embedder, self.job.batch)
        except ModelError:
            if not retries:
                raise
        self._embedder, self._place = None, (self._place + 1) % len(self.job.embedders)
        return self._embedded(paper, retries - 1)

    def _new_embedder(self) -> Embedder:
        embedder = self.job.embedders[self._place]()
        if differ := differences(self.job.made_with, embedder.identity()):
            raise StoreMismatch(
                f"A worker of Ray has another embedder than the index: its {differ[0]} differs.",
                "Give every computer of the cluster, and every server in OLLAMA_HOSTS, the same embedding model.",
            )
        return embedder

    def close(self) -> None:
        """Stop the process that reads PDFs."""
        self._guarded.close()


def _read(item: tuple[pipeline.Part, bytes], reading: Reading, seconds: float) -> NewPaper | pipeline.Unscanned | Scan:
    """Read a part of a file; runs in the guarded process."""
    return pipeline.part_of(*item, reading, seconds)


_worker: PaperWorker | None = None


def read_in_worker(job: Job, file: SourceFile, content: bytes) -> EmbeddedPaper | FolioError:
    """PaperWorker.read in a Ray process, which keeps its PaperWorker for the next papers of the job."""
    global _worker
    if _worker is None or _worker.job.id != job.id:
        if _worker is not None:
            _worker.close()
        # Otherwise the child processes would import this process's main program, and with it Ray.
        vars(sys.modules["__main__"]).pop("__file__", None)
        _worker = PaperWorker(job)
    return _worker.read(file, content)
