"""Files on disk: hashing, atomic replacement, temporary folders, private files, and system errors as Folio's own."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path
from time import sleep

from folio.errors import DiskFull, FolioError, command

# The folder in PAPERS_DIR for the files of removed or replaced papers. Ingestion skips hidden folders.
REMOVED = ".removed"
# Windows' error numbers for a file that is open or mapped: access denied, two violations, a mapped section
_IN_USE = (5, 32, 33, 1224)
TRIES, PAUSE_S = 50, 0.02  # while another program uses a file for a moment
# Seconds after which a temporary folder is deleted: the user has seen its pictures, or its command has ended
KEPT_S = 24 * 3600
# The names of make_folder: tempfile adds eight characters to the prefix
_TEMPORARY = re.compile(r"folio-(?:backup|bibliography|bm25|pages|plot|ray|restore|zotero)-[a-z0-9_]{8}")
# The files and folders that Folio writes in the folder of a store
NAMES = (
    *("library.*", "user[.-]*", "rebuild.*", "takeover*", "vectors*", "lexical*", "fine", "pdfs"),
    *("scans", "evaluations", "chat_history", "deep_search.*", "uploads", "writer.lock", "announced-*"),
)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[1-9¹²³]|lpt[1-9¹²³])(?:\.|$)", re.IGNORECASE)
_KINDS = {
    stat.S_IFIFO: "A named pipe",
    stat.S_IFSOCK: "A socket",
    stat.S_IFCHR: "A device",
    stat.S_IFBLK: "A device",
    stat.S_IFDIR: "A folder",
}


class NotAFile(OSError):
    """The path is not a regular file, but a pipe, a socket, a device or a folder."""


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading. Raises OSError; NotAFile for a pipe or a device, which might never end."""
    _refuse_irregular(path, path.stat())  # before opening, because opening a device may already act on it
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        _refuse_irregular(path, os.fstat(file.fileno()))  # it may have been replaced before it was opened
    except OSError:
        file.close()
        raise
    return file


def _refuse_irregular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "This")
        raise NotAFile(errno.EINVAL, f"{kind} is not a file", str(path))


def sha256_file(path: Path) -> str:
    """The SHA-256 of a regular file's bytes, in hex. Raises OSError as open_regular does."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None if it cannot be examined. Another identity means another file.

    The system does not reuse the inode of an open file.
    """
    try:
        status = path.stat()
    except OSError:  # opening it will report the error
        return None
    return status.st_dev, status.st_ino


def sync(path: Path) -> None:
    """Flush a file to the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def is_in_use(error: OSError) -> bool:
    """Whether a program has the file open or mapped, which is an obstacle only on Windows."""
    return getattr(error, "winerror", None) in _IN_USE


def replace(old: Path, new: Path) -> None:
    """Rename a file over an existing one. Raises OSError. Retries on Windows: a program may be reading that file."""
    for tries_left in reversed(range(TRIES)):
        try:
            os.replace(old, new)
            return
        except OSError as error:
            if not tries_left or not is_in_use(error):
                raise
            sleep(PAUSE_S)


def discard(path: Path) -> None:
    """Remove a file or folder, except files that a reader has open on Windows: a later call removes them."""
    try:
        remove(path)
    except OSError as error:
        if not is_in_use(error):
            raise
        for inside in path.rglob("*"):
            with suppress(OSError):
                inside.unlink()


def sync_folder(folder: Path) -> None:
    """Flush the names of a folder's files to the disk, after a rename. Not possible on Windows."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file or a folder if it exists. Raises OSError. Retries: tantivy may still write there after a merge."""
    for tries_left in reversed(range(TRIES)):
        try:
            if not path.is_symlink() and path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            return
        except OSError:
            if not tries_left:
                raise
            sleep(PAUSE_S)


def write_json(path: Path, value: object) -> None:
    """Replace a file atomically (write a new one, sync, rename), unless it is identical already. Raises DiskFull."""
    _replace(path, json_bytes(value))


def write_text(path: Path, text: str) -> None:
    """Like write_json, for text in UTF-8."""
    _replace(path, text.encode())


