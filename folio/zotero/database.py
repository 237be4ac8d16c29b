"""Reads Zotero's database from a private copy, so that nothing is ever written next to the original.

Zotero holds an exclusive lock while it runs, and SQLite plays back the journal of an unfinished change when it opens a
database. So the file and its journal are copied to a temporary folder, again if they changed meanwhile, and the copy is
opened.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep
from typing import Any

from folio.errors import FolioError, UsageError
from folio.system.files import no_space, open_regular, temporary_folder

# Attempts to copy the files while Zotero writes them, and seconds between two attempts
TRIES, PAUSE_S = 8, 0.25
OLDEST_VERSION = 76  # in the table `version`: Zotero 5, which introduced today's tables
TABLES = frozenset(
    (
        "version", "libraries", "groups", "items", "itemTypes", "itemAttachments", "itemData", "itemDataValues",
        "fields", "itemCreators", "creators", "creatorTypes", "collections", "collectionItems", "tags", "itemTags",
        "deletedItems",
    )
)  # fmt: skip
_SUFFIXES = ("", "-journal", "-wal")
# The end of a journal that names a super-journal: SQLite would delete the file of that name.
# https://sqlite.org/fileformat2.html, section 3, and pager.c, readSuperJournal
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_OF_THE_COPY = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_NOMEM")
_OPEN_ONCE = "Start Zotero once and close it, then run the same command again."


class Tables:
    """The tables of an opened copy. Raises UsageError when they cannot be read."""

    def __init__(self, sqlite: sqlite3.Connection, path: Path) -> None:
        """path: of the original, for messages."""
        self._sqlite = sqlite
        self._path = path
        # Ordinary tables only: views and virtual tables can run code.
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
        self.names = frozenset(str(name) for (name,) in self.rows(sql))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query. SQLite does not enforce column types, so a value may have any type."""
        try:
            return self._sqlite.execute(sql).fetchall()
        except (sqlite3.Error, OverflowError, MemoryError) as error:
            raise (_unreadable_copy(self._path) if _is_fault_of_copy(error) else _damaged(self._path)) from error


@contextmanager
def opened(path: Path) -> Iterator[Tables]:
    """The tables of Zotero's database at `path`, from a copy that is deleted at the end of the `with` block.

    Raises UsageError if it is damaged, older than Zotero 5, or not Zotero's; DiskFull; FolioError if the copy cannot be
    read.
    """
    with opened_copy(path) as tables:
        _require_zotero(tables, path)
        yield tables


@contextmanager
def opened_copy(path: Path) -> Iterator[Tables]:
    """The tables of any database at `path`. As `opened`, but for what its tables are."""
    with temporary_folder("folio-zotero-") as folder:
        copy = folder / path.name
        with no_space(folder):
            _copy_intact(path, copy)
        with closing(_connect(copy)) as sqlite:
            yield Tables(sqlite, path)


def _require_zotero(tables: Tables, path: Path) -> None:
    versions = tables.rows("SELECT version FROM version WHERE schema = 'userdata'") if "version" in tables.names else []
    version = versions[0][0] if versions else None
    if type(version) is int and version < OLDEST_VERSION:
        raise UsageError(
            f"The library {path} was last used with Zotero 4 or older.", "Open it once with Zotero 5 or newer."
        )
    if type(version) is not int or not tables.names >= TABLES:
        raise UsageError(f"The file {path} is not a library of Zotero.", "Name Zotero's data folder after --zotero.")


def _copy_intact(path: Path, copy: Path) -> None:
    """Copy a database until a copy is intact."""
    problem: FolioError = _busy(path)
    for attempt in range(TRIES):
        if attempt:
            sleep(PAUSE_S)
        if not _copied(path, copy):
            problem = _busy(path)
            continue
        if _is_intact(path, copy):
            return
        problem = _damaged(path)
        if attempt >= 1:  # the first copy may have been torn by an unnoticed write; a second bad one means damage
            break
    raise problem


def _copied(path: Path, copy: Path) -> bool:
    """Copy a database with its journal or log; False if it changed meanwhile."""
    before = _state(path)
    for suffix in _SUFFIXES:
        source, target = (each.with_name(each.name + suffix) for each in (path, copy))
        target.unlink(missing_ok=True)
        try:
            with open_regular(source) as original, target.open("wb") as duplicate:
                shutil.copyfileobj(original, duplicate, 2**20)
        except FileNotFoundError as error:
            if not suffix:
                raise UsageError(f"The library {path} is gone.", "Check where Zotero keeps its data.") from error
    if _state(path) != before:
        return False
    journal = copy.with_name(f"{copy.name}-journal")
    if journal.exists() and journal.read_bytes()[-len(_SUPER_JOURNAL) :] == _SUPER_JOURNAL:
        raise UsageError(f"Zotero was stopped while it was writing {path}.", _OPEN_ONCE)
    return True


def _state(path: Path) -> list[tuple[int, int, int] | None]:
    """Inode, size and time of each file: they change when a file is written."""
    states: list[tuple[int, int, int] | None] = []
    for suffix in _SUFFIXES:
        try:
            stat = os.stat(f"{path}{suffix}")
            states.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except FileNotFoundError:
            states.append(None)
    return states


def _is_intact(path: Path, copy: Path) -> bool:
    """Whether SQLite finds no fault: a row lost in a torn copy would look like a removed paper."""
    try:
        with closing(_connect(copy)) as sqlite:
            return bool(sqlite.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except (sqlite3.Error, MemoryError) as error:
        if _is_fault_of_copy(error):
            raise _unreadable_copy(path) from error
        return False


def _is_fault_of_copy(error: BaseException) -> bool:
    """Whether the temporary copy failed, not the original: its disk is full or failing, or memory is short."""
    name = getattr(error, "sqlite_errorname", "")
    return isinstance(error, MemoryError) or (name.startswith(_OF_THE_COPY) and name != "SQLITE_IOERR_SHORT_READ")


def _connect(copy: Path) -> sqlite3.Connection:
    sqlite = sqlite3.connect(copy, isolation_level=None)
    # No code that the file defines may run.
    sqlite.execute("PRAGMA trusted_schema = OFF")
    sqlite.execute("PRAGMA cell_size_check = ON")
    sqlite.text_factory = lambda value: value.decode("utf-8", "replace")
    return sqlite


def _busy(path: Path) -> FolioError:
    return UsageError(f"Zotero is writing to {path} all the time.", "Wait until it has finished, or close Zotero.")


def _unreadable_copy(path: Path) -> FolioError:
    return FolioError(
        f"The temporary copy of the library {path} cannot be read.",
        "Free some space on the disk for temporary files, or some memory, and run the same command again.",
    )


def _damaged(path: Path) -> FolioError:
    return UsageError(f"The library {path} is damaged.", f"{_OPEN_ONCE} It repairs its library or restores a backup.")
