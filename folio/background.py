"""Work begun in a thread of its own, so that it is done, or nearly, when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread


def run_in_background(work: Callable[[], object]) -> None:
    """Begin this beside whatever else is done. What it raises is not told: who needs it does it again, and hears.

    A program that ends waits for it: a library that is torn down while it loads a model ends the program with a crash.
    """

    def quietly() -> None:
        with suppress(Exception):
            work()

    Thread(target=quietly, daemon=False).start()
