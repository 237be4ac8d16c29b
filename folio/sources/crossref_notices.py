"""Crossref: retractions, corrections and other notices of works, from both ends: the work's record and the notice's.

A publisher names the corrected work in the record of its notice (update-to). Crossref adds the reverse to the record of
the work (updated-by), and what Retraction Watch has collected. https://www.crossref.org/documentation/crossmark/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import takewhile
from typing import Any
from urllib.parse import quote

from pydantic import Field

from folio.errors import SourceError
from folio.identifiers import parse_doi
from folio.sources.answers import Bounded, Line, Part, parse_all, parse_one
from folio.sources.crossref import NAME, CrossrefDate, CrossrefWork, Update, items, message, read_updates
from folio.sources.http_client import HttpClient
from folio.work import Work
from folio.work_notices import NoticeKind, WorkNotice, ordered

_BATCH = 20  # DOIs in one question: longer addresses are refused
_ROWS = 1000  # the most that Crossref sends at once
# Crossref's types, and those that publishers wrote before there was a list
_KINDS: Mapping[str, NoticeKind] = {
    "retraction": "retraction", "withdrawal": "withdrawal", "removal": "removal",
    "partial retraction": "partial-retraction", "expression of concern": "expression-of-concern",
    "correction": "correction", "corrigendum": "correction", "erratum": "correction", "addendum": "correction",
    "clarification": "correction", "new version": "new-version", "new edition": "new-version",
    "reinstatement": "reinstatement",
}  # fmt: skip
_BETWEEN_WORDS = re.compile(r"[\s_-]+")
_EARLIEST, _LATEST = 1900, 2100  # years of a notice
_NOT_IN_A_FILTER = re.compile(r"[,\s]")


class _Notice(Part):
    """The record of a notice."""

    doi: Line = Field(alias="DOI")
    update_to: Bounded[Any] = Field(alias="update-to", default_factory=list)


@dataclass(frozen=True, slots=True)
class Registered:
    """A work as Crossref has it, and what its record says became of it."""

    work: Work
    notices: tuple[WorkNotice, ...]


def registered(client: HttpClient, dois: Sequence[str]) -> dict[str, Registered]:
    """DOI in lower case -> the work; those that Crossref does not have are left out. Raises SourceError."""
    found = list(_one_by_one(client, filter(_NOT_IN_A_FILTER.search, dois)))
    for batch in _batches(dois):
        parameters = {"filter": ",".join(f"doi:{doi}" for doi in batch), "rows": str(len(batch))}
        reply = client.get("crossref", "/works", parameters)
        # Crossref refuses a question for one DOI in it that it does not take for one.
        found += read_registered(reply.text) if reply.status == 200 else _one_by_one(client, batch)
    return {each.work.doi: each for each in found if each.work.doi}


def _one_by_one(client: HttpClient, dois: Iterable[str]) -> Iterator[Registered]:
    for doi in dois:
        reply = client.get("crossref", f"/works/{quote(doi, safe='')}", {})
        if reply.status == 200:
            yield _registered(parse_one(CrossrefWork, message(reply.text), NAME))


def updating(client: HttpClient, dois: Sequence[str]) -> dict[str, list[WorkNotice]]:
    """DOI in lower case -> the notices whose own records name it. Raises SourceError."""
    found: dict[str, list[WorkNotice]] = {}
    for batch in _batches(dois):
        parameters = {"filter": ",".join(f"updates:{doi}" for doi in batch), "rows": str(_ROWS)}
        reply = client.get("crossref", "/works", parameters)
        if reply.status != 200:
            raise SourceError(f"{NAME} answers {reply.status} when asked for notices.", "Try again later.")
        for doi, notice in read_updating(reply.text):
            found.setdefault(doi, []).append(notice)
    return found


def _batches(dois: Sequence[str]) -> Iterator[Sequence[str]]:
    """The DOIs, each once, so many together as one question may have."""
    asked = [doi for doi in dict.fromkeys(dois) if not _NOT_IN_A_FILTER.search(doi)]
    return (asked[start : start + _BATCH] for start in range(0, len(asked), _BATCH))


def read_registered(text: str) -> list[Registered]:
    """The works of a list, with their notices. Raises SourceError."""
    return [_registered(work) for work in parse_all(CrossrefWork, items(text), NAME, _BATCH)]


def _registered(work: CrossrefWork) -> Registered:
    notices = (_notice(update, update.doi) for update in read_updates(work.updated_by))
    return Registered(work.to_work(), ordered(filter(None, notices)))


def read_updating(text: str) -> list[tuple[str, WorkNotice]]:
    """The notices of a list, each with the DOI of the work that it is about. Raises SourceError."""
    found: list[tuple[str, WorkNotice]] = []
    for record in parse_all(_Notice, items(text), NAME, _ROWS):
        for update in read_updates(record.update_to):
            about, notice = parse_doi(update.doi), _notice(update, record.doi)
            if about is not None and notice is not None:
                found.append((about.value, notice))
    return found


def _notice(update: Update, doi: str) -> WorkNotice | None:
    """The notice of an update; None for one of a kind that nobody needs to know. doi: the notice's."""
    kind = _KINDS.get(_BETWEEN_WORDS.sub(" ", update.type.casefold()).strip())
    own = parse_doi(doi)
    return WorkNotice(kind, _day(update.updated), own.value if own and own.kind == "doi" else "") if kind else None


def _day(written: CrossrefDate | None) -> str:
    """A date as text: "2015-05-04", as much of it as there is."""
    parts = written.parts[0][:3] if written and written.parts else []
    known = [part or 0 for part in takewhile(bool, parts)]
    try:
        date(*[*known, 1, 1][:3])
    except (ValueError, TypeError, OverflowError):
        return ""
    year, *rest = known
    return "-".join([str(year), *(f"{part:02}" for part in rest)]) if _EARLIEST <= year <= _LATEST else ""
