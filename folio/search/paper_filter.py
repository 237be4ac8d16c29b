"""Which papers and sections to search, from what a person writes: `--paper raft --year 2010- --section methods`.

A paper fits if it fits every field that is given; a field fits if one of its values does.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

from folio.errors import NotKnown, UsageError
from folio.paper_metadata import PersonName
from folio.search.candidate_filter import SectionFilter, kind_named
from folio.search.paper_names import papers_called
from folio.sections import KINDS, SectionMap
from folio.text import plain_words
from folio.types import Paper, SourceFile

_YEARS = re.compile(r"\s*(?P<first>\d{4})?\s*(?P<to>[-–—])?\s*(?P<last>\d{4})?\s*")
# Names that an error shows, and how near they are at least to what was written (difflib's ratio)
_NAMES, _NEAR = 3, 0.4
# What stands before the short title of a paper: "Raft: In search of ..."
_SHORT = re.compile(r"[^:–—?]+")


class YearRange(NamedTuple):
    """Years from the first to the last, both included; None is open."""

    first: int | None
    last: int | None

    @classmethod
    def parse(cls, written: str) -> YearRange:
        """From "2014", "2010-2015", "2020-" or "-1999". Raises UsageError."""
        found = _YEARS.fullmatch(written)
        if found is None or not (found["first"] or found["last"]) or (found["last"] and not found["to"]):
            raise UsageError(f"{written!r} is no year and no range of years.", "Write 2014, 2010-2015, 2020- or -1999.")
        first, last = (int(year) if year else None for year in (found["first"], found["last"]))
        if not found["to"]:
            last = first
        if first is not None and last is not None and first > last:
            first, last = last, first
        return cls(first, last)

    def holds(self, year: int | None) -> bool:
        """Whether a year lies in the range; one that is not known does not."""
        return year is not None and (self.first or year) <= year <= (self.last or year)


class PaperTest(NamedTuple):
    """Another condition, such as a tag: how it is called in an error, and whether a paper meets it."""

    name: str
    holds: Callable[[Paper], bool]


@dataclass(frozen=True, slots=True)
class PaperFilter:
    """What someone asks for. Each field may have several values, of which one must fit; no value fits everything."""

    papers: tuple[str, ...] = ()  # keys, file names, titles, or words of them
    years: tuple[YearRange, ...] = ()
    authors: tuple[str, ...] = ()  # family names or full names
    venues: tuple[str, ...] = ()  # words of the venue's name
    sections: tuple[str, ...] = ()  # kinds, or words of titles
    tests: tuple[PaperTest, ...] = ()

    @classmethod
    def parse(
        cls,
        papers: Iterable[str] = (),
        years: Iterable[str] = (),
        authors: Iterable[str] = (),
        venues: Iterable[str] = (),
        sections: Iterable[str] = (),
        tests: Iterable[PaperTest] = (),
    ) -> PaperFilter:
        """From what was written; "2014, 2016-" is two years. Raises UsageError, NotKnown."""
        ranges = tuple(YearRange.parse(year) for written in years for year in written.split(","))
        words = (("paper", papers), ("author", authors), ("venue", venues), ("section", sections))
        return cls(years=ranges, tests=tuple(tests), **{f"{name}s": _named(name, given) for name, given in words})

    def select(self, papers: Sequence[Paper], files: Sequence[SourceFile]) -> Selection:
        """The papers and sections that fit. files: of the papers. Raises NotKnown if none does."""
        chosen = list(papers)
        if self.papers:
            names = _file_names(files)
            ids = {paper.id for name in self.papers for paper in _named_so(name, papers, names)}
            chosen = [paper for paper in chosen if paper.id in ids]
        for test in self._tests():
            before, chosen = chosen, [paper for paper in chosen if test.holds(paper)]
            if not chosen:
                rest = "" if len(before) == len(papers) else ", of those that fit the rest"
                near = self._near(test.name, before)
                raise NotKnown(f"No paper fits {test.name}{rest}.{near}", "Change it, or leave it out.")
        sections = SectionFilter(self.sections) if self.sections else None
        if sections:
            with_section = [paper for paper in chosen if paper.sections.spans(sections.chooses)]
            if not with_section:
                raise _no_section(self.sections, [paper.sections for paper in chosen])
            chosen = with_section
        return Selection(chosen if len(chosen) < len(papers) or self.papers else None, sections)

    def _tests(self) -> list[PaperTest]:
        found = list(self.tests)
        if self.years:
            found.append(PaperTest("the year", lambda paper: any(years.holds(paper.year) for years in self.years)))
        if self.authors:
            wanted = [plain_words(author) for author in self.authors]
            found.append(PaperTest("the author", lambda paper: any(_wrote(paper, name) for name in wanted)))
        if self.venues:
            words = [set(plain_words(venue)) for venue in self.venues]
            found.append(PaperTest("the venue", lambda paper: any(one <= _venue(paper) for one in words)))
        return found

    def _near(self, field: str, papers: Sequence[Paper]) -> str:
        """What the papers have in this field that is close to what was written, as a sentence."""
        if field == "the year":
            known = sorted({paper.year for paper in papers if paper.year is not None})
            return f" The papers are from {known[0]} to {known[-1]}." if known else " No paper's year is known."
        if field == "the author":
            return _similar(self.authors, {str(name) for paper in papers for name in paper.metadata.authors.value})
        if field == "the venue":
            return _similar(self.venues, {paper.metadata.venue.value for paper in papers} - {""})
        return ""


class Selection(NamedTuple):
    """What a filter lets through."""

    papers: list[Paper] | None  # None for all
    sections: SectionFilter | None  # None for all


EVERYTHING = Selection(None, None)


def _named(field: str, given: Iterable[str]) -> tuple[str, ...]:
    """The values of a field, each once. Raises NotKnown for one without a letter or a digit."""
    values = tuple(dict.fromkeys(value.strip() for value in given))
    if empty := [value for value in values if not plain_words(value)]:
        raise NotKnown(f"{empty[0]!r} is no {field}.", f"Give the name of a {field}, or leave it out.")
    return values


def _file_names(files: Iterable[SourceFile]) -> dict[str, list[str]]:
    """Paper id -> the names of its files."""
    names: dict[str, list[str]] = {}
    for file in files:
        names.setdefault(file.sha256, []).append(file.name)
    return names


def _named_so(name: str, papers: Sequence[Paper], files: dict[str, list[str]]) -> list[Paper]:
    """The papers that are called exactly this, or else by a short name (paper_names.py), or have its words.

    Raises NotKnown if there is none.
    """
    wanted = plain_words(name)
    exact = [paper for paper in papers if wanted in map(plain_words, _exact_names(paper, files.get(paper.id, [])))]
    if exact or (exact := list(papers_called(name, papers))):
        return exact
    found = [
        paper
        for paper in papers
        if any(_has(plain_words(each), wanted) for each in (paper.title, paper.file, *files.get(paper.id, [])))
    ]
    if not found:
        known = {each for paper in papers for each in (*files.get(paper.id, [paper.file]), paper.title) if each}
        raise NotKnown(
            f"No paper in the index is called {name}.{_similar([name], known)}", "Give part of a file name or title."
        )
    return found


def _exact_names(paper: Paper, files: Sequence[str]) -> list[str]:
    """Key, file names with and without folder and suffix, title, short title, and the key in a bibliography."""
    paths = [PurePath(file) for file in (paper.file, *files)]
    short = _SHORT.match(paper.title)
    return [
        paper.key,
        paper.arxiv,
        *(name for path in paths for name in (str(path), path.name, path.stem, str(path.with_suffix("")))),
        paper.title,
        short.group() if short else "",
        paper.metadata.citation_key.value,
    ]


def _has(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the words hold those that are wanted, as a phrase of which the ends may be parts of words, or each."""
    return " ".join(wanted) in " ".join(words) or set(wanted) <= set(words)


