"""An entry of a bibliography, and what is common to all formats: fields, years, addresses. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from folio.paper_metadata import Field, Metadata

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
