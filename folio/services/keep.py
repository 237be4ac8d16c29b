"""Matches works of the services with papers of the library, and stores works, matches and the papers' metadata.

A paper is matched with a work by identifier, else by title, authors and year, with a score.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rapidfuzz import fuzz

from folio.papers.identifiers import Identifier, Kind, bare_arxiv, find_identifier, version_number
from folio.papers.metadata import Metadata, with_own_version
from folio.papers.model import Paper
from folio.papers.people import families
from folio.papers.work import Work, grouped, merged, title_key, to_metadata, version_keys
from folio.store import works
from folio.store.library import Library
from folio.store.works import FoundBy, KeptWork, found_by, trusted_first
from folio.system.files import shortened
from folio.text import fold, one_line

ENOUGH = 0.9  # minimum score of a match by title
_SAME_TITLE = 0.9  # minimum similarity of titles
# Below this similarity of titles, an identifier belongs to another work, such as one that the paper cites
_OTHER_TITLE = 0.5
_TITLE, _AUTHORS, _YEAR = 0.7, 0.2, 0.1  # weights in a score
_TELLING = 4  # words of a title that identifies a work without authors
_LONGEST_TITLE = 80  # characters of a file's name
_LONGEST_ID = 60
_LONGEST_NAME = 180  # bytes, without the suffix: file systems allow 255
_NOT_IN_A_NAME = re.compile(r"[^\w.()-]+")

Direction = Literal["cites", "cited-by"]


@dataclass(frozen=True, slots=True)
class PaperFound:
    """The work of a paper, found at the services."""

    works: tuple[Work, ...]  # the work as each source describes it; at least one
    found_by: FoundBy
    score: float  # how well the paper and the work fit, 0 to 1


@dataclass(frozen=True, slots=True)
class Linked:
    """A work found along citations, with the papers of the library that it is linked with."""

    works: tuple[Work, ...]  # as each source describes it
    papers: frozenset[str]
    depth: int  # steps from these papers

    @property
    def work(self) -> Work:
        return merged(self.works)


@dataclass(frozen=True, slots=True)
class Expansion:
    """The result of following citations."""

    found: list[Linked]  # best first
    starts: dict[str, Work]  # paper -> its work, if a service has it
    # Works with the references looked at: the starts, the works that were followed, and the works that cite them
    citing: list[Work]


@dataclass(frozen=True, slots=True)
class Followed:
    """The citations of papers of the library."""

    expansion: Expansion
    matches: Mapping[str, tuple[FoundBy, float]]  # paper -> how its work was found, and the score


@dataclass(frozen=True, slots=True)
class Candidate:
    """A work that may be fetched."""

    work: Work
    metadata: Metadata
    path: Path  # where its file is, or will be
    paper: str = ""  # the file of the matching paper in the library; "" for none
    paper_id: str = ""
    works: tuple[Work, ...] = ()  # as each source describes it
    is_other_version: bool = False  # whether the matching paper is another version of the work

    @property
    def is_here(self) -> bool:
        """Whether nothing has to be downloaded."""
        return bool(self.paper) or self.path.is_file()


def candidates(
    works: Iterable[Work], papers: Iterable[Paper], folder: Path, kept: Mapping[str, str] | None = None
) -> list[Candidate]:
    """The distinct works, each with its paper in the library, if there is one.

    folder: where files go. kept: mark of a stored work -> its paper (works.marks_of_papers).
    """
    listed = list(papers)
    by_id = {paper.id: paper for paper in listed}
    known = {mark: by_id[id] for mark, id in (kept or {}).items() if id in by_id} | paper_marks(listed)
    result: list[Candidate] = []
    for group in grouped(list(works)):
        work = merged(group)
        paper = next((known[mark] for mark in work.marks() if mark in known), None)
        version = next((known[key] for key in version_keys(work) if key in known), None)
        match = paper or version
        result.append(
            Candidate(
                work,
                to_metadata(group),
                folder / pdf_name(work),
                match.file if match else "",
                match.id if match else "",
                tuple(group),
                is_other_version=paper is None and version is not None,
            )
        )
    return result


def pdf_name(work: Work, *, with_version: bool = False) -> str:
    """The name of a work's file: "2312.10997 Retrieval-Augmented Generation for Large Language Models.pdf"."""
    arxiv = work.arxiv if with_version else bare_arxiv(work.arxiv)
    identifier = arxiv or work.doi or work.openalex or work.semanticscholar[:12] or work.pmcid or work.pmid
    start = _NOT_IN_A_NAME.sub("_", identifier)[:_LONGEST_ID].strip("._") or "paper"
    words = one_line(_NOT_IN_A_NAME.sub(" ", work.title))
    if len(words) > _LONGEST_TITLE:
        words = words[:_LONGEST_TITLE].rpartition(" ")[0] or words[:_LONGEST_TITLE]
    return shortened(f"{start} {words}", _LONGEST_NAME).rstrip(" .") + ".pdf"


def identifier_of(work: Work) -> Identifier | None:
    """The best identifier for asking about a work, preferably of the source that described it; None if it has none."""
    own = {"arxiv": work.arxiv, "openalex": work.openalex, "semanticscholar": work.semanticscholar}
    pubmed = work.pmcid or (f"PMID:{work.pmid}" if work.pmid else "")
    tried = (own.get(work.source, work.doi), work.doi, work.arxiv, work.openalex, work.semanticscholar, pubmed)
    return next(filter(None, map(find_identifier, tried)), None)


def identifiers_of(work: Work) -> list[Identifier]:
    """All identifiers of a work."""
    named: tuple[tuple[Kind, str], ...] = (
        ("doi", work.doi),
        ("arxiv", work.arxiv),
        ("openalex", work.openalex),
        ("semanticscholar", work.semanticscholar),
        ("pmid", work.pmid),
        ("pmcid", work.pmcid),
    )
    return [Identifier(kind, value) for kind, value in named if value]


