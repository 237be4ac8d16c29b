"""`folio fetch --expand`: works that papers of the index cite, or that cite them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from folio.console import progress_bar, say
from folio.shown_text import name_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.sources.expansion import Direction, Linked
    from folio.sources.identifiers import Identifier
    from folio.sources.lookup import Lookup
    from folio.sources.search_query import SearchQuery
    from folio.store.library import Library
    from folio.store.work_rows import FoundBy
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
    from folio.sources.expansion import Expander
    from folio.sources.paper_match import contradicts
    from folio.sources.work_keeping import keep_expansion
    from folio.store import indexes

    with closing(app.open_library()) as library:
        papers = {paper.id: paper for paper in _papers(library, names)}
        identifiers = {paper.id: _identifiers(library, paper) for paper in papers.values()}
    matches: dict[str, tuple[FoundBy, float]] = {}
    try:
        with progress_bar() as progress:
            for done, paper in enumerate(papers.values(), 1):
                matches[paper.id] = _match(paper, identifiers, lookup)
                progress("recognising papers", done, len(papers))
            expansion = Expander(lookup, direction, query, progress).run(
                identifiers, lambda id, work: not contradicts(papers[id].metadata, work), depth
            )
    except KeyboardInterrupt:
        say("Stopped. Nothing was stored; the answers so far are kept for a day.")
        raise
    for id in papers.keys() - expansion.starts.keys():
        say(f"{name_line(papers[id].file)}: {NO_WORK}")
    if not is_dry:
        with indexes.writing(app.store_folder), closing(app.open_library()) as library:
            keep_expansion(library.database, expansion, matches)
    return expansion.found


def _papers(library: Library, names: Sequence[str]) -> list[Paper]:
    """The papers of these names; all without any. Raises NotKnown."""
    from folio.search.paper_names import file_names, papers_named, unknown_paper

    papers, files = library.papers(), file_names(library.files())
    chosen: dict[str, Paper] = {}
    for name in names:
        found = papers_named(name, papers, files)
        if not found:
            raise unknown_paper(name, papers, files)
        chosen |= {paper.id: paper for paper in found}
    return list(chosen.values()) if names else papers


def _identifiers(library: Library, paper: Paper) -> list[Identifier]:
    """What services know a paper by: the identifiers of its metadata, then those of its work."""
    from folio.sources.expansion import identifiers_of
    from folio.sources.metadata_update import identifiers_in
    from folio.store import works

    kept = works.of_paper(library.database, paper.id)
    of_works = [each for one in kept for each in identifiers_of(one.work)]
    return list(dict.fromkeys([*identifiers_in(paper.metadata), *of_works]))


def _match(paper: Paper, identifiers: dict[str, list[Identifier]], lookup: Lookup) -> tuple[FoundBy, float]:
    """How a paper's work is found; a paper without an identifier gets those of the work of its title."""
    from folio.sources.expansion import identifiers_of
    from folio.sources.metadata_update import describe_paper

    if identifiers[paper.id]:
        return identifiers[paper.id][0].kind, 1.0
    found = describe_paper(paper.metadata, lookup).found
    if found is None:
        return "title", 0.0
    identifiers[paper.id] = [each for work in found.works for each in identifiers_of(work)]
    return found.found_by, found.score
