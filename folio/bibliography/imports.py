"""Reads a bibliography from disk, finds the PDFs that it names, and stores its metadata of the library's papers.

An entry matches a paper by the file that it names; else by DOI; else by arXiv id; else by title, with the year or the
first author. The first of these criteria that matches any paper decides. An entry that matches two papers is ignored.
"""

from __future__ import annotations

import codecs
import os
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from folio.bibliography import bibtex, csl
from folio.bibliography.entries import Entry, Problem
from folio.errors import UsageError
from folio.papers.identifiers import bare_arxiv
from folio.papers.metadata import NO_METADATA, Field, Metadata, Source, merged
from folio.papers.model import Paper
from folio.papers.people import is_same_family
from folio.store.library import Library
from folio.system.files import open_regular
from folio.text import fold

LARGEST_MB = 100
_TELLING_TITLE = 4  # words of a title that identifies a work without year and author
_YEARS_APART = 1  # between a preprint and its article
_READERS = {".bib": bibtex.read, ".bibtex": bibtex.read, ".biblatex": bibtex.read, ".json": csl.read}
# UTF-32 first, because its byte order mark begins with UTF-16's
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bibliography:
    """A bibliography read from disk."""

    path: Path  # absolute
    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()
    # Index of an entry -> the existing PDFs that it names, absolute
    pdfs: dict[int, tuple[Path, ...]] = field(default_factory=dict)

    def named_pdfs(self) -> list[Path]:
        """Every PDF that an entry names, once."""
        return list(dict.fromkeys(path for paths in self.pdfs.values() for path in paths))


def read_bibliography(path: Path) -> Bibliography:
    """Read a .bib file (BibTeX, BibLaTeX) or a .json file (CSL-JSON). Raises UsageError if it cannot be read."""
    absolute = Path(os.path.abspath(path))
    reader = _READERS.get(absolute.suffix.casefold())
    if reader is None:
        raise UsageError(f"{path} is not a bibliography.", "Name a .bib or a CSL-JSON .json file.")
    try:
        with open_regular(absolute) as file:
            data = file.read(LARGEST_MB * 10**6 + 1)
    except OSError as error:
        remedy = "Check the path and its permissions."
        raise UsageError(f"The bibliography {path} cannot be read: {error.strerror}.", remedy) from error
    if len(data) > LARGEST_MB * 10**6:
        raise UsageError(f"The bibliography {path} is larger than {LARGEST_MB} MB.", "Export a smaller one.")
    entries, problems = reader(decoded(data))
    places = {place: _existing_pdfs(entry, absolute.parent) for place, entry in enumerate(entries) if entry.files}
    pdfs = {place: found for place, found in places.items() if found}
    return Bibliography(absolute, tuple(entries), tuple(problems), pdfs)


