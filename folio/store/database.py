"""The SQLite file: its tables; opened, read in snapshots, written in transactions, its errors turned into ours."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from folio.errors import FolioError, StoreBusy, StoreDamaged, StoreError, StoreMismatch, StoreMissing
from folio.files import disk_full

DAMAGED = "Run `python ingest.py --rebuild`: it sets the damaged file aside and reads your PDFs again."
# In the place of a path: a database that is gone when it is closed
MEMORY = Path(":memory:")
# Seconds to wait for another process's transaction; one takes far less than a second.
PATIENCE_S = 30
# What SQLite says of a file that is sound, and out of reach
_OUT_OF_REACH = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
# Bytes that SQLite needs beside the file, even to read it: the index of the write-ahead log and its first pages
SIDE_FILES = 2**16

# The tables, as steps. A file's user_version is how many of them it has had; a new file goes through all of them. A
# step that has been released is never changed: what is new is a step more. A semicolon ends a statement, even in a
# comment.
STEPS = (
    """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE papers (
    id TEXT PRIMARY KEY,               -- SHA-256 of the file
    title TEXT NOT NULL, authors TEXT NOT NULL, year INTEGER,
    text TEXT NOT NULL, length INTEGER NOT NULL,
    starts TEXT NOT NULL,              -- JSON: where each physical page begins in the text
    labels TEXT NOT NULL,              -- JSON: the label printed on each page
    problems TEXT NOT NULL,            -- JSON: what was odd when it was read
    added TEXT NOT NULL, generation INTEGER NOT NULL
);
CREATE TABLE files (
    path TEXT PRIMARY KEY, name TEXT NOT NULL,
    paper TEXT NOT NULL REFERENCES papers(id) ON DELETE CASCADE
);
CREATE INDEX files_paper ON files(paper);
CREATE TABLE failures (
    path TEXT PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, happened TEXT NOT NULL, remedy TEXT NOT NULL
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,            -- chunk.chunk_id: the same number in FAISS and BM25
    paper TEXT NOT NULL REFERENCES papers(id) ON DELETE CASCADE,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL,
    text_hash BLOB NOT NULL, generation INTEGER NOT NULL
);
CREATE INDEX chunks_paper ON chunks(paper);
CREATE INDEX chunks_hash ON chunks(text_hash);
CREATE INDEX chunks_generation ON chunks(generation);
CREATE TABLE vectors (chunk INTEGER PRIMARY KEY REFERENCES chunks(id) ON DELETE CASCADE, data BLOB NOT NULL);
CREATE TABLE removed (chunk INTEGER NOT NULL, generation INTEGER NOT NULL);
CREATE INDEX removed_generation ON removed(generation);
-- Vectors of a paper that is still being embedded, so that a kill does not cost them.
CREATE TABLE pending (text_hash BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
""",
    """
ALTER TABLE papers ADD COLUMN arxiv TEXT NOT NULL DEFAULT '';
CREATE TABLE queries (                 -- the log of questions: nothing else hangs on it
    id INTEGER PRIMARY KEY,
    asked TEXT NOT NULL,               -- ISO time in UTC
    question TEXT NOT NULL, standalone_question TEXT NOT NULL,
    chunks TEXT NOT NULL,              -- JSON: ids of the chunks that the answer was made from
    answer TEXT NOT NULL,
    sources TEXT NOT NULL,             -- JSON: paper, file, page and quote of each citation
    timings_ms TEXT NOT NULL,          -- JSON: milliseconds of each stage
    model TEXT NOT NULL,
    feedback TEXT NOT NULL             -- "good", "bad" or ""
);
""",
    """
CREATE INDEX papers_generation ON papers(generation);
-- All that is shown of a paper: read from its row, every page of the text that lies before it would be read too.
CREATE INDEX papers_about ON papers(id, title, authors, year, starts, labels, length, problems, arxiv, added);
-- So that nobody counts them
INSERT INTO meta SELECT 'chunks', count(*) FROM chunks;
""",
    """
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, title TEXT NOT NULL,
    begun TEXT NOT NULL, updated TEXT NOT NULL -- ISO times in UTC
);
CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    place INTEGER NOT NULL,            -- in the conversation, from 1
    asked TEXT NOT NULL,               -- ISO time in UTC
    reply TEXT NOT NULL,               -- JSON: what people saw
    memory TEXT NOT NULL,              -- JSON: what a follow-up needs (answer_snapshot.py)
    query INTEGER REFERENCES queries(id) ON DELETE SET NULL,
    UNIQUE (conversation, place)
);
CREATE INDEX turns_query ON turns(query);
""",
)


class Database:
    """Raises StoreError and its kinds, never an error of SQLite's own."""

    def __init__(self, path: Path, first_rows: Iterable[tuple[str, str]], *, create: bool) -> None:
        """Opens the file, and brings its tables up to date; a new one gets these first rows in its table meta.

        create: make the file where it is not there or was cut short at its making; else StoreMissing is raised.
        """
        self._path = path
        if not create and not path.exists():
            raise self._missing()
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._sqlite = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE_S, check_same_thread=False)
            try:
                self._set_up(first_rows, create)
            except BaseException:
                self._sqlite.close()
                raise

    def _missing(self) -> StoreMissing:
        return StoreMissing(
            f"There is no index at {self._path.parent} yet.", "Put PDFs into papers/ and run `python ingest.py`."
        )

    def _set_up(self, first_rows: Iterable[tuple[str, str]], create: bool) -> None:
        self._sqlite.execute("PRAGMA foreign_keys = ON")
        self._sqlite.execute("PRAGMA synchronous = FULL")
        with self.snapshot():
            found = self._version()
        if not found:
            if not create:  # its maker is at it this moment, or was killed
                raise self._missing()
            self._sqlite.execute("PRAGMA journal_mode = WAL")
        if found == len(STEPS):
            return
        try:
            self._bring_up_to_date(first_rows)
        except StoreError as error:
            if found and type(error) is StoreError:  # neither busy nor damaged, and the disk is not full
                raise StoreMismatch(
                    f"The store was made by an older version of Folio, and {self._path} cannot be written: this"
                    " version has to bring it up to date.",
                    "Make its folder and every file in it writable; or set VECTORSTORE_DIR to a copy of the folder.",
                ) from error
            raise

    def _bring_up_to_date(self, first_rows: Iterable[tuple[str, str]]) -> None:
        # One transaction, version included: a kill here leaves the file as it was, empty or of the older version, and
        # whoever opens it next begins again.
        with self.transaction():
            found = self._version()  # another process may have been faster
            if found:
                self._sqlite.execute("SELECT 1 FROM meta")  # fails in a file of another program, which is left as it is
            for step in STEPS[found:]:
                for statement in step.split(";"):
                    self._sqlite.execute(statement)
            if not found:
                self.many("INSERT INTO meta VALUES (?, ?)", first_rows)
            self._sqlite.execute(f"PRAGMA user_version = {len(STEPS)}")

    def _version(self) -> int:
        """How many steps the file has had; 0 for an empty one. Raises StoreMismatch for what is not ours to change."""
        found = int(self._sqlite.execute("PRAGMA user_version").fetchone()[0])
        if found > len(STEPS):
            raise StoreMismatch(
                f"The store was written by a newer version of Folio (schema {found}, this one knows {len(STEPS)}).",
                "Use that version; or move the folder vectorstore/ away and run `python ingest.py`, which reads your "
                "PDFs again.",
            )
        if found < 0 or (not found and self._sqlite.execute("SELECT 1 FROM sqlite_master").fetchone()):
            raise StoreMismatch(
                f"The file {self._path} was not written by Folio.",
                "Move it away, or set VECTORSTORE_DIR to another folder, and run `python ingest.py`.",
            )
        return found

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
    def waiting_at_most(self, seconds: float) -> Iterator[None]:
        """Another process's transaction is waited for no longer than this; StoreBusy is raised then."""
        self.rows(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
        try:
            yield
        finally:
            self.rows(f"PRAGMA busy_timeout = {int(PATIENCE_S * 1000)}")

    def overwrite_deleted(self) -> None:
        """What is deleted from now on is overwritten in the file: people ask about private papers."""
        self.rows("PRAGMA secure_delete = ON")

    def empty_log(self, seconds: float) -> None:
        """Take out of the write-ahead log what has been deleted, and is in it still.

        Where another process reads from it for longer than this, it goes when that one closes.
        """
        with self.waiting_at_most(seconds):
            self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

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
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(_BUSY):
                raise StoreBusy(
                    f"Another process is writing to the library {self._path}.",
                    "Wait until it has ended, then run the same command again.",
                ) from error
            if name.startswith(_OUT_OF_REACH):
                raise StoreError(
                    f"The library {self._path} cannot be used now: {error}.",
                    "Check the permissions of the file and of its folder.",
                ) from error
            raise StoreDamaged(f"The library {self._path} cannot be used: {error}.", DAMAGED) from error
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(f"The library {self._path} is damaged: {error}.", DAMAGED) from error


def storable(text: str) -> str:
    """A text that has bytes in UTF-8, as SQLite wants it: half of a surrogate pair becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
