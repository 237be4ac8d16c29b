"""System calls of SQLite that fail: a disk with a bad sector, a full one, a process with too many open files.

SQLite lets its own tests replace the system calls of its file system (sqlite3_vfs.xSetSystemCall); so does this.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

# Name in SQLite -> its C type. Each returns a negative number for an error, and sets errno.
_SIZE, _INT, _ADDRESS = ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
_CALLS: dict[str, tuple[Any, ...]] = {
    "pread64": (_SIZE, _INT, _ADDRESS, ctypes.c_size_t, ctypes.c_int64),
    "pread": (_SIZE, _INT, _ADDRESS, ctypes.c_size_t, ctypes.c_int64),
    "read": (_SIZE, _INT, _ADDRESS, ctypes.c_size_t),
    "pwrite64": (_SIZE, _INT, _ADDRESS, ctypes.c_size_t, ctypes.c_int64),
    "pwrite": (_SIZE, _INT, _ADDRESS, ctypes.c_size_t, ctypes.c_int64),
    "write": (_SIZE, _INT, _ADDRESS, ctypes.c_size_t),
    "open": (_INT, ctypes.c_char_p, _INT, _INT),
    "ftruncate": (_INT, _INT, ctypes.c_int64),
}
KINDS = {
    "read": (("pread64", "pread", "read"), errno.EIO),
    "write": (("pwrite64", "pwrite", "write"), errno.EIO),
    "space": (("pwrite64", "pwrite", "write"), errno.ENOSPC),
    "open": (("open",), errno.EMFILE),
    "cut": (("ftruncate",), errno.EIO),
}


class _Vfs(ctypes.Structure):
    """sqlite3_vfs of <sqlite3.h>, version 3."""

    _fields_ = (
        *(("version", _INT), ("file_size", _INT), ("longest_path", _INT), ("next", _ADDRESS)),
        *(("name", ctypes.c_char_p), ("data", _ADDRESS), ("methods", _ADDRESS * 13)),
        *(("set_system_call", _ADDRESS), ("get_system_call", _ADDRESS), ("next_system_call", _ADDRESS)),
    )


@dataclass
class Faults:
    """The calls of one kind that SQLite has made, and which of them fail: those from `first` on, so many."""

    made: int = 0
    first: int = 0
    failing: int = 0

    def fails(self) -> bool:
        self.made += 1
        return self.first <= self.made - 1 < self.first + self.failing


@contextmanager
def sqlite_faults(kind: str, first: int = 0, failing: int = 0) -> Iterator[Faults]:
    """Inside, these calls of SQLite in this process fail. kind: of KINDS. Skips the test where that is not possible."""
    names, number = KINDS[kind]
    vfs = _vfs()
    set_call = ctypes.CFUNCTYPE(_INT, _ADDRESS, ctypes.c_char_p, _ADDRESS)(vfs.set_system_call)
    get_call = ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, ctypes.c_char_p)(vfs.get_system_call)
    faults, kept = Faults(first=first, failing=failing), []
    for name in names:
        real = get_call(ctypes.addressof(vfs), name.encode())
        if real:
            kind_of_call = ctypes.CFUNCTYPE(*_CALLS[name], use_errno=True)
            kept.append((name, real, kind_of_call(_failing(kind_of_call(real), faults, number))))
    try:
        for name, _, ours in kept:
            set_call(ctypes.addressof(vfs), name.encode(), ctypes.cast(ours, _ADDRESS))
        yield faults
    finally:
        for name, real, _ in kept:
            set_call(ctypes.addressof(vfs), name.encode(), real)


def _failing(real: Callable[..., int], faults: Faults, number: int) -> Callable[..., int]:
    def call(*arguments: Any) -> int:
        if faults.fails():
            ctypes.set_errno(number)
            return -1
        return real(*arguments)

    return call


def _vfs() -> _Vfs:
    try:
        library = ctypes.CDLL(_sqlite3.__file__)  # with what it is linked to
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        found: _Vfs = library.sqlite3_vfs_find(None).contents
    except (AttributeError, OSError, ValueError):
        pytest.skip("SQLite cannot be reached in this Python")
    if sys.platform == "win32" or found.version < 3:
        pytest.skip("the system calls of this SQLite have other names")
    return found
