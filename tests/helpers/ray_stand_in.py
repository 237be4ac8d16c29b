"""A stand-in for Ray: its tasks run in threads of this process, and again when they raise WorkerEnded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any


class WorkerEnded(Exception):
    """Stands for the end of the process that a task runs in."""


class RayStandIn(ModuleType):
    """As much of the module `ray` as Folio uses."""

    def __init__(self, cpus: int = 2, refuses: Exception | None = None) -> None:
        """refuses: what its start raises."""
        super().__init__("ray")
        self.__spec__ = ModuleSpec("ray", None)
        names = ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError")
        self.exceptions = SimpleNamespace(**{name: type(name, (Exception,), {}) for name in names})
        self.job_config = SimpleNamespace(JobConfig=dict)
        self.cancelled: list[Future[Any]] = []
        self.is_running = False
        self._cpus, self._refuses = cpus, refuses
        self._threads = ThreadPoolExecutor(cpus)

    def is_initialized(self) -> bool:
        return self.is_running

    def init(self, **options: Any) -> None:
        if self._refuses is not None:
            raise self._refuses
        self.is_running = True

    def shutdown(self) -> None:
        self.is_running = False
        self._threads.shutdown()

    def available_resources(self) -> dict[str, float]:
        return {"CPU": float(self._cpus)}

    def put(self, value: Any) -> Future[Any]:
        found: Future[Any] = Future()
        found.set_result(value)
        return found

    def get(self, reference: Future[Any]) -> Any:
        return reference.result()

    def wait(self, references: Sequence[Future[Any]], timeout: float) -> tuple[list[Future[Any]], list[Future[Any]]]:
        done, left = wait(references, timeout, FIRST_COMPLETED)
        return list(done), list(left)

    def cancel(self, reference: Future[Any], *, force: bool) -> None:
        assert force  # a task that is running ends too
        self.cancelled.append(reference)

    def remote(self, *, max_retries: int, **options: Any) -> Callable[[Callable[..., Any]], _Task]:
        return lambda function: _Task(self, function, max_retries)


@dataclass(frozen=True)
class _Task:
    ray: RayStandIn
    function: Callable[..., Any]
    max_retries: int

    def remote(self, *arguments: Any) -> Future[Any]:
        return self.ray._threads.submit(self._run, *arguments)

    def _run(self, *arguments: Any) -> Any:
        values = [each.result() if isinstance(each, Future) else each for each in arguments]
        for _ in range(self.max_retries + 1):
            try:
                return self.function(*values)
            except WorkerEnded:
                continue
        raise self.ray.exceptions.WorkerCrashedError("The worker died unexpectedly while executing this task.")
