"""Two ranked lists -> one. Pure: scores in, scores out."""

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
    """Candidates of either list, merged by chunk id, best first, ties by id.

    Each list's scores are scaled to 0..1 by dividing them by the largest (a negative cosine counts as 0), and added by
    weight; a chunk that a list does not hold gets 0 from it. Dividing keeps how far apart scores are: scaling by
    minimum and maximum would call the last of 20 close candidates worth nothing.
    """
    dense_scores, lexical_scores = dict(dense), dict(lexical)
    dense_scaled, lexical_scaled = _scaled(dense_scores), _scaled(lexical_scores)
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


def _scaled(scores: dict[int, float]) -> dict[int, float]:
    largest = max(scores.values(), default=0.0)
    return {chunk: max(0.0, score) / largest if largest > 0 else 0.0 for chunk, score in scores.items()}
