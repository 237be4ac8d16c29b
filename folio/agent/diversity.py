"""Passages that are good and say different things: maximal marginal relevance. Pure."""

from __future__ import annotations

import numpy as np

from folio.types import Vectors


def mmr(scores: Vectors, vectors: Vectors, count: int, balance: float) -> list[int]:
    """The places of at most `count` passages, in the order in which they are chosen.

    Carbonell and Goldstein (1998, "The Use of MMR"): each time the passage with the highest
    balance * score - (1 - balance) * its cosine to the nearest one chosen before. scores: (n,), divided by their
    maximum. vectors: (n, dimension), rows of unit length. balance: lambda, 0 to 1; ties go to the first.
    """
    relevance = scores / max(float(scores.max(initial=0.0)), 1e-9)
    nearest = np.zeros(len(scores), np.float32)
    left = list(range(len(scores)))
    chosen: list[int] = []
    while left and len(chosen) < count:
        best = max(left, key=lambda place: (balance * relevance[place] - (1 - balance) * nearest[place], -place))
        chosen.append(best)
        left.remove(best)
        nearest = np.maximum(nearest, vectors @ vectors[best])
    return chosen
