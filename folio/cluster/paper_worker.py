"""What one worker of a cluster does with a paper: read it in a guarded process, split it, embed it. Knows no Ray.

A PDF is read in a process of its own below the worker, under the limits that hold on one computer, so that a hostile
file ends that process and not the worker.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock

import folio
from folio import workers
from folio.errors import FolioError, StoreMismatch, UsageError
from folio.ingest import pipeline
from folio.ingest.embedding_queue import EmbeddedPaper, embed_paper
from folio.offline import go_offline
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
            paper = self._guarded.run((file, content))
            with self._embedding:
                return embed_paper(paper, self._embedder.embed_passages, self._job.batch)
        except FolioError as error:
            return error.with_traceback(None)

    def close(self) -> None:
        """Stop the process that reads PDFs."""
        self._guarded.close()


def _read(item: tuple[SourceFile, bytes], reading: Reading, seconds: float) -> NewPaper:
    """In the guarded process."""
    return pipeline.paper_of(*item, reading, seconds)
