"""A work as services describe it; its metadata; notices of what happened to it after publication. Pure.

The words of a notice are Folio's own. From a service or a paper come only its date and its link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

from folio.papers.identifiers import OPENALEX_ID, S2_ID, bare_arxiv
from folio.papers.metadata import Field, Metadata, PersonName, read_stored, stored_form
from folio.shown_text import NOTICE_MARKS
from folio.text import fold

SourceName = Literal["openalex", "semanticscholar", "crossref", "arxiv", "europepmc"]
SOURCE_NAMES: tuple[SourceName, ...] = get_args(SourceName)
# The fields that a paper's metadata has under the same names
_KEPT = (
    "title", "authors", "year", "date", "venue", "doi", "arxiv", "abstract", "kind", "volume", "issue", "pages",
    "publisher",
)  # fmt: skip
# Registrants of preprint servers: bioRxiv and medRxiv, ChemRxiv, Research Square, Preprints.org, SSRN, OSF, TechRxiv
_PREPRINT_DOIS = (
    "10.1101/", "10.26434/", "10.21203/", "10.20944/", "10.2139/", "10.31234/", "10.31219/", "10.31235/", "10.36227/",
)  # fmt: skip
_YEARS_BETWEEN = 2  # at most, between the versions of a work
_TELLING = 4  # words of a title that identifies a work, at least
# Characters of a title and of a name to compare: some titles are whole abstracts, too long for an index of PostgreSQL
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
    """A work as one source or several describe it. An unknown field is "", () or None."""

    source: SourceName  # the first source
    title: str = ""
    authors: tuple[WorkAuthor, ...] = ()
    year: int | None = None
    date: str = ""  # of its publication, at least the month: "2021-05-26", "2021-05"
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
    pmid: str = ""  # of PubMed: "34497389"
    pmcid: str = ""  # of PubMed Central: "PMC8425348"
    categories: tuple[str, ...] = ()  # subjects as the source names them: "math.CO"
    licence: str = ""  # as the source names it: "cc-by", or its address
    is_open: bool | None = None  # whether anybody may read it without paying
    pdfs: tuple[str, ...] = ()  # addresses, the best first
    cited: int | None = None  # number of works that cite it
    reference_count: int | None = None
    references: tuple[str, ...] = ()  # works that it cites: OpenAlex ids, DOIs, Semantic Scholar ids
    is_retracted: bool = False
    bibtex: str = ""  # the publisher's entry

    @property
    def first_author(self) -> str:
        """The family name."""
        return self.authors[0].family if self.authors else ""

    def marks(self) -> list[str]:
        """Keys to recognise the work by, the surest first."""
        title = title_key(self.title, self.first_author, self.year)
        return [*self.identifiers(), title] if title else self.identifiers()

    def identifiers(self) -> list[str]:
        """Its marks without the title: "doi 10.1/x", "arxiv 2312.10997", "openalex W1", "semanticscholar ..."."""
        identifiers = {
            "doi": self.doi.casefold(),
            "arxiv": bare_arxiv(self.arxiv),
            "openalex": self.openalex,
            "semanticscholar": self.semanticscholar,
            "pmid": self.pmid,
            "pmcid": self.pmcid,
        }
        return [f"{kind} {value}" for kind, value in identifiers.items() if value]

    @property
    def is_preprint(self) -> bool:
        """Whether it seems to be a manuscript at a repository. Its journal version is another work."""
        if self.doi.startswith(_PREPRINT_DOIS) or (self.arxiv and not self.doi and not self.venue):
            return True
        return self.kind == "article"


def reference_mark(identifier: str) -> str:
    """The mark of an identifier in Work.references."""
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
    """Title keys of possible other versions: a journal may print a preprint up to two years later.

    None for a short title: there is an "Editorial" every year.
    """
    if work.year is None or len(work.title.split()) < _TELLING:
        return []
    years = range(work.year - _YEARS_BETWEEN, work.year + _YEARS_BETWEEN + 1)
    return list(filter(None, (title_key(work.title, work.first_author, year) for year in years)))


def merged(works: Sequence[Work]) -> Work:
    """One work from several sources: each field from the first source that has it, the links of all."""
    values_of: dict[str, Any] = {}
    for field in fields(Work):
        values = [getattr(work, field.name) for work in works]
        values_of[field.name] = next((value for value in values if value not in ("", (), None)), values[0])
    values_of["is_retracted"] = any(work.is_retracted for work in works)
    values_of["is_open"] = next((True for work in works if work.is_open), values_of["is_open"])
    values_of["pdfs"] = tuple(dict.fromkeys(link for work in works for link in work.pdfs))
    values_of["cited"] = max((work.cited for work in works if work.cited is not None), default=None)
    return Work(**values_of)


def grouped(works: Sequence[Work]) -> list[list[Work]]:
    """Groups of works that are one work, in the order of their first members."""
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
                groups[:] = [kept for kept in groups if kept is not other]
                of_key.update((key, group) for member in other for key in member.marks())
                other.clear()
        group.append(work)
        of_key.update((key, group) for member in group for key in member.marks())
    return groups


def to_metadata(works: Sequence[Work]) -> Metadata:
    """A paper's metadata from several sources of one work: each field from the first source that has it."""
    known: dict[str, Field[Any]] = {}
    for work in works:
        if work.source == "arxiv" and work.categories:  # the subjects of other services are of another kind
            known["categories"] = Field(work.categories, work.source, True)
    for work in works:
        for name in _KEPT:
            value = getattr(work, name)
            if value in ("", (), None) or name in known:
                continue
            if name == "authors":
                value = tuple(author.name for author in work.authors)
            known[name] = Field(value, work.source, True)
    return Metadata(**known)


