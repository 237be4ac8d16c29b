"""How CPU time grows with an input: a busy machine does not change that, and a quadratic pattern does."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time

LARGER = 16  # times as large an input takes this many times as long where time is linear, 256 times where quadratic
LIMIT = 3 * LARGER
SHORTEST_S = 0.002  # less than this is not measured well


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Fail when work(size) takes far more than 16 times the CPU time of work(size / 16).

    The sizes of the tries differ a little, so that no cache answers.
    """
    small = max(SHORTEST_S, min(_cpu_s(work, size // LARGER + more) for more in range(5)))
    large = _cpu_s(work, size)
    for more in (1, 2):  # another process may have had the caches of the processor
        if large > LIMIT * small:
            large = min(large, _cpu_s(work, size + more))
    assert large <= LIMIT * small, f"{large:.3f} s for a size of {size}, {small:.3f} s for {size // LARGER}"


def _cpu_s(work: Callable[[int], object], size: int) -> float:
    started = thread_time()
    work(size)
    return thread_time() - started
