"""One SQLite file: opened, made, read in snapshots, written in transactions, its errors turned into ours."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from folio.errors import FolioError, StoreDamaged, StoreError, StoreMismatch, StoreMissing
from folio.files import disk_full

DAMAGED = "Run `python ingest.py --rebuild`: it sets the damaged file aside and reads your PDFs again."
# Seconds to wait for another process's transaction; one takes far less than a second.
PATIENCE_S = 30
# What SQLite says of a file that is sound, and out of reach
_NOT_DAMAGED = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_AUTH")
# Bytes that SQLite needs beside the file, even to read it: the index of the write-ahead log and its first pages
SIDE_FILES = 2**16


class Database:
    """Raises StoreMissing, StoreDamaged, StoreMismatch and DiskFull, never an error of SQLite's own."""

    def __init__(
        self, path: Path, schema: str, version: int, first_rows: Iterable[tuple[str, str]], *, create: bool
    ) -> None:
        """Opens the file; a new one gets this schema and, in its table meta, these first rows.

        create: make the file where it is not there or was cut short at its making; else StoreMissing is raised.
        """
        self._path = path
        if not create and not path.exists():
            raise self._missing()
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._sqlite = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE_S, check_same_thread=False)
            try:
                self._set_up(schema, version, first_rows, create)
            except BaseException:
                self._sqlite.close()
                raise

    def _missing(self) -> StoreMissing:
        return StoreMissing(
            f"There is no index at {self._path.parent} yet.", "Put PDFs into papers/ and run `python ingest.py`."
        )

    def _set_up(self, schema: str, version: int, first_rows: Iterable[tuple[str, str]], create: bool) -> None:
        self._sqlite.execute("PRAGMA foreign_keys = ON")
        self._sqlite.execute("PRAGMA synchronous = FULL")
        with self.snapshot():
            found = self._sqlite.execute("PRAGMA user_version").fetchone()[0]
            empty = not self._sqlite.execute("SELECT 1 FROM sqlite_master").fetchone()
        if found == 0 and empty:
            if not create:  # its maker is at it this moment, or was killed
                raise self._missing()
            self._sqlite.execute("PRAGMA journal_mode = WAL")
            # One transaction, version included: a kill here leaves an empty file, which the next ingest fills.
            with self.transaction():
                for statement in schema.split(";"):
                    self._sqlite.execute(statement)
                self.many("INSERT INTO meta VALUES (?, ?)", first_rows)
                self._sqlite.execute(f"PRAGMA user_version = {version}")
        elif found != version:
            raise StoreMismatch(
                f"The store was written by another version of Folio (schema {found}, this one has {version}).",
                "Move the folder vectorstore/ away and run `python ingest.py`; your PDFs are not touched.",
            )

    def close(self) -> None:
        self._sqlite.close()

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Everything that one statement returns."""
        with self._errors():
            return self._sqlite.execute(sql, values).fetchall()

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """One statement for each row of values."""
        with self._errors():
            self._sqlite.executemany(sql, rows)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is of one moment. Inside another snapshot or transaction, of that one's."""
        inside = self._sqlite.in_transaction
        if inside:
            yield
            return
        with self._errors():
            self._sqlite.execute("BEGIN")
        try:
            yield
        finally:
            if self._sqlite.in_transaction:  # SQLite ends it by itself after some errors
                self._sqlite.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside lands together, or nothing does."""
        with self._errors():
            self._sqlite.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._sqlite.execute("COMMIT")
            except BaseException:
                if self._sqlite.in_transaction:
                    self._sqlite.execute("ROLLBACK")
                raise

    @contextmanager
    def attached(self, other: Path, name: str) -> Iterator[None]:
        """Another database's tables can be read under a name."""
        self.rows(f"ATTACH DATABASE ? AS {name}", str(other))
        try:
            yield
        finally:
            self.rows(f"DETACH DATABASE {name}")

    def _out_of_space(self, error: sqlite3.Error) -> bool:
        name = getattr(error, "sqlite_errorname", "")  # not all come from SQLite itself
        if name == "SQLITE_FULL":
            return True
        # Not even its side files find room then; SQLite calls that an error of the disk.
        return "IOERR" in name and shutil.disk_usage(self._path.parent).free < SIDE_FILES

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FolioError:
            raise
        except sqlite3.OperationalError as error:
            if self._out_of_space(error):
                raise disk_full(self._path.parent) from error
            if getattr(error, "sqlite_errorname", "").startswith(_NOT_DAMAGED):
                raise StoreError(
                    f"The library {self._path} cannot be used now: {error}.",
                    "Check the permissions of the file and of its folder, and that no other program holds it.",
                ) from error
            raise StoreDamaged(f"The library {self._path} cannot be used: {error}.", DAMAGED) from error
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(f"The library {self._path} is damaged: {error}.", DAMAGED) from error
