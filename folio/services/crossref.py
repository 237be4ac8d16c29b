"""Crossref: works by DOI and by title, and notices of retraction or correction. https://api.crossref.org/swagger-ui

A publisher names the corrected work in the record of its notice (update-to). Crossref adds the reverse to the record
of the work (updated-by), and what Retraction Watch has collected. https://www.crossref.org/documentation/crossmark/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import takewhile
from typing import Any
from urllib.parse import quote

from pydantic import Field

from folio.bibliography.bibtex import read as parse_bibtex
from folio.errors import SourceError
from folio.papers.identifiers import find_arxiv, parse_doi
from folio.papers.work import NoticeKind, Work, WorkAuthor, WorkNotice, ordered
from folio.services.answers import (
    Address,
    Bounded,
    Count,
    Line,
    LongText,
    Number,
    Part,
    SearchQuery,
    WorkPart,
    day_in,
    is_found,
    orcid,
    parse_all,
    parse_json,
    parse_one,
    unreadable,
    valid_year,
)
from folio.services.http import HttpClient
from folio.text import fold

NAME = "Crossref"
_KINDS = {
    "journal-article": "article-journal", "proceedings-article": "paper-conference", "book": "book",
    "monograph": "book", "edited-book": "book", "reference-book": "book", "book-chapter": "chapter",
    "dissertation": "thesis", "posted-content": "article", "report": "report", "dataset": "dataset",
    "standard": "standard",
}  # fmt: skip
_LONGEST_BIBTEX = 50_000  # characters
_COMMAND = re.compile(r"\\([A-Za-z@]{2,})")
# Letters, fonts and mathematics; not \input, \write, \csname and other commands that read, write or define
_HARMLESS = re.compile(
    r"""text[a-z]+ | math[a-z]+ | emph | em | it | bf | rm | sc | tt | sl | ss | SS | a[ae] | A[AE] | o[e] | O[E]
    | th | TH | dh | DH | dj | DJ | ng | NG | less | greater | times | cdot | [lcd]dots | ell | log | max | min | sqrt
    | frac | left | right | le | leq | ge | geq | pm | sim | approx | infty | to | rightarrow | tilde | hat | bar | vec
    | dot | ddot | (?:var)?(?:[Aa]lpha | [Bb]eta | [Gg]amma | [Dd]elta | [Ee]psilon | [Zz]eta | [Ee]ta | [Tt]heta
    | [Ii]ota | [Kk]appa | [Ll]ambda | [Mm]u | [Nn]u | [Xx]i | [Pp]i | [Rr]ho | [Ss]igma | [Tt]au | [Uu]psilon | [Pp]hi
    | [Cc]hi | [Pp]si | [Oo]mega)""",
    re.X,
)
_TAKEN_BACK = ("retraction", "removal", "withdrawal")
_NOTICES = 100  # of a work, or works of a notice
_OPEN_LICENCE = "creativecommons.org/"
_BATCH = 20  # DOIs in one request: longer addresses are refused
_ROWS = 1000  # the most that Crossref sends at once
# Crossref's types, and those that publishers wrote before there was a list
_NOTICE_KINDS: Mapping[str, NoticeKind] = {
    "retraction": "retraction", "withdrawal": "withdrawal", "removal": "removal",
    "partial retraction": "partial-retraction", "expression of concern": "expression-of-concern",
    "correction": "correction", "corrigendum": "correction", "erratum": "correction", "addendum": "correction",
    "clarification": "correction", "new version": "new-version", "new edition": "new-version",
    "reinstatement": "reinstatement",
}  # fmt: skip
_BETWEEN_WORDS = re.compile(r"[\s_-]+")
_EARLIEST, _LATEST = 1900, 2100  # years of a notice
_NOT_IN_A_FILTER = re.compile(r"[,\s]")


class _Author(Part):
    family: Line = ""
    given: Line = ""
    name: Line = ""  # of an organisation
    ORCID: Line = ""


class _Date(Part):
    parts: Bounded[list[int | None]] = Field(alias="date-parts", default_factory=list)


class _Link(Part):
    address: Address = Field(alias="URL", default="")
    content_type: Line = Field(alias="content-type", default="")


class _Licence(Part):
    address: Address = Field(alias="URL", default="")


class _Reference(Part):
    doi: Line = Field(alias="DOI", default="")


class _Update(Part):
    """A notice in the record of a work, or the work in the record of a notice."""

    doi: Line = Field(alias="DOI", default="")
    type: Line = ""
    updated: _Date | None = None


class _Notice(Part):
    """The record of a notice."""

    doi: Line = Field(alias="DOI")
    update_to: Bounded[Any] = Field(alias="update-to", default_factory=list)


class _Record(WorkPart):
    """A work as Crossref sends it."""

    doi: Line = Field(alias="DOI")
    title: Bounded[Line]
    subtitle: Bounded[Line]
    author: Bounded[_Author]
    issued: _Date | None = None
    published: _Date | None = None
    container_title: Bounded[Line] = Field(alias="container-title", default_factory=list)
    abstract: LongText = ""
    type: Line = ""
    volume: Number = ""
    issue: Number = ""
    page: Line = ""
    publisher: Line = ""
    link: Bounded[_Link]
    license: Bounded[_Licence]
    subject: Bounded[Line]
    reference: Bounded[_Reference]
    reference_count: Count = Field(alias="references-count", default=None)
    cited: Count = Field(alias="is-referenced-by-count", default=None)
    updated_by: Bounded[Any] = Field(alias="updated-by", default_factory=list)  # see _updates

    @property
    def names_a_work(self) -> bool:
        return bool(self.doi or any(self.title))

    def to_work(self) -> Work:
        known = parse_doi(self.doi)
        links = [link.address for link in self.link if link.content_type == "application/pdf"]
        is_open = any(_OPEN_LICENCE in licence.address for licence in self.license)
        references = [parse_doi(each.doi) for each in self.reference if each.doi]
        licences = sorted((each.address for each in self.license), key=lambda one: _OPEN_LICENCE not in one)
        return Work(
            "crossref",
            title=_full_title(self.title, self.subtitle),
            authors=tuple(filter(None, map(_author, self.author))),
            year=_year(self.issued) or _year(self.published),
            date=day_in(_day(self.issued) or _day(self.published)),
            venue=self.container_title[0] if self.container_title else "",
            abstract=self.abstract.removeprefix("Abstract").strip(),
            kind=_KINDS.get(self.type, ""),
            volume=self.volume,
            issue=self.issue,
            pages=self.page.replace("-", "–") if self.page.count("-") == 1 else self.page,
            publisher=self.publisher,
            doi=known.value if known and known.kind == "doi" else "",
            arxiv=find_arxiv(self.doi, ""),
            categories=tuple(filter(None, self.subject[:20])),
            licence=licences[0] if licences else "",
            is_open=True if is_open else None,
            pdfs=tuple(dict.fromkeys(filter(None, links))) if is_open else (),
            cited=self.cited,
            reference_count=self.reference_count,
            references=tuple(dict.fromkeys(each.value for each in references if each)),
            is_retracted=any(update.type in _TAKEN_BACK for update in _updates(self.updated_by)),
        )


@dataclass(frozen=True, slots=True)
class Registered:
    """A work as Crossref has it, and the notices in its record."""

    work: Work
    notices: tuple[WorkNotice, ...]


def by_doi(client: HttpClient, doi: str) -> Work | None:
    """The work of a DOI; None if Crossref does not have it, such as arXiv's DOIs. Raises SourceError."""
    reply = client.get("crossref", f"/works/{quote(doi, safe='')}", {})
    return read_work(reply.status, reply.text)


