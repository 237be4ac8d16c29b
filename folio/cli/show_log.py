"""Prints the question log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from folio.schema.answers import TraceJson, event_line, from_log
from folio.schema.log import was_refused
from folio.shown_text import counted, name_line, plain_line, short_line, statement_lines
from folio.store.query_log import LogCounts, LogEntry

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST_QUESTION = 200  # characters in a list
_MARK_STYLES = {"good": "green", "bad": "red"}


def show_entries(console: Console, entries: Sequence[tuple[int, LogEntry]], counts: LogCounts) -> None:
    """Print one line for each question. counts: of the whole log."""
    table = Table("number", "asked (UTC)", "rated", "answer", "question", box=None, pad_edge=False, header_style="bold")
    table.columns[0].justify = "right"
    table.columns[4].overflow = "fold"
    for number, entry in entries:
        answer = "refused" if was_refused(entry) else f"{len(entry.sources)} cited"
        mark = Text(entry.feedback, style=_MARK_STYLES.get(entry.feedback, ""))
        question = Text(short_line(entry.question, _LONGEST_QUESTION))
        table.add_row(str(number), _time(entry.asked), mark, answer, question)
    if entries:
        console.print(table)
    rated = f"{counts.good:,} rated good, {counts.bad:,} rated bad"
    questions = f"{counted(counts.questions, 'question')} in the log"
    console.print(f"{len(entries):,} of {questions}; {rated}.", style="dim")


def show_entry(console: Console, number: int, entry: LogEntry) -> None:
    """Print a question with its answer, quotes, model, time and rating."""
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
    if entry.scope:
        facts.insert(1, f"of {plain_line(entry.scope[0].lower() + entry.scope[1:])}")
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
        console.print(Text(f"  {event_line(event)}", style="dim"))
    if trace.left_out:
        console.print(Text(f"  Steps that the log leaves out: {trace.left_out}", style="dim"))


def _time(asked: str) -> str:
    """ "2026-01-02 03:04" for "2026-01-02T03:04:05+00:00"."""
    return plain_line(asked)[:16].replace("T", " ")
