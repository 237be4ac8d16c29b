"""The benchmark of ingesting: what its figures are made of."""

from __future__ import annotations

import pytest

from benchmarks.ingesting import ReadingFigures, Server, embedding


def test_busy_is_the_share_of_time_with_a_request_at_work() -> None:
    server = Server(0.0)
    server.spans += [(10.0, 11.0), (10.5, 12.0), (13.0, 14.0)]  # a second of two at once, a second of none
    found = server.figures(3, 70)
    assert (found.requests, found.seconds, found.busy_s, found.busy) == (3, 4.0, 3.0, 0.75)
    server.close()


def test_the_ratio_is_the_median_of_the_runs_own() -> None:
    assert ReadingFigures(10, (1.0, 2.0, 3.0), (2.0, 2.0, 12.0)).ratio == 0.5


@pytest.mark.slow
def test_an_ingest_of_small_papers_is_seen_whole() -> None:
    found = embedding(papers=6, pages=1, latency_s=0.0, batch=4)
    assert found.papers == 6
    assert found.passages >= 6
    assert -(-found.passages // 4) <= found.requests < found.passages
