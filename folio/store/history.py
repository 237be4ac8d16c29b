"""What a store keeps of questions, wherever it is: the log, and the conversations of the web app.

`QueryLog` and `Conversations` keep them in a SQLite file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from folio.answer_types import Answer
    from folio.store.conversations import Summary, Turn
    from folio.store.paper_store import PaperStore
    from folio.store.query_log import Feedback, LogCounts, LogEntry


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn of a conversation as it is kept."""

    conversation: str
    title: str  # of the conversation
    place: int  # from 1
    asked: str  # ISO time in UTC
    reply: dict[str, Any]  # as it was shown, with its feedback
    memory: str  # JSON for follow-ups (answer_snapshot.py)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that is kept: in the log, as a turn of a conversation, or both."""

    entry: LogEntry | None
    turn: KeptTurn | None


class QuestionLog(Protocol):
    """The log of questions. Raises StoreError and its subclasses."""

    def add(self, entry: LogEntry) -> int:
        """Log a question; returns its number, greater than those before."""
        ...

    def last(self) -> LogEntry | None:
        """The last question added here, or the last in the log if none has been."""
        ...

    def entries(self, feedback: Feedback | None = None, most: int | None = None) -> list[tuple[int, LogEntry]]:
        """The questions with their numbers, newest first: `most` of them, those with this feedback if it is given."""
        ...

    def entry(self, row: int) -> LogEntry | None:
        """The question with this number; None if there is none."""
        ...

    def mark(self, feedback: Feedback) -> LogEntry:
        """Record feedback on the last answer. Raises UsageError if the log has no question."""
        ...

    def mark_row(self, row: int, feedback: Feedback) -> None:
        """Record feedback on the answer with this number. Raises UsageError if there is none."""
        ...

    def counts(self) -> LogCounts: ...

    def clear(self) -> int:
        """Delete all questions; returns how many there were."""
        ...


class ConversationStore(Protocol):
    """Conversations. Thread-safe. Raises StoreError and its subclasses.

    A deleted conversation stays deleted: no server adds to it, or finds what it was adding.
    """

    @property
    def are_stored(self) -> bool:
        """Whether conversations outlive the program."""
        ...

    def close(self) -> None: ...

    def begin(self) -> str:
        """The id of a new conversation. Nothing is written until its first turn is added."""
        ...

    def summaries(self) -> tuple[Summary, ...]:
        """Every conversation, the one with the latest turn first."""
        ...

    def require(self, conversation: str) -> Summary:
        """Raises NotKnown."""
        ...

    def turns(self, conversation: str, library: PaperStore | None = None) -> tuple[Turn, ...]:
        """Its turns in order, with their answers if a library is given to restore them from. Raises NotKnown."""
        ...

    def query(self, conversation: str, place: int) -> int | None:
        """A turn's number in the log, None if it is not there. Raises NotKnown if there is no such turn."""
        ...

    def add(self, conversation: str, reply: Mapping[str, Any], answer: Answer, entry: LogEntry | None) -> int:
        """Add a turn, and `entry` to the log, both or neither; returns its place.

        Raises NotKnown if the reply says that it is another `turn`: while it was being written, the conversation was
        deleted (and stays so) or continued elsewhere.
        """
        ...

    def mark(self, conversation: str, place: int, feedback: Feedback) -> None:
        """Record feedback in a turn's reply. Raises NotKnown."""
        ...

    def remove(self, conversation: str) -> None:
        """Delete a conversation and its questions in the log. Raises NotKnown."""
        ...

    def clear(self) -> int:
        """Delete all conversations; returns how many there were."""
        ...
