"""Finds what has changed in a folder of PDFs that the library is kept in step with.

Each look searches the whole folder and compares it with what the library was given. A file counts once it has been
still for a moment. A file that is gone leaves the library; not if its folder or drive is gone, or is another one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from folio.errors import command
from folio.ingest import discovery
from folio.shown_text import plain_line

# Seconds for which a file has to be still; one without the end of a PDF may still be arriving; and one that is gone may
# be on its way to another folder
SETTLE_S, TORN_S, GONE_S = 1.0, 15.0, 2.0
_END, _END_BYTES = b"%%EOF", 2048  # at the end of a PDF, perhaps with something after it


class FileState(NamedTuple):
    """What changes when a file is written, replaced, or becomes readable."""

    size: int
    modified: int  # in ns, as `changed`
    changed: int
    inode: int


# Device and inode: another folder, or one on another drive, has others.
Identity = tuple[int, int]
_BROKEN = FileState(-1, 0, 0, 0)  # a link whose target is not there


@dataclass(frozen=True, slots=True)
class Changes:
    """What to do to bring the library in step with folders."""

    files: dict[Path, str] = field(default_factory=dict)  # path -> display name of what is new or has changed
    removed: tuple[str, ...] = ()  # paths that are gone

    def __bool__(self) -> bool:
        return bool(self.files or self.removed)


class _Seen(NamedTuple):
    """Where a file was when it was last there."""

    folder: Identity
    root: Identity


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """What is in a folder now."""

    root: Identity
    files: Mapping[str, FileState]
    folders: Mapping[str, Identity]
    unknown: tuple[str, ...]  # folders that could not be searched


class WatchedFolder:
    """One folder, or one file, and what the library was given of it. Times are those of a monotonic clock."""

    def __init__(self, path: Path, known: Callable[[], Iterable[str]]) -> None:
        """known: returns the paths of the files in the library, at the first look."""
        self.path = Path(os.path.abspath(path))
        self._known = known
        self._given: dict[str, FileState] = {}  # what the library was given
        self._seen: dict[str, _Seen] = {}
        self._since: dict[str, tuple[FileState | None, float]] = {}  # what has changed -> its state, and since when
        self._missing: set[str] | None = None  # files of the library that this has not seen
        self._root: Identity | None = None  # at the last look
        self._away: dict[str, int] = {}  # place that is gone -> the number of its files
        self.is_unsettled = False  # whether to look again soon

    def is_other(self) -> bool:
        """Whether another folder is there than at the last look, or none: a drive came or went."""
        return _identity(self.path) != self._root

    def look(self, now: float, clock: float) -> Changes:
        """What has been new, changed or gone for long enough. clock: the time as files have it, in seconds."""
        if self._missing is None:
            inside = os.path.join(self.path, "")
            self._missing = {path for path in self._known() if path == str(self.path) or path.startswith(inside)}
        snapshot = _snapshot(self.path)
        files = snapshot.files if snapshot else {}
        changed = {path: state for path, state in files.items() if self._given.get(path) != state}
        gone, away = self._gone(snapshot, self._missing | self._seen.keys())
        self._away = away
        pending: dict[str, FileState | None] = {**changed, **dict.fromkeys(gone)}
        self._since = {
            path: before
            if (before := self._since.get(path)) and before[0] == state
            else (state, now - _age_s(state, clock))
            for path, state in pending.items()
        }
        still = {path for path in pending if now - self._since[path][1] >= _wait_s(path, pending[path])}
        self.is_unsettled = len(still) < len(pending)
        self._root = snapshot.root if snapshot else None
        if snapshot:
            for path in files:
                self._seen[path] = _Seen(snapshot.folders.get(os.path.dirname(path), snapshot.root), snapshot.root)
        self._missing -= files.keys()
        new = {Path(path): self._name(path) for path in sorted(still & changed.keys())}
        return Changes(new, tuple(sorted(still - changed.keys())))

    def away(self) -> dict[str, int]:
        """Each folder that is gone or was replaced, with the number of its files, whose papers stay."""
        return dict(self._away)

    def done(self, changes: Changes) -> None:
        """The library was given these changes."""
        for path in changes.files:
            state = self._since.pop(str(path), (None, 0.0))[0]
            if state is not None:
                self._given[str(path)] = state
        for gone in changes.removed:
            for known in (self._since, self._given, self._seen):
                known.pop(gone, None)
            if self._missing:
                self._missing.discard(gone)

    def forget(self, paths: Iterable[str]) -> None:
        """Give these files to the library again at the next look."""
        for path in paths:
            self._given.pop(path, None)

    def _name(self, path: str) -> str:
        """As find_pdfs gives it."""
        return self.path.name if path == str(self.path) else Path(path).relative_to(self.path).as_posix()

    def _gone(self, snapshot: _Snapshot | None, known: set[str]) -> tuple[list[str], dict[str, int]]:
        """The known files that are gone from folders that are there; and what is away."""
        if snapshot is None:
            return [], {str(self.path): len(known)} if known else {}
        # One that is there, but is not in the snapshot, is hidden or was named by a person.
        missing = [path for path in known - snapshot.files.keys() if not os.path.lexists(path)]
        gone: list[str] = []
        away: dict[str, int] = {}
        # Where files lived that are still there: the folder is that one, even if it is mounted anew.
        found = {(os.path.dirname(path), self._lived_in(path)) for path in snapshot.files if path in known}
        for path in missing:
            folder = os.path.dirname(path)
            if any(folder == one or folder.startswith(os.path.join(one, "")) for one in snapshot.unknown):
                continue
            if (folder, self._lived_in(path)) in found:
                self._seen[path] = _Seen(snapshot.folders[folder], snapshot.root)  # as that of those is from now on
            if self._is_same_place(path, folder, snapshot):
                gone.append(path)
            else:
                away[folder] = away.get(folder, 0) + 1
        return gone, away

    def _lived_in(self, path: str) -> Identity | None:
        """The folder that a known file was in; None if that is not known, after a start."""
        seen = self._seen.get(path)
        return seen and seen.folder

    def _is_same_place(self, path: str, folder: str, snapshot: _Snapshot) -> bool:
        """Whether the folder of a missing file is the one that it was in, or was deleted, and did not go with its
        drive. After a start nothing is known about it."""
        seen = self._seen.get(path)
        if seen is None:
            return False
        if folder in snapshot.folders:
            return snapshot.folders[folder] == seen.folder
        return seen.root == snapshot.root and seen.folder[0] == snapshot.root[0]


def _age_s(state: FileState | None, clock: float) -> float:
    """For how long a file has been in this state, as far as its times tell."""
    return 0.0 if state is None else max(0.0, clock - max(state.modified, state.changed) / 1e9)


def _wait_s(path: str, state: FileState | None) -> float:
    """How long a file has to be in this state; None: gone."""
    if state is None:
        return GONE_S
    return SETTLE_S if state == _BROKEN or _is_whole(path) else TORN_S


def _is_whole(path: str) -> bool:
    """Whether a file ends as a PDF does, or cannot be read, which is said at once."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return True
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _END_BYTES))
            return _END in file.read(_END_BYTES)
    except OSError:
        return True


