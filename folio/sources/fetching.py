"""Works that are to come into the library: which of them is there, where its file goes, what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from folio.paper_metadata import Metadata
from folio.sources.lookup import Lookup
from folio.sources.paper_match import paper_marks
from folio.sources.pdf_download import download_pdf, pdf_name
from folio.store import metadata_layers
from folio.store.library import Library
from folio.types import Paper
from folio.work import Work, grouped, merged, to_metadata


@dataclass(frozen=True, slots=True)
class Candidate:
    """A work that may be fetched."""

    work: Work
    metadata: Metadata
    path: Path  # where its file is, or will be
    paper: str = ""  # the file of the paper of the library that it is; "" for none

    @property
    def is_here(self) -> bool:
        """Whether nothing has to be downloaded."""
        return bool(self.paper) or self.path.is_file()


def candidates(works: Iterable[Work], papers: Iterable[Paper], folder: Path) -> list[Candidate]:
    """The works, each once, with what is there of them already. folder: where files go."""
    known = paper_marks(papers)
    found: list[Candidate] = []
    for group in grouped(list(works)):
        work = merged(group)
        paper = next((known[mark].file for mark in work.marks() if mark in known), "")
        found.append(Candidate(work, to_metadata(group), folder / pdf_name(work), paper))
    return found


def download(
    wanted: Iterable[Candidate], lookup: Lookup, largest: int, on_failure: Callable[[str], None]
) -> Iterator[Candidate | None]:
    """Download the files that are not there, one after the other: each that is there then, None for one that is not.

    largest: bytes of a file. on_failure: told one sentence about each link that leads to no PDF.
    """
    for each in wanted:
        tell = partial(_tell, on_failure, each.work.title[:80])
        if each.path.is_file():
            yield each
        elif links := lookup.pdf_links(each.work):
            yield each if download_pdf(lookup.client, links, each.path, largest, tell) else None
        else:
            tell("no open PDF is known.")
            yield None


def _tell(on_failure: Callable[[str], None], title: str, why: str) -> None:
    on_failure(f'"{title}": {why}')


def describe(library: Library, metadata: Mapping[str, Metadata]) -> int:
    """Store what services say of papers, by SHA-256; returns of how many they say something new.

    A paper need not be in the library yet: when it is added, it is described already. The caller holds the writer lock.
    """
    present = {paper.id for paper in library.papers()}
    changed = {id: said for id, said in metadata.items() if library.metadata_layers(id).get("online") != said}
    with library.database.transaction():  # papers that are not there have no passages that are indexed by title
        for id in changed.keys() - present:
            metadata_layers.write(library.database, id, "online", changed[id])
    for id in changed.keys() & present:
        library.set_metadata(id, "online", changed[id])
    return len(changed)
