"""Rows about works -> dataclasses, and back: works, citations, works of papers, notices. Pure.

As in rows.py, a row that has changed since it was written raises ValueError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from folio.store.rows import mapped, string, typed
from folio.work import SOURCE_NAMES, SourceName, Work, from_json, merged, to_json
from folio.work_notices import KINDS, NoticeKind, WorkNotice

# The sources by trust: Crossref first for a work with a DOI, because journals register there; otherwise arXiv first
_PUBLISHED: tuple[SourceName, ...] = ("crossref", "openalex", "semanticscholar", "arxiv")
_PREPRINT: tuple[SourceName, ...] = ("arxiv", "openalex", "semanticscholar", "crossref")
FoundBy = Literal["doi", "arxiv", "openalex", "semanticscholar", "title", "fetched"]
_DATE = re.compile(r"(?:\d{4}(?:-\d\d(?:-\d\d)?)?)?", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)
_ID = re.compile(r"[0-9a-f]{16}")
_MARK = re.compile(r"(?:doi|arxiv|openalex|semanticscholar) .{1,500}")
LONGEST_LINK = 500
_WHOLE = 1000  # the best score, as it is stored

WORK_COLUMNS = "id, version_of, said"
CITATION_COLUMNS = "citing, cited, source, said_at"
PAPER_WORK_COLUMNS = "paper, work, found_by, score"
NOTICE_COLUMNS = "work, kind, dated, link, source, said_at"


def found_by(mark: str) -> FoundBy:
    """The kind of a mark (Work.marks)."""
    kind = mark.partition(" ")[0]
    return next(each for each in get_args(FoundBy) if each == kind)


@dataclass(frozen=True)
class KeptWork:
    """A work in the library's tables."""

    id: str  # Folio's own: 16 hex digits
    said: Mapping[SourceName, Work]  # the description from each source
    said_at: Mapping[SourceName, str]  # the time of each description (ISO, UTC)
    version_of: str = ""  # the id of the preferred version; "" if it is this one

    @cached_property
    def work(self) -> Work:
        """The merged description: each field from the most trusted source that has it."""
        return merged(trusted_first(self.said.values()))

    def marks(self) -> set[str]:
        """The marks of all descriptions."""
        return {mark for work in self.said.values() for mark in work.marks()}

    def identifiers(self) -> set[str]:
        return {mark for work in self.said.values() for mark in work.identifiers()}


@dataclass(frozen=True, slots=True)
class Citation:
    citing: str  # a work
    cited: str  # a mark (Work.identifiers)
    source: SourceName
    said_at: str


@dataclass(frozen=True, slots=True)
class PaperWork:
    """Which work a paper of the library is."""

    paper: str
    work: str
    found_by: FoundBy
    score: float  # the quality of the match, 0 to 1


@dataclass(frozen=True, slots=True)
class Notice:
    """A retraction, a correction or a newer version of a work."""

    work: str
    kind: NoticeKind
    dated: str  # "2021-05-26", "2021", "" if not known
    link: str  # a DOI, an address or an arXiv id with its version; "" if not known
    source: SourceName
    said_at: str

    @property
    def said(self) -> WorkNotice:
        """The notice without its work."""
        return WorkNotice(self.kind, self.dated, self.link, self.source)


def trusted_first(views: Iterable[Work]) -> list[Work]:
    """The descriptions of a work from several sources, the most trusted one first."""
    works = list(views)
    order = _PUBLISHED if any(work.doi for work in works) else _PREPRINT
    return sorted(works, key=lambda work: order.index(work.source))


def work(*row: Any) -> KeptWork:
    """From WORK_COLUMNS."""
    id, version_of, said = row
    label = f"the record of work {str(id)[:16]}"
    if not _ID.fullmatch(string(id)) or (version_of and not _ID.fullmatch(string(version_of))):
        raise ValueError(f"{label} has no identifier")
    by_source = mapped(said, label)
    works: dict[SourceName, Work] = {}
    times: dict[SourceName, str] = {}
    for source, fields in by_source.items():
        name = _source(source, label)
        times[name] = _time(typed(dict, fields, label).pop("at"), label)
        works[name] = from_json(name, fields)
    if not works:
        raise ValueError(f"{label} is empty")
    return KeptWork(id, works, times, version_of)


def work_row(kept: KeptWork) -> dict[str, object]:
    """The values of WORK_COLUMNS, by name."""
    said = json.dumps(
        {source: {"at": kept.said_at[source], **to_json(work)} for source, work in kept.said.items()},
    )
    return {"id": kept.id, "version_of": kept.version_of, "said": said}


def is_mark(text: str) -> bool:
    """Whether a text is a mark that a citation can have."""
    return bool(_MARK.fullmatch(text))


def citation(*row: Any) -> Citation:
    """From CITATION_COLUMNS."""
    citing, cited, source, said_at = row
    label = "the record of a citation"
    if not is_mark(string(cited)):
        raise ValueError(f"{label} names no work")
    return Citation(string(citing), cited, _source(source, label), _time(said_at, label))


def citation_row(citation: Citation) -> dict[str, object]:
    """The values of CITATION_COLUMNS, by name."""
    return asdict(citation)


def paper_work(*row: Any) -> PaperWork:
    """From PAPER_WORK_COLUMNS."""
    paper, work, found_by, score = row
    label = "the record of which work a paper is"
    if found_by not in get_args(FoundBy) or not 0 <= typed(int, score, label) <= _WHOLE:
        raise ValueError(f"{label} cannot be read")
    return PaperWork(string(paper), string(work), found_by, score / _WHOLE)


def paper_work_row(link: PaperWork) -> dict[str, object]:
    """The values of PAPER_WORK_COLUMNS, by name."""
    return {**asdict(link), "score": round(link.score * _WHOLE)}


def notice(*row: Any) -> Notice:
    """From NOTICE_COLUMNS."""
    work, kind, dated, link, source, said_at = row
    return require_notice(Notice(string(work), kind, dated, link, source, said_at))


def notice_row(notice: Notice) -> dict[str, object]:
    """The values of NOTICE_COLUMNS, by name. Raises ValueError for a notice that could not be read again."""
    return asdict(require_notice(notice))


def require_notice(notice: Notice) -> Notice:
    """The notice. Raises ValueError if one of its values is invalid."""
    label = "a notice about a work"
    if notice.kind not in KINDS or not _DATE.fullmatch(string(notice.dated)):
        raise ValueError(f"{label} cannot be read")
    if len(string(notice.link)) > LONGEST_LINK or not notice.link.isprintable():
        raise ValueError(f"{label} has a link that cannot be read")
    _source(notice.source, label)
    _time(notice.said_at, label)
    return notice


def _source(source: object, label: str) -> SourceName:
    if source not in SOURCE_NAMES:
        raise ValueError(f"{label} is from an unknown source")
    return source


def _time(value: object, label: str) -> str:
    if not _TIME.fullmatch(string(value)):
        raise ValueError(f"{label} has no time")
    return string(value)