def to_json(work: Work) -> dict[str, Any]:
    """The known fields of a work as JSON values, without its source and its references."""
    unknown = {field.name for field in fields(Work) if getattr(work, field.name) in ("", (), None)}
    left_out = unknown | {"source", "references"}
    written: dict[str, Any] = stored_form(Work).dump_python(work, mode="json", exclude=left_out)
    return written


def from_json(source: SourceName, written: Mapping[str, Any]) -> Work:
    """What `to_json` wrote. Raises ValueError for anything else."""
    work: Work = read_stored(stored_form(Work), {**written, "source": source}, "a work")
    return work


# The gravest first
NoticeKind = Literal[
    "retraction", "withdrawal", "removal", "partial-retraction", "expression-of-concern", "correction",
    "older-version", "same-paper", "reinstatement", "new-version",
]  # fmt: skip
KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)
# In words, the registrar first
_SOURCES: dict[SourceName, str] = {
    "crossref": "Crossref", "arxiv": "arXiv", "openalex": "OpenAlex", "semanticscholar": "Semantic Scholar",
    "europepmc": "Europe PMC",
}  # fmt: skip
# In capitals: what may make the evidence worthless. An answer that cites it shows a warning.
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
# The gravest kinds -> their words in a citation, where there is little room
_MARKS: dict[NoticeKind, str] = dict(zip(KINDS, NOTICE_MARKS, strict=False))
_TAKEN_BACK = ("retraction", "withdrawal", "removal")
_NO_FLAG: tuple[NoticeKind, ...] = ("reinstatement", "new-version")
# From no service: the relation to another paper of the library (versions.py). These are never stored.
_OF_LIBRARY: tuple[NoticeKind, ...] = ("older-version", "same-paper")


@dataclass(frozen=True, slots=True)
class WorkNotice:
    """A notice about a work, such as its retraction, from one service."""

    kind: NoticeKind
    dated: str = ""  # "2021-03-04", "2021-03", "2021"; "" if not known
    link: str = ""  # the DOI of the notice, or an arXiv id with its version; "" if not known
    source: SourceName = "crossref"

    @property
    def is_grave(self) -> bool:
        """Whether nobody should rely on the work."""
        return self.kind in _MARKS

    @property
    def is_of_library(self) -> bool:
        """Whether it is about the relation to another paper of the library."""
        return self.kind in _OF_LIBRARY

    @property
    def mark(self) -> str:
        """The word for a citation: "RETRACTED"; "" for none."""
        return _MARKS.get(self.kind, "")

    @property
    def words(self) -> str:
        """ "RETRACTED 2021-03-04", "Corrected 2015-05-04", "Newer version 2301.01234v3 of 2024-01-31"."""
        if self.kind == "new-version":
            when = f"of {self.dated}" if self.dated else ""
            return " ".join(filter(None, [_WORDS[self.kind], self.link, when]))
        return " ".join(filter(None, [_WORDS[self.kind], self.dated]))

    @property
    def text(self) -> str:
        """The words with the place: "RETRACTED 2021-03-04 (doi:10.1234/notice)", "RETRACTED (says OpenAlex)".

        "Older version: arXiv:2301.01234v2 is in the index", "In the index again: arXiv:2301.01234v2", "In the index
        again, with the same text".
        """
        if self.is_of_library and not self.link:
            return f"{self.words}, with the same text"
        if self.is_of_library:
            return f"{self.words}: {self._place}{' is in the index' if self.kind == 'older-version' else ''}"
        return self.words if self.kind == "new-version" else f"{self.words} ({self._place})"

    @property
    def without_date(self) -> str:
        """The text for a table with the date in another column."""
        return f"{_WORDS[self.kind]} ({self._place})"

    @property
    def _place(self) -> str:
        link = f"doi:{self.link}" if self.link.startswith("10.") else self.link and f"arXiv:{self.link}"
        return link or f"says {_SOURCES[self.source]}"

    @property
    def note(self) -> str:
        """The text for a bibliography: "Retracted: 2021-03-04, doi:10.1234/notice".

        "" for the relation to another paper of the library: it says nothing to those who read the bibliography.
        """
        if self.is_of_library:
            return ""
        return f"{_WORDS[self.kind].capitalize()}: {', '.join(filter(None, [self.dated, self._place]))}"


def ordered(notices: Iterable[WorkNotice]) -> tuple[WorkNotice, ...]:
    """The notices, the gravest kind first, then the latest; of one from several sources, the most complete."""
    trusted = tuple(_SOURCES)
    unique: dict[tuple[str, str], WorkNotice] = {}
    for notice in sorted(notices, key=lambda notice: (not notice.link, not notice.dated, trusted.index(notice.source))):
        unique.setdefault((notice.kind, notice.link), notice)
    # Some services call a withdrawn work retracted, too.
    is_taken_back = any(notice.link and notice.kind in _TAKEN_BACK for notice in unique.values())
    kept = [notice for notice in unique.values() if notice.link or not (is_taken_back and notice.kind == "retraction")]
    by_date = sorted(kept, key=lambda notice: (notice.dated, notice.link, notice.source), reverse=True)
    return tuple(sorted(by_date, key=lambda notice: KINDS.index(notice.kind)))


def flag(notices: Sequence[WorkNotice]) -> WorkNotice | None:
    """The gravest notice, to show wherever the work is cited; None for none. Ignores a retraction that was undone."""
    undone = max((notice.dated for notice in notices if notice.kind == "reinstatement"), default="")
    valid = [notice for notice in ordered(notices) if not (notice.is_grave and undone and notice.dated <= undone)]
    return next((notice for notice in valid if notice.kind not in _NO_FLAG), None)
