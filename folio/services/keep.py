"""Keeps what services say of papers: works, which paper is which work, and the papers' metadata, which come of that."""

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

# Which paper of the library is which work: by identifier, else by title, authors and year, with a score. Pure.

ENOUGH = 0.9  # the score of a match that is found by its title
_SAME_TITLE = 0.9  # the likeness of titles, at least
# The likeness of titles below which an identifier must be another work's, such as one that the paper cites
_OTHER_TITLE = 0.5
_TITLE, _AUTHORS, _YEAR = 0.7, 0.2, 0.1  # weights in a score
_TELLING = 4  # words of a title that say enough without authors


def paper_marks(papers: Iterable[Paper]) -> dict[str, Paper]:
    """What a work has in common with a paper (Work.marks) -> the paper."""
    found: dict[str, Paper] = {}
    for paper in papers:
        about = paper.metadata
        first = about.authors.value[0].family if about.authors.value else ""
        for mark in (
            f"doi {about.doi.value.casefold()}" if about.doi.value else "",
            f"arxiv {bare_arxiv(about.arxiv.value)}" if about.arxiv.value else "",
            title_key(about.title.value, first, about.year.value),
        ):
            if mark:
                found.setdefault(mark, paper)
    return found


def score(about: Metadata, work: Work) -> float:
    """How well a work fits what is known of a paper, 0 to 1. What is not known on either side does not count."""
    likeness = _likeness(about, work)
    parts = [(_TITLE, likeness)]
    ours = families(about.authors.value)
    theirs = families(author.name for author in work.authors)
    if ours and theirs:
        parts.append((_AUTHORS, len(ours & theirs) / min(len(ours), len(theirs))))
    if about.printed_year and work.year:
        parts.append((_YEAR, 1.0 if abs(about.printed_year - work.year) <= 1 else 0.0))
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def best(about: Metadata, works: Sequence[Work]) -> tuple[Work, float] | None:
    """The work that fits best and well enough, with its score."""
    has_authors = bool(about.authors.value)
    is_telling = len(about.title.value.split()) >= _TELLING
    fitting = [
        (score(about, work), work)
        for work in works
        if _likeness(about, work) >= _SAME_TITLE and (is_telling or (has_authors and work.authors))
    ]
    found = max(fitting, key=lambda each: each[0], default=None)
    return (found[1], found[0]) if found and found[0] >= ENOUGH else None


def contradicts(about: Metadata, work: Work) -> bool:
    """Whether the work of a paper's identifier is another one, by its title."""
    return bool(about.title.sure and about.title.value) and _likeness(about, work) < _OTHER_TITLE


def same_title(one: Work, other: Work) -> bool:
    """Whether two works have the same title, as versions of one work have."""
    return fuzz.ratio(fold(one.title), fold(other.title)) / 100 >= _SAME_TITLE


def _likeness(about: Metadata, work: Work) -> float:
    return fuzz.ratio(fold(about.title.value), fold(work.title)) / 100


# Works that are to come into the library: which of them is there, where its file goes, what is kept of it.

