"""The log of questions: what was asked, what was answered from where, and whether that was any good.

It is a table of the library's file, so that it goes where the papers go; no index and no generation depends on it.
Nothing of it leaves this computer.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Literal

from folio.errors import UsageError
from folio.store.database import Database, storable

Feedback = Literal["good", "bad"]
# Seconds that a question waits for an ingest's transaction to end: an answer is never held up for long
PATIENCE_S = 2
_COLUMNS = "asked, question, standalone_question, chunks, answer, sources, timings_ms, model, feedback"
_LAST = "id = coalesce(?, (SELECT max(id) FROM queries))"


@dataclass(frozen=True, slots=True)
class LoggedSource:
    """A citation as the log keeps it: enough to find the page again."""

    paper: str  # its id
    file: str
    page: int  # physical, from 1
    quote: str


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A question and its answer."""

    asked: str  # ISO time in UTC
    question: str
    standalone_question: str
    chunks: tuple[int, ...]  # ids of the chunks that the evidence was made from
    answer: str
    sources: tuple[LoggedSource, ...]  # none where the answer is the refusal
    timings_ms: dict[str, float]  # stage -> milliseconds; "total" is the whole of it
    model: str
    feedback: Literal["", "good", "bad"] = ""


@dataclass(frozen=True, slots=True)
class LogCounts:
    """The log in numbers."""

    questions: int
    refused: int  # answers without a source
    good: int
    bad: int
    median_ms: float | None  # of the "total" of those that tell it


class QueryLog:
    """The questions asked of one library. Raises StoreError and its kind, as the library does.

    No method is called inside `Library.reading()`: what is written would be taken back with the snapshot.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = database.rows
        self._newest: int | None = None  # the last that was added here: another process may ask of the same library
        database.overwrite_deleted()

    def add(self, entry: LogEntry) -> int:
        """Write a question down; returns the number of its row."""
        self._newest = 0  # no row's id: feedback on a question that cannot be written down is for no other one
        with self._writing():
            added = insert(self._database, entry)
        self._newest = added
        return added

    def last(self) -> LogEntry | None:
        """The last question that was added here; before there is one, the last that anyone asked."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM queries WHERE {_LAST}", self._newest)
        return _entry(rows[0]) if rows else None

    def mark(self, feedback: Feedback) -> LogEntry:
        """Say of the last question how good its answer was. Raises UsageError when the log does not have one."""
        with self._writing():
            self._rows(f"UPDATE queries SET feedback = ? WHERE {_LAST}", feedback, self._newest)
        marked = self.last()
        if marked is None:
            raise UsageError("The log has no question to mark.", 'Ask one: python query.py "What is ...?"')
        return marked

    def mark_row(self, row: int, feedback: Feedback) -> None:
        """Say of the question in this row how good its answer was. Raises UsageError when the log does not have it."""
        with self._writing():
            found = self._rows("UPDATE queries SET feedback = ? WHERE id = ? RETURNING id", feedback, row)
        if not found:
            raise UsageError("The question is no longer in the log.", "Ask it again.")

    def counts(self) -> LogCounts:
        with self._database.snapshot():
            questions, refused, good, bad = self._rows(
                "SELECT count(*), count(*) FILTER (WHERE sources = '[]'), count(*) FILTER (WHERE feedback = 'good'), "
                "count(*) FILTER (WHERE feedback = 'bad') FROM queries"
            )[0]
            timings = [json.loads(row[0]) for row in self._rows("SELECT timings_ms FROM queries")]
        totals = [timing["total"] for timing in timings if "total" in timing]
        return LogCounts(questions, refused, good, bad, statistics.median(totals) if totals else None)

    def clear(self) -> int:
        """Forget all questions, on the disk too; returns how many there were."""
        with self._writing():
            questions: int = self._rows("SELECT count(*) FROM queries")[0][0]
            self._rows("DELETE FROM queries")
        self._newest = None
        self._database.empty_log(PATIENCE_S)
        return questions

    def take_over(self, other: Path) -> int:
        """Add all questions of another library's log; returns what has been added to the number of each row.

        Raises StoreError where it has none that can be read.
        """
        with self._database.attached(other, "other"), self._database.transaction():
            shift: int = self._rows("SELECT coalesce(max(id), 0) FROM main.queries")[0][0]
            self._rows(
                f"INSERT INTO main.queries (id, {_COLUMNS}) SELECT id + ?, {_COLUMNS} FROM other.queries ORDER BY id",
                shift,
            )
        return shift

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction; StoreBusy after PATIENCE_S in which another process kept on writing."""
        with self._database.waiting_at_most(PATIENCE_S), self._database.transaction():
            yield


def insert(database: Database, entry: LogEntry) -> int:
    """Write a question down inside a transaction; returns the number of its row. Half of a surrogate pair, which SQLite
    cannot hold, becomes U+FFFD."""
    values = (
        *(entry.asked, entry.question, entry.standalone_question, json.dumps(entry.chunks), entry.answer),
        *(_json([astuple(source) for source in entry.sources]), _json(entry.timings_ms)),
        *(entry.model, entry.feedback),
    )
    sql = f"INSERT INTO queries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
    (row,) = database.rows(sql, *map(storable, values))
    return int(row[0])


def _entry(row: tuple[Any, ...]) -> LogEntry:
    asked, question, standalone_question, chunks, answer, sources, timings_ms, model, feedback = row
    cited = tuple(LoggedSource(*source) for source in json.loads(sources))
    ids, timings = tuple(json.loads(chunks)), json.loads(timings_ms)
    return LogEntry(asked, question, standalone_question, ids, answer, cited, timings, model, feedback)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
