"""What a deep search does, a line for each step."""

from __future__ import annotations

from folio.deep_types import MOST_RELEVANCE, Again, DeepEvent, EvidenceScored, PapersFound, SearchAgain
from folio.shown_text import name_line, one_line, short_line

_LONGEST = 120  # characters of a query, a title or a summary
_HOW: dict[Again, str] = {
    "reformulate": "in other words",
    "expand": "in the papers that the best ones cite",
    "offset": "in the next papers",
}


def event_line(event: DeepEvent) -> str:
    """An event as one line, with the text of papers made harmless."""
    if isinstance(event, PapersFound):
        names = ", ".join(name_line(paper.file) for paper in event.papers) or "none"
        return one_line(f"Papers for “{short_line(event.query, _LONGEST)}”: {names}")
    if isinstance(event, EvidenceScored):
        score = event.assessment.relevance
        shown = "not scored" if score is None else f"{score}/{MOST_RELEVANCE}"
        summary = f": {short_line(event.assessment.summary, _LONGEST)}" if event.assessment.summary else ""
        return one_line(f"Evidence {shown}: {name_line(event.hit.paper.file)}, {event.hit.where}{summary}")
    if isinstance(event, SearchAgain):
        queries = ", ".join(f"“{short_line(query, _LONGEST)}”" for query in event.queries)
        return one_line(f"Searching again, {_HOW[event.how]} ({event.why}): {queries}")
    return one_line(f"Search ended: {event.why}.")
