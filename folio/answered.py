"""A reply as the log of questions keeps it, whoever it was shown to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from folio.store.query_log import LogEntry, LoggedSource

if TYPE_CHECKING:
    from folio.chat import Reply


def log_entry(reply: Reply, asked: str, model: str) -> LogEntry:
    """asked: ISO time in UTC. model: what answered."""
    answer = reply.answer
    return LogEntry(
        asked,
        answer.question,
        answer.standalone_question,
        tuple(hit.chunk.id for evidence in answer.evidence for hit in evidence.hits),
        answer.text,
        tuple(LoggedSource(c.paper.id, c.paper.file, c.page, c.quote) for c in answer.citations),
        dict(reply.timings_ms),
        model,
    )
