"""Tells when something changes in a folder, by the notifications of the system. watchfiles stays behind this module.

Notifications are hints to look: what has changed is found by looking, because some are lost, and network folders have
none for what other computers change.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

# A new notification is passed on after this time at most. The thread that waits for one wakes as often.
_STEP_MS = 400
# File systems whose changes by other computers, or by the host of a virtual machine, cause no notifications here
_REMOTE = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "ceph", "glusterfs", "lustre", "9p", "drvfs", "davfs",
     "vboxsf", "vmhgfs", "prl_fs", "virtiofs", "fuse")
)  # fmt: skip
_LOCAL_FUSE = frozenset(("fuse.fuse-overlayfs", "fuseblk"))  # a disk of this computer: ntfs-3g and others
_MOUNTS = Path("/proc/self/mountinfo")
_WINDOWS_REMOTE = 4  # DRIVE_REMOTE


class FolderEvents:
    """Watches a folder and all below it in a thread, until it is closed."""

    def __init__(self, folder: Path, wake: Callable[[], object]) -> None:
        """wake: called in the thread when something has changed, or the system cannot tell it (`problem`)."""
        self._folder = str(folder)
        self._wake = wake
        self._changed, self._stop = threading.Event(), threading.Event()
        self.problem = ""  # why the system tells nothing
        self._thread = threading.Thread(target=self._watch, name="folder events", daemon=True)
        self._thread.start()

    def take(self) -> bool:
        """Whether something has changed since the last call."""
        changed = self._changed.is_set()
        self._changed.clear()
        return changed

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2 * _STEP_MS / 1000)

    def _watch(self) -> None:
        try:
            from watchfiles import watch

            changes = watch(
                self._folder,
                watch_filter=lambda _, path: self._is_of_interest(path),
                step=_STEP_MS,
                debounce=_STEP_MS,
                stop_event=self._stop,
                debug=False,
                raise_interrupt=False,
                force_polling=False,  # polling looks at everything, as the caller does, and several times a second
                ignore_permission_denied=False,  # True would hide every error, the limit of watches too
            )
            for _ in changes:
                self._changed.set()
                self._wake()
        except Exception as error:  # OSError where a limit is reached; Rust's errors have other types
            said = getattr(error, "strerror", "") or str(error) or type(error).__name__
            self.problem = said.partition(". about ")[0]  # the folder, which the caller knows
            self._wake()

    def _is_of_interest(self, path: str) -> bool:
        """Whether it may concern a PDF: the path is one, or is or was a folder, and is not hidden."""
        below = path.removeprefix(self._folder).replace(os.sep, "/")
        return "/." not in below and (below.lower().endswith(".pdf") or not os.path.isfile(path))


def is_remote(folder: Path) -> bool:
    """Whether the system has no notifications for what others change in a folder: a network drive, or a shared folder
    of a virtual machine. Known on Linux and Windows."""
    if sys.platform == "win32":
        import ctypes

        drive = os.path.splitdrive(os.path.abspath(folder))[0]
        kind = ctypes.windll.kernel32.GetDriveTypeW(f"{drive}\\")
        return drive.startswith(("\\\\", "//")) or bool(kind == _WINDOWS_REMOTE)
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    kind = file_system(os.path.realpath(folder), mounts)
    return kind in _REMOTE or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)


def file_system(path: str, mounts: str) -> str:
    """The type of the file system that holds a path. mounts: as in /proc/self/mountinfo (man 5 proc)."""
    longest, kind = -1, ""
    for line in mounts.splitlines():
        fields, _, more = line.partition(" - ")
        columns = fields.split(" ")
        if len(columns) < 5 or not more:
            continue
        point = columns[4].encode(errors="surrogateescape").decode("unicode_escape").encode("latin-1")
        place = os.fsdecode(point)
        if (path == place or path.startswith(place.rstrip("/") + "/")) and len(place) >= longest:
            longest, kind = len(place), more.split(" ")[0]
    return kind
