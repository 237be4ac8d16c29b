"""Question and candidates -> one score each, by the built-in model and the words. cross_encoder.py is the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from folio.protocols import TermWeights, TokenEmbedder
from folio.search.late_interaction import matches
from folio.text import coverage, sentence_spans, tokenize
from folio.types import Hit

# What the built-in reranker weighs at first sight. Chosen once, on a set of biomedical papers; see LOG.md.
NEARNESS, BM25, WORDS, PAIRS, SENTENCE = 0.3, 0.3, 0.2, 0.1, 0.1
# How many of the best at first sight are read word by word. Of 20 the gain is a little larger, and so is the wait.
CLOSELY = 12
# What then counts, of 23 parts: the whole passage, its best window, and BM25, pairs and best sentence as before.
PARTS = (10, 10, 1, 1, 1)


class BuiltinReranker:
    """Reads question and passage together without weights of its own.

    At first sight a passage's score adds, each from 0 to 1: the cosine and the BM25 score, each divided by the largest
    among the candidates; the share of the question's words that the passage or its paper's title holds, each word
    counting for what it tells; the share of the question's neighbouring words that are neighbours there too; and the
    share of its words that the best single sentence holds. The best of these are read word by word
    (late_interaction.py).
    """

    name = "built in"
    reads: int | None = None  # every candidate: first sight costs next to nothing

    def __init__(self, embedder: TokenEmbedder) -> None:
        self._embedder = embedder

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """See protocols.Reranker. Raises ModelError."""
        seen = _first_sight(question, hits, weights)
        order = sorted(range(len(hits)), key=lambda place: -seen[place].score)
        close, others = order[:CLOSELY], order[CLOSELY:]
        scores = [0.0] * len(hits)
        passages = [(hits[place].paper.title, hits[place].text) for place in close]
        found = matches(self._embedder, question, passages, weights)
        wholes, windows = [match.whole for match in found], [match.window for match in found]
        most, best = max(wholes, default=0.0), max(windows, default=0.0)
        for place, whole, window in zip(close, wholes, windows, strict=True):
            look = seen[place]
            parts = (_share(whole, most), _share(window, best), look.bm25, look.pairs, look.sentence)
            scores[place] = sum(weight * part for weight, part in zip(PARTS, parts, strict=True)) / sum(PARTS)
        # The others come behind, in the order of first sight.
        least = min((scores[place] for place in close), default=0.0)
        for place in others:
            scores[place] = least * _share(seen[place].score, seen[others[0]].score) * 0.99
        return scores


@dataclass(frozen=True, slots=True)
class _Look:
    """What a passage is worth at first sight; each from 0 to 1."""

    score: float
    bm25: float
    pairs: float
    sentence: float


def _first_sight(question: str, hits: Sequence[Hit], weights: TermWeights) -> list[_Look]:
    words = tokenize(question)
    asked = set(pairwise(words))
    nearest = max((hit.dense or 0.0 for hit in hits), default=0.0)
    strongest = max((hit.lexical or 0.0 for hit in hits), default=0.0)
    looks = []
    for hit in hits:
        passage = tokenize(f"{hit.paper.title}\n{hit.text}")
        near = _share(max(0.0, hit.dense or 0.0), nearest)
        bm25 = _share(hit.lexical or 0.0, strongest)
        pairs = _share(len(asked.intersection(pairwise(passage))), len(asked))
        own = (tokenize(hit.text[start:end]) for start, end in sentence_spans(hit.text))
        sentence = max((coverage(weights, tokens) for tokens in own), default=0.0)
        held = coverage(weights, passage)
        score = NEARNESS * near + BM25 * bm25 + WORDS * held + PAIRS * pairs + SENTENCE * sentence
        looks.append(_Look(score, bm25, pairs, sentence))
    return looks


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
