"""Judges hits and citations against gold entries that are located in the papers' own pages.

The page numbers of a chunk are not trusted: a hit counts for a page only if its text is on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from folio.answer_types import Citation
from folio.evaluate.dataset import EvalSet, Gold, Question
from folio.evaluate.metrics import CitationResult
from folio.evaluate.quote_match import MIN_QUOTE_LENGTH, fold_quote, holds, weight
from folio.evaluate.source_pages import SourcePages
from folio.store.library import Library
from folio.types import Chunk, Paper

Ranks = dict[str, tuple[int | None, ...]]  # by unit


@dataclass(frozen=True, slots=True)
class GoldProblem:
    """A gold entry that does not match its paper."""

    question: str  # its id
    text: str  # a sentence
    counted: bool  # whether the question still counts, by its correct entries


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an answer, located in the paper's own pages."""

    paper: str  # its id
    pages: frozenset[int] = frozenset()  # each of them counts as correct
    quote: str = ""  # folded
    span: tuple[int, int] | None = None  # in the text of a document


@dataclass(frozen=True, slots=True)
class Targets:
    """What a question needs: one place from every group."""

    groups: tuple[tuple[Place, ...], ...] = ()
    units: tuple[str, ...] = ()  # the units in which every group can be judged: chunk, page, paper


