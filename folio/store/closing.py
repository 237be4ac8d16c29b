"""Closes what could not be opened whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class _Closed(Protocol):
    def close(self) -> None: ...


@contextmanager
def closed_on_error(opened: _Closed) -> Iterator[None]:
    """Closes this if what is inside fails; otherwise the caller has it."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
