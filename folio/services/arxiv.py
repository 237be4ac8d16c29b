"""arXiv: works by identifier and by words, from Atom feeds. https://info.arxiv.org/help/api/user-manual.html

Works of a category and a time in bulk come from services/oai.py.

Also Unpaywall, for the open PDFs of a DOI. https://unpaywall.org/products/api
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from folio.bibliography.entries import find_year
from folio.errors import SourceError, UsageError
from folio.papers.identifiers import Identifier, bare_arxiv, find_doi, parse_doi, parse_identifier
from folio.papers.people import split_listed_name
from folio.papers.work import Work, WorkAuthor
from folio.services.answers import (
    MOST,
    Address,
    Bounded,
    Line,
    Part,
    SearchQuery,
    clean,
    day_in,
    is_found,
    parse_json,
    parse_one,
    unreadable,
)
from folio.services.arxiv_query import has_operator, to_arxiv
from folio.services.http import HttpClient

NAME = "arXiv"
UNPAYWALL = "Unpaywall"
_PAGE = 100  # works in one reply
_ATOM = {"a": "http://www.w3.org/2005/Atom", "x": "http://arxiv.org/schemas/atom",
         "o": "http://a9.com/-/spec/opensearch/1.1/"}  # fmt: skip
_LONGEST_TEXT = 50_000  # characters
# "This paper has been withdrawn by the authors", "Withdrawn due to an error in Lemma 2", "arXiv admin note: ..."; not
# "the claim of v1 is withdrawn"
_WITHDRAWN = re.compile(
    r"(?:arXiv admin note:\s*)?(?:\A|(?<=[.;:] ))(?:(?:this|the)\s+)?"
    r"(?:(?:paper|article|submission|manuscript|preprint|work|version|note|draft)\s+)?"
    r"(?:(?:has|have|had)\s+been\s+|is\s+(?:being\s+|now\s+)?|was\s+)?(?:temporarily\s+)?withdrawn\b",
    re.I,
)
_WITHDRAWN_ABSTRACT = 1_000  # characters: a longer one is an abstract that first mentions an older version


@dataclass(frozen=True, slots=True)
class Feed:
    works: tuple[Work, ...]
    total: int  # works on all pages


@dataclass(frozen=True, slots=True)
class LatestVersion:
    """The newest version of a work."""

    work: Work  # its arXiv id includes the version
    updated: str  # the day it appeared, "2021-04-20"; "" if unknown
    is_withdrawn: bool  # a withdrawn version has no PDF


def latest(client: HttpClient, identifiers: Sequence[str]) -> dict[str, LatestVersion]:
    """arXiv id (bare_arxiv) -> its newest version, for the ids that exist. Raises SourceError."""
    feeds = _feeds(client, list(dict.fromkeys(map(bare_arxiv, identifiers))))
    return {bare_arxiv(version.work.arxiv): version for feed in feeds for version in read_latest(feed)}


def by_ids(client: HttpClient, identifiers: Sequence[str]) -> list[Work]:
    """The works of the arXiv ids that exist, in the version that an id names. Raises SourceError."""
    works = [work for feed in _feeds(client, identifiers) for work in read_feed(feed, client).works]
    wanted = {bare_arxiv(identifier) for identifier in identifiers}
    return [work for work in works if bare_arxiv(work.arxiv) in wanted]


def _feeds(client: HttpClient, identifiers: Sequence[str]) -> Iterator[str]:
    """The feeds with these works, page by page."""
    for start in range(0, len(identifiers), _PAGE):
        page = identifiers[start : start + _PAGE]
        parameters = {"id_list": ",".join(page), "start": "0", "max_results": str(_PAGE)}
        yield client.get("arxiv", "/query", parameters).text


def search(client: HttpClient, query: SearchQuery) -> list[Work]:
    """Works that match, best or newest first. Raises SourceError, UsageError."""
    conditions = _conditions(query)
    works: dict[str, Work] = {}
    start = 0
    while len(works) < query.most:
        parameters = {
            "search_query": conditions,
            "sortBy": "submittedDate" if query.sort == "date" else "relevance",
            "sortOrder": "descending",
            "start": str(start),
            "max_results": str(min(_PAGE, query.most)),
        }
        feed = read_feed(client.get("arxiv", "/query", parameters).text, client)
        works |= {bare_arxiv(work.arxiv): work for work in feed.works if bare_arxiv(work.arxiv) not in works}
        start += int(parameters["max_results"])
        if not feed.works or start >= feed.total:
            break
    return list(works.values())[: query.most]


def _conditions(query: SearchQuery) -> str:
    """A search in arXiv's language. Raises UsageError."""
    conditions = [to_arxiv(query.words)] if query.words else []
    if query.categories:
        archives = [f"{name}.*" for name in query.categories if "." not in name]
        conditions.append(" OR ".join(f"cat:{name}" for name in (*query.categories, *archives)))
    if query.since or query.until:
        first, last = (day.strftime("%Y%m%d") if day else "" for day in (query.since, query.until))
        conditions.append(f"submittedDate:[{first or '19910101'}0000 TO {last or '21001231'}2359]")
    is_alone = len(conditions) == 1
    return " AND ".join(each if is_alone or not has_operator(each) else f"({each})" for each in conditions)


