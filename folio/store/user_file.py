"""user.sqlite, the file with the user data: its copies of each day, and whether it is sound.

Nothing else can restore it, and only a repair does (store/user_repair.py). A copy is made before the first change of a
day, and renewed when a command that has changed the file ends. The name of a copy has its date, for people; a number in
it says which is newer, because a clock may be wrong. The three newest are kept. A lock lets one process at a time copy
or restore the file.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import UTC, date, datetime
from pathlib import Path

from filelock import FileLock

from folio.errors import UserFileDamaged, command
from folio.store.database import TABLES, USER_VERSION, Part, added_since, statements
from folio.system.files import discard, replace, sha256_file, sync, sync_folder

# Inode, bytes, and time of the last change in ns
FileState = tuple[int, int, int]


NAME = "user.sqlite"
COPIES = 3
# Where SQLite's header has the application id (https://www.sqlite.org/fileformat.html#application_id): in a copy, its
# number. No statement needs it, and it is read without opening the file.
_NUMBER_AT = slice(68, 72)
_MOST_COPIES = 2**31  # a larger number is damage
# How SQLite's check reports a page that the system could not read, with SQLite's error code if it has one
_NOT_READ = re.compile(r"unable to get the page\. error code=(\d+)|failed to get page")
_CORRUPT, _SHORT_READ = 11, 522  # SQLITE_CORRUPT and its kin, SQLITE_IOERR_SHORT_READ


def user_file_of(library: Path) -> Path:
    """The file that belongs to a library."""
    return library.with_name(NAME)


def set_aside(path: Path) -> list[Path]:
    """The renamed damaged versions of a file, oldest first."""
    return sorted(path.parent.glob(f"{path.stem}.damaged-*{path.suffix}"))


def put_aside(path: Path, *, linked: bool = False) -> Path | None:
    """Rename a damaged file with its log; returns its new path, None if there is none. Continues after a kill.

    linked: also leave it at its old path, if possible, for the caller to replace. Otherwise a process that opens the
    path meanwhile would make an empty file there, and write to it.
    """
    wal, shm = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    aside: Path | None = None
    if has_content(path):
        earlier = [damaged for damaged in set_aside(path) if damaged.samefile(path)]  # from before a kill
        new_name = path.with_name(f"{path.stem}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}{path.suffix}")
        aside = earlier[-1] if earlier else new_name
        if not earlier and not (linked and _link(path, aside)):
            replace(path, aside)
        elif earlier and not linked:
            path.unlink()
    elif earlier := set_aside(path):
        aside = earlier[-1]
    if aside is not None and wal.exists():
        replace(wal, aside.with_name(f"{aside.name}-wal"))
    for log in (wal, shm):  # SQLite would use them for the new file
        log.unlink(missing_ok=True)
    return aside


def _link(path: Path, other: Path) -> bool:
    try:
        os.link(path, other)
    except OSError:  # a file system without hard links
        return False
    return True


def has_content(path: Path) -> bool:
    """Whether there is a file with content, in itself or in its write-ahead log."""
    return path.exists() and (path.stat().st_size > 0 or has_log(path))


def place_both(folder: Path, library: Path) -> None:
    """Move a complete library and its user.sqlite from `folder` to their places, and delete the folder.

    user.sqlite is moved first: after a kill in between, the old library is still there, and the caller starts again.
    """
    files = (user_file_of(library), library)
    for file in files:
        sync(folder / file.name)
    for file in files:
        for log in ("-wal", "-shm"):
            file.with_name(file.name + log).unlink(missing_ok=True)
        replace(folder / file.name, file)
    sync_folder(library.parent)
    copy_now(user_file_of(library))
    discard(folder)


def _is_empty(path: Path) -> bool:
    """Whether there is no file, or one without bytes, whose log SQLite would delete."""
    return not path.exists() or path.stat().st_size == 0


def copies(path: Path) -> list[Path]:
    """The copies of the file, oldest first; those of an earlier Folio have no number, and come before the others."""
    return sorted(path.parent.glob(f"{path.stem}-????-??-??{path.suffix}"), key=lambda copy: (_number(copy), copy.name))


def _number(copy: Path) -> int:
    """The number of a copy; 0 if it has none, or cannot be read."""
    try:
        with copy.open("rb") as file:
            header = file.read(_NUMBER_AT.stop)
    except OSError:
        return 0
    number = int.from_bytes(header[_NUMBER_AT], "big")
    return number if header.startswith(b"SQLite format 3\0") and number < _MOST_COPIES else 0


_changed: set[Path] = set()  # files that this process has changed since it copied them


def before_change(path: Path, today: date | None = None) -> None:
    """Copy the file unless there is a copy of today. Raises UserFileDamaged, because it must not be written then."""
    if not _copy_of(path, today).exists():
        copy_now(path, today)
    _changed.add(path)


def copy_changed() -> None:
    """Renew today's copies of the files that this process has changed, at its end."""
    while _changed:
        path = _changed.pop()
        if has_content(path):
            with suppress(UserFileDamaged):  # the next command that changes it will report it
                copy_now(path)


