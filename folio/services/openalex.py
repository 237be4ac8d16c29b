"""OpenAlex: works by identifier, title and words, citing works, retractions. https://docs.openalex.org"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

from folio.papers.identifiers import Identifier, bare_arxiv, find_arxiv, find_doi, parse_doi
from folio.papers.people import split_listed_name
from folio.papers.work import Work, WorkAuthor
from folio.services.answers import (
    Address,
    Bounded,
    Count,
    Line,
    Number,
    Part,
    SearchQuery,
    WorkPart,
    Year,
    clean,
    day_in,
    is_found,
    orcid,
    page_range,
    parse_all,
    parse_json,
    parse_one,
    unreadable,
)
from folio.services.http import HttpClient
from folio.text import one_line

NAME = "OpenAlex"
_PAGE = 100  # works in one reply
BATCH = 50  # works that one request can name
_NOT_IN_A_FILTER = re.compile(r"[,|!\s]")
_LONGEST_ABSTRACT = 20_000  # words
_ID = re.compile(r"W\d{1,12}", re.ASCII)
# Types of OpenAlex and Crossref -> CSL's; "article" is for works without a better type.
_KINDS = {
    "journal-article": "article-journal", "proceedings-article": "paper-conference", "book": "book",
    "book-chapter": "chapter", "dissertation": "thesis", "posted-content": "article", "preprint": "article",
    "report": "report", "dataset": "dataset", "monograph": "book", "standard": "standard",
}  # fmt: skip
_SORTS = {"relevance": "relevance_score:desc", "date": "publication_date:desc", "citations": "cited_by_count:desc"}


class _Author(Part):
    display_name: Line = ""
    orcid: Line = ""


class _Authorship(Part):
    author: _Author = _Author()


class _Source(Part):
    display_name: Line = ""
    host_organization_name: Line = ""
    type: Line = ""


class _Location(Part):
    pdf_url: Address = ""
    landing_page_url: Address = ""
    license: Line = ""
    is_oa: bool | None = None
    source: _Source | None = None


class _OpenAccess(Part):
    is_oa: bool | None = None
    oa_url: Address = ""


class _Biblio(Part):
    volume: Number = ""
    issue: Number = ""
    first_page: Number = ""
    last_page: Number = ""


class _Named(Part):
    display_name: Line = ""


class OpenAlexWork(WorkPart):
    """A work as OpenAlex sends it; with `select`, only some of the fields."""

    id: Line = ""
    doi: Line = ""
    title: Line = ""
    publication_year: Year = None
    publication_date: Line = ""
    ids: dict[str, Any] | None = None
    type: Line = ""
    type_crossref: Line = ""
    primary_location: _Location | None = None
    best_oa_location: _Location | None = None
    locations: Bounded[_Location]
    open_access: _OpenAccess | None = None
    authorships: Bounded[_Authorship]
    biblio: _Biblio | None = None
    cited_by_count: Count = None
    referenced_works_count: Count = None
    referenced_works: Bounded[Line]
    topics: Bounded[_Named]
    is_retracted: bool | None = None
    abstract_inverted_index: dict[str, Any] | None = None

    @property
    def names_a_work(self) -> bool:
        return bool(_id(self.id) or self.doi or self.title)

    def to_work(self) -> Work:
        doi, arxiv = self._identifiers()
        source = (self.primary_location and self.primary_location.source) or _Source()
        is_repository = source.type == "repository"
        biblio = self.biblio or _Biblio()
        access = self.open_access or _OpenAccess()
        best = self.best_oa_location or self.primary_location or _Location()
        kind = _KINDS.get(self.type_crossref) or _KINDS.get(self.type, "")
        return Work(
            "openalex",
            title=self.title,
            authors=tuple(_author(each) for each in self.authorships if each.author.display_name),
            year=self.publication_year,
            # The first of January stands for a date of which only the year is known.
            date="" if self.publication_date.endswith("-01-01") else day_in(self.publication_date),
            venue="" if is_repository else source.display_name,
            abstract=_abstract(self.abstract_inverted_index or {}),
            kind=kind,
            volume=biblio.volume,
            issue=biblio.issue,
            pages=page_range(biblio.first_page, biblio.last_page),
            publisher="" if is_repository else source.host_organization_name,
            doi=doi,
            arxiv=arxiv,
            openalex=_id(self.id),
            categories=tuple(topic.display_name for topic in self.topics[:20] if topic.display_name),
            licence=best.license,
            is_open=access.is_oa,
            pdfs=self._pdfs(access),
            cited=self.cited_by_count,
            reference_count=self.referenced_works_count,
            references=tuple(filter(None, map(_id, self.referenced_works))),
            is_retracted=bool(self.is_retracted),
        )

    def _identifiers(self) -> tuple[str, str]:
        """DOI and arXiv id. A DOI of arXiv's only gives the arXiv id; a copy at arXiv gives one too."""
        known = parse_doi(find_doi(self.doi))
        arxiv = known.value if known and known.kind == "arxiv" else ""
        pages = [location.landing_page_url for location in self.locations]
        return known.value if known and known.kind == "doi" else "", arxiv or find_arxiv("", "", *pages)

    def _pdfs(self, access: _OpenAccess) -> tuple[str, ...]:
        locations = [self.best_oa_location, self.primary_location, *self.locations]
        links = [each.pdf_url for each in locations if each and each.is_oa is not False]
        if access.oa_url.casefold().endswith(".pdf"):
            links.append(access.oa_url)
        return tuple(dict.fromkeys(filter(None, links)))


