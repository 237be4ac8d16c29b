"""A deep answer as JSON: what `--deep --json` prints, an answer with the trace of its search."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from folio.deep_types import DeepEvent, DeepTrace, EvidenceScored, PapersFound, SearchAgain, SearchEnded
from folio.evidence_profile import EvidenceProfile
from folio.profile_schema import EvidenceProfileJson
from folio.schema import AnswerJson
from folio.schema_parts import Count, PageRange, Sha256, Strict, With, at

# Characters of events that the log keeps of one trace. One of three rounds has some 60,000.
MOST_LOGGED = 200_000


class PaperFoundJson(Strict):
    """A paper that a search found."""

    paper: Annotated[Sha256, at("id")]
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
    paper: Annotated[Sha256, at("hit", "paper", "id")]
    file: Annotated[str, at("hit", "paper", "file")]
    title: Annotated[str, at("hit", "paper", "title")]
    pages: Annotated[PageRange, at("hit", "pages")]
    text: Annotated[str, at("hit", "text")]
    """The passage."""
    page_breaks: Annotated[list[Count], at("hit", "page_breaks")] = Field(default_factory=list)
    """Where in its text each page after the first begins, in Unicode code points."""
    relevance: Annotated[Annotated[int, Field(ge=0, le=10)] | None, at("assessment", "relevance")]
    """0 is dropped; null if it could not be scored."""
    summary: Annotated[str, at("assessment", "summary")]
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
_EVENTS: dict[type[DeepEvent], type[EventJson]] = {
    PapersFound: PapersEventJson,
    EvidenceScored: EvidenceEventJson,
    SearchAgain: SearchAgainEventJson,
    SearchEnded: SearchEndedEventJson,
}


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
    left_out: Count = 0
    """Events that are not listed: the log leaves some out of a very long trace."""


class DeepAnswerJson(AnswerJson):
    """An answer to `--deep`, with the trace of its search."""

    trace: TraceJson
    evidence_profile: EvidenceProfileJson | None = None
    """Null for a refusal and a remark."""


def deep_answer_json(answer: AnswerJson, trace: DeepTrace, profile: EvidenceProfile | None = None) -> DeepAnswerJson:
    """An answer with its trace and its profile."""
    return DeepAnswerJson.model_validate({**dict(answer), "trace": trace_json(trace), "evidence_profile": profile})


def trace_json(trace: DeepTrace) -> TraceJson:
    """How the evidence of an answer was found."""
    return TraceJson.model_validate(With(trace, events=[event_json(event) for event in trace.events]))


def logged_trace(trace: DeepTrace, most: int = MOST_LOGGED) -> dict[str, Any]:
    """The trace for the query log: why the search ended, and the first events that fit, in so many characters."""
    whole = trace_json(trace)
    sizes = [len(event.model_dump_json()) for event in whole.events]
    kept, room = set[int](), most
    for place in (len(sizes) - 1, *range(len(sizes) - 1)) if sizes else ():
        if sizes[place] <= room:
            kept.add(place)
            room -= sizes[place]
    events = [event for place, event in enumerate(whole.events) if place in kept]
    left_out = len(whole.events) - len(events)
    return whole.model_copy(update={"events": events, "left_out": left_out}).model_dump(mode="json")


def from_log(written: dict[str, Any] | None) -> TraceJson | None:
    """The trace that `logged_trace` gave; None without one, or for one of another version of Folio."""
    try:
        return None if written is None else TraceJson.model_validate(written)
    except ValidationError:
        return None


def event_json(event: DeepEvent) -> EventJson:
    """One event of a deep search."""
    return _EVENTS[type(event)].model_validate(event)
