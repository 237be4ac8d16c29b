"""Gold entries found in the papers' own pages, and hits and citations judged by them.

What a chunk says of its pages is not believed: a hit counts for a page when its text stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from folio.evaluate.dataset import EvalSet, Gold, Question
from folio.evaluate.metrics import Cited
from folio.evaluate.quote_match import LEAST_QUOTE, fold, holds, weight
from folio.evaluate.source_pages import Originals
from folio.store.library import Library
from folio.types import Chunk, Citation, Paper

Ranks = dict[str, tuple[int | None, ...]]  # by unit


@dataclass(frozen=True, slots=True)
class Fault:
    """A gold entry that is not as it says."""

    question: str  # its id
    text: str  # a sentence
    counted: bool  # the question counts all the same, by what is right in it


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer stands, as it was found in the paper's own pages."""

    paper: str  # its id
    pages: frozenset[int] = frozenset()  # any of them is right
    quote: str = ""  # folded
    span: tuple[int, int] | None = None  # in the text of a document


@dataclass(frozen=True, slots=True)
class Needs:
    """What a question needs: each of these things, of which any place will do."""

    things: tuple[tuple[Place, ...], ...] = ()
    units: tuple[str, ...] = ()  # in which every thing can be told: chunk, page, paper


class RelevanceJudge:
    """Judges what one library found for the questions of one set."""

    def __init__(self, evalset: EvalSet, library: Library) -> None:
        self._library = library
        self._is_text = bool(evalset.documents)
        self.originals = Originals(library, {document.id: document.text for document in evalset.documents})
        self.papers = _by_name(library)
        self._texts: dict[int, str] = {}  # chunk id -> folded
        self._matches: dict[tuple[int, Place], tuple[bool, bool]] = {}

    def needs(self, question: Question) -> tuple[Needs, list[Fault]]:
        """No things for a question that cannot be counted, as one of them has no gold entry that holds."""
        found = {gold: self._place(gold) for gold in question.gold}
        things = tuple(tuple(place for gold in group if (place := found[gold][0])) for group in question.needs)
        counted = all(things)
        faults = [Fault(question.id, text, counted) for _, text in found.values() if text]
        return Needs(things, self._units(things)) if counted and things else Needs(), faults

    def _place(self, gold: Gold) -> tuple[Place | None, str]:
        """Where an entry stands, and what is wrong with it."""
        paper = self.papers.get(gold.paper)
        if paper is None:
            return None, f"The index has no paper {gold.paper}."
        if gold.start is not None:
            return Place(paper.id, frozenset({1}), span=(gold.start, gold.start + len(gold.quote))), ""
        if not gold.quote:
            return Place(paper.id, frozenset({gold.page} if gold.page else ())), ""
        quote = fold(gold.quote)
        if weight(quote) < LEAST_QUOTE:
            return None, f"Its quote has fewer than {LEAST_QUOTE} letters and digits: {gold.quote!r}."
        pages = self.originals.pages_with(paper, quote)
        if not pages:
            return None, f"Its quote stands on no page of {gold.paper}: {gold.quote!r}."
        wrong = gold.page is not None and gold.page not in pages
        stands = ", ".join(map(str, sorted(pages)))
        text = f"Its quote stands on p. {stands} of {gold.paper} and not on p. {gold.page}." if wrong else ""
        return Place(paper.id, pages, quote), text

    def _units(self, things: tuple[tuple[Place, ...], ...]) -> tuple[str, ...]:
        in_chunks = all(any(place.quote or place.span for place in places) for places in things)
        on_pages = not self._is_text and all(any(place.pages for place in places) for places in things)
        return (*(("chunk",) if in_chunks else ()), *(("page",) if on_pages else ()), "paper")

    def ranks(self, needs: Needs, ids: Sequence[int]) -> Ranks:
        """The rank, from 1, of the first of these chunks that has each thing, by unit; of papers, each counts once."""
        chunks = self._library.chunks(ids)
        order = self.paper_order(ids)
        ranks: Ranks = {}
        for unit in needs.units:
            found: list[int | None] = []
            for places in needs.things:
                if unit == "paper":
                    known = [rank for place in places if (rank := rank_of(order, place.paper))]
                else:
                    of_page = unit == "page"
                    known = [
                        rank
                        for rank, id in enumerate(ids, 1)
                        if id in chunks and any(self._match(chunks[id], place)[of_page] for place in places)
                    ]
                found.append(min(known, default=None))
            ranks[unit] = tuple(found)
        return ranks

    def _match(self, chunk: Chunk, place: Place) -> tuple[bool, bool]:
        """Whether a chunk holds the passage of a place, and whether it stands on a page of it: by its text alone."""
        if chunk.paper_id != place.paper:
            return False, False
        if (chunk.id, place) not in self._matches:
            if chunk.id not in self._texts:
                self._texts[chunk.id] = fold(self._library.text(chunk.paper_id, chunk.start, chunk.end))
            text = self._texts[chunk.id]
            if place.span:
                start, end = place.span
                passage = 2 * (min(end, chunk.end) - max(start, chunk.start)) >= end - start
            else:
                passage = holds(text, place.quote)
            (paper,) = self._library.papers_by_id([chunk.paper_id])
            on_page = any(self.originals.stands_on(paper, page, text) for page in sorted(place.pages))
            self._matches[chunk.id, place] = passage, on_page
        return self._matches[chunk.id, place]

    def paper_order(self, ids: Sequence[int]) -> list[str]:
        """The ids of papers, each once, in the order of its best hit."""
        chunks = self._library.chunks(ids)
        return list(dict.fromkeys(chunks[id].paper_id for id in ids if id in chunks))

    def cited(self, citation: Citation, needs: Needs) -> Cited:
        """A citation is right when the page that it names is a gold page and its quote stands there."""
        paper, page = citation.paper, citation.page
        gold = any(paper.id == place.paper and page in place.pages for places in needs.things for place in places)
        right = gold and self.originals.stands_on(paper, page, fold(citation.quote))
        return Cited(right, self.originals.quoted(paper, page, citation.quote))


def _by_name(library: Library) -> dict[str, Paper]:
    """Every paper by each name of its files, and by the last part of it where that is one paper's alone."""
    papers = {paper.id: paper for paper in library.papers()}
    files = [(file.name, papers[file.sha256]) for file in library.files()]
    last: dict[str, set[str]] = {}
    for name, paper in files:
        last.setdefault(Path(name).name, set()).add(paper.id)
    short = {Path(name).name: paper for name, paper in files if len(last[Path(name).name]) == 1}
    return {**short, **dict(files)}


def rank_of(order: Sequence[str], paper: str) -> int | None:
    return order.index(paper) + 1 if paper in order else None