def by_identifier(client: HttpClient, identifier: Identifier) -> Work | None:
    """The work of an OpenAlex id, a DOI, an arXiv or a PubMed id; None if it is unknown. Raises SourceError."""
    named = {
        "openalex": identifier.value,
        "doi": f"doi:{quote(identifier.value, safe='/')}",
        "arxiv": f"doi:10.48550/arxiv.{bare_arxiv(identifier.value)}",
        "pmid": f"pmid:{identifier.value}",
        "pmcid": f"pmcid:{identifier.value}",
    }.get(identifier.kind)
    if named is None:
        return None
    reply = client.get("openalex", f"/works/{named}", {})
    return read_work(reply.status, reply.text)


def by_title(client: HttpClient, title: str) -> list[Work]:
    """Works whose title has these words, best first. Raises SourceError."""
    reply = client.get("openalex", "/works", {"filter": f"title.search:{_filter_words(title)}", "per-page": "5"})
    return read_works(reply.text)


def search(client: HttpClient, query: SearchQuery) -> list[Work]:
    """Works that match. Raises SourceError."""
    return _listed(client, query, [])


def by_ids(client: HttpClient, ids: Sequence[str]) -> list[Work]:
    """The works with these OpenAlex ids or these DOIs, at most BATCH of one kind; unknown ids are left out.

    Raises SourceError.
    """
    name = "openalex" if ids[0].startswith("W") else "doi"
    parameters = {"filter": f"{name}:{'|'.join(ids)}", "per-page": str(BATCH)}
    return read_works(client.get("openalex", "/works", parameters).text)


def citing(client: HttpClient, openalex: str, query: SearchQuery) -> list[Work]:
    """Works that cite a work. openalex: its id."""
    return _listed(client, query, [f"cites:{openalex}"])


def retracted(client: HttpClient, dois: Sequence[str], numbers: Sequence[str]) -> dict[str, Work]:
    """DOI in lower case or arXiv id (bare_arxiv) -> the work, if it is retracted. Raises SourceError."""
    names = [doi for doi in dois if not _NOT_IN_A_FILTER.search(doi)]
    names += [f"10.48550/arxiv.{number}" for number in numbers]
    retractions: dict[str, Work] = {}
    for start in range(0, len(names), BATCH):
        parameters = {
            "filter": f"doi:{'|'.join(names[start : start + BATCH])}",
            "select": "id,doi,title,is_retracted",
            "per-page": str(_PAGE),
        }
        works = read_works(client.get("openalex", "/works", parameters).text)
        retractions |= {work.doi or bare_arxiv(work.arxiv): work for work in works if work.is_retracted}
    return retractions


def _listed(client: HttpClient, query: SearchQuery, filters: list[str]) -> list[Work]:
    if query.since:
        filters.append(f"from_publication_date:{query.since}")
    if query.until:
        filters.append(f"to_publication_date:{query.until}")
    if query.is_open:
        filters.append("is_oa:true")
    if query.min_cited:
        filters.append(f"cited_by_count:>{query.min_cited - 1}")
    # Without words there is no relevance.
    sort = "date" if query.sort == "relevance" and not query.words else query.sort
    parameters = {"per-page": str(min(_PAGE, query.most)), "sort": _SORTS[sort], "cursor": "*"}
    if query.words:
        parameters["search"] = query.words
    if filters:
        parameters["filter"] = ",".join(filters)
    works: list[Work] = []
    while len(works) < query.most:
        reply = client.get("openalex", "/works", parameters)
        page = read_works(reply.text)
        works += page
        cursor = parse_json(reply.text, NAME).get("meta", {})
        cursor = cursor.get("next_cursor") if isinstance(cursor, dict) else None
        if not page or not isinstance(cursor, str) or cursor == parameters["cursor"]:
            break
        parameters["cursor"] = cursor[:1000]
    return works[: query.most]


def read_work(status: int, text: str) -> Work | None:
    """The work in a reply; None for 404. Raises SourceError."""
    return parse_one(OpenAlexWork, parse_json(text, NAME), NAME).to_work() if is_found(status, NAME) else None


def read_works(text: str) -> list[Work]:
    """The works of a list. Raises SourceError."""
    value = parse_json(text, NAME)
    if not isinstance(value, dict):
        raise unreadable(NAME)
    return [each.to_work() for each in parse_all(OpenAlexWork, value.get("results"), NAME, 200)]


def _filter_words(title: str) -> str:
    """A title as the value of a filter, without commas, bars and exclamation marks, which are operators there."""
    return one_line("".join(char if char.isalnum() or char in "-'" else " " for char in title))


def _id(link: str) -> str:
    """The id in an OpenAlex address, "https://openalex.org/W7" -> "W7"; "" if there is none."""
    last = link.rpartition("/")[2]
    return last if _ID.fullmatch(last) else ""


def _author(authorship: _Authorship) -> WorkAuthor:
    return WorkAuthor(*split_listed_name(authorship.author.display_name), orcid(authorship.author.orcid))


def _abstract(places: dict[str, Any]) -> str:
    """The text of an inverted index, word -> positions; unreadable positions are skipped."""
    pairs = ((place, word) for word, listed in places.items() if isinstance(listed, list) for place in listed)
    words = ((place, word) for place, word in pairs if type(place) is int and 0 <= place < _LONGEST_ABSTRACT)
    return clean(" ".join(word for _, word in sorted(islice(words, _LONGEST_ABSTRACT))), 50_000)
