"""Europe PMC: works of the life sciences by identifier and words, PubMed's among them.

https://europepmc.org/RestfulWebService, and the fields of a search: https://europepmc.org/searchsyntax
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from folio.errors import SourceError
from folio.papers.identifiers import PMCID, PMID, Identifier, find_doi, parse_doi
from folio.papers.work import Work, WorkAuthor
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
    unreadable,
    valid_year,
)
from folio.services.http import HttpClient
from folio.text import one_line

NAME = "Europe PMC"
_PAGE = 100  # works in one reply
_SORTS = {"date": "P_PDATE_D desc", "citations": "CITED desc"}
_FREE = ("OA", "F")  # codes of links that anybody may read: open access, free
_NOT_IN_WORDS = re.compile(r"[^\w\s\"()'.,-]")
_KINDS = {
    "preprint": "article", "journal article": "article-journal", "research-article": "article-journal",
    "review": "article-journal", "review-article": "article-journal", "book": "book", "chapter": "chapter",
}  # fmt: skip


class _AuthorId(Part):
    value: Line = ""


class _Author(Part):
    full_name: Line = Field(alias="fullName", default="")
    first_name: Line = Field(alias="firstName", default="")
    last_name: Line = Field(alias="lastName", default="")
    collective_name: Line = Field(alias="collectiveName", default="")
    author_id: _AuthorId | None = Field(alias="authorId", default=None)


class _Authors(Part):
    author: Bounded[_Author]


class _Journal(Part):
    title: Line = ""


class _Issue(Part):
    volume: Number = ""
    issue: Number = ""
    journal: _Journal | None = None


class _Link(Part):
    code: Line = Field(alias="availabilityCode", default="")
    style: Line = Field(alias="documentStyle", default="")
    url: Address = ""


class _Links(Part):
    link: Bounded[_Link] = Field(alias="fullTextUrl", default_factory=list)


class _Types(Part):
    type: Bounded[Line] = Field(alias="pubType", default_factory=list)


class _Report(Part):
    publisher: Line = ""


class EuropePmcWork(WorkPart):
    """A work as Europe PMC sends it with `resultType=core`."""

    id: Line = ""
    pmid: Line = ""
    pmcid: Line = ""
    doi: Line = ""
    title: Line = ""
    authors: _Authors | None = Field(alias="authorList", default=None)
    issue: _Issue | None = Field(alias="journalInfo", default=None)
    report: _Report | None = Field(alias="bookOrReportDetails", default=None)
    year: Number = Field(alias="pubYear", default="")
    date: Line = Field(alias="firstPublicationDate", default="")
    pages: Line = Field(alias="pageInfo", default="")
    abstract: LongText = Field(alias="abstractText", default="")
    types: _Types | None = Field(alias="pubTypeList", default=None)
    links: _Links | None = Field(alias="fullTextUrlList", default=None)
    is_open: Line = Field(alias="isOpenAccess", default="")
    licence: Line = Field(alias="license", default="")
    cited: Count = Field(alias="citedByCount", default=None)

    @property
    def names_a_work(self) -> bool:
        return bool(self.id or self.doi or self.title)

    def to_work(self) -> Work:
        known = parse_doi(find_doi(self.doi))
        issue = self.issue or _Issue()
        journal = issue.journal or _Journal()
        types = [name.casefold() for name in (self.types.type if self.types else ())]
        links = self.links.link if self.links else []
        pdfs = tuple(dict.fromkeys(link.url for link in links if link.style == "pdf" and link.code in _FREE))
        listed = self.authors.author if self.authors else []
        return Work(
            "europepmc",
            title=re.sub(r"(?<!\.)\.\Z", "", self.title),
            authors=tuple(author for each in listed if (author := _author(each))),
            year=valid_year(int(self.year)) if re.fullmatch(r"\d{4}", self.year, re.ASCII) else None,
            date=day_in(self.date),
            venue=journal.title,
            abstract=self.abstract,
            kind=next((_KINDS[name] for name in types if name in _KINDS), ""),
            volume=issue.volume,
            issue=issue.issue,
            pages=self.pages.replace("-", "–") if self.pages.count("-") == 1 else self.pages,
            publisher=self.report.publisher if self.report else "",
            doi=known.value if known and known.kind == "doi" else "",
            arxiv=known.value if known and known.kind == "arxiv" else "",
            pmid=self.pmid if re.fullmatch(PMID, self.pmid, re.ASCII) else "",
            pmcid=self.pmcid if re.fullmatch(PMCID, self.pmcid, re.ASCII) else "",
            licence=self.licence,
            is_open=True if pdfs or self.is_open == "Y" else False if self.is_open == "N" else None,
            pdfs=tuple(filter(None, pdfs)),
            cited=self.cited,
            is_retracted="retracted publication" in types,
        )


def by_identifier(client: HttpClient, identifier: Identifier) -> Work | None:
    """The work of a DOI, a PubMed or a PMC id; None if it is unknown. Raises SourceError."""
    asked = {
        "doi": f'DOI:"{identifier.value}"',
        "pmid": f"EXT_ID:{identifier.value} AND SRC:MED",
        "pmcid": f"PMCID:{identifier.value}",
    }.get(identifier.kind)
    if asked is None or '"' in identifier.value:
        return None
    works, _ = _page(client, asked, {"pageSize": "5"})
    mark = f"{identifier.kind} {identifier.value}".casefold()
    return next((work for work in works if mark in map(str.casefold, work.identifiers())), None)


def search(client: HttpClient, query: SearchQuery) -> list[Work]:
    """Works that match. Raises SourceError."""
    conditions = [f"({_words(query.words)})"]
    if query.since or query.until:
        conditions.append(f"FIRST_PDATE:[{query.since or '1400-01-01'} TO {query.until or '2100-12-31'}]")
    if query.is_open:
        conditions.append("OPEN_ACCESS:y")
    parameters = {"pageSize": str(min(_PAGE, query.most)), "cursorMark": "*"}
    if query.sort in _SORTS:
        parameters["sort"] = _SORTS[query.sort]
    works: list[Work] = []
    while len(works) < query.most:
        page, cursor = _page(client, " AND ".join(conditions), parameters)
        works += (work for work in page if (work.cited or 0) >= query.min_cited)
        if not page or not cursor or cursor == parameters["cursorMark"]:
            break
        parameters["cursorMark"] = cursor
    return works[: query.most]


def _page(client: HttpClient, asked: str, parameters: dict[str, str]) -> tuple[list[Work], str]:
    """The works of one reply, and the mark of the next one; "" if there is none."""
    fixed = {"query": asked, "format": "json", "resultType": "core"}
    reply = client.get("europepmc", "/search", fixed | parameters)
    return read_works(reply.status, reply.text)


def read_works(status: int, text: str) -> tuple[list[Work], str]:
    """The works of a list, and the mark of the next one. Raises SourceError."""
    if not is_found(status, NAME):
        return [], ""
    value = parse_json(text, NAME)
    if not isinstance(value, dict):
        raise unreadable(NAME)
    if isinstance(said := value.get("errMsg"), str):
        raise SourceError(f"{NAME} says: {one_line(said)[:300].rstrip('.')}.", "Check the words of the search.")
    results = value.get("resultList")
    listed = results.get("result") if isinstance(results, dict) else None
    works = [each.to_work() for each in parse_all(EuropePmcWork, listed, NAME, 1000)]
    cursor = value.get("nextCursorMark")
    return works, cursor[:1000] if isinstance(cursor, str) else ""


def _words(written: str) -> str:
    """The words of a search without signs of its language but AND, OR, NOT, "phrases" and parentheses that match."""
    words = _NOT_IN_WORDS.sub(" ", written)
    if words.count('"') % 2:
        words = words.replace('"', " ")
    if not _match(re.sub(r'"[^"]*"', "", words)):
        words = words.translate(str.maketrans("()", "  "))
    return one_line(words)


def _match(text: str) -> bool:
    depth = 0
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            return False
    return depth == 0


def _author(author: Any) -> WorkAuthor | None:
    number = orcid(author.author_id.value) if author.author_id else ""
    if author.last_name:
        return WorkAuthor(author.last_name, author.first_name, number)
    if author.collective_name:
        return WorkAuthor(author.collective_name, "")
    family, _, initials = author.full_name.rpartition(" ")  # "Byte A"
    return WorkAuthor(family or initials, initials if family else "", number) if author.full_name else None
