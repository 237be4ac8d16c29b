"""Fusing two ranked lists."""

from __future__ import annotations

import pytest

from folio.papers.model import Candidate
from folio.search.fusion import FusionSettings, fuse, fuse_in, fuse_ranks

pytestmark = pytest.mark.fast


def _fused(
    dense: list[tuple[int, float]], lexical: list[tuple[int, float]], weights: tuple[float, float] = (0.7, 0.3)
) -> list[tuple[int, float]]:
    found = fuse(dense, lexical, dense_weight=weights[0], lexical_weight=weights[1])
    return [(candidate.chunk_id, round(candidate.score, 12)) for candidate in found]


D, L = [(1, 0.8), (2, 0.6), (3, 0.2)], [(2, 12.0), (4, 9.0), (1, 3.0)]
Ranking = list[tuple[int, float]]


@pytest.mark.parametrize(
    ("dense", "lexical", "expected"),
    [
        # Scaled by the largest, weighted seven to three, added, whatever the order of the lists
        (D, L, [(2, 0.825), (1, 0.775), (4, 0.225), (3, 0.175)]),
        (D[::-1], L[::-1], [(2, 0.825), (1, 0.775), (4, 0.225), (3, 0.175)]),
        ([(1, 0.9)], [(2, 30.0)], [(1, 0.7), (2, 0.3)]),
        # Ties by id, a negative cosine as zero
        ([(9, 0.5), (3, 0.5), (7, 0.5)], [], [(3, 0.7), (7, 0.7), (9, 0.7)]),
        ([(1, 0.4), (2, -0.3)], [(2, 5.0)], [(1, 0.7), (2, 0.3)]),
        ([(1, -0.1), (2, -0.3)], [(2, 5.0)], [(2, 0.3), (1, 0.0)]),
        # Empty lists
        ([], [], []), ([(1, 0.5), (2, 0.25)], [], [(1, 0.7), (2, 0.35)]), ([(1, 0.0)], [(1, 0.0)], [(1, 0.0)]),
        ([], [(1, 8.0), (2, 2.0)], [(1, 0.3), (2, 0.075)]),
    ],
)  # fmt: skip
def test_scores_are_scaled_weighted_and_added(dense: Ranking, lexical: Ranking, expected: Ranking) -> None:
    assert _fused(dense, lexical) == expected


def test_weights_turn_the_order_and_scores_are_kept() -> None:
    assert _fused([(1, 0.9)], [(2, 30.0)], (0.3, 0.7)) == [(2, 0.7), (1, 0.3)]
    found = fuse([(1, 0.5)], [(2, 4.0), (1, 2.0)], dense_weight=0.75, lexical_weight=0.25)
    assert found == [Candidate(1, 0.875, 0.5, 2.0), Candidate(2, 0.25, None, 4.0)]


def test_the_first_of_both_ranks_has_score_one() -> None:
    found = fuse_ranks([(1, 0.2), (2, 0.9), (3, 0.5)], [(2, 4.0), (4, 9.0)], k=60)
    assert [candidate.chunk_id for candidate in found] == [2, 4, 3, 1]
    half = 61 / 2
    assert [candidate.score for candidate in found] == pytest.approx(
        [half / 61 + half / 62, half / 61, half / 62, half / 63]
    )
    assert (found[0].dense, found[0].lexical, found[1].dense) == (0.9, 4.0, None)
    assert fuse_ranks([(1, 0.5)], [(1, 3.0)], k=10)[0].score == 1.0


def test_equal_scores_rank_by_id() -> None:
    for dense in ([(7, 0.5), (3, 0.5)], [(3, 0.5), (7, 0.5)]):
        found = fuse_ranks(dense, [], k=60)
        assert [candidate.chunk_id for candidate in found] == [3, 7]
        assert found[0].score > found[1].score


def test_the_settings_choose_how_the_rankings_become_one() -> None:
    dense, lexical = [(1, 0.8), (2, 0.4)], [(2, 6.0), (3, 3.0)]
    weighted, ranks = FusionSettings(0.7, 0.3, 20), FusionSettings(0.7, 0.3, 20, method="rrf", rrf_k=10)
    assert fuse_in("hybrid", weighted, dense, lexical) == fuse(dense, lexical, dense_weight=0.7, lexical_weight=0.3)
    assert fuse_in("hybrid", ranks, dense, lexical) == fuse_ranks(dense, lexical, k=10)
    for settings in (weighted, ranks):
        alone = fuse_in("dense", settings, dense, [])
        assert [(c.chunk_id, c.score) for c in alone] == [(1, 1.0), (2, 0.5)]
        alone = fuse_in("lexical", settings, [(9, 0.0)], lexical)  # 9 is evidence of an earlier turn
        assert [(c.chunk_id, c.score) for c in alone] == [(2, 1.0), (3, 0.5), (9, 0.0)]
