"""A reply as the log of questions keeps it."""

from __future__ import annotations

from folio.answered import log_entry
from folio.chat import Reply
from folio.store.query_log import LogEntry, LoggedSource
from tests.helpers.answers import ANSWER, HITS, ICE_PAPER, MELT_PAPER, REFUSED, TIMINGS

ASKED = "2026-01-02T03:04:05+00:00"


def test_the_log_keeps_the_answer_its_evidence_and_its_pages() -> None:
    assert log_entry(Reply(ANSWER, HITS, TIMINGS), ASKED, "by hand") == LogEntry(
        asked=ASKED,
        question="How long is the Aletsch glacier?",
        standalone_question="How long is the Aletsch glacier?",
        chunks=(1, 2),
        answer="It is 23 kilometres long and lies in the Alps. Its tongue retreats by 40 metres each year.",
        sources=(
            LoggedSource(ICE_PAPER.id, "alps/ice.pdf", 1, "The Aletsch glacier has a length of 23 kilometres."),
            LoggedSource(ICE_PAPER.id, "alps/ice.pdf", 1, "It lies in the Bernese Alps."),
            LoggedSource(ICE_PAPER.id, "alps/ice.pdf", 2, "Its tongue retreats by 40 metres each year."),
            LoggedSource(
                MELT_PAPER.id, "melt.pdf", 1, "The tongue of the Aletsch glacier\nretreats by 50 metres each year."
            ),
        ),
        timings_ms=TIMINGS,
        model="by hand",
    )


def test_a_refusal_has_no_source() -> None:
    entry = log_entry(Reply(REFUSED, HITS, TIMINGS), ASKED, "by hand")
    assert (entry.question, entry.standalone_question) == ("Who painted it?", "Who painted the Aletsch glacier?")
    assert (entry.answer, entry.sources, entry.chunks) == ("Not found in the provided papers.", (), (1,))