def decoded(data: bytes) -> str:
    """Text in UTF-8, in UTF-16 or UTF-32 with a byte order mark, or in Windows-1252, as old programs wrote."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8-sig")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _existing_pdfs(entry: Entry, folder: Path) -> tuple[Path, ...]:
    """The existing regular files named .pdf in an entry. Opens none of them."""
    pdfs: dict[Path, None] = {}
    for name in entry.files:
        # Mendeley leaves out the slash at the beginning of an absolute path.
        for path in (os.path.join(folder, name), os.path.join(os.sep, name)):
            if path.casefold().endswith(".pdf") and _is_file(path):
                pdfs[Path(os.path.abspath(path))] = None
                break
    return tuple(pdfs)


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:  # a null byte, half of a surrogate pair
        return False


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of importing a bibliography."""

    path: Path
    matched: int  # papers with an entry
    changed: int  # matched papers whose metadata from bibliographies changed
    withdrawn: int  # papers that lost their entry
    unmatched: tuple[Entry, ...]
    ambiguous: tuple[tuple[Entry, str], ...]  # each with the reason


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import of a bibliography would do."""

    path: Path
    keys: dict[str, str]  # paper -> the key of its entry
    described: dict[str, Metadata]  # the papers about which the bibliography says something new
    changes: dict[str, tuple[str, ...]]  # paper with an entry -> the fields that it would get from it
    withdrawn: tuple[str, ...]  # papers that lose their entry
    unmatched: tuple[Entry, ...]
    ambiguous: tuple[tuple[Entry, str], ...]  # each with the reason


def import_bibliography(library: Library, bibliography: Bibliography) -> Imported:
    """Store a bibliography's metadata of papers, and remove what it no longer has.

    The caller holds the writer lock, and has added the PDFs that the bibliography names.
    """
    plan = plan_import(library, bibliography)
    apply_import(library, plan)
    counts = len(plan.keys), len(plan.described), len(plan.withdrawn)
    return Imported(plan.path, *counts, plan.unmatched, plan.ambiguous)


def apply_import(library: Library, plan: ImportPlan) -> None:
    """Store what a plan says. The caller holds the writer lock."""
    for id, described in plan.described.items():
        library.set_metadata(id, "bibliography", described)
    for id in plan.withdrawn:
        library.set_metadata(id, "bibliography", NO_METADATA)


def plan_import(library: Library, bibliography: Bibliography) -> ImportPlan:
    """What an import of a bibliography would do. Changes nothing."""
    papers = library.papers()
    layers = {paper.id: library.metadata_layers(paper.id) for paper in papers}
    # Match without metadata that an earlier import stored.
    papers = [replace(paper, metadata=merged({**layers[paper.id], "bibliography": NO_METADATA})) for paper in papers]
    index = EntryIndex(papers, {file.path: file.sha256 for file in library.files()})
    matches: dict[str, list[tuple[int, Entry]]] = defaultdict(list)
    unmatched: list[Entry] = []
    ambiguous: list[tuple[Entry, str]] = []
    for place, entry in enumerate(bibliography.entries):
        rank, candidates = index.papers_of(entry, bibliography.pdfs.get(place, ()))
        if len(candidates) == 1:
            matches[candidates[0].id].append((rank, entry))
        elif candidates:
            ambiguous.append((entry, "it could be " + " or ".join(paper.file for paper in candidates[:3])))
        else:
            unmatched.append(entry)
    described: dict[str, Metadata] = {}
    keys: dict[str, str] = {}
    files = {paper.id: paper.file for paper in papers}
    for id, entries in matches.items():
        best = min(rank for rank, _ in entries)
        surest = [entry for rank, entry in entries if rank == best]
        if len({replace(entry.describe(), citation_key=Field("")) for entry in surest}) == 1:
            path = Field(str(bibliography.path), "bibliography", True)
            described[id] = replace(surest[0].describe(), bibliography=path)
            keys[id] = surest[0].key
        else:
            named = " and ".join(entry.key for entry in surest[:3])
            ambiguous.append((surest[0], f"{named} are both of {files[id]}"))
    is_readable = bool(bibliography.entries) or not bibliography.problems  # else a missing entry proves nothing
    before = {id: each.get("bibliography", NO_METADATA) for id, each in layers.items()}
    gone = [id for id in layers if id not in described and before[id].bibliography.value == str(bibliography.path)]
    return ImportPlan(
        bibliography.path,
        keys,
        {id: said for id, said in described.items() if said != before[id]},
        {id: _changed(layers[id], said) for id, said in described.items()},
        tuple(gone if is_readable else ()),
        tuple(unmatched),
        tuple(ambiguous),
    )


def _changed(layers: Mapping[Source, Metadata], said: Metadata) -> tuple[str, ...]:
    """The fields of a paper that change when a bibliography says this of it."""
    before, after = merged(layers).known(), merged({**layers, "bibliography": said}).known()
    return tuple(name for name in after if name != "bibliography" and _value(after, name) != _value(before, name))


def _value(known: Mapping[str, Field[Any]], name: str) -> object:
    return known[name].value if name in known else None


class EntryIndex:
    """Finds the papers that match an entry."""

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
            for by_value, value in (
                (self._by_doi, about.doi.value.casefold()),
                (self._by_arxiv, bare_arxiv(about.arxiv.value)),
                (self._by_title, fold(about.title.value)),
            ):
                if value:
                    by_value[value].add(paper.id)

    def papers_of(self, entry: Entry, pdfs: Iterable[Path]) -> tuple[int, list[Paper]]:
        """The papers that an entry matches, and the rank of the criterion: 0 is the surest."""
        for rank, ids in enumerate(self._matches(entry, pdfs)):
            if known := sorted(ids & self._papers.keys()):
                return rank, [self._papers[id] for id in known]
        return 0, []

    def _matches(self, entry: Entry, pdfs: Iterable[Path]) -> Iterator[set[str]]:
        """The ids of the papers that match by each criterion, the surest first."""
        yield {self._by_path.get(os.path.realpath(path), "") for path in pdfs}
        yield {paper for path in entry.files for paper in self._by_name.get(_file_name(path), ())}
        yield self._by_doi.get(entry.doi.casefold(), set()) if entry.doi else set()
        yield self._by_arxiv.get(bare_arxiv(entry.arxiv), set()) if entry.arxiv else set()
        same_title = self._by_title.get(fold(entry.title), set())
        yield {id for id in same_title if _fits(entry, self._papers[id].metadata)}


def _file_name(path: str) -> str:
    return unicodedata.normalize("NFC", PurePath(path.replace("\\", "/")).name).casefold()


def _fits(entry: Entry, paper: Metadata) -> bool:
    """Whether a paper with an entry's title is the same work: year or first author agree, nothing sure contradicts."""
    agree: list[bool] = []
    contradict: list[bool] = []
    if entry.year and paper.year.value:
        same = abs(entry.year - paper.year.value) <= _YEARS_APART
        (agree if same else contradict).append(same or paper.year.sure)
    if entry.first_author and paper.authors.value:
        same = is_same_family(entry.first_author, paper.authors.value[0].family)
        (agree if same else contradict).append(same or paper.authors.sure)
    return not any(contradict) and (any(agree) or (paper.title.sure and len(entry.title.split()) >= _TELLING_TITLE))
