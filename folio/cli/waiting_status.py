"""The line that a terminal shows while an answer is being made; it is gone when a sentence is printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from folio.answer_types import Checking, Thinking
from folio.console import errors

if TYPE_CHECKING:
    from rich.status import Status

_READING, _THINKING = "Reading the papers ...", "The model is thinking ..."


class WaitingStatus:
    """Until the first sentence, that the papers are read, for a model may take long to load, or that it thinks; and
    whenever statements wait for their verifier, how many. On a pipe, or if quiet, nothing."""

    def __init__(self, *, quiet: bool) -> None:
        self._reading = _READING  # "" once a sentence has been printed
        self._count = 0  # statements that wait
        self._status: Status | None = None
        if not quiet and errors().is_terminal:
            self._status = errors().status(_READING)

    def __enter__(self) -> Self:
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        self._hide()

    def on_progress(self, part: Checking | Thinking) -> None:
        """The model has begun to think, or another number of statements waits for the verifier."""
        if isinstance(part, Checking):
            self.checking(part.count)
        else:
            self.thinking()

    def checking(self, count: int) -> None:
        """The number of statements waiting for their verifier is now `count`."""
        self._count = count
        self._show()

    def thinking(self) -> None:
        """The model has begun to think."""
        self._reading = self._reading and _THINKING
        self._show()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line while a sentence is printed."""
        self._reading = ""
        self._hide()
        yield
        self._show()

    def _show(self) -> None:
        if self._status is None:
            return
        if not self._reading and not self._count:
            self._status.stop()
            return
        self._status.update(f"checking {self._count} more" if self._count else self._reading)
        self._status.start()

    def _hide(self) -> None:
        if self._status is not None:
            self._status.stop()
