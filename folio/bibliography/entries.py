"""An entry of a bibliography, and what all formats share: types, years, addresses. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from folio.papers.metadata import Field, Metadata

# BibTeX's types of entries -> CSL's, https://docs.citationstyles.org/en/stable/specification.html#appendix-iii-types
BIBTEX_TYPES = {
    "article": "article-journal", "periodical": "article-journal", "suppperiodical": "article-journal",
    "inproceedings": "paper-conference", "conference": "paper-conference",
    "book": "book", "mvbook": "book", "collection": "book", "mvcollection": "book", "proceedings": "book",
    "mvproceedings": "book", "reference": "book", "booklet": "book",
    "incollection": "chapter", "inbook": "chapter", "bookinbook": "chapter", "suppbook": "chapter",
    "incollections": "chapter", "inreference": "chapter",
    "phdthesis": "thesis", "mastersthesis": "thesis", "thesis": "thesis",
    "techreport": "report", "report": "report", "manual": "report",
    "online": "webpage", "electronic": "webpage", "www": "webpage",
    "software": "software", "dataset": "dataset", "patent": "patent", "unpublished": "manuscript",
}  # fmt: skip
# CSL's types -> BibTeX's: the first of those with the same meaning
FROM_CSL = {csl: bibtex for bibtex, csl in reversed(BIBTEX_TYPES.items())} | {
    "article-magazine": "article",
    "article-newspaper": "article",
}
# BibTeX's names of fields that are only kept -> CSL's
CSL_NAMES = {
    "editor": "editor", "translator": "translator", "series": "collection-title", "edition": "edition",
    "address": "publisher-place", "chapter": "chapter-number", "isbn": "ISBN", "issn": "ISSN", "pmid": "PMID",
    "pmcid": "PMCID", "note": "note", "language": "language", "eventtitle": "event-title",
    "pagetotal": "number-of-pages", "annote": "annote",
    "shorttitle": "title-short", "shortjournal": "container-title-short",
    "version": "version",
}  # fmt: skip
OF_AN_INSTITUTION = ("thesis", "report")  # CSL's types of works whose venue is an institution
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
_DASHES = re.compile(r"\s*[-–—‐‑−]+\s*")
_URL = re.compile(r"https?://[^\s\"<>{}|\\^`\[\]]{1,2000}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: the fields that match it with a paper, and on demand all its metadata."""

    key: str  # its citation key
    line: int  # in its file, from 1
    title: str
    first_author: str  # family name
    year: int | None
    doi: str
    arxiv: str
    files: tuple[str, ...]  # paths as written in the entry, likely ones first
    describe: Callable[[], Metadata]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a bibliography that could not be read."""

    line: int  # from 1; 0 if unknown
    happened: str


def described(
    *, pages: str = "", tags: str = "", collections: str = "", categories: str = "", **values: Any
) -> Metadata:
    """The metadata of an entry. values: fields by name; the others: as written in the entry."""
    values["pages"] = _DASHES.sub("–", pages)
    values |= {"tags": _listed(tags, "[,;]"), "collections": _listed(collections, ",")}
    values["categories"] = _listed(categories, r"[,;\s]")  # the names of arXiv's have no spaces
    return Metadata(**{name: Field(value, "bibliography", True) for name, value in values.items() if value})


def _listed(text: str, separator: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, re.split(separator, text)))))


def is_arxiv(venue: str) -> bool:
    """Whether a journal's name means arXiv: "arXiv preprint arXiv:1706.03762", "CoRR"."""
    return bool(re.match(r"arxiv\b|corr\b", venue, re.I))


def find_year(text: str) -> int | None:
    """The first year in a date: "2014-06-19", "May 2014"."""
    match = _YEAR.search(text)
    return int(match.group()) if match else None


def find_url(text: str) -> str:
    match = _URL.search(text)
    return match.group() if match else ""
