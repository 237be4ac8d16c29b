"""Runs a function over many items in guarded worker processes, so that a bad item fails alone.

PDF parsers are C code that reads untrusted files. A worker that hangs, crashes or uses too much memory is replaced, and
the result of its item is a PaperError.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat
from multiprocessing import get_context
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NotRequired, TypedDict, TypeVar, Unpack, overload

from folio.errors import PaperBusy, PaperError, PaperLimit, SlowDrawing
from folio.text import one_line

if TYPE_CHECKING:
    from pebble import ProcessFuture, ProcessPool


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

# Items in the pool for each worker: one in progress and one waiting, so that it is never idle
_IN_FLIGHT = 2
# Items after which a worker is replaced, to free memory that libraries leak or fragment
_ITEMS_PER_WORKER = 200
# Attempts at an item when the pool broke down without naming the item that caused it
_TRIES = 2
# The longest wait in seconds: a Ctrl-C pressed just before a wait takes effect only after it
_WAKE_S = 1
# Seconds after the time limit at which a worker ends itself, if its parent has died
_GRACE_S = 10
# The share of an item's limit on processor time that work in a copy of its worker may take, once
_APART = 1 / 8
# The share of what is left of it after which a drawing ends the worker: its signal does not count the time that the
# system spends for the process, and the limit does
_DRAWING = 3 / 4
# Megabytes of a worker's result for one item: twice the text of the largest paper, or a picture of a page
_RESULT_MB = 48
_SIGKILL, _SIGVTALRM, _SIGPROF = 9, 26, 27  # `signal` lacks them on Windows


class Finished(NamedTuple, Generic[ItemT, ResultT]):
    """An item with function(item), or with the PaperError in its place."""

    item: ItemT
    result: ResultT | PaperError


@dataclass(frozen=True, slots=True)
class Woken:
    """One of the caller's futures is done, but no item is."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits for one item, see run_guarded."""

    timeout_s: float
    cpu_s: float
    memory_mb: int


# A worker's reply: a pickled result, or the error. It is unpickled when the caller takes it, and until then needs no
# more memory than its size limit.
_Reply = bytes | PaperError


class GuardOptions(TypedDict):
    """See run_guarded."""

    jobs: int
    timeout_s: float
    memory_mb: int
    cpu_s: NotRequired[float]


@overload
def run_guarded(
    function: Callable[[ItemT], ResultT], items: Iterable[ItemT], **options: Unpack[GuardOptions]
) -> Generator[Finished[ItemT, ResultT], None, None]: ...


@overload
def run_guarded(
    function: Callable[[ItemT], ResultT],
    items: Iterable[ItemT],
    *,
    extra_futures: Callable[[], Sequence[Future[Any]]],
    **options: Unpack[GuardOptions],
) -> Generator[Finished[ItemT, ResultT] | Woken, None, None]: ...


def run_guarded(
    function: Callable[[ItemT], ResultT],
    items: Iterable[ItemT],
    *,
    extra_futures: Callable[[], Sequence[Future[Any]]] = tuple,
    **options: Unpack[GuardOptions],
) -> Generator[Finished[ItemT, ResultT] | Woken, None, None]:
    """Run function(item) for every item in worker processes; yields each result when it is finished.

    function and items are pickled, so function must be at the top level of a module. jobs: maximum number of
    processes. timeout_s, memory_mb: limits for one item; memory counts from the worker's size before the item, and
    for its first item includes the imports of function (enforced on Linux). cpu_s: limit on the processor time of one
    item, which waiting on a busy computer does not use up (not enforced on Windows). A result may have 48 MB; only a
    few are in memory at a time, however slowly the caller takes them. `items` may grow: after each result it is asked
    again, even after StopIteration. Closing this iterator or Ctrl-C stops the workers. Workers end with this process,
    and with the thread that takes the first result: consume the iterator in one thread.

    extra_futures: returns other futures to wait for; Woken is yielded when one of them is done before any item.
    """
    limits = _Limits(options["timeout_s"], options.get("cpu_s", math.inf), options["memory_mb"])
    source = iter(items)
    ahead = [(item, 0) for item in islice(source, max(1, options["jobs"]))]
    if not ahead:
        return
    workers = len(ahead)
    again: list[tuple[ItemT, int]] = []
    running: dict[ProcessFuture[_Reply], tuple[ItemT, int]] = {}
    pool = _pool(workers)
    try:
        while True:
            if not pool.active:  # unfinished items of a broken pool go to a new one
                again += [running.pop(future) for future in list(running) if not future.done()]
                _stop(pool)
                pool = _pool(workers)
            # Items that were running when the pool broke down are retried one by one, to find the cause.
            suspects = again or any(tries > 1 for _, tries in running.values())
            room = 1 if suspects else workers * _IN_FLIGHT
            waiting = chain(_drain(again), _drain(ahead), zip(source, repeat(0)))
            for item, tries in islice(waiting, max(0, room - len(running))):
                try:
                    future = pool.schedule(_guarded, (function, item, limits), timeout=limits.timeout_s)
                except RuntimeError:  # the pool broke down just now
                    again.append((item, tries))
                    break
                running[future] = item, tries + 1
            if not running and not again:
                return
            done, _ = wait([*running, *extra_futures()], timeout=_WAKE_S, return_when=FIRST_COMPLETED)
            if not done:
                continue
            finished = [future for future in running if future in done]
            if not finished:
                yield Woken()
            for future in finished:
                item, tries = running.pop(future)
                if isinstance(future.exception(), BrokenExecutor) and tries < _TRIES:
                    again.append((item, tries))
                else:
                    yield Finished(item, _outcome(future, limits))
    finally:
        _stop(pool)


