"""All questions and conversations of a library in Milvus, to be copied to another store, and from there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from folio.cluster.history_rows import HistoryRows, Item, feedback_of
from folio.cluster.milvus_conversations import kept_turn, written
from folio.cluster.milvus_log import entries_of, logged
from folio.errors import StoreDamaged, StoreRefused
from folio.store.digests import text_hash
from folio.store.history import Asked, KeptTurn

# Answers that are read together
_AT_ONCE = 40


def read_all(rows: HistoryRows) -> Iterator[Asked]:
    """Every question that is kept, in the order in which they were asked. Raises StoreDamaged."""
    items = rows.items("entry", "rated", "turn", "marked")
    answers: dict[str, list[Item]] = {}
    conversations: dict[str, list[Item]] = {}
    for item in items:
        answers.setdefault(item.answer, []).append(item)
        if item.kind == "turn":
            conversations.setdefault(item.conversation, []).append(item)
    places: dict[str, tuple[str, int]] = {}  # answer -> title of its conversation, its place there
    for turns in conversations.values():
        ordered = sorted(turns, key=lambda item: (item.place, item.number, item.key))
        places |= {item.answer: (str(ordered[0].about["title"]), place) for place, item in enumerate(ordered, 1)}
    names = list(answers)
    for at in range(0, len(names), _AT_ONCE):
        yield from _read(rows, [item for name in names[at : at + _AT_ONCE] for item in answers[name]], places)


def _read(rows: HistoryRows, items: list[Item], places: dict[str, tuple[str, int]]) -> Iterator[Asked]:
    contents = rows.contents([item for item in items if item.kind in ("entry", "turn")])
    marked = feedback_of(items, "marked")
    with rows.checked("the log"):
        entries = entries_of(items, contents)
        turns: dict[str, KeptTurn] = {}
        for item in items:
            if item.kind == "turn" and item.key in contents:
                title, place = places[item.answer]
                turns[item.answer] = kept_turn(item, contents[item.key], title, place, marked.get(item.answer))
    for answer in dict.fromkeys(item.answer for item in items):
        if answer in entries or answer in turns:
            yield Asked(entries.get(answer), turns.get(answer))


def faults_of(rows: HistoryRows) -> list[str]:
    """What is wrong with the log and the conversations, at most one sentence: reads them all."""
    try:
        for _ in read_all(rows):
            pass
    except StoreDamaged as error:
        return [error.happened]
    return []


def keep_all(rows: HistoryRows, asked: Iterable[Asked]) -> int:
    """Add questions; returns how many. Those that an earlier copy has added already are left out.

    Their numbers are the times when they were asked, so that they stand among the others in order. Each is whole or not
    there at all. Raises StoreRefused for one without a time.
    """
    there = {item.key for item in rows.items("entry", "turn")}
    seconds: dict[int, int] = {}
    kept = 0
    for each in asked:
        answer = _name(each, seconds)
        turn = [written(each.turn, answer)] if each.turn else []
        conversation, place = (each.turn.conversation, each.turn.place) if each.turn else ("", 0)
        entry = logged(each.entry, answer, conversation, place) if each.entry else []
        if not {item.key for item, _ in (*turn, *entry[:1])} <= there:
            rows.write(*turn, *entry)
            kept += 1
    return kept


def _name(asked: Asked, seconds: dict[int, int]) -> str:
    """The name of an answer: the same one in every copy, if the questions come in the same order."""
    when = asked.turn.asked if asked.turn else asked.entry.asked if asked.entry else ""
    try:
        second = int(datetime.fromisoformat(when).timestamp())
    except (ValueError, OverflowError, OSError) as error:
        happened = f"Milvus cannot hold a question that was asked at {when[:40]!r}."
        raise StoreRefused(happened, "Leave it out: copy the other questions.") from error
    seconds[second] = seconds.get(second, -1) + 1
    content = [asked.turn.reply if asked.turn else None, asked.entry.question if asked.entry else None]
    token = text_hash(json.dumps(content)).hex()[:8]
    return f"{second * 10**6 + seconds[second]}.{token}"
