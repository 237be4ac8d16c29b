"""A deep answer as JSON: what `--deep --json` prints, an answer with the trace of its search."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from folio.deep_types import DeepEvent, DeepTrace, EvidenceScored, PapersFound, SearchAgain
from folio.schema import AnswerJson
from folio.schema_parts import Count, PageRange, Sha256, Strict


class PaperFoundJson(Strict):
    """A paper that a search found."""

    paper: Sha256
    file: str
    title: str


class PapersEventJson(Strict):
    """A search for papers."""

    event: Literal["papers"] = "papers"
    query: str
    papers: list[PaperFoundJson]
    """Best first."""


class EvidenceEventJson(Strict):
    """A passage was scored."""

    event: Literal["evidence"] = "evidence"
    part: str
    """The part of the question that it was read for."""
    paper: Sha256
    file: str
    pages: PageRange
    relevance: Annotated[int, Field(ge=0, le=10)] | None
    """0 is dropped; null if it could not be scored."""
    summary: str
    """A model's, in its own words and not checked; empty without one."""


class SearchAgainEventJson(Strict):
    """Too little was found, and the search goes on."""

    event: Literal["search_again"] = "search_again"
    how: Literal["reformulate", "expand", "offset"]
    """In other words; in the papers that the best ones cite; in the papers that come next."""
    why: str
    queries: list[str]
    """What is searched next; with "expand", the titles of the papers that are read."""


class SearchEndedEventJson(Strict):
    """The search is over."""

    event: Literal["search_ended"] = "search_ended"
    why: str


EventJson = PapersEventJson | EvidenceEventJson | SearchAgainEventJson | SearchEndedEventJson


class TraceJson(Strict):
    """How the evidence of a deep answer was found."""

    assessor: str
    """What scored the passages."""
    rounds: Count
    calls: Count
    """Calls of a model before the answer."""
    seconds: Annotated[float, Field(ge=0)]
    events: list[Annotated[EventJson, Field(discriminator="event")]]
    """In order."""


class DeepAnswerJson(AnswerJson):
    """An answer to `--deep`, with the trace of its search."""

    trace: TraceJson


def deep_answer_json(answer: AnswerJson, trace: DeepTrace) -> DeepAnswerJson:
    """An answer with its trace."""
    shown = TraceJson(
        assessor=trace.assessor,
        rounds=trace.rounds,
        calls=trace.calls,
        seconds=trace.seconds,
        events=[_event(event) for event in trace.events],
    )
    return DeepAnswerJson(**{name: getattr(answer, name) for name in AnswerJson.model_fields}, trace=shown)


def _event(event: DeepEvent) -> EventJson:
    if isinstance(event, PapersFound):
        papers = [PaperFoundJson(paper=paper.id, file=paper.file, title=paper.title) for paper in event.papers]
        return PapersEventJson(query=event.query, papers=papers)
    if isinstance(event, EvidenceScored):
        return EvidenceEventJson(
            part=event.part,
            paper=event.hit.paper.id,
            file=event.hit.paper.file,
            pages=event.hit.pages,
            relevance=event.assessment.relevance,
            summary=event.assessment.summary,
        )
    if isinstance(event, SearchAgain):
        return SearchAgainEventJson(how=event.how, why=event.why, queries=list(event.queries))
    return SearchEndedEventJson(why=event.why)
