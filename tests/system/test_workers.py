"""Workers that hang, crash, eat memory: only their own item is lost."""

from __future__ import annotations

import _thread
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import active_children
from pathlib import Path

import pytest

from folio.errors import PaperError, PaperLimit, SlowDrawing
from folio.system.workers import Finished, PersistentWorker, Woken, run_apart, run_guarded
from tests.helpers.paths import ROOT
from tests.helpers.worker_items import identity, work


def _run(items: list[str], jobs: int = 2, timeout_s: float = 30, memory_mb: int = 512) -> dict[str, str | PaperError]:
    return dict(run_guarded(work, items, jobs=jobs, timeout_s=timeout_s, memory_mb=memory_mb))


def _error(results: dict[str, str | PaperError], item: str) -> PaperError:
    result = results[item]
    assert isinstance(result, PaperError)
    return result


def test_every_item_comes_back_with_its_result() -> None:
    items = [f"item {number}" for number in range(25)]
    assert _run(items) == {item: item.upper() for item in items}
    assert _run([]) == {}


def test_what_goes_wrong_costs_only_its_own_item() -> None:
    bad = ["abort", "exit 3", "kill", "refuse", "fail", "eat 4096", "lambda"]
    good = [f"item {number}" for number in range(10)]
    results = _run([item for pair in zip(bad, good, strict=False) for item in pair] + good[len(bad) :])
    assert {item: results[item] for item in good} == {item: item.upper() for item in good}
    assert "SIGABRT" in _error(results, "abort").happened
    assert "exit code 3" in _error(results, "exit 3").happened
    assert "killed" in _error(results, "kill").happened
    assert (_error(results, "refuse").happened, _error(results, "refuse").remedy) == ("It is torn.", "Glue it.")
    assert _error(results, "fail").happened == "Reading the file failed: LookupError: no such thing."
    assert _error(results, "lambda").remedy
    if sys.platform == "linux":
        assert "more than 512 MB" in _error(results, "eat 4096").happened
        assert "PARSE_MEMORY_MB" in _error(results, "eat 4096").remedy


def test_memory_within_the_limit_is_granted_again_and_again() -> None:
    items = [f"eat {200 + number}" for number in range(5)]
    assert _run(items, jobs=1, memory_mb=300) == {item: str(int(item[4:]) * 2**20) for item in items}


def test_a_worker_that_hangs_is_stopped() -> None:
    results = _run(["sleep 6000", "item 1", "item 2"], timeout_s=2)
    error = _error(results, "sleep 6000")
    assert error.happened == "Reading the file took longer than 2 s."
    assert "PARSE_TIMEOUT_S" in error.remedy
    assert (results["item 1"], results["item 2"]) == ("ITEM 1", "ITEM 2")


@pytest.mark.skipif(sys.platform == "win32", reason="processor time is not limited there")
def test_a_limit_on_processor_time_does_not_count_waiting() -> None:
    items = ["count 60", "sleep 1", "apart 0.3"]
    results = dict(run_guarded(work, items, jobs=1, timeout_s=60, memory_mb=512, cpu_s=0.5))
    assert _error(results, "count 60").happened == "Reading the file took longer than 0.5 s of processor time."
    assert "PARSE_TIMEOUT_S (now 0.5)" in _error(results, "count 60").remedy
    assert (results["sleep 1"], results["apart 0.3"]) == ("SLEEP 1", "APART 0.3")


