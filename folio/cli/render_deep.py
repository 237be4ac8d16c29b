"""What a deep search does, a line for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from folio.deep_types import MOST_RELEVANCE, Again, DeepEvent, EvidenceScored, PapersFound, SearchAgain
from folio.shown_text import name_line, page_words, plain_line, short_line

if TYPE_CHECKING:
    from folio.deep_schema import EventJson

_LONGEST = 120  # characters of a query, a title or a summary
_HOW: dict[Again, str] = {
    "reformulate": "in other words",
    "expand": "in the papers that the best ones cite",
    "offset": "in the next papers",
}


def event_line(event: DeepEvent) -> str:
    """An event as one line, with the text of papers made harmless."""
    if isinstance(event, PapersFound):
        return _papers(event.query, [paper.file for paper in event.papers])
    if isinstance(event, EvidenceScored):
        found = event.assessment
        return _evidence(found.relevance, event.hit.paper.file, event.hit.pages, found.summary)
    if isinstance(event, SearchAgain):
        return _again(event.how, event.why, event.queries)
    return _ended(event.why)


def logged_line(event: EventJson) -> str:
    """The same for an event of the log."""
    if event.event == "papers":
        return _papers(event.query, [paper.file for paper in event.papers])
    if event.event == "evidence":
        return _evidence(event.relevance, event.file, event.pages, event.summary)
    if event.event == "search_again":
        return _again(event.how, event.why, event.queries)
    return _ended(event.why)


def _papers(query: str, files: Sequence[str]) -> str:
    names = ", ".join(name_line(file) for file in files) or "none"
    return plain_line(f"Papers for “{short_line(query, _LONGEST)}”: {names}")


def _evidence(relevance: int | None, file: str, pages: tuple[int, int], summary: str) -> str:
    score = "not scored" if relevance is None else f"{relevance}/{MOST_RELEVANCE}"
    said = f": {short_line(summary, _LONGEST)}" if summary else ""
    return plain_line(f"Evidence {score}: {name_line(file)}, {page_words(pages)}{said}")


def _again(how: Again, why: str, queries: Sequence[str]) -> str:
    shown = ", ".join(f"“{short_line(query, _LONGEST)}”" for query in queries)
    return plain_line(f"Searching again, {_HOW[how]} ({why}): {shown}")


def _ended(why: str) -> str:
    return plain_line(f"Search ended: {why}.")
