"""Judges hits and citations against gold entries that are located in the papers' own pages.

The page numbers of a chunk are not trusted: a hit counts for a page only if its text is on it.

Papers are read again from their files, so that gold entries and citations are checked without trusting the index. A
page is read in MuPDF's order and, if needed, in Folio's reading order, because only the latter keeps the words of a
table row together. Text found in either version is on the page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from folio.answer_types import Citation
from folio.errors import PaperError
from folio.evaluate.dataset import EvalSet, Gold, Question
from folio.evaluate.metrics import CitationResult
from folio.papers.model import Chunk, Paper
from folio.pdf.mupdf import pymupdf, unlock
from folio.pdf.reader import read_pdf
from folio.store.library import Library
from folio.system.files import sha256_file
from folio.text import fold

# A text contains a quote if it has its first or last part of this size: a chunk's edge may cut the quote.
QUOTE_PART = 0.6
# Letters and digits that a quote needs: shorter ones occur in many places by chance.
MIN_QUOTE_LENGTH = 20
# A Chinese character, kana or Hangul syllable counts as this many letters.
_WIDE = 3
# A chunk is on a page if they share a run of this many letters and digits.
SHARED_RUN = 60

_BROKEN_WORD = re.compile(r"-\s*\n\s*")
# White space, hyphens, and placeholders for glyphs without a Unicode character
_NO_INK = re.compile(r"[\s\u00ad\u2010-\u2012\ufffd-\uffff-]+")


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
        self.papers = papers_by_file(library)
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
        in_paper = [place for places in targets.groups for place in places if place.paper == paper.id]
        gold = any(page in place.pages for place in in_paper)
        right = gold and self.source_pages.contains_part(paper, page, fold_quote(citation.quote))
        faithful = self.source_pages.is_verbatim(paper, page, citation.quote)
        return CitationResult(right, faithful, bool(in_paper) if targets.groups else None)


def papers_by_file(library: Library) -> dict[str, Paper]:
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


def fold_quote(text: str) -> str:
    """The letters and digits of a text in any script, case-folded, with words hyphenated across lines rejoined.

    Ligatures become letters. Accents are dropped, because many files store them as separate characters.
    """
    return unicodedata.normalize("NFC", fold(_BROKEN_WORD.sub("", text)))


def weight(folded: str) -> int:
    """The number of letters in a folded text; each wide character counts as three."""
    return sum(_WIDE if unicodedata.east_asian_width(char) == "W" else 1 for char in folded)


def holds(folded: str, quote: str) -> bool:
    """Whether a folded text contains a folded quote, or its first or last 60 %."""
    part = max(1, round(QUOTE_PART * len(quote)))
    return bool(quote) and (quote in folded or quote[:part] in folded or quote[-part:] in folded)


def stands_on(folded: str, page: str) -> bool:
    """Whether a folded text shares a run of 60 characters with a folded page; a shorter text must be there whole."""
    run = min(SHARED_RUN, len(folded))
    return bool(run) and any(folded[at : at + run] in page for at in range(len(folded) - run + 1))


def pages_with(quote: str, pages: Sequence[str]) -> frozenset[int]:
    """The pages, from 1, that contain a folded quote; both pages if it crosses a page break."""
    numbers = {number for number, page in enumerate(pages, 1) if quote in page}
    if not numbers:
        for number, (page, following) in enumerate(pairwise(pages), 1):
            if quote in page + following:
                numbers |= {number, number + 1}
    return frozenset(numbers)


def is_verbatim(quote: str, page: str) -> bool:
    """Whether a quote is on a page with the same letters and punctuation in the same order.

    White space and hyphens are ignored, because a hyphen at a line's end may belong to the line break or to the word;
    so are glyphs without a Unicode character. NFKC turns ligatures into letters.
    """
    return bool(inked := _ink(quote)) and inked in _ink(page)


def _ink(text: str) -> str:
    return _NO_INK.sub("", unicodedata.normalize("NFKC", text))


PageTexts = tuple[str, ...]


class SourcePages:
    """The pages of one library's papers, read from their files."""

    def __init__(self, library: Library, documents: Mapping[str, str]) -> None:
        """documents: the texts of a plain text set by their paper's file name; each is one page."""
        self._library = library
        self._documents = documents
        self._paths: dict[str, list[Path]] = {}
        for file in library.files():
            self._paths.setdefault(file.sha256, []).append(Path(file.path))
        self._raw: dict[str, PageTexts] = {}
        self._reordered: dict[str, PageTexts] = {}
        self._folded: dict[tuple[str, bool], PageTexts] = {}
        self.missing: list[str] = []  # missing or changed files; the indexed pages are used instead

    def pages_with(self, paper: Paper, quote: str) -> frozenset[int]:
        """The pages, from 1, that contain a folded quote."""
        by_version = (pages_with(quote, pages) for pages in self._folded_versions(paper))
        return next(filter(None, by_version), frozenset())

    def contains_part(self, paper: Paper, page: int, folded: str) -> bool:
        """Whether a run of a folded text is on a page. See stands_on."""
        return any(stands_on(folded, _page(pages, page)) for pages in self._folded_versions(paper))

    def is_verbatim(self, paper: Paper, page: int, quote: str) -> bool:
        """Whether a quote is verbatim on a page. See is_verbatim."""
        return any(is_verbatim(quote, _page(read(paper), page)) for read in (self._raw_pages, self._ordered_pages))

    def _folded_versions(self, paper: Paper) -> Iterator[PageTexts]:
        """The folded pages in each order; the second is computed only if it is needed."""
        for ordered in (False, True):
            key = (paper.id, ordered)
            if key not in self._folded:
                pages = self._ordered_pages(paper) if ordered else self._raw_pages(paper)
                self._folded[key] = tuple(map(fold_quote, pages))
            yield self._folded[key]

    def _raw_pages(self, paper: Paper) -> PageTexts:
        if paper.id not in self._raw:
            self._raw[paper.id] = self._read(paper)
        return self._raw[paper.id]

    def _read(self, paper: Paper) -> PageTexts:
        if paper.file in self._documents:
            return (self._documents[paper.file],)
        path = self._path(paper)
        if path is None:
            self.missing.append(paper.file)
            return self._indexed_pages(paper)
        document = pymupdf().open(path, filetype="pdf")
        try:
            unlock(document)
            return tuple(page.get_text("text") for page in document)
        finally:
            document.close()

    def _ordered_pages(self, paper: Paper) -> PageTexts:
        if paper.id not in self._reordered:
            path = None if paper.file in self._documents else self._path(paper)
            try:
                pages = tuple(page.text for page in read_pdf(path).pages) if path else self._raw_pages(paper)
            except PaperError:  # it was readable when it was ingested; use MuPDF's order
                pages = self._raw_pages(paper)
            self._reordered[paper.id] = pages
        return self._reordered[paper.id]

    def _path(self, paper: Paper) -> Path | None:
        """A file that exists and is unchanged since it was ingested."""
        existing = (path for path in self._paths.get(paper.id, ()) if path.is_file())
        return next((path for path in existing if sha256_file(path) == paper.id), None)

    def _indexed_pages(self, paper: Paper) -> PageTexts:
        spans = (paper.pages.bounds(number, paper.length) for number in range(1, paper.page_count + 1))
        return tuple(self._library.text(paper.id, start, end) for start, end in spans)


def _page(pages: PageTexts, number: int) -> str:
    return pages[number - 1] if 1 <= number <= len(pages) else ""