def read_feed(text: str, client: HttpClient | None = None) -> Feed:
    """The works of a feed. Raises SourceError if the feed reports an error or cannot be read.

    client: knows where PDFs are; None for arXiv itself.
    """
    feed, works = _read(text, client)
    total = _text(feed, "o:totalResults")
    return Feed(tuple(work for _, work in works), int(total) if total.isdecimal() and len(total) < 10 else 0)


def read_latest(text: str) -> list[LatestVersion]:
    """The newest versions of works, from a feed for ids without a version. Raises SourceError."""
    _, works = _read(text, None)
    return [LatestVersion(work, day_in(_text(entry, "a:updated")), _is_withdrawn(entry)) for entry, work in works]


def _read(text: str, client: HttpClient | None) -> tuple[Element, list[tuple[Element, Work]]]:
    """A feed, and its entries with their works. Raises SourceError if the feed reports an error or cannot be read."""
    try:
        feed = fromstring(text.encode("utf-8", "replace"), forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise unreadable(NAME) from error
    entries = feed.findall("a:entry", _ATOM)[:1000]
    for entry in entries:
        if "/api/errors" in _text(entry, "a:id"):
            raise SourceError(f"{NAME} says: {_text(entry, 'a:summary')[:300]}.", "Check the identifier or the words.")
    works = [(entry, work) for entry in entries if (work := _work(entry, client))]
    if entries and not works:
        raise unreadable(NAME)
    return feed, works


def _is_withdrawn(entry: Element) -> bool:
    """Whether the authors or arXiv withdrew a work: the comment says so, or the abstract says nothing else."""
    comment, abstract = _text(entry, "x:comment"), _text(entry, "a:summary")
    return bool(_WITHDRAWN.search(comment) or (_WITHDRAWN.match(abstract) and len(abstract) <= _WITHDRAWN_ABSTRACT))


def _text(element: Element, path: str) -> str:
    return clean(element.findtext(path, "", _ATOM), _LONGEST_TEXT)


def _work(entry: Element, client: HttpClient | None) -> Work | None:
    """The work of an entry; None if it has no identifier or no title."""
    identifier = _identifier(_text(entry, "a:id"))
    title = _text(entry, "a:title")[:2000]
    if identifier is None or not title:
        return None
    names = [_text(author, "a:name")[:500] for author in entry.findall("a:author", _ATOM)[:MOST]]
    named = [*entry.findall("x:primary_category", _ATOM)[:1], *entry.findall("a:category", _ATOM)[:50]]
    terms = [category.get("term", "")[:100] for category in named]
    doi = parse_doi(find_doi(_text(entry, "x:doi")))
    pdf = client.addresses.arxiv_pdf(identifier) if client else f"https://arxiv.org/pdf/{identifier}"
    return Work(
        "arxiv",
        title=title,
        authors=tuple(WorkAuthor(*split_listed_name(name)) for name in names if name),
        year=find_year(_text(entry, "a:published")),
        date=day_in(_text(entry, "a:published")),
        abstract=_text(entry, "a:summary"),
        doi=doi.value if doi and doi.kind == "doi" else "",
        arxiv=identifier,
        categories=tuple(dict.fromkeys(clean(term) for term in terms if term)),
        licence=_text(entry, "a:rights")[:200],
        is_open=True,
        pdfs=(pdf,),
    )


def _identifier(link: str) -> str | None:
    try:
        identifier: Identifier = parse_identifier(link)
    except UsageError:
        return None
    return identifier.value if identifier.kind == "arxiv" else None


class _Location(Part):
    url_for_pdf: Address = ""


class _UnpaywallWork(Part):
    doi: Line
    is_oa: bool | None = None
    best_oa_location: _Location | None = None
    oa_locations: Bounded[_Location]

    def pdfs(self) -> tuple[str, ...]:
        """Links to PDFs, best first."""
        links = [each.url_for_pdf for each in (self.best_oa_location, *self.oa_locations) if each]
        return tuple(dict.fromkeys(filter(None, links)))


def find_pdfs(client: HttpClient, doi: str) -> tuple[str, ...]:
    """Links to open PDFs of a DOI, from Unpaywall, which requires a mail address (Identity). Raises SourceError."""
    reply = client.get("unpaywall", f"/{quote(doi, safe='/')}", {})
    return read_pdfs(reply.status, reply.text)


def read_pdfs(status: int, text: str) -> tuple[str, ...]:
    """The links in a reply; none for 404. Raises SourceError."""
    if not is_found(status, UNPAYWALL):
        return ()
    return parse_one(_UnpaywallWork, parse_json(text, UNPAYWALL), UNPAYWALL).pdfs()
