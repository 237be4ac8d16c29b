"""Conversations of the web app, kept so that they can be reopened and continued.

They are tables next to the query log; no index or generation depends on them. If logging is off, they are kept in
memory until the program ends.

The answers of turns are saved for follow-ups as spans of their papers, without the text.

A turn follows another one, its parent. A question that was edited or asked again has the parent of the one it replaces:
the conversation branches there. It shows one path, and a follow-up knows its own path only.

A question is a turn from the moment it is asked. Until it has an answer, its row has what was asked in place of the
reply, and no memory. A server that answers it says so in `answering`, for a few seconds at a time: if it is killed, the
turn is soon known to be left without an answer, by every server that shares the library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from secrets import token_urlsafe
from threading import Lock
from typing import Any, TypeVar

from folio.answer_types import Answer, Citation, Evidence, RejectedSentence, Scope, Section, Sentence
from folio.errors import FIRST_INGEST, NotKnown, StoreMissing, StoreProtected
from folio.papers.model import Chunk, Hit, Notice, Paper
from folio.store import rows
from folio.store.database import Database, closed_on_error, storable
from folio.store.library import Library
from folio.store.query_log import (
    BUSY_TIMEOUT_S,
    OPENED_COLUMNS,
    Feedback,
    LogEntry,
    insert,
    record_scope,
    scopes,
)
from folio.store.query_log import COLUMNS as LOG_COLUMNS
from folio.store.rows import text_hash
from folio.store.sqlite import MEMORY, SqliteDatabase
from folio.store.user_file import user_file_of
from folio.system.files import identity
from folio.text import one_line, plain_words, whole_words

T = TypeVar("T")

ID_BYTES = 12  # random bytes in an id: too many to guess
ID_LENGTH = 16  # characters of base64
MAX_TITLE_LENGTH = 80  # characters
# Seconds for which a server says that it answers a question, and after which it says so again
ANSWERING_S, RENEW_S = 9, 2
_PINNED = "(SELECT count(*) FROM pins p WHERE p.conversation = c.id)"
_RUNNING = "(SELECT coalesce(max(a.place), 0) FROM answering a WHERE a.conversation = {} AND a.until > :now)"
_SUMMARIES = f"""SELECT c.id, c.title, c.updated, count(*), {_PINNED}, max(t.id), {_RUNNING.format("c.id")}
    FROM conversations c JOIN turns t ON t.conversation = c.id {{}}
    GROUP BY c.id, c.title, c.updated ORDER BY 5 DESC, 6 DESC"""
_READ_AT_ONCE = 100  # turns, whose replies are long
_THIS_TURN = "WHERE conversation = :id AND place = :place"
_NO_ANSWER = ""  # the memory of a turn that has none yet

# Columns that are copied: not a turn's row in the query log, because the log is not copied
_COPIED = {
    "conversations": ("id", "title", "begun", "updated"),
    "pins": ("conversation",),
    "turns": ("id", "conversation", "place", "asked", "reply", "memory", "crc"),
}


# Table -> its columns, and which rows are those of a conversation, in the order in which they are put back
_REMOVED = {
    "queries": (tuple(LOG_COLUMNS.split(", ")), "id IN (SELECT query FROM turns WHERE conversation = :id)"),
    "conversations": (_COPIED["conversations"], "id = :id"),
    "turns": ((*_COPIED["turns"], "query"), "conversation = :id"),
    "opened_citations": (
        tuple(OPENED_COLUMNS.split(", ")),
        "query IN (SELECT query FROM turns WHERE conversation = :id)",
    ),
    "pins": (_COPIED["pins"], "conversation = :id"),
}


@dataclass(frozen=True, slots=True)
class Removed:
    """A conversation that was deleted, as it was."""

    id: str
    rows: Mapping[str, list[dict[str, Any]]]  # by their tables
    notes: list[str]  # the ids of those that were made in it
    scopes: Mapping[int, str]  # question of the log -> what it was asked of


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation in a list."""

    id: str
    title: str  # its first question, shortened, or as a person renamed it
    updated: str  # time of its last question or answer (ISO, UTC)
    turns: int  # those of all branches, also without an answer
    pinned: bool
    latest: int  # grows with each turn
    running: int  # the turn that is being answered; 0 for none


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer, if it has one."""

    place: int  # in the conversation, from 1
    asked: str  # ISO time in UTC
    reply: dict[str, Any]  # the reply that was shown; empty without an answer
    query: int | None  # the turn's row in the query log; None if it is not logged
    answer: Answer | None  # for follow-ups; None if not requested, or if its papers' text is gone or has changed
    question: dict[str, Any] | None = None  # without an answer: what was asked, and why there is none
    is_running: bool = False  # a server is answering it

    @property
    def parent(self) -> int:
        """The place of the turn that it follows; 0 for none. Before there were branches, it followed the last one."""
        parent = (self.reply if self.question is None else self.question).get("parent")
        return parent if isinstance(parent, int) and 0 <= parent < self.place else self.place - 1


def path_through(turns: Sequence[Turn], through: int | None = None) -> tuple[Turn, ...]:
    """The path that ends in the latest turn; with `through`, in the latest turn that follows it. Raises NotKnown.

    turns: all turns of a conversation, in order.
    """
    last = 0 if through is None else through
    following = {last}
    for turn in turns:
        if turn.parent in following:
            following.add(turn.place)
            last = turn.place
    return path_to(turns, last)


def path_to(turns: Sequence[Turn], place: int) -> tuple[Turn, ...]:
    """The path that ends in this turn; () for 0. Raises NotKnown."""
    by_place = {turn.place: turn for turn in turns}
    if place and place not in by_place:
        raise not_known()
    backwards = []
    while turn := by_place.get(place):
        backwards.append(turn)
        place = turn.parent
    return tuple(reversed(backwards))


def branches(turns: Sequence[Turn]) -> dict[int, list[int]]:
    """Parent -> the places of the turns that follow it, in order."""
    following: dict[int, list[int]] = {}
    for turn in turns:
        following.setdefault(turn.parent, []).append(turn.place)
    return following


class Conversations:
    """Conversations in a database, or in memory."""

    def __init__(self, place: Path | Callable[[], Database] | None, *, notice: Notice = lambda text: None) -> None:
        """place: the file of a library, which may not exist yet and may be replaced later, or a function that opens a
        database. None keeps conversations in memory. notice: see SqliteDatabase.
        """
        self._place, self._notice = place, notice
        self._lock = Lock()
        self._database: Database | None = None
        self._opened: Hashable = None  # the identity of that database
        self._stored: frozenset[str] | None = None  # ids of the conversations in a library that cannot be written
        self._words: dict[tuple[int, str], str] = {}  # row and conversation of a turn -> its words (search)

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def begin(self) -> str:
        """The id of a new conversation. Nothing is written until its first turn is added."""
        return token_urlsafe(ID_BYTES)

    def summaries(self) -> tuple[Summary, ...]:
        """All conversations: pinned ones first, then the one with the latest turn."""
        return tuple(self._read(_summary, _SUMMARIES.format(""), now=_now()))

    def search(self, query: str) -> tuple[Summary, ...]:
        """The conversations whose title, questions and answers have all words of a query, whole or as a part."""
        summaries = self.summaries()
        texts = {summary.id: [" ".join(plain_words(summary.title))] for summary in summaries}
        for (_, conversation), words in self._turn_words().items():
            texts.setdefault(conversation, []).append(words)
        text_of = {conversation: " ".join(parts) for conversation, parts in texts.items()}
        return tuple(each for each in summaries if all(word in text_of[each.id] for word in plain_words(query)))

    def _turn_words(self) -> dict[tuple[int, str], str]:
        """The words of each turn's question and answer. A turn with an answer is read once: its words never change."""
        keys = self._read(_turn_key, "SELECT id, conversation FROM turns")
        known = {key: self._words[key] for key in keys if key in self._words}
        new = [key for key in keys if key not in known]
        sql = "SELECT id, conversation, reply FROM turns WHERE id IN (SELECT value FROM json_each(:ids))"
        unanswered: dict[tuple[int, str], str] = {}
        for start in range(0, len(new), _READ_AT_ONCE):
            for key, words, is_answered in self._read(
                _turn_words, sql, ids=[id for id, _ in new[start : start + _READ_AT_ONCE]]
            ):
                (known if is_answered else unanswered)[key] = words
        self._words = known
        return known | unanswered

    def rename(self, conversation: str, title: str) -> None:
        """Raises NotKnown."""
        self.require(conversation)
        with self._writing() as database:
            sql = "UPDATE conversations SET title = :title WHERE id = :id"
            database.execute(sql, title=storable(one_line(title)), id=conversation)

    def pin(self, conversation: str, *, pinned: bool) -> None:
        """Put a conversation above the others, or back. Raises NotKnown."""
        self.require(conversation)
        with self._writing() as database:
            database.execute("DELETE FROM pins WHERE conversation = :id", id=conversation)
            if pinned:
                sql = "INSERT INTO pins (conversation) SELECT id FROM conversations WHERE id = :id"
                database.execute(sql, id=conversation)

    def require(self, conversation: str) -> Summary:
        """The summary of a conversation. Raises NotKnown."""
        return _first(self._read(_summary, _SUMMARIES.format("WHERE c.id = :id"), id=conversation, now=_now()))

    def turns(self, conversation: str, library: Library | None = None) -> tuple[Turn, ...]:
        """Its turns in order, with their answers if a library is given to restore them from. Raises NotKnown."""
        running = _RUNNING.format("turns.conversation")  # in the same statement: it may end meanwhile
        sql = f"SELECT {rows.TURN_COLUMNS}, {running} FROM turns WHERE conversation = :id ORDER BY place"
        turns = self._read(lambda *row: (*rows.turn(*row[:-1]), row[-1]), sql, id=conversation, now=_now())
        _first(turns)
        return tuple(
            Turn(place, asked, {}, query, None, reply, running == place)
            if memory == _NO_ANSWER
            else Turn(place, asked, reply, query, None if library is None else restore(memory, library))
            for _, place, asked, reply, memory, query, running in turns
        )

    def citing(self, paper: str) -> tuple[Summary, ...]:
        """The conversations with an answer that cites this paper, the one with the latest turn first."""
        sql = f"SELECT {rows.TURN_COLUMNS} FROM turns WHERE reply LIKE :paper"
        turns = self._read(rows.turn, sql, paper=f'%"{paper}"%')
        citing = {
            conversation
            for conversation, _, _, reply, *_ in turns
            if any(citation.get("paper") == paper for citation in reply.get("citations", ()))
        }
        return tuple(summary for summary in self.summaries() if summary.id in citing)

    def query(self, conversation: str, place: int) -> int | None:
        """A turn's row in the query log, None if it is not logged. Raises NotKnown if there is no such turn."""
        sql = f"SELECT {rows.TURN_COLUMNS} FROM turns {_THIS_TURN}"
        *_, row = _first(self._read(rows.turn, sql, id=conversation, place=place))
        return row

    def ask(self, conversation: str, question: Mapping[str, Any], server: str) -> bool:
        """Add a question as a turn without an answer, or ask again one that is such a turn.

        question: JSON with its place as `turn`, its words as `message`, and a `key` of its own. server: who answers it.
        Returns False, and adds nothing, if another turn has this place or is being answered.
        """
        place, text = question["turn"], json.dumps(dict(question))

        def ask() -> bool:
            with self._writing() as database:
                sql = "SELECT place, server FROM answering WHERE conversation = :id AND until > :now"
                if database.query(sql, id=conversation, now=_now()) not in ([], [(place, server)]):
                    return False
                sql = f"SELECT {rows.TURN_COLUMNS} FROM turns {_THIS_TURN}"
                before = database.read(rows.turn, sql, id=conversation, place=place)
                if any(memory != _NO_ANSWER or asked.get("key") != question["key"] for *_, asked, memory, _ in before):
                    return False
                if before:
                    _set_turn(database, conversation, place, text, _NO_ANSWER, None)
                else:
                    sql = "SELECT coalesce(max(place), 0) + 1 FROM turns WHERE conversation = :id"
                    if database.query(sql, id=conversation) != [(place,)]:
                        return False
                    now = _now()
                    insert_conversation(database, conversation, storable(title_of(question["message"])), now)
                    insert_turn(database, conversation, place, now, text, _NO_ANSWER, None)
                held = {"conversation": conversation, "place": place, "server": server, "stops": 0}
                database.insert("answering", [{**held, "until": _now(ANSWERING_S)}], replace=True)
            return True

        return self._repeat(ask)

    def answer(
        self, conversation: str, server: str, reply: Mapping[str, Any], answer: Answer, entry: LogEntry | None
    ) -> None:
        """Give a question that `ask` has added its answer. In the same transaction, `entry` is added to the query log.

        Raises NotKnown if the conversation was deleted, or another server answers the question.
        """
        place, text, memory = reply["turn"], json.dumps(dict(reply)), snapshot_of(answer)

        def add() -> None:
            with self._writing() as database:
                sql = f"SELECT reply FROM turns {_THIS_TURN}"
                if database.query(sql, id=conversation, place=place) == [(text,)]:
                    return  # the connection was lost after it was added
                self._end(database, conversation, place, server)
                row = None if entry is None else insert(database, entry)
                _set_turn(database, conversation, place, text, memory, row)

        self._repeat(add)

    def leave(self, conversation: str, server: str, question: Mapping[str, Any]) -> None:
        """Leave a question without an answer, as `question` says now: it failed, or was stopped. Raises NotKnown."""

        def leave() -> None:
            with self._writing() as database:
                self._end(database, conversation, question["turn"], server)
                _set_turn(database, conversation, question["turn"], json.dumps(dict(question)), _NO_ANSWER, None)

        self._repeat(leave)

    def _end(self, database: Database, conversation: str, place: int, server: str) -> None:
        """End the work of this server on a turn; the caller has a transaction. Raises NotKnown."""
        sql = f"DELETE FROM answering {_THIS_TURN} AND server = :server RETURNING place"
        if not database.execute(sql, id=conversation, place=place, server=server):
            raise continued_elsewhere()
        database.execute("UPDATE conversations SET updated = :now WHERE id = :id", now=_now(), id=conversation)

    def renew(self, server: str) -> set[tuple[str, int]]:
        """Say again that this server answers its questions; returns those that nobody has stopped or deleted."""

        def renew() -> set[tuple[str, int]]:
            with self._writing() as database:
                sql = "UPDATE answering SET until = :until WHERE server = :server RETURNING conversation, place, stops"
                renewed = database.execute(sql, until=_now(ANSWERING_S), server=server)
            return {(conversation, place) for conversation, place, stops in renewed if not stops}

        return self._repeat(renew)

    def stop(self, conversation: str, place: int) -> None:
        """Have the server that answers a question stop, if one does."""

        def stop() -> None:
            with self._writing() as database:
                database.execute(f"UPDATE answering SET stops = 1 {_THIS_TURN}", id=conversation, place=place)

        self._repeat(stop)

    def add(self, conversation: str, reply: Mapping[str, Any], answer: Answer, entry: LogEntry | None) -> int:
        """Add a turn with its answer; returns its place. In the same transaction, `entry` is added to the query log.

        Raises NotKnown if the reply has another number as its `turn`: the conversation was deleted (and stays deleted)
        or continued elsewhere while the reply was written.
        """
        now = _now()
        reply_json, snapshot = json.dumps(dict(reply)), snapshot_of(answer)

        def add() -> int:
            with self._writing() as database:
                sql = "SELECT coalesce(max(place), 0) + 1 FROM turns WHERE conversation = :id"
                place: int = database.query(sql, id=conversation)[0][0]
                if reply.get("turn", place) != place:
                    raise continued_elsewhere()
                insert_conversation(database, conversation, storable(title_of(answer.question)), now)
                row = None if entry is None else insert(database, entry)
                insert_turn(database, conversation, place, now, reply_json, snapshot, row)
            return place

        return self._repeat(add)

    def _repeat(self, do: Callable[[], T]) -> T:
        with self._lock:
            database = self._current_database()
        return database.repeat(do)

    def mark(self, conversation: str, place: int, feedback: Feedback) -> None:
        """Record feedback in a turn's reply. Raises NotKnown."""
        self.query(conversation, place)
        with self._writing() as database:
            sql = f"SELECT {rows.TURN_COLUMNS} FROM turns {_THIS_TURN}"
            _, _, _, reply, memory, row = _first(database.read(rows.turn, sql, id=conversation, place=place))
            _set_turn(database, conversation, place, json.dumps({**reply, "feedback": feedback}), memory, row)

    def remove(self, conversation: str) -> Removed:
        """Delete a conversation and its questions in the log, and overwrite them on disk. Raises NotKnown.

        Returns all of it, for `restore`.
        """
        self.require(conversation)
        if self._stored and conversation in self._stored:
            raise _not_deletable()
        with self._writing(deletes=True) as database:
            removed = _everything_of(database, conversation)
            for table, (_, rows_of) in _REMOVED.items():
                database.execute(f"DELETE FROM {table} WHERE {rows_of}", id=conversation)
        return removed

    def restore(self, removed: Removed) -> None:
        """Put a conversation back that was deleted, as it was: its turns, its pin, its questions in the log with their
        feedback, and the notes that were made in it know it again."""

        def restore() -> None:
            with self._writing() as database:
                if not database.query("SELECT id FROM conversations WHERE id = :id", id=removed.id):
                    _put_back(database, removed)

        self._repeat(restore)

    def clear(self) -> int:
        """Delete all conversations and overwrite them on disk; returns how many there were."""
        try:
            if not self.are_stored and self._place:
                raise _not_deletable()
            with self._writing(deletes=True) as database:
                conversations: int = database.query("SELECT count(*) FROM conversations")[0][0]
                database.execute("DELETE FROM conversations")
        except StoreMissing:
            return 0
        return conversations

    @property
    def are_stored(self) -> bool:
        """Whether conversations outlive the program."""
        with self._lock, suppress(StoreMissing):
            self._current_database()
        return self._place is not None and self._stored is None

    def _read(self, make: Callable[..., T], sql: str, /, **values: object) -> list[T]:
        """make(*row) for each row of a query; none if there is no store."""
        with self._lock:
            try:
                return self._current_database().read(make, sql, **values)
            except StoreMissing:
                return []

    @contextmanager
    def _writing(self, *, deletes: bool = False) -> Iterator[Database]:
        """A transaction. Raises StoreMissing, and StoreBusy if another process keeps writing for BUSY_TIMEOUT_S."""
        with self._lock:
            database = self._current_database()
            with database.transaction("user", BUSY_TIMEOUT_S):
                yield database
            if deletes:
                database.purge()

    def _current_database(self) -> Database:
        """The database, reopened if its file was replaced. Raises StoreMissing."""
        if self._database is not None and self._identity() != self._opened:
            self._database.close()
            self._database = None
        if self._database is None:
            self._stored = None
            self._database = self._open()
            self._opened = self._identity()
            if self._database.is_read_only:
                self._database = self._copied_to_memory(self._database)
        return self._database

    def _identity(self) -> Hashable:
        """The identity of the file with the conversations, which changes when the file is replaced."""
        return identity(user_file_of(self._place)) if isinstance(self._place, Path) else None

    def _open(self) -> Database:
        if self._place is None:
            return in_memory()
        if not isinstance(self._place, Path):
            return self._place()
        if not self._place.exists():
            raise StoreMissing(f"There is no index at {self._place.parent} yet.", f"{FIRST_INGEST}.")
        return SqliteDatabase(user_file_of(self._place), "user", create=True, notice=self._notice)

    def _copied_to_memory(self, stored: Database) -> Database:
        """A copy in memory of a database that cannot be written. New conversations are lost when the program ends."""
        memory = in_memory()
        with closed_on_error(memory), memory.transaction("user"):
            for table, columns in _COPIED.items():
                rows_read = stored.query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1")
                memory.insert(table, [dict(zip(columns, row, strict=True)) for row in rows_read])
        stored.close()
        self._stored = frozenset(id for (id,) in memory.query("SELECT id FROM conversations"))
        return memory


