"""Which passages a search may return: those of chosen sections, and references or licences only if they are asked for.

The indexes know papers, but no sections. So what they find is looked at, and they are searched deeper until enough is
left (`deep_enough`): a filter never leaves a search with less than the library has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from folio.paper_versions import is_superseded
from folio.sections import KINDS, NOT_EVIDENCE, Kind, PaperSection, Spans, overlap
from folio.store.library import Library
from folio.text import plain_words
from folio.types import Chunk

if TYPE_CHECKING:
    from folio.search.question import Question

Scored = list[tuple[int, float]]  # (chunk id, score), best first


@dataclass(frozen=True)
class SectionFilter:
    """The sections that someone asks for: by kind ("methods") or by words of their titles ("threats to validity").

    A section fits if one of `wanted` does; one that lies in it fits too.
    """

    wanted: tuple[str, ...]

    def chooses(self, section: PaperSection) -> bool:
        return any(_fits(section, words) for words in self._words)

    @cached_property
    def _words(self) -> tuple[tuple[Kind | None, frozenset[str]], ...]:
        return tuple((kind_named(wanted), frozenset(plain_words(wanted))) for wanted in self.wanted)


def _fits(section: PaperSection, wanted: tuple[Kind | None, frozenset[str]]) -> bool:
    kind, words = wanted
    if kind is not None:
        return section.kind == kind
    return bool(words) and bool(section.level) and words <= set(plain_words(section.title))


def kind_named(word: str) -> Kind | None:
    """The kind of this name, in the singular or the plural; None if there is none."""
    wanted = word.strip().casefold()
    return next((kind for kind in KINDS if wanted.rstrip("s") == kind.rstrip("s")), None)


@dataclass
class CandidateFilter:
    """Says which chunks may be found for one question. Reads each chunk and each paper once."""

    library: Library
    sections: SectionFilter | None
    apart: frozenset[Kind]  # the kinds that are no evidence for this question
    hidden: frozenset[str] = frozenset()  # ids of papers that are not searched
    newest_only: bool = False  # whether papers are left out of which there is a newer version
    chunks: dict[int, Chunk] = field(default_factory=dict)  # all that were read
    _spans: dict[str, tuple[Spans | None, Spans]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        library: Library,
        question: Question,
        sections: SectionFilter | None,
        hidden: frozenset[str] = frozenset(),
        newest_only: bool = False,
    ) -> CandidateFilter:
        """sections: where to search; what they name is searched even if the question does not ask for it.

        hidden: ids of papers that are not searched. newest_only: leave out papers of which the library has a newer
        version.
        """
        apart = frozenset[Kind]() if sections else NOT_EVIDENCE - question.kinds
        return cls(library, sections, apart, hidden, newest_only)

    def allowed(self, ids: Iterable[int]) -> set[int]:
        """Those of these chunks that may be found. Chunks that the library does not have are kept."""
        ids = list(ids)
        self.chunks |= self.library.chunks(chunk for chunk in ids if chunk not in self.chunks)
        self._read_papers({self.chunks[id].paper_id for id in ids if id in self.chunks} - self._spans.keys())
        return {id for id in ids if id not in self.chunks or self._allows(self.chunks[id])}

    def _read_papers(self, ids: set[str]) -> None:
        for paper in self.library.papers_by_id(ids):
            if self.newest_only and is_superseded(paper):
                self.hidden |= {paper.id}
            chosen = paper.sections.spans(self.sections.chooses) if self.sections else None
            self._spans[paper.id] = chosen, paper.sections.spans_of_kinds(self.apart)

    def _allows(self, chunk: Chunk) -> bool:
        """Whether its paper is searched, and most of it lies in the chosen sections and not in what is apart."""
        if chunk.paper_id in self.hidden:
            return False
        chosen, apart = self._spans.get(chunk.paper_id, (None, ()))
        half = (chunk.end - chunk.start) / 2
        is_chosen = chosen is None or overlap(chosen, chunk.start, chunk.end) > half
        return is_chosen and overlap(apart, chunk.start, chunk.end) <= half


def deep_enough(search: Callable[[int], Scored], wanted: int, candidates: CandidateFilter, first: Scored) -> Scored:
    """The best `wanted` results that may be found, or all of them if there are fewer.

    search: the best results of an index, as many as it is asked for; fewer if it has no more. first: its best results,
    `first_depth` of them: they were looked at together with those of other indexes, to read the library once.
    """
    depth, found = first_depth(wanted), first
    while True:
        allowed = candidates.allowed(chunk for chunk, _ in found)
        kept = [pair for pair in found if pair[0] in allowed]
        if len(kept) >= wanted or len(found) < depth:
            return kept[:wanted]
        depth *= 2
        found = search(depth)


def first_depth(wanted: int) -> int:
    """How many results to look at first: some may not be found."""
    return 2 * wanted
