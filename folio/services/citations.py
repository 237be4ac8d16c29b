"""Follows citations from papers of the library: what they cite, or what cites them, to some depth.

OpenAlex is asked first, then Semantic Scholar, then Crossref, which knows the DOIs of references alone. What is found
is ranked by how many of the papers it is linked with, then by how near it is, then by how often it is cited.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from folio.papers.identifiers import Identifier
from folio.papers.model import Paper
from folio.papers.work import Work, grouped
from folio.services import crossref, openalex, semantic_scholar
from folio.services.answers import SearchQuery
from folio.services.keep import Direction, Expansion, Followed, Linked, contradicts, identifiers_of
from folio.services.lookup import TO_GET, Lookup, describe_paper, identifiers_in
from folio.store.works import FoundBy, KeptWork

Fits = Callable[[str, Work], bool]  # whether a work can be the paper with an id
MOST_DEPTH = 3
_LOOKED_UP = 5  # times the cap: references that are looked up at most, those first that most papers have
_MOST_REFERENCES = 1000  # of one work, at Semantic Scholar


@dataclass(frozen=True, slots=True)
class _Node:
    """A work whose citations are followed."""

    work: Work
    papers: frozenset[str]


_Link = tuple[Work, frozenset[str]]  # a work, and the papers that it is linked with


class Expander:
    """Follows citations in one direction."""

    def __init__(
        self, lookup: Lookup, direction: Direction, query: SearchQuery, progress: Callable[[str, int, int], None]
    ) -> None:
        """query: its filters hold for what is found, and `most` is the cap over all."""
        self._lookup = lookup
        self._client = lookup.client
        self._direction = direction
        self._query = query
        self._progress = progress
        self._citing: list[Work] = []

    def run(self, papers: Mapping[str, Sequence[Identifier]], fits: Fits, depth: int) -> Expansion:
        """Follow the citations of papers. papers: id -> identifiers; fits: whether a work can be a paper.

        depth: 1 to MOST_DEPTH; works that are found at one depth are followed at the next.
        """
        starts = self._starts(papers, fits)
        nodes = [_Node(work, frozenset([paper])) for paper, work in starts.items()]
        found: list[Linked] = []
        followed = [node.work for node in nodes]
        for step_number in range(1, min(depth, MOST_DEPTH) + 1):
            before = {mark for work in followed for mark in work.identifiers()}
            step = self._cited(nodes) if self._direction == "cites" else self._citing_works(nodes)
            found = self._ranked([*found, *(Linked((work,), papers, step_number) for work, papers in step)])
            nodes = [_Node(each.work, each.papers) for each in found if before.isdisjoint(each.work.identifiers())]
            followed += [node.work for node in nodes]
            if not nodes:
                break
        return Expansion(found, starts, self._citing)

    def _starts(self, papers: Mapping[str, Sequence[Identifier]], fits: Fits) -> dict[str, Work]:
        starts: dict[str, Work] = {}
        for done, (paper, identifiers) in enumerate(papers.items(), 1):
            for identifier in identifiers:
                work = self._lookup.by_identifier(identifier, TO_GET)
                if work is not None and fits(paper, work):
                    starts[paper] = work
                    break
            self._progress("looking up papers", done, len(papers))
        return starts

    # What they cite

    def _cited(self, nodes: Sequence[_Node]) -> list[_Link]:
        links: dict[str, set[str]] = defaultdict(set)
        found: list[_Link] = []
        for done, node in enumerate(nodes, 1):
            work, known = self._references(node.work)
            self._citing.append(work)
            found += [(each, node.papers) for each in known]
            for reference in () if known else work.references:
                links[reference] |= node.papers
            self._progress("following citations", done, len(nodes))
        came_along = {name for work, _ in found for name in _names(work)}
        wanted = sorted(links.keys() - came_along, key=lambda reference: (-len(links[reference]), reference))
        found += [(work, frozenset()) for work in self._look_up(wanted[: _LOOKED_UP * self._query.most])]
        return [(work, papers.union(*(links.get(name, ()) for name in _names(work)))) for work, papers in found]

    def _references(self, work: Work) -> tuple[Work, list[Work]]:
        """A work with its references, and these as far as they came along."""
        if work.references:
            return work, []
        for identifier in _identifiers(work):
            ask = partial(semantic_scholar.cited_by, self._client, identifier, _MOST_REFERENCES)
            if cited := [each for each in self._lookup.attempt(ask) if each.identifiers()]:
                return replace(work, references=tuple(_names(each)[0] for each in cited)), cited
        if work.doi:
            for same in self._lookup.attempt(lambda: [crossref.by_doi(self._client, work.doi)]):
                return replace(work, references=same.references if same else ()), []
        return work, []

    def _look_up(self, references: Sequence[str]) -> list[Work]:
        """The works of references: OpenAlex's ids and DOIs. What OpenAlex lacks is left out, unless it fails."""
        ids = [each for each in references if each.startswith("W")]
        dois = [each for each in references if each.startswith("10.")]
        plain = [each for each in dois if not set(each) & set(",|")]  # both have a meaning in a filter
        found: list[Work] = []
        for listed in (ids, plain):
            for start in range(0, len(listed), openalex.BATCH):
                ask = partial(openalex.by_ids, self._client, listed[start : start + openalex.BATCH])
                found += self._lookup.attempt(ask)
                self._progress("looking up references", min(start + openalex.BATCH, len(listed)), len(listed))
        for done, doi in enumerate(() if found else dois[: self._query.most], 1):
            found += filter(None, [self._lookup.by_identifier(Identifier("doi", doi), TO_GET[1:])])
            self._progress("looking up DOIs", done, len(dois))
        return found

    # What cites them

    def _citing_works(self, nodes: Sequence[_Node]) -> list[_Link]:
        found: list[_Link] = []
        for done, node in enumerate(nodes, 1):
            name = _names(node.work)[0]
            for work in self._that_cite(node.work):
                citing = replace(work, references=(name,))
                self._citing.append(citing)
                found.append((citing, node.papers))
            self._progress("following citations", done, len(nodes))
        return found

    def _that_cite(self, work: Work) -> list[Work]:
        found: list[Work] = []
        if work.openalex:
            query = replace(self._query, words="", sort="citations")
            found = self._lookup.attempt(lambda: openalex.citing(self._client, work.openalex, query))
        for identifier in () if found else _identifiers(work):
            ask = partial(semantic_scholar.citing, self._client, identifier, self._query.most)
            if found := self._lookup.attempt(ask):
                break
        return [each for each in found if each.identifiers()]

    # All of it

    def _ranked(self, found: Sequence[Linked]) -> list[Linked]:
        """The works, each once, that pass the filters: the best, no more than the cap."""
        of_view = {id(work): each for each in found for work in each.works}
        joined = []
        for group in grouped([work for each in found for work in each.works if work.title]):
            before = [of_view[id(work)] for work in group]
            papers = frozenset().union(*(each.papers for each in before))
            joined.append(Linked(tuple(_each_once(group)), papers, min(each.depth for each in before)))
        passing = [each for each in joined if _passes(each.work, self._query)]
        passing.sort(key=lambda each: (-len(each.papers), each.depth, -(each.work.cited or 0), each.work.marks()[0]))
        return passing[: self._query.most]


def _passes(work: Work, query: SearchQuery) -> bool:
    return (
        (query.since is None or (work.year or 0) >= query.since)
        and (not query.is_open or bool(work.is_open or work.pdfs))
        and (work.cited or 0) >= query.min_cited
    )


def _each_once(views: Sequence[Work]) -> list[Work]:
    """One view of each source."""
    return list({work.source: work for work in reversed(views)}.values())[::-1]


def _names(work: Work) -> list[str]:
    """What other works may call it in their references (Work.references)."""
    return list(filter(None, (work.openalex, work.doi, work.arxiv, work.semanticscholar)))


def _identifiers(work: Work) -> list[Identifier]:
    """What Semantic Scholar may know a work by."""
    return [each for each in identifiers_of(work) if each.kind != "openalex"]


# Asks services for the citations of papers of the library.


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
