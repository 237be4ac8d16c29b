"""The SQLite file: snapshots, transactions, and SQLite's errors as Folio's own."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from folio.errors import FolioError, StoreBusy, StoreDamaged, StoreError, StoreMismatch, StoreMissing, StoreRefused
from folio.files import disk_full, sha256_file
from folio.store.digests import row_digest, text_crc
from folio.store.immutable_file import FileState, file_state, has_log, immutable_uri, read_only_uri, uri
from folio.store.migrations import OBJECTS, STEPS
from folio.store.rows import metadata_json

T = TypeVar("T")

DAMAGED = (
    "Run `python ingest.py --rebuild`: it sets the damaged file aside, keeps the questions and conversations that can"
    " still be read, and reads your PDFs again."
)
# Instead of a path: an in-memory database, lost when it is closed
MEMORY = Path(":memory:")
# Seconds to wait for another process's transaction, which normally takes far less than one
BUSY_TIMEOUT_S = 30
# SQLite's errors for a sound file that cannot be accessed
_NO_ACCESS = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
# Those that prove that the file is not as it was written: nothing else is damage (https://www.sqlite.org/rescode.html).
# SQLITE_ERROR is one because every statement here fits a whole schema; "" is Python's, for text that is not UTF-8.
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_IOERR_SHORT_READ", "SQLITE_ERROR")
# ... except where it is about connections: "database other is locked", "cannot commit - no transaction is active"
_STATES = ("locked", "transaction")
_OBJECTS = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
# Bytes of free disk space that SQLite needs even to read: the write-ahead log's index and first pages
SIDE_FILES = 2**16


class Database:
    """A connection to the file. Raises StoreError and its subclasses, never SQLite's own errors."""

    def __init__(
        self, path: Path, first_rows: Iterable[tuple[str, str]], *, create: bool, only_read: bool = False
    ) -> None:
        """Open the file and migrate its schema; a new file gets `first_rows` in its table meta.

        create: create the file if it is missing or empty; otherwise StoreMissing is raised. only_read: write nothing,
        and raise StoreMismatch if the schema is an older one.
        """
        self._path, self._only_read = path, only_read
        if not path.exists() and (not create or set_aside(path)):
            raise self._missing()
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open(first_rows, create)

    def _open(self, first_rows: Iterable[tuple[str, str]], create: bool) -> None:
        self._sqlite = self._connected()
        try:
            self._prepare(first_rows, create)
        except BaseException:
            self._sqlite.close()
            raise

    def _connected(self) -> sqlite3.Connection:
        """A connection; where the folder cannot be written, one that needs no file beside the library's."""
        self._unchanged: FileState | None = None
        sqlite = _connect(read_only_uri(self._path) if self._only_read else str(self._path))
        try:
            sqlite.execute("PRAGMA user_version")
        except BaseException as error:
            sqlite.close()
            # SQLite cannot make the files of a write-ahead log. Without a log, the file alone is the library.
            no_access = isinstance(error, sqlite3.OperationalError) and error.sqlite_errorname.startswith(_NO_ACCESS)
            if not no_access or has_log(self._path):
                raise
            self._unchanged = file_state(self._path)
            return _connect(immutable_uri(self._path))
        return sqlite

    @property
    def is_read_only(self) -> bool:
        """Whether the folder of the library cannot be written, so that nothing can be stored."""
        return self._unchanged is not None

    def _refresh(self) -> None:
        """Open the file again if its owner has written it; SQLite does not look out for that without a log."""
        if self.is_read_only and not self._sqlite.in_transaction and file_state(self._path) != self._unchanged:
            self._sqlite.close()
            self._open((), create=False)

    def _missing(self) -> StoreError:
        if set_aside(self._path):
            return StoreDamaged(
                f"The library {self._path} was damaged and set aside, and its rebuild was interrupted.",
                "Run `python ingest.py --rebuild` again: it continues.",
            )
        return StoreMissing(
            f"There is no index at {self._path.parent} yet.", "Put PDFs into papers/ and run `python ingest.py`."
        )

    def _prepare(self, first_rows: Iterable[tuple[str, str]], create: bool) -> None:
        self._sqlite.create_function("text_crc", 1, text_crc, deterministic=True)
        self._sqlite.create_function("row_digest", -1, row_digest, deterministic=True)
        self._sqlite.create_function("metadata_json", 4, metadata_json, deterministic=True)
        self._sqlite.execute("PRAGMA cell_size_check = ON")
        self._sqlite.execute("PRAGMA foreign_keys = ON")
        self._sqlite.execute("PRAGMA synchronous = FULL")
        with self.snapshot():
            found = self._version()
        if not found:
            if not create:  # another process is creating it, or was killed while doing so
                raise self._missing()
            self._sqlite.execute("PRAGMA journal_mode = WAL")
        if found == len(STEPS):
            names = {row[0] for row in self._sqlite.execute("SELECT name FROM sqlite_master")}
            if missing := sorted(OBJECTS - names):
                raise self.damaged(f"no such table or index: {', '.join(missing)}")
            return
        if self._only_read:
            raise StoreMismatch(
                f"The library {self._path} was made by an older version of Folio, and is not changed here.",
                "Run `python ingest.py --verify` first, which updates it; then run the same command again.",
            )
        try:
            self._migrate(first_rows)
        except StoreError as error:
            if found and type(error) is StoreError:  # not busy, not damaged, and the disk is not full
                raise StoreMismatch(
                    f"The index was made by an older version of Folio and must be updated, but {self._path} cannot be"
                    " written.",
                    "Make its folder and every file in it writable, or set VECTORSTORE_DIR to a copy of the folder.",
                ) from error
            raise

    def _migrate(self, first_rows: Iterable[tuple[str, str]]) -> None:
        # One transaction, version included: a kill leaves the file as it was, and the next open starts again.
        with self.transaction(), self._errors():
            found = self._version()  # another process may have migrated it by now
            if found:
                self._sqlite.execute("SELECT 1 FROM meta")  # fails in another program's file, which stays unchanged
            for step in STEPS[found:]:
                for statement in step.split(";"):
                    self._sqlite.execute(statement)
            if not found:
                rows = [{"key": key, "value": value} for key, value in first_rows]
                self.execute_many("INSERT INTO meta VALUES (:key, :value)", rows)
            self._sqlite.execute(f"PRAGMA user_version = {len(STEPS)}")

    def _version(self) -> int:
        """The schema version, 0 for an empty file. Raises StoreMismatch for a newer one, or another program's file."""
        found = int(self._sqlite.execute("PRAGMA user_version").fetchone()[0])
        if 0 < found <= len(STEPS):
            return found
        objects = self._sqlite.execute(_OBJECTS).fetchall()
        if objects and objects == _own_objects():
            raise self.damaged(f"its version is said to be {found}, but its tables are those of {len(STEPS)}")
        if found > len(STEPS):
            raise StoreMismatch(
                f"The index was written by a newer version of Folio (schema {found}; this version supports"
                f" {len(STEPS)}).",
                "Use that version, or move the folder vectorstore/ away and run `python ingest.py` to read your PDFs"
                " again.",
            )
        if found < 0 or objects:
            raise StoreMismatch(
                f"The file {self._path} was not written by Folio.",
                "Move it away, or set VECTORSTORE_DIR to another folder, and run `python ingest.py`.",
            )
        return found

    def close(self) -> None:
        self._sqlite.close()

    def damaged(self, what: str) -> StoreDamaged:
        """The error that says what is wrong with the file. what: a clause, "a vector is not of unit length"."""
        return StoreDamaged(f"The library {self._path} is damaged: {what}.", DAMAGED)

    def unusable(self, reason: object, remedy: str = "") -> StoreError:
        """The error for a file that cannot be read or written now, which proves nothing about what is in it."""
        return StoreError(
            f"The library {self._path} cannot be used now: {reason}.",
            remedy
            or "Run the same command again. If that does not help, check its disk, and copy the folder to another one:"
            " VECTORSTORE_DIR says where it is.",
        )

    @contextmanager
    def rows_expected(self) -> Iterator[None]:
        """Any error inside, where rows are made into values, means that a row is not as it was written."""
        try:
            yield
        except FolioError:
            raise
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
            raise self.damaged(_clause(error)) from error

    def read(self, make: Callable[..., T], sql: str, /, **values: object) -> list[T]:
        """make(*row) of each row that a statement finds. Raises StoreDamaged if `make` raises."""
        rows = self.query(sql, **values)
        with self.rows_expected():
            return [make(*row) for row in rows]

    def query(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """The rows that a statement finds. `:name` in it takes the value of that name."""
        with self._errors():
            self._refresh()
            try:
                return self._sqlite.execute(sql, values).fetchall()
            except sqlite3.DataError as error:  # a length that no row has
                raise self.damaged(_clause(error)) from error

    def execute(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """Run a statement that writes or a PRAGMA; returns the rows of a RETURNING clause."""
        with self._errors():
            return self._sqlite.execute(sql, values).fetchall()

    def execute_many(self, sql: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Run a statement that writes once for each row of named values."""
        with self._errors():
            self._sqlite.executemany(sql, rows)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see the same state. Inside another snapshot or transaction, that one's state."""
        inside = self._sqlite.in_transaction
        if inside:
            yield
            return
        with self._errors():
            self._refresh()
            self._sqlite.execute("BEGIN")
        try:
            yield
        finally:
            if self._sqlite.in_transaction:  # SQLite ends it itself after some errors
                with self._errors():
                    self._sqlite.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits everything written inside, or nothing."""
        with self._errors():
            self._sqlite.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self._errors():
                self._sqlite.execute("COMMIT")
        except BaseException:
            if self._sqlite.in_transaction:
                with self._errors():
                    self._sqlite.execute("ROLLBACK")
            raise

    @contextmanager
    def busy_timeout(self, seconds: float) -> Iterator[None]:
        """Statements inside raise StoreBusy after waiting this long for another process's transaction."""
        self.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
        try:
            yield
        finally:
            self.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")

    def overwrite_deleted(self) -> None:
        """From now on, overwrite deleted content in the file: questions may be private."""
        self.execute("PRAGMA secure_delete = ON")

    def truncate_wal(self, seconds: float) -> None:
        """Empty the write-ahead log, which still holds deleted content.

        If another process reads from it for longer than `seconds`, it is emptied when that process closes it.
        """
        with self.busy_timeout(seconds):
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def attached(self, other: Path, name: str) -> Iterator[None]:
        """Inside, the tables of another database file can be read as `name.table`."""
        path = str(other)
        if storable(path) != path:  # in the locale C; on Windows a network's share has no address
            path = uri(other)
        self.execute(f"ATTACH DATABASE :path AS {name}", path=path)
        try:
            yield
        finally:
            self.execute(f"DETACH DATABASE {name}")

    def merge_log(self) -> None:
        """Bring the whole write-ahead log into the file, and empty it. Raises StoreBusy while others read from it."""
        ((is_busy, *_),) = self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if is_busy:
            raise self._busy()

    def _out_of_space(self, name: str) -> bool:
        if name == "SQLITE_FULL":
            return True
        # With no space even for its side files, SQLite reports another error.
        is_about_files = name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN"))
        return is_about_files and shutil.disk_usage(self._path.parent).free < SIDE_FILES

    def _busy(self) -> StoreBusy:
        return StoreBusy(
            f"Another process is writing to the library {self._path}.",
            "Wait until it has finished, then run the same command again.",
        )

    def _as_ours(self, error: sqlite3.Error) -> StoreError:
        """SQLite's error as one of Folio's; StoreDamaged only for what proves damage."""
        name = getattr(error, "sqlite_errorname", "")  # not all come from SQLite itself
        if self._out_of_space(name):
            return disk_full(self._path.parent)
        if name.startswith(_BUSY):
            return self._busy()
        if name.startswith(_NO_ACCESS):
            return self.unusable(error, "Check the permissions of the file and its folder.")
        if name.startswith("SQLITE_CORRUPT") and (unread := _read_error(self._path)):
            return self.unusable(unread)  # SQLite takes a page that it did not get for a damaged one
        is_state = name == "SQLITE_ERROR" and any(word in str(error) for word in _STATES)
        is_of_python = not name and not isinstance(error, sqlite3.OperationalError)  # of a closed connection
        if is_state or is_of_python or (name and not name.startswith(_DAMAGE)):
            return self.unusable(_clause(error))
        if isinstance(error, sqlite3.OperationalError):
            return StoreDamaged(f"The library {self._path} cannot be used: {error}.", DAMAGED)
        return self.damaged(_clause(error))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FolioError:
            raise
        except (sqlite3.DataError, sqlite3.IntegrityError, OverflowError, UnicodeEncodeError) as error:
            # Too large, twice the same, an integer above 64 bits, a lone surrogate
            raise StoreRefused(
                f"The library cannot hold what it was given: {' '.join(str(error).split())[:200]}.",
                "Leave out what you were adding, and run the same command again.",
            ) from error
        except sqlite3.Error as error:
            raise self._as_ours(error) from error
        except UnicodeDecodeError as error:  # in an error's own text
            raise self.damaged(_clause(error)) from error
        except MemoryError as error:
            raise StoreError(
                f"There is not enough memory to read the library {self._path}, or it is damaged.",
                "Close other programs and try again; `python ingest.py --verify` checks the library.",
            ) from error


def _read_error(path: Path) -> OSError | None:
    """What keeps the bytes of a library and its log from being read; None if all can be."""
    try:
        for part in (path, path.with_name(f"{path.name}-wal")):
            if part.exists():
                sha256_file(part)
    except OSError as error:
        return error
    return None


def _own_objects() -> list[tuple[str, str]]:
    """The tables and indexes of a library of this version."""
    with closing(Database(MEMORY, (), create=True)) as new:
        return new.query(_OBJECTS)


def set_aside(path: Path) -> list[Path]:
    """The damaged files that rebuilds of the library at `path` have renamed, oldest first."""
    return sorted(path.parent.glob(f"{path.stem}.damaged-*{path.suffix}"))


def _clause(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).removesuffix(".") or type(error).__name__


def _connect(address: str) -> sqlite3.Connection:
    """address: a path or an SQLite URI."""
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S, check_same_thread=False)


def storable(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD: SQLite stores valid UTF-8 only."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