def by_title(client: HttpClient, title: str, first_author: str) -> list[Work]:
    """Works whose title has these words, best first. Raises SourceError."""
    parameters = {"query.title": title, "rows": "5"} | ({"query.author": first_author} if first_author else {})
    return read_works(client.get("crossref", "/works", parameters).text)


def search(client: HttpClient, query: SearchQuery) -> list[Work]:
    """Works whose title, authors or venue have the words, at most one page of them. Raises SourceError."""
    days = [
        *([f"from-pub-date:{query.since}"] if query.since else []),
        *([f"until-pub-date:{query.until}"] if query.until else []),
    ]
    parameters = {"query.bibliographic": query.words, "rows": str(min(query.most, _ROWS))}
    if days:
        parameters["filter"] = ",".join(days)
    works = read_works(client.get("crossref", "/works", parameters).text)
    return [work for work in works if (work.cited or 0) >= query.min_cited and (work.is_open or not query.is_open)]


def bibtex(client: HttpClient, work: Work) -> str:
    """The publisher's BibTeX entry of a work with a DOI; "" if there is none, or it is another work's.

    Raises SourceError.
    """
    reply = client.get("crossref", f"/works/{quote(work.doi, safe='')}/transform/application/x-bibtex", {})
    return read_bibtex(reply.text, work) if reply.status == 200 else ""


