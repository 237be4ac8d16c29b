"""Hits in the order of a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from folio.protocols import Reranker, TermWeights
from folio.types import Hit

# Added to the scores, in [0, 1], of passages of papers that the question names. LOG.md has the measurement.
FAVOUR = 0.1


def reranked(reranker: Reranker, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[Hit]:
    """The hits with the reranker's scores, best first; ties keep their order."""
    scores = reranker.scores(question, hits, weights)
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(scored, key=lambda hit: -hit.score)


def favoured(hits: Sequence[Hit], papers: frozenset[str]) -> list[Hit]:
    """The hits in the order of their scores, with those of these papers FAVOUR higher; the scores stay as they are."""
    return sorted(hits, key=lambda hit: -hit.score - (FAVOUR if hit.paper.id in papers else 0.0))
