"""The tables of a library in an engine, SQLite or PostgreSQL: statements, snapshots, transactions, and errors as ours.

Statements are those that both engines understand: named parameters (`:name`), ON CONFLICT, an explicit order. A list
is given as one parameter: `IN (SELECT value FROM json_each(:ids))`.
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
# What is made from the PDFs, and what people and services said
Part = Literal["library", "user"]

INGEST = f"`{command('ingest')}`"
DAMAGED = (
    f"Run `{command('ingest --rebuild')}`: it sets the damaged file aside, keeps your questions, conversations and"
    " edits, and reads your PDFs again."
)
SAID_CHANGED = (
    f"Run `{command('ingest --repair')}`: it takes what cannot be read from a copy of an earlier day, or deletes it."
)
# Seconds to wait for another process's transaction, which normally takes far less than one
BUSY_TIMEOUT_S = 30.0


class SaidChanged(ValueError):
    """What people were shown is not as it was written: no rebuild makes it again."""


class Database(ABC):
    """A connection. Raises StoreError and its subclasses, never an engine's own errors."""

    place: str  # where it is, in words

    @property
    @abstractmethod
    def is_read_only(self) -> bool:
        """Whether nothing can be stored there."""

    @abstractmethod
    def identity(self) -> Hashable:
        """Another one when another library has taken this one's place; None while there is none."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def query(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """The rows that a statement finds. `:name` in it takes the value of that name."""

    @abstractmethod
    def execute(self, sql: str, /, **values: object) -> list[tuple[Any, ...]]:
        """Run a statement that writes; returns the rows of a RETURNING clause."""

    @abstractmethod
    def execute_many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Run a statement that writes once for each row of named values."""

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
        """Commits everything written inside, or nothing; one at a time changes a part.

        part: what may be changed; others may change the other one meanwhile. Raises StoreBusy if another process's
        transaction takes longer than `wait_s` seconds.
        """

    @abstractmethod
    def purge(self) -> None:
        """Overwrite what was deleted, as far as the engine can: questions may be private."""

    @abstractmethod
    def faults(self, part: Part) -> list[str]:
        """What is wrong with the structure of a part, one sentence each; reads all of it.

        Raises StoreError where it cannot be read, which is no fault of what is in it.
        """

    def damaged(self, what: str) -> StoreDamaged:
        """The error that says what is wrong with what was read. what: a clause, "a vector is not of unit length"."""
        return StoreDamaged(f"The library {self.place} is damaged: {what}.", DAMAGED)

    def unusable(self, reason: object, remedy: str = "") -> StoreError:
        """The error for a library that cannot be read or written now, which proves nothing about what is in it."""
        return StoreError(
            f"The library {self.place} cannot be used now: {reason}.",
            remedy or "Run the same command again. If that does not help, check where it is kept.",
        )

    @contextmanager
    def rows_expected(self) -> Iterator[None]:
        """Any error inside, where rows are made into values, means that a row is not as it was written."""
        try:
            yield
        except FolioError:
            raise
        except SaidChanged as error:
            raise StoreDamaged(self.damaged(clause(error)).happened, SAID_CHANGED) from error
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
            raise self.damaged(clause(error)) from error

    def read(self, make: Callable[..., T], sql: str, /, **values: object) -> list[T]:
        """make(*row) of each row that a statement finds. Raises StoreDamaged if `make` raises."""
        rows = self.query(sql, **values)
        with self.rows_expected():
            return [make(*row) for row in rows]

    def insert(self, table: str, rows: Iterable[Mapping[str, object]], *, replace: bool = False) -> None:
        """Insert rows, all with the same columns. replace: in the place of those with the same key (tables.KEYS)."""
        listed = list(rows)
        if not listed:
            return
        names = list(listed[0])
        columns, values = ", ".join(f'"{name}"' for name in names), ", ".join(f":{name}" for name in names)
        sql = f"INSERT INTO {table} ({columns}) VALUES ({values})"
        if replace:
            others = [name for name in names if name not in KEYS[table]]
            changed = ", ".join(f'"{name}" = excluded."{name}"' for name in others)
            sql += f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {changed}"
        self.execute_many(sql, listed)


def clause(error: BaseException) -> str:
    """An error's text, to be completed."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return one_line(str(error)).removesuffix(".") or type(error).__name__


def storable(text: str) -> str:
    """The text with U+FFFD for what no engine stores: lone surrogates and U+0000."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def findable(values: Mapping[str, object]) -> dict[str, object]:
    """What a statement looks for, as it would be stored: what no engine stores is found nowhere, and is no error."""

    def made(value: object) -> object:
        if isinstance(value, list):
            return [made(each) for each in value]
        return storable(value) if isinstance(value, str) else value

    return {name: made(value) for name, value in values.items()}
