"""Prints the query log in a terminal: a list of questions, and one with its answer; and questions as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from rich.table import Table
from rich.text import Text

from folio.answer_types import REFUSAL
from folio.cli.render_deep import logged_line
from folio.deep_schema import TraceJson, from_log
from folio.schema import Timings
from folio.schema_parts import Count, FromOne, Sha256, Strict
from folio.shown_text import counted, name_line, plain_line, short_line, statement_lines
from folio.store.query_log import LogCounts, LogEntry

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST_QUESTION = 200  # characters in a list
_MARK_STYLES = {"good": "green", "bad": "red"}


class LoggedSourceJson(Strict):
    """A citation of a logged answer."""

    paper: Sha256
    file: str
    page: FromOne
    """Physical page of the quote, from 1."""
    quote: str


class LoggedJson(Strict):
    """A question of the log, as `folio log list --json` and `folio log export` write it."""

    number: FromOne
    """What `folio log show` takes."""
    asked: str
    """ISO time in UTC."""
    question: str
    understood_as: str
    """The question as it was searched: a follow-up has its references filled in."""
    answer: str
    refused: bool
    """Whether the papers had no answer."""
    sources: list[LoggedSourceJson]
    """What the answer cites; empty for a refusal, and for an answer about the library itself."""
    chunks: list[Count]
    """Ids of the passages that were the evidence."""
    model: str
    """What answered."""
    confidence: float | None
    """Of the answerer, 0 to 1; null if it gives none."""
    timings_ms: Timings
    feedback: Literal["", "good", "bad"]
    """What a person thought of the answer; "" if nobody has said."""
    trace: TraceJson | None
    """Of a deep answer: how its evidence was found. null for others, and for one of another version of Folio."""


def entry_json(number: int, entry: LogEntry) -> LoggedJson:
    return LoggedJson(
        number=number,
        asked=entry.asked,
        question=entry.question,
        understood_as=entry.standalone_question,
        answer=entry.answer,
        refused=is_refusal(entry),
        sources=[LoggedSourceJson(paper=s.paper, file=s.file, page=s.page, quote=s.quote) for s in entry.sources],
        chunks=list(entry.chunks),
        model=entry.model,
        confidence=entry.confidence,
        timings_ms=entry.timings_ms,
        feedback=entry.feedback,
        trace=from_log(entry.trace),
    )


def is_refusal(entry: LogEntry) -> bool:
    """Whether the papers had no answer. An answer about the library itself has no sources either."""
    return not entry.sources and entry.answer == REFUSAL


def show_entries(console: Console, entries: Sequence[tuple[int, LogEntry]], counts: LogCounts) -> None:
    """Print one line for each question. counts: of the whole log."""
    table = Table("number", "asked (UTC)", "rated", "answer", "question", box=None, pad_edge=False, header_style="bold")
    table.columns[0].justify = "right"
    table.columns[4].overflow = "fold"
    for number, entry in entries:
        answer = "refused" if is_refusal(entry) else f"{len(entry.sources)} cited"
        mark = Text(entry.feedback, style=_MARK_STYLES.get(entry.feedback, ""))
        table.add_row(
            str(number), _time(entry.asked), mark, answer, Text(short_line(entry.question, _LONGEST_QUESTION))
        )
    if entries:
        console.print(table)
    rated = f"{counts.good:,} rated good, {counts.bad:,} rated bad"
    questions = f"{counted(counts.questions, 'question')} in the log"
    console.print(f"{len(entries):,} of {questions}; {rated}.", style="dim")


def show_entry(console: Console, number: int, entry: LogEntry) -> None:
    """Print a question with its answer, its quotes and what is known of both."""
    console.print(Text(plain_line(entry.question), style="bold"))
    if entry.standalone_question != entry.question:
        console.print(Text(f"Understood as: {plain_line(entry.standalone_question)}", style="dim"))
    for line in statement_lines(entry.answer):
        console.print(Text(f"  {line}"))
    for place, source in enumerate(entry.sources, 1):
        console.print(Text(f"{place}. {name_line(source.file)}, p. {source.page}", style="cyan"))
        console.print(Text(f"   “{plain_line(source.quote)}”"))
    if trace := from_log(entry.trace):
        _show_trace(console, trace)
    facts = [f"number {number}", f"asked {_time(entry.asked)} UTC", plain_line(entry.model)]
    if "total" in entry.timings_ms:
        facts.append(f"{entry.timings_ms['total']:,.0f} ms")
    if entry.confidence is not None:
        facts.append(f"confidence {entry.confidence:.2f}")
    facts.append(f"rated {entry.feedback}" if entry.feedback else "not rated")
    console.print(Text(" · ".join(facts), style="dim"))


def _show_trace(console: Console, trace: TraceJson) -> None:
    scored = f"passages scored by {plain_line(trace.assessor)}"
    rounds, calls = counted(trace.rounds, "round"), counted(trace.calls, "call")
    console.print(Text(f"Searched in {rounds}, {calls} of a model, {trace.seconds:,.1f} s; {scored}:"))
    for event in trace.events:
        console.print(Text(f"  {logged_line(event)}", style="dim"))
    if trace.left_out:
        console.print(Text(f"  Steps that the log leaves out: {trace.left_out}", style="dim"))


def _time(asked: str) -> str:
    """ "2026-01-02 03:04" for "2026-01-02T03:04:05+00:00"."""
    return plain_line(asked)[:16].replace("T", " ")
