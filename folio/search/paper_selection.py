"""The papers and sections that a filter chooses from a library (paper_filter.py).

As a rule all papers are read and compared with it. Where there are too many (PaperStore.filters), those that have the
years and the authors are found by their fields; and papers of some years alone are not listed at all: their passages
are found by their year.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import overload

from folio.errors import NotKnown
from folio.paper_versions import newest
from folio.search.aliases import aliases_in
from folio.search.candidate_filter import SectionFilter, in_years
from folio.search.paper_filter import EVERYTHING, PaperFilter, Selection
from folio.store.citations import cited_papers
from folio.store.paper_store import PaperFilters, PaperStore, Years
from folio.text import plain_words
from folio.types import Paper, PassageFields


class PapersOfYears(Sequence[Paper]):
    """The papers of some years, read when somebody looks at them. A search need not."""

    def __init__(self, years: tuple[Years, ...], read: Callable[[], list[Paper]]) -> None:
        self.years, self._read = years, read

    @cached_property
    def _papers(self) -> list[Paper]:
        return self._read()

    def __len__(self) -> int:
        return len(self._papers)

    @overload
    def __getitem__(self, at: int) -> Paper: ...
    @overload
    def __getitem__(self, at: slice) -> list[Paper]: ...
    def __getitem__(self, at: int | slice) -> Paper | list[Paper]:
        return self._papers[at]

    def __iter__(self) -> Iterator[Paper]:
        return iter(self._papers)


def select(library: PaperStore, wanted: PaperFilter) -> Selection:
    """The papers and sections to search. Raises UsageError if none is as wanted."""
    if wanted == PaperFilter():
        return EVERYTHING
    filters = library.filters
    found = _by_fields(wanted, filters) or _narrowed(library, wanted, filters) if filters is not None else None
    if found is not None:
        return found
    cited = partial(cited_papers, library.database)
    return wanted.select(library.papers(), library.files(), cited, aliases_in(library))


def _by_fields(wanted: PaperFilter, filters: PaperFilters) -> Selection | None:
    """For years and kinds of sections alone; None for other filters, and if there is nothing of the kind."""
    sections = SectionFilter(wanted.sections) if wanted.sections else None
    is_by_fields = wanted.years and wanted == PaperFilter(years=wanted.years, sections=wanted.sections)
    if not is_by_fields or (sections and not sections.kinds):
        return None
    if not filters.has_passage(PassageFields(wanted.years, sections.kinds if sections else frozenset())):
        return None
    return Selection(PapersOfYears(wanted.years, partial(_of_years, filters, wanted.years)), sections)


def _of_years(filters: PaperFilters, years: tuple[Years, ...]) -> list[Paper]:
    return newest([paper for paper in filters.papers_with(years, ()) if in_years(paper.year, years)])


def _narrowed(library: PaperStore, wanted: PaperFilter, filters: PaperFilters) -> Selection | None:
    """For filters with years or authors: only papers that have them are read. None for others, and if none fits.

    Then what is said about it needs all papers. Names of papers are compared with all of them, too.
    """
    if wanted.papers or wanted.cited_by or not (wanted.years or wanted.authors):
        return None
    papers = filters.papers_with(wanted.years, [plain_words(name) for name in wanted.authors])
    try:
        found = wanted.select(papers, ())
    except NotKnown:
        return None
    return found._replace(papers=found.papers or newest(papers))
