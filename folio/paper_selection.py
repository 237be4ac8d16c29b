"""Which papers: the one that a name means, those by an author or of some years; how many there are of each. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, get_args

from folio.errors import NotKnown, UsageError
from folio.paper_metadata import Metadata, without_version
from folio.sections import KINDS
from folio.shown_text import name_line
from folio.types import Paper

By = Literal["author", "year", "venue", "section", "warning"]
BY: tuple[By, ...] = get_args(By)
Sort = Literal["file", "title", "author", "year", "venue"]
SORTS: tuple[Sort, ...] = get_args(Sort)
# Fields that people are told about when they are unsure
_CHECKED_BY_PEOPLE = ("title", "authors", "year", "venue", "doi")

YEARS = "[0-9]{4}|[0-9]{4}-[0-9]{4}|[0-9]{4}-|-[0-9]{4}"
_ID = re.compile(r"[0-9a-f]{6,64}", re.I)
_PAGES = re.compile(r"pp?\. [^:]*: ")  # before a problem: "pp. 2-4, 9: no text"
_LISTED = 5  # papers named in an error


@dataclass(frozen=True, slots=True)
class Years:
    """The years from the first to the last, both included; None where there is no end."""

    first: int | None
    last: int | None

    def has(self, year: int | None) -> bool:
        return year is not None and (self.first or year) <= year <= (self.last or year)


def parse_years(text: str) -> Years:
    """ "2014", "2010-2015", "2020-", "-1999". Raises UsageError."""
    if not re.fullmatch(YEARS, text):
        raise UsageError(f"“{text[:40]}” is not a year or a range of years.", "Write 2014, 2010-2015, 2020- or -1999.")
    first, sign, last = text.partition("-")
    if first and last and first > last:
        first, last = last, first
    if not sign:
        last = first
    return Years(int(first) if first else None, int(last) if last else None)


def require_kind(name: str) -> str:
    """The name of a kind of section. Raises UsageError for any other."""
    if name not in KINDS:
        raise UsageError(f"“{name[:40]}” is not a kind of section.", f"The kinds are {', '.join(KINDS)}.")
    return name


@dataclass(frozen=True, slots=True)
class PaperFilter:
    """What papers must have; the default lets all of them pass."""

    author: str = ""  # words that begin words of one author's name: "ongaro", "j ousterhout"
    years: Years | None = None
    venue: str = ""  # words that begin words of the venue
    section: str = ""  # a kind of section
    warnings: bool | None = None  # whether something was odd when it was read
    unsure: bool | None = None  # whether a field is not sure

    def fits(self, paper: Paper) -> bool:
        checks = (
            not self.author or any(_has_words(author, self.author) for author in paper.authors),
            self.years is None or self.years.has(paper.year),
            not self.venue or _has_words(paper.metadata.venue.value, self.venue),
            not self.section or any(section.kind == self.section for section in paper.sections.headed),
            self.warnings is None or self.warnings == bool(paper.problems),
            self.unsure is None or self.unsure == bool(unsure_fields(paper.metadata)),
        )
        return all(checks)


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
        "title": lambda paper: fold(paper.title) or last,
        "author": lambda paper: [fold(person.family) for person in paper.metadata.authors.value] or [last],
        "year": lambda paper: -(paper.year or 0),
        "venue": lambda paper: fold(paper.metadata.venue.value) or last,
    }
    return sorted(papers, key=lambda paper: (keys[by](paper), fold(paper.file), paper.id))


def papers_named(papers: Sequence[Paper], files: Mapping[str, Sequence[str]], name: str) -> list[Paper]:
    """The papers that a name means: a citation's or a bibliography's key, a file, a title, or how an id begins.

    If it is none of these exactly, the papers whose title and files have its words. files: paper id -> file names.
    """
    wanted = fold(name)
    exact = [paper for paper in papers if wanted in map(fold, _names(paper, files.get(paper.id, ())))]
    if not exact and _ID.fullmatch(name):
        exact = [paper for paper in papers if paper.id.startswith(name.lower())]
    if exact or not wanted:
        return exact
    return [
        paper
        for paper in papers
        if _has_words(" ".join([paper.title, paper.arxiv, paper.file, *files.get(paper.id, ())]), name)
    ]


def the_paper(papers: Sequence[Paper], files: Mapping[str, Sequence[str]], name: str) -> Paper:
    """The one paper that a name means, see `papers_named`. Raises UsageError for several, NotKnown for none."""
    found = papers_named(papers, files, name)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotKnown(
            f"No paper in the index is called “{name_line(name, 80)}”.",
            "Give its key, its file, words of its title or how its id begins: `python -m folio papers` lists them.",
        )
    listed = "; ".join(f"{name_line(paper.file, 60)} ({paper.id[:12]})" for paper in found[:_LISTED])
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    raise UsageError(
        f"“{name_line(name, 80)}” fits {len(found)} papers: {listed}{more}.",
        "Give the file name or the id of one.",
    )


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
    return sorted(counts.items(), key=lambda each: (not each[0], -each[1], fold(each[0]), each[0]))


def fold(text: str) -> str:
    """Text without differences of case, of diacritics and of spaces."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(char for char in plain if not unicodedata.combining(char)).split())


def _names(paper: Paper, files: Sequence[str]) -> Iterable[str]:
    arxiv = [paper.arxiv, without_version(paper.arxiv), f"arXiv:{paper.arxiv}"] if paper.arxiv else []
    yield from filter(None, [paper.key, paper.metadata.citation_key.value, paper.title, *arxiv])
    for file in {paper.file, *files}:
        path = PurePath(file)
        yield from (file, path.name, path.with_suffix("").as_posix(), path.stem)


def _has_words(text: str, wanted: str) -> bool:
    """Whether each wanted word begins a word of the text."""
    words = re.findall(r"\w+", fold(text))
    sought = re.findall(r"\w+", fold(wanted))
    return bool(sought) and all(any(word.startswith(each) for word in words) for each in sought)
