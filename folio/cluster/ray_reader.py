"""Reads and embeds papers in workers of Ray, for `folio ingest --on ray`. The one module that imports Ray.

The bytes of a paper go to a worker, and its text, passages and vectors come back, so no computer needs the folder of
papers but this one. At most two papers a worker and _IN_FLIGHT_BYTES are away at a time. This process alone puts papers
into the library, so that each lands whole, whichever worker ends in the middle of one.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import folio
from folio.cluster.paper_worker import Job, PaperWorker
from folio.cluster.ray_environment import quiet, settings
from folio.errors import ClusterError, FolioError, PaperBusy, PaperError
from folio.ingest import pipeline
from folio.ingest.embedding_queue import EmbeddedPaper
from folio.temporary import temporary_folder
from folio.types import SourceFile
from folio.workers import Finished, Woken

# Papers at a worker: one is read while another is embedded
_AT_A_WORKER = 2
# Bytes of PDFs that are away at a time, besides a single larger one; Ray's own memory for them on one computer
_IN_FLIGHT_BYTES = 2**28
_OBJECT_STORE_BYTES = 2**29
# Workers that may end over one paper, which may be innocent the first time: another was there as well.
_TRIES = 3
# Seconds that a cluster may take to accept a connection; and to give a worker a processor
_CONNECT_S, _FREE_S = 5.0, 120.0
# Seconds between looks at what is done elsewhere
_LOOK_S = 0.5
_MISSING = "Install them: pip install -r requirements-cluster.txt, or pip install 'folio-papers[cluster]'."


@dataclass(slots=True)
class _Sent:
    """A paper at a worker."""

    file: SourceFile
    content: Any  # a reference to its bytes in Ray
    size: int
    tries: int
    worker: _Worker


@dataclass(eq=False, slots=True)
class _Worker:
    """A worker and what it has to do."""

    actor: Any
    number: int
    sent: set[Any] = field(default_factory=set)
    is_ready: bool = False

    def has_room(self, tries: int, papers: dict[Any, _Sent]) -> bool:
        """Whether it may be given a paper. One over which a worker ended is given to one that has no other."""
        if not self.is_ready or any(papers[each].tries for each in self.sent):
            return False
        return not self.sent if tries else len(self.sent) < _AT_A_WORKER


class RayReader:
    """A PaperReader. Ray is started, or connected to, when there is a first file."""

    def __init__(self, address: str, workers: int | None, get_job: Callable[[], Job]) -> None:
        """address: of a cluster; "" starts Ray here. workers: None for one a processor. get_job: see paper_worker.Job.

        Raises ClusterError without Ray's package.
        """
        self._address, self._workers, self._get_job = address, workers, get_job
        self.most_bytes = 0  # of PDFs that were away at a time
        if find_spec("ray") is None:
            raise ClusterError("--on ray needs packages that are not installed: ray.", _MISSING)

    def __call__(
        self, files: Iterable[SourceFile], extra_futures: Callable[[], Sequence[Future[Any]]], /
    ) -> Generator[pipeline.Read, None, None]:
        """See PaperReader. Raises ClusterError, ModelError, and UsageError for workers of another version."""
        source = iter(files)
        first = next(source, None)
        if first is None:
            return
        job = self._get_job()
        with self._running() as ray, closing(_Run(ray, job, chain([first], source), extra_futures)) as run:
            try:
                free = int(ray.available_resources().get("CPU", 1))
                yield from run.results(self._workers or max(1, free))
            except FolioError:
                raise
            except Exception as error:  # Ray's own
                raise ClusterError(
                    f"Ray has failed: {' '.join(str(error).split())[:200]}.",
                    "Run the same command again; what was added is kept.",
                ) from error
            finally:
                self.most_bytes = max(self.most_bytes, run.most_bytes)

    @contextmanager
    def _running(self) -> Iterator[Any]:
        """Ray's module, with Ray started here, connected to, or found running in this process."""
        is_own = not self._address
        with ExitStack() as stack:
            stack.enter_context(settings(is_own=is_own))
            with quiet():
                import ray
            if ray.is_initialized():
                yield ray
                return
            handler = signal.getsignal(signal.SIGTERM)  # Ray sets its own
            options: dict[str, Any] = self._own(stack) if is_own else {"address": self._reachable()}
            # Workers import Folio from where it is here. Without _client_job, Ray has them look in the current folder
            # first, which may be one of papers that somebody else has filled.
            root = str(Path(folio.__file__).parents[1])
            config = ray.job_config.JobConfig(_client_job=True, _py_driver_sys_path=[root])
            stack.callback(ray.shutdown)
            try:
                with quiet():
                    ray.init(**options, job_config=config, log_to_driver=False, logging_level=logging.CRITICAL + 1)
            except Exception as error:  # its own, gRPC's, and those of what it starts
                raise self._unusable(error, ray) from error
            if handler is not None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)
            yield ray

    def _own(self, stack: ExitStack) -> dict[str, Any]:
        """Options of a Ray of this process's own, whose files and settings are gone when the stack is closed."""
        # Sockets lie in it, and their paths may have 107 characters.
        folder = stack.enter_context(temporary_folder("folio-ray-"))
        if len(str(folder)) > 40:
            folder = Path(tempfile.mkdtemp(prefix="folio-ray-", dir="/tmp"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return {
            "address": "local",  # or it would join what `ray start` has left here
            "num_cpus": self._workers or min(8, os.cpu_count() or 1),
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": str(folder),
        }

    def _reachable(self) -> str:
        """The address. Raises ClusterError if nobody listens there: Ray itself would wait for minutes."""
        try:
            place = urlsplit(f"//{self._address}")
            host, port = place.hostname, place.port
            if not host or not port or self._address != place.netloc or "@" in place.netloc:
                raise ValueError
        except ValueError:
            raise ClusterError(
                f"RAY_ADDRESS is {self._address!r}, which is no address of a cluster.",
                "Set it to host:port, as `ray start --head` says.",
            ) from None
        try:
            socket.create_connection((host, port), _CONNECT_S).close()
        except OSError as error:
            raise ClusterError(
                f"Ray at {self._address} does not answer.",
                "Check RAY_ADDRESS and that the cluster is running, or unset it for a Ray on this computer.",
            ) from error
        return self._address

    def _unusable(self, error: Exception, ray: Any) -> ClusterError:
        said = " ".join(str(error).split())
        if isinstance(error, ray.exceptions.AuthenticationError):
            return ClusterError(
                f"Ray at {self._address} refused this computer's token.",
                "Set RAY_AUTH_MODE and RAY_AUTH_TOKEN as on the cluster.",
            )
        if "ersion mismatch" in said:
            other = re.search(r"cluster was started with: *Ray: *(\S+) *Python: *(\S+)", said)
            versions = f"Ray {other[1]} and Python {other[2]}" if other else "another version of Ray or Python"
            here = f"Ray {ray.__version__} and Python {'.'.join(map(str, sys.version_info[:3]))}"
            return ClusterError(
                f"The cluster at {self._address} runs {versions}, and this computer {here}.",
                "Install the same versions on every computer of the cluster.",
            )
        if self._address:
            return ClusterError(
                f"Ray at {self._address} cannot be used: {said[:200]}.",
                "This computer must be one of the cluster: `ray start --address=...`.",
            )
        return ClusterError(
            f"Ray could not be started on this computer: {said[:200]}.",
            "Run the same command without `--on ray`, or start Ray yourself and set RAY_ADDRESS.",
        )


class _Run:
    """One ingest's papers on their way."""

    def __init__(
        self, ray: Any, job: Job, files: Iterator[SourceFile], extra_futures: Callable[[], Sequence[Future[Any]]]
    ) -> None:
        self._ray, self._job, self._files, self._extra_futures = ray, job, files, extra_futures
        self._next = next(files, None)
        self._content: bytes | None = None  # of `_next`
        self._papers: dict[Any, _Sent] = {}  # by the reference to what will come back
        self._starting: dict[Any, _Worker] = {}
        self._again: list[_Sent] = []
        self._workers: list[_Worker] = []
        self._ended = 0  # workers that ended, since the last paper
        self.most_bytes = 0  # of PDFs that were away at a time

    def results(self, workers: int) -> Iterator[pipeline.Read]:
        """See PaperReader. workers: how many to start."""
        for number in range(workers):
            self._hire(number)
        waited = 0.0
        while True:
            yield from self._send()
            if self._next is None and not self._papers and not self._again:
                return
            wait_s = _LOOK_S if self._extra_futures() or not self._papers else 10 * _LOOK_S
            ready, _ = self._ray.wait([*self._papers, *self._starting], num_returns=1, timeout=wait_s)
            if not ready:
                waited = 0.0 if any(worker.is_ready for worker in self._workers) else waited + wait_s
                if waited > _FREE_S:
                    raise ClusterError(
                        "Ray has no free processor for a worker.", "Wait until other jobs are done, or add computers."
                    )
                yield Woken()
            for reference in ready:
                if reference in self._starting:
                    self._started(reference)
                elif (found := self._back(reference)) is not None:
                    yield found

    def _hire(self, number: int) -> None:
        options = {"num_cpus": 1, "max_concurrency": _AT_A_WORKER, "max_restarts": 0}
        actor = self._ray.remote(**options)(_Actor).remote(self._job, number)
        worker = _Worker(actor, number)
        self._workers.append(worker)
        self._starting[actor.start.remote(folio.__version__)] = worker

    def _started(self, reference: Any) -> None:
        worker = self._starting.pop(reference)
        try:
            wrong = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._lost(worker, error)
            return
        if wrong is not None:
            raise wrong
        worker.is_ready = True

    def _send(self) -> Iterator[pipeline.Read]:
        """Send papers to workers that have room; yields those that cannot be read here."""
        while True:
            tries = self._again[0].tries if self._again else 0
            free = [worker for worker in self._workers if worker.has_room(tries, self._papers)]
            if not free:
                return
            worker = min(free, key=lambda worker: len(worker.sent))
            if self._again:
                paper = self._again.pop(0)
                self._give(worker, paper.file, paper.content, paper.size, paper.tries)
                continue
            if self._next is None:
                return
            file = self._next
            if self._content is None:
                try:
                    self._content = pipeline.checked_content(file, self._job.limits.max_file_mb)
                except PaperError as error:
                    self._next = next(self._files, None)
                    yield Finished(file, error)
                    continue
            size, away = len(self._content), sum(paper.size for paper in self._papers.values())
            if away and away + size > _IN_FLIGHT_BYTES:
                return
            content, self._content = self._ray.put(self._content), None
            self._give(worker, file, content, size, 0)
            self._next = next(self._files, None)

    def _give(self, worker: _Worker, file: SourceFile, content: Any, size: int, tries: int) -> None:
        reference = worker.actor.read.remote(file, content)
        self._papers[reference] = _Sent(file, content, size, tries, worker)
        worker.sent.add(reference)
        self.most_bytes = max(self.most_bytes, sum(paper.size for paper in self._papers.values()))

    def _back(self, reference: Any) -> Finished[SourceFile, Any] | None:
        """What has come back; None for a paper that is to be read again."""
        paper = self._papers.pop(reference)
        paper.worker.sent.discard(reference)
        try:
            found: EmbeddedPaper | FolioError = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._lost(paper.worker, error)
            paper.tries += 1
            if paper.tries < _TRIES:
                self._again.append(paper)
                return None
            return Finished(
                paper.file,
                PaperBusy(
                    f"{_TRIES} workers of Ray ended while they read the file.",
                    "Their computers may have run out of memory: run the command again with fewer workers (--jobs).",
                ),
            )
        self._ended = 0
        if isinstance(found, FolioError) and not isinstance(found, PaperError):
            raise found
        if isinstance(found, EmbeddedPaper):  # its vectors lie in Ray's memory
            found = EmbeddedPaper(found.paper, {digest: row.copy() for digest, row in found.vectors.items()})
        return Finished(paper.file, found)

    def _lost(self, worker: _Worker, error: Exception) -> None:
        """A worker has ended: another takes its place."""
        if worker not in self._workers:
            return
        self._workers.remove(worker)
        with suppress(Exception):
            self._ray.kill(worker.actor)  # it may only have been out of reach
        self._ended += 1
        if self._ended > _TRIES * (len(self._workers) + 1):
            said = " ".join(str(error).split())
            missing = re.search(r"No module named '([\w.]+)'", said)
            raise ClusterError(
                f"The workers of Ray end at once: {f'they lack the package {missing[1]}' if missing else said[:200]}.",
                f"Install Folio {folio.__version__} with requirements-cluster.txt on every computer of the cluster.",
            )
        self._hire(worker.number)

    def close(self) -> None:
        """Stop the workers, whatever they do."""
        for worker in self._workers:
            with suppress(Exception):
                self._ray.kill(worker.actor)


class _Actor(PaperWorker):
    """A PaperWorker in a process of Ray."""

    def __init__(self, job: Job, number: int) -> None:
        # The processes that read PDFs would import the program of this one, and so Ray.
        vars(sys.modules["__main__"]).pop("__file__", None)
        super().__init__(job, number)
