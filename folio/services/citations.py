"""Follows citations of the library's papers: the works they cite, or the works that cite them, to some depth.

OpenAlex is asked first, then Semantic Scholar, then Crossref, which only knows the DOIs of references. Works are ranked
by the number of papers they are linked with, then by distance, then by citations.
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
_LOOKED_UP = 5  # references looked up for each work wanted, the most shared references first
_MOST_REFERENCES = 1000  # of one work, from Semantic Scholar


@dataclass(frozen=True, slots=True)
class _Node:
    """A work whose citations are followed."""

    work: Work
    papers: frozenset[str]


_Link = tuple[Work, frozenset[str]]  # a work, and the papers it is linked with


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

    kept: the known works of each paper. query, depth: see Expander.
    """
    identifiers: dict[str, list[Identifier]] = {}
    for id, paper in papers.items():
        of_works = (identifier for each in kept.get(id, ()) for identifier in identifiers_of(each.work))
        identifiers[id] = list(dict.fromkeys([*identifiers_in(paper.metadata), *of_works]))
    matches: dict[str, tuple[FoundBy, float]] = {}
    for done, (id, paper) in enumerate(papers.items(), 1):
        matches[id] = _match(paper, identifiers, lookup)
        progress("recognising papers", done, len(papers))
    expander = Expander(lookup, direction, query, progress)
    expansion = expander.run(identifiers, lambda id, work: not contradicts(papers[id].metadata, work), depth)
    return Followed(expansion, matches)


def _match(paper: Paper, identifiers: dict[str, list[Identifier]], lookup: Lookup) -> tuple[FoundBy, float]:
    """How a paper's work is found; a paper without an identifier gets the identifiers of the work with its title."""
    if identifiers[paper.id]:
        return identifiers[paper.id][0].kind, 1.0
    match = describe_paper(paper.metadata, lookup).found
    if match is None:
        return "title", 0.0
    identifiers[paper.id] = [each for work in match.works for each in identifiers_of(work)]
    return match.found_by, match.score


