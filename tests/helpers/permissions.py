"""Files and folders that cannot be written, by root neither."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CAP_DAC_OVERRIDE = 1  # <linux/capability.h>: write whatever the permissions of a file are
VERSION_3 = 0x20080522


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    """This file, or this folder, cannot be written by this thread. After it, all can be written.

    SQLite gives the files that it makes beside a database the permissions of the database.
    """
    if not hasattr(os, "geteuid"):
        pytest.skip("needs a system on which files can be made read-only")
    folder = place if place.is_dir() else place.parent
    place.chmod(0o500)
    try:
        with _without_override():
            yield
    finally:
        for path in (folder, *folder.iterdir()):
            path.chmod(0o700)


@contextmanager
def _without_override() -> Iterator[None]:
    """Root keeps to the permissions of files, as any other user does."""
    if os.geteuid():
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root writes everything here")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)  # of this thread
    capabilities = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable, twice
    if libc.capget(header, capabilities):
        raise OSError(ctypes.get_errno(), "capget")
    before = capabilities[0]
    capabilities[0] = before & ~(1 << CAP_DAC_OVERRIDE)
    if libc.capset(header, capabilities):
        raise OSError(ctypes.get_errno(), "capset")
    try:
        yield
    finally:
        capabilities[0] = before
        libc.capset(header, capabilities)


@contextmanager
def read_only_tree(folder: Path) -> Iterator[None]:
    """Nothing in this folder, at any depth, can be written by this thread and those that it starts, as on a DVD."""
    if not hasattr(os, "geteuid"):
        pytest.skip("needs a system on which files can be made read-only")
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
    for path in modes:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        with _without_override():
            yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
