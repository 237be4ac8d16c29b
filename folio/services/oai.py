"""arXiv's works of a category and a time, in bulk by OAI-PMH. https://info.arxiv.org/help/oa/index.html

arXiv lists records by the day of their last change. A work that was submitted in a time was last changed on one of its
days or later, so the list is read from the first day on, and works that were submitted at another time are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from folio.bibliography.entries import find_year
from folio.errors import SourceError, UsageError
from folio.papers.identifiers import find_doi, find_identifier, parse_doi
from folio.papers.work import Work, WorkAuthor
from folio.services.answers import MOST, SearchQuery, clean, day_in, unreadable
from folio.services.arxiv import NAME
from folio.services.http import HttpClient
from folio.shown_text import name_line

_OAI = {"o": "http://www.openarchives.org/OAI/2.0/", "a": "http://arxiv.org/OAI/arXiv/"}
_CATEGORY = re.compile(r"[a-z]+(?:-[a-z]+)*(?:\.[A-Za-z-]+)?")
_MOST_PAGES = 1_000  # of one list, against a server without end
_LONGEST_TEXT, _LONGEST_TOKEN = 50_000, 2_000  # characters
# Archives that arXiv counts as physics
_PHYSICS = frozenset(
    "astro-ph cond-mat gr-qc hep-ex hep-lat hep-ph hep-th math-ph nlin nucl-ex nucl-th physics quant-ph".split()
)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list."""

    works: tuple[Work, ...]
    token: str  # for the next part; "" at the end
    has_expired: bool = False  # whether the token that was sent is no longer valid


def set_of(category: str) -> str:
    """The set of a category: "cs.CL" -> "cs:cs:CL", "hep-th" -> "physics:hep-th", "cs" -> "cs". Raises UsageError."""
    if not _CATEGORY.fullmatch(category):
        raise UsageError(
            f"“{name_line(category, 80)}” is no category of arXiv.", "Name one such as cs.CL, or an archive such as cs."
        )
    archive, _, subject = category.partition(".")
    group = "physics" if archive in _PHYSICS else archive
    if not subject:
        return group if group == archive else f"{group}:{archive}"
    return f"{group}:{archive}:{subject}"


def harvest(client: HttpClient, query: SearchQuery) -> Iterator[Work]:
    """The works of the query's categories that were submitted in its time, each once; at most `query.most`.

    An interrupted list goes on where it was, within a day: its parts are in the cache. Raises SourceError, UsageError.
    """
    seen: set[str] = set()
    sets = [set_of(category) for category in query.categories]
    for name in sets:
        for work in _listed(client, name, query.since):
            if work.arxiv in seen or not _is_within(work, query):
                continue
            seen.add(work.arxiv)
            yield work
            if len(seen) >= query.most:
                return


def _is_within(work: Work, query: SearchQuery) -> bool:
    submitted = work.date
    return (query.since is None or submitted >= str(query.since)) and (
        query.until is None or submitted <= str(query.until)
    )


def _listed(client: HttpClient, name: str, since: date | None) -> Iterator[Work]:
    """The works of a set, part by part. A list whose token in the cache has expired is read again from its start."""
    start = {"verb": "ListRecords", "metadataPrefix": "arXiv", "set": name} | ({"from": str(since)} if since else {})
    parameters, is_cached = start, True
    tokens: set[str] = set()
    for _ in range(_MOST_PAGES):
        page = read_page(client.get("arxivoai", "/oai", parameters, is_cached=is_cached).text)
        if page.has_expired and is_cached and parameters is not start:
            parameters, is_cached = start, False
            tokens.clear()
            continue
        if page.has_expired:
            raise SourceError(f"{NAME} says that its list has expired.", "Try again later.")
        yield from page.works
        if not page.token or page.token in tokens:
            return
        tokens.add(page.token)
        parameters = {"verb": "ListRecords", "resumptionToken": page.token}


def read_page(text: str) -> Page:
    """A part of a list. Raises SourceError if it reports an error or cannot be read."""
    try:
        reply = fromstring(text.encode("utf-8", "replace"), forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise unreadable(NAME) from error
    fault = reply.find("o:error", _OAI)
    if fault is not None:
        code = fault.get("code", "")
        if code in ("noRecordsMatch", "badResumptionToken"):
            return Page((), "", has_expired=code == "badResumptionToken")
        said = name_line(clean(fault.text or code), 300).rstrip(".")
        raise SourceError(f"{NAME} says: {said}.", "Check the category and the dates.")
    records = reply.findall("o:ListRecords/o:record", _OAI)
    if reply.find("o:ListRecords", _OAI) is None:
        raise unreadable(NAME)
    described = [record for record in records if record.find("o:metadata/a:arXiv", _OAI) is not None]
    works = tuple(work for record in described if (work := _work(record)))
    if described and not works:
        raise unreadable(NAME)
    token = (reply.findtext("o:ListRecords/o:resumptionToken", "", _OAI) or "").strip()[:_LONGEST_TOKEN]
    return Page(works, token)


def _work(record: Element) -> Work | None:
    """The work of a record; None if it has no identifier or no title."""
    about = record.find("o:metadata/a:arXiv", _OAI)
    assert about is not None
    identifier = find_identifier(_text(about, "a:id"))
    title = _text(about, "a:title")[:2000]
    if identifier is None or identifier.kind != "arxiv" or not title:
        return None
    doi = parse_doi(find_doi(_text(about, "a:doi")))
    submitted = day_in(_text(about, "a:created"))
    return Work(
        "arxiv",
        title=title,
        authors=tuple(filter(None, map(_author, about.findall("a:authors/a:author", _OAI)[:MOST]))),
        year=find_year(submitted),
        date=submitted,
        abstract=_text(about, "a:abstract"),
        doi=doi.value if doi and doi.kind == "doi" else "",
        arxiv=identifier.value,
        categories=tuple(dict.fromkeys(name[:100] for name in _text(about, "a:categories").split()[:50])),
        licence=_text(about, "a:license")[:200],
        is_open=True,
    )


def _author(author: Element) -> WorkAuthor | None:
    family, given, suffix = (_text(author, f"a:{name}")[:500] for name in ("keyname", "forenames", "suffix"))
    return WorkAuthor(family or given, f"{given} {suffix}".strip() if family else "") if family or given else None


def _text(element: Element, path: str) -> str:
    return clean(element.findtext(path, "", _OAI), _LONGEST_TEXT)
