"""The file of what people and services said, user.sqlite: copied once a day, restored from a copy if it is damaged.

Nothing else can make it again. The three newest copies are kept, each named by its day. A lock lets one process at a
time copy or restore it.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import UTC, date, datetime
from pathlib import Path

from filelock import FileLock

from folio.files import discard, no_space, replace, sha256_file, sync, sync_folder
from folio.store import sqlite_schema
from folio.store.sqlite_address import has_log, immutable_uri, read_only_uri

NAME = "user.sqlite"
COPIES = 3
# Beside the file: something in it could not be read, so that it is to be checked before it is opened again
_SUSPECT = ".suspect"
# How SQLite's check reports that the system could not give it a page, with SQLite's error code where it has one
_NOT_READ = re.compile(r"unable to get the page\. error code=(\d+)|failed to get page")
_CORRUPT, _SHORT_READ = 11, 522  # SQLITE_CORRUPT and its kin, SQLITE_IOERR_SHORT_READ
# A folder where nothing can be written, or a file that Windows does not let go
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


def user_file(library: Path) -> Path:
    """The file that belongs to a library."""
    return library.with_name(NAME)


def set_aside(path: Path) -> list[Path]:
    """The damaged files that were renamed when others took the place of this one, oldest first."""
    return sorted(path.parent.glob(f"{path.stem}.damaged-*{path.suffix}"))


def put_aside(path: Path, *, linked: bool = False) -> Path | None:
    """Rename a damaged file with its log; returns its new path, None if there is none. Continues after a kill.

    linked: leave it at its old path too, where that is possible, for the caller to replace: whoever opens it meanwhile
    would make an empty file there, and write into that.
    """
    wal, shm = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    aside: Path | None = None
    if has_content(path):
        earlier = [one for one in set_aside(path) if one.samefile(path)]  # from before a kill
        named = path.with_name(f"{path.stem}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}{path.suffix}")
        aside = earlier[-1] if earlier else named
        if not earlier and not (linked and _link(path, aside)):
            replace(path, aside)
        elif earlier and not linked:
            path.unlink()
    elif earlier := set_aside(path):
        aside = earlier[-1]
    if aside is not None and wal.exists():
        replace(wal, aside.with_name(f"{aside.name}-wal"))
    for log in (wal, shm):  # it would be taken for the new file's
        log.unlink(missing_ok=True)
    return aside


def _link(path: Path, other: Path) -> bool:
    try:
        os.link(path, other)
    except OSError:  # a file system without such links
        return False
    return True


def has_content(path: Path) -> bool:
    """Whether there is a file that is more than begun."""
    return path.exists() and (path.stat().st_size > 0 or has_log(path))


def place_both(made: Path, library: Path) -> None:
    """Put a library and its user.sqlite, made whole in the folder `made`, into their places, and delete the folder.

    What people said goes first, and is copied: whoever is killed in between still has the old library, and does all of
    it again.
    """
    files = (user_file(library), library)
    for file in files:
        sync(made / file.name)
    for file in files:
        for log in ("-wal", "-shm"):
            file.with_name(file.name + log).unlink(missing_ok=True)
        replace(made / file.name, file)
    sync_folder(library.parent)
    copy_now(user_file(library))
    discard(made)


def _is_empty(path: Path) -> bool:
    """Whether there is no file, or one of no bytes: SQLite deletes the log of that."""
    return not path.exists() or path.stat().st_size == 0


def copies(path: Path) -> list[Path]:
    """The copies of the file, oldest first."""
    return sorted(path.parent.glob(f"{path.stem}-????-??-??{path.suffix}"))


def copy_daily(path: Path, today: date | None = None) -> None:
    """Copy the file if that has not been done today."""
    if not _copy_of(path, today).exists():
        copy_now(path, today)


def copy_now(path: Path, today: date | None = None) -> None:
    """Copy the file, in the place of today's copy if there is one, and delete copies beyond the three newest.

    A file that is found damaged is not copied but suspected. Where there is no room, or another process is at it, there
    is no copy.
    """
    with suppress(OSError, sqlite3.Error), _locked(path, wait_s=0):
        _copy(path, today)


def renew_copies(path: Path) -> None:
    """Overwrite and delete the copies, which have what was deleted from the file, and copy what it has now."""
    with suppress(OSError, sqlite3.Error), _locked(path):
        for copy in (*copies(path), *_unfinished(path)):
            with suppress(OSError):
                with copy.open("rb+") as file:
                    file.write(bytes(os.fstat(file.fileno()).st_size))
                sync(copy)
                copy.unlink()
        _copy(path)


def _copy(path: Path, today: date | None = None) -> None:
    if not has_content(path):
        return
    if not is_sound(path):
        suspect(path)
        return
    copy = _copy_of(path, today)
    new = copy.with_name(f"{copy.name}.new")
    try:
        _write_copy(path, new)
        shutil.copymode(path, new)
        replace(new, copy)
    finally:
        for left in _unfinished(path):  # of earlier ones too, that were killed
            left.unlink(missing_ok=True)
    for old in [other for other in copies(path) if other != copy][: 1 - COPIES]:
        old.unlink(missing_ok=True)


def _write_copy(path: Path, new: Path) -> None:
    new.unlink(missing_ok=True)
    with closing(_connect(read_only_uri(path))) as own, closing(_connect(str(new))) as other:
        other.execute("PRAGMA journal_mode = OFF")  # nothing is there to go back to
        own.backup(other)
    sync(new)


def suspect(path: Path) -> None:
    """Note that the file is to be checked before it is opened again."""
    with suppress(OSError):
        _mark(path).touch()


def restored(path: Path, *, failed: bool = False) -> str:
    """Put the newest sound copy in the place of the file if that is missing, or proven to be damaged.

    That is looked for if the file is suspected, or has failed. Returns what happened, "" if nothing. Raises DiskFull.
    """
    is_lost = _is_empty(path) and copies(path)
    if not (failed or is_lost or _mark(path).exists()):
        return ""
    try:
        with no_space(path.parent), _locked(path):
            return _restored(path)
    except OSError as error:
        if error.errno in _NOT_ALLOWED:  # opening the file says what is wrong
            return ""
        raise


def _restored(path: Path) -> str:
    if not _is_empty(path) and (is_sound(path) or is_sound(path)):  # what proves damage is there the second time too
        _mark(path).unlink(missing_ok=True)
        return ""
    copy = next(filter(_is_usable, reversed(copies(path))), None)
    new = path.with_name(f"{path.name}.new")
    if copy is not None:
        shutil.copy(copy, new)
        sync(new)
    aside = put_aside(path, linked=copy is not None) if has_content(path) or has_log(path) else None
    if copy is not None:  # a kill before this leaves no file, and the next call continues
        replace(new, path)
    _mark(path).unlink(missing_ok=True)
    if copy is None and aside is None:
        return ""
    happened = f"{path.name} was damaged and set aside as {aside.name}" if aside else f"{path.name} was missing"
    if copy is None:
        return f"{happened}. There is no sound copy of it: your questions, conversations and edits begin anew."
    day = copy.stem.removeprefix(f"{path.stem}-")
    return f"{happened}: your questions, conversations and edits are again those of the copy of {day}."


def is_sound(path: Path) -> bool:
    """Whether SQLite finds no fault in a file that proves damage. Reads all of it."""
    try:
        lines = _check(read_only_uri(path), path)
        return lines == ["ok"] or bool(unread_page(lines))
    except sqlite3.OperationalError as error:  # others: it could not be read now, which proves nothing
        return error.sqlite_errorcode != _SHORT_READ
    except sqlite3.DatabaseError:
        return read_error(path) is not None


def read_error(path: Path) -> OSError | None:
    """What keeps the bytes of a file and its log from being read; None if all can be.

    SQLite takes a page that it did not get for a damaged one.
    """
    try:
        for part in (path, path.with_name(f"{path.name}-wal")):
            if part.exists():
                sha256_file(part)
    except OSError as error:
        return error
    return None


def _is_usable(copy: Path) -> bool:
    """Whether all of a copy could be read, and is sound."""
    try:
        return has_content(copy) and _check(immutable_uri(copy), copy) == ["ok"]
    except (OSError, sqlite3.Error):
        return False


def _check(address: str, path: Path) -> list[str]:
    """What SQLite's check of a file says. Where a part of a page is missing, SQLite takes it for zeros."""
    with closing(_connect(address)) as opened:
        opened.text_factory = lambda line: line.decode(errors="replace")  # the check quotes what is damaged
        try:
            lines = [str(line) for (line,) in opened.execute("PRAGMA integrity_check").fetchall()]
            ((page_size,),) = opened.execute("PRAGMA page_size").fetchall()
            found = opened.execute(sqlite_schema.SELECT.format("main")).fetchall()
        except UnicodeDecodeError as error:  # as do SQLite's errors
            return [str(error)]
    if path.stat().st_size % page_size:
        return ["the last page is cut short"]
    changed = sqlite_schema.faults("user", found) if found else []  # a file without tables is only begun
    return changed if lines == ["ok"] and changed else lines


def unread_page(lines: Iterable[str]) -> str:
    """What SQLite's check says of a page that the system did not give it; "" if it could read all.

    Such a page proves no damage, and makes other lines of the check wrong.
    """
    for line in lines:
        if found := _NOT_READ.search(line):
            code = int(found[1] or 0)
            if code & 0xFF != _CORRUPT and code != _SHORT_READ:
                return found[0]
    return ""


def _unfinished(path: Path) -> list[Path]:
    return list(path.parent.glob(f"{path.stem}[.-]*.new"))


def _copy_of(path: Path, day: date | None) -> Path:
    return path.with_name(f"{path.stem}-{(day or date.today()).isoformat()}{path.suffix}")


def _mark(path: Path) -> Path:
    return path.with_name(path.name + _SUSPECT)


def _locked(path: Path, wait_s: float = -1) -> FileLock:
    return FileLock(path.with_name(f"{path.stem}.lock"), timeout=wait_s)


def _connect(address: str) -> sqlite3.Connection:
    return sqlite3.connect(address, uri=True, isolation_level=None)
