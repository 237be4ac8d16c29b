"""Closes a resource if the code that opens it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class _Closeable(Protocol):
    def close(self) -> None: ...


@contextmanager
def closed_on_error(opened: _Closeable) -> Iterator[None]:
    """Closes `opened` if the block raises; otherwise it stays open."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
