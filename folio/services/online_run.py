"""The record of a search for papers that are not here: a file in the store's folder from which it can be continued.

It is written after each yes, and removed once the question was asked again. Complete PDFs are in the papers folder
under the same names, so what was fetched is not fetched again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from folio.deep.checkpoint import SearchOptions
from folio.errors import StoreError, UsageError, command
from folio.papers.metadata import read_stored, stored_form
from folio.papers.work import Work
from folio.system.files import open_regular, unusable, write_private

_VERSION = 1
_LARGEST = 32 * 2**20  # bytes
_AGAIN = "Ask the question again: " + command('ask --online "What is ...?"')


@dataclass(frozen=True, slots=True)
class FoundWork:
    """A work that services found."""

    views: tuple[Work, ...]  # as each service describes it
    sentence: str  # that decided; "" for none


@dataclass(frozen=True, slots=True)
class OnlineRun:
    """How far a search for papers has come."""

    question: str
    is_deep: bool
    options: SearchOptions
    searches: tuple[str, ...]  # that a person agreed to send
    found: tuple[FoundWork, ...] | None = None  # best first; None before the services answered
    chosen: tuple[int, ...] | None = None  # places in `found` to fetch; None before a person agreed


def record_path(store: Path) -> Path:
    return store / "online-search.json"


def save(path: Path, run: OnlineRun) -> None:
    """Write the record. Raises StoreError, OSError."""
    found = None
    if run.found is not None:
        found = tuple(
            replace(each, views=tuple(replace(view, references=()) for view in each.views)) for each in run.found
        )
    content = stored_form(OnlineRun).dump_python(replace(run, found=found), mode="json")
    write_private(path, json.dumps({"version": _VERSION, "run": content}))


def read(path: Path) -> OnlineRun:
    """The record. Raises UsageError if there is none, StoreError if it cannot be read."""
    try:
        with open_regular(path) as file:
            text = file.read(_LARGEST + 1)
    except FileNotFoundError as error:
        raise UsageError(
            "There is no search for papers to resume.",
            "Only one that was stopped after a yes is kept, and none with QUERY_LOG=false or --no-log.",
        ) from error
    except OSError as error:
        raise unusable(error) from error
    try:
        content: Any = json.loads(text) if len(text) <= _LARGEST else None
        if content["version"] != _VERSION:
            raise ValueError("another version")
        run: OnlineRun = read_stored(stored_form(OnlineRun), content["run"], "a search for papers")
        if not run.question.strip() or any(not 0 <= place < len(run.found or ()) for place in run.chosen or ()):
            raise ValueError("an impossible search")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise StoreError("The stopped search for papers cannot be read.", _AGAIN) from error
    return run


def remove(path: Path) -> bool:
    """Remove the record; returns whether there was one."""
    is_there = path.is_symlink() or path.exists()
    for each in (path, path.with_name(f"{path.name}.new")):
        with suppress(FileNotFoundError):
            each.unlink()
    return is_there
