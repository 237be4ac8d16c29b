"""The ingest benchmark's figures."""

from __future__ import annotations

import pytest

from benchmarks.ingesting import EmbeddingServer, ReadingFigures, measure_embedding


def test_busy_share_is_the_time_with_a_request_in_progress() -> None:
    server = EmbeddingServer(0.0)
    server.spans += [(10.0, 11.0), (10.5, 12.0), (13.0, 14.0)]  # two at once for 0.5 s, none for 1 s
    found = server.figures(3, 70)
    assert (found.requests, found.seconds, found.busy_s, found.busy_share) == (3, 4.0, 3.0, 0.75)
    server.close()


def test_the_ratio_is_the_median_of_the_runs_ratios() -> None:
    assert ReadingFigures(10, (1.0, 2.0, 3.0), (2.0, 2.0, 12.0)).ratio == 0.5


@pytest.mark.slow
def test_all_papers_and_requests_of_an_ingest_are_counted() -> None:
    found = measure_embedding(papers=6, pages=1, latency_s=0.0, batch=4)
    assert found.papers == 6
    assert found.passages >= 6
    assert -(-found.passages // 4) <= found.requests < found.passages
