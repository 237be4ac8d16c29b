"""Reads, splits and embeds papers in workers of Ray, for `folio ingest --on ray`.

A child process of the worker reads the PDF, under the same limits as an ingest without Ray, so that a hostile file ends
that process and not the worker.

This is the one module that imports Ray, and only where it is used. The bytes of a paper go to a worker, and its text,
passages and vectors come back, so only this computer needs the folder of papers. A paper is a task of Ray, which
assigns it to a process, keeps the process for the next task, and reruns the task if the process ends. Only this process
adds papers to the library, so that each is added completely.
"""

from __future__ import annotations

import logging
import os
import random
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from folio.errors import (
    ClusterError,
    FolioError,
    ModelError,
    PaperBusy,
    PaperError,
    StoreMismatch,
    UsageError,
    require_packages,
)
from folio.ingest import pipeline
from folio.ingest.queue import EmbeddedPaper, embed_paper
from folio.ingest.scanned_pages import ScannedPages
from folio.papers.model import NewPaper, SourceFile
from folio.pdf.ocr import Scan
from folio.protocols import Embedder
from folio.store.fingerprint import Reading, differences
from folio.system import workers
from folio.system.files import temporary_folder
from folio.system.network import go_offline
from folio.system.workers import Finished, Woken
from folio.text import one_line
from folio.version import __version__

# Workers that may crash on one paper before it fails; the first may have crashed for another reason.
_TRIES = 3
# Bytes of Ray's object store for papers, on one computer; Ray spills the rest to the disk
_OBJECT_STORE_BYTES = 2**29
# Seconds to wait for a connection to a cluster, and between checks of other work
_CONNECT_S, _LOOK_S = 5.0, 0.5
_ALONE = "Run the same command without `--on ray`, or start Ray yourself and set RAY_ADDRESS."
_JOIN = "This computer must be one of the cluster (`ray start`), with its versions of Ray and Python, and its token."
# Ray's settings, which it reads when it is imported, and its processes inherit: no usage reports; the niceness of this
# process, because at Ray's default of 15 workers would wait for everything else; and a limit on retries of a paper that
# is too large for the memory.
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
    "RAY_task_oom_retries": str(_TRIES - 1),
}
# A Ray that this process starts listens on the loopback, which other users can reach, so it requires a secret token.
_PRIVATE = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}


