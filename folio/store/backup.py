"""A backup of what people made: one file with all their rows, as user.sqlite has them, whatever engine keeps them.

It is compressed, and its checksum tells whether a byte of it has changed. A restore is checked before anything changes,
and replaces everything in one transaction: all of it or nothing.
"""

from __future__ import annotations

import gzip
import shutil
import uuid
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from folio.errors import StoreError, UsageError
from folio.store import user_file
from folio.store.check import USER_TABLES
from folio.store.database import FIRST, NAMES, Database
from folio.store.sqlite import SqliteDatabase
from folio.store.table_copy import copy_tables
from folio.store.user_repair import unreadable
from folio.system.files import no_space

_HEADER, _GZIP = b"SQLite format 3\0", b"\x1f\x8b"
_NO_BACKUP = "Choose a file that Folio's backup has written, or one of the daily copies of user.sqlite."
# What no backup needs: which server answers a question now
_NOW = ("answering",)


def write_backup(database: Database, folder: Path) -> Path:
    """Write everything that people made to a new file in an empty folder. Raises StoreError, DiskFull."""
    path, compressed = folder / user_file.NAME, folder / f"{user_file.NAME}.gz"
    with no_space(folder):
        with closing(SqliteDatabase(path, "user", create=True)) as backup:
            with database.snapshot(), backup.transaction("user"):
                copy_tables(database, backup, _kept(), lambda *_: None)
            backup.merge_log()
        with path.open("rb") as file, gzip.open(compressed, "wb", compresslevel=5) as target:
            shutil.copyfileobj(file, target)
    return compressed


def unpack_backup(upload: BinaryIO, path: Path) -> None:
    """Write a backup, or a copy of user.sqlite, to a file that can be restored from. Raises UsageError, DiskFull."""
    is_compressed = upload.read(2) == _GZIP
    upload.seek(0)
    source = gzip.GzipFile(fileobj=upload, mode="rb") if is_compressed else upload
    try:
        with no_space(path.parent), path.open("wb") as file:
            shutil.copyfileobj(source, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError("This backup is damaged: it is cut short, or a part of it has changed.", _NO_BACKUP) from error


def require_backup(path: Path) -> None:
    """Raise UsageError unless a file is a whole backup that this Folio can read."""
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise UsageError("This file is no backup of Folio.", _NO_BACKUP)
    if not user_file.is_sound(path):
        raise UsageError("This backup is damaged, or of another program.", _NO_BACKUP)
    try:
        with closing(SqliteDatabase(path, "user", create=True)) as backup:  # gets the tables of later versions
            faults = [table for table in USER_TABLES if unreadable(backup, table)]
    except StoreError as error:
        raise UsageError(f"This file cannot be read as a backup: {error.happened}", _NO_BACKUP) from error
    if faults:
        raise UsageError(f"Parts of this backup are damaged: {', '.join(faults)}.", "Choose an earlier backup.")


def restore_backup(database: Database, path: Path, before: Callable[[], None] = lambda: None) -> dict[str, int]:
    """Put the rows of a backup in place of all that people made; returns the number of rows by table.

    before: called once the backup has been checked. Raises UsageError if it is no whole backup, StoreError.
    """
    require_backup(path)
    before()
    with closing(SqliteDatabase(path, "user", create=True)) as backup:
        counts = {table: int(backup.query(f"SELECT count(*) FROM {table}")[0][0]) for table in _kept()}
        with database.transaction():
            for table in reversed(NAMES["user"]):
                if table != FIRST["user"]:
                    database.execute(f"DELETE FROM {table}")
            copy_tables(backup, database, _kept(), lambda *_: None)
            # Indexes have titles, which people edit: they are made again.
            database.execute("UPDATE meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)
    return counts


def _kept() -> list[str]:
    return [table for table in NAMES["user"] if table not in _NOW]
