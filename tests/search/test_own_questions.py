"""A person's own questions: which of the log count, how many are found, and when a difference is no chance."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from folio.answer_types import REFUSAL
from folio.search.fusion import FusionSettings
from folio.search.own_questions import (
    KnownQuestion,
    OwnResult,
    Tried,
    known_questions,
    measure,
    sign_test,
    variants,
)
from folio.store.query_log import LogEntry, LoggedSource
from tests.helpers.web_client import small_app

A, B, GONE = "a" * 64, "b" * 64, "c" * 64
SOURCES = (LoggedSource(A, "a.pdf", 1, "x"), LoggedSource(B, "b.pdf", 2, "y"), LoggedSource(GONE, "c.pdf", 1, "z"))
FUSION = FusionSettings(dense=0.3, lexical=0.7, candidates=20)


def entry(question: str, feedback: str = "", sources: tuple[LoggedSource, ...] = SOURCES) -> LogEntry:
    answer = "An answer." if sources else REFUSAL
    return LogEntry("2026-01-02T03:04:05+00:00", question, question, (), answer, sources, {}, "m", feedback)  # type: ignore[arg-type]


def test_ratings_count_more_than_opened_citations() -> None:
    entries = [
        (9, entry("Who?")),  # opened
        (8, entry("Why?")),  # neither rated nor opened
        (7, entry("How?", "good")),
        (6, entry("how ?")),  # the same question, opened: the rating counts
        (5, entry("What?", "bad")),  # opened, too
        (4, entry("When?", "good", ())),  # a refusal that was right
        (3, entry("Where?")),  # only a page of a paper that is gone was opened
        (2, entry("Who?")),  # opened before
    ]
    opened = {9: [(B, 2)], 6: [(A, 1)], 5: [(A, 1)], 3: [(GONE, 1)], 2: [(A, 1)]}
    known = known_questions(entries, {A, B}, opened)
    assert known.questions == (
        KnownQuestion(4, "When?", (), "", is_opened=False),
        KnownQuestion(7, "How?", SOURCES[:2], "An answer.", is_opened=False),
        KnownQuestion(9, "Who?", (SOURCES[1],), "An answer.", is_opened=True),
    )
    assert (known.bad, known.without_pages) == ((5,), ())
    assert [each.text for each in known.searched] == ["How?", "Who?"]


@pytest.mark.parametrize(
    ("gained", "lost", "chance"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (0, 6, 0.03125), (8, 2, 0.109375)],
)
def test_a_sign_test(gained: int, lost: int, chance: float) -> None:
    assert sign_test(gained, lost) == chance


def test_the_ways_to_search_differ_in_one_thing_each() -> None:
    ways = [*variants(FUSION, 4, rerank=True)]
    assert [dict(way.settings) for way in ways] == [
        {},
        {"BM25_WEIGHT": "0.5", "DENSE_WEIGHT": "0.5"},
        {"BM25_WEIGHT": "0.9", "DENSE_WEIGHT": "0.1"},
        {"FUSION": "rrf"},
        {"RERANKER": "none"},
        {"TOP_K": "8"},
    ]
    assert [way.rerank for way in ways] == [True, True, True, True, False, True]
    words = replace(FUSION, mode="lexical")
    assert [dict(way.settings) for way in variants(words, 4, rerank=False)] == [
        {},
        {"RETRIEVAL_MODE": "hybrid", "FUSION": "weighted"},
        {"TOP_K": "8"},
    ]


@pytest.fixture
def result(tmp_path: Path) -> tuple[OwnResult, list[tuple[int, int]]]:
    """What is found of two questions, one of which no search finds, and the calls of progress."""
    app = small_app(tmp_path)
    calls: list[tuple[int, int]] = []
    with closing(app.open_library()) as library:
        otters = next(paper for paper in library.papers() if paper.file == "otters.pdf")
        page = LoggedSource(otters.id, "otters.pdf", 1, "")
        questions = [
            KnownQuestion(1, "Which mammal has the densest fur?", (page,), "x", is_opened=False),
            KnownQuestion(2, "How long is the Aletsch glacier?", (replace(page, page=99),), "x", is_opened=True),
        ]
        ways = [*variants(app.models.fusion, 1, rerank=False)]
        found = measure(questions, app.retriever(library), ways, lambda done, total: calls.append((done, total)))
    return found, calls


def test_what_is_found_is_counted(result: tuple[OwnResult, list[tuple[int, int]]]) -> None:
    found, calls = result
    assert (found.questions, found.opened, found.now) == (2, 1, Tried({}, 1, 0, 0, "same"))
    assert found.missed == ("How long is the Aletsch glacier?",)
    assert [each.verdict for each in found.others][-1] == "more passages"
    assert calls == [(done, 2 * (1 + len(found.others))) for done in range(2 * (1 + len(found.others)) + 1)]
