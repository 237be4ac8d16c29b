"""Reads CSL-JSON, https://citeproc-js.readthedocs.io/en/latest/csl-json/markup.html. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

from folio.bibliography import further
from folio.bibliography.entries import OF_AN_INSTITUTION, Entry, Problem, described, find_url, find_year, is_arxiv
from folio.bibliography.latex import LONGEST
from folio.papers.identifiers import find_arxiv, find_doi
from folio.papers.metadata import AND_OTHERS, Metadata, PersonName
from folio.papers.people import typed_names
from folio.text import one_line

_MARKUP = re.compile(r"</?(?:i|b|em|strong|sub|sup|sc|span)(?:\s[^<>]{0,200})?>", re.I)
_MOST_AUTHORS = 5_000
_MOST_VARIABLES = 200
# What is no note of a person: lines of Zotero's field "Extra", and what Folio's exports say of fields that are not sure
_EXTRA = re.compile(r"^\s*(?:citation[ ]?key|doi|arxiv)\s*:.*$|\b\w+ not sure: .*$", re.I | re.M)


def read(text: str) -> tuple[list[Entry], list[Problem]]:
    """The items of a CSL-JSON file in order, and what could not be read."""
    try:
        items = json.loads(text)
    except json.JSONDecodeError as error:
        return [], [Problem(error.lineno, f"The file is not JSON: {error.msg}.")]
    except (ValueError, RecursionError):  # a number of thousands of digits, deeply nested brackets
        return [], [Problem(0, "The file is not CSL-JSON: its values are too large or too deep.")]
    if isinstance(items, dict):
        items = items.get("items", [items])
    if not isinstance(items, list):
        return [], [Problem(1, "The file is not CSL-JSON: it has no list of items.")]
    entries, problems = [], []
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict):
            problems.append(Problem(0, f"Item {number} is not an object."))
        elif item.keys().isdisjoint(("id", "citation-key", "type", "title", "DOI")):
            problems.append(Problem(0, f"Item {number} is not of CSL-JSON: it has no id, type or title."))
        else:
            entries.append(_entry(item))
    return entries, problems


def _entry(item: Mapping[str, Any]) -> Entry:
    doi, arxiv = _identifiers(item)
    names = _names(item.get("author"), 1)
    return Entry(
        key=_key(item),
        line=0,
        title=_text(item, "title"),
        first_author=names[0].family if names else "",
        year=_year(item.get("issued")),
        doi=doi,
        arxiv=arxiv,
        files=(),
        describe=partial(_describe, item),
    )


def _key(item: Mapping[str, Any]) -> str:
    return (_text(item, "citation-key") or _text(item, "id"))[:200]


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    if type(value) is int and abs(value) < 10**18:
        value = str(value)
    if not isinstance(value, str):
        return ""
    return one_line(_MARKUP.sub("", value[:LONGEST]).replace("\x00", " "))


def _identifiers(item: Mapping[str, Any]) -> tuple[str, str]:
    url = _text(item, "URL")
    doi = find_doi(_text(item, "DOI")) or (find_doi(url) if "doi.org/" in url else "")
    located = _text(item, "archive_location") if _text(item, "archive").casefold() == "arxiv" else ""
    texts = (_text(item, name) for name in ("number", "URL", "note", "container-title"))
    return doi, find_arxiv(doi, located, *texts)


def _describe(item: Mapping[str, Any]) -> Metadata:
    doi, arxiv = _identifiers(item)
    kind = _text(item, "type").removeprefix("document")[:50]  # "document" means no particular kind
    publisher = _text(item, "publisher")
    venue = _text(item, "container-title") or (publisher if kind in OF_AN_INSTITUTION else "")
    if arxiv and is_arxiv(venue):
        venue = ""
    number = _text(item, "issue") or _text(item, "number")
    return described(
        title=_text(item, "title"),
        authors=_names(item.get("author"), _MOST_AUTHORS),
        year=_year(item.get("issued")),
        venue=venue,
        doi=doi,
        arxiv=arxiv,
        abstract=_text(item, "abstract"),
        kind=kind,
        genre=_text(item, "genre"),
        volume=_text(item, "volume"),
        issue="" if arxiv and arxiv in number else number,
        pages=_text(item, "page"),
        publisher="" if kind in OF_AN_INSTITUTION or is_arxiv(publisher) else publisher,
        url=find_url(_text(item, "URL")),
        citation_key=_key(item),
        tags=_text(item, "keyword"),
        categories=" ".join(_strings(item.get("categories"))) if arxiv else "",
        further=_further(item),
    )


def _strings(values: Any) -> list[str]:
    listed = values[:50] if isinstance(values, list) else []
    return [one_line(value)[:100] for value in listed if isinstance(value, str)]


def _further(item: Mapping[str, Any]) -> further.Further:
    texts = {
        name: typed_names(_names(value, _MOST_AUTHORS)) if isinstance(value, list) else _text(item, name)
        for name, value in islice(item.items(), _MOST_VARIABLES)
    }
    note = item.get("note")
    own_words = one_line(_EXTRA.sub("", note[:LONGEST])) if isinstance(note, str) else ""
    return further.of_csl(item, {**texts, "note": own_words})


def _names(value: Any, most: int) -> tuple[PersonName, ...]:
    people = []
    for name in value[:most] if isinstance(value, list) else ():
        if not isinstance(name, dict):
            continue
        literal = _text(name, "literal")
        parts = ("dropping-particle", "non-dropping-particle", "family")
        family = literal or " ".join(filter(None, (_text(name, part) for part in parts)))
        given = "" if literal else " ".join(filter(None, (_text(name, part) for part in ("given", "suffix"))))
        if family.casefold() in ("others", "et al."):
            people.append(AND_OTHERS)
        elif family or given:
            people.append(PersonName(family or given, given if family else ""))
    return tuple(people)


def _year(issued: Any) -> int | None:
    """The year of a date: {"date-parts": [[2014, 6]]}, {"raw": "June 2014"}."""
    if not isinstance(issued, dict):
        return None
    parts = issued.get("date-parts")
    if isinstance(parts, list) and parts and isinstance(parts[0], list) and parts[0]:
        return find_year(str(parts[0][0])[:20])
    return next((year for name in ("raw", "literal") if (year := find_year(_text(issued, name)))), None)
