"""A library in PostgreSQL, which several computers share: the second engine of `Database`.

The schema `folio` has the user data, and the name of the schema with the papers. A rebuild fills another schema, and
then changes that name in one transaction. A transaction locks a row of the table `kept`: `library` to change papers,
`version` to change user data. It locks rows because some proxies and servers with PostgreSQL's protocol have no
reliable advisory locks.

Prepared statements are not used, because connection poolers may lose them.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar

import psycopg
from psycopg import errors as pg

from folio.errors import (
    DiskFull,
    FolioError,
    StoreAway,
    StoreBusy,
    StoreCut,
    StoreDamaged,
    StoreError,
    StoreMismatch,
    StoreMissing,
    StoreProtected,
    StoreRefused,
)
from folio.papers.model import Notice
from folio.store.database import (
    BUSY_TIMEOUT_S,
    DAMAGED,
    FIRST,
    INGEST,
    NAMES,
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
)

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # its errors repeat the warnings
T = TypeVar("T")
USER_SCHEMA = "folio"
_TYPES = {"text": 'TEXT COLLATE "C"', "integer": "BIGINT", "real": "DOUBLE PRECISION", "bytes": "BYTEA", "keyed": ""}
# The tables that only a shared library has (shared/store.py, published.py)
_SHARED = """
CREATE TABLE writers (id {text} PRIMARY KEY);
CREATE TABLE jobs (paper {text} PRIMARY KEY, writer {text} NOT NULL);
CREATE INDEX jobs_writer ON jobs(writer);
CREATE TABLE pdfs (paper {text} NOT NULL, part {integer} NOT NULL, data {bytes} NOT NULL, PRIMARY KEY (paper, part));
CREATE TABLE published (
    kind {text} NOT NULL,               -- what can read it: the formats of the indexes
    epoch {text} NOT NULL, generation {integer} NOT NULL,
    part {integer} NOT NULL, parts {integer} NOT NULL, data {bytes} NOT NULL,
    digest {text} NOT NULL,             -- SHA-256 of all parts
    PRIMARY KEY (kind, epoch, generation, part)
);
"""
# Seconds to wait for an attempt to connect, and for a server that is away
CONNECT_S, RETRY_S = 10, 20.0
# Seconds between attempts; until a person is told what is waited for; and between two failures of one outage
_PAUSE_S, _SILENT_S, _SAME_S = 0.25, 1.0, 15.0
# What is cut off again and again is tried so often: it may take longer than its connections last
_TRIES = 20
# Failures to connect that no waiting mends. They have no SQLSTATE; in other languages, they are told after RETRY_S.
_LASTING = re.compile(
    "authentication failed|no password supplied|does not exist|is not permitted|no pg_hba.conf entry|certificate"
    "|support SSL|invalid .* value"
)
# Bytes that are sent together
_COPIED_AT_ONCE = 2**16
# The parameters of a statement for both engines, and lists as one parameter
_NAME = re.compile(r"(?<![:\w]):(\w+)")
_LIST = re.compile(r"json_each\(:(\w+)\)")
# Without keepalives, the client would notice a dead server only after minutes.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
# The same settings on the server, which would otherwise keep the locks of a dead client for hours
_SERVER_KEEPALIVE = ", ".join(
    f"set_config('{name}', '{value}', false)"
    for name, value in (
        ("tcp_keepalives_idle", 10),
        ("tcp_keepalives_interval", 5),
        ("tcp_keepalives_count", 3),
        ("tcp_user_timeout", 30_000),
    )
)
_KEPT = f"{USER_SCHEMA}.kept"
_FIND = (
    f"SELECT set_config('search_path', quote_ident(value) || ', {USER_SCHEMA}', false), value"
    f" FROM {_KEPT} WHERE key = 'library'"
)
# Reading one table of a schema keeps a rebuild from dropping that schema while the transaction is open.
_HOLD = "SELECT 1 FROM meta LIMIT 1"


@dataclass
class _Outage:
    """A time during which a server is away; in seconds of time.monotonic."""

    began: float
    last: float  # the last failure to connect
    is_told: bool = False


_outages: dict[str, _Outage] = {}  # by the place of the library


class PostgresDatabase(Database):
    """`Database` on a server, over one connection, which is made again if it is lost outside transactions."""

    def __init__(
        self,
        url: str,
        *,
        create: bool = False,
        schema: str = "",
        patience_s: float | None = None,
        notice: Notice = lambda text: None,
    ) -> None:
        """url: in libpq's format, `postgresql://user@host/name?sslmode=verify-full`. schema: of another library than
        the current one; it is made if it is missing. create: make missing tables; otherwise StoreMissing is raised.
        patience_s: seconds to wait for a server that is away, RETRY_S by default; StoreAway is raised after that.
        notice: gets a line if there is something to wait for.
        """
        self._url, self._fixed, self._notice = url, schema, notice
        self._patience_s = RETRY_S if patience_s is None else patience_s
        self._connection: psycopg.Connection[Any] | None = None
        self._read_only = False
        self.place = place_of(url)
        try:
            with self._errors():
                self._when_there(lambda: self._open(create=create))
        except BaseException:
            self._close()
            raise

    def _open(self, *, create: bool) -> None:
        try:
            self._connect()
            if self._fixed:
                self._make("library", self._fixed)
        except (pg.UndefinedTable, pg.InvalidSchemaName, StoreMissing) as error:
            if not create:
                raise StoreMissing(
                    f"There is no library in {self.place} yet.", f"Run {INGEST} to read your PDFs into it."
                ) from error
            self._create()

    def _connect(self) -> None:
        """Connect, and find the papers. Raises psycopg's errors, StoreMissing and StoreMismatch."""
        self._close()
        options: dict[str, Any] = {**_KEEPALIVE, "connect_timeout": CONNECT_S, "application_name": "folio"}
        self._connection = psycopg.connect(
            self._url, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.ClientCursor, **options
        )
        self._find()

    def _find(self) -> None:
        """Check the version, and find the current schema of the papers."""
        sql = (
            f"SELECT set_config('client_min_messages', 'error', false), {_SERVER_KEEPALIVE}, pg_is_in_recovery()"
            f" OR NOT has_table_privilege('{USER_SCHEMA}.kept', 'UPDATE'),"
            f" (SELECT value FROM {USER_SCHEMA}.kept WHERE key = 'version')"
        )
        ((*_, self._read_only, version),) = self._own.execute(sql).fetchall()
        if version.isdecimal() and 0 < int(version) < USER_VERSION:
            self._update_user()
        elif version != str(USER_VERSION):
            raise StoreMismatch(
                f"The library in {self.place} was written by a newer version of Folio.", "Use that version."
            )
        self._set_path()

    def _update_user(self) -> None:
        """Add the tables that the user data of an earlier version lacks; another computer may be doing the same."""
        if self._read_only:
            raise StoreMismatch(
                f"The library in {self.place} was written by an older version of Folio, and may not be updated by you.",
                "Ask who runs the server to open it once with this version.",
            )
        with self._own.transaction():
            self._own.execute(f"SET LOCAL search_path TO {USER_SCHEMA}")
            ((version,),) = self._own.execute("SELECT value FROM kept WHERE key = 'version' FOR UPDATE").fetchall()
            for statement in statements(added_since(int(version)), _TYPES):
                self._own.execute(statement.encode())
            self._own.execute("UPDATE kept SET value = %s WHERE key = 'version'", (str(USER_VERSION),))

    def _set_path(self) -> None:
        if self._fixed:
            self._own.execute(f"SET search_path TO {self._fixed}, {USER_SCHEMA}")
        elif not self._own.execute(_FIND).fetchall():
            raise StoreMissing(f"There is no library in {self.place} yet.", f"Run {INGEST}.")

    def another_connection(self) -> psycopg.Connection[Any]:
        """A separate connection for the caller. Raises StoreError."""

        def connect() -> psycopg.Connection[Any]:
            options: dict[str, Any] = {**_KEEPALIVE, "connect_timeout": CONNECT_S, "application_name": "folio"}
            connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=None, **options)
            with closed_on_error(connection):
                sql = f"SELECT {_SERVER_KEEPALIVE}, set_config('search_path', '{USER_SCHEMA}', false)"
                connection.execute(sql.encode())
            return connection

        with self._errors():
            return self._when_there(connect)

    @property
    def _own(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            raise psycopg.OperationalError("the connection is closed")
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()

    def close(self) -> None:
        self._close()

    def _when_there(self, connect: Callable[[], T]) -> T:
        """The result of `connect`, which is tried again while the server is away. Raises StoreAway."""
        began = time.monotonic()
        while True:
            try:
                result = connect()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not _is_cut(error):
                    raise
                self._wait(error, began)
            else:
                _outages.pop(self.place, None)
                return result

    def _wait(self, error: psycopg.Error, began: float) -> None:
        """Wait a moment for the server; raises StoreAway if it has been away for too long.

        An outage is of the whole process, so that not every request waits in vain. began: when the caller began.
        """
        now, outage = time.monotonic(), _outages.get(self.place)
        if outage is None or now - outage.last > _SAME_S:
            outage = _outages[self.place] = _Outage(began, now)
        outage.last = now
        if now - outage.began > self._patience_s:
            raise StoreAway(
                f"The library in {self.place} cannot be reached: {clause(error)}.",
                "Check the server and DATABASE_URL, and run the same command again.",
            ) from error
        if now - outage.began > _SILENT_S and not outage.is_told:
            outage.is_told = True
            self._notice(f"Waiting for {self.place}: {clause(error)}.")
        time.sleep(_PAUSE_S)

    def _again(self, do: Callable[[], T]) -> T:
        """The result of `do`, which is retried over a new connection if the old one is lost. Not for transactions."""
        is_second = False
        for tries_left in reversed(range(_TRIES)):
            if self._connection is None or self._connection.closed:
                self._when_there(self._connect)
            try:
                return do()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not _is_cut(error):
                    raise
                self._close()
                if not tries_left:
                    raise self._cut_too_often() from error
            except pg.UndefinedTable:  # a rebuild has replaced the schema of the papers meanwhile
                if is_second:
                    raise
                is_second = True
        raise AssertionError

    def repeat(self, do: Callable[[], T]) -> T:
        """See Database."""
        if self.in_snapshot:
            return do()
        for tries_left in reversed(range(_TRIES)):
            try:
                return do()
            except StoreCut as error:
                if not tries_left:
                    raise self._cut_too_often() from error
        raise AssertionError

    def _cut_too_often(self) -> StoreAway:
        return StoreAway(
            f"The connection to {self.place} was lost {_TRIES} times in a row.",
            "Check the network, and run the same command again.",
        )

    @property
    def is_read_only(self) -> bool:
        return self._read_only

    def identity(self) -> str:
        """See Database. It never changes, because a connection follows the library."""
        return self.place

    def _create(self) -> None:
        """Make missing tables."""
        self._make("user", USER_SCHEMA)
        self._find_or_make_library()
        self._find()

    def _find_or_make_library(self) -> None:
        with self._own.transaction():
            self._own.execute(f"SELECT 1 FROM {USER_SCHEMA}.kept WHERE key = 'version' FOR UPDATE")
            if not self._own.execute(f"SELECT 1 FROM {USER_SCHEMA}.kept WHERE key = 'library'").fetchall():
                rows = first_rows("library")
                schema = f"{USER_SCHEMA}_{rows['epoch'][:12]}"
                self._make("library", schema)
                self._own.execute(f"INSERT INTO {USER_SCHEMA}.kept VALUES ('library', %s)", (schema,))

    def _make(self, part: Part, schema: str) -> None:
        """Make a schema with the tables of a part if it is missing; another computer may be doing the same."""
        exists = "SELECT to_regclass(%s) IS NOT NULL"
        while self._own.execute(exists, (f"{schema}.{FIRST[part]}",)).fetchall() != [(True,)]:
            with suppress(pg.UniqueViolation, pg.DuplicateSchema, pg.DuplicateTable), self._own.transaction():
                self._own.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                self._own.execute(f"SET LOCAL search_path TO {schema}")
                for statement in statements(TABLES[part] + (_SHARED if part == "user" else ""), _TYPES):
                    self._own.execute(statement.encode())
                for row in first_rows(part).items():
                    self._own.execute(f"INSERT INTO {FIRST[part]} VALUES (%s, %s)", row)

    def serve(self, schema: str) -> None:
        """Make the library in this schema the current one. The caller has a transaction."""
        self.query(f"SELECT 1 FROM {schema}.meta")  # fails if another computer has dropped it as unused
        self.execute(f"UPDATE {USER_SCHEMA}.kept SET value = :schema WHERE key = 'library'", schema=schema)

    def drop_unused(self) -> None:
        """Delete the libraries that are neither current nor being made, except those that are still being read."""
        used = f"SELECT value FROM {USER_SCHEMA}.kept WHERE key IN ('library', 'rebuild')"
        sql = (
            f"SELECT nspname FROM pg_namespace WHERE nspname ~ '^{USER_SCHEMA}_[0-9a-f]+$' AND nspname NOT IN ({used})"
        )

        def drop() -> None:
            for (schema,) in self._own.execute(sql.encode()).fetchall():
                with suppress(pg.LockNotAvailable), self._own.transaction():
                    self._own.execute("SET LOCAL lock_timeout = '2s'")
                    self._own.execute(f"DROP SCHEMA {schema} CASCADE")

        with self._errors():
            self._again(drop)

    def _run(self, sql: str, values: Mapping[str, object], *, find: bool = False) -> list[tuple[Any, ...]]:
        """Run a statement. find: find the current schema of the papers first, in the same round trip."""
        statement = _translated(f"{_FIND}; {sql}" if find else sql, _types_of(values))
        cursor = self._own.execute(statement, values)
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []

    def query(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        values = findable(values)
        with self._errors():
            if self.in_snapshot:
                return self._run(sql, values)
            return self._again(lambda: self._run(sql, values, find=not self._fixed))

    def execute(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._run(sql, values)

    def execute_many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        """See Database. The rows are sent together, in one round trip."""
        with self._errors(), psycopg.Cursor(self._own) as cursor:
            cursor.executemany(_translated(sql, ()), rows)

    @property
    def in_snapshot(self) -> bool:
        connection = self._connection
        idle = psycopg.pq.TransactionStatus.IDLE
        return connection is not None and not connection.closed and connection.info.transaction_status != idle

    def _begin_snapshot(self) -> None:
        with self._errors():
            self._again(self._begin_reading)

    def _end_snapshot(self) -> None:
        self._end("COMMIT")  # what was read was read

    def _begin_reading(self) -> None:
        find = "" if self._fixed else f"; {_FIND}; {_HOLD}"
        try:
            self._own.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{find}")
        except psycopg.Error:
            self._roll_back()
            raise

    @contextmanager
    def transaction(self, part: Part | Literal["both"] = "both", wait_s: float = BUSY_TIMEOUT_S) -> Iterator[None]:
        """See Database.

        If the reply to a COMMIT is lost, this checks on the server whether it succeeded.
        """
        if self.in_snapshot:
            raise self.unusable("a transaction was begun within a snapshot")
        with self._errors():
            xid = self._again(lambda: self._begin(part, wait_s))
        try:
            yield
            with self._errors():
                self._commit(xid)
        except BaseException:
            self._roll_back()
            raise

    def _begin(self, part: Part | Literal["both"], wait_s: float) -> str:
        """Begin a transaction and lock; returns its number on the server."""
        statements = ["BEGIN", f"SET LOCAL lock_timeout = {max(1, int(wait_s * 1000))}"]
        if part != "user":
            row = f"{self._fixed}.meta WHERE key = 'generation'" if self._fixed else f"{_KEPT} WHERE key = 'library'"
            statements.append(f"SELECT 1 FROM {row} FOR UPDATE")
        if part != "library":
            statements.append(f"SELECT 1 FROM {_KEPT} WHERE key = 'version' FOR UPDATE")
        if not self._fixed:  # after the locks, because a rebuild may end while this waits for them
            statements.append(_FIND)
        try:
            cursor = self._own.execute("; ".join((*statements, "SELECT pg_current_xact_id()::text")).encode())
            while cursor.nextset():
                pass
            return str(cursor.fetchall()[0][0])
        except psycopg.Error:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        self._end("ROLLBACK")

    def _end(self, statement: Literal["COMMIT", "ROLLBACK"]) -> None:
        """End a transaction whose outcome does not matter any more.

        A connection on which that fails is given up: when it was lost while rows were sent together (execute_many),
        psycopg may leave it open, in pipeline mode, where every later statement fails.
        """
        try:
            self._own.execute(statement)
        except psycopg.Error:
            self._close()

    def _commit(self, xid: str) -> None:
        try:
            if self._own.execute("COMMIT").statusmessage != "COMMIT":  # the caller caught an error: nothing was written
                raise self.unusable("a transaction could not be completed")
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if not _is_cut(error):
                raise
            self._close()
            if not self._again(lambda: self._is_committed(xid)):
                raise

    def _is_committed(self, xid: str) -> bool:
        with suppress(psycopg.DataError):  # a server that replaced the old one does not know the number
            for _ in range(int(RETRY_S / _PAUSE_S)):
                ((status,),) = self._own.execute("SELECT pg_xact_status(%s::text::xid8)", (xid,)).fetchall()
                if status != "in progress":
                    return bool(status == "committed")
                time.sleep(_PAUSE_S)
        return False

    @contextmanager
    def deriving(self, wait_s: float = BUSY_TIMEOUT_S) -> Iterator[None]:
        """A transaction that reads one state of the library and writes data derived from it.

        It locks nothing by itself: papers and edits can be added meanwhile. Raises StoreBusy if another transaction
        changes a row that this one writes, or locks it for longer than `wait_s` seconds.
        """
        if self.in_snapshot:
            raise self.unusable("a transaction was begun within a snapshot")
        find = "" if self._fixed else f"; {_FIND}; {_HOLD}"
        timeout = f"SET LOCAL lock_timeout = {max(1, int(wait_s * 1000))}"
        with self._errors():
            self._again(lambda: self._own.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ; {timeout}{find}".encode()))
        try:
            yield
            with self._errors():
                self._own.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def query_binary(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """`query` in the binary format, which halves the size of rows with bytes."""

        def run() -> list[tuple[Any, ...]]:
            with psycopg.ClientCursor(self._own) as merging, psycopg.Cursor(self._own) as cursor:
                merged = merging.mogrify(_translated(sql, _types_of(values)), values)
                return cursor.execute(merged.encode(), binary=True).fetchall()

        with self._errors():
            return run() if self.in_snapshot else self._again(run)

    def copy_in(self, table: str, rows: Iterable[bytes]) -> None:
        """Insert rows in the format of PostgreSQL's binary COPY (count and lengths of the fields), with all columns."""
        sql = f"COPY {table} FROM STDIN (FORMAT BINARY)".encode()
        with self._errors(), self._own.cursor() as cursor, cursor.copy(sql) as copy:
            data = bytearray(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            for row in rows:
                data += row
                if len(data) > _COPIED_AT_ONCE:
                    copy.write(bytes(data))
                    data.clear()
            copy.write(bytes(data + b"\xff\xff"))

    def purge(self) -> None:
        """See Database. VACUUM lets the server overwrite deleted rows when it needs the space."""
        with suppress(psycopg.Error):
            self._own.execute(f"VACUUM {USER_SCHEMA}.queries, {USER_SCHEMA}.turns, {USER_SCHEMA}.conversations")

    def faults(self, part: Part) -> list[str]:
        """See Database. Checks only that the tables exist; the server's own tools check its files."""
        sql = "SELECT name FROM json_each(:names) WHERE to_regclass(value) IS NULL".replace("name FROM", "value FROM")
        missing = self.query(sql, names=NAMES[part])
        return [f"The table {name} is missing." for (name,) in missing]

    def unusable(self, reason: object, remedy: str = "") -> StoreError:
        return StoreError(
            f"The library in {self.place} cannot be used now: {reason}.",
            remedy or "Check the server and DATABASE_URL, and run the same command again.",
        )

    def damaged(self, fault: str) -> StoreDamaged:
        return StoreDamaged(f"The library in {self.place} is damaged: {fault}.", DAMAGED)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FolioError:
            raise
        except (UnicodeEncodeError, OverflowError) as error:
            raise _refused(error) from error
        except psycopg.Error as error:
            raise self.as_ours(error) from error

    def as_ours(self, error: psycopg.Error) -> StoreError:
        """An error of the server or the connection as one of Folio's."""
        reason = clause(error).split(" LINE 1:")[0]
        match error:
            case pg.LockNotAvailable() | pg.DeadlockDetected() | pg.SerializationFailure():
                return StoreBusy(
                    f"Another process is writing to the library in {self.place}.",
                    "Wait until it has finished, then run the same command again.",
                )
            case pg.DiskFull() | pg.OutOfMemory():
                return DiskFull(
                    f"There is no space left on the server of {self.place}.",
                    "Free some space there and run the same command again; what was indexed before is kept.",
                )
            case pg.DataCorrupted() | pg.IndexCorrupted():
                return self.damaged(str(reason))
            case pg.InsufficientPrivilege() | pg.ReadOnlySqlTransaction():
                refused = self.unusable(reason, "Ask who runs the server for the rights, or only read.")
                return StoreProtected(refused.happened, refused.remedy)
            case pg.InvalidPassword() | pg.InvalidAuthorizationSpecification():
                return self.unusable(reason, "Correct the user and the password in DATABASE_URL, or in ~/.pgpass.")
            case pg.UndefinedTable() | pg.UndefinedColumn() | pg.InvalidSchemaName():
                return self.damaged(reason)
            case psycopg.DataError() | psycopg.IntegrityError() | pg.ProgramLimitExceeded():
                return _refused(error)
            case psycopg.OperationalError() | psycopg.InterfaceError() if _is_cut(error):
                return StoreCut(
                    f"The connection to {self.place} was lost: {reason}.", "Run the same command again."
                )
            case psycopg.OperationalError():  # such as too many connections, or a wrong password
                refused = self.unusable(reason)
                return StoreAway(refused.happened, refused.remedy)
            case _:
                return self.unusable(reason)


def _refused(error: Exception) -> StoreRefused:
    return StoreRefused(
        f"The library cannot store this: {clause(error)[:200]}.",
        "Leave out what you were adding, and run the same command again.",
    )


def _is_cut(error: Exception) -> bool:
    """Whether an error is a lost connection, or one that could not be made yet, and not about a statement."""
    state = getattr(error, "sqlstate", None)
    of_connections = ("57P01", "57P02", "57P03", "08")  # a server that stops or starts, and lost connections
    if state is None:
        return not _LASTING.search(str(error))
    return bool(state.startswith(of_connections))


def place_of(url: str) -> str:
    """The location of a library in words, without the password. Raises StoreError, also without the password."""
    with suppress(psycopg.Error):
        fields = {name: str(value) for name, value in psycopg.conninfo.conninfo_to_dict(url).items()}
        host, port, name = (fields.get(part, "") for part in ("host", "port", "dbname"))
        # After a special character that is not percent-encoded, the rest of a password counts as host, port or name.
        if "@" not in host + name and port.replace(",", "").isdigit() == bool(port):
            database, server = name or fields.get("user", ""), host or "this computer"
            return f"the database {database} on {server}{f':{port}' if port else ''}"
    raise StoreError(
        "DATABASE_URL cannot be read as the address of a database.",
        "Write it as postgresql://user:password@host:port/name, and percent-encode the characters : / ? # @ % in the"
        " password: / as %2F, @ as %40, % as %25.",
    )


def _types_of(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Name of a list parameter -> the SQL type of its elements."""
    lists = ((name, value) for name, value in values.items() if isinstance(value, list))
    return tuple((name, "bigint" if value and isinstance(value[0], int) else "text") for name, value in lists)


@lru_cache(maxsize=1000)
def _translated(sql: str, lists: tuple[tuple[str, str], ...]) -> bytes:
    """A statement for both engines in psycopg's format. lists: see _types_of."""
    types = dict(lists)
    sql = _LIST.sub(lambda match: f"unnest(:{match[1]}\x00{types[match[1]]}[]) AS each(value)", sql.replace("%", "%%"))
    return _NAME.sub(r"%(\1)s", sql).replace("\x00", "::").encode()
