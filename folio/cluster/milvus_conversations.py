"""Conversations in Milvus: `ConversationStore` for all servers of a library."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Any

from folio.answer_types import Answer
from folio.cluster.history_rows import HistoryRows, Item, Written, feedback_of, feedback_on, new_answer
from folio.cluster.milvus_log import logged
from folio.store.answer_snapshot import restore, snapshot_of
from folio.store.conversations import ID_BYTES, Summary, Turn, continued_elsewhere, not_known, title_of
from folio.store.database import storable
from folio.store.history import KeptTurn
from folio.store.paper_store import PaperStore
from folio.store.query_log import Feedback, LogEntry
from folio.store.rows import typed


class MilvusConversations:
    """See ConversationStore.

    Milvus has no transactions. A turn is refused if its place is taken when it is added; of two that are added in the
    same moment by two servers, both are kept, in the order of the servers' clocks.
    """

    are_stored = True

    def __init__(self, rows: HistoryRows) -> None:
        self._rows = rows

    def close(self) -> None:
        """The connection is shared."""

    def begin(self) -> str:
        """See ConversationStore."""
        return token_urlsafe(ID_BYTES)

    # Reading

    def summaries(self) -> tuple[Summary, ...]:
        """See ConversationStore."""
        conversations: dict[str, list[Item]] = {}
        for item in self._rows.items("turn"):
            conversations.setdefault(item.conversation, []).append(item)
        latest_first = sorted(conversations.values(), key=lambda turns: -turns[-1].number)
        return tuple(self._summary(turns) for turns in latest_first)

    def require(self, conversation: str) -> Summary:
        """See ConversationStore."""
        return self._summary(_turns(self._require(conversation)))

    def _summary(self, turns: list[Item]) -> Summary:
        """Of one or more turns."""
        with self._rows.checked("a conversation"):
            first = min(turns, key=lambda item: (item.place, item.number))
            last = max(turns, key=lambda item: item.number)
            title, updated = (typed(str, item.about[name], "it") for item, name in ((first, "title"), (last, "asked")))
        return Summary(first.conversation, title, updated, len(turns))

    def turns(self, conversation: str, library: PaperStore | None = None) -> tuple[Turn, ...]:
        """See ConversationStore."""
        items = self._require(conversation)
        turns = _turns(items)
        contents, marked = self._rows.contents(turns), feedback_of(items, "marked")
        logged_ones = {item.answer for item in items if item.kind == "entry"}
        with self._rows.checked("a turn of a conversation"):
            there = [item for item in turns if item.key in contents]
            made = [
                (kept_turn(item, contents[item.key], "", place, marked.get(item.answer)), item)
                for place, item in enumerate(there, 1)
            ]
        return tuple(
            Turn(
                turn.place,
                turn.asked,
                turn.reply,
                item.number if item.answer in logged_ones else None,
                None if library is None else restore(turn.memory, library),
            )
            for turn, item in made
        )

    def query(self, conversation: str, place: int) -> int | None:
        """See ConversationStore."""
        items = self._require(conversation)
        turn = _at(items, place)
        return next((item.number for item in items if item.kind == "entry" and item.answer == turn.answer), None)

    def _require(self, conversation: str) -> list[Item]:
        items, _ = self._rows.of_conversation(conversation)
        if not _turns(items):
            raise not_known()
        return items

    # Writing

    def add(self, conversation: str, reply: Mapping[str, Any], answer: Answer, entry: LogEntry | None) -> int:
        """See ConversationStore. One request writes the turn and the entry."""
        answer_id = new_answer()
        items, is_deleted = self._rows.of_conversation(conversation)
        place = len(_turns(items)) + 1
        if is_deleted or reply.get("turn", place) != place:
            raise continued_elsewhere()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        title = storable(title_of(answer.question))
        turn = KeptTurn(conversation, title, place, now, dict(reply), snapshot_of(answer))
        log_entry = logged(entry, answer_id, conversation, place) if entry else []
        self._rows.write(written(turn, answer_id), *log_entry)
        return place

    def mark(self, conversation: str, place: int, feedback: Feedback) -> None:
        """See ConversationStore."""
        turn = _at(self._require(conversation), place)
        self._rows.write((feedback_on(turn, "marked", feedback), {}))

    def remove(self, conversation: str) -> None:
        """See ConversationStore."""
        self._require(conversation)
        self._rows.delete_conversations([conversation], "all")

    def clear(self) -> int:
        """See ConversationStore."""
        conversations = {item.conversation for item in self._rows.items("turn")}
        self._rows.delete_conversations(conversations, "turns")
        return len(conversations)


def written(turn: KeptTurn, answer: str) -> Written:
    """The item of a turn, with its content."""
    about = {"title": turn.title, "asked": turn.asked}
    content = {"asked": turn.asked, "reply": turn.reply, "memory": turn.memory}
    return Item("turn", answer, turn.conversation, turn.place, about), content


def kept_turn(item: Item, content: dict[str, Any], title: str, place: int, feedback: str | None) -> KeptTurn:
    """A turn from its item. place: among those of its conversation. Raises ValueError and LookupError."""
    reply = typed(dict, content["reply"], "it")
    reply = {**reply, "turn": place} if "turn" in reply else reply
    reply = {**reply, "feedback": feedback} if feedback else reply
    asked, memory = (typed(str, content[name], "it") for name in ("asked", "memory"))
    return KeptTurn(item.conversation, title, place, asked, reply, memory)


def _turns(items: list[Item]) -> list[Item]:
    return [item for item in items if item.kind == "turn"]


def _at(items: list[Item], place: int) -> Item:
    """The turn at a place. Raises NotKnown."""
    turns = _turns(items)
    if not 1 <= place <= len(turns):
        raise not_known()
    return turns[place - 1]