def in_memory() -> Database:
    """A database that is lost when it is closed."""
    return SqliteDatabase(MEMORY, "user", create=True)


def _everything_of(database: Database, conversation: str) -> Removed:
    stored = {}
    for table, (columns, rows_of) in _REMOVED.items():
        found = database.query(f"SELECT {', '.join(columns)} FROM {table} WHERE {rows_of}", id=conversation)
        stored[table] = [dict(zip(columns, row, strict=True)) for row in found]
    noted = database.query("SELECT id FROM notes WHERE conversation = :id", id=conversation)
    asked_of = scopes(database, (row["id"] for row in stored["queries"]))
    return Removed(conversation, stored, [id for (id,) in noted], asked_of)


def _put_back(database: Database, removed: Removed) -> None:
    """Insert all of a conversation; the caller has a transaction."""
    stored = dict(removed.rows)
    query, turn = (_free_ids(database, table, [row["id"] for row in stored[table]]) for table in ("queries", "turns"))
    stored["queries"] = [{**row, "id": query[row["id"]]} for row in stored["queries"]]
    stored["turns"] = [{**row, "id": turn[row["id"]], "query": query.get(row["query"])} for row in stored["turns"]]
    stored["opened_citations"] = [{**row, "query": query[row["query"]]} for row in stored["opened_citations"]]
    for table in _REMOVED:
        database.insert(table, stored[table])
    for id, scope in removed.scopes.items():
        record_scope(database, query[id], scope)
    only = "conversation IS NULL AND id IN (SELECT value FROM json_each(:notes))"
    database.execute(f"UPDATE notes SET conversation = :id WHERE {only}", id=removed.id, notes=removed.notes)


