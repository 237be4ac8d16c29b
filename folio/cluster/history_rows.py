"""Rows of the log and of conversations in Milvus: the collection `history`, which outlives every rebuild.

An item is an entry of the log, a turn of a conversation, feedback on one of them, or the deletion of a conversation. A
long one has several rows. The entry and the turn of an answer are written in one request, and one request is seen as a
whole, so that a kill leaves nothing torn. Deleting a conversation first writes that it is deleted, which hides all of
it at once, whatever another server is adding to it; then its rows are deleted.

Everything is read with the consistency level Strong: what one server wrote, the next request must see on another.
Milvus cannot sort, so lists read the first row of every item, without its content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from secrets import token_hex
from threading import Lock
from time import time, time_ns
from typing import Any, Literal, get_args

from folio.cluster.as_written import as_written
from folio.cluster.collections import HISTORY, Names
from folio.cluster.milvus_client import BATCH, Milvus, Row
from folio.cluster.milvus_errors import MissingCollection
from folio.cluster.milvus_filters import one_of
from folio.cluster.paper_record import joined, parts
from folio.errors import StoreDamaged, StoreRefused
from folio.store.database import storable
from folio.store.digests import text_hash
from folio.store.query_log import Feedback
from folio.store.rows import mapped

ItemKind = Literal["entry", "turn", "rated", "marked", "deleted"]
# What of a conversation is deleted: all, or its turns and not its questions in the log
Deleted = Literal["all", "turns"]
_HEAD = ("key", "kind", "number", "conversation", "place", "parts", "about")
_FORGET = "Run the same command again; `python query.py --forget` deletes the log and all conversations."
# Seconds that a deletion is remembered: no server answers for longer
_REMEMBERED_S = 86_400
# Items whose contents one request reads
_AT_ONCE = 40
_ANSWER = re.compile(r"[0-9]{1,18}\.[0-9a-f]{8}")
_CONVERSATION = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Item:
    """What lists and counts need of an item; `about` has more, by kind."""

    kind: ItemKind
    answer: str  # "NUMBER.TOKEN": an entry, a turn and the feedback on them share it; "" for a deletion
    conversation: str  # "" for none
    place: int  # of a turn, as it was meant when it was written
    about: dict[str, Any]
    parts: int = 1  # rows

    @property
    def key(self) -> str:
        return f"{self.kind}.{self.answer or self.conversation}"

    @property
    def number(self) -> int:
        """Of the answer: the time in microseconds since 1970, which JavaScript can hold. 0 for a deletion."""
        return int(self.answer.partition(".")[0] or 0)


# An item and its content
Written = tuple[Item, dict[str, Any]]


class _Answers:
    """Names answers: with the time, and a token for two that are given in the same microsecond."""

    def __init__(self) -> None:
        self._last, self._lock = 0, Lock()

    def new(self) -> str:
        """The name of a new answer, with a greater number than all before it in this process."""
        with self._lock:
            self._last = max(self._last + 1, time_ns() // 1000)
            return f"{self._last}.{token_hex(4)}"


new_answer = _Answers().new


class HistoryRows:
    """Items in and out of the collection. Thread-safe."""

    def __init__(self, connect: Callable[[], Milvus | None], prefix: str) -> None:
        """connect: None while there is no file of Milvus Lite, which nothing but an ingest creates."""
        self._connect = connect
        self._name = Names(prefix).history

    # Reading

    def items(self, *kinds: ItemKind) -> list[Item]:
        """The items of these kinds, in the order of their numbers, without what is deleted."""
        wanted = ", ".join(json.dumps(kind) for kind in (*kinds, "deleted"))
        return self._visible(f"part == 0 and kind in [{wanted}]")[0]

    def of_conversation(self, conversation: str) -> tuple[list[Item], bool]:
        """All items of a conversation, in the order of their places and numbers, and whether it was deleted."""
        if not _CONVERSATION.fullmatch(conversation):
            return [], False
        found, deleted = self._visible(f"part == 0 and conversation == {json.dumps(conversation)}")
        return sorted(found, key=lambda item: (item.place, item.number, item.key)), bool(deleted)

    def of_number(self, number: int) -> list[Item]:
        """The items of an answer."""
        return self._visible(f'part == 0 and (number == {number} or kind == "deleted")')[0]

    def _visible(self, where: str) -> tuple[list[Item], dict[str, str]]:
        """Items in the order of their numbers, without what is deleted; and what of which conversations is."""
        with self.checked("the log"):
            found = [_item(row) for row in self._rows(where, _HEAD)]
        deleted = {item.conversation: str(item.about["what"]) for item in found if item.kind == "deleted"}
        visible = [item for item in found if item.kind != "deleted" and not _is_hidden(item, deleted)]
        return sorted(visible, key=lambda item: (item.number, item.key)), deleted

    def contents(self, items: Sequence[Item]) -> dict[str, dict[str, Any]]:
        """Key -> the content of each item that is still there. Raises StoreDamaged."""
        found: dict[str, dict[str, Any]] = {}
        for at in range(0, len(items), _AT_ONCE):
            some = items[at : at + _AT_ONCE]
            keys = [f"{item.key}.{part}" for item in some for part in range(item.parts)]
            texts: dict[str, list[tuple[int, str]]] = {}
            for row in self._rows_of(keys, ("key", "part", "value")):
                texts.setdefault(row["key"].rpartition(".")[0], []).append((int(row["part"]), str(row["value"])))
            with self.checked("the log"):
                for item in some:
                    if item.key in texts:
                        found[item.key] = _content(item, joined(texts[item.key]))
        return found

    def _rows(self, where: str, fields: Sequence[str]) -> list[Row]:
        milvus = self._connect()
        try:
            return [] if milvus is None else list(milvus.rows(self._name, where, fields, strong=True))
        except MissingCollection:  # nothing was ever kept
            return []

    def _rows_of(self, keys: Iterable[str], fields: Sequence[str]) -> list[Row]:
        milvus = self._connect()
        return [] if milvus is None else list(milvus.rows_of(self._name, "key", keys, fields, strong=True))

    # Writing

    def write(self, *items: Written) -> None:
        """Write items with their contents, in one request. Raises StoreRefused for contents that are too large."""
        rows = [row for item, content in items for row in _made(item, content)]
        if len(rows) > BATCH:
            raise StoreRefused(
                "Milvus cannot hold an answer of more than some 8 million characters.", "Ask for less in one question."
            )
        for name in {item.conversation for item, _ in items} - {""}:
            if not _CONVERSATION.fullmatch(name):
                raise StoreRefused(f"Milvus cannot hold a conversation named {name[:80]!r}.", "Begin a new one.")
        milvus = self._connect()
        assert milvus is not None  # questions are asked of a library
        try:
            milvus.write(self._name, rows)
        except MissingCollection:
            milvus.create_missing(self._name, HISTORY)
            milvus.write(self._name, rows)

    def delete_all(self, *kinds: ItemKind) -> None:
        """Delete everything of these kinds."""
        self._delete(f"kind in [{', '.join(json.dumps(kind) for kind in kinds)}]")

    def delete_conversations(self, conversations: Iterable[str], what: Deleted) -> None:
        """Delete conversations: all of them, or their turns and not their questions in the log."""
        gone = sorted(conversations)
        for at in range(0, len(gone), BATCH):
            self.write(*((_deletion(each, what), {}) for each in gone[at : at + BATCH]))
        self._sweep()

    def _sweep(self) -> None:
        """Delete the rows of deleted conversations, and after a day also what says that they are deleted."""
        with self.checked("the log"):
            deletions = [_item(row) for row in self._rows('kind == "deleted"', _HEAD)]
            old = [each for each in deletions if time() - float(each.about["when"]) > _REMEMBERED_S]
        for what, kinds in (("all", 'kind != "deleted"'), ("turns", 'kind in ["turn", "marked"]')):
            self._delete_of([each for each in deletions if each.about["what"] == what], kinds)
        self._delete_of(old, 'kind == "deleted"')

    def _delete_of(self, deletions: Sequence[Item], where: str) -> None:
        """Delete what a filter finds among the rows of these conversations."""
        for at in range(0, len(deletions), BATCH):
            some = [each.conversation for each in deletions[at : at + BATCH]]
            self._delete(f"{one_of('conversation', some)} and {where}")

    def _delete(self, where: str) -> None:
        """By their keys: Milvus may apply a filter to an older state, without what another server has just written."""
        keys, milvus = [str(row["key"]) for row in self._rows(where, ["key"])], self._connect()
        if milvus is not None and keys:
            milvus.delete_of(self._name, "key", keys)

    @staticmethod
    def checked(what: str) -> AbstractContextManager[None]:
        """See as_written."""
        return as_written(lambda said: StoreDamaged(f"In Milvus, {what} cannot be read ({said[:100]}).", _FORGET))


def _deletion(conversation: str, what: Deleted) -> Item:
    return Item("deleted", "", conversation, 0, {"what": what, "when": time()})


def _is_hidden(item: Item, deleted: dict[str, str]) -> bool:
    what = deleted.get(item.conversation)
    return what == "all" or (what == "turns" and item.kind in ("turn", "marked"))


def feedback_on(item: Item, kind: Literal["rated", "marked"], feedback: str) -> Item:
    """Feedback on an entry or a turn, in place of what was given before."""
    return Item(kind, item.answer, item.conversation, item.place, {"feedback": feedback})


def feedback_of(items: Iterable[Item], kind: Literal["rated", "marked"]) -> dict[str, Any]:
    """Answer -> the feedback on it."""
    return {item.answer: item.about["feedback"] for item in items if item.kind == kind}


def _made(item: Item, content: dict[str, Any]) -> Iterator[Row]:
    text = json.dumps(content, ensure_ascii=False)
    if text != storable(text):  # it has lone surrogates
        text = json.dumps(content)
    texts = parts(text)
    about = {**item.about, "digest": text_hash(text).hex()}
    for part, value in enumerate(texts):
        yield {
            "key": f"{item.key}.{part}",
            "kind": item.kind,
            "number": item.number,
            "conversation": item.conversation,
            "place": item.place,
            "part": part,
            "parts": len(texts),
            "about": "" if part else json.dumps(about),
            "value": value,
        }


def _item(row: Row) -> Item:
    """From the first row of an item. Raises ValueError."""
    about = mapped(row["about"], "it")
    if row["kind"] not in get_args(ItemKind) or (row["kind"] == "deleted" and about["what"] not in get_args(Deleted)):
        raise ValueError("it is of no known kind")
    if row["kind"] in ("rated", "marked") and about["feedback"] not in get_args(Feedback):
        raise ValueError("it is no feedback")
    if row["conversation"] and not _CONVERSATION.fullmatch(row["conversation"]):
        raise ValueError("it is of no conversation")
    kind, _, answer = row["key"].removesuffix(".0").partition(".")
    answer = "" if kind == "deleted" else answer
    if kind != row["kind"] or (answer and not _ANSWER.fullmatch(answer)):
        raise ValueError("its key is none")
    return Item(row["kind"], answer, row["conversation"], int(row["place"]), about, int(row["parts"]))


def _content(item: Item, text: str) -> dict[str, Any]:
    if text_hash(text).hex() != item.about["digest"]:
        raise ValueError("it is not what was written")
    return mapped(text, "it")
