"""Works that are to come into the library: which of them is there, where its file goes, what is kept of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from folio.files import shortened
from folio.identifiers import Identifier, bare_arxiv, find_identifier
from folio.paper_metadata import Metadata, with_own_version
from folio.sources.paper_match import paper_marks
from folio.store.library import Library
from folio.text import one_line
from folio.types import Paper
from folio.work import Work, grouped, merged, to_metadata, version_keys

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