def _free_ids(database: Database, table: str, ids: Sequence[int]) -> dict[int, int]:
    """The ids, or new ones in the same order if others have got one of them since."""
    sql = f"SELECT id FROM {table} WHERE id IN (SELECT value FROM json_each(:ids))"
    if not ids or not database.query(sql, ids=list(ids)):
        return dict(zip(ids, ids, strict=True))
    next_id = int(database.query(f"SELECT max(id) + 1 FROM {table}")[0][0])
    return dict(zip(sorted(ids), count(next_id), strict=False))


def insert_conversation(database: Database, id: str, title: str, now: str) -> None:
    """Insert a conversation, or update the time of an existing one; the caller has a transaction. now: ISO, UTC."""
    database.execute(
        "INSERT INTO conversations (id, title, begun, updated) VALUES (:id, :title, :now, :now)"
        " ON CONFLICT (id) DO UPDATE SET updated = excluded.updated",
        id=id,
        title=title,
        now=now,
    )


def insert_turn(
    database: Database, conversation: str, place: int, asked: str, reply: str, memory: str, query: int | None
) -> None:
    """Insert a turn; the caller has a transaction. reply, memory: JSON. query: its row in the query log."""
    row = int(database.query("SELECT coalesce(max(id), 0) + 1 FROM turns")[0][0])
    turn = {"id": row, "conversation": conversation, "place": place, "asked": asked, "reply": reply, "memory": memory}
    database.insert("turns", [{**turn, "query": query, "crc": rows.shown_crc(reply, memory)}])


