"""Maximal marginal relevance: orders passages so that each adds something to the passages before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from folio.papers.model import Vectors


def mmr(relevance: Sequence[float], vectors: Vectors, weight: float, count: int) -> list[int]:
    """The places of `count` passages, or of all if there are fewer, in the order of choice.

    Carbonell and Goldstein 1998, "The use of MMR, diversity-based reranking". Each next passage has the largest

        weight * relevance - (1 - weight) * largest cosine to a passage chosen before

    and, among equals, the first place. Weight 1 orders by relevance; weight 0 looks only for new content, after the
    most relevant passage. relevance: on the scale of a cosine, at most 1. vectors: shape (passages, dimension), rows of
    unit length. Raises ValueError if the numbers of relevances and vectors differ.
    """
    own = weight * np.asarray(relevance, dtype=np.float64)
    if len(own) != len(vectors):
        raise ValueError(f"{len(own)} relevances and {len(vectors)} vectors")
    nearest = np.zeros(len(own))
    free = np.ones(len(own), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(count, len(own)):
        # Every passage is new at first, so the first is the most relevant, whatever the weight.
        gain = own - (1 - weight) * nearest if chosen else np.asarray(relevance, dtype=np.float64)
        place = int(np.argmax(np.where(free, gain, -np.inf)))
        cosines = vectors @ vectors[place]
        nearest = np.maximum(nearest, cosines) if chosen else cosines
        free[place] = False
        chosen.append(place)
    return chosen
