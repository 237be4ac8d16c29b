"""Gives papers the metadata that bibliographies have of them.

An entry belongs to a paper by the file that it names; else by DOI; else by arXiv identifier; else by title, with the
year or the first author. The first of these by which there is any paper decides, and two papers are one too many: an
entry that could be of either is of none.
"""

from __future__ import annotations

import os
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from folio.identifiers import bare_arxiv
from folio.paper_metadata import NO_METADATA, Field, Metadata, merged
from folio.people import is_same_family
from folio.sources.bibliography_file import Bibliography
from folio.sources.entries import Entry
from folio.store.library import Library
from folio.text import fold
from folio.types import Paper

# Words of a title that say enough without a year or an author
_TELLING_TITLE = 4
# Years by which a preprint and its article may differ
_YEARS_APART = 1


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of one bibliography."""

    path: Path
    matched: int  # papers that it has an entry of
    changed: int  # of these, the ones that it now says something else of
    withdrawn: int  # papers that it had an entry of before
    unmatched: tuple[Entry, ...]  # of no paper
    ambiguous: tuple[tuple[Entry, str], ...]  # each with what it could be


def import_bibliography(library: Library, bibliography: Bibliography) -> Imported:
    """Make what a bibliography says of its papers the library's, and forget what it no longer says.

    The caller holds the writer lock, and has added the PDFs that it names.
    """
    papers = library.papers()
    layers = {paper.id: library.metadata_layers(paper.id) for paper in papers}
    # Whatever an earlier run took from a bibliography tells nothing about this one.
    papers = [replace(paper, metadata=merged({**layers[paper.id], "bibliography": NO_METADATA})) for paper in papers]
    index = _Index(papers, {file.path: file.sha256 for file in library.files()})
    found: dict[str, list[tuple[int, Entry]]] = defaultdict(list)
    unmatched: list[Entry] = []
    ambiguous: list[tuple[Entry, str]] = []
    for place, entry in enumerate(bibliography.entries):
        rank, candidates = index.papers_of(entry, bibliography.pdfs.get(place, ()))
        if len(candidates) == 1:
            found[candidates[0].id].append((rank, entry))
        elif candidates:
            ambiguous.append((entry, "it could be " + " or ".join(paper.file for paper in candidates[:3])))
        else:
            unmatched.append(entry)
    said_of: dict[str, Metadata] = {}
    files = {paper.id: paper.file for paper in papers}
    for id, entries in found.items():
        best = min(rank for rank, _ in entries)
        nearest = [entry for rank, entry in entries if rank == best]
        if len({replace(entry.describe(), citation_key=Field("")) for entry in nearest}) == 1:
            path = Field(str(bibliography.path), "bibliography", True)
            said_of[id] = replace(nearest[0].describe(), bibliography=path)
        else:
            keys = " and ".join(entry.key for entry in nearest[:3])
            ambiguous.append((nearest[0], f"{keys} are both of {files[id]}"))
    is_read = bool(bibliography.entries) or not bibliography.problems  # else it says nothing of what it still has
    changed = withdrawn = 0
    for id, each in layers.items():
        known = each.get("bibliography", NO_METADATA)
        now = said_of.get(id)
        if now is not None and now != known:
            library.set_metadata(id, "bibliography", now)
            changed += 1
        elif now is None and is_read and known.bibliography.value == str(bibliography.path):
            library.set_metadata(id, "bibliography", NO_METADATA)
            withdrawn += 1
    return Imported(bibliography.path, len(said_of), changed, withdrawn, tuple(unmatched), tuple(ambiguous))


class _Index:
    """Finds papers by what an entry can have in common with them."""

    def __init__(self, papers: Sequence[Paper], files: dict[str, str]) -> None:
        """files: path -> paper."""
        self._papers = {paper.id: paper for paper in papers}
        self._by_path = {os.path.realpath(path): paper for path, paper in files.items()}
        self._by_name: dict[str, set[str]] = defaultdict(set)
        for path, id in files.items():
            self._by_name[_file_name(path)].add(id)
        self._by_doi: dict[str, set[str]] = defaultdict(set)
        self._by_arxiv: dict[str, set[str]] = defaultdict(set)
        self._by_title: dict[str, set[str]] = defaultdict(set)
        for paper in papers:
            about = paper.metadata
            for ways, value in (
                (self._by_doi, about.doi.value.casefold()),
                (self._by_arxiv, bare_arxiv(about.arxiv.value)),
                (self._by_title, fold(about.title.value)),
            ):
                if value:
                    ways[value].add(paper.id)

    def papers_of(self, entry: Entry, pdfs: Iterable[Path]) -> tuple[int, list[Paper]]:
        """The papers that an entry may be of, and the rank of what they were found by: 0 is the surest."""
        for rank, ids in enumerate(self._ways(entry, pdfs)):
            if known := sorted(ids & self._papers.keys()):
                return rank, [self._papers[id] for id in known]
        return 0, []

    def _ways(self, entry: Entry, pdfs: Iterable[Path]) -> Iterator[set[str]]:
        yield {self._by_path.get(os.path.realpath(path), "") for path in pdfs}
        yield {paper for path in entry.files for paper in self._by_name.get(_file_name(path), ())}
        yield self._by_doi.get(entry.doi.casefold(), set()) if entry.doi else set()
        yield self._by_arxiv.get(bare_arxiv(entry.arxiv), set()) if entry.arxiv else set()
        same_title = self._by_title.get(fold(entry.title), set())
        yield {id for id in same_title if _fits(entry, self._papers[id].metadata)}


def _file_name(path: str) -> str:
    return unicodedata.normalize("NFC", PurePath(path.replace("\\", "/")).name).casefold()


def _fits(entry: Entry, paper: Metadata) -> bool:
    """Whether a paper with an entry's title is its work: year or first author agree, and nothing sure contradicts."""
    agree: list[bool] = []
    contradict: list[bool] = []
    if entry.year and paper.year.value:
        same = abs(entry.year - paper.year.value) <= _YEARS_APART
        (agree if same else contradict).append(same or paper.year.sure)
    if entry.first_author and paper.authors.value:
        same = is_same_family(entry.first_author, paper.authors.value[0].family)
        (agree if same else contradict).append(same or paper.authors.sure)
    return not any(contradict) and (any(agree) or (paper.title.sure and len(entry.title.split()) >= _TELLING_TITLE))
