"""The built-in reranker: words and late interaction, then a small reader. cross_encoder.py is the alternative.

Late interaction matches each token of the question with the most similar token of the passage: ColBERT's MaxSim
(Khattab and Zaharia 2020, https://arxiv.org/abs/2004.12832), with each question token weighted by the IDF of its word.
The token states come from a sentence embedder that was not trained for this; the IDF weights make up for that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from folio.papers.model import Hit, Paper, Passage, Tokens, Vectors
from folio.protocols import PassageReader, Reranker, TermWeights, TokenEmbedder
from folio.question.question import Question
from folio.text import coverage, sentence_tokens, tokenize, word_tokens

# Tokens in a window, and between the starts of two windows. 64 tokens are about two sentences; few answers are longer.
WINDOW, STEP = 64, 16
# Weight of the whole passage in a sentence's score, because a sentence depends on its context
CONTEXT_WEIGHT = 0.3
# Passages scored by late interaction. 20 gain a little more and take longer.
LATE_INTERACTION_TOP_N = 12
# In the second stage the fused score counts FUSED_WEIGHT * s ** 4 times as much as this reranker's own, where s is the
# share of candidates that are the only one of their paper. Words distinguish passages of one paper, which are about
# the same thing; between papers the embedding is the better judge.
FUSED_WEIGHT = 6.0
# In the first stage it counts at least this much
LEAST_FUSED_WEIGHT = 1.0
# Passages that the reader reads; the weight of their score, divided by the largest, against the reader's log-odds; and
# the bound on the log-odds. A weight between 16 and 32 makes little difference (LOG.md).
READ, SCORE_WEIGHT, MOST_ODDS = 8, 24.0, 12.0
# Subtracted from the log-odds of a text without any number of the question: to a small model all numbers look alike
WITHOUT_NUMBERS = 4.0

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


@dataclass(frozen=True, slots=True)
class RerankWeights:
    """Weights of the features, which are from 0 to 1. Tuned once on a set of biomedical papers; see LOG.md.

    The first stage scores every candidate; its weights add up to 1. The second stage scores the best candidates by late
    interaction and divides by the sum of its weights.
    """

    cosine: float = 0.3  # of the embeddings, divided by the largest among the candidates
    bm25: float = 0.3  # BM25 score, divided by the largest among the candidates
    terms: float = 0.2  # share of the question's terms in the passage or its paper's title, by IDF
    bigrams: float = 0.1  # share of the question's bigrams in the passage or title
    sentence: float = 0.1  # share of the question's terms in the best single sentence, by IDF

    late_passage: float = 10  # late interaction with the whole passage, divided by the largest
    late_window: float = 10  # late interaction with its best window, divided by the largest
    late_bm25: float = 1  # the three below as in the first stage
    late_bigrams: float = 1
    late_sentence: float = 1


WEIGHTS = RerankWeights()


class BuiltinReranker:
    """Reranks with the built-in embedder, without a trained cross-encoder.

    A first stage scores every candidate from its retrieval scores and its words, a second the best of these by late
    interaction; `RerankWeights` lists the features. Both add the fused score (FUSED_WEIGHT): this reranker was not
    trained, and alone it ranks whole documents worse than the fused score does. LOG.md has the figures.
    """

    name = "built in"
    reads: int | None = None  # every candidate: the first stage is cheap

    def __init__(self, embedder: TokenEmbedder) -> None:
        self._embedder = embedder

    def scores(self, question: Question, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """See protocols.Reranker. Raises ModelError."""
        titles = [hit.paper.title for hit in hits]
        features = self._first_stage(question, hits, titles, weights)
        trust = FUSED_WEIGHT * _share_alone(hits) ** 4
        largest = max((hit.score for hit in hits), default=0.0)
        fused = [_ratio(hit.score, largest) for hit in hits]
        first = [own.score + max(LEAST_FUSED_WEIGHT, trust) * more for own, more in zip(features, fused, strict=True)]
        order = sorted(range(len(hits)), key=lambda place: -first[place])
        top, rest = order[:LATE_INTERACTION_TOP_N], order[LATE_INTERACTION_TOP_N:]
        scores = [0.0] * len(hits)
        passages = [(titles[place], hits[place].text) for place in top]
        matched = matches(self._embedder, question.text, passages, weights)
        wholes, windows = [match.whole for match in matched], [match.window for match in matched]
        best_whole, best_window = max(wholes, default=0.0), max(windows, default=0.0)
        for place, whole, window in zip(top, wholes, windows, strict=True):
            own = self._second_stage(features[place], _ratio(whole, best_whole), _ratio(window, best_window))
            scores[place] = (own + trust * fused[place]) / (1 + trust)
        # The rest follow in the order of the first stage.
        lowest = min((scores[place] for place in top), default=0.0)
        for place in rest:
            scores[place] = lowest * _ratio(first[place], first[rest[0]]) * 0.99
        return scores

    def _first_stage(
        self, question: Question, hits: Sequence[Hit], titles: Sequence[str], weights: TermWeights
    ) -> list[_Features]:
        bigrams = set(pairwise(question.tokens))
        best_cosine = max((hit.dense or 0.0 for hit in hits), default=0.0)
        best_bm25 = max((hit.lexical or 0.0 for hit in hits), default=0.0)
        features = []
        title_tokens = {title: tokenize(title) for title in dict.fromkeys(titles)}
        for hit, title in zip(hits, titles, strict=True):
            sentences = sentence_tokens(hit.text)
            passage = list(chain(title_tokens[title], *sentences))
            cosine = _ratio(max(0.0, hit.dense or 0.0), best_cosine)
            bm25 = _ratio(hit.lexical or 0.0, best_bm25)
            shared = _ratio(len(bigrams.intersection(pairwise(passage))), len(bigrams))
            sentence = max((coverage(weights, tokens) for tokens in sentences), default=0.0)
            terms = coverage(weights, passage)
            score = (
                WEIGHTS.cosine * cosine
                + WEIGHTS.bm25 * bm25
                + WEIGHTS.terms * terms
                + WEIGHTS.bigrams * shared
                + WEIGHTS.sentence * sentence
            )
            features.append(_Features(score, bm25, shared, sentence))
        return features

    def _second_stage(self, features: _Features, whole: float, window: float) -> float:
        weighted = (
            (WEIGHTS.late_passage, whole),
            (WEIGHTS.late_window, window),
            (WEIGHTS.late_bm25, features.bm25),
            (WEIGHTS.late_bigrams, features.bigrams),
            (WEIGHTS.late_sentence, features.sentence),
        )
        return sum(weight * value for weight, value in weighted) / sum(weight for weight, _ in weighted)


@dataclass(frozen=True, slots=True)
class _Features:
    """A passage's score in the first stage, and the features that the second stage reuses; from 0 to 1."""

    score: float
    bm25: float
    bigrams: float
    sentence: float


