"""A work as the services describe it, and what Folio keeps of that. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, get_args

from folio.papers.identifiers import OPENALEX_ID, S2_ID, bare_arxiv
from folio.papers.metadata import Field, Metadata, PersonName, read_stored, stored_form
from folio.shown_text import NOTICE_MARKS
from folio.text import fold

SourceName = Literal["openalex", "semanticscholar", "crossref", "arxiv"]
SOURCE_NAMES: tuple[SourceName, ...] = get_args(SourceName)
# What goes into a paper's metadata, under the same names
_KEPT = (
    "title", "authors", "year", "venue", "doi", "arxiv", "abstract", "kind", "volume", "issue", "pages", "publisher",
)  # fmt: skip
# Registrants of preprint servers: bioRxiv and medRxiv, ChemRxiv, Research Square, Preprints.org, SSRN, OSF, TechRxiv
_PREPRINT_DOIS = (
    "10.1101/", "10.26434/", "10.21203/", "10.20944/", "10.2139/", "10.31234/", "10.31219/", "10.31235/", "10.36227/",
)  # fmt: skip
_APART = 2  # years between the versions of a work
_TELLING = 4  # words of a title that tell a work
# Characters of a title and of a name that works are compared by: some titles are whole abstracts, and no index of
# PostgreSQL holds them
_TITLE_START, _NAME_START = 300, 100
_OPENALEX, _S2 = re.compile(OPENALEX_ID), re.compile(S2_ID)


class WorkAuthor(NamedTuple):
    family: str
    given: str
    orcid: str = ""  # "0000-0002-5424-5260"

    @property
    def name(self) -> PersonName:
        return PersonName(self.family, self.given)


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
    bibtex: str = ""  # an entry as the publisher writes it

    @property
    def first_author(self) -> str:
        """The family name."""
        return self.authors[0].family if self.authors else ""

    def marks(self) -> list[str]:
        """What the work can be recognised by, the surest first."""
        title = title_key(self.title, self.first_author, self.year)
        return [*self.identifiers(), title] if title else self.identifiers()

    def identifiers(self) -> list[str]:
        """Its marks without the title: "doi 10.1/x", "arxiv 2312.10997", "openalex W1", "semanticscholar ..."."""
        found = {
            "doi": self.doi.casefold(),
            "arxiv": bare_arxiv(self.arxiv),
            "openalex": self.openalex,
            "semanticscholar": self.semanticscholar,
        }
        return [f"{kind} {value}" for kind, value in found.items() if value]

    @property
    def is_preprint(self) -> bool:
        """Whether it is a manuscript at a repository, as far as can be told; its journal version is another."""
        if self.doi.startswith(_PREPRINT_DOIS) or (self.arxiv and not self.doi and not self.venue):
            return True
        return self.kind == "article"


def reference_mark(identifier: str) -> str:
    """The mark of a work that another refers to (Work.references)."""
    if _OPENALEX.fullmatch(identifier):
        return f"openalex {identifier}"
    if _S2.fullmatch(identifier):
        return f"semanticscholar {identifier}"
    return f"doi {identifier.casefold()}" if identifier.startswith("10.") else f"arxiv {bare_arxiv(identifier)}"


def title_key(title: str, first_author: str, year: int | None) -> str:
    """A title with first author and year for comparison; "" if one is missing."""
    folded, author = fold(title)[:_TITLE_START], fold(first_author)[:_NAME_START]
    return f"title {folded} {author} {year}" if folded and author and year else ""


def version_keys(work: Work) -> list[str]:
    """Title keys that another version of a work may have: a journal prints a preprint up to two years later.

    None for a short title: "Editorial" appears every year.
    """
    if work.year is None or len(work.title.split()) < _TELLING:
        return []
    years = range(work.year - _APART, work.year + _APART + 1)
    return list(filter(None, (title_key(work.title, work.first_author, year) for year in years)))


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


def to_json(work: Work) -> dict[str, Any]:
    """What is known of a work, as JSON values; without its source and its references."""
    unknown = {field.name for field in fields(Work) if getattr(work, field.name) in ("", (), None)}
    left_out = unknown | {"source", "references"}
    written: dict[str, Any] = stored_form(Work).dump_python(work, mode="json", exclude=left_out)
    return written


def from_json(source: SourceName, written: Mapping[str, Any]) -> Work:
    """What `to_json` wrote. Raises ValueError for anything else."""
    work: Work = read_stored(stored_form(Work), {**written, "source": source}, "a work")
    return work


# What became of a work after it came out: retracted, withdrawn, corrected, superseded. Pure.
#
# The words of a notice are Folio's own: nothing of what a service or a paper wrote is in them but a date and a link.

# The gravest first
NoticeKind = Literal[
    "retraction", "withdrawal", "removal", "partial-retraction", "expression-of-concern", "correction",
    "older-version", "same-paper", "reinstatement", "new-version",
]  # fmt: skip
KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)
# The registrar first
_SAID_BY: dict[SourceName, str] = {
    "crossref": "Crossref", "arxiv": "arXiv", "openalex": "OpenAlex", "semanticscholar": "Semantic Scholar",
}  # fmt: skip
_TRUSTED = tuple(_SAID_BY)
# In capitals: what may make the evidence worthless. An answer that cites it has a warning above it.
_WORDS: dict[NoticeKind, str] = {
    "retraction": "RETRACTED",
    "withdrawal": "WITHDRAWN",
    "removal": "REMOVED",
    "partial-retraction": "PARTLY RETRACTED",
    "expression-of-concern": "EXPRESSION OF CONCERN",
    "correction": "Corrected",
    "reinstatement": "Reinstated",
    "older-version": "Older version",
    "same-paper": "In the index again",
    "new-version": "Newer version",
}
# In a citation, where there is little room: a correction is told with the sources
_MARKED: tuple[NoticeKind, ...] = (
    "retraction",
    "withdrawal",
    "removal",
    "partial-retraction",
    "expression-of-concern",
)
_SHORT: dict[NoticeKind, str] = dict(zip(_MARKED, NOTICE_MARKS, strict=True))
_TAKEN_BACK = ("retraction", "withdrawal", "removal")
_NO_FLAG: tuple[NoticeKind, ...] = ("reinstatement", "new-version")
# Said by no service: what another paper of the library is to this one (papers/versions.py). These are never stored.
_OF_LIBRARY: tuple[NoticeKind, ...] = ("older-version", "same-paper")


@dataclass(frozen=True, slots=True)
class WorkNotice:
    """One thing that became of a work, as one service says it."""

    kind: NoticeKind
    dated: str = ""  # "2021-03-04", "2021-03", "2021"; "" if it is not known
    link: str = ""  # the DOI of the notice, or an arXiv id with its version; "" if it is not known
    source: SourceName = "crossref"

    @property
    def is_grave(self) -> bool:
        """Whether what stands in the work may not be relied on."""
        return self.kind in _SHORT

    @property
    def is_of_library(self) -> bool:
        """Whether it says what another paper of the library is to this one."""
        return self.kind in _OF_LIBRARY

    @property
    def mark(self) -> str:
        """A word for a citation: "RETRACTED"; "" for what needs none there."""
        return _SHORT.get(self.kind, "")

    @property
    def words(self) -> str:
        """ "RETRACTED 2021-03-04", "Corrected 2015-05-04", "Newer version 2301.01234v3 of 2024-01-31"."""
        if self.kind == "new-version":
            when = f"of {self.dated}" if self.dated else ""
            return " ".join(filter(None, [_WORDS[self.kind], self.link, when]))
        return " ".join(filter(None, [_WORDS[self.kind], self.dated]))

    @property
    def text(self) -> str:
        """The same with where it is said: "RETRACTED 2021-03-04 (doi:10.1234/notice)", "RETRACTED (says OpenAlex)".

        "Older version: arXiv:2301.01234v2 is in the index", "In the index again: arXiv:2301.01234v2".
        """
        if self.is_of_library:
            return f"{self.words}: {self._place}{' is in the index' if self.kind == 'older-version' else ''}"
        return self.words if self.kind == "new-version" else f"{self.words} ({self._place})"

    @property
    def without_date(self) -> str:
        """The same for a table whose date is in another column."""
        return f"{_WORDS[self.kind]} ({self._place})"

    @property
    def _place(self) -> str:
        link = f"doi:{self.link}" if self.link.startswith("10.") else self.link and f"arXiv:{self.link}"
        return link or f"says {_SAID_BY[self.source]}"

    @property
    def note(self) -> str:
        """The same for a bibliography: "Retracted: 2021-03-04, doi:10.1234/notice"."""
        if self.is_of_library:
            return self.text
        said = ", ".join(filter(None, [self.dated, self._place]))
        return f"{_WORDS[self.kind].capitalize()}: {said}"


def ordered(notices: Iterable[WorkNotice]) -> tuple[WorkNotice, ...]:
    """The gravest first, of one kind the latest; what several sources say, once: the one with a date and a link."""
    found: dict[tuple[str, str], WorkNotice] = {}
    known = sorted(notices, key=lambda each: (not each.link, not each.dated, _TRUSTED.index(each.source)))
    for each in known:
        found.setdefault((each.kind, each.link), each)
    # Some services say only that a work is retracted, also of one that was withdrawn.
    is_taken_back = any(each.link and each.kind in _TAKEN_BACK for each in found.values())
    told = [each for each in found.values() if each.link or not (is_taken_back and each.kind == "retraction")]
    by_date = sorted(told, key=lambda each: (each.dated, each.link, each.source), reverse=True)
    return tuple(sorted(by_date, key=lambda each: KINDS.index(each.kind)))


def flag(notices: Sequence[WorkNotice]) -> WorkNotice | None:
    """The notice that is shown wherever the work is cited, the gravest; None if there is nothing to warn of.

    A retraction that was undone later is none.
    """
    back = max((each.dated for each in notices if each.kind == "reinstatement"), default="")
    standing = [each for each in ordered(notices) if not (each.is_grave and back and each.dated <= back)]
    return next((each for each in standing if each.kind not in _NO_FLAG), None)