def write_output(path: Path, content: bytes) -> None:
    """Write where a person said: through a link, into a pipe, to a device. Raises DiskFull.

    A file that is there stays that file, with its permissions, its owner and all its names; it gets its old content
    back if it cannot be written to the end.
    """
    if not path.is_file():
        _replace(path, content)
        return
    before = path.read_bytes() if os.access(path, os.R_OK) else b""
    with no_space(path.parent):
        try:
            path.write_bytes(content)
        except BaseException:
            with suppress(OSError):
                path.write_bytes(before)
            raise


def write_private(path: Path, text: str) -> None:
    """Like write_text, for a file that only this user can read, whatever the umask."""
    _replace(path, text.encode(), _open_private)


def _open_private(path: str, flags: int) -> int:
    Path(path).unlink(missing_ok=True)  # the file of a killed process may have another mode, or be a link
    return os.open(path, flags | os.O_EXCL, 0o600)


def _replace(path: Path, content: bytes, opener: Callable[[str, int], int] | None = None) -> None:
    if path.is_file():
        with suppress(OSError):
            if path.stat().st_size == len(content) and path.read_bytes() == content:
                return
    elif path.exists():  # a device such as /dev/null is written, never replaced; a folder is an error
        with no_space(path.parent), path.open("wb") as irregular:
            irregular.write(content)
        return
    path = Path(os.path.realpath(path)) if opener is None else path  # a link stays one
    new = path.with_name(path.name + ".new")
    with no_space(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(new, "wb", opener=opener) as file:
            file.write(content)
        sync(new)
        replace(new, path)


def json_bytes(value: object) -> bytes:
    """The content of a JSON file."""
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


@contextmanager
def no_space(folder: Path) -> Iterator[None]:
    """Raise the system's "no space left" as DiskFull."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise disk_full(folder) from error
        raise


def is_full(error: OSError) -> bool:
    """Whether the error means that there is no space left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_protected(error: OSError) -> bool:
    """Whether the error means that this user may not read or write something."""
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def unusable(error: OSError) -> FolioError:
    """A system error as a FolioError."""
    if is_in_use(error):
        return FolioError(
            f"{error.filename or 'A file'} is open in another program, or may not be changed.",
            f"Close the other program, such as a viewer or `{command('serve')}`, and run the same command again.",
        )
    place = f"{error.filename} cannot be used" if error.filename else "A file cannot be used"
    return FolioError(f"{place}: {error.strerror or error}.", "Check the path, its permissions and the disk.")


def disk_full(folder: Path) -> DiskFull:
    return DiskFull(
        f"There is no space left on the disk that holds {folder}.",
        "Free some space and run the same command again; what was indexed before is kept.",
    )


def no_device(name: str) -> str:
    """A file name that is no device on Windows, as CON, NUL and COM1.pdf are."""
    return f"_{name}" if _DEVICE.match(name) else name


def shortened(name: str, longest: int) -> str:
    """The beginning of a file name, at most `longest` bytes in UTF-8."""
    return name.encode(errors="replace")[:longest].decode(errors="ignore")


def make_folder(prefix: str) -> Path:
    """A new temporary folder that only this user can read. Deletes old ones that killed commands have left.

    prefix: "folio-" and a name that _TEMPORARY has, and "-"
    """
    _delete_old()
    return Path(tempfile.mkdtemp(prefix=prefix))


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Like make_folder, for a `with` block."""
    folder = make_folder(prefix)
    try:
        yield folder
    finally:
        with suppress(OSError):
            remove(folder)


def _delete_old() -> None:
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and _is_old(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_old(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return stat.S_ISDIR(status.st_mode) and is_own and time.time() - status.st_mtime > KEPT_S


def make_private(store: Path, *files: Path) -> None:
    """Remove other users' access to a store and these files: files 0600, folders 0700. Does nothing on Windows.

    Commands write with a private umask (cli/command.py); older versions and programs that use Folio as a library do
    not. The user's other files in the store's folder keep their mode, and then so does the folder.
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
