"""Which paper of the library is which work: by identifier, else by title, authors and year, with a score. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz

from folio.identifiers import bare_arxiv
from folio.paper_metadata import Metadata
from folio.people import families
from folio.text import fold
from folio.types import Paper
from folio.work import Work, title_key

ENOUGH = 0.9  # the score of a match that is found by its title
_SAME_TITLE = 0.9  # the likeness of titles, at least
# The likeness of titles below which an identifier must be another work's, such as one that the paper cites
_OTHER_TITLE = 0.5
_TITLE, _AUTHORS, _YEAR = 0.7, 0.2, 0.1  # weights in a score
_TELLING = 4  # words of a title that say enough without authors


def paper_marks(papers: Iterable[Paper]) -> dict[str, Paper]:
    """What a work has in common with a paper (Work.marks) -> the paper."""
    found: dict[str, Paper] = {}
    for paper in papers:
        about = paper.metadata
        first = about.authors.value[0].family if about.authors.value else ""
        for mark in (
            f"doi {about.doi.value.casefold()}" if about.doi.value else "",
            f"arxiv {bare_arxiv(about.arxiv.value)}" if about.arxiv.value else "",
            title_key(about.title.value, first, about.year.value),
        ):
            if mark:
                found.setdefault(mark, paper)
    return found


def score(about: Metadata, work: Work) -> float:
    """How well a work fits what is known of a paper, 0 to 1. What is not known on either side does not count."""
    likeness = _likeness(about, work)
    parts = [(_TITLE, likeness)]
    ours = families(about.authors.value)
    theirs = families(author.name for author in work.authors)
    if ours and theirs:
        parts.append((_AUTHORS, len(ours & theirs) / min(len(ours), len(theirs))))
    if about.printed_year and work.year:
        parts.append((_YEAR, 1.0 if abs(about.printed_year - work.year) <= 1 else 0.0))
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def best(about: Metadata, works: Sequence[Work]) -> tuple[Work, float] | None:
    """The work that fits best and well enough, with its score."""
    has_authors = bool(about.authors.value)
    is_telling = len(about.title.value.split()) >= _TELLING
    fitting = [
        (score(about, work), work)
        for work in works
        if _likeness(about, work) >= _SAME_TITLE and (is_telling or (has_authors and work.authors))
    ]
    found = max(fitting, key=lambda each: each[0], default=None)
    return (found[1], found[0]) if found and found[0] >= ENOUGH else None


def contradicts(about: Metadata, work: Work) -> bool:
    """Whether the work of a paper's identifier is another one, by its title."""
    return bool(about.title.sure and about.title.value) and _likeness(about, work) < _OTHER_TITLE


def same_title(one: Work, other: Work) -> bool:
    """Whether two works have the same title, as versions of one work have."""
    return fuzz.ratio(fold(one.title), fold(other.title)) / 100 >= _SAME_TITLE


def _likeness(about: Metadata, work: Work) -> float:
    return fuzz.ratio(fold(about.title.value), fold(work.title)) / 100