def _wrote(paper: Paper, wanted: Sequence[str]) -> bool:
    """Whether an author has this family name, or a name with all these words: "Ongaro", "D. Ongaro"."""
    return any(_is_called(name, wanted) for name in paper.metadata.authors.value)


def _is_called(name: PersonName, wanted: Sequence[str]) -> bool:
    family, given = plain_words(name.family), plain_words(name.given)
    if family == list(wanted):
        return True
    full = [*given, *family]
    initials = {word[0] for word in given}
    return set(family) & set(wanted) != set() and all(
        word in full or (len(word) == 1 and word in initials) for word in wanted
    )


def _venue(paper: Paper) -> set[str]:
    return set(plain_words(paper.metadata.venue.value))


def _no_section(wanted: Sequence[str], maps: Sequence[SectionMap]) -> NotKnown:
    titles = {section.title for map_ in maps for section in map_.sections if section.level}
    kinds = {section.kind for map_ in maps for section in map_.sections}
    near = "" if all(map(kind_named, wanted)) else _similar(wanted, titles)
    return NotKnown(
        f"No section fits {' or '.join(wanted)}.{near}",
        f"Give words of a section's title, or a kind: {', '.join(kind for kind in KINDS if kind in kinds)}."
        if kinds
        else "Read the papers again with `python ingest.py --rebuild`, which finds their sections.",
    )


def _similar(wanted: Sequence[str], known: Iterable[str]) -> str:
    """The names close to those written, as a sentence; "" if there is none."""
    folded = {" ".join(plain_words(name)): name for name in sorted(known)}
    near = [
        folded[name]
        for each in wanted
        for name in difflib.get_close_matches(" ".join(plain_words(each)), folded, _NAMES, _NEAR)
    ]
    return f" Similar names: {', '.join(dict.fromkeys(near[:_NAMES]))}." if near else ""
