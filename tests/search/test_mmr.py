"""The order by maximal marginal relevance."""

from __future__ import annotations

import numpy as np
import pytest

from folio.search.mmr import mmr
from folio.types import Vectors

pytestmark = pytest.mark.fast

# Two that say the same, one between, one of its own
VECTORS: Vectors = np.array([[1, 0], [1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
RELEVANCE = (0.9, 0.8, 0.7, 0.4)


def test_weight_one_is_the_order_of_relevance() -> None:
    assert mmr((0.4, 0.9, 0.7, 0.8), VECTORS, 1.0, 4) == [1, 3, 2, 0]


def test_what_repeats_an_earlier_passage_comes_later() -> None:
    # Gains after the first: -0.1, 0.05, 0.2. After the last was chosen: -0.1, -0.05.
    assert mmr(RELEVANCE, VECTORS, 0.5, 4) == [0, 3, 2, 1]
    assert mmr(RELEVANCE, VECTORS, 0.5, 2) == [0, 3]


def test_weight_zero_looks_for_what_is_new() -> None:
    assert mmr((0.4, 0.9, 0.7, 0.8), VECTORS, 0.0, 2) == [1, 3]


def test_of_equals_the_first_is_chosen() -> None:
    assert mmr((0.5, 0.5, 0.5), np.eye(3, dtype=np.float32), 0.7, 3) == [0, 1, 2]


def test_opposite_vectors_are_the_newest() -> None:
    vectors: Vectors = np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32)
    assert mmr((1.0, 0.5, 0.5), vectors, 0.5, 3) == [0, 2, 1]


def test_there_may_be_fewer_passages_than_are_wanted() -> None:
    assert mmr((0.2, 0.3), VECTORS[:2], 0.5, 10) == [1, 0]
    assert mmr((), np.zeros((0, 2), dtype=np.float32), 0.5, 10) == []


def test_each_passage_needs_a_vector() -> None:
    with pytest.raises(ValueError, match="3 relevances and 4 vectors"):
        mmr((0.1, 0.2, 0.3), VECTORS, 0.5, 2)
