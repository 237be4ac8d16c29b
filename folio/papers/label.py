"""A paper's label in citations: "Ongaro & Ousterhout 2014", from the sure fields of its metadata. Pure.

No name can make a label look like another paper's: authors have no quotation marks and no digits, an ampersand stands
only between two people, and no label ends like a file name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from folio.papers.identifiers import version_number
from folio.papers.metadata import AND_OTHERS, Metadata
from folio.papers.people import short_list
from folio.shown_text import name_line, plain_line
from folio.text import one_line, whole_words

CitationStyle = Literal["author-year", "arxiv", "file"]
_LONGEST_NAME = 40  # characters of a name, or of an organisation's
_LONGEST_TITLE = 50
_VERSION = re.compile(r" v\d+$")
_IS_FILE = re.compile(r"\.pdf\W*$", re.I)
_QUOTES = re.compile('["“”„‟«»]')


def citation_label(metadata: Metadata) -> str:
    """Authors or else a short title in quotation marks, and the year; "" if neither is sure."""
    who = _authors(metadata) or _short_title(metadata)
    return " ".join(filter(None, [who, str(sure_year(metadata) or "") if who else ""]))


def sure_venue(metadata: Metadata) -> str:
    """The journal or conference if it is sure, else ""."""
    return metadata.venue.value if metadata.venue.sure else ""


def sure_year(metadata: Metadata) -> int | None:
    return metadata.year.value if metadata.year.sure else None


def published_in(venue: str, year: int | None) -> str:
    """Venue and year: "Journal of Otters, 2021"; "" without a venue, because labels have the year."""
    return ", ".join(filter(None, [name_line(venue), str(year or "")])) if venue else ""


def _authors(metadata: Metadata) -> str:
    if not metadata.authors.sure:
        return ""
    names = [_name(person.family) for person in metadata.authors.value[:3] if person != AND_OTHERS]
    if not names or not all(names[:2]):
        return ""
    return short_list(names, and_others=AND_OTHERS in metadata.authors.value)


def _name(family: str) -> str:
    """A family name for a label; "" for a name with digits, which could pass for a year, or the ending of a file."""
    name = one_line(_QUOTES.sub("", plain_line(family.replace("&", " and "))))
    return "" if _IS_FILE.search(name) or any(char.isdigit() for char in name) else _shortened(name, _LONGEST_NAME)


def _short_title(metadata: Metadata) -> str:
    """The title without its subtitle, cut at the end of a word."""
    if not metadata.title.sure:
        return ""
    title = _QUOTES.sub("", plain_line(metadata.title.value)).strip()
    main = re.split(r":\s|\s[–—]\s", title)[0].strip()
    short = main if len(main.split()) > 1 else title
    return f"“{_shortened(short, _LONGEST_TITLE)}”" if short and not _IS_FILE.search(short) else ""


def _shortened(text: str, longest: int) -> str:
    """The text, cut at the end of a word if it is longer."""
    return text if len(text) <= longest else f"{whole_words(text, longest).rstrip(',;:.')}…"


def with_version(label: str, arxiv: str) -> str:
    """The label of one of several versions of a paper: "Ongaro 2014 v2". arxiv: the arXiv id with the version."""
    version = version_number(arxiv)
    return f"{label} v{version}" if label and version else label


def with_letter(label: str, number: int) -> str:
    """The label of one of several papers with the same label: "Ongaro 2014b". number: its place, from 0."""
    has_year = label[-1:].isdigit() and not _VERSION.search(label)
    return f"{label}{letters(number)}" if has_year else f"{label} ({letters(number)})"


def letters(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    before, last = divmod(number, 26)
    return (letters(before - 1) if before else "") + chr(ord("a") + last)


def label_places(given: Mapping[str, int], papers: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Paper id -> its place, from 0, among the papers that have or had one label: it decides the paper's letter.

    given: the places until now, which stay; new papers get the next ones. papers: those that have the label, as
    (title, id). New papers are in the order of their titles, which does not depend on history.
    """
    places = dict(given)
    for _, id in sorted(papers):
        if id not in places:
            places[id] = max(places.values(), default=-1) + 1
    return places