class Expander:
    """Follows citations in one direction."""

    def __init__(
        self, lookup: Lookup, direction: Direction, query: SearchQuery, progress: Callable[[str, int, int], None]
    ) -> None:
        """query: filters for the works; `most` limits their total number."""
        self._lookup = lookup
        self._client = lookup.client
        self._direction = direction
        self._query = query
        self._progress = progress
        self._citing: list[Work] = []

    def run(self, papers: Mapping[str, Sequence[Identifier]], fits: Fits, depth: int) -> Expansion:
        """Follow the citations of papers. papers: id -> identifiers; fits: whether a work can be a paper.

        depth: 1 to MOST_DEPTH; the works of one depth are followed at the next.
        """
        starts = self._starts(papers, fits)
        nodes = [_Node(work, frozenset([paper])) for paper, work in starts.items()]
        linked: list[Linked] = []
        followed = [node.work for node in nodes]
        for step in range(1, min(depth, MOST_DEPTH) + 1):
            known = {mark for work in followed for mark in work.identifiers()}
            links = self._cited(nodes) if self._direction == "cites" else self._citing_works(nodes)
            linked = self._ranked([*linked, *(Linked((work,), papers, step) for work, papers in links)])
            nodes = [_Node(each.work, each.papers) for each in linked if known.isdisjoint(each.work.identifiers())]
            followed += [node.work for node in nodes]
            if not nodes:
                break
        return Expansion(linked, starts, self._citing)

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

    def _cited(self, nodes: Sequence[_Node]) -> list[_Link]:
        """The works that the nodes cite."""
        links: dict[str, set[str]] = defaultdict(set)
        cited: list[_Link] = []
        for done, node in enumerate(nodes, 1):
            work, described = self._references(node.work)
            self._citing.append(work)
            cited += [(each, node.papers) for each in described]
            for reference in () if described else work.references:
                links[reference] |= node.papers
            self._progress("following citations", done, len(nodes))
        known = {name for work, _ in cited for name in _names(work)}
        wanted = sorted(links.keys() - known, key=lambda reference: (-len(links[reference]), reference))
        cited += [(work, frozenset()) for work in self._look_up(wanted[: _LOOKED_UP * self._query.most])]
        return [(work, papers.union(*(links.get(name, ()) for name in _names(work)))) for work, papers in cited]

    def _references(self, work: Work) -> tuple[Work, list[Work]]:
        """A work with its references, and the references that the service also described."""
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
        """The works of references, which are OpenAlex ids and DOIs. Other services are asked only if OpenAlex fails."""
        ids = [each for each in references if each.startswith("W")]
        dois = [each for each in references if each.startswith("10.")]
        plain = [each for each in dois if not set(each) & set(",|")]  # both have a meaning in a filter
        works: list[Work] = []
        for batchable in (ids, plain):
            for start in range(0, len(batchable), openalex.BATCH):
                ask = partial(openalex.by_ids, self._client, batchable[start : start + openalex.BATCH])
                works += self._lookup.attempt(ask)
                self._progress("looking up references", min(start + openalex.BATCH, len(batchable)), len(batchable))
        for done, doi in enumerate(() if works else dois[: self._query.most], 1):
            works += filter(None, [self._lookup.by_identifier(Identifier("doi", doi), TO_GET[1:])])
            self._progress("looking up DOIs", done, len(dois))
        return works

    def _citing_works(self, nodes: Sequence[_Node]) -> list[_Link]:
        """The works that cite the nodes."""
        links: list[_Link] = []
        for done, node in enumerate(nodes, 1):
            name = _names(node.work)[0]
            for work in self._works_citing(node.work):
                citing = replace(work, references=(name,))
                self._citing.append(citing)
                links.append((citing, node.papers))
            self._progress("following citations", done, len(nodes))
        return links

    def _works_citing(self, work: Work) -> list[Work]:
        works: list[Work] = []
        if work.openalex:
            query = replace(self._query, words="", sort="citations")
            works = self._lookup.attempt(lambda: openalex.citing(self._client, work.openalex, query))
        for identifier in () if works else _identifiers(work):
            ask = partial(semantic_scholar.citing, self._client, identifier, self._query.most)
            if works := self._lookup.attempt(ask):
                break
        return [each for each in works if each.identifiers()]

    def _ranked(self, linked: Sequence[Linked]) -> list[Linked]:
        """The distinct works that pass the filters, best first, at most `query.most`."""
        by_work = {id(work): each for each in linked for work in each.works}
        distinct = []
        for group in grouped([work for each in linked for work in each.works if work.title]):
            same = [by_work[id(work)] for work in group]
            papers = frozenset().union(*(each.papers for each in same))
            distinct.append(Linked(_one_for_each_source(group), papers, min(each.depth for each in same)))
        passing = [each for each in distinct if _passes(each.work, self._query)]
        passing.sort(key=lambda each: (-len(each.papers), each.depth, -(each.work.cited or 0), each.work.marks()[0]))
        return passing[: self._query.most]


def _passes(work: Work, query: SearchQuery) -> bool:
    return (
        (query.since is None or (work.date or str(work.year or "")) >= str(query.since)[: len(work.date) or 4])
        and (query.until is None or (work.date or str(work.year or 9999)) <= str(query.until)[: len(work.date) or 4])
        and (not query.is_open or bool(work.is_open or work.pdfs))
        and (work.cited or 0) >= query.min_cited
    )


def _one_for_each_source(views: Sequence[Work]) -> tuple[Work, ...]:
    """The first description by each source."""
    return tuple(reversed({work.source: work for work in reversed(views)}.values()))


def _names(work: Work) -> list[str]:
    """The identifiers that the references of other works may use (Work.references)."""
    return list(filter(None, (work.openalex, work.doi, work.arxiv, work.semanticscholar)))


def _identifiers(work: Work) -> list[Identifier]:
    """The identifiers that Semantic Scholar accepts."""
    return [each for each in identifiers_of(work) if each.kind != "openalex"]
