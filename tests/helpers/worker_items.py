"""What the tests of workers hand to them: in a module that imports little, since every worker imports it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from folio.errors import PaperError
from folio.system.workers import drawing_limit, separate_cpu_limit


def work(item: str) -> str:
    """What the tests hand to workers: each item says what should happen to it."""
    what, _, value = item.partition(" ")
    if what == "sleep":
        time.sleep(float(value))
    elif what == "eat":
        return str(len(bytearray(int(value) * 2**20)))
    elif what == "abort":
        os.abort()
    elif what == "exit":
        os._exit(int(value))
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "refuse":
        raise PaperError("It is torn.", "Glue it.")
    elif what == "fail":
        raise LookupError("no such\nthing")
    elif what == "who":
        return str(os.getpid())
    elif what == "lambda":
        return lambda: value  # type: ignore[return-value]
    elif what == "count":
        _compute(float(value))
    elif what == "apart":
        for _ in range(4):
            with separate_cpu_limit():
                _compute(float(value))
    elif what == "draw":
        with drawing_limit(0.4):
            _compute(float(value))
    elif what == "large":
        return "x" * (int(value) * 10**6)
    elif what == "mark":
        Path(value).touch()
    return item.upper()


def _compute(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(10**5))  # asking for the time is the system's work, which one of the timers does not count


def identity(item: object) -> object:
    return item