def _identity(path: Path | str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _snapshot(root: Path) -> _Snapshot | None:
    """What is in a folder; None if it is away, or went away meanwhile."""
    before = _identity(root)
    if before is None:
        return None
    if not root.is_dir():
        state = _state(str(root))
        return state and _Snapshot(before, {str(root): state}, {}, ())
    files: dict[str, FileState] = {}
    folders: dict[str, Identity] = {}
    unknown: list[str] = []
    for parent, paths in discovery.walk(root, lambda error: unknown.append(str(error.filename))):
        identity = _identity(parent)
        if identity is None:
            unknown.append(parent)
            continue
        folders[parent] = identity
        for path in paths:
            if state := _state(path):
                files[path] = state
    if _identity(root) != before or str(root) in unknown:
        return None
    return _Snapshot(before, files, folders, tuple(unknown))


def _state(path: str) -> FileState | None:
    """None if the file is gone by now."""
    try:
        status = os.stat(path)
    except OSError:
        with suppress(OSError):
            os.lstat(path)
            return _BROKEN
        return None
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def away_notice(folder: str, files: int) -> str:
    """A sentence about a folder that is away."""
    stay = "its paper stays" if files == 1 else f"its {files:,} papers stay"
    return (
        f"{plain_line(folder)} is away or empty, perhaps because its drive is: {stay} in the index."
        f" If not, `{command('ingest --prune')}` removes what is gone."
    )