def paper_marks(papers: Iterable[Paper]) -> dict[str, Paper]:
    """Mark (as in Work.marks) -> the paper that has it."""
    marked: dict[str, Paper] = {}
    for paper in papers:
        about = paper.metadata
        first = about.authors.value[0].family if about.authors.value else ""
        for mark in (
            f"doi {about.doi.value.casefold()}" if about.doi.value else "",
            f"arxiv {bare_arxiv(about.arxiv.value)}" if about.arxiv.value else "",
            title_key(about.title.value, first, about.year.value),
        ):
            if mark:
                marked.setdefault(mark, paper)
    return marked


def score(about: Metadata, work: Work) -> float:
    """How well a work fits a paper's metadata, 0 to 1. Fields that either side lacks do not count."""
    parts = [(_TITLE, _similarity(about.title.value, work.title))]
    of_paper = families(about.authors.value)
    of_work = families(author.name for author in work.authors)
    if of_paper and of_work:
        parts.append((_AUTHORS, len(of_paper & of_work) / min(len(of_paper), len(of_work))))
    if about.printed_year and work.year:
        parts.append((_YEAR, 1.0 if abs(about.printed_year - work.year) <= 1 else 0.0))
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def best(about: Metadata, works: Sequence[Work]) -> tuple[Work, float] | None:
    """The best match by title with its score; None if no work fits well enough."""
    has_authors = bool(about.authors.value)
    is_telling = len(about.title.value.split()) >= _TELLING
    fitting = [
        (work, score(about, work))
        for work in works
        if same_title(about.title.value, work.title) and (is_telling or (has_authors and work.authors))
    ]
    match = max(fitting, key=lambda each: each[1], default=None)
    return match if match and match[1] >= ENOUGH else None


def contradicts(about: Metadata, work: Work) -> bool:
    """Whether the title of a work shows that it is not the paper with its identifier."""
    return bool(about.title.sure and about.title.value) and _similarity(about.title.value, work.title) < _OTHER_TITLE


def same_title(one: str, other: str) -> bool:
    """Whether two titles are equal but for small differences, as those of two versions are."""
    return _similarity(one, other) >= _SAME_TITLE


def _similarity(one: str, other: str) -> float:
    return fuzz.ratio(fold(one), fold(other)) / 100


def keep_papers(library: Library, found: Mapping[str, PaperFound]) -> int:
    """Store the works of papers, by SHA-256, and their metadata; returns the number of papers that changed.

    A paper need not be in the library yet: its metadata waits for it. The caller holds the writer lock.
    """
    metadata: dict[str, Metadata] = {}
    with library.changing_works() as database:
        for paper, match in found.items():
            views = [work for work in match.works if work.marks()]
            if not views:  # without a mark, the work could not be found again
                metadata[paper] = to_metadata(match.works)
                continue
            id = works.put(database, views)[0]
            works.link_paper(database, paper, id, match.found_by, match.score)
            stored = to_metadata(trusted_first(works.get(database, [id])[id].said.values()))
            metadata[paper] = _in_version(stored, match.works)
    present = {paper.id for paper in library.papers()}
    layers = {id: library.metadata_layers(id) for id in metadata}
    now = {id: with_own_version(layers[id], said) if id in present else said for id, said in metadata.items()}
    changed = {id: said for id, said in now.items() if layers[id].get("online") != said}
    library.set_metadata_of("online", changed)
    return len(changed)


def _in_version(about: Metadata, works: Iterable[Work]) -> Metadata:
    """The metadata with the arXiv version that one of these works names."""
    numbers = [work.arxiv for work in works if bare_arxiv(work.arxiv) == bare_arxiv(about.arxiv.value)]
    number = next((each for each in numbers if version_number(each)), about.arxiv.value)
    return replace(about, arxiv=replace(about.arxiv, value=number))


def keep_followed(library: Library, followed: Followed) -> None:
    """Store the works found along citations, their citations, and the matches of the papers at the start.

    The caller holds the writer lock.
    """
    expansion = followed.expansion
    found = [replace(work, references=()) for each in expansion.found for work in each.works]
    with library.changing_works() as database:
        for paper, work in expansion.starts.items():
            (id,) = works.put(database, [replace(work, references=())])
            known = works.of_papers(database, [paper]).get(paper)
            if known is None or id not in {kept.id for kept in works.versions(database, known.work)}:
                works.link_paper(database, paper, id, *followed.matches[paper])
        works.put(database, (work for work in [*expansion.citing, *found] if work.marks()))


def link_papers(library: Library) -> None:
    """Link papers with stored works that share a mark. The caller holds the writer lock."""
    papers = library.papers()
    with library.changing_works() as database:
        linked = works.of_papers(database, [paper.id for paper in papers])
        for mark, paper in paper_marks(paper for paper in papers if paper.id not in linked).items():
            kept = next(iter(works.with_mark(database, mark)), None)
            if kept is not None and paper.id not in linked and not contradicts(paper.metadata, kept.work):
                works.link_paper(database, paper.id, kept.id, found_by(mark), score(paper.metadata, kept.work))
                linked |= works.of_papers(database, [paper.id])


def metadata_then(found: PaperFound, kept: KeptWork | None) -> Metadata:
    """A paper's metadata as `keep_papers` will make it. kept: the work that the paper was linked with before."""
    said = {work.source: work for work in reversed(found.works)}
    if kept is not None and kept.marks() & {mark for work in found.works for mark in work.marks()}:
        said = {**kept.said, **said}
    return to_metadata(trusted_first(said.values()))
