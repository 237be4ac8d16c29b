"""Terminal output: standard output, notices, errors and progress. Text passes through shown_text.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from folio.shown_text import plain_line

if TYPE_CHECKING:
    from rich.console import Console

    from folio.papers.model import Progress


@lru_cache(maxsize=1)
def output() -> Console:
    """Standard output."""
    return _console(stderr=False)


@lru_cache(maxsize=1)
def errors() -> Console:
    """Standard error: notices, progress, errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    """Lines wrap in a terminal; on a pipe they stay whole, and tables may be wide."""
    from rich.console import Console

    on_pipe = not (sys.stderr if stderr else sys.stdout).isatty()
    return Console(
        stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=on_pipe, width=240 if on_pipe else None
    )


def say(text: str) -> None:
    """Print a notice on standard error."""
    errors().print(plain_line(text), style="dim")


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar on standard error with a line for each label; silent on a pipe."""
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
    """Print an error in two lines; returns its exit code."""
    errors().print(plain_line(happened), style="bold red")
    errors().print(plain_line(remedy))
    return exit_code
