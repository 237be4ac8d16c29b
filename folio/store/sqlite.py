"""A library in local SQLite files: library.sqlite, and the user data in user.sqlite, which is attached to it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from json import dumps
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal

from folio.errors import (
    FIRST_INGEST,
    FolioError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreMismatch,
    StoreMissing,
    StoreProtected,
    StoreRefused,
    command,
)
from folio.papers.model import Notice
from folio.store import user_file
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
    closed_on_error,
    findable,
    first_rows,
    statements,
    storable,
)
from folio.store.fingerprint import of_other_format
from folio.store.user_file import (
    FileState,
    file_state,
    has_log,
    immutable_uri,
    read_error,
    set_aside,
    uri,
)
from folio.system.files import disk_full, identity
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
# Bytes of free disk space that SQLite needs even to read: the index and the first pages of two write-ahead logs
SIDE_FILES = 3 * 2**15


class SqliteDatabase(Database):
    """`Database` in files: a library with its user data, or the user data alone."""

    def __init__(
        self,
        path: Path,
        part: Part = "library",
        *,
        create: bool = False,
        updates: bool = True,
        notice: Notice = lambda text: None,
    ) -> None:
        """path: library.sqlite, or user.sqlite for the user data alone; MEMORY for a database in memory.

        create: make the file if it is missing or empty; otherwise StoreMissing is raised. A missing user.sqlite is made
        if possible, unless it has copies: then, and if it is damaged, UserFileDamaged is raised. updates: bring files
        of an earlier version to this one; otherwise StoreMismatch is raised for a library. notice: gets a line on it.
        """
        self.path, self.place, self._part, self._notice = path, str(path), part, notice
        self._updates = updates
        self._waits_s: float | None = None  # the wait of the last transaction, in seconds
        self._unchanged: tuple[FileState, ...] | None = None  # the state of files that are read without a lock
        self._is_full = False  # whether they are because the disk is full
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
        """A connection; if the folder cannot be written or the disk is full, one that needs no further files."""
        self._unchanged, self._is_full = None, False
        try:
            return self._attached(str(self.path), self._user)
        except sqlite3.OperationalError as error:
            # SQLite cannot make the files of a write-ahead log. Without a log, the file is the complete library.
            is_full, logs = self._out_of_space(error.sqlite_errorname), any(map(has_log, self._files))
            if not is_full and (logs or not error.sqlite_errorname.startswith(_NO_ACCESS)):
                raise
        self._is_full = is_full
        if logs:
            return self._in_memory()
        self._unchanged = self._states()
        is_there = self._part == "library" or self.path.exists()
        return self._attached(immutable_uri(self.path) if is_there else str(MEMORY), self._user)

    def _in_memory(self) -> sqlite3.Connection:
        """A connection to a copy in memory, for files with logs that no other process has open."""
        sqlite = _connect(str(MEMORY))
        with closed_on_error(sqlite):
            sqlite.deserialize(_content(self.path))
            self._version = int(sqlite.execute("PRAGMA user_version").fetchone()[0])
            if self._part == "library" and not self._is_older:
                sqlite.execute("ATTACH DATABASE ':memory:' AS user")
                if self._user.exists():
                    sqlite.deserialize(_content(self._user), name="user")
        self._unchanged = self._states()
        return sqlite

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
        return self._unchanged is not None and not self._is_full  # a full disk can soon be written again

    def identity(self) -> Hashable:
        """Device and inode of the current files."""
        library = identity(self.path)
        return None if library is None else (library, identity(self._user))

    def _refresh(self) -> None:
        """Open the files again if their owner has written them, which SQLite does not notice without a log, or if there
        is space for a log again."""
        if self._unchanged is None or self.in_snapshot:
            return
        has_space = self._is_full and shutil.disk_usage(self.path.parent).free >= SIDE_FILES
        if has_space or self._has_changed:
            before = self._sqlite, self._unchanged, self._is_full
            try:
                self._open(create=False)
            except BaseException:
                self._sqlite, self._unchanged, self._is_full = before
                raise
            before[0].close()

    @property
    def _has_changed(self) -> bool:
        """Whether files that are read without a lock have been written: what was read may be of two states."""
        return self._unchanged is not None and self._states() != self._unchanged

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
        """Keep what people made in the library of an earlier version."""
        if self._is_full:
            raise disk_full(self.path.parent)
        if self.is_read_only:
            raise StoreMismatch(
                f"The library {self.path} was made by an older version of Folio, and cannot be updated: its folder"
                " cannot be written.",
                "Make its folder and every file in it writable, or set VECTORSTORE_DIR to a copy of the folder.",
            )

        from folio.store import old_library  # which uses this module

        if not self._updates:
            raise of_other_format(self._version)
        self._sqlite.close()
        old_library.take_over(self.path, self._version, self._notice)
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
        if self._unchanged is not None or not self._updates:  # they are empty, and last as long as the connection
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
        if self._has_changed:
            raise self._busy()

    @contextmanager
    def transaction(self, part: Part | Literal["both"] = "both", wait_s: float = BUSY_TIMEOUT_S) -> Iterator[None]:
        with self._errors():
            self._refresh()
        if self._is_full:
            raise disk_full(self.path.parent)
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
        ((version,),) = self.query(f"PRAGMA {schema}.user_version")
        structure_faults += user_file.faults(part, self.query(user_file.SELECT.format(schema)), int(version))
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
        if self._has_changed:
            return self._busy()
        if (self._is_full and name.startswith(_NO_ACCESS)) or self._out_of_space(name):
            return disk_full(self.path.parent)
        if name.startswith(_BUSY):
            return self._busy()
        if name.startswith(_NO_ACCESS):
            refused = self.unusable(clause(error), "Check the permissions of the file and its folder.")
            return StoreProtected(refused.happened, refused.remedy)
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


def _content(path: Path) -> bytes:
    """The content of a file and its log. SQLite needs no file for the log's index while it alone has the file open."""
    with closing(_connect(str(path))) as alone:
        alone.execute("PRAGMA locking_mode = EXCLUSIVE")
        content = bytearray(alone.serialize())
    content[18:20] = b"\1\1"  # a file without a log: https://www.sqlite.org/fileformat.html#file_format_version_numbers
    return bytes(content)


def _connect(address: str) -> sqlite3.Connection:
    """address: a path or an SQLite URI."""
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
