"""What the forms of an evaluation share: a part of a set; what differs, what failed, which thresholds were missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from folio.evaluate.metrics import Figure
    from folio.evaluate.runner import FailedQuestion
    from folio.evaluate.tables import Table
    from folio.evaluate.thresholds import Threshold

T = TypeVar("T")


def spread(items: Sequence[T], limit: int | None) -> list[T]:
    """At most this many of the items, at even distances."""
    if not limit or limit >= len(items):
        return list(items)
    step = len(items) / limit
    return [items[int(n * step)] for n in range(limit)]


def report_failures(failed: Sequence[FailedQuestion], succeeded: int, items: str = "questions") -> int:
    """Say which questions or answers a model failed on; the exit code: 1 where there are any."""
    from folio.console import complain

    if not failed:
        return 0
    named = ", ".join(one.question for one in failed)
    last = failed[-1]
    return complain(
        f"Failed: {len(failed)} of {succeeded + len(failed)} {items} ({named}). {last.happened}", last.remedy, 1
    )


def show_run(tables: Sequence[Table], differing: Sequence[str] | None, notes: Sequence[str]) -> None:
    """Print a run's tables and notes. differing: from the run it is compared with; None if there is none."""
    from folio.console import output
    from folio.evaluate.tables import print_tables
    from folio.shown_text import plain_line

    print_tables(output(), tables)
    if differing is not None:
        show_changes(differing)
    for note in notes:
        output().print(plain_line(note))


def show_written(paths: Sequence[Path]) -> None:
    """Print which files were written."""
    from folio.console import output
    from folio.shown_text import plain_line

    output().print(f"\nWritten: {', '.join(plain_line(str(path)) for path in paths)}")


def show_changes(differing: Sequence[str]) -> None:
    """Print how two runs differ in their configuration."""
    from folio.console import output
    from folio.shown_text import plain_line

    output().print("\nSame configuration." if not differing else "\nWhat differs:")
    for line in differing:
        output().print(f"  {plain_line(line)}")


def thresholds_met(thresholds: Sequence[Threshold], found: Mapping[str, Figure]) -> int:
    """Print the thresholds that are not met; the exit code: 1 if there are any."""
    from folio.console import errors, output
    from folio.evaluate.thresholds import violations
    from folio.shown_text import plain_line

    if not thresholds:
        return 0
    failed = violations(thresholds, found)
    for sentence in failed:
        errors().print(plain_line(sentence), style="bold red")
    if not failed:
        output().print("All thresholds were met.")
    return 1 if failed else 0
