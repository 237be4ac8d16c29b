"""The query log: each question with its answer, sources, timings and feedback.

It is a table of the user data; no index or generation depends on it.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from folio.errors import UsageError, command
from folio.store import rows
from folio.store.database import Database, UserDataChanged, storable

Feedback = Literal["good", "bad"]
# Seconds that a question waits for an ingest's transaction, so that no answer is delayed for long
BUSY_TIMEOUT_S = 2
COLUMNS = f"{rows.QUERY_COLUMNS}, feedback, crc"
SCOPE_COLUMNS = "query, scope, crc"
OPENED_COLUMNS = "query, paper, page, opened"
_NEWEST = "SELECT max(id) FROM queries"


@dataclass(frozen=True, slots=True)
class LoggedSource:
    """A citation in the log: enough to find the page again."""

    paper: str  # the paper's id
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
    sources: tuple[LoggedSource, ...]  # empty for a refusal
    timings_ms: dict[str, float]  # stage -> milliseconds; "total" for all of them
    model: str
    feedback: Literal["", "good", "bad"] = ""
    confidence: float | None = None  # of the answerer, 0 to 1; None if it gives none
    trace: dict[str, Any] | None = None  # of a deep answer: schema.answers.logged_trace
    scope: str = ""  # what was asked, in words: "All 95 papers"; "" in entries of older versions


@dataclass(frozen=True, slots=True)
class LogCounts:
    """Statistics of the log."""

    questions: int
    refused: int  # answers without sources
    good: int
    bad: int
    median_ms: float | None  # of the recorded "total" timings
    median_confidence: float | None  # of the answers that have one, refusals included


class QueryLog:
    """`QueryLog` in a database. Raises StoreError and its subclasses, as the library does.

    Never call its methods inside `Library.reading()`: writes would be rolled back with the snapshot.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._query = database.query
        self._execute = database.execute
        self._newest: int | None = None  # the last question of this process; others may log questions meanwhile

    def add(self, entry: LogEntry) -> int:
        """Log a question; returns its row id."""
        self._newest = 0  # no row has this id: if logging fails, feedback must not go to an earlier question
        self._newest = self._database.repeat(lambda: self._add(entry))
        return self._newest

    def _add(self, entry: LogEntry) -> int:
        with self._writing():
            return insert(self._database, entry)

    def last(self) -> LogEntry | None:
        """The last question of this process, or the last in the log if this process has logged none."""
        newest = self._newest_row()
        return None if newest is None else self.entry(newest)

    def _newest_row(self) -> int | None:
        """The row id of the last question; None if the log is empty."""
        if self._newest is not None:
            return self._newest
        ((newest,),) = self._query(_NEWEST)
        return None if newest is None else int(newest)

    def entries(self, feedback: Feedback | None = None, most: int | None = None) -> list[tuple[int, LogEntry]]:
        """The questions with their row ids, newest first. feedback: only those with it. most: at most this many."""
        only = "WHERE feedback = :feedback" if feedback else ""
        sql = f"SELECT {COLUMNS} FROM queries {only} ORDER BY id DESC {'' if most is None else 'LIMIT :most'}"
        with self._database.snapshot():
            found = self._database.read(
                lambda *row: (rows.number(row[0]), logged(*row)), sql, feedback=feedback, most=most
            )
            known = scopes(self._database, (row for row, _ in found))
        return [(row, replace(entry, scope=known.get(row, ""))) for row, entry in found]

    def entry(self, row: int) -> LogEntry | None:
        """The question in this row; None if there is none."""
        sql = f"SELECT {COLUMNS} FROM queries WHERE id = :row"
        entries = self._database.read(logged, sql, row=row)
        return replace(entries[0], scope=scopes(self._database, [row]).get(row, "")) if entries else None

    def mark(self, feedback: Feedback) -> LogEntry:
        """Record feedback on the last answer. Raises UsageError if the log has no question."""
        with self._writing():
            newest = self._newest_row()
            self._execute(
                "UPDATE queries SET feedback = :feedback WHERE id = :newest", feedback=feedback, newest=newest
            )
        marked = None if newest is None else self.entry(newest)
        if marked is None:
            raise UsageError("The log has no answer to rate.", "Ask first: " + command('ask "What is ...?"'))
        return marked

    def mark_row(self, row: int, feedback: Feedback) -> None:
        """Record feedback on the answer in this row. Raises UsageError if there is no such row."""
        with self._writing():
            sql = "UPDATE queries SET feedback = :feedback WHERE id = :row RETURNING id"
            updated = self._execute(sql, feedback=feedback, row=row)
        if not updated:
            raise UsageError("The question is no longer in the log.", "Ask it again.")

    def open_citation(self, row: int, paper: str, page: int) -> None:
        """Record that a person opened a page which the answer in this row cites; of others, nothing is recorded."""
        entry = self.entry(row)
        if entry is None or not any(source.paper == paper and source.page == page for source in entry.sources):
            return
        opened = datetime.now(UTC).isoformat(timespec="seconds")
        sql = """INSERT INTO opened_citations (query, paper, page, opened)
            SELECT id, :paper, :page, :opened FROM queries WHERE id = :row
            ON CONFLICT (query, paper, page) DO NOTHING"""
        with self._writing():
            self._execute(sql, row=row, paper=paper, page=page, opened=opened)

    def opened(self) -> dict[int, list[tuple[str, int]]]:
        """Row id -> the papers and physical pages that a person opened from its answer, the first opened first."""
        found: dict[int, list[tuple[str, int]]] = {}
        sql = f"SELECT {OPENED_COLUMNS} FROM opened_citations ORDER BY query, opened, paper, page"
        for row, paper, page, _ in self._database.read(opened_citation, sql):
            found.setdefault(row, []).append((paper, page))
        return found

    def state(self) -> Hashable:
        """A value that changes when a question is logged or deleted, or an answer is rated or a citation opened."""
        rated = ", ".join(f"count(*) FILTER (WHERE feedback = '{mark}')" for mark in get_args(Feedback))
        with self._database.snapshot():
            of_queries = self._query(f"SELECT count(*), max(id), {rated} FROM queries")[0]
            return (*of_queries, *self._query("SELECT count(*) FROM opened_citations")[0])

    def counts(self) -> LogCounts:
        with self._database.snapshot():
            questions, refused, good, bad = self._query(
                "SELECT count(*), count(*) FILTER (WHERE sources = '[]'), count(*) FILTER (WHERE feedback = 'good'), "
                "count(*) FILTER (WHERE feedback = 'bad') FROM queries"
            )[0]
            totals = [
                total for total in self._database.read(_total_ms, "SELECT timings_ms FROM queries") if total is not None
            ]
            sure = [row[0] for row in self._query("SELECT confidence FROM queries WHERE confidence IS NOT NULL")]
        return LogCounts(questions, refused, good, bad, _median(totals), _median(sure))

    def clear(self) -> int:
        """Delete all questions and overwrite them on disk; returns how many there were."""
        with self._writing():
            questions: int = self._query("SELECT count(*) FROM queries")[0][0]
            self._execute("DELETE FROM queries")
        self._newest = None
        self._database.purge()
        return questions

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction; raises StoreBusy if another process keeps writing for BUSY_TIMEOUT_S."""
        with self._database.transaction("user", BUSY_TIMEOUT_S):
            yield


def insert(database: Database, entry: LogEntry) -> int:
    """Log a question; returns its row id. The caller has a transaction. Texts are stored as by `storable`."""
    texts = {
        "asked": entry.asked,
        "question": entry.question,
        "standalone_question": entry.standalone_question,
        "chunks": json.dumps(entry.chunks),
        "answer": entry.answer,
        "sources": _json([astuple(source) for source in entry.sources]),
        "timings_ms": _json(entry.timings_ms),
        "model": entry.model,
    }
    stored = {column: storable(text) for column, text in texts.items()}
    trace = None if entry.trace is None else storable(_json(entry.trace))
    confidence = None if entry.confidence is None else float(entry.confidence)  # the CRC needs the type that is read
    checked: dict[str, object] = {**stored, "confidence": confidence, "trace": trace}
    row = {**checked, "feedback": entry.feedback, "crc": rows.shown_crc(*checked.values())}
    columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
    sql = f"INSERT INTO queries (id, {columns}) SELECT coalesce(max(id), 0) + 1, {values} FROM queries RETURNING id"
    id = int(database.execute(sql, **row)[0][0])
    record_scope(database, id, entry.scope)
    return id


def record_scope(database: Database, query: int, scope: str) -> None:
    """Keep what a question of the log was asked of, in words. The caller has a transaction."""
    if scope:
        row = {"query": query, "scope": storable(scope)}
        database.insert("query_scopes", [{**row, "crc": rows.shown_crc(*row.values())}], replace=True)


def scopes(database: Database, queries: Iterable[int]) -> dict[int, str]:
    """Question of the log -> what it was asked of, in words; without those of which that is not known."""
    listed = list(queries)
    sql = f"SELECT {SCOPE_COLUMNS} FROM query_scopes WHERE query IN (SELECT value FROM json_each(:queries))"
    return dict(database.read(logged_scope, sql, queries=listed)) if listed else {}


def logged_scope(*row: Any) -> tuple[int, str]:
    """From SCOPE_COLUMNS: a question, and what it was asked of. Raises ValueError."""
    query, scope, crc = row
    if crc != rows.shown_crc(query, scope):
        raise UserDataChanged(f"what question {query} of the log was asked of has changed since it was written")
    return rows.number(query), rows.string(scope)


def logged(*row: Any) -> LogEntry:
    """An entry from COLUMNS. Raises ValueError."""
    asked, question, standalone, chunks, answer, sources, *rest_of_row = rows.query(*row)
    cited = tuple(LoggedSource(*source) for source in sources)
    return LogEntry(asked, question, standalone, chunks, answer, cited, *rest_of_row)


def opened_citation(*row: Any) -> tuple[int, str, int, str]:
    """From OPENED_COLUMNS. Raises ValueError."""
    query, paper, page, opened = row
    datetime.fromisoformat(rows.string(opened))
    return rows.number(query), rows.string(paper), rows.number(page), opened


def _total_ms(timings: object) -> float | None:
    total = rows.mapped(timings, "a question of the log").get("total")
    return None if total is None else float(total)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
