"""Temporary folders that do not pile up: later commands delete what a killed one has left behind."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from folio.files import remove

# Seconds after which a folder is deleted: a person has seen its pictures, or the command that made it is gone.
KEPT_S = 24 * 3600
# As made here: tempfile adds eight characters to the prefix.
_OURS = re.compile(r"folio-(?:bm25|pages|plot|ray|zotero)-[a-z0-9_]{8}")


def make_folder(prefix: str) -> Path:
    """A new temporary folder that only this user can read. Deletes this user's old ones.

    prefix: "folio-bm25-", "folio-pages-", "folio-plot-", "folio-ray-" or "folio-zotero-"
    """
    _delete_old()
    return Path(tempfile.mkdtemp(prefix=prefix))


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """As make_folder, for the time of a `with` block."""
    folder = make_folder(prefix)
    try:
        yield folder
    finally:
        with suppress(OSError):
            remove(folder)


def _delete_old() -> None:
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name) and _is_old(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_old(entry: os.DirEntry[str]) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    is_own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return stat.S_ISDIR(found.st_mode) and is_own and time.time() - found.st_mtime > KEPT_S
