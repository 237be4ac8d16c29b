"""Question and passage word by word: each word of the question looks for what says it best in the passage.

Late interaction (Khattab and Zaharia 2020, ColBERT, https://arxiv.org/abs/2004.12832) over the token states of a model
that was trained for whole texts only, which works without further training once each word weighs as much as it tells.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from folio.protocols import TermWeights, TokenEmbedder
from folio.text import tokenize
from folio.types import Tokens, Vectors

# A window's tokens, and how far apart windows begin: about two sentences, as questions are seldom answered by more.
WINDOW, STEP = 64, 16
# What the whole passage's matches count for a sentence of it, beside its own: a sentence leans on those around it.
AROUND = 0.3

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Query:
    """A question's tokens and what each counts."""

    states: Vectors  # (tokens, dimension), rows of unit length
    shares: Vectors  # (tokens,), of the whole question; by how much each word tells
    telling: Vectors  # (tokens,), the same by its square: what a rare word lacks is not made up for by common ones

    @classmethod
    def of(cls, question: str, tokens: Tokens, weights: TermWeights) -> Query:
        """weights: of the question's terms. The pieces that a tokenizer makes of one word share its weight."""
        words = list(_WORD.finditer(question))
        tells = [max((weights.get(term, 0.0) for term in tokenize(word.group())), default=0.0) for word in words]
        ends = [word.end() for word in words]
        owners = [bisect_right(ends, start) for start, _ in tokens.spans]
        pieces = Counter(owners)
        told = np.array([tells[owner] for owner in owners], dtype=np.float32)
        count = np.array([pieces[owner] for owner in owners], dtype=np.float32)
        return cls(tokens.states, _shares(told / count), _shares(told**2 / count))


def _shares(weights: Vectors) -> Vectors:
    """Weights that add up to 1; equal ones where all are 0."""
    total = float(weights.sum())
    even = np.full(len(weights), 1 / max(1, len(weights)), dtype=np.float32)
    return (weights / total).astype(np.float32) if total > 0 else even


@dataclass(frozen=True, slots=True)
class Matches:
    """How well each token of a question is matched by each token of a passage, and by its paper's title."""

    query: Query
    cosines: Vectors  # (the question's tokens, the passage's tokens)
    titles: Vectors  # (the question's tokens,): the best match in the title, 0 at least
    spans: Sequence[tuple[int, int]]  # of the passage's tokens, in its text
    best: Vectors  # (the question's tokens,): the best match in the passage or its title

    @classmethod
    def of(cls, query: Query, passage: Tokens, title: Tokens) -> Matches:
        cosines = query.states @ passage.states.T
        titles = (query.states @ title.states.T).max(axis=1, initial=0.0)
        return cls(query, cosines, titles, passage.spans, _best(cosines, titles))

    @property
    def whole(self) -> float:
        """The question's tokens' best matches, each by its share: 1 where the passage or title says all of them."""
        return float(self.query.shares @ self.best)

    @property
    def window(self) -> float:
        """The same for the best window of WINDOW tokens: what a question asks for stands close together."""
        starts = range(0, max(1, self.cosines.shape[1] - WINDOW + STEP), STEP)
        return max(self._share(slice(at, at + WINDOW)) for at in starts)

    def sentence(self, start: int, end: int) -> float:
        """The same for the passage's text [start, end), and for what stands around it."""
        return float(self.query.shares @ self._around(start, end))

    def spoken_of(self, start: int, end: int) -> float:
        """How much of the question the passage's text [start, end) speaks of, with what stands around it, 0 to 1."""
        return float(np.clip(self.query.telling @ self._around(start, end), 0.0, 1.0))

    def _around(self, start: int, end: int) -> Vectors:
        """Each token's best match in the text [start, end), and for AROUND of it in the whole passage."""
        inside = [place for place, (begin, _) in enumerate(self.spans) if start <= begin < end]
        best: Vectors = (1 - AROUND) * _best(self.cosines[:, inside], self.titles) + AROUND * self.best
        return best

    def _share(self, places: slice) -> float:
        """As `whole`, for these tokens of the passage."""
        return float(self.query.shares @ _best(self.cosines[:, places], self.titles))


def _best(cosines: Vectors, titles: Vectors) -> Vectors:
    found: Vectors = np.maximum(cosines.max(axis=1, initial=0.0), titles)
    return found


def matches(
    embedder: TokenEmbedder, question: str, passages: Sequence[tuple[str, str]], weights: TermWeights
) -> list[Matches]:
    """A question's matches in each of these passages, given as (title of its paper, text). Raises ModelError."""
    if not passages:
        return []
    titles = list(dict.fromkeys(title for title, _ in passages))
    asked, *read = embedder.tokens([question, *titles, *(text for _, text in passages)])
    query = Query.of(question, asked, weights)
    of_title = dict(zip(titles, read, strict=False))
    texts = read[len(titles) :]
    return [Matches.of(query, text, of_title[title]) for (title, _), text in zip(passages, texts, strict=True)]


def answered(found: Sequence[Matches]) -> float:
    """How much of a question is spoken of in some of these passages of its evidence, 0 to 1.

    Each token's best match anywhere, by the square of what it tells: a question on the papers' subject that asks for
    something they do not say has a rare word that nothing matches.
    """
    if not found:
        return 0.0
    best = np.max([match.best for match in found], axis=0)
    return float(np.clip(found[0].query.telling @ best, 0.0, 1.0))