class PersistentWorker(Generic[ItemT, ResultT]):
    """One guarded worker that stays alive between items, for occasional work whose caller waits."""

    def __init__(
        self, function: Callable[[ItemT], ResultT], *, timeout_s: float, memory_mb: int, cpu_s: float = math.inf
    ) -> None:
        """See run_guarded."""
        self._function = function
        self._limits = _Limits(timeout_s, cpu_s, memory_mb)
        # A worker ends with the thread that started it, so that thread stays.
        self._thread = ThreadPoolExecutor(1, "persistent-worker")
        self._pool: ProcessPool | None = None
        self._running: ProcessFuture[_Reply] | None = None
        self._closed = False

    def run(self, item: ItemT) -> ResultT:
        """function(item), after earlier items. Raises PaperError. Thread-safe until the worker is closed."""
        result = self._thread.submit(self._run, item).result()
        if isinstance(result, PaperError):
            raise result
        return result

    def close(self) -> None:
        """Stop the worker. Pending calls of `run` raise PaperError."""
        self._closed = True
        if self._running is not None:
            self._running.cancel()  # type: ignore[no-untyped-call]
        self._thread.submit(self._end).result()
        self._thread.shutdown()

    def _run(self, item: ItemT) -> ResultT | PaperError:
        for tries in range(1, _TRIES + 1):
            if self._pool is None or not self._pool.active:
                self._end()
                self._pool = _pool(1)
            work = (self._function, item, self._limits)
            self._running = future = self._pool.schedule(_guarded, work, timeout=self._limits.timeout_s)
            if self._closed:
                future.cancel()  # type: ignore[no-untyped-call]
            wait([future])
            if future.cancelled():
                return PaperError("Folio ended before the file was read.", "Start it again.")
            if tries == _TRIES or not isinstance(future.exception(), BrokenExecutor):
                break
        outcome: ResultT | PaperError = _outcome(future, self._limits)
        return outcome

    def _end(self) -> None:
        if self._pool is not None:
            _stop(self._pool)
            self._pool = None


def _drain(items: list[tuple[ItemT, int]]) -> Iterator[tuple[ItemT, int]]:
    while items:
        yield items.pop(0)


def _pool(workers: int) -> ProcessPool:
    from pebble import ProcessPool

    # Spawned rather than forked: a fork copies this process's locks, which its threads may hold.
    return ProcessPool(workers, _ITEMS_PER_WORKER, _begin, (os.getpid(),), get_context("spawn"))


def _stop(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


def _outcome(future: ProcessFuture[_Reply], limits: _Limits) -> Any:
    """The result of a finished future, with exceptions turned into a PaperError."""
    from pebble import ProcessExpired

    error, memory_mb = future.exception(), limits.memory_mb
    if error is None:
        reply = future.result()
        try:
            return ForkingPickler.loads(reply) if isinstance(reply, bytes) else reply
        except Exception as unreadable:
            return _unexpected(unreadable)
    if isinstance(error, TimeoutError) and limits.cpu_s < limits.timeout_s:
        return PaperBusy(
            f"The file could not be read within {limits.timeout_s:g} s: this computer is too busy, or a disk hangs.",
            "Run the command again when less is running.",
        )
    over_cpu = isinstance(error, ProcessExpired) and -error.exitcode == _SIGPROF
    if isinstance(error, TimeoutError) or over_cpu:
        seconds = limits.cpu_s if over_cpu else limits.timeout_s
        return PaperLimit(
            f"Reading the file took longer than {seconds:g} s{' of processor time' if over_cpu else ''}.",
            f"Raise PARSE_TIMEOUT_S (now {seconds:g}), or leave the file out of the folder.",
        )
    if isinstance(error, ProcessExpired) and -error.exitcode == _SIGVTALRM:
        return SlowDrawing(
            "A page of the file takes too long to draw.",
            f"Raise PARSE_TIMEOUT_S (now {limits.cpu_s:g}), or save the file to a new PDF with simpler figures.",
        )
    if isinstance(error, ProcessExpired) and -error.exitcode == _SIGKILL:
        return PaperBusy(
            "The process that read the file was killed; this computer may have run out of memory.",
            f"Close other programs or lower PARSE_MEMORY_MB (now {memory_mb}), and run the command again.",
        )
    if isinstance(error, ProcessExpired | BrokenExecutor):
        ending = f" ({_ending(error.exitcode)})" if isinstance(error, ProcessExpired) else ""
        return PaperLimit(
            f"The process that read the file crashed{ending}.",
            f"The file is probably damaged: save it to a new PDF; or raise PARSE_MEMORY_MB (now {memory_mb}).",
        )
    return _unexpected(error)


def _ending(exit_code: int) -> str:
    """An exit code in words; a negative one is a signal."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def _unexpected(error: BaseException) -> PaperError:
    message = one_line(str(error))[:200]
    return PaperError(
        f"Reading the file failed: {type(error).__name__}{': ' if message else ''}{message}.",
        "Save the file to a new PDF with another program, or leave it out of the folder.",
    )


# The functions below run in the workers.


def _begin(parent: int) -> None:
    """Set up a new worker, which ends with its parent, and at once on SIGTERM."""
    # Pebble's own handler is Python code, which does not run while C code hangs.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _end_with(parent)


def _end_with(parent: int) -> None:
    """End this process with the thread of its parent that started it. Linux only."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1  # <sys/prctl.h>
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, _SIGKILL)
        if os.getppid() != parent:  # the parent died before this was set
            os._exit(1)


