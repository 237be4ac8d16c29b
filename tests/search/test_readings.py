"""Fusing what several readings of a question find."""

from __future__ import annotations

import pytest

from folio.papers.model import Candidate
from folio.search.retriever import fuse_readings

pytestmark = pytest.mark.fast


def test_readings_are_averaged_and_keep_their_first_scores() -> None:
    ranking = [Candidate(4, 0.9, 0.5, 3.0), Candidate(2, 0.4, 0.2, None)]
    assert fuse_readings([ranking]) == ranking
    typed = [Candidate(1, 1.0, 0.9), Candidate(2, 0.8, 0.7), Candidate(3, 0.1, 0.1)]
    resolved = [Candidate(3, 1.0, 0.8), Candidate(2, 0.9, 0.6), Candidate(1, 0.2, 0.1)]
    found = fuse_readings([typed, resolved])
    assert [(one.chunk_id, round(one.score, 9)) for one in found] == [(2, 0.85), (1, 0.6), (3, 0.55)]
    found = fuse_readings([[Candidate(1, 0.6)], [Candidate(2, 1.0), Candidate(1, 0.6)], []])
    assert [(one.chunk_id, round(one.score, 9)) for one in found] == [(1, 0.4), (2, round(1 / 3, 9))]
    found = fuse_readings([[Candidate(9, 0.5, 0.3, 2.0)], [Candidate(9, 0.1, 0.9, 8.0), Candidate(3, 0.6, 0.4, None)]])
    assert found == [Candidate(3, 0.3, 0.4, None), Candidate(9, 0.3, 0.3, 2.0)]
    with pytest.raises(ValueError, match="no reading"):
        fuse_readings([])
