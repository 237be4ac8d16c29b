"""Closes a store to other users of the computer: files 0600, folders 0700.

What a command writes is closed from the start, by its umask (folio/cli/command.py). This closes what was written with
another: by an older version, or by a program that uses Folio as a library.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

# What Folio writes into the folder of a store
NAMES = (
    *("library.*", "user[.-]*", "rebuild.*", "takeover*", "vectors*", "lexical*", "fine", "pdfs"),
    *("scans", "evaluations", "chat_history", "deep_search.*", "uploads", "writer.lock", "announced-*"),
)


def make_private(store: Path, *files: Path) -> None:
    """Take from everybody else the access to a store and to these files, as far as they belong to this user.

    In the store's folder only what Folio wrote is closed, and the folder itself if it holds nothing else: a user's own
    files keep their mode. Does nothing on Windows, and where it is not allowed to.
    """
    if sys.platform == "win32":
        return
    for file in files:
        _close(file)
    folder = os.path.realpath(store)
    with suppress(OSError):
        names = os.listdir(folder)
        ours = [name for name in names if any(fnmatchcase(name, pattern) for pattern in NAMES)]
        if ours and len(ours) == len(names):
            _close(folder)
        for name in ours:
            _close(os.path.join(folder, name))
            for parent, folders, inside in os.walk(os.path.join(folder, name)):
                for found in (*folders, *inside):
                    _close(os.path.join(parent, found))


def _close(path: str | Path) -> None:
    with suppress(OSError):
        found = os.lstat(path)
        mode = stat.S_IMODE(found.st_mode)
        is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
        if is_plain and mode & 0o077 and found.st_uid == os.geteuid():
            os.chmod(path, mode & 0o700)