def _share_alone(hits: Sequence[Hit]) -> float:
    """The share of hits that are the only hit of their paper; 0 to 1."""
    of_paper = Counter(hit.paper.id for hit in hits)
    return _ratio(sum(count == 1 for count in of_paper.values()), len(hits))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


class ReaderReranker:
    """Reranks another reranker's best passages with a reader of question and passage: slower, but better."""

    name = "built in"

    def __init__(self, first: Reranker, reader: PassageReader) -> None:
        self.reads = first.reads
        self._first = first
        self._reader = reader

    def scores(self, question: Question, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """See protocols.Reranker. Raises ModelError."""
        first = self._first.scores(question, hits, weights)
        order = sorted(range(len(hits)), key=lambda place: -first[place])
        top, rest = order[:READ], order[READ:]
        read = self._reader.read(question.text, [passage_of(hits[place]) for place in top])
        scores = [0.0] * len(hits)
        for place, reading in zip(top, read, strict=True):
            matched = first[place] / first[top[0]] if first[top[0]] > 0 else 0.0
            own = SCORE_WEIGHT * matched + odds(reading.answers, question.numbers, hits[place].text) + MOST_ODDS
            scores[place] = own / (SCORE_WEIGHT + 2 * MOST_ODDS)
        lowest = min((scores[place] for place in top), default=0.0)
        for place in rest:  # in the order of the first reranker
            scores[place] = 0.99 * lowest * (first[place] / first[rest[0]] if first[rest[0]] > 0 else 0.0)
        return scores


def odds(read: float, numbers: frozenset[str], text: str) -> float:
    """A reader's log-odds, bounded by MOST_ODDS, less a penalty for the question's numbers that the text lacks."""
    missing = len(numbers.difference(tokenize(text))) / len(numbers) if numbers else 0.0
    return max(-MOST_ODDS, min(MOST_ODDS, read - WITHOUT_NUMBERS * missing))


def passage_of(hit: Hit) -> Passage:
    """The reader's input for a hit."""
    return Passage(above(hit.paper, hit.chunk.start, hit.chunk.end), hit.text)


def above(paper: Paper, start: int, end: int) -> str:
    """The reader's heading for the characters [start, end) of a paper: the title and the section."""
    return " · ".join(part for part in (paper.title, paper.sections.shown(start, end)) if part)
