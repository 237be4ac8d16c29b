"""Fuses the dense and the BM25 ranking into one, by weighted scores."""

from __future__ import annotations

from collections.abc import Sequence

from folio.types import Candidate


def fuse(
    dense: Sequence[tuple[int, float]],
    lexical: Sequence[tuple[int, float]],
    *,
    dense_weight: float,
    lexical_weight: float,
) -> list[Candidate]:
    """The candidates of both lists, merged by chunk id, best first, ties by id.

    A linear combination, also called convex combination (Bruch, Gai and Ingber 2023, https://arxiv.org/abs/2210.11934):

        score = dense_weight * max(0, cosine) / max cosine + lexical_weight * bm25 / max bm25

    A chunk that is missing from a list gets 0 from it. Scores are divided by the maximum, not min-max scaled, because
    that keeps their relative distances: min-max scaling would give the last of 20 close candidates a score of 0.
    """
    dense_scores, lexical_scores = dict(dense), dict(lexical)
    dense_scaled, lexical_scaled = _scale(dense_scores), _scale(lexical_scores)
    merged = [
        Candidate(
            chunk_id=chunk,
            score=dense_weight * dense_scaled.get(chunk, 0.0) + lexical_weight * lexical_scaled.get(chunk, 0.0),
            dense=dense_scores.get(chunk),
            lexical=lexical_scores.get(chunk),
        )
        for chunk in dense_scores | lexical_scores
    ]
    return sorted(merged, key=lambda candidate: (-candidate.score, candidate.chunk_id))


def _scale(scores: dict[int, float]) -> dict[int, float]:
    largest = max(scores.values(), default=0.0)
    return {chunk: max(0.0, score) / largest if largest > 0 else 0.0 for chunk, score in scores.items()}
