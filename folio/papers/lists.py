"""Collections and tags of papers; lists of papers: sorted, counted by author, year and more. Pure.

A collection is named by its name or a part of its path, "Consensus" or "Systems/Consensus", and includes the
collections below it. Case and the form of accented letters do not matter.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from folio.papers.metadata import Metadata
from folio.papers.model import Paper
from folio.text import one_line, without_marks

By = Literal["author", "year", "venue", "category", "section", "warning"]
BY: tuple[By, ...] = get_args(By)
Sort = Literal["file", "title", "author", "year", "venue"]
# Fields that are marked as unsure for people
_CHECKED_BY_PEOPLE = ("title", "authors", "year", "venue", "doi")
_PAGES = re.compile(r"pp?\. [^:]*: ")  # before a problem: "pp. 2-4, 9: no text"


def is_in_collection(metadata: Metadata, name: str) -> bool:
    """Whether the paper is in the collection of this name or path, or below it."""
    wanted = _steps(name)
    return bool(wanted) and any(wanted in _steps(path) for path in metadata.collections.value)


def has_category(metadata: Metadata, name: str) -> bool:
    """Whether the paper has this category, "cs.CL", or one of this archive, "cs"."""
    wanted = _folded(name)
    known = list(map(_folded, metadata.categories.value))
    return wanted in known or any(category.partition(".")[0] == wanted for category in known)


def has_tag(metadata: Metadata, name: str) -> bool:
    """Whether the paper has this tag."""
    return _folded(name) in map(_folded, metadata.tags.value)


def matches(metadata: Metadata, collections: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether the paper is in one of these collections and has one of these tags. An empty list fits all papers."""
    return (not collections or any(is_in_collection(metadata, name) for name in collections)) and (
        not tags or any(has_tag(metadata, name) for name in tags)
    )


def unknown_names(papers: Iterable[Metadata], collections: Sequence[str], tags: Sequence[str]) -> list[str]:
    """The names, out of these collections and tags, that no paper has."""
    left = [(name, is_in_collection) for name in collections] + [(name, has_tag) for name in tags]
    for metadata in papers:
        left = [(name, holds) for name, holds in left if not holds(metadata, name)]
        if not left:
            break
    return [name for name, _ in left]


def names_of(metadata: Metadata) -> list[str]:
    """The paths of the paper's collections, and of the collections above them."""
    paths = []
    for path in metadata.collections.value:
        steps = path.split("/")
        paths += ["/".join(steps[:end]) for end in range(len(steps), 0, -1)]
    return list(dict.fromkeys(paths))


def _steps(path: str) -> str:
    """A path in a form to search for parts of it: "/systems/consensus/"; "" for a path without a name."""
    names = [step for step in map(_folded, path.split("/")) if step]
    return f"/{'/'.join(names)}/" if names else ""


def _folded(name: str) -> str:
    # Not text.fold: accents and signs distinguish collections.
    return unicodedata.normalize("NFC", one_line(unicodedata.normalize("NFC", name).casefold()))


def unsure_fields(metadata: Metadata) -> tuple[str, ...]:
    """The shown fields that are not sure."""
    known = metadata.known()
    if metadata.printed_year is None:
        known.pop("year", None)
    return tuple(name for name in _CHECKED_BY_PEOPLE if name in known and known[name].value and not known[name].sure)


def sort_papers(papers: Iterable[Paper], by: Sort) -> list[Paper]:
    """The papers by file, title, authors' family names or venue, or newest first."""
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
    """Pairs of a value of the field ("" for none) and the number of papers with it.

    The largest number first; years in order.
    """
    values: Mapping[By, Callable[[Paper], Iterable[str]]] = {
        "author": lambda paper: paper.authors,
        "year": lambda paper: [str(paper.year)] if paper.year else [],
        "venue": lambda paper: filter(None, [paper.metadata.venue.value]),
        "category": lambda paper: paper.metadata.categories.value,
        "section": lambda paper: (section.kind for section in paper.sections.headed),
        "warning": lambda paper: (_PAGES.sub("", problem, count=1) for problem in paper.problems),
    }
    counts = Counter(value for paper in papers for value in set(values[by](paper)) or {""})
    if by == "year":
        return sorted(counts.items(), reverse=True)
    return sorted(counts.items(), key=lambda pair: (not pair[0], -pair[1], _sort_key(pair[0]), pair[0]))


def _sort_key(text: str) -> str:
    """Text for sorting, without case, diacritics and spacing. Signs count, as in file names."""
    return one_line(without_marks(text))