def copy_now(path: Path, today: date | None = None) -> None:
    """Copy the file, replacing today's copy if there is one, and delete all but the three newest copies.

    Makes no copy if the disk is full or another process is copying. Raises UserFileDamaged, and makes none then.
    """
    with suppress(OSError, sqlite3.Error), locked(path, wait_s=0):
        _copy(path, today)


def renew_copies(path: Path) -> None:
    """Overwrite and delete the copies, which still contain deleted data, and make a new copy."""
    with suppress(OSError, sqlite3.Error), locked(path):
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
    if not (is_sound(path) or is_sound(path)):  # real damage is still there the second time
        raise damaged(path, "its check finds faults")
    copy = _copy_of(path, today)
    new = copy.with_name(f"{copy.name}.new")
    try:
        _write_copy(path, new, 1 + max(map(_number, copies(path)), default=0))
        shutil.copymode(path, new)
        replace(new, copy)
    finally:
        for unfinished in _unfinished(path):  # also those of processes that were killed
            unfinished.unlink(missing_ok=True)
    for old in [other for other in copies(path) if other != copy][: 1 - COPIES]:
        old.unlink(missing_ok=True)


def _write_copy(path: Path, new: Path, number: int) -> None:
    new.unlink(missing_ok=True)
    # Not read-only: such a connection leaves the log that it makes, if no other is open
    with closing(_connect(uri(path))) as source, closing(_connect(str(new))) as target:
        target.execute("PRAGMA journal_mode = OFF")  # a new file needs no rollback
        source.backup(target)
    with new.open("rb+") as file:
        file.seek(_NUMBER_AT.start)
        file.write(number.to_bytes(4, "big"))
    sync(new)


def damaged(path: Path, fault: str) -> UserFileDamaged:
    """The error for a damaged file. fault: a clause, "its check finds faults"."""
    copy = newest_usable(path)
    rest = f", and the rest from its copy of {day_of(copy)}" if copy else ""
    return UserFileDamaged(
        f"The file {path}, with your questions, conversations and edits, is damaged: {fault}.",
        f"Run `{command('ingest --repair')}`: it takes from the file all that can be read{rest}. Until then nothing is"
        " changed.",
    )


def is_lost(path: Path) -> bool:
    """Whether the file is missing or empty although it has copies."""
    return _is_empty(path) and bool(copies(path))


def newest_usable(path: Path) -> Path | None:
    """The newest copy that is whole and sound."""
    return next(filter(_is_usable, reversed(copies(path))), None)


def day_of(copy: Path) -> str:
    """The date in the name of a copy."""
    return copy.stem[-len("YYYY-MM-DD") :]


def is_sound(path: Path) -> bool:
    """Whether SQLite's check of a file finds no proof of damage. Reads all of it."""
    try:
        # A connection to a file without a log would leave one beside it
        is_alone = not path.with_name(f"{path.name}-wal").exists()
        lines = _check(immutable_uri(path) if is_alone else read_only_uri(path), path)
        return lines == ["ok"] or bool(unread_page(lines))
    except sqlite3.OperationalError as error:  # other errors mean that it could not be read now
        return error.sqlite_errorcode != _SHORT_READ
    except sqlite3.DatabaseError:
        return read_error(path) is not None


