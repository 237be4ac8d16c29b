"""A library in local SQLite files: library.sqlite, and the user data in user.sqlite, which is attached to it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from json import dumps
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal

import numpy as np
from filelock import FileLock

from folio.errors import (
    FIRST_INGEST,
    FolioError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreMismatch,
    StoreMissing,
    StoreRefused,
    command,
)
from folio.papers.metadata import from_json, to_json
from folio.papers.model import Notice
from folio.store import rows, user_file
from folio.store.database import (
    BUSY_TIMEOUT_S,
    DAMAGED,
    FIRST,
    LIBRARY_VERSION,
    TABLES,
    USER_VERSION,
    Database,
    Part,
    added_since,
    clause,
    findable,
    first_rows,
    statements,
    storable,
)
from folio.store.rows import pack_vector, row_digest, text_crc, vector_bytes
from folio.store.user_file import (
    FileState,
    copy_now,
    file_state,
    has_log,
    immutable_uri,
    read_error,
    set_aside,
    uri,
    user_file_of,
)
from folio.system.files import discard, disk_full, identity, no_space, replace, sync, sync_folder
from folio.text import one_line

# Instead of a path: an in-memory database, lost when it is closed
MEMORY = Path(":memory:")
# SQLite's errors for a sound file that cannot be accessed
_NO_ACCESS = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
# SQLite's errors that prove damage (https://www.sqlite.org/rescode.html); no other error does. SQLITE_ERROR is one,
# because every statement here fits an intact schema. Python's error for text that is not UTF-8 has the name "".
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_IOERR_SHORT_READ", "SQLITE_ERROR")
# ... unless SQLITE_ERROR is about connections: "database other is locked", "cannot commit - no transaction is active"
_STATES = ("locked", "transaction")
_USER_VERSION = "SELECT CAST(value AS INTEGER) FROM kept WHERE key = 'version'"
# Seconds that a new file is waited for, which another process is making
_LOG_WAIT_S = 5
# Bytes of free disk space that SQLite needs even to read: the write-ahead log's index and first pages
SIDE_FILES = 2**16


class SqliteDatabase(Database):
    """`Database` in files: a library with its user data, or the user data alone."""

    def __init__(
        self, path: Path, part: Part = "library", *, create: bool = False, notice: Notice = lambda text: None
    ) -> None:
        """path: library.sqlite, or user.sqlite for the user data alone; MEMORY for a database in memory.

        create: make the file if it is missing or empty; otherwise StoreMissing is raised. A missing user.sqlite is made
        if possible, unless it has copies: then, and if it is damaged, UserFileDamaged is raised. notice: gets a line
        about what was made of the library of an earlier version.
        """
        self.path, self.place, self._part, self._notice = path, str(path), part, notice
        self._waits_s: float | None = None  # the wait of the last transaction, in seconds
        self._user = path if part == "user" or path == MEMORY else user_file.user_file_of(path)
        if path != MEMORY and not path.exists() and (not create or (part == "library" and set_aside(path))):
            raise self._missing()
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            if self._user != MEMORY and user_file.is_lost(self._user):
                raise user_file.damaged(self._user, "it is missing or empty")
            self._open(create=create)

    def _open(self, *, create: bool) -> None:
        self._sqlite, self._waits_s = self._connected(), None
        try:
            self._prepare(create)
        except BaseException:
            self._sqlite.close()
            raise

    def _connected(self) -> sqlite3.Connection:
        """A connection; if the folder cannot be written, one that needs no further files."""
        self._unchanged: tuple[FileState, ...] | None = None
        try:
            return self._attached(str(self.path), self._user)
        except sqlite3.OperationalError as error:
            # SQLite cannot make the files of a write-ahead log. Without a log, the file is the complete library.
            if not error.sqlite_errorname.startswith(_NO_ACCESS) or any(map(has_log, self._files)):
                raise
            self._unchanged = self._states()
            is_there = self._part == "library" or self.path.exists()
            return self._attached(immutable_uri(self.path) if is_there else str(MEMORY), self._user)

    def _attached(self, address: str, user: Path) -> sqlite3.Connection:
        sqlite = _connect(address)
        try:
            self._version = int(sqlite.execute("PRAGMA user_version").fetchone()[0])
            if self._part == "library" and not self._is_older:  # otherwise user.sqlite is made by the takeover
                sqlite.execute("ATTACH DATABASE :path AS user", {"path": self._user_address(user)})
        except BaseException:
            sqlite.close()
            raise
        return sqlite

    def _user_address(self, user: Path) -> str:
        if user == MEMORY or (self._unchanged is not None and not user.exists()):
            return str(MEMORY)
        if self._unchanged is not None:
            return immutable_uri(user)
        return str(user) if storable(str(user)) == str(user) else uri(user)

    @property
    def _is_older(self) -> bool:
        """Whether an earlier version of Folio wrote the file, according to its version number."""
        return 0 < self._version < LIBRARY_VERSION

    @property
    def _files(self) -> tuple[Path, ...]:
        return self.path, self._user

    def _states(self) -> tuple[FileState, ...]:
        return tuple(map(file_state, self._files))

    @property
    def is_read_only(self) -> bool:
        return self._unchanged is not None

    def identity(self) -> Hashable:
        """Device and inode of the current files."""
        library = identity(self.path)
        return None if library is None else (library, identity(self._user))

    def _refresh(self) -> None:
        """Open the files again if their owner has written them, which SQLite does not notice without a log."""
        if self.is_read_only and not self.in_snapshot and self._states() != self._unchanged:
            self._sqlite.close()
            self._open(create=False)

    def _missing(self) -> StoreError:
        if self._part == "library" and set_aside(self.path):
            return StoreDamaged(
                f"The library {self.path} was damaged and set aside, and its rebuild was interrupted.",
                f"Run `{command('ingest --rebuild')}` again: it continues.",
            )
        return StoreMissing(f"There is no index at {self.path.parent} yet.", f"{FIRST_INGEST}.")

    def _prepare(self, create: bool) -> None:
        """Make missing tables. Raises StoreMissing, StoreMismatch."""
        if self._part == "library":
            self._require_version(LIBRARY_VERSION)
            if self._is_older:
                self._take_over()
                self._require_version(LIBRARY_VERSION)
            if not self._version:
                if not create:  # another process is creating it, or was killed while doing so
                    raise self._missing()
                self._make("library")
        if not self._has_user_tables():
            self._make("user")

    def _take_over(self) -> None:
        """Convert the library of an earlier version."""
        if self.is_read_only:
            raise StoreMismatch(
                f"The library {self.path} was made by an older version of Folio, and cannot be updated: its folder"
                " cannot be written.",
                "Make its folder and every file in it writable, or set VECTORSTORE_DIR to a copy of the folder.",
            )

        self._sqlite.close()
        take_over(self.path)
        self._sqlite = self._connected()

    def _require_version(self, required: int) -> None:
        """Raises StoreMismatch for a newer library or another program's file, StoreDamaged. An older one passes."""
        if self._version == required:
            return
        tables = self._sqlite.execute(user_file.SELECT.format("main")).fetchall()
        self._version = int(self._sqlite.execute("PRAGMA main.user_version").fetchone()[0])
        if self._version == required:  # another process has made the tables meanwhile
            return
        if user_file.is_of("library", tables):
            raise self.damaged(f"its version is said to be {self._version}, but its tables are those of {required}")
        if self._version > required:
            raise StoreMismatch(
                f"The index was written by a newer version of Folio (schema {self._version}; this version supports"
                f" {required}).",
                f"Use that version, or move the folder vectorstore/ away and run `{command('ingest')}` to read your"
                " PDFs again.",
            )
        if self._version < 0 or (tables and not self._is_older):
            raise StoreMismatch(
                f"The file {self.path} was not written by Folio.",
                f"Move it away, or set VECTORSTORE_DIR to another folder, and run `{command('ingest')}`.",
            )

    def _has_user_tables(self) -> bool:
        """Whether there are tables for user data. Raises StoreMismatch."""
        schema = self._user_schema
        version = self._sqlite.execute(f"PRAGMA {schema}.user_version").fetchall()
        if version == [(USER_VERSION,)]:
            return True
        tables = {row[0] for row in self._sqlite.execute(f"SELECT name FROM {schema}.sqlite_master")}
        if not tables:
            return False
        if "kept" not in tables:
            raise StoreMismatch(
                f"The file {self._user} was not written by Folio.",
                "Move it away, or set VECTORSTORE_DIR to another folder.",
            )
        # The version is stored in two places, so that one flipped bit does not make the file look newer.
        version = self._sqlite.execute(_USER_VERSION).fetchall()
        if version and 0 < version[0][0] < USER_VERSION:
            self._update_user()
        elif version != [(USER_VERSION,)]:
            raise StoreMismatch(
                f"The file {self._user} was written by a newer version of Folio.",
                "Use that version, or move the file away: it has your questions, conversations and edits.",
            )
        return True

    def _begin_log(self, schema: str) -> None:
        """Have SQLite write a log, which it refuses at once, without waiting, while another process does the same."""
        until = monotonic() + _LOG_WAIT_S
        while True:
            try:
                self._sqlite.execute(f"PRAGMA {schema}.journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith(_BUSY) or monotonic() > until:
                    raise
                sleep(0.01)
            else:
                return

    def _make(self, part: Part) -> None:
        """Make the tables of a part, all or none; another process may be doing the same."""
        schema = "main" if part == self._part else "user"
        self._begin_log(schema)
        self._sqlite.execute("BEGIN IMMEDIATE")
        try:
            existing = self._sqlite.execute(f"SELECT 1 FROM {schema}.sqlite_master WHERE name IN ('meta', 'kept')")
            if not existing.fetchall():
                for statement in statements(TABLES[part], user_file.TYPES, schema):
                    self._sqlite.execute(statement)
                rows = first_rows(part).items()
                self._sqlite.executemany(f"INSERT INTO {schema}.{FIRST[part]} VALUES (?, ?)", rows)
                version = LIBRARY_VERSION if part == "library" else USER_VERSION
                self._sqlite.execute(f"PRAGMA {schema}.user_version = {version}")  # also for older versions of Folio
            self._sqlite.execute("COMMIT")
        except BaseException:
            if self._sqlite.in_transaction:
                self._sqlite.execute("ROLLBACK")
            raise

    def _update_user(self) -> None:
        """Add the tables that the user data of an earlier version lacks; another process may be doing the same."""
        if self.is_read_only:  # they are empty, and last as long as the connection
            ((version,),) = self._sqlite.execute(_USER_VERSION).fetchall()
            for statement in statements(added_since(version), user_file.TYPES, "temp"):
                self._sqlite.execute(statement)
            return
        user_file.before_change(self._user)
        self._sqlite.execute("BEGIN IMMEDIATE")
        try:
            ((version,),) = self._sqlite.execute(_USER_VERSION).fetchall()
            for statement in statements(added_since(version), user_file.TYPES, self._user_schema):
                self._sqlite.execute(statement)
            self._sqlite.execute("UPDATE kept SET value = ? WHERE key = 'version'", (str(USER_VERSION),))
            self._sqlite.execute(f"PRAGMA {self._user_schema}.user_version = {USER_VERSION}")
            self._sqlite.execute("COMMIT")
        except BaseException:
            if self._sqlite.in_transaction:
                self._sqlite.execute("ROLLBACK")
            raise

    def close(self) -> None:
        self._sqlite.close()

    def query(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        with self._errors():
            self._refresh()
            try:
                return self._sqlite.execute(sql, _lists_as_json(findable(values))).fetchall()
            except sqlite3.DataError as error:  # a value too long for SQLite
                raise self.damaged(clause(error)) from error

    def execute(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """Also for a PRAGMA."""
        with self._errors():
            return self._sqlite.execute(sql, _lists_as_json(values)).fetchall()

    def execute_many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        with self._errors():
            self._sqlite.executemany(sql, rows)

    @property
    def in_snapshot(self) -> bool:
        with self._errors():
            return self._sqlite.in_transaction

    def _begin_snapshot(self) -> None:
        with self._errors():
            self._refresh()
            self._sqlite.execute("BEGIN")

    def _end_snapshot(self) -> None:
        if self._sqlite.in_transaction:  # SQLite ends it itself after some errors
            with self._errors():
                self._sqlite.execute("ROLLBACK")

    @contextmanager
    def transaction(self, part: Part | Literal["both"] = "both", wait_s: float = BUSY_TIMEOUT_S) -> Iterator[None]:
        if part != "library" and not self.is_read_only and self._user != MEMORY:
            user_file.before_change(self._user)
        with self._errors():
            self._begin(part, wait_s)
        try:
            yield
            with self._errors():
                self._sqlite.execute("COMMIT")
        except BaseException:
            if self._sqlite.in_transaction:
                with self._errors():
                    self._sqlite.execute("ROLLBACK")
            raise

    def _begin(self, part: Part | Literal["both"], wait_s: float) -> None:
        if self._waits_s is None:
            self._sqlite.execute("PRAGMA foreign_keys = ON")
            self._sqlite.execute("PRAGMA synchronous = FULL")
            self._sqlite.execute(f"PRAGMA {self._user_schema}.secure_delete = ON")  # questions may be private
        if self._waits_s != wait_s:
            self._sqlite.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")
            self._waits_s = wait_s
        if part == "both" or self._part == "user":
            self._sqlite.execute("BEGIN IMMEDIATE")  # locks all files
            return
        self._sqlite.execute("BEGIN")
        try:
            self._sqlite.execute(f"UPDATE {FIRST[part]} SET value = value WHERE key = 'version'")
        except BaseException:
            if self._sqlite.in_transaction:
                self._sqlite.execute("ROLLBACK")
            raise

    def purge(self) -> None:
        """Empty the write-ahead log and renew the daily copies, so that deleted user data is gone.

        While another process reads the log, it is emptied only when that process closes.
        """
        if self._user == MEMORY:
            return
        self.execute(f"PRAGMA {self._user_schema}.wal_checkpoint(TRUNCATE)")
        user_file.renew_copies(self._user)

    @property
    def _user_schema(self) -> str:
        """The schema of the user data."""
        return "user" if self._part == "library" else "main"

    def faults(self, part: Part) -> list[str]:
        schema = "main" if part == self._part else part
        lines = [str(line) for (line,) in self.query(f"PRAGMA {schema}.integrity_check")]
        if unread := user_file.unread_page(lines):
            raise self.unusable(f"a page of it could not be read ({unread})")
        structure_faults = [line for line in lines if line != "ok"]
        structure_faults += user_file.faults(part, self.query(user_file.SELECT.format(schema)))
        broken = [table for table, *_ in self.query(f"PRAGMA {schema}.foreign_key_check")]
        return structure_faults + [
            f"A row of table {table} refers to a missing row." for table in dict.fromkeys(broken)
        ]

    @contextmanager
    def attached(self, other: Path, name: str) -> Iterator[None]:
        """Inside, the tables of another database file can be read as `name.table`."""
        path = str(other)
        if storable(path) != path:  # in the locale C; not always, because a network share on Windows has no URI
            path = uri(other)
        self.execute(f"ATTACH DATABASE :path AS {name}", path=path)
        try:
            yield
        finally:
            self.execute(f"DETACH DATABASE {name}")

    def merge_log(self) -> None:
        """Merge the write-ahead logs into the files. Raises StoreBusy while others read from the logs."""
        if any(is_busy for is_busy, *_ in self.execute("PRAGMA wal_checkpoint(TRUNCATE)")):
            raise self._busy()

    def unusable(self, reason: object, remedy: str = "") -> StoreError:
        return super().unusable(
            reason,
            remedy
            or "Run the same command again. If that does not help, check its disk, and copy the folder to another one:"
            " VECTORSTORE_DIR says where it is.",
        )

    def _out_of_space(self, name: str) -> bool:
        if name == "SQLITE_FULL":
            return True
        # With no space even for its side files, SQLite reports another error.
        is_about_files = name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN"))
        return is_about_files and shutil.disk_usage(self.path.parent).free < SIDE_FILES

    def _busy(self) -> StoreBusy:
        return StoreBusy(
            f"Another process is writing to the library {self.path}.",
            "Wait until it has finished, then run the same command again.",
        )

    def _as_ours(self, error: sqlite3.Error) -> StoreError:
        """SQLite's error as one of Folio's; StoreDamaged only if it proves damage."""
        name = getattr(error, "sqlite_errorname", "")  # Python's own errors have no name
        if self._out_of_space(name):
            return disk_full(self.path.parent)
        if name.startswith(_BUSY):
            return self._busy()
        if name.startswith(_NO_ACCESS):
            return self.unusable(error, "Check the permissions of the file and its folder.")
        if name.startswith("SQLITE_CORRUPT") and (unread := next(filter(None, map(read_error, self._files)), None)):
            return self.unusable(unread)
        is_state = name == "SQLITE_ERROR" and any(word in str(error) for word in _STATES)
        is_of_python = not name and not isinstance(error, sqlite3.OperationalError)  # such as for a closed connection
        if is_state or is_of_python or (name and not name.startswith(_DAMAGE)):
            return self.unusable(clause(error))
        if self._user != MEMORY and (self._part == "user" or not user_file.is_sound(self._user)):
            return user_file.damaged(self._user, clause(error))
        if isinstance(error, sqlite3.OperationalError):
            return StoreDamaged(f"The library {self.path} cannot be used: {error}.", DAMAGED)
        return self.damaged(clause(error))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FolioError:
            raise
        except (sqlite3.DataError, sqlite3.IntegrityError, OverflowError, UnicodeEncodeError) as error:
            # Too large, a duplicate, an integer above 64 bits, a lone surrogate
            raise StoreRefused(
                f"The library cannot store this: {one_line(str(error))[:200]}.",
                "Leave out what you were adding, and run the same command again.",
            ) from error
        except sqlite3.Error as error:
            raise self._as_ours(error) from error
        except UnicodeDecodeError as error:  # in the text of an error
            raise self.damaged(clause(error)) from error
        except MemoryError as error:
            raise StoreError(
                f"There is not enough memory to read the library {self.path}, or it is damaged.",
                f"Close other programs and try again; `{command('ingest --verify')}` checks the library.",
            ) from error


def _lists_as_json(values: Mapping[str, object]) -> dict[str, object]:
    """The values with lists as JSON, for json_each."""
    return {name: dumps(value) if isinstance(value, list) else value for name, value in values.items()}


def _connect(address: str) -> sqlite3.Connection:
    """address: a path or an SQLite URI."""
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S, check_same_thread=False)


# The schema of the previous release, which `take_over` converts; that release converts an older library.
OLD_VERSION = 15
_FOLDER = "takeover"
Row = dict[str, object]
# Table -> the columns that are copied; `place` is the order of the old rows
_USER_COLUMNS = {
    "metadata": "paper, source, fields, updated",
    "queries": f"{rows.QUERY_COLUMNS}, feedback",
    "conversations": "id, title, begun, updated",
    "turns": "id, conversation, place, asked, reply, memory, query",
    "works": "id, version_of, said",
    "work_marks": "mark, work",
    "citations": "citing, cited, source, said_at, rowid AS place",
    "paper_works": "paper, work, found_by, score",
    "notices": "work, kind, dated, link, source, said_at",
}
_LIBRARY_COLUMNS = {
    "files": "path, name, paper, rowid AS place",
    "failures": "path, name, sha256, happened, remedy",
    "chunks": 'id, paper, start, "end", hex(text_hash) AS text_hash, generation, parent',
    "vectors": "chunk, data",
    "removed": "chunk, generation",
    "paper_vectors": "paper, lower(hex(text_hash)) AS text_hash, data",
}
# Table -> the columns in the digests of its rows; for queries, only those that are not NULL
_DIGESTED = {
    **{table: _USER_COLUMNS[table] for table in ("metadata", "works", "paper_works", "notices")},
    "queries": rows.QUERY_COLUMNS,
    "conversations": "id, title, begun",
    "turns": "conversation, place, asked, reply, memory",
    "citations": "citing, cited, source, said_at",
    "files": "path, name, paper",
    "failures": _LIBRARY_COLUMNS["failures"],
    "chunks": "id, paper, start, end, text_hash, parent",
}
_META = "('epoch', 'generation', 'fingerprint', 'chunks', 'fine', 'described')"
_PAPERS = """SELECT p.*, d.text AS crc, d.about, d.sections AS sections_digest,
    m.fields, m.updated, m.digest AS metadata_digest,
    (SELECT json_group_array(json_array(start, "end", level, number, title, kind)) FROM sections
        WHERE paper = p.id) AS sections,
    (SELECT count(*) FROM chunks WHERE paper = p.id AND parent IS NULL) AS passages
    FROM papers p LEFT JOIN paper_digests d ON d.paper = p.id
    LEFT JOIN metadata m ON m.paper = p.id AND m.source = 'pdf'"""
_ABOUT_PAPER = ("id", "title", "authors", "year", "starts", "labels", "length", "problems", "arxiv", "added")
_BATCH = 100
# The largest deviation from 1 of the length of a vector without a checksum
_UNIT_ERROR = 1e-3


class _OldLibrary:
    """The old library. `close` also closes open cursors, which would keep the file locked after an error."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_S)
        self._read: list[sqlite3.Cursor] = []

    def execute(self, sql: str) -> sqlite3.Cursor:
        self._read.append(self._connection.execute(sql))
        return self._read[-1]

    def rows(self, sql: str) -> Iterator[Row]:
        """The rows of a query, by the names of its columns."""
        cursor = self.execute(sql)
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)

    def close(self) -> None:
        for cursor in self._read:
            cursor.close()
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        self._connection.close()


def take_over(path: Path) -> None:
    """Convert a library of the previous release, which had the user data in the same file, to the current tables.

    The user data is copied to user.sqlite first, as far as it can be read, so that it survives even if the papers are
    damaged and have to be read again. Then a new library is filled next to the old one and replaces it. A kill at any
    point leaves the old library, and the next command starts again. Raises StoreMismatch for an older library;
    StoreDamaged, and SQLite's own errors; the user data is in user.sqlite then, as far as it can be read.
    """
    folder = path.with_name(_FOLDER)
    new = folder / path.name
    with no_space(path.parent), FileLock(path.with_name(f"{_FOLDER}.lock")):
        try:
            with closing(_OldLibrary(path)) as old:
                if not _is_due(old, path):
                    return
                old.execute("BEGIN IMMEDIATE")  # so that no other process writes to it meanwhile
                _copy_user_data(old, path)
                discard(folder)
                folder.mkdir()
                _copy_papers(old, new)
                old.execute("COMMIT")
                _empty_log(old, path)
            _put_in_place(new, path)
        except (ValueError, TypeError, LookupError) as error:
            raise StoreDamaged(f"The library {path} is damaged: {clause(error)}.", DAMAGED) from error
        finally:
            with suppress(OSError):
                discard(folder)


def _is_due(old: _OldLibrary, path: Path) -> bool:
    """Whether the library is still to be converted, and no other process has done so meanwhile."""
    ((version,),) = old.execute("PRAGMA user_version").fetchall()
    if version < OLD_VERSION:
        raise StoreMismatch(
            f"The library {path} was made by a version of Folio that is older than the one before this.",
            f"Open it once with that version (`{command('ingest --verify')}`); or move the folder vectorstore/ away"
            f" and run `{command('ingest')}`, which reads your PDFs again.",
        )
    return bool(version == OLD_VERSION)


def _empty_log(old: _OldLibrary, path: Path) -> None:
    """Merge the write-ahead log into the old file, so that the file alone is complete."""
    ((is_busy, *_),) = old.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if is_busy:
        raise StoreBusy(
            f"Another process reads the library {path}, which is to be updated to this version of Folio.",
            "Wait until it has finished, or end it, then run the same command again.",
        )


def _put_in_place(new: Path, path: Path) -> None:
    sync(new)
    shutil.copymode(path, new)
    for log in ("-wal", "-shm"):  # SQLite would use them for the new file
        path.with_name(path.name + log).unlink(missing_ok=True)
    replace(new, path)
    sync_folder(path.parent)


def _copy_user_data(old: _OldLibrary, path: Path) -> None:
    """Add the user data to user.sqlite, except rows that it has already. Raises the first error of unreadable rows."""
    faults: list[Exception] = []
    target = user_file_of(path)
    with closing(SqliteDatabase(target, "user", create=True)) as database:
        with database.transaction("user"):
            database.execute("PRAGMA defer_foreign_keys = ON")
            for table in _USER_COLUMNS:
                for batch in _batches(_user_rows(old, table, faults)):
                    _add(database, table, batch)
            # Turns whose conversation or question could not be read
            database.execute("DELETE FROM turns WHERE conversation NOT IN (SELECT id FROM conversations)")
            database.execute("UPDATE turns SET query = NULL WHERE query NOT IN (SELECT id FROM queries)")
        shutil.copymode(path, target)
        copy_now(target)  # the copy from before the transaction lacks these rows
    if faults:
        raise faults[0]


def _user_rows(old: _OldLibrary, table: str, faults: list[Exception]) -> Iterator[Row]:
    """The sound rows of a table, up to one that cannot be read; adds errors to `faults`."""
    only = "WHERE source != 'pdf'" if table == "metadata" else ""
    digest = ", digest" if table in _DIGESTED else ""
    try:
        for row in old.rows(f"SELECT {_USER_COLUMNS[table]}{digest} FROM {table} {only}"):
            try:
                converted = _converted(table, row)
            except (ValueError, TypeError, LookupError) as error:
                faults.append(error)
            else:
                yield converted
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")  # "" for Python's error for text that is not UTF-8
        if isinstance(error, sqlite3.OperationalError) and name not in ("", "SQLITE_ERROR"):
            raise  # an error of reading that proves no damage
        faults.append(error)


def _add(database: Database, table: str, batch: list[Row]) -> None:
    columns, values = (", ".join(f"{mark}{name}" for name in batch[0]) for mark in ("", ":"))
    database.execute_many(f"INSERT INTO {table} ({columns}) VALUES ({values}) ON CONFLICT DO NOTHING", batch)


def _copy_papers(old: _OldLibrary, new: Path) -> None:
    """Fill a new library. Raises ValueError, TypeError or LookupError for a row that has changed."""
    with closing(SqliteDatabase(new, create=True)) as database:
        with database.transaction("library"):
            database.execute("PRAGMA defer_foreign_keys = ON")  # a fine passage may come before its passage
            meta = f"SELECT key, CAST(value AS TEXT) AS value FROM meta WHERE key IN {_META}"
            database.insert("meta", old.rows(meta), replace=True)
            new_rows = {
                "papers": map(_paper, old.rows(_PAPERS)),
                "texts": old.rows("SELECT id AS paper, text FROM papers"),
            }
            for table, columns in _LIBRARY_COLUMNS.items():
                digest = ", digest" if table in _DIGESTED else ""
                old_rows = old.rows(f"SELECT {columns}{digest} FROM {table}")
                new_rows[table] = map(partial(_converted, table), old_rows)
            for table, converted in new_rows.items():
                copied = 0
                for batch in _batches(converted):
                    database.insert(table, batch)
                    copied += len(batch)
                ((count,),) = old.execute(f"SELECT count(*) FROM {'papers' if table == 'texts' else table}")
                if copied != count:
                    raise ValueError(f"{copied} of {count} rows of the table {table} can be read")
        database.merge_log()


def _paper(row: Row) -> Row:
    """A paper's row with values that were in other tables. Raises ValueError if any of them has changed."""
    label, crc = f"the record of paper {str(row['id'])[:12]}", row["crc"]
    sections = sorted(json.loads(rows.string(row["sections"])))
    about = row_digest("papers", *(row[name] for name in _ABOUT_PAPER), row["passages"], crc)
    listed = row_digest("sections", row["id"], crc, sections) if sections or row["sections_digest"] else None
    metadata_digest = row_digest("metadata", row["id"], "pdf", row["fields"], row["updated"]) if row["fields"] else None
    if (row["about"], row["sections_digest"], row["metadata_digest"]) != (about, listed, metadata_digest):
        raise ValueError(f"{label} has changed since it was written")
    if text_crc(rows.string(row["text"])) != crc:
        raise ValueError(f"the text of paper {str(row['id'])[:12]} is not the one that was stored")
    metadata = from_json(json.loads(rows.string(row["fields"] or "{}")))
    values = {**row, "sections": json.dumps(sections), "metadata": json.dumps(to_json(metadata)), "text_crc": crc}
    columns = {name: values[name] for name in rows.PAPER_COLUMNS.split(", ")}
    digest = row_digest("papers", *columns.values())
    return {**columns, "digest": digest, "generation": row["generation"], **rows.search_keys(metadata)}


def _batches(rows_in: Iterator[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows_in:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _converted(table: str, row: Row) -> Row:
    """A row for the current table. Raises ValueError, TypeError or LookupError if it has changed."""
    if table in _DIGESTED:
        values = [row[name] for name in _DIGESTED[table].split(", ")]
        if table == "queries":
            values = [value for value in values if value is not None]
        if row.pop("digest") != row_digest(table, *values):
            raise ValueError(f"a row of the table {table} has changed since it was written")
    return _CHANGED[table](row) if table in _CHANGED else row


def _packed(row: Row) -> Row:
    """The row with a checksum of its vector, which vectors of Folio 0.3 lack."""
    blob = rows.typed(bytes, row["data"], "a vector")
    if len(blob) % 4:
        vector_bytes(blob)
        return row
    numbers = np.frombuffer(blob, dtype="<f4")
    if not abs(float(np.linalg.norm(numbers.astype(np.float64))) - 1) < _UNIT_ERROR:  # NaN is not smaller
        raise ValueError("a vector is not of unit length")
    return {**row, "data": pack_vector(numbers)}


_CHANGED: dict[str, Callable[[Row], Row]] = {
    "metadata": lambda row: {**row, **rows.search_keys(from_json(json.loads(rows.string(row["fields"]))))},
    "queries": lambda row: {**row, "crc": rows.shown_crc(*(row[name] for name in rows.QUERY_COLUMNS.split(", ")[1:]))},
    "turns": lambda row: {**row, "crc": rows.shown_crc(row["reply"], row["memory"])},
    "chunks": lambda row: {**row, "text_hash": rows.string(row["text_hash"]).lower()},
    "vectors": _packed,
    "paper_vectors": _packed,
}
