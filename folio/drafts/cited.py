"""What a draft cites -> the papers of a library: by key, identifier, list of references, authors and year. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from folio.bibliography.imports import EntryIndex
from folio.drafts.draft import Cited, Draft
from folio.papers import references
from folio.papers.citation_key import is_key_for
from folio.papers.identifiers import bare_arxiv
from folio.papers.model import Paper
from folio.papers.people import is_same_family
from folio.papers.references import Marks, References

_LETTER = re.compile(r"[a-z]$")
_YEARS_APART = 1  # between a preprint and its article


@dataclass(frozen=True)
class Library:
    """The papers that a draft may cite."""

    papers: Sequence[Paper]
    keys: Mapping[str, Collection[str]]  # paper id -> every citation key that it was ever given
    files: Mapping[str, str]  # path -> paper id


class CitedPapers:
    """Finds the papers that a draft cites."""

    def __init__(self, draft: Draft, library: Library) -> None:
        self._papers = {paper.id: paper for paper in library.papers}
        self._by_key: dict[str, set[str]] = defaultdict(set)
        for paper in library.papers:
            for key in (*library.keys.get(paper.id, ()), paper.metadata.citation_key.value, paper.key):
                self._by_key[key.casefold()].add(paper.id)
        self._entries = {entry.key: entry for entry in reversed(draft.bibliography)}
        self._index = EntryIndex(library.papers, dict(library.files))
        self._listed = _listed(draft.listed, library.papers)

    def of(self, cited: Cited) -> list[Paper]:
        """The papers that a citation may mean; [] if none is here, several if its name and year fit several."""
        if cited.way == "key":
            ids = self._of_key(cited.name)
        elif cited.way == "number":
            ids = self._listed.get(cited.name, set())
        elif cited.way == "name":
            ids = {paper.id for paper in self._papers.values() if _is_by(paper, cited)}
        else:
            ids = {paper.id for paper in self._papers.values() if _has_identifier(paper, cited)}
        papers = [paper for id, paper in self._papers.items() if id in ids]
        return [paper for paper in papers if not paper.is_copy] or papers

    def _of_key(self, key: str) -> set[str]:
        """The papers with a key. The draft's own bibliography comes first: there a key may mean another work."""
        if entry := self._entries.get(key):
            _, papers = self._index.papers_of(entry, ())
            return {paper.id for paper in papers}
        return (
            self._listed.get(key)
            or self._by_key.get(key.casefold())
            or {paper.id for paper in self._papers.values() if is_key_for(key, paper)}
        )


def _listed(entries: Sequence[references.Entry], papers: Sequence[Paper]) -> dict[str, set[str]]:
    """The label of each entry of a list of references -> the papers that it names."""
    listed = References(entries)
    labels: dict[str, set[str]] = defaultdict(set)
    for paper in papers:
        place = listed.find(Marks(paper))
        if place is not None and entries[place].label:
            labels[entries[place].label].add(paper.id)
    return dict(labels)


def _is_by(paper: Paper, cited: Cited) -> bool:
    """Whether a paper is of the year and by the first author that a citation names; its letter must be the label's."""
    authors, year = paper.metadata.authors.value, cited.year
    letter = _LETTER.search(year)
    if not authors or not paper.year or not is_same_family(authors[0].family, cited.name):
        return False
    if letter and paper.label and not paper.label.endswith(year):
        return paper.label.endswith(year[:-1]) and abs(paper.year - int(year[:-1])) == 0
    return abs(paper.year - int(year[:4])) <= (0 if paper.metadata.year.sure else _YEARS_APART)


def _has_identifier(paper: Paper, cited: Cited) -> bool:
    about = paper.metadata
    if cited.way == "arxiv":
        return bool(about.arxiv.value) and bare_arxiv(about.arxiv.value) == bare_arxiv(cited.name)
    return about.doi.value.casefold() == cited.name.casefold()

