"""Late interaction: how well the tokens of a passage match those of a question.

Each token of the question is matched with the most similar token of the passage: ColBERT's MaxSim (Khattab and Zaharia
2020, https://arxiv.org/abs/2004.12832), with each question token weighted by the IDF of its word. The token states come
from a sentence embedder that was not trained for this; the IDF weights make up for that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from folio.papers.model import Tokens, Vectors
from folio.protocols import TermWeights, TokenEmbedder
from folio.text import word_tokens

# Tokens in a window, and between the starts of two windows. 64 tokens are about two sentences; few answers are longer.
WINDOW, STEP = 64, 16
# Weight of the whole passage in a sentence's score, because a sentence depends on its context
CONTEXT_WEIGHT = 0.3

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Query:
    """A question's token states and the weight of each token."""

    states: Vectors  # (tokens, dimension), rows of unit length
    shares: Vectors  # (tokens,), proportional to the IDF of the token's word; they add up to 1
    squared_shares: Vectors  # (tokens,), proportional to IDF squared, so that common words cannot offset a rare one

    @classmethod
    def of(cls, question: str, tokens: Tokens, weights: TermWeights) -> Query:
        """weights: the IDF of each term. A word's weight is divided evenly among its tokens.

        The weight of a compound such as "ML-KEM" is the largest weight of its terms.
        """
        words = list(_WORD.finditer(question))
        word_weights = [max((weights.get(term, 0.0) for term in own), default=0.0) for own in word_tokens(question)]
        ends = [word.end() for word in words]
        owners = [bisect_right(ends, start) for start, _ in tokens.spans]  # the word of each token
        tokens_of = Counter(owners)
        idf = np.array([word_weights[owner] for owner in owners], dtype=np.float32)
        count = np.array([tokens_of[owner] for owner in owners], dtype=np.float32)
        return cls(tokens.states, _normalized(idf / count), _normalized(idf**2 / count))


def _normalized(weights: Vectors) -> Vectors:
    """Weights that add up to 1; equal ones if all are 0."""
    total = float(weights.sum())
    even = np.full(len(weights), 1 / max(1, len(weights)), dtype=np.float32)
    return (weights / total).astype(np.float32) if total > 0 else even


@dataclass(frozen=True)
class Matches:
    """How well each token of a question is matched by each token of a passage and by its paper's title."""

    query: Query
    cosines: Vectors  # (the question's tokens, the passage's tokens)
    titles: Vectors  # (the question's tokens,), the best match in the title, at least 0
    spans: Sequence[tuple[int, int]]  # [start, end) of each of the passage's tokens in its text
    best: Vectors  # (the question's tokens,), the best match in the passage or its title

    @classmethod
    def of(cls, query: Query, passage: Tokens, title: Tokens) -> Matches:
        cosines = query.states @ passage.states.T
        titles = (query.states @ title.states.T).max(axis=1, initial=0.0)
        return cls(query, cosines, titles, passage.spans, _best(cosines, titles))

    @property
    def whole(self) -> float:
        """Weighted MaxSim: the sum over question tokens q of share(q) * max(0, cos(q, t)) for the best token t of the
        passage or its title. 1 if they match every token exactly.
        """
        return float(self.query.shares @ self.best)

    @property
    def window(self) -> float:
        """The score of the best window of WINDOW tokens, which is high if the matches are close together."""
        starts = range(0, max(1, self.cosines.shape[1] - WINDOW + STEP), STEP)
        windows = (self.cosines[:, start : start + WINDOW] for start in starts)
        return max(float(self.query.shares @ _best(window, self.titles)) for window in windows)

    def sentence(self, start: int, end: int) -> float:
        """The score of the characters [start, end) of the passage, in their context."""
        return float(self.query.shares @ self._in_context(start, end))

    def coverage(self, start: int, end: int) -> float:
        """The share of the question that the characters [start, end) cover, in context, by squared IDF; 0 to 1."""
        return float(np.clip(self.query.squared_shares @ self._in_context(start, end), 0.0, 1.0))

    def inside(self, start: int, end: int) -> Vectors:
        """For each of the question's tokens, its best match in the characters [start, end) or in the title."""
        return _best(self.cosines[:, (start <= self._begins) & (self._begins < end)], self.titles)

    def score(self, inside: Vectors) -> float:
        """The score of a part of the passage, in its context. inside: as from `inside`."""
        return float(self.query.shares @ self._with_context(inside))

    @cached_property
    def _begins(self) -> npt.NDArray[np.int64]:
        return np.array([begin for begin, _ in self.spans], dtype=np.int64)

    def _in_context(self, start: int, end: int) -> Vectors:
        """Each token's best match in [start, end), averaged with its best match in the whole passage."""
        return self._with_context(self.inside(start, end))

    def _with_context(self, inside: Vectors) -> Vectors:
        best: Vectors = (1 - CONTEXT_WEIGHT) * inside + CONTEXT_WEIGHT * self.best
        return best


def _best(cosines: Vectors, titles: Vectors) -> Vectors:
    best: Vectors = np.maximum(cosines.max(axis=1, initial=0.0), titles)
    return best


def matches(
    embedder: TokenEmbedder, question: str, passages: Sequence[tuple[str, str]], weights: TermWeights
) -> list[Matches]:
    """A question's matches in each passage, given as (title of its paper, text). Raises ModelError."""
    if not passages:
        return []
    titles = list(dict.fromkeys(title for title, _ in passages))
    question_tokens, *tokens = embedder.tokens([question, *titles, *(text for _, text in passages)])
    query = Query.of(question, question_tokens, weights)
    of_title = dict(zip(titles, tokens, strict=False))
    of_texts = tokens[len(titles) :]
    return [Matches.of(query, text, of_title[title]) for (title, _), text in zip(passages, of_texts, strict=True)]


@dataclass(frozen=True, slots=True)
class TextMatch:
    """How well a text, embedded without its paper's title, matches a question."""

    best: Vectors  # (the question's tokens,), the best match in the text, at least 0
    cosine: float  # of question and text, each the mean of its tokens


def read_alone(embedder: TokenEmbedder, query: Query, texts: Sequence[str]) -> list[TextMatch]:
    """A question's match with each text. Raises ModelError."""
    question = _unit(query.states.sum(axis=0))
    text_matches = []
    for tokens in embedder.tokens(texts):
        best: Vectors = (query.states @ tokens.states.T).max(axis=1, initial=0.0)
        text_matches.append(TextMatch(best, float(question @ _unit(tokens.states.sum(axis=0)))))
    return text_matches


def _unit(vector: Vectors) -> Vectors:
    return (vector / max(float(np.linalg.norm(vector)), 1e-9)).astype(np.float32)


def evidence_coverage(passages: Sequence[Matches]) -> float:
    """The share of a question that these passages cover together, 0 to 1; 0 without passages.

    Each token's best match in any passage, weighted by squared IDF. A question on the papers' subject that they do not
    answer usually has a rare word that nothing matches.
    """
    if not passages:
        return 0.0
    best = np.max([match.best for match in passages], axis=0)
    return float(np.clip(passages[0].query.squared_shares @ best, 0.0, 1.0))