def read_error(path: Path) -> OSError | None:
    """The error when reading the bytes of a file and its log; None if all can be read.

    SQLite reports a page that it could not read as damaged.
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
    """The lines of SQLite's check of a file, and a check of its length: SQLite reads missing bytes as zeros."""
    with closing(_connect(address)) as connection:
        connection.text_factory = lambda line: line.decode(errors="replace")  # the check quotes damaged text
        try:
            lines = [str(line) for (line,) in connection.execute("PRAGMA integrity_check").fetchall()]
            ((page_size,),) = connection.execute("PRAGMA page_size").fetchall()
            ((version,),) = connection.execute("PRAGMA user_version").fetchall()
            schema_rows = connection.execute(SELECT.format("main")).fetchall()
        except UnicodeDecodeError as error:  # SQLite's errors also quote damaged text
            return [str(error)]
    if path.stat().st_size % page_size:
        return ["the last page is cut short"]
    changed = faults("user", schema_rows, version) if schema_rows else []  # a new file has no tables yet
    return changed if lines == ["ok"] and changed else lines


def unread_page(lines: Iterable[str]) -> str:
    """The line of SQLite's check about a page that the system could not read; "" if it could read all.

    Such a page proves no damage, and makes other lines of the check unreliable.
    """
    for line in lines:
        if match := _NOT_READ.search(line):
            code = int(match[1] or 0)
            if code & 0xFF != _CORRUPT and code != _SHORT_READ:
                return match[0]
    return ""


def _unfinished(path: Path) -> list[Path]:
    return list(path.parent.glob(f"{path.stem}[.-]*.new"))


def _copy_of(path: Path, day: date | None) -> Path:
    return path.with_name(f"{path.stem}-{(day or date.today()).isoformat()}{path.suffix}")


def locked(path: Path, wait_s: float = -1) -> FileLock:
    return FileLock(path.with_name(f"{path.stem}.lock"), timeout=wait_s)


def _connect(address: str) -> sqlite3.Connection:
    return sqlite3.connect(address, uri=True, isolation_level=None)


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


# A flipped bit in the name of a column leaves a file sound to SQLite, but every statement about that column fails. So
# the schema of a file is compared with the tables of a library, in these types.
TYPES = {"text": "TEXT", "integer": "INTEGER", "real": "REAL", "bytes": "BLOB", "keyed": " WITHOUT ROWID"}
# Reads the schema of a file; as bytes, because damaged names may no longer be text
SELECT = "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM {}.sqlite_master"
_NAME = re.compile(r"CREATE (TABLE|INDEX) (\w+)")


def is_of(part: Part, schema_rows: Iterable[tuple[bytes, bytes | None]]) -> bool:
    """Whether a file has exactly the tables and indexes of a part. schema_rows: the rows of SELECT."""
    expected = {statement.encode() for statement in statements(TABLES[part], TYPES)}
    return {statement for _, statement in schema_rows if statement is not None} == expected


def faults(
    part: Part, schema_rows: Iterable[tuple[bytes, bytes | None]], user_version: int = USER_VERSION
) -> list[str]:
    """The missing or changed tables and indexes, one sentence each. schema_rows: the rows of SELECT.

    user_version: of the user data; what later versions added may be missing.
    """
    statement_of = dict(schema_rows)
    later = statements(added_since(user_version), TYPES) if part == "user" and user_version else []
    problems = []
    for statement in statements(TABLES[part], TYPES):
        kind, name = _NAME.findall(statement)[0]
        if name.encode() not in statement_of:
            if statement in later:
                continue
            problems.append(f"The {kind.lower()} {name} is missing.")
        elif statement_of[name.encode()] != statement.encode():
            problems.append(f"The {kind.lower()} {name} has changed since it was made.")
    return problems
