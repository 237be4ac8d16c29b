"""Fuses the dense and the BM25 ranking into one, and reorders passages so that each adds something (MMR).

Rankings are fused by weighted scores or by ranks, or one of them is used alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from folio.papers.model import Candidate, Vectors

Mode = Literal["hybrid", "dense", "lexical"]
Scored = Sequence[tuple[int, float]]  # (chunk id, score)


@dataclass(frozen=True, slots=True)
class FusionSettings:
    """Which rankings a search uses, their numbers of candidates and weights, and the order of the hits."""

    dense: float  # weights, for the method "weighted"
    lexical: float
    candidates: int
    dual_candidates: int = 50  # dense candidates of each grain, in a library with fine passages
    method: Literal["weighted", "rrf"] = "weighted"
    rrf_k: int = 60
    mode: Mode = "hybrid"
    min_hits: int = 0  # in the mode "lexical": with fewer BM25 results than this, a search is hybrid
    mmr_lambda: float = 1.0  # the weight of relevance in the order of the hits (MMR); 1 keeps their order


def fuse_in(mode: Mode, settings: FusionSettings, dense: Scored, lexical: Scored) -> list[Candidate]:
    """The candidates of both lists, fused as the settings and the mode say; scores from 0 to 1.

    In the modes "dense" and "lexical" only the scores of one list rank, but the other's chunks stay candidates.
    """
    if mode == "hybrid" and settings.method == "rrf":
        return fuse_ranks(dense, lexical, k=settings.rrf_k)
    weights = {"hybrid": (settings.dense, settings.lexical), "dense": (1.0, 0.0), "lexical": (0.0, 1.0)}
    dense_weight, lexical_weight = weights[mode]
    return fuse(dense, lexical, dense_weight=dense_weight, lexical_weight=lexical_weight)


def fuse(dense: Scored, lexical: Scored, *, dense_weight: float, lexical_weight: float) -> list[Candidate]:
    """The candidates of both lists, merged by chunk id, best first, ties by id.

    A linear combination, also called convex combination (Bruch, Gai and Ingber 2023, https://arxiv.org/abs/2210.11934):

        score = dense_weight * max(0, cosine) / max cosine + lexical_weight * bm25 / max bm25

    A chunk that a list does not have gets 0 from it. Scores are divided by the maximum to keep their relative
    distances: min-max scaling would give the last of 20 close candidates a score of 0.
    """
    dense_scaled, lexical_scaled = _scale(dict(dense)), _scale(dict(lexical))
    scores = {
        chunk: dense_weight * dense_scaled.get(chunk, 0.0) + lexical_weight * lexical_scaled.get(chunk, 0.0)
        for chunk in dense_scaled | lexical_scaled
    }
    return _candidates(scores, dense, lexical)


def fuse_ranks(dense: Scored, lexical: Scored, *, k: int) -> list[Candidate]:
    """The candidates of both lists, merged by chunk id, best first, ties by id.

    Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009, "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods"): the sum of 1 / (k + rank) over the lists that have the chunk, times (k + 1) / 2,
    so that a chunk that is first in both lists has 1. Among equal scores in a list, the lower id ranks first.
    """
    scores: dict[int, float] = {}
    for scored in (dense, lexical):
        for rank, (chunk, _) in enumerate(sorted(scored, key=lambda pair: (-pair[1], pair[0])), 1):
            scores[chunk] = scores.get(chunk, 0.0) + (k + 1) / 2 / (k + rank)
    return _candidates(scores, dense, lexical)


def _candidates(scores: dict[int, float], dense: Scored, lexical: Scored) -> list[Candidate]:
    cosines, bm25 = dict(dense), dict(lexical)
    merged = [Candidate(chunk, score, cosines.get(chunk), bm25.get(chunk)) for chunk, score in scores.items()]
    return sorted(merged, key=lambda candidate: (-candidate.score, candidate.chunk_id))


def _scale(scores: dict[int, float]) -> dict[int, float]:
    largest = max(scores.values(), default=0.0)
    return {chunk: max(0.0, score) / largest if largest > 0 else 0.0 for chunk, score in scores.items()}


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
