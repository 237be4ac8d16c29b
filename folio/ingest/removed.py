"""Deletes the PDFs of removed papers: after the day for which they can be brought back, or at once.

Their files lie in .removed in PAPERS_DIR. A clock may be wrong once, so one that is a week or more ahead of a removal
is believed only when it was seen a second time, an hour later or more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from folio.store import readings
from folio.store.database import Database
from folio.store.readings import Removal
from folio.system.files import REMOVED, sha256_file
from folio.text import reason_of

# The age at which a removal is over, the age from which the clock must be seen twice, and the time between both
_DAY, _SURE, _APART = timedelta(days=1), timedelta(days=7), timedelta(hours=1)
_SEEN = ".seen"  # in the folder; its time is when the clock was seen


@dataclass(frozen=True, slots=True)
class Emptied:
    """What became of the files of removed papers."""

    deleted: int  # files
    stay: tuple[str, ...] = ()  # sentences about files that were not deleted


def delete_expired(database: Database, papers_folder: Path) -> Emptied:
    """Delete the files of papers that were removed a day ago or earlier. The caller holds the writer lock."""
    folder, now = _folder(papers_folder), datetime.now(UTC)
    recorded = readings.all_removals(database)
    if not is_due(recorded) or database.is_read_only:
        return Emptied(0)
    seen = _seen(folder, now)
    later = [each.paper for each in recorded if _age(each, now) < timedelta(0)]
    if later:  # removed while the clock was ahead: their day begins now
        readings.redate_removals(database, later)
    emptied = _delete(database, [each for each in recorded if _is_over(each, now, seen)], folder)
    _tidy(folder)
    return emptied


def is_due(removals: Iterable[Removal]) -> bool:
    """Whether the day of one of these may be over, or its time is in the future."""
    now = datetime.now(UTC)
    return any(not timedelta(0) <= _age(each, now) < _DAY for each in removals)


def empty(database: Database, papers_folder: Path) -> Emptied:
    """Delete all files in .removed, whenever they came there. The caller holds the writer lock."""
    folder = _folder(papers_folder)
    recorded = _delete(database, readings.all_removals(database), folder)
    deleted, stay = recorded.deleted, list(recorded.stay)
    for path in sorted(folder.glob("*.pdf")):  # of earlier releases, and replaced by newer versions
        if error := _unlink(path):
            stay.append(error)
        else:
            deleted += 1
    _tidy(folder)
    return Emptied(deleted, tuple(dict.fromkeys(stay)))


def _folder(papers_folder: Path) -> Path:
    return Path(os.path.abspath(papers_folder)) / REMOVED


def _age(removal: Removal, now: datetime) -> timedelta:
    return now - datetime.fromisoformat(removal.removed)


def _is_over(removal: Removal, now: datetime, seen: datetime | None) -> bool:
    """Whether the day of a removal is over. seen: when the clock was seen before, if that is not in the future."""
    if _age(removal, now) < _SURE:
        return _age(removal, now) >= _DAY
    return seen is not None and now - seen >= _APART and _age(removal, seen) >= _DAY


def _seen(folder: Path, now: datetime) -> datetime | None:
    """When the clock was seen before; records that it is seen now. None if that is unknown, or in the future."""
    mark, seen = folder / _SEEN, None
    with suppress(OSError):
        seen = datetime.fromtimestamp(mark.stat().st_mtime, UTC)
    if seen is None or seen > now or now - seen >= _APART:
        with suppress(OSError):
            mark.touch()
            os.utime(mark, (now.timestamp(), now.timestamp()))
    return None if seen is None or seen > now else seen


def _delete(database: Database, removals: Iterable[Removal], folder: Path) -> Emptied:
    """Delete the files of removals, and forget those that have none left in the folder."""
    deleted, stay, done = 0, [], []
    for removal in removals:
        errors = []
        for file in removal.files:
            path = Path(file.kept_at)
            if path.parent != folder:
                stay.append(f"{path} stays: it lies outside of the folder of papers, and was never moved.")
            elif _is_paper(path, removal.paper):
                if error := _unlink(path):
                    errors.append(error)
                else:
                    deleted += 1
        stay += errors
        if not errors:
            done.append(removal.paper)
    if done:
        readings.forget_removals(database, done)
    return Emptied(deleted, tuple(stay))


def _is_paper(path: Path, paper: str) -> bool:
    """Whether this file is there, and is this paper's: another one may have taken its name."""
    try:
        return sha256_file(path) == paper
    except OSError:
        return path.exists()  # deleting it will say what is wrong


def _unlink(path: Path) -> str:
    """Delete a file; returns a sentence about why it stays, "" if it is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path} stays: it cannot be deleted ({reason_of(error)})."
    return ""


def _tidy(folder: Path) -> None:
    """Delete the folder if no file is left in it."""
    with suppress(OSError):
        if [path.name for path in folder.iterdir()] in ([], [_SEEN]):
            (folder / _SEEN).unlink(missing_ok=True)
            folder.rmdir()
