"""The tables of a library in SQLite or PostgreSQL: statements, snapshots, transactions, and Folio's own errors.

Statements use only what both engines understand: named parameters (`:name`), ON CONFLICT, an explicit order. A list is
passed as one parameter: `IN (SELECT value FROM json_each(:ids))`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, TypeVar

from folio.errors import FolioError, StoreDamaged, StoreError, command
from folio.store.tables import KEYS
from folio.text import one_line

T = TypeVar("T")
# "library": the data made from the PDFs. "user": the data that people and services added, here called user data.
Part = Literal["library", "user"]

INGEST = f"`{command('ingest')}`"
DAMAGED = (
    f"Run `{command('ingest --rebuild')}`: it sets the damaged file aside, keeps your questions, conversations and"
    " edits, and reads your PDFs again."
)
USER_DATA_CHANGED = (
    f"Run `{command('ingest --repair')}`: it restores unreadable parts from a copy of an earlier day, or deletes them."
)
# Seconds to wait for another process's transaction, which normally takes far less than one
BUSY_TIMEOUT_S = 30.0


class UserDataChanged(ValueError):
    """User data has changed since it was written, and a rebuild cannot restore it."""


class Database(ABC):
    """A connection. Raises StoreError and its subclasses, never an engine's own errors."""

    place: str  # its location, in words

    @property
    @abstractmethod
    def is_read_only(self) -> bool:
        """Whether it cannot be written."""

    @abstractmethod
    def identity(self) -> Hashable:
        """A value that changes when another library replaces this one; None while there is none."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def query(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """The rows of a query. `:name` in it takes the value of that name."""

    @abstractmethod
    def execute(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """Run a writing statement; returns the rows of its RETURNING clause."""

    @abstractmethod
    def execute_many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Run a writing statement once for each row of named values."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see the same state. Inside another snapshot or transaction, that one's state."""
        if self.in_snapshot:
            yield
            return
        self._begin_snapshot()
        try:
            yield
        finally:
            self._end_snapshot()

    @abstractmethod
    def _begin_snapshot(self) -> None: ...

    @abstractmethod
    def _end_snapshot(self) -> None: ...

    @property
    @abstractmethod
    def in_snapshot(self) -> bool:
        """Whether a snapshot or a transaction is open."""

    @abstractmethod
    def transaction(
        self, part: Part | Literal["both"] = "both", wait_s: float = BUSY_TIMEOUT_S
    ) -> AbstractContextManager[None]:
        """Commits everything written inside, or nothing. Each part has one transaction at a time.

        part: what may be changed; other transactions may change the other part meanwhile. Raises StoreBusy if another
        process's transaction takes longer than `wait_s` seconds.
        """

    @abstractmethod
    def purge(self) -> None:
        """Overwrite deleted data as far as the engine can, because questions may be private."""

    @abstractmethod
    def faults(self, part: Part) -> list[str]:
        """The faults in the structure of a part, one sentence each; reads all of it.

        Raises StoreError if it cannot be read now, which proves no fault.
        """

    def damaged(self, fault: str) -> StoreDamaged:
        """The error for damaged data. fault: a clause, "a vector is not of unit length"."""
        return StoreDamaged(f"The library {self.place} is damaged: {fault}.", DAMAGED)

    def unusable(self, reason: object, remedy: str = "") -> StoreError:
        """The error for a library that cannot be read or written now, which proves no damage."""
        return StoreError(
            f"The library {self.place} cannot be used now: {reason}.",
            remedy or "Run the same command again. If that does not help, check where it is kept.",
        )

    @contextmanager
    def rows_expected(self) -> Iterator[None]:
        """Turns errors of converting rows into StoreDamaged: a row that fails has changed since it was written."""
        try:
            yield
        except FolioError:
            raise
        except UserDataChanged as error:
            raise StoreDamaged(self.damaged(clause(error)).happened, USER_DATA_CHANGED) from error
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
            raise self.damaged(clause(error)) from error

    def read(self, make: Callable[..., T], sql: str, /, **values: object) -> list[T]:
        """make(*row) for each row of a query. Raises StoreDamaged if `make` raises."""
        rows = self.query(sql, **values)
        with self.rows_expected():
            return [make(*row) for row in rows]

    def insert(self, table: str, rows: Iterable[Mapping[str, object]], *, replace: bool = False) -> None:
        """Insert rows, all with the same columns. replace: replace rows with the same key (tables.KEYS)."""
        listed = list(rows)
        if not listed:
            return
        names = list(listed[0])
        columns, values = ", ".join(f'"{name}"' for name in names), ", ".join(f":{name}" for name in names)
        sql = f"INSERT INTO {table} ({columns}) VALUES ({values})"
        if replace:
            changed = ", ".join(f'"{name}" = excluded."{name}"' for name in names if name not in KEYS[table])
            sql += f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {changed}"
        self.execute_many(sql, listed)


def clause(error: BaseException) -> str:
    """An error's text as a clause, without a full stop."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return one_line(str(error)).removesuffix(".") or type(error).__name__


def storable(text: str) -> str:
    """The text with U+FFFD for characters that no engine stores: lone surrogates and U+0000."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def findable(values: Mapping[str, object]) -> dict[str, object]:
    """The values of a query in their stored form, so that characters that no engine stores cause no error."""

    def stored(value: object) -> object:
        if isinstance(value, list):
            return [stored(each) for each in value]
        return storable(value) if isinstance(value, str) else value

    return {name: stored(value) for name, value in values.items()}
