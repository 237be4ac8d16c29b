"""The papers and sections that a filter chooses from a library (paper_filter.py)."""

from __future__ import annotations

from functools import partial

from folio.search.aliases import aliases_in
from folio.search.paper_filter import EVERYTHING, PaperFilter, Selection
from folio.store.citations import cited_papers
from folio.store.library import Library


def select(library: Library, wanted: PaperFilter) -> Selection:
    """The papers and sections to search. Raises UsageError if none is as wanted."""
    if wanted == PaperFilter():
        return EVERYTHING
    cited = partial(cited_papers, library.database)
    return wanted.select(library.papers(), library.files(), cited, aliases_in(library))
