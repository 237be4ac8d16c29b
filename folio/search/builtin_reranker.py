"""The built-in reranker: words and late interaction, then a small reader. cross_encoder.py is the alternative."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from folio.papers.model import Hit, Paper, Passage
from folio.protocols import PassageReader, Reranker, TermWeights, TokenEmbedder
from folio.question.question import Question
from folio.search.late_interaction import matches
from folio.text import coverage, sentence_tokens, tokenize

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
