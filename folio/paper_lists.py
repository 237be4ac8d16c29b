"""Lists of papers: their order, how many are by each author or of each year, which fields nobody is sure of. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

from folio.paper_metadata import Metadata
from folio.text import one_line, without_marks
from folio.types import Paper

By = Literal["author", "year", "venue", "section", "warning"]
BY: tuple[By, ...] = get_args(By)
Sort = Literal["file", "title", "author", "year", "venue"]
SORTS: tuple[Sort, ...] = get_args(Sort)
# Fields that people are told about when they are unsure
_CHECKED_BY_PEOPLE = ("title", "authors", "year", "venue", "doi")

_PAGES = re.compile(r"pp?\. [^:]*: ")  # before a problem: "pp. 2-4, 9: no text"


def unsure_fields(metadata: Metadata) -> tuple[str, ...]:
    """The fields that are shown, although nobody is sure of them."""
    known = metadata.known()
    if metadata.printed_year is None:
        known.pop("year", None)
    return tuple(name for name in _CHECKED_BY_PEOPLE if name in known and known[name].value and not known[name].sure)


def sort_papers(papers: Iterable[Paper], by: Sort) -> list[Paper]:
    """In the order of their files, titles, first authors' family names or venues, or the newest first."""
    last = chr(0x10FFFF)  # papers without the field come last
    keys: Mapping[Sort, Callable[[Paper], Any]] = {
        "file": lambda paper: "",
        "title": lambda paper: _sort_key(paper.title) or last,
        "author": lambda paper: [_sort_key(person.family) for person in paper.metadata.authors.value] or [last],
        "year": lambda paper: -(paper.year or 0),
        "venue": lambda paper: _sort_key(paper.metadata.venue.value) or last,
    }
    return sorted(papers, key=lambda paper: (keys[by](paper), _sort_key(paper.file), paper.id))


def count_by(papers: Iterable[Paper], by: By) -> list[tuple[str, int]]:
    """How many papers have each author, year, venue, kind of section or warning: the most first, years in order.

    "" stands for papers that have none.
    """
    values: Mapping[By, Callable[[Paper], Iterable[str]]] = {
        "author": lambda paper: paper.authors,
        "year": lambda paper: [str(paper.year)] if paper.year else [],
        "venue": lambda paper: filter(None, [paper.metadata.venue.value]),
        "section": lambda paper: (section.kind for section in paper.sections.headed),
        "warning": lambda paper: (_PAGES.sub("", problem, count=1) for problem in paper.problems),
    }
    counts = Counter(value for paper in papers for value in set(values[by](paper)) or {""})
    if by == "year":
        return sorted(counts.items(), reverse=True)
    return sorted(counts.items(), key=lambda each: (not each[0], -each[1], _sort_key(each[0]), each[0]))


def _sort_key(text: str) -> str:
    """Text without differences of case, of diacritics and of spaces; signs count, as in the names of files."""
    return one_line(without_marks(text))
