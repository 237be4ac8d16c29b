"""Conversations of the web app, kept so that they can be read again and gone on with.

They are tables of the library's file, as the log of questions is; no index and no generation depends on them. Where no
log is kept they are in memory, and gone with the program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_urlsafe
from threading import Lock
from typing import Any

from folio.errors import NotKnown, StoreMissing
from folio.files import identity
from folio.store.answer_snapshot import memory_of, recalled
from folio.store.database import MEMORY, Database, storable
from folio.store.library import Library
from folio.store.query_log import PATIENCE_S, Feedback, LogEntry, insert
from folio.types import Answer

ID_BYTES = 12  # of an id, which are 16 characters of base64: nobody guesses one
LONGEST_TITLE = 80  # characters
_SUMMARIES = "SELECT c.id, c.title, c.updated, count(*) FROM conversations c JOIN turns t ON t.conversation = c.id"


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation as it is listed."""

    id: str
    title: str  # its first question, cut
    updated: str  # when its last answer came: ISO time in UTC
    turns: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer."""

    place: int  # in the conversation, from 1
    asked: str  # ISO time in UTC
    reply: dict[str, Any]  # what people saw
    query: int | None  # its row in the log of questions; None where it is not there
    answer: Answer | None  # for follow-ups; None where it was not asked for, or its papers are gone or read otherwise


class Conversations:
    """Any number of threads may use it. Raises StoreError and its kinds, as the library does."""

    def __init__(self, path: Path | None) -> None:
        """Those of the library at this path, which need not be there yet, and may be replaced; None: in memory."""
        self._path = path
        self._lock = Lock()
        self._database: Database | None = None
        self._file: tuple[int, int] | None = None  # what is open, by device and inode

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def begin(self) -> str:
        """The id of a new conversation. Nothing is written before its first turn is there."""
        return token_urlsafe(ID_BYTES)

    # Reading

    def listed(self) -> tuple[Summary, ...]:
        """Every conversation, the one with the latest turn first."""
        rows = self._rows(f"{_SUMMARIES} GROUP BY c.id ORDER BY max(t.id) DESC")
        return tuple(Summary(*row) for row in rows)

    def require(self, conversation: str) -> Summary:
        """Raises NotKnown."""
        rows = self._rows(f"{_SUMMARIES} WHERE c.id = ? GROUP BY c.id", conversation)
        return Summary(*_only(rows))

    def turns(self, conversation: str, library: Library | None = None) -> tuple[Turn, ...]:
        """Its turns in their order, with their answers where a library is given to make them from. Raises NotKnown."""
        sql = "SELECT place, asked, reply, query, memory FROM turns WHERE conversation = ? ORDER BY place"
        rows = self._rows(sql, conversation)
        _only(rows[:1])
        return tuple(
            Turn(place, asked, json.loads(reply), query, None if library is None else recalled(memory, library))
            for place, asked, reply, query, memory in rows
        )

    def query(self, conversation: str, place: int) -> int | None:
        """The row of a turn in the log of questions, None where it is not there. Raises NotKnown for no such turn."""
        sql = "SELECT query FROM turns WHERE conversation = ? AND place = ?"
        (row,) = _only(self._rows(sql, conversation, place))
        return None if row is None else int(row)

    # Writing

    def add(self, conversation: str, reply: Mapping[str, Any], answer: Answer, entry: LogEntry | None) -> int:
        """Write a turn down; returns its place. entry: goes into the log of questions with it, or neither is written.

        Raises NotKnown where the reply has a `turn` that is another one: meanwhile the conversation was forgotten,
        which stays so, or has gone on elsewhere.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        said, memory = json.dumps(dict(reply)), memory_of(answer)
        with self._writing() as database:
            sql = "SELECT coalesce(max(place), 0) + 1 FROM turns WHERE conversation = ?"
            place: int = database.rows(sql, conversation)[0][0]
            if reply.get("turn", place) != place:
                raise NotKnown(
                    "The conversation was deleted, or has gone on, while this was answered.", "Ask in a new one."
                )
            database.rows(
                "INSERT INTO conversations VALUES (?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET updated = excluded.updated",
                *(conversation, storable(_title(answer.question)), now, now),
            )
            database.rows(
                "INSERT INTO turns (conversation, place, asked, reply, memory, query) VALUES (?, ?, ?, ?, ?, ?)",
                *(conversation, place, now, said, memory, None if entry is None else insert(database, entry)),
            )
        return place

    def mark(self, conversation: str, place: int, feedback: Feedback) -> None:
        """Say in a turn's reply how good it was. Raises NotKnown."""
        self.query(conversation, place)
        turn = "WHERE conversation = ? AND place = ?"
        with self._writing() as database:
            (reply,) = _only(database.rows(f"SELECT reply FROM turns {turn}", conversation, place))
            marked = json.dumps({**json.loads(reply), "feedback": feedback})
            database.rows(f"UPDATE turns SET reply = ? {turn}", marked, conversation, place)

    def remove(self, conversation: str) -> None:
        """Forget a conversation and its questions in the log, on the disk too. Raises NotKnown."""
        self.require(conversation)
        with self._writing(forgets=True) as database:
            asked = "SELECT query FROM turns WHERE conversation = ?"
            database.rows(f"DELETE FROM queries WHERE id IN ({asked})", conversation)
            database.rows("DELETE FROM conversations WHERE id = ?", conversation)

    def clear(self) -> int:
        """Forget all of them, on the disk too; returns how many there were."""
        try:
            with self._writing(forgets=True) as database:
                conversations: int = database.rows("SELECT count(*) FROM conversations")[0][0]
                database.rows("DELETE FROM conversations")
        except StoreMissing:
            return 0
        return conversations

    def take_over(self, other: Path, shift: int | None) -> None:
        """Add those of another library. Raises StoreError where it has none that can be read.

        shift: what has been added to the numbers of its questions (QueryLog.take_over); None where they are lost.
        """
        with self._lock:
            database = self._opened()
            with database.attached(other, "other"), database.transaction():
                database.rows("INSERT INTO main.conversations SELECT * FROM other.conversations")
                database.rows(
                    "INSERT INTO main.turns (conversation, place, asked, reply, memory, query)"
                    " SELECT conversation, place, asked, reply, memory,"
                    " (SELECT q.id FROM main.queries q WHERE q.id = t.query + ?) FROM other.turns t ORDER BY t.id",
                    shift,
                )

    # The store, which may not be there yet, or be another one since

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What one statement finds; nothing where there is no store."""
        with self._lock:
            try:
                return self._opened().rows(sql, *values)
            except StoreMissing:
                return []

    @contextmanager
    def _writing(self, *, forgets: bool = False) -> Iterator[Database]:
        """A transaction; StoreBusy after PATIENCE_S in which another process kept on writing. Raises StoreMissing."""
        with self._lock:
            database = self._opened()
            with database.waiting_at_most(PATIENCE_S), database.transaction():
                yield database
            if forgets:
                database.empty_log(PATIENCE_S)

    def _opened(self) -> Database:
        """The database as it is now. Raises StoreMissing."""
        file = identity(self._path) if self._path else None
        if self._database is not None and file != self._file:
            self._database.close()
            self._database = None
        if self._database is None:
            self._database = Database(self._path or MEMORY, (), create=self._path is None)
            self._database.overwrite_deleted()
            self._file = file
        return self._database


def _only(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The first row. Raises NotKnown where there is none."""
    if not rows:
        raise NotKnown("There is no such conversation, or no such turn in it.", "It may have been deleted: begin anew.")
    return rows[0]


def _title(question: str) -> str:
    """A question on one line, cut between words where it is long."""
    line = " ".join(question.split())
    if len(line) <= LONGEST_TITLE:
        return line
    whole_words, _, _ = line[:LONGEST_TITLE].rpartition(" ")
    return f"{whole_words or line[: LONGEST_TITLE - 1]}…"