def read_bibtex(text: str, work: Work) -> str:
    """The entry in a reply, unchanged; "" unless it is exactly one readable entry, of this work.

    It goes into people's LaTeX, so an entry with commands other than letters, fonts and mathematics is refused.
    """
    entry = text.strip()
    if len(entry) > _LONGEST_BIBTEX or not all(char.isprintable() or char in "\n\t" for char in entry):
        return ""
    entries, problems = parse_bibtex(entry)
    if len(entries) != 1 or problems or not entry.startswith("@") or not entry.endswith("}"):
        return ""
    if any(not _HARMLESS.fullmatch(command) for command in _COMMAND.findall(entry)) or "^^" in entry:
        return ""
    is_same = entries[0].doi.casefold() == work.doi and fold(entries[0].title)[:20] == fold(work.title)[:20]
    return entry if is_same else ""


def read_work(status: int, text: str) -> Work | None:
    """The work in a reply; None for 404. Raises SourceError."""
    return parse_one(_Record, _message(text), NAME).to_work() if is_found(status, NAME) else None


def read_works(text: str) -> list[Work]:
    """The works of a list. Raises SourceError."""
    return [each.to_work() for each in parse_all(_Record, _items(text), NAME, 200)]


def _items(text: str) -> Any:
    """The list in a reply. Raises SourceError."""
    message = _message(text)
    if not isinstance(message, dict):
        raise unreadable(NAME)
    return message.get("items")


def _message(text: str) -> Any:
    """The content of a reply. Raises SourceError."""
    value = parse_json(text, NAME)
    if not isinstance(value, dict) or value.get("status") != "ok":
        raise unreadable(NAME)
    return value.get("message")


def _full_title(titles: list[str], subtitles: list[str]) -> str:
    title = titles[0] if titles else ""
    subtitle = subtitles[0] if subtitles else ""
    return f"{title}: {subtitle}" if title and subtitle and subtitle.casefold() not in title.casefold() else title


def _author(author: _Author) -> WorkAuthor | None:
    family = author.family or author.name
    return WorkAuthor(family, author.given, orcid(author.ORCID)) if family else None


def _year(date: _Date | None) -> int | None:
    first = date.parts[0] if date and date.parts else []
    return valid_year(first[0]) if first else None


