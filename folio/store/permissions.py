"""Makes a store inaccessible to other users of the computer: files 0600, folders 0700.

Commands write with a private umask (folio/cli/command.py). This module closes files that were written without it, by an
older version or by a program that uses Folio as a library.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

# The files and folders that Folio writes in the folder of a store
NAMES = (
    *("library.*", "user[.-]*", "rebuild.*", "takeover*", "vectors*", "lexical*", "fine", "pdfs"),
    *("scans", "evaluations", "chat_history", "deep_search.*", "uploads", "writer.lock", "announced-*"),
)


def make_private(store: Path, *files: Path) -> None:
    """Remove other users' access to a store and to these files, as far as they belong to this user.

    In the store's folder, only Folio's files are closed, and the folder itself if it has no other files: a user's own
    files keep their mode. Does nothing on Windows, and ignores files that it may not change.
    """
    if sys.platform == "win32":
        return
    for file in files:
        _close(file)
    folder = os.path.realpath(store)
    with suppress(OSError):
        names = os.listdir(folder)
        from_folio = [name for name in names if any(fnmatchcase(name, pattern) for pattern in NAMES)]
        if from_folio and len(from_folio) == len(names):
            _close(folder)
        for name in from_folio:
            _close(os.path.join(folder, name))
            for parent, folders, files_inside in os.walk(os.path.join(folder, name)):
                for child in (*folders, *files_inside):
                    _close(os.path.join(parent, child))


def _close(path: str | Path) -> None:
    with suppress(OSError):
        status = os.lstat(path)
        mode = stat.S_IMODE(status.st_mode)
        is_plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        if is_plain and mode & 0o077 and status.st_uid == os.geteuid():
            os.chmod(path, mode & 0o700)
