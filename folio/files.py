"""Files on disk: hashed, and replaced whole so that nothing half-written is ever read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from folio.errors import DiskFull, FolioError


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def identity(path: Path) -> tuple[int, int] | None:
    """What lies at a path, by device and inode; None where nothing can be seen. An open file's inode is given to no
    other."""
    try:
        found = path.stat()
    except OSError:  # opening it says what is wrong
        return None
    return found.st_dev, found.st_ino


def sync(path: Path) -> None:
    """Wait until a file's bytes are on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def write_json(path: Path, value: object) -> None:
    """Replace a file: written beside, synced, renamed. One that says the same is left alone. Raises DiskFull."""
    content = (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
    if _says(path, content):
        return
    beside = path.with_name(path.name + ".new")
    with no_space(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(content)
        sync(beside)
        os.replace(beside, path)


def _says(path: Path, content: bytes) -> bool:
    """Whether a file can be read and holds just this."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


@contextmanager
def no_space(folder: Path) -> Iterator[None]:
    """Turn the system's "no space left" into DiskFull."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise disk_full(folder) from error
        raise


def is_full(error: OSError) -> bool:
    """Whether it says that there is no space left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def unusable(error: OSError) -> FolioError:
    """What an error of the system's means to a person."""
    place = f"{error.filename} cannot be used" if error.filename else "A file cannot be used"
    return FolioError(f"{place}: {error.strerror or error}.", "Check the path, its permissions and the disk.")


def disk_full(folder: Path) -> DiskFull:
    return DiskFull(
        f"There is no space left on the disk that holds {folder}.",
        "Free some space and run the same command again; what was indexed before is kept.",
    )
