"""Papers and their pages as resources: folio://papers/PAPER, folio://papers/PAPER/pages/N."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from folio.answer.fencing import harmless_line
from folio.errors import NotKnown, StoreMissing, UsageError
from folio.mcp import shown
from folio.mcp.tools import URI, Backend, Call, paper_outline, read_pages, ref_of
from folio.schema import mcp as schema
from folio.shown_text import counted, name_line

PER_PAGE = 50  # papers in a part of the list
_LONGEST_PAGE = 50_000  # characters
_MOST_SECTIONS = 500
_RESOURCE = re.compile(rf"{re.escape(URI)}/(?P<paper>[0-9a-f]{{6,64}})(?:/pages/(?P<page>[0-9]{{1,6}}))?")
_CURSOR = re.compile("[0-9]{1,9}")


class Template(NamedTuple):
    uri: str
    name: str
    about: str


TEMPLATES = (
    Template(f"{URI}/{{paper}}", "paper", "A paper: authors, abstract, sections with their pages."),
    Template(f"{URI}/{{paper}}/pages/{{page}}", "page", "The text of a page, physical, from 1."),
)


@dataclass(frozen=True)
class PaperResource:
    uri: str
    paper: str
    title: str
    about: str


@dataclass(frozen=True)
class PaperResources:
    items: list[PaperResource]
    next_cursor: str | None


def listed(backend: Backend, cursor: str | None, call: Call) -> PaperResources:
    """The papers of the library; none before the first ingest. Raises UsageError for a bad cursor."""
    if cursor and not _CURSOR.fullmatch(cursor):
        raise UsageError("The cursor is not one of this list.", "Send `nextCursor` as it came.")
    start = int(cursor or 0)
    try:
        with backend.library() as library, library.reading():
            papers = library.papers()
    except StoreMissing:
        papers = []
    items = [
        PaperResource(
            f"{URI}/{ref_of(paper)}",
            ref_of(paper),
            harmless_line(paper.title or paper.file),
            harmless_line(f"{paper.file}, {counted(paper.page_count, 'page')}"),
        )
        for paper in papers[start : start + PER_PAGE]
    ]
    end = start + PER_PAGE
    return PaperResources(items, str(end) if len(papers) > end else None)


def read(backend: Backend, uri: str, call: Call) -> str:
    """A paper or a page, as text. Raises NotKnown."""
    found = _RESOURCE.fullmatch(uri)
    if found is None:
        known = " and ".join(template.uri for template in TEMPLATES)
        raise NotKnown(f"There is no resource “{name_line(uri, 80)}”.", f"There are {known}.")
    if found["page"] is None:
        wanted = schema.PaperOutline(paper=found["paper"], limit=_MOST_SECTIONS)
        return shown.outline(paper_outline(backend, wanted, call))
    page = int(found["page"])
    if page < 1:
        raise NotKnown("The paper has no page 0.", "Pages are counted from 1.")
    read = read_pages(backend, schema.ReadPages(paper=found["paper"], first=page, max_characters=_LONGEST_PAGE), call)
    return shown.pages(read)
