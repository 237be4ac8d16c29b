"""Where text is printed, how an error looks, and no control character of a paper reaches the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from folio.types import Progress


@lru_cache(maxsize=1)
def output() -> Console:
    """Standard output."""
    return _console(stderr=False)


@lru_cache(maxsize=1)
def errors() -> Console:
    """Standard error: notices, progress, errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    """Lines wrap in a terminal and stay whole on a pipe, where tables get room."""
    from rich.console import Console

    on_pipe = not (sys.stderr if stderr else sys.stdout).isatty()
    return Console(
        stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=on_pipe, width=240 if on_pipe else None
    )


def say(text: str) -> None:
    """A notice, on standard error."""
    errors().print(one_line(text), style="dim")


def plain(text: str) -> str:
    """Text without the control characters by which a file name or a paper could steer a terminal."""
    seen = (char if char.isprintable() or char in _KEPT else " " if char.isspace() else "\ufffd" for char in text)
    return "".join(seen)


# The line's end, and the joiners that some scripts are spelt with
_KEPT = "\n\u200c\u200d"


def one_line(text: str) -> str:
    """The same on one line: a file name may have line ends, and would look like more than a name."""
    return plain(" ".join(text.split()))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar on standard error, with a line for each label; nothing on a pipe."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors(), transient=True, disable=not errors().is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def progress(label: str, done: int, of: int) -> None:
            if label not in tasks:
                tasks[label] = bar.add_task(label.capitalize(), total=of)
            bar.update(tasks[label], completed=done, total=of)

        yield progress


def complain(happened: str, remedy: str, exit_code: int) -> int:
    errors().print(one_line(happened), style="bold red")
    errors().print(one_line(remedy))
    return exit_code
