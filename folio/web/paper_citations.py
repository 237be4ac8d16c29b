"""Which works a paper cites and which cite it, and which papers of the library cite each other, as far as is kept."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from folio.app import App
from folio.errors import StoreMissing
from folio.sources.paper_match import paper_marks
from folio.store import citations, works
from folio.store.library import Library
from folio.store.work_rows import KeptWork
from folio.web.fetch_schema import CitationEdge, LibraryCitations, PaperCitations, WorkJson, work_json
from folio.web.paper_files import unknown_paper
from folio.work import Work

MOST_LISTED = 1000  # references, and as many works that cite a paper


def paper_citations(app: App, paper: str) -> PaperCitations:
    """What a paper cites and what cites it: first what is in the library, then by how often it is cited.

    Raises NotKnown.
    """
    with closing(app.open_library()) as library, library.reading():
        if not library.papers_by_id([paper]):
            raise unknown_paper()
        kept = works.of_paper(library.database, paper)
        if not kept:
            return PaperCitations(known=False, references=[], cited_by=[], reference_count=0, cited_by_count=0)
        marks = citations.references_of(library.database, kept[0].id)
        citing = citations.citing(library.database, kept[0].id)
        lists = _Lists(library)
        cited_by = works.get(library.database, citing[:MOST_LISTED]).values()
        return PaperCitations(
            known=True,
            references=_ordered(lists.of_mark(mark) for mark in marks[:MOST_LISTED]),
            cited_by=_ordered(lists.of_work(each) for each in cited_by),
            reference_count=len(marks),
            cited_by_count=len(citing),
        )


def library_citations(app: App) -> LibraryCitations:
    """Which paper of the library cites which; nothing if there is no index yet."""
    try:
        library = app.open_library()
    except StoreMissing:
        return LibraryCitations(edges=[])
    with closing(library):
        edges = citations.library_edges(library.database)
    return LibraryCitations(edges=[CitationEdge(citing=citing, cited=cited) for citing, cited in edges])


class _Lists:
    """Makes the items of the lists."""

    def __init__(self, library: Library) -> None:
        self._database = library.database
        self._papers = {paper.id: paper for paper in library.papers()}
        self._known = paper_marks(self._papers.values())

    def of_mark(self, mark: str) -> WorkJson:
        """A work that may be known by this mark alone: "doi 10.1/x"."""
        if kept := works.with_mark(self._database, mark):
            return self.of_work(kept[0])
        kind, _, value = mark.partition(" ")
        paper = self._known.get(mark)
        about = {"title": paper.title, "year": paper.metadata.year.value} if paper else {}
        work = Work("openalex", **{kind: value}, **about)  # type: ignore[arg-type]
        return work_json(work, paper.id if paper else "", paper.file if paper else "")

    def of_work(self, kept: KeptWork) -> WorkJson:
        ids = works.papers_of(self._database, kept.id)
        papers = [self._papers[id] for id in ids if id in self._papers]
        papers += [self._known[mark] for mark in sorted(kept.marks()) if mark in self._known]
        if not papers:
            return work_json(kept.work)
        return work_json(kept.work, papers[0].id, papers[0].file)


def _ordered(items: Iterable[WorkJson]) -> list[WorkJson]:
    """Those in the library first, then those that have a title, then by how often they are cited."""
    return sorted(items, key=lambda work: (not work.paper, not work.title, -(work.cited or 0)))
