"""A review as a document that reads well: what was read, the themes with their papers, and what stands between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from folio.answer_types import Quote
from folio.bibliography.document import Block, Run, heading, item, paragraph
from folio.bibliography.export import reference
from folio.papers.label import sure_year
from folio.papers.link import reader_link
from folio.papers.model import Paper
from folio.review.contributions import Point, PointKind
from folio.review.excerpts import reads_alone
from folio.review.review import Focus, Review, Theme
from folio.review.themes import OTHERS
from folio.shown_text import counted, name_line, plain_line, without_numbers
from folio.text import fold, one_line

_LEADS: dict[PointKind, str] = {
    "subject": "Subject:", "claim": "", "method": "Method:", "result": "Result:", "limits": "Limits:",
}  # fmt: skip
_AGREE, _DIFFER, _OPEN = "Where papers may agree", "Where papers differ", "What the papers leave open"
_NOT_SAID, _SILENT, _REFERENCES = "What none of the papers says", "Also read", "References"
_MOST_NAMED = 6  # papers in a sentence


@dataclass(frozen=True, slots=True)
class Citing:
    """How a review cites: the numbers of its papers, or their authors and years; and the address of Folio's page."""

    numbered: bool
    page: str = ""  # "" for links within the page


def report(review: Review, citing: Citing) -> list[Block]:
    """The blocks of a review; the first is its title."""
    return list(_Report(review, citing).blocks())


