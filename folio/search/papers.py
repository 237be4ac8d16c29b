"""Ranks whole papers for a query by their words, their vectors and their best passages.

The index of papers is built from the library on first use and after each change (`Library.papers_stamp`). It stays in
memory and compares all vectors exactly: a library has few papers, and few questions ask for papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from folio.papers.metadata import paper_text
from folio.papers.model import Hit, Paper, PaperHit, Vectors
from folio.store.bm25 import TantivyIndex
from folio.store.library import Library
from folio.store.rows import Passage, Stamp, text_hash
from folio.text import tokenize

# One score for each paper, in the order of PaperIndex.ids
Scores = npt.NDArray[np.float64]
# Papers ranked by words, and passages that are searched for to rank their papers
MOST_BY_WORDS, PASSAGES = 1000, 100


@dataclass(frozen=True, slots=True)
class PaperIndex:
    """The vectors of whole papers, and BM25 over their words (metadata.paper_text), at one stamp of the library."""

    stamp: tuple[Stamp, int]
    ids: tuple[str, ...]  # of all papers, by file name
    outdated: int  # number of papers without a vector of their current text
    _with_vector: npt.NDArray[np.int64]  # positions in `ids` of the papers with a vector
    _vectors: Vectors  # of these papers, shape (n, dimension)
    _words: TantivyIndex  # a passage for each paper, with the paper's position as id

    @classmethod
    def of(cls, library: Library) -> PaperIndex:
        """Reads all papers. Raises StoreDamaged."""
        with library.reading() as stamp:
            stored = library.paper_vectors()
            ids: list[str] = []
            places: list[int] = []
            outdated = 0

            def passages() -> Iterator[Passage]:
                nonlocal outdated
                for place, paper in enumerate(library.papers()):
                    text = paper_text(paper.metadata, paper.sections)
                    ids.append(paper.id)
                    if text and paper.id in stored:
                        places.append(place)
                    outdated += bool(text) and (paper.id not in stored or stored[paper.id].text_hash != text_hash(text))
                    yield Passage(place, paper.id, "", text)

            words = TantivyIndex.create(stamp)
            words.add(passages(), stamp)
            vectors = [stored[ids[place]].vector for place in places]
            matrix = np.stack(vectors) if vectors else np.zeros((0, 1), np.float32)
            return cls(library.papers_stamp(), tuple(ids), outdated, np.asarray(places, np.int64), matrix, words)

    def bm25(self, query: str, most: int) -> Scores:
        """The BM25 scores of the `most` best papers, 0 for all others."""
        scores = np.zeros(len(self.ids))
        for place, score in self._words.search(query, most):
            scores[place] = score
        return scores

    @property
    def has_vectors(self) -> bool:
        return bool(len(self._with_vector))

    def cosines(self, vector: Vectors | None) -> Scores:
        """The cosine of each paper to a unit vector, NaN for a paper without a vector, or without the other one."""
        scores = np.full(len(self.ids), np.nan)
        if vector is not None:
            scores[self._with_vector] = self._vectors @ vector
        return scores


@dataclass(frozen=True, slots=True)
class PaperWeights:
    """The weight of each ranking. LOG.md has the measurement.

    Words count more than a paper's vector and a passage's vector (0.7 of its fused score) together: a paper with the
    query's words comes before papers that are only near the query.
    """

    words: float = 0.5
    vector: float = 0.1
    passages: float = 0.4


@dataclass(frozen=True, slots=True)
class PaperScores:
    """The scores of all papers of an index, in its order; 0 for a paper that a ranking did not find."""

    words: Scores  # BM25
    vector: Scores  # cosine; NaN for a paper without a vector
    passages: Scores  # fused scores (fusion.py), in [0, 1]

    def fused(self, weights: PaperWeights) -> Scores:
        """The weighted sum of the rankings, with words and vectors divided by their maximum, as in fusion.py.

        Passage scores are fused already, and are all low if no passage has the query's words: they stay as they are.
        """
        own: Scores = weights.words * _scaled(self.words) + weights.vector * _scaled(self.vector)
        return own + weights.passages * self.passages


def _scaled(scores: Scores) -> Scores:
    positive: Scores = np.maximum(np.nan_to_num(scores), 0.0)
    largest = float(positive.max(initial=0.0))
    return positive / (largest or 1.0)


def by_passages(index: PaperIndex, hits: Sequence[Hit]) -> Scores:
    """The score of each paper's best passage; 0 for a paper without a hit."""
    best: dict[str, float] = {}
    for hit in hits:
        best[hit.paper.id] = max(hit.score, best.get(hit.paper.id, 0.0))
    return np.array([best.get(id, 0.0) for id in index.ids])


def best_places(index: PaperIndex, scores: Scores, within: Collection[str] | None) -> list[int]:
    """The places of papers in the index, best first, ties by file. Only papers with a score, and `within`."""
    order = np.argsort(-scores, kind="stable").tolist()
    return [place for place in order if scores[place] > 0 and (within is None or index.ids[place] in within)]


def matched_words(query: str, paper: Paper) -> tuple[str, ...]:
    """The words of a query, as typed, that are in the paper's title, abstract, headings, authors or venue."""
    known = frozenset(tokenize(paper_text(paper.metadata, paper.sections)))
    typed = dict.fromkeys(word.strip(".,;:!?()[]\"'“”") for word in query.split())
    return tuple(word for word in typed if not known.isdisjoint(tokenize(word)))


def paper_hit(
    query: str, paper: Paper, place: int, fused: Scores, scores: PaperScores, best: Mapping[str, Hit]
) -> PaperHit:
    """A paper with the reasons for its rank. place: its place in the index. best: paper id -> the best passage."""
    cosine = scores.vector[place]
    return PaperHit(
        paper=paper,
        score=float(fused[place]),
        lexical=float(scores.words[place]) or None,
        dense=None if np.isnan(cosine) else float(cosine),
        words=matched_words(query, paper),
        passage=best.get(paper.id),
    )
