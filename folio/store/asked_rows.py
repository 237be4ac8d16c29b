"""All questions and conversations of a library on this computer, to be copied to another store, and from there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from folio.store import rows
from folio.store.conversations import insert_conversation, insert_turn
from folio.store.database import Database, storable
from folio.store.history import Asked, KeptTurn
from folio.store.query_log import LogEntry, insert, logged

# Rows of the log and of turns that belong together, in the order in which they were asked
_PAIRS = """
    SELECT query, turn FROM (
        SELECT q.id AS query, t.id AS turn, coalesce(t.asked, q.asked) AS asked
        FROM queries q LEFT JOIN turns t ON t.query = q.id
        UNION ALL SELECT NULL, t.id, t.asked FROM turns t WHERE t.query IS NULL
    ) ORDER BY asked, coalesce(turn, 0), query"""
_TITLED = f"""
    SELECT c.id, c.title, c.begun, c.digest, {", ".join(f"t.{name}" for name in rows.TURN_COLUMNS.split(", "))}
    FROM turns t JOIN conversations c ON c.id = t.conversation WHERE t.id = :turn"""


def read_all(database: Database) -> Iterator[Asked]:
    """Every question that is kept, in the order in which they were asked. Raises StoreDamaged."""
    for query, turn in database.query(_PAIRS):
        entries = database.read(logged, f"SELECT {rows.QUERY_COLUMNS} FROM queries WHERE id = :query", query=query)
        turns = database.read(_turn, _TITLED, turn=turn)
        if entries or turns:
            yield Asked(next(iter(entries), None), next(iter(turns), None))


def keep_all(database: Database, asked: Iterable[Asked]) -> int:
    """Add questions, in one transaction; returns how many. Those that are there already are left out."""
    kept = 0
    with database.transaction():
        for each in asked:
            query = _row_of(database, each.entry) if each.entry else None
            is_new = each.entry is not None and query is None
            if each.entry is not None and query is None:
                query = insert(database, each.entry)
            if each.turn is not None and not _is_there(database, each.turn):
                _insert(database, each.turn, query)
                is_new = True
            kept += is_new
    return kept


def _turn(id: str, title: str, begun: str, digest: object, *row: object) -> KeptTurn:
    rows.conversation(id, title, begun, digest)
    conversation, place, asked, reply, memory, _ = rows.turn(*row)
    return KeptTurn(conversation, title, place, asked, reply, memory)


def _row_of(database: Database, entry: LogEntry) -> int | None:
    sql = "SELECT id FROM queries WHERE asked = :asked AND question = :question AND answer = :answer"
    found = database.query(sql, asked=entry.asked, question=storable(entry.question), answer=storable(entry.answer))
    return found[0][0] if found else None


def _is_there(database: Database, turn: KeptTurn) -> bool:
    sql = "SELECT 1 FROM turns WHERE conversation = :id AND place = :place"
    return bool(database.query(sql, id=turn.conversation, place=turn.place))


def _insert(database: Database, turn: KeptTurn, query: int | None) -> None:
    insert_conversation(database, turn.conversation, storable(turn.title), turn.asked)
    reply = json.dumps(turn.reply)
    insert_turn(database, turn.conversation, turn.place, turn.asked, reply, turn.memory, query)
