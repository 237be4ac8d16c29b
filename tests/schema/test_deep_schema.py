"""The trace of a deep search for the query log: whole if it is short, else what fits."""

from __future__ import annotations

from folio.deep.types import Assessment, DeepTrace, EvidenceScored, PapersFound, SearchAgain, SearchEnded
from folio.schema.answers import MOST_LOGGED, from_log, logged_trace, trace_json
from tests.helpers.answers import HITS

HIT = HITS[0]
EVENTS = (
    PapersFound("ice", (HIT.paper,)),
    EvidenceScored("ice", HIT, Assessment(7, "It is thick.")),
    EvidenceScored("ice", HIT, Assessment(None)),
    SearchAgain("offset", "1 relevant passage", ("ice",)),
    SearchEnded("3 relevant passages"),
)
TRACE = DeepTrace(EVENTS, "built in", 2, 0, 1.5)


def test_a_trace_comes_back_from_the_log_as_it_was() -> None:
    assert from_log(logged_trace(TRACE)) == trace_json(TRACE)


def test_the_log_shortens_a_long_trace() -> None:
    events = EVENTS[:3] * 2000 + EVENTS[3:]
    kept = from_log(logged_trace(DeepTrace(events, "built in", 2, 0, 1.5)))
    assert kept is not None
    assert kept.events[-1] == trace_json(TRACE).events[-1]
    assert kept.events[:3] == trace_json(TRACE).events[:3]
    assert len(kept.events) + kept.left_out == len(events)
    assert 0.9 * MOST_LOGGED < len(kept.model_dump_json()) < 1.1 * MOST_LOGGED


def test_one_event_that_is_too_long_costs_itself() -> None:
    events = (PapersFound("ice" * MOST_LOGGED, ()), *EVENTS)
    kept = from_log(logged_trace(DeepTrace(events, "built in", 2, 0, 1.5)))
    assert kept is not None
    assert (kept.left_out, kept.events) == (1, trace_json(TRACE).events)
    assert from_log(logged_trace(DeepTrace((), "built in", 0, 0, 0.0))) is not None


def test_what_another_version_wrote_is_no_trace() -> None:
    assert from_log(None) is None
    assert from_log({}) is None
    assert from_log({**logged_trace(TRACE), "events": [{"event": "danced"}]}) is None
