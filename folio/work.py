"""A work as the services describe it, and what Folio keeps of that. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from folio.paper_metadata import Field, Metadata, PersonName, bare_arxiv
from folio.text import fold

SourceName = Literal["openalex", "semanticscholar", "crossref", "arxiv"]
# What goes into a paper's metadata, under the same names
_KEPT = (
    "title", "authors", "year", "venue", "doi", "arxiv", "abstract", "kind", "volume", "issue", "pages", "publisher",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkAuthor:
    name: PersonName
    orcid: str = ""  # "0000-0002-5424-5260"


@dataclass(frozen=True, slots=True)
class Work:
    """A work as one source describes it, or as several do together. What is not known is "", () or None."""

    source: SourceName  # who says so; of several, the first
    title: str = ""
    authors: tuple[WorkAuthor, ...] = ()
    year: int | None = None
    venue: str = ""
    abstract: str = ""
    kind: str = ""  # a CSL type: "article-journal"
    volume: str = ""
    issue: str = ""
    pages: str = ""  # "137–150"
    publisher: str = ""
    doi: str = ""  # in lower case; none for arXiv's own
    arxiv: str = ""  # with its version if known
    openalex: str = ""  # "W4389761608"
    semanticscholar: str = ""  # 40 hex digits
    categories: tuple[str, ...] = ()  # subjects as the source names them: "math.CO"
    licence: str = ""  # as the source names it: "cc-by", or its address
    is_open: bool | None = None  # whether somebody may read it without paying
    pdfs: tuple[str, ...] = ()  # addresses, the likeliest first
    cited: int | None = None  # works that cite it
    reference_count: int | None = None
    references: tuple[str, ...] = ()  # works that it cites: OpenAlex ids, DOIs, Semantic Scholar ids
    is_retracted: bool = False

    @property
    def first_author(self) -> str:
        """The family name."""
        return self.authors[0].name.family if self.authors else ""

    def marks(self) -> list[str]:
        """What the work can be recognised by, the surest first."""
        found = [
            f"doi {self.doi.casefold()}" if self.doi else "",
            f"arxiv {bare_arxiv(self.arxiv)}" if self.arxiv else "",
            f"openalex {self.openalex}" if self.openalex else "",
            f"semanticscholar {self.semanticscholar}" if self.semanticscholar else "",
            title_key(self.title, self.first_author, self.year),
        ]
        return [key for key in found if key]


def title_key(title: str, first_author: str, year: int | None) -> str:
    """A title with first author and year for comparison; "" if one is missing."""
    folded, author = fold(title), fold(first_author)
    return f"title {folded} {author} {year}" if folded and author and year else ""


def merged(works: Sequence[Work]) -> Work:
    """One work of what several sources say of it: each field from the first that has it, the links of all."""
    first = works[0]
    found: dict[str, Any] = {}
    for field in fields(Work):
        values = [getattr(work, field.name) for work in works]
        found[field.name] = next((value for value in values if value not in ("", (), None)), values[0])
    found["is_retracted"] = any(work.is_retracted for work in works)
    found["is_open"] = next((True for work in works if work.is_open), found["is_open"])
    found["pdfs"] = tuple(dict.fromkeys(link for work in works for link in work.pdfs))
    found["cited"] = max((work.cited for work in works if work.cited is not None), default=None)
    return replace(first, **found)


def grouped(works: Sequence[Work]) -> list[list[Work]]:
    """The works that are one together, in the order of the first of each."""
    groups: list[list[Work]] = []
    of_key: dict[str, list[Work]] = {}
    for work in works:
        known = [of_key[key] for key in work.marks() if key in of_key]
        group = known[0] if known else []
        if not known:
            groups.append(group)
        for other in known[1:]:  # this work shows that two groups are one
            if other is not group and other:
                group.extend(other)
                groups[:] = [each for each in groups if each is not other]
                of_key.update((key, group) for each in other for key in each.marks())
                other.clear()
        group.append(work)
        of_key.update((key, group) for each in group for key in each.marks())
    return groups


def to_metadata(works: Sequence[Work]) -> Metadata:
    """What several sources say of one work, as a paper's metadata: each field from the first that has it."""
    found: dict[str, Field[Any]] = {}
    for work in works:
        for name in _KEPT:
            value = getattr(work, name)
            if value in ("", (), None) or name in found:
                continue
            if name == "authors":
                value = tuple(author.name for author in work.authors)
            found[name] = Field(value, work.source, True)
    return Metadata(**found)
