"""Hits in the order of a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from folio.protocols import Reranker, TermWeights
from folio.types import Hit


def reranked(reranker: Reranker, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[Hit]:
    """The hits with the reranker's scores, best first; ties keep their order."""
    scores = reranker.scores(question, hits, weights)
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(scored, key=lambda hit: -hit.score)
