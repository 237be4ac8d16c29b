"""The order by maximal marginal relevance."""

from __future__ import annotations

import numpy as np
import pytest

from folio.papers.model import Vectors
from folio.search.fusion import mmr

pytestmark = pytest.mark.fast

# Two that say the same, one between, one of its own
VECTORS: Vectors = np.array([[1, 0], [1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
RELEVANCE = (0.9, 0.8, 0.7, 0.4)


OPPOSITE: Vectors = np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32)


@pytest.mark.parametrize(
    ("relevance", "vectors", "weight", "count", "order"),
    [
        ((0.4, 0.9, 0.7, 0.8), VECTORS, 1.0, 4, [1, 3, 2, 0]),  # relevance alone
        # What repeats comes later. Gains after the first: -0.1, 0.05, 0.2; after the last was chosen: -0.1, -0.05.
        (RELEVANCE, VECTORS, 0.5, 4, [0, 3, 2, 1]),
        (RELEVANCE, VECTORS, 0.5, 2, [0, 3]),
        ((0.4, 0.9, 0.7, 0.8), VECTORS, 0.0, 2, [1, 3]),  # the most relevant, then what is new
        ((0.5, 0.5, 0.5), np.eye(3, dtype=np.float32), 0.7, 3, [0, 1, 2]),  # of equals the first
        ((1.0, 0.5, 0.5), OPPOSITE, 0.5, 3, [0, 2, 1]),  # the opposite is the newest
        ((0.2, 0.3), VECTORS[:2], 0.5, 10, [1, 0]),  # fewer than are wanted
        ((), np.zeros((0, 2), dtype=np.float32), 0.5, 10, []),
    ],
)
def test_the_order(relevance: tuple[float, ...], vectors: Vectors, weight: float, count: int, order: list[int]) -> None:
    assert mmr(relevance, vectors, weight, count) == order


def test_each_passage_needs_a_vector() -> None:
    with pytest.raises(ValueError, match="3 relevances and 4 vectors"):
        mmr((0.1, 0.2, 0.3), VECTORS, 0.5, 2)
