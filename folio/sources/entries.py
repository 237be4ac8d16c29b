"""An entry of a bibliography, and what is common to all formats: identifiers, years, the name of the work. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from folio.paper_metadata import Field, Metadata

# The part of older DOIs that has angle brackets: "<391::AID-ASI1>", "<0929:TNAOAO>" (ANSI/NISO Z39.56). Without what
# follows, all articles of an issue would have one DOI.
SICI = r"<[\w.]*:[\w:.-]*>"
_DOI = re.compile(rf"10\.\d{{4,9}}/(?:[^\s\"<>{{}}|^\[\]]|{SICI})+", re.I)
_ARXIV_DOI = re.compile(r"10\.48550/arxiv\.(.+)", re.I)
_ARXIV_ID = r"(\d{4}\.\d{4,5}(?:v\d{1,2})?|[a-z-]+(?:\.[A-Z]{2})?/\d{7}(?:v\d{1,2})?)"
_ARXIV_SAID = re.compile(rf"(?i:arxiv\s*:\s*|arxiv\.org/(?:abs|pdf)/|\bCoRR,?\s+(?:abs/)?){_ARXIV_ID}")
_ARXIV_ALONE = re.compile(rf"(?:(?i:arxiv):)?{_ARXIV_ID}(?:\s*\[[\w.-]+\])?")
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
_URL = re.compile(r"https?://[^\s\"<>{}|\\^`\[\]]{1,2000}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: what papers are recognised by, and on demand all that it says."""

    key: str  # its citation key
    line: int  # in its file, from 1
    title: str
    first_author: str  # family name
    year: int | None
    doi: str
    arxiv: str
    files: tuple[str, ...]  # paths as they are written there, the likely ones first
    describe: Callable[[], Metadata]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a bibliography that could not be read."""

    line: int  # from 1; 0 if it is not known
    happened: str


def said(value: str) -> Field[str]:
    """A field as a bibliography says it; one that it does not have if that is nothing."""
    return Field(value, "bibliography", True) if value else Field("")


def find_doi(text: str) -> str:
    """The DOI in a field, without a resolver's address."""
    found = _DOI.search(text)
    return found.group().rstrip(".,;:") if found else ""


def find_arxiv(doi: str, identifier: str, *others: str) -> str:
    """An arXiv identifier. identifier: may be only that; others: texts that may name one, such as a journal."""
    by_doi = _ARXIV_DOI.fullmatch(doi)
    found = _ARXIV_ALONE.fullmatch((by_doi[1] if by_doi else identifier).strip())
    for text in others:
        found = found or _ARXIV_SAID.search(text)
    return found[1] if found else ""


def is_arxiv(venue: str) -> bool:
    """Whether a journal is none: "arXiv preprint arXiv:1706.03762", "CoRR"."""
    return bool(re.match(r"arxiv\b|corr\b", venue, re.I))


def find_year(text: str) -> int | None:
    """The first year in a date: "2014-06-19", "May 2014"."""
    found = _YEAR.search(text)
    return int(found.group()) if found else None


def find_url(text: str) -> str:
    found = _URL.search(text)
    return found.group() if found else ""
