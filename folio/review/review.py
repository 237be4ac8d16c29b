"""A review of papers: what each contributes in its own words, by theme; what they answer; agreements and differences.

Nothing is summarised: every sentence of a paper is a quote with its page. A model may only name the themes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from folio.answer_types import Quote
from folio.deep.types import Agreement, Difference
from folio.errors import UsageError
from folio.papers.model import Paper, Progress
from folio.protocols import Embedder
from folio.review.comparing import compare, left_open, open_of
from folio.review.contributions import Contribution, Point, contribution
from folio.review.headings import NameTheme
from folio.review.themes import themes
from folio.table.cell import Column
from folio.table.finder import CellFinder
from folio.text import fold, one_line, tokenize

MOST_PAPERS, MOST_QUESTIONS = 1_000, 10
READING, COMPARING = "Reading papers", "Comparing papers"  # labels of the progress
# Share of a question's words that a few sentences of a paper must have to be read for it: of 72 cells, 51 have fewer,
# and none of these had an answer. Reading takes .6 s a cell, and most papers of a review answer nothing (LOG.md).
_LEAST_SAID = 0.45
_SAME_WORDS = 0.85  # share of all words of two quotes that both have


@dataclass(frozen=True, slots=True)
class Entry:
    """A paper with its points, in reading order."""

    paper: Paper
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Theme:
    """Papers on one subject. heading: "" where a review has no themes."""

    heading: str
    entries: tuple[Entry, ...]
    by_model: str = ""  # the model that wrote the heading; "" for words of the quotes


@dataclass(frozen=True, slots=True)
class Focus:
    """A question that was put to each paper: the quotes that answer it, and the papers that do not, as far as found."""

    question: str
    quotes: tuple[Quote, ...]
    without: tuple[Paper, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """What a report on these papers says, before it is written as Markdown, for Word or on the page."""

    title: str
    themes: tuple[Theme, ...]
    focus: tuple[Focus, ...]
    agreements: tuple[Agreement, ...]
    differences: tuple[Difference, ...]
    left_open: tuple[tuple[Quote, ...], ...]
    silent: tuple[Paper, ...]  # no sentence of which says by itself what it contributes

    @property
    def papers(self) -> tuple[Paper, ...]:
        """Every paper, in the order of the review."""
        shown = (entry.paper for theme in self.themes for entry in theme.entries)
        return tuple({paper.id: paper for paper in (*shown, *self.silent)}.values())


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Makes reviews of papers of one library. For one thread, as its finder is."""

    read: Callable[[Paper], str]  # a paper's text
    meaning: Embedder  # the built-in embedder
    finder: CellFinder | None = None  # None answers no questions
    name_theme: NameTheme | None = None  # a model that writes headings

    def review(
        self,
        papers: Iterable[Paper],
        title: str,
        questions: Sequence[Column] = (),
        progress: Progress = lambda label, done, total: None,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> Review:
        """Raises UsageError without a paper and for too many, ModelError, StoreDamaged, what check_cancelled raises."""
        chosen = distinct(papers)
        _require_few(chosen, questions)
        read: list[Contribution] = []
        open_quotes: list[Quote] = []
        found: dict[int, list[Quote]] = {place: [] for place in range(len(questions))}
        for done, paper in enumerate(chosen):
            check_cancelled()
            progress(READING, done, len(chosen))
            text = self.read(paper)
            read.append(contribution(paper, text, self.meaning))
            open_quotes += open_of(paper, text)
            if self.finder:
                for place, cell in self.finder.fill(paper, questions, check_cancelled, least_said=_LEAST_SAID):
                    found[place] += [finding.quote for finding in cell.findings]
        progress(READING, len(chosen), len(chosen))
        check_cancelled()
        progress(COMPARING, 0, 1)
        entries, silent = _without_repetitions(read)
        shown = {point.quote for each in entries for point in each.points}
        agreements, differences = compare(read)
        return Review(
            title,
            self._themes(entries, check_cancelled),
            tuple(_focus(column, found[place], chosen) for place, column in enumerate(questions)),
            agreements,
            differences,
            left_open(open_quotes, read, self.meaning, shown),
            tuple(silent),
        )

    def _themes(self, read: Sequence[Contribution], check_cancelled: Callable[[], None]) -> tuple[Theme, ...]:
        made = []
        for heading, group in themes(read, self.meaning):
            check_cancelled()
            theme = Theme(heading, tuple(Entry(each.paper, each.points) for each in group))
            quotes = [point.quote for entry in theme.entries for point in entry.points]
            if heading and self.name_theme and (named := self.name_theme(quotes)):
                theme = replace(theme, heading=named.heading, by_model=named.model)
            made.append(theme)
        return tuple(made)


def distinct(papers: Iterable[Paper]) -> list[Paper]:
    """The papers without copies, and of several versions of one work the newest, in their order."""
    works: dict[str, Paper] = {}
    for paper in papers:
        if paper.is_copy:
            continue
        work = fold(paper.title) or paper.id
        known = works.get(work)
        if known is None or (paper.year or 0, paper.arxiv, paper.id) > (known.year or 0, known.arxiv, known.id):
            works[work] = paper
    return list(works.values())


def _require_few(papers: Sequence[Paper], questions: Sequence[Column]) -> None:
    if not papers:
        raise UsageError("No paper was chosen for a review.", "Choose at least one.")
    if len(papers) > MOST_PAPERS:
        raise UsageError(f"{len(papers):,} papers are too many for a review.", f"Choose at most {MOST_PAPERS:,}.")
    if len(questions) > MOST_QUESTIONS:
        raise UsageError(f"{len(questions)} questions are too many for a review.", f"Ask at most {MOST_QUESTIONS}.")


def _without_repetitions(read: Sequence[Contribution]) -> tuple[list[Contribution], list[Paper]]:
    """The papers with points, without a point that an earlier paper has in nearly the same words; and the others."""
    seen: list[frozenset[str]] = []
    kept: list[Contribution] = []
    silent: list[Paper] = []
    for each in read:
        points = []
        for point in each.points:
            words = frozenset(tokenize(one_line(point.quote.quote)))
            if all(len(words & other) < _SAME_WORDS * len(words | other) for other in seen):
                seen.append(words)
                points.append(point)
        if points:
            kept.append(replace(each, points=tuple(points)))
        else:
            silent.append(each.paper)
    return kept, silent


def _focus(column: Column, quotes: Sequence[Quote], papers: Sequence[Paper]) -> Focus:
    answered = {quote.paper.id for quote in quotes}
    without = tuple(paper for paper in papers if paper.id not in answered)
    return Focus(column.question or column.name, tuple(quotes), without)
