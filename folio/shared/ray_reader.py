"""Reads and embeds papers in workers of Ray, for `folio ingest --on ray`. The one module that imports Ray.

The bytes of a paper go to a worker, and its text, passages and vectors come back, so no computer needs the folder of
papers but this one. A paper is a task of Ray, which finds a process for it, keeps the process for the next one, and
runs it again if the process ends. This process alone puts papers into the library, so that each lands whole.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import folio
from folio.errors import ClusterError, FolioError, PaperBusy, PaperError, require_packages
from folio.ingest import pipeline
from folio.ingest.embedding_queue import EmbeddedPaper
from folio.shared.paper_worker import Job, read_in_worker
from folio.temporary import temporary_folder
from folio.text import one_line
from folio.types import SourceFile
from folio.workers import Finished, Woken

# Workers that may end over one paper: the first may have ended for another reason.
_TRIES = 3
# Bytes of Ray's own memory for papers, on one computer; what it cannot hold lies on the disk meanwhile
_OBJECT_STORE_BYTES = 2**29
# Seconds that a cluster may take to accept a connection; and between looks at what is done elsewhere
_CONNECT_S, _LOOK_S = 5.0, 0.5
_ALONE = "Run the same command without `--on ray`, or start Ray yourself and set RAY_ADDRESS."
_JOIN = "This computer must be one of the cluster (`ray start`), with its versions of Ray and Python, and its token."
# Ray's own settings, which it reads when it is imported, and its processes inherit. Nothing is reported; workers are as
# urgent as this process: at 15, Ray's own choice, they would wait for whatever else the computer does; a paper that is
# too large for the memory is not tried for ever.
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
    "RAY_task_oom_retries": str(_TRIES - 1),
}
# A Ray of this process's own listens on the loopback, where other users of the computer are, and answers nobody else.
_PRIVATE = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}


class RayReader:
    """A PaperReader. Ray is started, or connected to, when there is a first file."""

    def __init__(self, address: str, workers: int | None, get_job: Callable[[], Job]) -> None:
        """address: of a cluster; "" starts Ray here. workers: None for one a processor. get_job: see paper_worker.Job.

        Raises PackagesMissing without Ray.
        """
        require_packages("ray", "--on ray", "ray")
        self._address, self._workers, self._get_job = address, workers, get_job

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
                missing = re.search(r"No module named '([\w.]+)'", said := one_line(str(error)))
                raise ClusterError(
                    f"Ray has failed: {f'its workers lack the package {missing[1]}' if missing else said[:200]}.",
                    f"Every computer of a cluster needs Folio {folio.__version__} with requirements/ray.txt."
                    " Run the same command again; what was added is kept.",
                ) from error

    def _results(self, ray: Any, job: Job, files: Iterator[SourceFile]) -> Iterator[pipeline.Read]:
        """Send as many papers as there are workers; whenever one has come back, the next."""
        workers = self._workers or max(1, int(ray.available_resources().get("CPU", 1)))
        options = {"num_cpus": 1, "max_retries": _TRIES - 1, "scheduling_strategy": "SPREAD"}
        task, shared_job = ray.remote(**options)(read_in_worker), ray.put(job)
        away: dict[Any, SourceFile] = {}  # by the reference to what will come back
        try:
            while True:
                while len(away) < workers and (file := next(files, None)) is not None:
                    try:
                        content = pipeline.checked_content(file, job.limits.max_file_mb)
                    except PaperError as error:
                        yield Finished(file, error)
                    else:
                        away[task.remote(shared_job, file, content)] = file
                if not away:
                    return
                ready, _ = ray.wait([*away], timeout=_LOOK_S)
                if not ready:
                    yield Woken()
                for reference in ready:
                    yield Finished(away.pop(reference), _result(ray, reference))
        finally:
            for reference in away:
                with suppress(Exception):
                    ray.cancel(reference, force=True)

    @contextmanager
    def _running(self) -> Iterator[Any]:
        """Ray's module, with Ray started here, connected to, or found running in this process."""
        os.environ.update(_SETTINGS if self._address else _SETTINGS | _PRIVATE)
        with ExitStack() as stack:
            with _quiet():
                import ray
            if ray.is_initialized():
                yield ray
                return
            handler = signal.getsignal(signal.SIGTERM)  # Ray sets its own
            options: dict[str, Any] = {"address": self._reachable()} if self._address else self._own(stack)
            # Workers import Folio from where it is here. Without _client_job, Ray has them look in the current folder
            # first, which may be one of papers that somebody else has filled.
            root = str(Path(folio.__file__).parents[1])
            config = ray.job_config.JobConfig(_client_job=True, _py_driver_sys_path=[root])
            stack.callback(ray.shutdown)
            try:
                with _quiet():
                    ray.init(**options, job_config=config, log_to_driver=False, logging_level=logging.CRITICAL + 1)
            except Exception as error:  # its own, gRPC's, and those of what it starts
                what = f"Ray at {self._address} cannot be used" if self._address else "Ray could not be started"
                said = one_line(str(error))[:200]
                raise ClusterError(f"{what}: {said}.", _JOIN if self._address else _ALONE) from error
            if handler is not None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)
            yield ray

    def _own(self, stack: ExitStack) -> dict[str, Any]:
        """Options of a Ray of this process's own, whose files are gone when the stack is closed."""
        folder = stack.enter_context(temporary_folder("folio-ray-"))
        if len(str(folder)) > 40:  # sockets lie in it, and their paths may have 107 characters
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
        found = re.fullmatch(r"\[?([\w.:-]+?)\]?:(\d{1,5})", self._address)
        if not found:
            raise ClusterError(
                f"RAY_ADDRESS is {self._address!r}, which is no address of a cluster.",
                "Set it to host:port, as `ray start --head` says.",
            )
        try:
            socket.create_connection((found[1], int(found[2])), _CONNECT_S).close()
        except (OSError, OverflowError) as error:
            raise ClusterError(
                f"Ray at {self._address} does not answer.",
                "Check RAY_ADDRESS and that the cluster is running, or unset it for a Ray on this computer.",
            ) from error
        return self._address


def _result(ray: Any, reference: Any) -> EmbeddedPaper | PaperError:
    """What a worker made of a paper. Raises what ends the ingest."""
    errors = ray.exceptions
    try:
        found: EmbeddedPaper | FolioError = ray.get(reference)
    except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError, errors.ObjectLostError):
        return PaperBusy(
            f"{_TRIES} workers of Ray ended while they read the file.",
            "Their computers may have run out of memory: run the command again with fewer workers (--jobs).",
        )
    if isinstance(found, EmbeddedPaper):  # its vectors lie in Ray's memory
        return EmbeddedPaper(found.paper, {digest: row.copy() for digest, row in found.vectors.items()})
    if isinstance(found, PaperError):
        return found
    raise found


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, nothing that Ray says comes to the terminal: its warnings, and what its libraries write to stderr."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere, warnings.catch_warnings(action="ignore"):
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
