"""Asks services for the citations of papers of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from folio.identifiers import Identifier
from folio.sources.expansion import Expander
from folio.sources.linked_works import Direction, Followed, identifiers_of
from folio.sources.lookup import Lookup
from folio.sources.metadata_update import describe_paper, identifiers_in
from folio.sources.paper_match import contradicts
from folio.sources.search_query import SearchQuery
from folio.store.work_rows import FoundBy, KeptWork
from folio.types import Paper


def follow(
    papers: Mapping[str, Paper],
    kept: Mapping[str, Sequence[KeptWork]],
    lookup: Lookup,
    direction: Direction,
    query: SearchQuery,
    depth: int,
    progress: Callable[[str, int, int], None],
) -> Followed:
    """Follow the citations of papers, by id.

    kept: the works that they are known to be. query: filters, and as `most` the cap. depth: see Expander.run.
    """
    identifiers = {
        id: list(dict.fromkeys([*identifiers_in(paper.metadata), *_of_works(kept.get(id, ()))]))
        for id, paper in papers.items()
    }
    matches: dict[str, tuple[FoundBy, float]] = {}
    for done, (id, paper) in enumerate(papers.items(), 1):
        matches[id] = _match(paper, identifiers, lookup)
        progress("recognising papers", done, len(papers))
    expander = Expander(lookup, direction, query, progress)
    expansion = expander.run(identifiers, lambda id, work: not contradicts(papers[id].metadata, work), depth)
    return Followed(expansion, matches)


def _of_works(kept: Sequence[KeptWork]) -> list[Identifier]:
    return [each for one in kept for each in identifiers_of(one.work)]


def _match(paper: Paper, identifiers: dict[str, list[Identifier]], lookup: Lookup) -> tuple[FoundBy, float]:
    """How a paper's work is found; a paper without an identifier gets those of the work of its title."""
    if identifiers[paper.id]:
        return identifiers[paper.id][0].kind, 1.0
    found = describe_paper(paper.metadata, lookup).found
    if found is None:
        return "title", 0.0
    identifiers[paper.id] = [each for work in found.works for each in identifiers_of(work)]
    return found.found_by, found.score
