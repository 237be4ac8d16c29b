"""Semantic Scholar: works by identifier, title and words, and their citations. https://api.semanticscholar.org/api-docs"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from folio.papers.identifiers import S2_ID, Identifier, bare_arxiv, find_arxiv, find_doi, parse_doi
from folio.papers.people import split_listed_name
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
    Year,
    day_in,
    is_found,
    parse_all,
    parse_json,
    parse_one,
    unreadable,
)
from folio.services.http import HttpClient

NAME = "Semantic Scholar"
_PAGE = 100  # works in one reply
_ID = re.compile(S2_ID)
_FIELDS = (
    "externalIds,title,authors,year,venue,abstract,journal,publicationTypes,citationCount,referenceCount,"
    "isOpenAccess,openAccessPdf,fieldsOfStudy,publicationDate"
)
_SORTS = {"date": "publicationDate:desc", "citations": "citationCount:desc"}
_KINDS = {
    "Conference": "paper-conference",
    "JournalArticle": "article-journal",
    "Book": "book",
    "BookSection": "chapter",
}


class _Author(Part):
    name: Line = ""


class _Journal(Part):
    name: Line = ""
    volume: Number = ""
    pages: Line = ""


class _OpenPdf(Part):
    url: Address = ""
    license: Line = ""


class S2Work(WorkPart):
    """A work as Semantic Scholar sends it, with the fields in _FIELDS."""

    paperId: Line  # noqa: N815 (its name there)
    externalIds: dict[str, Any] | None = None  # noqa: N815
    title: Line = ""
    authors: Bounded[_Author]
    year: Year = None
    venue: Line = ""
    abstract: LongText = ""
    journal: _Journal | None = None
    publicationTypes: Bounded[Line]  # noqa: N815
    citationCount: Count = None  # noqa: N815
    referenceCount: Count = None  # noqa: N815
    isOpenAccess: bool | None = None  # noqa: N815
    openAccessPdf: _OpenPdf | None = None  # noqa: N815
    fieldsOfStudy: Bounded[Line]  # noqa: N815
    publicationDate: Line = ""  # noqa: N815

    @property
    def names_a_work(self) -> bool:
        return bool(self.paperId or self.title)

    def to_work(self) -> Work:
        ids = {name: str(value)[:200] for name, value in (self.externalIds or {}).items()}
        known = parse_doi(find_doi(ids.get("DOI", "")))
        arxiv = find_arxiv("", ids.get("ArXiv", "")) or (known.value if known and known.kind == "arxiv" else "")
        journal = self.journal or _Journal()
        pdf = self.openAccessPdf or _OpenPdf()
        is_preprint = self.venue.casefold() in ("arxiv.org", "biorxiv", "medrxiv")
        kind = next((kind for type, kind in _KINDS.items() if type in self.publicationTypes), "")
        return Work(
            "semanticscholar",
            title=self.title,
            authors=tuple(WorkAuthor(*split_listed_name(each.name)) for each in self.authors if each.name),
            year=self.year,
            date=day_in(self.publicationDate),
            venue="" if is_preprint else self.venue or journal.name,
            abstract=self.abstract,
            kind="" if is_preprint else kind,
            volume="" if is_preprint else journal.volume,
            pages="" if is_preprint else journal.pages.replace(" ", "").replace("-", "–"),
            doi=known.value if known and known.kind == "doi" else "",
            arxiv=arxiv,
            semanticscholar=self.paperId if _ID.fullmatch(self.paperId) else "",
            categories=tuple(filter(None, self.fieldsOfStudy[:20])),
            licence=pdf.license,
            is_open=self.isOpenAccess,
            pdfs=(pdf.url,) if pdf.url else (),
            cited=self.citationCount,
            reference_count=self.referenceCount,
        )


class _Edge(Part):
    citingPaper: S2Work | None = None  # noqa: N815
    citedPaper: S2Work | None = None  # noqa: N815


def by_identifier(client: HttpClient, identifier: Identifier) -> Work | None:
    """The work of a Semantic Scholar id, a DOI or an arXiv id; None if it is unknown. Raises SourceError."""
    named = _named(identifier)
    if named is None:
        return None
    reply = client.get("semanticscholar", f"/paper/{named}", {"fields": _FIELDS})
    return read_work(reply.status, reply.text)


def by_title(client: HttpClient, title: str) -> list[Work]:
    """The best match for a title, or none. Raises SourceError."""
    reply = client.get("semanticscholar", "/paper/search/match", {"query": title, "fields": _FIELDS})
    return read_works(reply.status, reply.text)


def search(client: HttpClient, query: SearchQuery) -> list[Work]:
    """Works that match; those not sorted by relevance come from the bulk search. Raises SourceError."""
    parameters = {"query": query.words, "fields": _FIELDS}
    if query.since or query.until:
        parameters["publicationDateOrYear"] = f"{query.since or ''}:{query.until or ''}"
    if query.min_cited:
        parameters["minCitationCount"] = str(query.min_cited)
    if query.is_open:
        parameters["openAccessPdf"] = ""
    if query.sort != "relevance":
        reply = client.get("semanticscholar", "/paper/search/bulk", parameters | {"sort": _SORTS[query.sort]})
        return read_works(reply.status, reply.text)[: query.most]
    works: list[Work] = []
    while len(works) < query.most:
        page = {"offset": str(len(works)), "limit": str(min(_PAGE, query.most - len(works)))}
        reply = client.get("semanticscholar", "/paper/search", parameters | page)
        new = read_works(reply.status, reply.text)
        works += new
        if len(new) < int(page["limit"]):
            break
    return works[: query.most]


def citing(client: HttpClient, identifier: Identifier, most: int) -> list[Work]:
    """Works that cite a work."""
    return _edges(client, identifier, "citations", most)


def cited_by(client: HttpClient, identifier: Identifier, most: int) -> list[Work]:
    """Works that a work cites."""
    return _edges(client, identifier, "references", most)


def _edges(client: HttpClient, identifier: Identifier, which: str, most: int) -> list[Work]:
    if (named := _named(identifier)) is None:
        return []
    parameters = {"fields": _FIELDS, "limit": str(min(most, 1000))}
    reply = client.get("semanticscholar", f"/paper/{named}/{which}", parameters)
    edges = parse_all(_Edge, _data(reply.status, reply.text), NAME, most)
    works = [edge.citingPaper if which == "citations" else edge.citedPaper for edge in edges]
    return [work.to_work() for work in works if work]


def read_work(status: int, text: str) -> Work | None:
    """The work in a reply; None for 404. Raises SourceError."""
    return parse_one(S2Work, parse_json(text, NAME), NAME).to_work() if is_found(status, NAME) else None


def read_works(status: int, text: str) -> list[Work]:
    """The works of a list; none for 404. Raises SourceError."""
    return [each.to_work() for each in parse_all(S2Work, _data(status, text), NAME, 1000)]


def _data(status: int, text: str) -> Any:
    if status == 404:
        return []
    value = parse_json(text, NAME)
    if status != 200 or not isinstance(value, dict):
        raise unreadable(NAME)
    return value.get("data", [] if "total" in value else None)  # a search without results has no data


def _named(identifier: Identifier) -> str | None:
    """An identifier in Semantic Scholar's notation; None for kinds that it does not know."""
    value = quote(identifier.value, safe="/:")
    names = {
        "semanticscholar": value,
        "doi": f"DOI:{value}",
        "arxiv": f"ARXIV:{bare_arxiv(identifier.value)}",
        "pmid": f"PMID:{value}",
        "pmcid": f"PMCID:{value.removeprefix('PMC')}",
    }
    return names.get(identifier.kind)