def registered(client: HttpClient, dois: Sequence[str]) -> dict[str, Registered]:
    """DOI in lower case -> the work; unknown DOIs are left out. Raises SourceError."""
    records = list(_one_by_one(client, filter(_NOT_IN_A_FILTER.search, dois)))
    for batch in _batches(dois):
        parameters = {"filter": ",".join(f"doi:{doi}" for doi in batch), "rows": str(len(batch))}
        reply = client.get("crossref", "/works", parameters)
        # Crossref refuses a whole batch if it does not accept one of its DOIs.
        records += read_registered(reply.text) if reply.status == 200 else _one_by_one(client, batch)
    return {each.work.doi: each for each in records if each.work.doi}


def _one_by_one(client: HttpClient, dois: Iterable[str]) -> Iterator[Registered]:
    for doi in dois:
        reply = client.get("crossref", f"/works/{quote(doi, safe='')}", {})
        if reply.status == 200:
            yield _registered(parse_one(_Record, _message(reply.text), NAME))


def updating(client: HttpClient, dois: Sequence[str]) -> dict[str, list[WorkNotice]]:
    """DOI in lower case -> the notices whose own records name it. Raises SourceError."""
    notices: dict[str, list[WorkNotice]] = {}
    for batch in _batches(dois):
        parameters = {"filter": ",".join(f"updates:{doi}" for doi in batch), "rows": str(_ROWS)}
        reply = client.get("crossref", "/works", parameters)
        if reply.status != 200:
            raise SourceError(f"{NAME} answers {reply.status} when asked for notices.", "Try again later.")
        for doi, notice in read_updating(reply.text):
            notices.setdefault(doi, []).append(notice)
    return notices


def _batches(dois: Sequence[str]) -> Iterator[Sequence[str]]:
    """The distinct DOIs that fit into a filter, in batches for one request each."""
    distinct = [doi for doi in dict.fromkeys(dois) if not _NOT_IN_A_FILTER.search(doi)]
    return (distinct[start : start + _BATCH] for start in range(0, len(distinct), _BATCH))


def read_registered(text: str) -> list[Registered]:
    """The works of a list, with their notices. Raises SourceError."""
    return [_registered(record) for record in parse_all(_Record, _items(text), NAME, _BATCH)]


def _registered(record: _Record) -> Registered:
    notices = (_notice(update, update.doi) for update in _updates(record.updated_by))
    return Registered(record.to_work(), ordered(filter(None, notices)))


def read_updating(text: str) -> list[tuple[str, WorkNotice]]:
    """The notices of a list, each with the DOI of its work. Raises SourceError."""
    notices: list[tuple[str, WorkNotice]] = []
    for record in parse_all(_Notice, _items(text), NAME, _ROWS):
        for update in _updates(record.update_to):
            doi, notice = parse_doi(update.doi), _notice(update, record.doi)
            if doi is not None and notice is not None:
                notices.append((doi.value, notice))
    return notices


def _updates(values: Sequence[Any]) -> list[_Update]:
    """The readable notices of a record; an unreadable one does not affect the others, nor the work."""
    updates: list[_Update] = []
    for value in values[:_NOTICES]:
        with suppress(SourceError):
            updates.append(parse_one(_Update, value, NAME))
    return updates


def _notice(update: _Update, doi: str) -> WorkNotice | None:
    """The notice of an update; None if its kind does not matter to readers. doi: the notice's."""
    kind = _NOTICE_KINDS.get(_BETWEEN_WORDS.sub(" ", update.type.casefold()).strip())
    own = parse_doi(doi)
    return WorkNotice(kind, _day(update.updated), own.value if own and own.kind == "doi" else "") if kind else None


def _day(updated: _Date | None) -> str:
    """A date as text, as far as it is known: "2015-05-04", "2015-05", "2015"."""
    parts = updated.parts[0][:3] if updated and updated.parts else []
    known = [part or 0 for part in takewhile(bool, parts)]
    try:
        date(*[*known, 1, 1][:3])
    except (ValueError, TypeError, OverflowError):
        return ""
    year, *rest = known
    return "-".join([str(year), *(f"{part:02}" for part in rest)]) if _EARLIEST <= year <= _LATEST else ""