@pytest.mark.skipif(sys.platform == "win32", reason="processor time is not limited there")
def test_a_slow_drawing_is_told_from_slow_reading() -> None:
    items = ["draw 60", "count 0.6", "draw 0.1", "count 60"]
    results = dict(run_guarded(work, items, jobs=1, timeout_s=60, memory_mb=512, cpu_s=1))
    assert type(_error(results, "draw 60")) is SlowDrawing
    assert type(_error(results, "count 60")) is PaperLimit
    assert (results["count 0.6"], results["draw 0.1"]) == ("COUNT 0.6", "DRAW 0.1")
    # Where less is left of the item's own limit than of the drawing's
    results = dict(run_guarded(work, ["draw 60"], jobs=1, timeout_s=60, memory_mb=512, cpu_s=0.2))
    assert type(_error(results, "draw 60")) is SlowDrawing


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not copied there")
def test_work_in_a_copy_of_the_process_ends_at_its_limit() -> None:
    shared = mmap.mmap(-1, 1)

    def write() -> None:
        shared[:] = b"x"

    def loop() -> None:
        while True:
            pass

    assert run_apart(write, 5)[0]
    assert shared[:] == b"x"
    is_done, spent = run_apart(loop, 0.3)
    assert not is_done
    assert 0.2 < spent < 3
    assert not run_apart(lambda: os._exit(7), 5)[0]
    assert not run_apart(lambda: 1 // 0, 5)[0]


def test_a_result_that_is_too_large_is_not_sent() -> None:
    results = _run(["large 60", "large 40"])
    assert "holds 60 MB of text; at most 48 MB are taken" in _error(results, "large 60").happened
    assert len(str(results["large 40"])) == 40 * 10**6


def test_no_more_workers_than_items_and_no_more_than_jobs() -> None:
    pids = set(_run([f"who {number}" for number in range(12)], jobs=2).values())
    assert 1 <= len(pids) <= 2
    others = active_children()  # of a test before this one, which may still end
    results = run_guarded(work, ["who 1"], jobs=64, timeout_s=30, memory_mb=512)
    _, pid = next(results)
    assert [str(worker.pid) for worker in active_children() if worker not in others] == [pid]
    assert list(results) == []


def test_few_items_are_taken_ahead_of_their_results() -> None:
    taken = 0

    def source() -> Iterator[str]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield f"item {number}"

    results = run_guarded(work, source(), jobs=2, timeout_s=30, memory_mb=512)
    for _ in range(10):
        next(results)
    assert taken <= 10 + 2 * 2 + 2
    results.close()


def test_closing_early_stops_the_workers() -> None:
    results = run_guarded(work, ["who 1", "sleep 6000", "sleep 6001"], jobs=2, timeout_s=9000, memory_mb=512)
    _, pid = next(results)
    results.close()
    assert not _lives(int(str(pid)))


class Unreadable:
    """What cannot be read where it arrives; a worker dies of it before it can say which item it had."""

    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        return int, ("not a number",)


def test_an_item_that_cannot_reach_a_worker_costs_only_itself() -> None:
    bad = Unreadable()
    results = list(run_guarded(identity, [1, bad, 2, 3], jobs=1, timeout_s=30, memory_mb=512))
    assert sorted(str(result) for item, result in results if item is not bad) == ["1", "2", "3"]
    assert [type(result) for item, result in results if item is bad] == [PaperLimit]


def test_an_idle_worker_that_is_killed_is_replaced() -> None:
    items = ["who 1", *(f"item {number}" for number in range(20))]
    results = run_guarded(work, items, jobs=1, timeout_s=30, memory_mb=512)
    _, pid = next(results)
    time.sleep(0.5)  # long enough for what was handed out to be done
    os.kill(int(str(pid)), signal.SIGKILL)
    time.sleep(0.5)
    assert dict(results) == {item: item.upper() for item in items[1:]}


def _lives(pid: int) -> bool:
    try:
        # A dead process that nobody has asked about is still listed, as a zombie.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


_PARENT = """
import sys
from folio.system.workers import PersistentWorker, run_guarded
from tests.helpers.worker_items import work
if __name__ == "__main__":
    items = ["who 1", "mark " + sys.argv[1], "sleep 300", "sleep 301"]
    for item, result in run_guarded(work, items, jobs=1, timeout_s=600, memory_mb=512):
        print(result, flush=True)
"""


def _parent(tmp_path: Path) -> tuple[subprocess.Popen[str], int]:
    """A process with one worker, which is busy for five minutes; and the worker's id."""
    script, mark = tmp_path / "parent.py", tmp_path / "mark"
    script.write_text(_PARENT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(mark)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    process.stdout.readline()
    assert mark.exists()
    assert _lives(worker)
    return process, worker


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an alarm ends the worker, after its time limit")
def test_a_worker_dies_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    process, worker = _parent(tmp_path)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while _lives(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(worker)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_stops_the_workers(tmp_path: Path) -> None:
    process, worker = _parent(tmp_path)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode != 0
    assert stderr.rstrip().endswith("KeyboardInterrupt")
    assert not _lives(worker)


def test_ctrl_c_just_before_a_wait_stops_the_workers() -> None:
    # A signal's flag alone, as such a Ctrl-C leaves it: nothing wakes what waits.
    threading.Timer(1, _thread.interrupt_main).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(run_guarded(work, ["sleep 30"], jobs=1, timeout_s=60, memory_mb=512))
    assert time.monotonic() - began < 25


def test_the_callers_own_future_wakes_it() -> None:
    own: list[Future[None]] = [Future()]
    own[0].set_result(None)
    results = run_guarded(
        work, ["sleep 1", "item 1"], jobs=1, timeout_s=30, memory_mb=512, extra_futures=lambda: list(own)
    )
    assert next(results) == Woken()
    own.clear()
    assert list(results) == [Finished("sleep 1", "SLEEP 1"), Finished("item 1", "ITEM 1")]


@pytest.fixture
def worker() -> Iterator[PersistentWorker[str, str]]:
    worker = PersistentWorker(work, timeout_s=1.5, memory_mb=512)
    yield worker
    worker.close()


def test_many_threads_share_a_persistent_worker(worker: PersistentWorker[str, str]) -> None:
    first, second = worker.run("who"), worker.run("who")
    assert first == second
    assert int(first) != os.getpid()
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(worker.run, "abcdefgh")) == list("ABCDEFGH")


ERRORS = {"abort": "SIGABRT", "kill": "killed", "sleep 60": "longer than 1.5 s", "refuse": "torn", "fail": "no such"}


def test_an_error_is_told_and_the_next_item_done(worker: PersistentWorker[str, str]) -> None:
    for item, happened in ERRORS.items():
        with pytest.raises(PaperError, match=happened):
            worker.run(item)
        assert worker.run("next") == "NEXT"


def test_a_worker_that_stays_is_gone_when_it_is_closed() -> None:
    worker = PersistentWorker(work, timeout_s=30, memory_mb=512)
    pid = int(worker.run("who"))
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_closing_ends_a_hanging_worker_and_its_waiters() -> None:
    worker = PersistentWorker(work, timeout_s=600, memory_mb=512)
    pid = int(worker.run("who"))
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(worker.run, f"sleep {seconds}") for seconds in (300, 301)]
        worker.close()
        for each in waiting:
            with pytest.raises(PaperError, match="ended before"):
                each.result()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