class RayReader:
    """A PaperReader. It starts Ray, or connects to it, when there is a first file."""

    def __init__(self, address: str, workers: int | None, get_job: Callable[[], Job]) -> None:
        """address: of a cluster; "" starts Ray here. workers: their number; None for one per processor. get_job:
        returns the Job for the workers.

        Raises PackagesMissing without Ray.
        """
        require_packages("ray", "--on ray", "ray")
        self._address, self._workers, self._get_job = address, workers, get_job
        self._was_running = False  # whether something else in this process had started Ray, and ends it

    def __call__(
        self, files: Iterable[SourceFile], extra_futures: Callable[[], Sequence[Future[Any]]], /
    ) -> Generator[pipeline.Read, None, None]:
        """See PaperReader. Raises ClusterError, ModelError, and UsageError for workers of another version."""
        source = iter(files)
        first = next(source, None)
        if first is None:
            return
        job = self._get_job()
        with self._running() as ray:
            try:
                yield from self._results(ray, job, chain([first], source))
            except FolioError:
                raise
            except Exception as error:  # Ray's own
                missing = re.search(r"No module named '([\w.]+)'", reason := one_line(str(error)))
                raise ClusterError(
                    f"Ray has failed: {f'its workers lack the package {missing[1]}' if missing else reason[:200]}.",
                    f"Every computer of a cluster needs Folio {__version__} with requirements/ray.txt."
                    " Run the same command again; what was added is kept.",
                ) from error

    def _results(self, ray: Any, job: Job, files: Iterator[SourceFile]) -> Iterator[pipeline.Read]:
        """Keep each worker busy with one paper; yields each result when it is there."""
        workers = self._workers or max(1, int(ray.available_resources().get("CPU", 1)))
        options = {"num_cpus": 1, "max_retries": _TRIES - 1, "scheduling_strategy": "SPREAD"}
        task, shared_job = ray.remote(**options)(read_in_worker), ray.put(job)
        pending: dict[Any, SourceFile] = {}  # the reference to a result -> its file
        try:
            while True:
                while len(pending) < workers and (file := next(files, None)) is not None:
                    try:
                        content = pipeline.checked_content(file, job.limits.max_file_mb)
                    except PaperError as error:
                        yield Finished(file, error)
                    else:
                        pending[task.remote(shared_job, file, content)] = file
                if not pending:
                    return
                ready, _ = ray.wait([*pending], timeout=_LOOK_S)
                if not ready:
                    yield Woken()
                for reference in ready:
                    yield Finished(pending.pop(reference), _result(ray, reference))
        finally:
            # Ray's end ends its workers. A task that is cancelled just before may abort this process: if Ctrl-C has
            # stopped its worker, too, Ray finds the worker's reply to be to no task.
            for reference in pending if self._was_running else ():
                with suppress(Exception):
                    ray.cancel(reference, force=True)

    @contextmanager
    def _running(self) -> Iterator[Any]:
        """Ray's module, after starting Ray here or connecting to it, unless this process has already done so."""
        os.environ.update(_SETTINGS if self._address else _SETTINGS | _PRIVATE)
        with ExitStack() as stack:
            with _quiet():
                import ray
            self._was_running = ray.is_initialized()
            if self._was_running:
                yield ray
                return
            handler = signal.getsignal(signal.SIGTERM)  # Ray sets its own
            options: dict[str, Any] = {"address": self._reachable()} if self._address else self._own(stack)
            # Workers import Folio from its folder here. Without _client_job, they would search the current folder
            # first, which may contain files of other people.
            root = str(Path(__file__).parents[2])
            config = ray.job_config.JobConfig(_client_job=True, _py_driver_sys_path=[root])
            stack.callback(ray.shutdown)
            try:
                with _quiet():
                    ray.init(**options, job_config=config, log_to_driver=False, logging_level=logging.CRITICAL + 1)
            except Exception as error:  # Ray's own, gRPC's, and those of its processes
                problem = f"Ray at {self._address} cannot be used" if self._address else "Ray could not be started"
                reason = one_line(str(error))[:200]
                raise ClusterError(f"{problem}: {reason}.", _JOIN if self._address else _ALONE) from error
            if handler is not None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)
            yield ray

    def _own(self, stack: ExitStack) -> dict[str, Any]:
        """Options for starting Ray here. Closing the stack deletes Ray's files."""
        folder = stack.enter_context(temporary_folder("folio-ray-"))
        if len(str(folder)) > 40:  # it will contain sockets, whose paths may have at most 107 characters
            folder = Path(tempfile.mkdtemp(prefix="folio-ray-", dir="/tmp"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return {
            "address": "local",  # otherwise it would join a cluster started here by `ray start`
            "num_cpus": self._workers or min(8, os.cpu_count() or 1),
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": str(folder),
        }

    def _reachable(self) -> str:
        """The address. Raises ClusterError if it accepts no connection: Ray itself would wait for minutes."""
        match = re.fullmatch(r"\[?([\w.:-]+?)\]?:(\d{1,5})", self._address)
        if not match:
            raise ClusterError(
                f"RAY_ADDRESS is {self._address!r}, which is not the address of a cluster.",
                "Set it to host:port, as `ray start --head` says.",
            )
        try:
            socket.create_connection((match[1], int(match[2])), _CONNECT_S).close()
        except (OSError, OverflowError) as error:
            raise ClusterError(
                f"Ray at {self._address} does not answer.",
                "Check RAY_ADDRESS and that the cluster is running, or unset it for a Ray on this computer.",
            ) from error
        return self._address


def _result(ray: Any, reference: Any) -> EmbeddedPaper | PaperError:
    """The result of a worker for a paper. Raises errors that end the ingest."""
    errors = ray.exceptions
    try:
        result: EmbeddedPaper | FolioError = ray.get(reference)
    except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError, errors.ObjectLostError):
        return PaperBusy(
            f"{_TRIES} workers of Ray crashed while they read the file.",
            "Their computers may have run out of memory: run the command again with fewer workers (--jobs).",
        )
    if isinstance(result, EmbeddedPaper):  # copies its vectors out of Ray's memory
        return EmbeddedPaper(result.paper, {digest: row.copy() for digest, row in result.vectors.items()})
    if isinstance(result, PaperError):
        return result
    raise result


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide Ray's warnings, and what its libraries write to stderr."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as null, warnings.catch_warnings(action="ignore"):
            os.dup2(null.fileno(), 2)
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


@dataclass(frozen=True)
class Job:
    """The common settings of all workers of an ingest. It is sent to other computers, and contains no secret."""

    reading: Reading
    limits: pipeline.Limits
    made_with: dict[str, str]  # the identity of the embedder that the library was made with
    embedders: tuple[Callable[[], Embedder], ...]  # each makes that embedder, on a different server
    batch: int  # passages per call of the embedder
    scans: Path | None = None  # keeps the pages of scans, if this computer's processes do the work
    version: str = __version__  # of Folio, on the computer that sends the papers
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
            if __version__ != self.job.version:
                raise UsageError(
                    f"A worker of Ray has Folio {__version__}, and this is {self.job.version}.",
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
