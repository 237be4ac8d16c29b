"""Searches with several readings of one question, and fuses what they find: passages that readings agree on come first.

A follow-up can be read as typed, with its references filled in, and together with the questions before it. Each reading
alone fails on some follow-ups, and they fail on different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from folio.types import Candidate


def fuse_readings(rankings: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """The candidates of all readings with the mean of their fused scores, best first, ties by id.

    CombSUM (Fox and Shaw 1994, "Combination of multiple searches"), over the number of readings; a candidate that a
    reading does not have gets 0 from it. A candidate keeps the cosine and the BM25 score of the first reading that has
    it. Raises ValueError without a reading.
    """
    if not rankings:
        raise ValueError("no reading")
    scores: dict[int, float] = {}
    first: dict[int, Candidate] = {}
    for candidate in chain.from_iterable(rankings):
        scores[candidate.chunk_id] = scores.get(candidate.chunk_id, 0.0) + candidate.score
        first.setdefault(candidate.chunk_id, candidate)
    merged = [replace(candidate, score=scores[id] / len(rankings)) for id, candidate in first.items()]
    return sorted(merged, key=lambda candidate: (-candidate.score, candidate.chunk_id))
