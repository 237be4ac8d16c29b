"""What a worker of Ray does with a paper: read it in a guarded process, split it, embed it. Knows no Ray.

A PDF is read in a process of its own below the worker, under the limits that hold on one computer, so that a hostile
file ends that process and not the worker.
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
    """What all workers of an ingest do. It is sent to other computers, and holds no secret."""

    reading: Reading
    limits: pipeline.Limits
    made_with: dict[str, str]  # the identity of the embedder that the library was made with
    embedders: tuple[Callable[[], Embedder], ...]  # each makes that embedder: on one server, or on another
    batch: int  # passages per call of the embedder
    scans: Path | None = None  # keeps the pages of scans, if this computer's processes do the work
    version: str = folio.__version__  # of Folio, on the computer that sends the papers
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class PaperWorker:
    """Reads and embeds papers, one at a time."""

    def __init__(self, job: Job) -> None:
        go_offline()
        for name in [name for name in os.environ if name.startswith("RAY_AUTH_")]:
            del os.environ[name]  # a process that reads a PDF has no use for it
        self.job = job
        self._guarded = workers.PersistentWorker(
            partial(_read, reading=job.reading, seconds=job.limits.model_s),
            timeout_s=job.limits.patience_s,
            memory_mb=job.limits.memory_mb,
            cpu_s=job.limits.timeout_s,
        )
        self._place = random.randrange(len(job.embedders))  # of the one in use: workers are spread over the servers
        self._embedder: Embedder | None = None

    def read(self, file: SourceFile, content: bytes) -> EmbeddedPaper | FolioError:
        """A file's paper and vectors, or what went wrong with the file or the embedder. content: the file's bytes."""
        try:
            if folio.__version__ != self.job.version:
                raise UsageError(
                    f"A worker of Ray has Folio {folio.__version__}, and this is {self.job.version}.",
                    "Install the same version on every computer of the cluster.",
                )
            return self._embedded(self._paper(file, content), others=len(self.job.embedders) - 1)
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
            found = scanning.take(part, result)
            if isinstance(found, PaperError):
                raise found
            if found is not None:
                return found
        raise AssertionError("a file has a paper or an error")

    def _embedded(self, paper: NewPaper, others: int) -> EmbeddedPaper:
        """By the embedder in use; where it fails, by one of so many others. Raises ModelError, StoreMismatch."""
        try:
            self._embedder = self._embedder or self._new_embedder()
            return embed_paper(paper, self._embedder, self.job.batch)
        except ModelError:
            if not others:
                raise
        self._embedder, self._place = None, (self._place + 1) % len(self.job.embedders)
        return self._embedded(paper, others - 1)

    def _new_embedder(self) -> Embedder:
        found = self.job.embedders[self._place]()
        if other := differences(self.job.made_with, found.identity()):
            raise StoreMismatch(
                f"The embedder of a worker of Ray is another one: its {other[0]} is not the one of the index.",
                "Give every computer of the cluster, and every server in OLLAMA_HOSTS, the same embedding model.",
            )
        return found

    def close(self) -> None:
        """Stop the process that reads PDFs."""
        self._guarded.close()


def _read(item: tuple[pipeline.Part, bytes], reading: Reading, seconds: float) -> NewPaper | pipeline.Unscanned | Scan:
    """In the guarded process."""
    return pipeline.part_of(*item, reading, seconds)


_worker: PaperWorker | None = None


def read_in_worker(job: Job, file: SourceFile, content: bytes) -> EmbeddedPaper | FolioError:
    """PaperWorker.read in a process of Ray, which keeps its worker for the next papers of the job."""
    global _worker
    if _worker is None or _worker.job.id != job.id:
        if _worker is not None:
            _worker.close()
        # The processes that read PDFs would import the program of this one, and so Ray.
        vars(sys.modules["__main__"]).pop("__file__", None)
        _worker = PaperWorker(job)
    return _worker.read(file, content)