class RelevanceJudge:
    """Judges the results from one library for the questions of one set."""

    def __init__(self, evalset: EvalSet, library: Library) -> None:
        self._library = library
        self._is_text = bool(evalset.documents)
        self.source_pages = SourcePages(library, {document.id: document.text for document in evalset.documents})
        self.papers = _by_name(library)
        self._texts: dict[int, str] = {}  # chunk id -> folded
        self._matches: dict[tuple[int, Place], tuple[bool, bool]] = {}

    def targets(self, question: Question) -> tuple[Targets, list[GoldProblem]]:
        """A question's targets and the problems of its gold entries; no targets if a group has no valid entry."""
        located = {gold: self._place(gold) for gold in question.gold}
        groups = tuple(tuple(place for gold in group if (place := located[gold][0])) for group in question.gold_groups)
        counted = all(groups)
        problems = [GoldProblem(question.id, text, counted) for _, text in located.values() if text]
        return Targets(groups, self._units(groups)) if counted and groups else Targets(), problems

    def _place(self, gold: Gold) -> tuple[Place | None, str]:
        """The place of a gold entry, and its problem or ""."""
        paper = self.papers.get(gold.paper)
        if paper is None:
            return None, f"The index has no paper {gold.paper}."
        if gold.start is not None:
            return Place(paper.id, frozenset({1}), span=(gold.start, gold.start + len(gold.quote))), ""
        if not gold.quote:
            return Place(paper.id, frozenset({gold.page} if gold.page else ())), ""
        quote = fold_quote(gold.quote)
        if weight(quote) < MIN_QUOTE_LENGTH:
            return None, f"The quote has fewer than {MIN_QUOTE_LENGTH} letters and digits: {gold.quote!r}."
        pages = self.source_pages.pages_with(paper, quote)
        if not pages:
            return None, f"The quote is on no page of {gold.paper}: {gold.quote!r}."
        wrong = gold.page is not None and gold.page not in pages
        right = ", ".join(map(str, sorted(pages)))
        text = f"The quote is on p. {right} of {gold.paper}, not on p. {gold.page}." if wrong else ""
        return Place(paper.id, pages, quote), text

    def _units(self, groups: tuple[tuple[Place, ...], ...]) -> tuple[str, ...]:
        in_chunks = all(any(place.quote or place.span for place in places) for places in groups)
        on_pages = not self._is_text and all(any(place.pages for place in places) for places in groups)
        return (*(("chunk",) if in_chunks else ()), *(("page",) if on_pages else ()), "paper")

    def ranks(self, targets: Targets, ids: Sequence[int]) -> Ranks:
        """By unit, the rank (from 1) of the first chunk that has each target; each paper is ranked once."""
        chunks = self._library.chunks(ids)
        order = self.paper_order(ids)
        ranks: Ranks = {}
        for unit in targets.units:
            first_ranks: list[int | None] = []
            for places in targets.groups:
                if unit == "paper":
                    matches = [rank for place in places if (rank := rank_of(order, place.paper))]
                else:
                    of_page = unit == "page"
                    matches = [
                        rank
                        for rank, id in enumerate(ids, 1)
                        if id in chunks and any(self._match(chunks[id], place)[of_page] for place in places)
                    ]
                first_ranks.append(min(matches, default=None))
            ranks[unit] = tuple(first_ranks)
        return ranks

    def _match(self, chunk: Chunk, place: Place) -> tuple[bool, bool]:
        """Whether a chunk contains a place's quote or span, and whether its text is on a page of the place."""
        if chunk.paper_id != place.paper:
            return False, False
        if (chunk.id, place) not in self._matches:
            if chunk.id not in self._texts:
                self._texts[chunk.id] = fold_quote(self._library.text(chunk.paper_id, chunk.start, chunk.end))
            text = self._texts[chunk.id]
            if place.span:
                start, end = place.span
                passage = 2 * (min(end, chunk.end) - max(start, chunk.start)) >= end - start
            else:
                passage = holds(text, place.quote)
            (paper,) = self._library.papers_by_id([chunk.paper_id])
            on_page = any(self.source_pages.contains_part(paper, page, text) for page in sorted(place.pages))
            self._matches[chunk.id, place] = passage, on_page
        return self._matches[chunk.id, place]

    def paper_order(self, ids: Sequence[int]) -> list[str]:
        """Paper ids, each once, in the order of their best hits."""
        chunks = self._library.chunks(ids)
        return list(dict.fromkeys(chunks[id].paper_id for id in ids if id in chunks))

    def is_shown(self, citations: Sequence[Citation], targets: Targets) -> bool | None:
        """Whether the quotes of an answer contain a place of every group: a whole span, or at least 60 % of a quote.

        None if a group has neither a span nor a quote.
        """
        if "chunk" not in targets.units:
            return None
        by_paper: dict[str, str] = {}
        for quote in citations:
            by_paper[quote.paper.id] = f"{by_paper.get(quote.paper.id, '')} {quote.quote}"
        folded = {paper: fold_quote(text) for paper, text in by_paper.items()}

        def inside(place: Place) -> bool:
            if place.span:
                start, end = place.span
                return any(q.paper.id == place.paper and q.start <= start and end <= q.end for q in citations)
            return bool(place.quote) and holds(folded.get(place.paper, ""), place.quote)

        return all(any(map(inside, places)) for places in targets.groups)

    def check_citation(self, citation: Citation, targets: Targets) -> CitationResult:
        """Check a citation. It is right if it names a gold page and its quote is on it."""
        paper, page = citation.paper, citation.page
        gold = any(paper.id == place.paper and page in place.pages for places in targets.groups for place in places)
        right = gold and self.source_pages.contains_part(paper, page, fold_quote(citation.quote))
        return CitationResult(right, self.source_pages.is_verbatim(paper, page, citation.quote))


def _by_name(library: Library) -> dict[str, Paper]:
    """Papers by each of their file names, and by the last part of the name if it is unambiguous."""
    papers = {paper.id: paper for paper in library.papers()}
    files = [(file.name, papers[file.sha256]) for file in library.files()]
    last: dict[str, set[str]] = {}
    for name, paper in files:
        last.setdefault(Path(name).name, set()).add(paper.id)
    short = {Path(name).name: paper for name, paper in files if len(last[Path(name).name]) == 1}
    return {**short, **dict(files)}


def rank_of(order: Sequence[str], paper: str) -> int | None:
    """A paper's rank in this order, from 1; None if it is not in it."""
    return order.index(paper) + 1 if paper in order else None