class _Report:
    def __init__(self, review: Review, citing: Citing) -> None:
        self._review = review
        self._citing = citing
        papers = review.papers
        if not citing.numbered:
            papers = tuple(sorted(papers, key=lambda paper: (_sort_name(paper), paper.year or 0, paper.id)))
        self._papers = papers
        self._numbers = {paper.id: number for number, paper in enumerate(papers, 1)}

    def blocks(self) -> Iterator[Block]:
        review = self._review
        yield heading(1, review.title)
        yield from self._opening()
        yield from chain.from_iterable(self._focus(each) for each in review.focus if each.quotes)
        yield from chain.from_iterable(map(self._theme, review.themes))
        yield from self._section(
            _AGREE,
            "Sentences by different authors that are close in meaning, and do not contradict each other by the rules"
            " that Folio has. Read both: close is not always the same.",
            [group.quotes for group in review.agreements],
        )
        yield from self._differences()
        yield from self._section(_OPEN, "In the words of the papers:", review.left_open)
        yield from self._not_said()
        if review.silent:
            yield heading(2, _SILENT)
            yield paragraph(Run("No sentence of these papers says by itself what they contribute."))
            yield from (item(Run(self._name(paper))) for paper in review.silent)
        yield heading(2, _REFERENCES)
        for paper in self._papers:
            number = (Run(f"{self._numbers[paper.id]}."),) if self._citing.numbered else ()
            yield item(*number, Run(reference(paper, [])))

    def _opening(self) -> Iterator[Block]:
        """What was read, and how to read it."""
        papers, named = self._review.papers, [theme for theme in self._review.themes if theme.heading]
        years = sorted(year for paper in papers if (year := sure_year(paper.metadata)) is not None)
        span = "" if not years else f" of {years[0]}" if years[0] == years[-1] else f" from {years[0]} to {years[-1]}"
        count = sum(theme.heading != OTHERS for theme in named)
        listed = f", in {counted(count, 'theme')}:" if count else "."
        yield paragraph(Run(f"This review covers {counted(len(papers), 'paper')}{span}{listed}"))
        yield from (item(Run(f"{theme.heading} ({counted(len(theme.entries), 'paper')})")) for theme in named)
        models = sorted({theme.by_model for theme in named if theme.by_model})
        by = f" Headings marked * are by {', '.join(models)}." if models else ""
        how = "Words in quotation marks are the papers' own, with their page. Folio chose and ordered them."
        yield paragraph(Run(how + by, "italic"))

    def _theme(self, theme: Theme) -> Iterator[Block]:
        yield heading(2, f"{theme.heading}{' *' * bool(theme.by_model)}" if theme.heading else "The papers")
        for entry in theme.entries:
            paper = entry.paper
            yield heading(3, name_line(paper.title or paper.file))
            by = self._by(paper)
            flag = (Run(f"{paper.flag.text}.", "bold"),) if paper.flag else ()
            if by or flag:
                yield paragraph(*((Run(by, "italic"),) if by else ()), *flag)
            points = (self._point(point, again=place > 0) for place, point in enumerate(entry.points))
            yield paragraph(*chain.from_iterable(points))

    def _point(self, point: Point, *, again: bool) -> Iterator[Run]:
        if lead := _LEADS[point.kind]:
            yield Run(lead, "italic")
        yield from self._quoted(point.quote, again=again)

    def _quoted(self, quote: Quote, *, again: bool = False) -> Iterator[Run]:
        """A quote with its citation, which is a link to its place. again: the paper was cited just before."""
        words = plain_line(quote.quote)
        yield Run(f"“{without_numbers(words) if self._citing.numbered else words}”")
        yield self._cited(quote, again=again)

    def _cited(self, quote: Quote, *, again: bool) -> Run:
        mark = quote.shown
        if again:
            mark = f"[p. {quote.page}]"
        elif self._citing.numbered:
            flag = f", {quote.paper.flag.mark}" if quote.paper.flag and quote.paper.flag.mark else ""
            mark = f"[{self._numbers[quote.paper.id]}{flag}, p. {quote.page}]"
        link = reader_link(self._citing.page, quote.paper.id, quote.page, quote.span)
        return Run(mark, link=link, is_citation=True)

    def _focus(self, focus: Focus) -> Iterator[Block]:
        yield heading(2, focus.question)
        alone = [quote for quote in focus.quotes if reads_alone(quote.quote)]
        yield from (item(*self._quoted(quote)) for quote in alone)
        if others := [quote for quote in focus.quotes if quote not in alone]:
            cited = (self._cited(quote, again=False) for quote in others)
            yield paragraph(Run("Answered too, in words that need what stands around them:"), *cited)
        if focus.without:
            named = ", ".join(map(self._name, focus.without[:_MOST_NAMED]))
            more = len(focus.without) - _MOST_NAMED
            rest = f" and {more} more" if more > 0 else ""
            yield paragraph(Run(f"No answer was found in {named}{rest}.", "italic"))

    def _section(self, title: str, lead: str, groups: Sequence[Sequence[Quote]]) -> Iterator[Block]:
        if groups:
            yield heading(2, title)
            yield paragraph(Run(lead))
            yield from (item(*chain.from_iterable(map(self._quoted, group))) for group in groups)

    def _differences(self) -> Iterator[Block]:
        if self._review.differences:
            yield heading(2, _DIFFER)
            for group in self._review.differences:
                some, others = (chain.from_iterable(map(self._quoted, side)) for side in (group.some, group.others))
                yield item(*some, Run("but", "italic"), *others)

    def _not_said(self) -> Iterator[Block]:
        unanswered = [focus.question for focus in self._review.focus if not focus.quotes]
        if unanswered:
            yield heading(2, _NOT_SAID)
            yield paragraph(Run("No answer was found in any of them to:"))
            yield from (item(Run(question)) for question in unanswered)

    def _name(self, paper: Paper) -> str:
        """A paper as it is named in a sentence."""
        if self._citing.numbered:
            return f"({self._numbers[paper.id]})"
        return one_line(paper.label or paper.cited_as)

    def _by(self, paper: Paper) -> str:
        """Authors and year, after a title; "" if neither is sure."""
        return "" if not paper.label or (paper.label.startswith("“") and not paper.year) else _without_title(paper)


def _without_title(paper: Paper) -> str:
    """The label of a paper; the year alone where a short title stands for its authors."""
    if paper.label.startswith("“"):
        return str(sure_year(paper.metadata) or "")
    return paper.label


def _sort_name(paper: Paper) -> str:
    """The family name of the first author, or else the title."""
    authors = paper.metadata.authors.value
    return fold(authors[0].family if authors else paper.title or paper.file)
