"""Work that runs in a thread so that its result is ready, or nearly, when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread


def run_in_background(work: Callable[[], object]) -> None:
    """Run work in a thread. Its exceptions are ignored: the code that needs the result repeats the work and gets them.

    The program waits for the thread before it exits: tearing down a library that is loading a model crashes.
    """

    def quietly() -> None:
        with suppress(Exception):
            work()

    Thread(target=quietly, daemon=False).start()
