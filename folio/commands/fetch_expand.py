"""`folio fetch --expand`: works that papers of the index cite, or that cite them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from folio.console import progress_bar, say
from folio.shown_text import name_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.sources.linked_works import Direction, Linked
    from folio.sources.lookup import Lookup
    from folio.sources.search_query import SearchQuery
    from folio.store.library import Library
    from folio.types import Paper

NO_WORK = "no service is known to have it."


def expand(
    app: App,
    lookup: Lookup,
    names: Sequence[str],
    direction: Direction,
    query: SearchQuery,
    depth: int,
    *,
    is_dry: bool,
) -> list[Linked]:
    """Follow the citations of these papers, all if none is named; store who cites whom unless `is_dry`.

    query: the filters; its `most` is the cap. Returns what was found, best first.
    """
    from folio.sources.paper_citations import follow
    from folio.sources.work_keeping import keep_followed, link_papers
    from folio.store import indexes, works

    with closing(app.open_library()) as library:
        papers = {paper.id: paper for paper in _papers(library, names)}
        database = library.database
        kept = {id: works.of_paper(database, id) for id in papers}
    try:
        with progress_bar() as progress:
            followed = follow(papers, kept, lookup, direction, query, depth, progress)
    except KeyboardInterrupt:
        say("Stopped. Nothing was stored; the answers so far are kept for a day.")
        raise
    for id in papers.keys() - followed.expansion.starts.keys():
        say(f"{name_line(papers[id].file)}: {NO_WORK}")
    if not is_dry:
        with indexes.writing(app.store_folder), closing(app.open_library()) as library:
            keep_followed(library, followed)
            link_papers(library)
    return followed.expansion.found


def _papers(library: Library, names: Sequence[str]) -> list[Paper]:
    """The papers of these names; all without any. Raises NotKnown."""
    from folio.search.aliases import aliases_in
    from folio.search.paper_names import file_names, papers_named, unknown_paper

    papers, files, known_by = library.papers(), file_names(library.files()), aliases_in(library)
    chosen: dict[str, Paper] = {}
    for name in names:
        found = papers_named(name, papers, files, known_by)
        if not found:
            raise unknown_paper(name, papers, files)
        chosen |= {paper.id: paper for paper in found}
    return list(chosen.values()) if names else papers
