"""The log of questions in Milvus: `QuestionLog` for all servers of a library."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from folio.cluster.history_rows import HistoryRows, Item, Written, feedback_of, feedback_on, new_answer
from folio.errors import UsageError
from folio.store.database import storable
from folio.store.query_log import Feedback, LogCounts, LogEntry, LoggedSource
from folio.store.rows import typed


class MilvusQueryLog:
    """See QuestionLog. The number of a question is the time of its writing in microseconds."""

    def __init__(self, rows: HistoryRows) -> None:
        self._rows = rows
        self._newest: int | None = None  # the last question added here: other processes may add theirs

    def add(self, entry: LogEntry) -> int:
        """See QuestionLog."""
        self._newest = 0  # no question has this number: if logging fails, feedback must not go to an earlier one
        item, *others = logged(entry, new_answer())
        self._rows.write(item, *others)
        self._newest = item[0].number
        return self._newest

    def last(self) -> LogEntry | None:
        """See QuestionLog."""
        found = self.entries(most=1) if self._newest is None else self._read(self._rows.of_number(self._newest))
        return found[0][1] if found else None

    def entries(self, feedback: Feedback | None = None, most: int | None = None) -> list[tuple[int, LogEntry]]:
        """See QuestionLog."""
        return self._read(self._rows.items("entry", "rated"), feedback, most)

    def entry(self, row: int) -> LogEntry | None:
        """See QuestionLog."""
        found = self._read(self._rows.of_number(row))
        return found[0][1] if found else None

    def mark(self, feedback: Feedback) -> LogEntry:
        """See QuestionLog."""
        number = self._newest
        if number is None:
            number = max((item.number for item in self._rows.items("entry")), default=0)
        try:
            self.mark_row(number, feedback)
        except UsageError:
            raise UsageError("The log has no answer to rate.", 'Ask first: python query.py "What is ...?"') from None
        marked = self.entry(number)
        assert marked is not None
        return marked

    def mark_row(self, row: int, feedback: Feedback) -> None:
        """See QuestionLog."""
        entries = [item for item in self._rows.of_number(row) if item.kind == "entry"]
        if not entries:
            raise UsageError("The question is no longer in the log.", "Ask it again.")
        self._rows.write((feedback_on(entries[0], "rated", feedback), {}))

    def counts(self) -> LogCounts:
        """See QuestionLog."""
        items = self._rows.items("entry", "rated")
        rated = feedback_of(items, "rated")
        entries = [item for item in items if item.kind == "entry"]
        given = [rated.get(item.answer) for item in entries]
        with self._rows.checked("the log"):
            totals = [float(item.about["total"]) for item in entries if item.about["total"] is not None]
            sure = [float(item.about["confidence"]) for item in entries if item.about["confidence"] is not None]
            refused = sum(bool(item.about["refused"]) for item in entries)
        medians = [statistics.median(values) if values else None for values in (totals, sure)]
        return LogCounts(len(entries), refused, given.count("good"), given.count("bad"), *medians)

    def clear(self) -> int:
        """See QuestionLog."""
        questions = len(self._rows.items("entry"))
        self._rows.delete_all("entry", "rated")
        self._newest = None
        return questions

    def _read(
        self, items: Sequence[Item], feedback: Feedback | None = None, most: int | None = None
    ) -> list[tuple[int, LogEntry]]:
        """The entries among these items with their numbers, newest first."""
        rated = feedback_of(items, "rated")
        entries = [item for item in items if item.kind == "entry" and feedback in (None, rated.get(item.answer))]
        wanted = entries[::-1][:most]
        contents = self._rows.contents(wanted)
        with self._rows.checked("the log"):
            found = entries_of(items, contents)
        return [(item.number, found[item.answer]) for item in wanted if item.answer in found]


def logged(entry: LogEntry, answer: str, conversation: str = "", place: int = 0) -> list[Written]:
    """The items of an entry of the log, with their contents. conversation, place: of its turn, if it has one."""
    about = {"refused": not entry.sources, "total": entry.timings_ms.get("total"), "confidence": entry.confidence}
    item = Item("entry", answer, conversation, place, about)
    content = json.loads(storable(json.dumps({**asdict(entry), "feedback": ""}, ensure_ascii=False)))
    return [(item, content), *([(feedback_on(item, "rated", entry.feedback), {})] if entry.feedback else [])]


def entries_of(items: Iterable[Item], contents: dict[str, dict[str, Any]]) -> dict[str, LogEntry]:
    """Answer -> the entry among these items. Raises ValueError for contents that are not as they were written."""
    items = list(items)
    rated = feedback_of(items, "rated")
    return {
        item.answer: replace(_entry(contents[item.key]), feedback=rated.get(item.answer, ""))
        for item in items
        if item.kind == "entry" and item.key in contents
    }


def _entry(content: dict[str, Any]) -> LogEntry:
    """Raises ValueError, TypeError and LookupError."""
    what = "a question of the log"
    asked, question, standalone = (
        typed(str, content[name], what) for name in ("asked", "question", "standalone_question")
    )
    sources = [LoggedSource(**source) for source in typed(list, content["sources"], what)]
    confidence, trace = content["confidence"], content["trace"]
    return LogEntry(
        asked,
        question,
        standalone,
        tuple(typed(int, chunk, what) for chunk in typed(list, content["chunks"], what)),
        typed(str, content["answer"], what),
        tuple(sources),
        {str(stage): float(ms) for stage, ms in typed(dict, content["timings_ms"], what).items()},
        typed(str, content["model"], what),
        "",
        None if confidence is None else typed(float, confidence, what),
        None if trace is None else typed(dict, trace, what),
    )
