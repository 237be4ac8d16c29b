"""The list of papers that the web API replies: those that fit, ranked if there is a query."""

from __future__ import annotations

from contextlib import closing
from functools import partial

from folio.app import App
from folio.errors import StoreMissing
from folio.paper_schema import ListedPaperJson, found_paper_json, listed_paper_json, papers_notice
from folio.search.aliases import aliases_in
from folio.search.candidate_filter import SectionFilter
from folio.search.paper_filter import PaperFilter
from folio.search.retriever_pool import RetrieverPool
from folio.store.citations import cited_papers
from folio.store.library import Library
from folio.types import Paper
from folio.web.questions import NOTHING_KNOWN
from folio.web.schema import FailureJson, PaperList, PaperQuery, paper_filter

_FOUND = 20  # papers that a query finds unless more are wanted


def list_papers(app: App, retrievers: RetrieverPool, query: PaperQuery) -> PaperList:
    """The papers wanted, and the files that no text could be read from; empty if there is no index yet.

    Raises StoreMismatch and ModelError if there is a query.
    """
    try:
        library = app.open_library()
    except StoreMissing:
        return PaperList(papers=[], failures=[])
    with closing(library), library.reading():
        failures = [FailureJson.model_validate(failure) for failure in library.failures()]
        if query.query.strip() and library.chunk_count():
            papers, notice = _ranked(retrievers, query)
            return PaperList(papers=papers, failures=failures, notice=notice)
        added = library.added()
        fitting = fitting_papers(library, _wanted(query))
        end = None if query.limit is None else query.offset + query.limit
        listed = [listed_paper_json(paper, added[paper.id]) for paper in fitting[query.offset : end]]
        return PaperList(papers=listed, failures=failures)


def _ranked(retrievers: RetrieverPool, query: PaperQuery) -> tuple[list[ListedPaperJson], str]:
    """The papers that fit, best first, and what the ranking lacked."""
    wanted = _wanted(query)
    with retrievers.acquire() as reader, reader.library.reading():
        library = reader.library
        asked = reader.retriever.respelled(query.query).question
        hits = reader.retriever.search_papers(
            asked,
            query.limit or _FOUND,
            query.offset,
            None if wanted == PaperFilter() else fitting_papers(library, wanted),
            sections=SectionFilter(wanted.sections) if wanted.sections else None,
        )
        # What is known of a paper may have a word that no passage has, such as an author's name.
        if not any(hit.lexical for hit in hits) and not reader.retriever.is_understood(asked):
            return [], NOTHING_KNOWN
        added = library.added()
        notice = papers_notice(reader.retriever.papers_without_vector())
    return [found_paper_json(hit, added[hit.paper.id]) for hit in hits], notice


def fitting_papers(library: Library, wanted: PaperFilter) -> list[Paper]:
    """The papers that are wanted, in the order of the library. Raises NotKnown for a name that none of them has."""
    cited = partial(cited_papers, library.database)
    return wanted.matching(library.papers(), library.files(), cited, aliases_in(library))


def _wanted(query: PaperQuery) -> PaperFilter:
    return paper_filter(query, warnings=query.warnings, unsure=query.unsure)
