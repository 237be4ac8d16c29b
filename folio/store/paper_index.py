"""The in-memory index of whole papers: their vectors, and BM25 over their words (paper_text.py).

It is built from the library on first use and after each change (`Library.papers_stamp`). A library has few papers, and
few questions ask for papers, so a search compares all vectors exactly and nothing is kept on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from folio.paper_text import paper_text
from folio.store.bm25_index import TantivyIndex
from folio.store.digests import text_hash
from folio.store.library import Library
from folio.store.rows import Passage, Stamp
from folio.types import Vectors

# One for each paper, in the order of PaperIndex.ids
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PaperIndex:
    """Whole papers, at one stamp of the library."""

    stamp: tuple[Stamp, int]
    ids: tuple[str, ...]  # of all papers, ordered by file name
    outdated: int  # the number of papers without a vector of their current text
    _with_vector: npt.NDArray[np.int64]  # positions in `ids` of the papers with a vector
    _vectors: Vectors  # their vectors, shape (n, dimension)
    _words: TantivyIndex  # its passages are papers, with their position as id

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
        """The BM25 score of the best papers, 0 for all others."""
        scores = np.zeros(len(self.ids))
        for place, score in self._words.search(query, most):
            scores[place] = score
        return scores

    @property
    def has_vectors(self) -> bool:
        return bool(len(self._with_vector))

    def cosines(self, vector: Vectors) -> Scores:
        """The cosine of each paper to a unit vector, NaN for a paper without a vector."""
        scores = np.full(len(self.ids), np.nan)
        if self.has_vectors:
            scores[self._with_vector] = self._vectors @ vector
        return scores