def _guarded(function: Callable[[ItemT], ResultT], item: ItemT, limits: _Limits) -> _Reply:
    """function(item), pickled, or a PaperError, under limits on time, memory and size."""
    if sys.platform != "win32":
        # The parent enforces the time limit. If it dies, the alarm ends this process on systems without PDEATHSIG.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(math.ceil(limits.timeout_s) + _GRACE_S)
    _limit_cpu(limits.cpu_s)
    _limit_memory(limits.memory_mb)
    try:
        reply = bytes(ForkingPickler.dumps(function(item)))  # pickled here, to check its size before it is sent
    except PaperError as error:
        return error.with_traceback(None)
    except MemoryError:
        return PaperLimit(
            f"Reading the file takes more than {limits.memory_mb} MB of memory.",
            f"Raise PARSE_MEMORY_MB (now {limits.memory_mb}), or split the file into smaller PDFs.",
        )
    except Exception as error:  # any error must fail only this item
        return _unexpected(error)
    finally:
        _limit_memory(None)
        _limit_cpu(math.inf)
        if sys.platform != "win32":
            signal.alarm(0)
    if len(reply) > _RESULT_MB * 10**6:
        return PaperError(
            f"The file holds {len(reply) / 1e6:,.0f} MB of text; at most {_RESULT_MB} MB are taken from one file.",
            "Split it into smaller PDFs.",
        )
    return reply


_cpu_s = math.inf  # the limit for the current item


def _limit_cpu(seconds: float) -> None:
    """Limit the processor time of this process from now on, over all its threads; then SIGPROF ends it."""
    global _cpu_s  # one item at a time
    _cpu_s = seconds
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds if math.isfinite(seconds) else 0)


@contextmanager
def separate_cpu_limit() -> Iterator[None]:
    """Give a block the item's full limit on processor time, without using up the item's own.

    For work whose amount a count already limits. Does nothing outside a worker.
    """
    if sys.platform == "win32" or not math.isfinite(_cpu_s):
        yield
        return
    remaining, _ = signal.setitimer(signal.ITIMER_PROF, _cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, remaining)


@contextmanager
def drawing_limit(seconds: float) -> Iterator[None]:
    """Limit the processor time of a block; if it takes longer, the item's result is SlowDrawing.

    seconds: at most what the item has left. Does nothing outside a worker, or where processor time is not limited.
    """
    if sys.platform == "win32" or not math.isfinite(_cpu_s):
        yield
        return
    remaining, _ = signal.getitimer(signal.ITIMER_PROF)
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    # Before the item's own limit, so that the signal tells what took the time
    signal.setitimer(signal.ITIMER_VIRTUAL, max(0.01, min(seconds, _DRAWING * remaining)))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def run_apart(work: Callable[[], object], cpu_s: float) -> tuple[bool, float]:
    """Run work in a copy of this process, which ends after these seconds of processor time, or if it crashes.

    In a worker, also after _APART of the item's limit.
    Returns whether the work was done, and the processor time that it took. What it changes is lost, except in shared
    memory. Not done where processes cannot be copied, as on Windows.
    """
    if sys.platform == "win32":
        return False, 0.0
    parent, cpu_s = os.getpid(), min(cpu_s, _APART * _cpu_s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads are not copied; the work needs none of them
        child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(math.ceil(_GRACE_S + 10 * cpu_s))
            _end_with(parent)
            _limit_cpu(cpu_s)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    _, status, usage = os.wait4(child, 0)
    return status == 0, usage.ru_utime + usage.ru_stime


def _limit_memory(megabytes: int | None) -> None:
    """Limit the further address space of this process; None removes the limit. Linux only."""
    if sys.platform != "linux":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = hard
    if megabytes is not None:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        limit = pages * resource.getpagesize() + megabytes * 2**20
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
