"""Where a paper's title, authors, year and venue stand on its first pages: spans of their text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from folio.text import stripped, without_accents
from folio.types import Paper

Span = tuple[int, int]

# Characters of a title page in which title and authors are looked for, of a quote of them, of a line of front matter
_FRONT, _LONGEST, _LINE = 2500, 600, 200


def title_span(paper: Paper, text: str) -> Span:
    """Where the title stands; the first line where it is not found."""
    if found := _title(paper, text):
        return stripped(text, *found.span())
    line = text.lstrip().partition("\n")[0]
    start = text.find(line)
    return stripped(text, start, start + min(len(line), _LONGEST))


def authors_span(paper: Paper, text: str) -> Span | None:
    """The lines that name the authors, behind the title if they are there; None where no author is found."""
    title = _title(paper, text)
    for begin in dict.fromkeys((title.end() if title else 0, 0)):
        front = text[begin:_FRONT]
        places = [place for author in paper.metadata.authors.value if (place := _name(author.family, front))]
        if places:
            first = min(place.start() for place in places)
            last = max(place.end() for place in places if place.end() - first <= _LONGEST)
            start, end = _lines(front, first, last)
            return stripped(text, begin + start, begin + min(end, start + _LONGEST))
    return None


def year_span(paper: Paper, text: str) -> Span | None:
    """The line with the paper's year, rather one of front matter than of prose; None where the year is not printed."""
    return _line_with(rf"(?<!\d){paper.year}(?!\d)", text) if paper.year else None


def venue_span(paper: Paper, text: str) -> Span | None:
    """The line with the venue; None where it is not printed as it is known."""
    words = re.findall(r"\w+", paper.metadata.venue.value)
    return _line_with(r"\W*".join(map(re.escape, words)), text) if words else None


def _title(paper: Paper, text: str) -> re.Match[str] | None:
    words = r"\W*".join(re.escape(word) for word in re.findall(r"\w+", paper.title))
    # "[Re] Otters" begins with a bracket
    return re.search(rf"[\[(“\"]?{words}", text[:_FRONT], re.I) if words else None


def _name(family: str, text: str) -> re.Match[str] | None:
    """Where a family name stands; its accents may be signs of their own, as old typesetting writes them."""
    letters = "".join(_letter(letter) for letter in family)
    return re.search(rf"(?<!\w){letters}(?![^\W\d_])", text, re.I)


def _letter(letter: str) -> str:
    plain = without_accents(letter)
    return re.escape(letter) if plain == letter else rf"(?:{re.escape(letter)}|[^\w\s]?{re.escape(plain)}[^\w\s]?)"


def _line_with(pattern: str, text: str) -> Span | None:
    """The first short line that has this, at the beginning of it, or else the first line."""
    lines = list(_lines_with(pattern, text))
    short = [(start, end) for start, end in lines if end - start <= _LINE]
    return next(iter([*short, *lines]), None)


def _lines_with(pattern: str, text: str) -> Iterator[Span]:
    for found in re.finditer(pattern, text, re.I):
        start, end = _lines(text, *found.span())
        yield stripped(text, max(start, found.end() - _LONGEST), min(end, found.end() + _LONGEST))


def _lines(text: str, start: int, end: int) -> Span:
    """The lines that have this span."""
    after = text.find("\n", end)
    return text.rfind("\n", 0, start) + 1, len(text) if after < 0 else after