def _set_turn(
    database: Database, conversation: str, place: int, reply: str, memory: str, query: int | None
) -> None:
    """Replace what a turn has, as in `insert_turn`."""
    new = {"reply": reply, "memory": memory, "query": query, "crc": rows.shown_crc(reply, memory)}
    sql = f"UPDATE turns SET reply = :reply, memory = :memory, query = :query, crc = :crc {_THIS_TURN}"
    database.execute(sql, id=conversation, place=place, **new)


def _not_deletable() -> StoreProtected:
    return StoreProtected(
        "Conversations cannot be deleted here: the folder of the index cannot be written.",
        "Make it writable, and delete them again.",
    )


def _summary(id: object, title: object, updated: object, *numbers: object) -> Summary:
    texts = rows.string(id), rows.string(title), rows.string(updated)
    turns, pins, latest, running = map(rows.number, numbers)
    return Summary(*texts, turns, pins > 0, latest, running)


def _now(seconds: float = 0) -> str:
    """The ISO time in UTC, this many seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def _turn_key(id: object, conversation: object) -> tuple[int, str]:
    return rows.number(id), rows.string(conversation)


def _turn_words(id: object, conversation: object, reply: object) -> tuple[tuple[int, str], str, bool]:
    """The key of a turn, the words of its question and answer, and whether it has an answer."""
    texts = rows.mapped(reply, "a turn of a conversation")
    words = " ".join(plain_words(f"{texts.get('message', '')} {texts.get('answer', '')}"))
    return _turn_key(id, conversation), words, "state" not in texts


def _first(values: list[T]) -> T:
    """The first value. Raises NotKnown if there is none."""
    if not values:
        raise not_known()
    return values[0]


def not_known() -> NotKnown:
    """The error for a conversation or a turn that does not exist."""
    return NotKnown(
        "There is no such conversation, or no such turn in it.", "It may have been deleted. Start a new one."
    )


def continued_elsewhere() -> NotKnown:
    """The error for a turn whose conversation was deleted or continued meanwhile."""
    return NotKnown(
        "The conversation was deleted or continued elsewhere while this was answered.", "Ask in a new conversation."
    )


def title_of(question: str) -> str:
    """A question on one line, cut between words if it is too long."""
    line = one_line(question)
    if len(line) <= MAX_TITLE_LENGTH:
        return line
    return f"{whole_words(line, MAX_TITLE_LENGTH)[: MAX_TITLE_LENGTH - 1]}…"


def snapshot_of(answer: Answer) -> str:
    """The answer as ASCII JSON, for `restore`."""
    sentences = [
        {
            **_values(sentence),
            "section": str(sentence.section),
            "citations": list(map(_citation_fields, sentence.citations)),
            "against": list(map(_citation_fields, sentence.against)),
        }
        for sentence in answer.sentences
    ]
    evidence = list(map(_evidence_fields, answer.evidence))
    left_out = list(map(astuple, answer.left_out))
    scope = asdict(answer.scope) if answer.scope else None
    made = {"sentences": sentences, "evidence": evidence, "left_out": left_out, "scope": scope}
    return json.dumps({**_values(answer), **made})


def restore(snapshot: str, library: Library) -> Answer | None:
    """The answer with its texts read from the library; None if a paper is gone or its text has changed."""
    answer = json.loads(snapshot)
    with library.reading():
        papers = {paper.id: paper for paper in library.papers_by_id({saved["paper"] for saved in answer["evidence"]})}
        evidence: list[Evidence] = []
        for saved in answer["evidence"]:
            restored = _restore_evidence(len(evidence) + 1, saved, papers.get(saved["paper"]), library)
            if restored is None:
                return None
            evidence.append(restored)
    try:
        sentences = tuple(_restore_sentence(kept, evidence) for kept in answer["sentences"])
        # What an older Folio did not keep has the default of the dataclass.
        made = {
            "sentences": sentences,
            "evidence": tuple(evidence),
            "left_out": tuple(RejectedSentence(*kept) for kept in answer.get("left_out", ())),
            "missing": tuple(answer.get("missing", ())),
            "scope": Scope(**answer["scope"]) if answer.get("scope") else None,
        }
        return Answer(**{**answer, **made})
    except (ValueError, TypeError, KeyError):  # its pages begin elsewhere now, or an older Folio kept other fields
        return None


def _values(kept: Answer | Sentence) -> dict[str, Any]:
    return {field.name: getattr(kept, field.name) for field in fields(kept)}


def _restore_sentence(kept: Mapping[str, Any], evidence: Sequence[Evidence]) -> Sentence:
    made = {
        "section": Section.parse(kept["section"]),
        "citations": tuple(_restore_citation(citation, evidence) for citation in kept["citations"]),
        "against": tuple(_restore_citation(citation, evidence) for citation in kept["against"]),
        "marks": tuple(map(tuple, kept.get("marks", ()))),
        "short": tuple(kept["short"]) if kept.get("short") else None,
    }
    return Sentence(**{**kept, **made})


def _citation_fields(citation: Citation) -> list[Any]:
    """The fields of a citation without its paper, which its evidence has."""
    return [citation.evidence, citation.start, citation.end, citation.support, citation.differs, citation.marks]


def _restore_citation(saved: Sequence[Any], evidence: Sequence[Evidence]) -> Citation:
    number, start, end, support, differs, marks = (*saved, "", ())[:6]  # an older Folio saved only the first four
    source = evidence[number - 1]
    quote = source.text[start - source.start : end - source.start]
    return Citation(
        source.paper, start, end, quote, number, support, marks=tuple(map(tuple, marks)), differs=differs
    )


def _evidence_fields(evidence: Evidence) -> dict[str, Any]:
    """The fields of evidence without its number, which is its position, and without the paper of its hits."""
    hits = [[hit.chunk.id, hit.chunk.start, hit.chunk.end, hit.score, hit.dense, hit.lexical] for hit in evidence.hits]
    return {
        "paper": evidence.paper.id,
        "start": evidence.start,
        "end": evidence.end,
        "hits": hits,
        "digest": _digest(evidence.text, evidence.hits),
    }


def _restore_evidence(number: int, saved: Mapping[str, Any], paper: Paper | None, library: Library) -> Evidence | None:
    if paper is None:
        return None
    start, end = saved["start"], saved["end"]
    low, high = min(start, *(hit[1] for hit in saved["hits"])), max(end, *(hit[2] for hit in saved["hits"]))
    context = library.text(paper.id, low, high)
    hits = tuple(
        Hit(Chunk(id, paper.id, first, last), paper, context[first - low : last - low], score, dense, lexical)
        for id, first, last, score, dense, lexical in saved["hits"]
    )
    text = context[start - low : end - low]
    return Evidence(number, paper, start, end, text, hits) if _digest(text, hits) == saved["digest"] else None


def _digest(text: str, hits: Sequence[Hit]) -> str:
    """A hash of the text of evidence and its hits: reading a PDF again may give another text."""
    return text_hash("\n".join([text, *(hit.text for hit in hits)]))