_LONGEST_TITLE = 80  # characters of a file's name
_LONGEST_ID = 60
_LONGEST_NAME = 180  # bytes, without the suffix: file systems allow 255
_NO_NAME = re.compile(r"[^\w.()-]+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A work that may be fetched."""

    work: Work
    metadata: Metadata
    path: Path  # where its file is, or will be
    paper: str = ""  # the file of the paper of the library that it is; "" for none
    paper_id: str = ""  # the id of that paper
    works: tuple[Work, ...] = ()  # what each source says
    is_other_version: bool = False  # whether that paper is another version of the work

    @property
    def is_here(self) -> bool:
        """Whether nothing has to be downloaded."""
        return bool(self.paper) or self.path.is_file()


def candidates(
    works: Iterable[Work], papers: Iterable[Paper], folder: Path, kept: Mapping[str, str] | None = None
) -> list[Candidate]:
    """The works, each once, with what is there of them already.

    folder: where files go. kept: what the works that are papers are recognised by (works.marks_of_papers).
    """
    listed = list(papers)
    by_id = {paper.id: paper for paper in listed}
    known = {mark: by_id[id] for mark, id in (kept or {}).items() if id in by_id} | paper_marks(listed)
    found: list[Candidate] = []
    for group in grouped(list(works)):
        work = merged(group)
        paper = next((known[mark] for mark in work.marks() if mark in known), None)
        version = next((known[key] for key in version_keys(work) if key in known), None)
        here = paper or version
        found.append(
            Candidate(
                work,
                to_metadata(group),
                folder / pdf_name(work),
                here.file if here else "",
                here.id if here else "",
                tuple(group),
                is_other_version=paper is None and version is not None,
            )
        )
    return found


def pdf_name(work: Work, *, with_version: bool = False) -> str:
    """The name of a work's file: "2312.10997 Retrieval-Augmented Generation for Large Language Models.pdf"."""
    arxiv = work.arxiv if with_version else bare_arxiv(work.arxiv)
    identifier = arxiv or work.doi or work.openalex or work.semanticscholar[:12]
    start = _NO_NAME.sub("_", identifier)[:_LONGEST_ID].strip("._") or "paper"
    words = one_line(_NO_NAME.sub(" ", work.title))
    if len(words) > _LONGEST_TITLE:
        words = words[:_LONGEST_TITLE].rpartition(" ")[0] or words[:_LONGEST_TITLE]
    return shortened(f"{start} {words}", _LONGEST_NAME).rstrip(" .") + ".pdf"


def identifier_of(work: Work) -> Identifier | None:
    """What a work is asked for by: the identifier of whoever described it, else another; None if it has none."""
    own = {"arxiv": work.arxiv, "openalex": work.openalex, "semanticscholar": work.semanticscholar}
    tried = (own.get(work.source, work.doi), work.doi, work.arxiv, work.openalex, work.semanticscholar)
    return next(filter(None, map(find_identifier, tried)), None)


def describe(library: Library, metadata: Mapping[str, Metadata]) -> int:
    """Store what services say of papers, by SHA-256; returns of how many they say something new.

    A paper need not be in the library yet: when it is added, it is described already. The caller holds the writer lock.
    """
    present = {paper.id for paper in library.papers()}
    layers = {id: library.metadata_layers(id) for id in metadata}
    now = {id: with_own_version(layers[id], said) if id in present else said for id, said in metadata.items()}
    changed = {id: said for id, said in now.items() if layers[id].get("online") != said}
    library.set_metadata_of("online", changed)
    return len(changed)


# What following citations finds, as values. Pure.

Direction = Literal["cites", "cited-by"]


@dataclass(frozen=True, slots=True)
class Linked:
    """A work that was found, with the papers of the library that it is linked with."""

    works: tuple[Work, ...]  # as each source describes it
    papers: frozenset[str]
    depth: int  # steps from these papers

    @property
    def work(self) -> Work:
        return merged(self.works)


@dataclass(frozen=True, slots=True)
class Expansion:
    """What came of following citations."""

    found: list[Linked]  # best first
    starts: dict[str, Work]  # paper -> its work, for those that a service has
    # Works with what they cite, as far as it was looked at: the starts, those that were followed, and what cites them
    citing: list[Work]


@dataclass(frozen=True, slots=True)
class Followed:
    """The citations of papers of the library."""

    expansion: Expansion
    matches: Mapping[str, tuple[FoundBy, float]]  # paper -> how its work was found, and the score


def identifiers_of(work: Work) -> list[Identifier]:
    """What services know a work by."""
    found: tuple[tuple[Kind, str], ...] = (
        ("doi", work.doi),
        ("arxiv", work.arxiv),
        ("openalex", work.openalex),
        ("semanticscholar", work.semanticscholar),
    )
    return [Identifier(kind, value) for kind, value in found if value]


@dataclass(frozen=True, slots=True)
class PaperFound:
    """What came of looking a paper up."""

    works: tuple[Work, ...]  # one work, as each source describes it; at least one
    found_by: FoundBy
    score: float  # how well the paper and the work fit, 0 to 1


def keep_papers(library: Library, found: Mapping[str, PaperFound]) -> int:
    """Keep the works of papers, by SHA-256, and describe the papers; returns of how many something new is known.

    A paper need not be in the library yet: when it is added, it is described already. The caller holds the writer lock.
    """
    metadata: dict[str, Metadata] = {}
    with library.changing_works() as database:
        for paper, each in found.items():
            views = [work for work in each.works if work.marks()]
            if not views:  # nothing that it could be recognised by
                metadata[paper] = to_metadata(each.works)
                continue
            id = works.put(database, views)[0]
            works.link_paper(database, paper, id, each.found_by, each.score)
            said = to_metadata(trusted_first(works.get(database, [id])[id].said.values()))
            metadata[paper] = _in_version(said, each.works)
    return describe(library, metadata)


def _in_version(said: Metadata, works: Iterable[Work]) -> Metadata:
    """What is said of a paper, with the version at arXiv that one of these works has."""
    numbers = [work.arxiv for work in works if bare_arxiv(work.arxiv) == bare_arxiv(said.arxiv.value)]
    number = next((each for each in numbers if version_number(each)), said.arxiv.value)
    return replace(said, arxiv=replace(said.arxiv, value=number))


def keep_followed(library: Library, followed: Followed) -> None:
    """Keep what was found along citations, who cites whom, and which papers it began with.

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
    """Note which papers are works that are kept, by what both are recognised by. The caller holds the writer lock."""
    papers = library.papers()
    with library.changing_works() as database:
        linked = works.of_papers(database, [paper.id for paper in papers])
        for mark, paper in paper_marks(paper for paper in papers if paper.id not in linked).items():
            kept = next(iter(works.with_mark(database, mark)), None)
            if kept is not None and paper.id not in linked and not contradicts(paper.metadata, kept.work):
                works.link_paper(database, paper.id, kept.id, found_by(mark), score(paper.metadata, kept.work))
                linked |= works.of_papers(database, [paper.id])


def metadata_then(found: PaperFound, kept: KeptWork | None) -> Metadata:
    """A paper's metadata as `keep_papers` will make it. kept: the work that the paper was known to be."""
    said = {work.source: work for work in reversed(found.works)}
    if kept is not None and kept.marks() & {mark for work in found.works for mark in work.marks()}:
        said = {**kept.said, **said}
    return to_metadata(trusted_first(said.values()))
