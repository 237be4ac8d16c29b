"""Keeps what services say of papers: works, which paper is which work, and the papers' metadata, which come of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from folio.identifiers import bare_arxiv, version_number
from folio.paper_metadata import Metadata
from folio.sources.fetching import describe
from folio.sources.linked_works import Followed
from folio.sources.paper_match import contradicts, paper_marks, score
from folio.store import works
from folio.store.library import Library
from folio.store.work_rows import FoundBy, KeptWork, found_by, trusted_first
from folio.work import Work, to_metadata


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
