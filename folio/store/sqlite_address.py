"""SQLite's addresses of files that cannot or must not be written, and the file states that show a change."""

from __future__ import annotations

import os
from pathlib import Path

# Inode, bytes, and time of the last change in ns
FileState = tuple[int, int, int]


def uri(path: Path) -> str:
    """The URI of a file, in ASCII: in the locale C, a path may contain characters that SQLite does not accept."""
    return Path(os.path.abspath(path)).as_uri()


def immutable_uri(path: Path) -> str:
    """The URI of a file that nobody writes: https://www.sqlite.org/uri.html#uriimmutable"""
    return f"{uri(path)}?mode=ro&immutable=1"


def read_only_uri(path: Path) -> str:
    """The URI for reading a file that others may write: https://www.sqlite.org/uri.html#urimode"""
    return f"{uri(path)}?mode=ro"


def has_log(path: Path) -> bool:
    """Whether a write-ahead log holds a part of this database."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def file_state(path: Path) -> FileState:
    """A value that changes when a file is written or replaced; zeros if there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_ino, status.st_size, status.st_mtime_ns
