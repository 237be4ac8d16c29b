"""JSON forms of the question log."""

from __future__ import annotations

from typing import Literal

from folio.answer_types import is_refusal
from folio.schema.answers import Timings, TraceJson, from_log
from folio.schema.papers import Count, FromOne, Sha256, Strict, With
from folio.store.query_log import LogEntry


class LoggedSourceJson(Strict):
    """A citation of a logged answer."""

    paper: Sha256
    file: str
    page: FromOne
    """Physical page of the quote, from 1."""
    quote: str


class LoggedJson(Strict):
    """A question of the log, as `folio log list --json` and `folio log export` print it."""

    number: FromOne
    """The number for `folio log show`."""
    asked: str
    """ISO time in UTC."""
    question: str
    understood_as: str
    """The question as it was searched: a follow-up has its references filled in."""
    answer: str
    refused: bool
    """Whether the papers had no answer."""
    sources: list[LoggedSourceJson]
    """The citations of the answer; empty for a refusal, and for an answer about the library itself."""
    chunks: list[Count]
    """Ids of the passages that were the evidence."""
    model: str
    """The model that answered."""
    confidence: float | None
    """Of the answerer, 0 to 1; null if it gives none."""
    timings_ms: Timings
    feedback: Literal["", "good", "bad"]
    """A person's rating of the answer; "" without one."""
    trace: TraceJson | None
    """How the evidence of a deep answer was found; null for other answers, and for another version of Folio."""
    scope: str
    """What was asked: "12 papers in Consensus, 2000 to 2015"; empty in entries of older versions."""


def entry_json(number: int, entry: LogEntry) -> LoggedJson:
    """A question of the log as JSON."""
    refused, trace = was_refused(entry), from_log(entry.trace)
    fields = With(entry, number=number, understood_as=entry.standalone_question, refused=refused, trace=trace)
    return LoggedJson.model_validate(fields)


def was_refused(entry: LogEntry) -> bool:
    """Whether the papers had no answer. An answer about the library itself has no sources either."""
    return not entry.sources and is_refusal(entry.answer)
