"""The built-in reranker: words and late interaction, added to the fused score. cross_encoder.py is the alternative."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from folio.protocols import TermWeights, TokenEmbedder
from folio.search.late_interaction import matches
from folio.text import coverage, sentence_tokens, tokenize
from folio.types import Hit

# Passages scored by late interaction. 20 gain a little more and take longer.
LATE_INTERACTION_TOP_N = 12
# In the second stage the fused score counts FUSED_WEIGHT * apart ** 4 times as much as this reranker's own; `apart` is
# the share of candidates that are the only ones of their papers. Words tell passages of one paper apart, which are
# about the same thing; between papers the embedding has seen more than the words.
FUSED_WEIGHT = 6.0
# In the first stage it counts at least this much.
LEAST_FUSED_WEIGHT = 1.0


@dataclass(frozen=True, slots=True)
class RerankWeights:
    """Weights of the features, each of them from 0 to 1.

    The first stage scores every candidate; its weights add up to 1. The second scores the best of them by late
    interaction; its weights count relative to their sum. Tuned once on a set of biomedical papers; see LOG.md.
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


DEFAULT_WEIGHTS = RerankWeights()


class BuiltinReranker:
    """Reranks with the built-in embedder alone, without a trained cross-encoder.

    A first stage scores every candidate from its retrieval scores and its words. The best LATE_INTERACTION_TOP_N are
    then scored by late interaction (late_interaction.py). `RerankWeights` lists the features of both stages. Both add
    the fused score, with a weight that follows the candidates (FUSED_WEIGHT): this reranker was not trained, and alone
    it ranks whole documents worse than the fused score does. LOG.md has the figures.
    """

    name = "built in"
    reads: int | None = None  # every candidate: the first stage is cheap

    def __init__(self, embedder: TokenEmbedder, weights: RerankWeights = DEFAULT_WEIGHTS) -> None:
        self._embedder = embedder
        self._weights = weights

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """See protocols.Reranker. Raises ModelError."""
        features = self._first_stage(question, hits, weights)
        trust = FUSED_WEIGHT * _apart(hits) ** 4
        largest = max((hit.score for hit in hits), default=0.0)
        fused = [_ratio(hit.score, largest) for hit in hits]
        first = [own.score + max(LEAST_FUSED_WEIGHT, trust) * more for own, more in zip(features, fused, strict=True)]
        order = sorted(range(len(hits)), key=lambda place: -first[place])
        top, rest = order[:LATE_INTERACTION_TOP_N], order[LATE_INTERACTION_TOP_N:]
        scores = [0.0] * len(hits)
        passages = [(hits[place].paper.title, hits[place].text) for place in top]
        found = matches(self._embedder, question, passages, weights)
        wholes, windows = [match.whole for match in found], [match.window for match in found]
        best_whole, best_window = max(wholes, default=0.0), max(windows, default=0.0)
        for place, whole, window in zip(top, wholes, windows, strict=True):
            own = self._second_stage(features[place], _ratio(whole, best_whole), _ratio(window, best_window))
            scores[place] = (own + trust * fused[place]) / (1 + trust)
        # The rest follow in the order of the first stage.
        lowest = min((scores[place] for place in top), default=0.0)
        for place in rest:
            scores[place] = lowest * _ratio(first[place], first[rest[0]]) * 0.99
        return scores

    def _first_stage(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[_Features]:
        bigrams = set(pairwise(tokenize(question)))
        best_cosine = max((hit.dense or 0.0 for hit in hits), default=0.0)
        best_bm25 = max((hit.lexical or 0.0 for hit in hits), default=0.0)
        own = self._weights
        found = []
        titles = {title: tokenize(title) for title in dict.fromkeys(hit.paper.title for hit in hits)}
        for hit in hits:
            sentences = sentence_tokens(hit.text)
            passage = list(chain(titles[hit.paper.title], *sentences))
            cosine = _ratio(max(0.0, hit.dense or 0.0), best_cosine)
            bm25 = _ratio(hit.lexical or 0.0, best_bm25)
            shared = _ratio(len(bigrams.intersection(pairwise(passage))), len(bigrams))
            sentence = max((coverage(weights, tokens) for tokens in sentences), default=0.0)
            terms = coverage(weights, passage)
            score = (
                own.cosine * cosine
                + own.bm25 * bm25
                + own.terms * terms
                + own.bigrams * shared
                + own.sentence * sentence
            )
            found.append(_Features(score, bm25, shared, sentence))
        return found

    def _second_stage(self, features: _Features, whole: float, window: float) -> float:
        own = self._weights
        weighted = (
            (own.late_passage, whole),
            (own.late_window, window),
            (own.late_bm25, features.bm25),
            (own.late_bigrams, features.bigrams),
            (own.late_sentence, features.sentence),
        )
        return sum(weight * value for weight, value in weighted) / sum(weight for weight, _ in weighted)


@dataclass(frozen=True, slots=True)
class _Features:
    """A passage's score in the first stage, and the features that the second uses again; each from 0 to 1."""

    score: float
    bm25: float
    bigrams: float
    sentence: float


def _apart(hits: Sequence[Hit]) -> float:
    """The share of hits that are the only ones of their papers; 0 to 1."""
    of_paper = Counter(hit.paper.id for hit in hits)
    return _ratio(sum(count == 1 for count in of_paper.values()), len(hits))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
