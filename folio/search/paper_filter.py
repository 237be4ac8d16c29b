"""Which papers and sections are wanted, from what a person writes: `--paper raft --year 2010- --section methods`.

A paper fits if it fits every field that is given; a field fits if one of its values does. A name that nothing in the
index has is a mistake, not an empty result: the error names those that are close to it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from folio.errors import NotKnown, UsageError, command
from folio.paper_groups import has_tag, is_in_collection, names_of
from folio.paper_lists import unsure_fields
from folio.paper_versions import newest
from folio.people import is_called
from folio.search.aliases import KnownBy, known_by_none
from folio.search.candidate_filter import SectionFilter, kind_named
from folio.search.paper_names import file_names, papers_named, similar_names, unknown_paper
from folio.sections import KINDS
from folio.shown_text import name_line
from folio.text import one_line, plain_words
from folio.types import Paper, SourceFile

# 2014, 2010-2015, 2020-, -1999; with any dash, and spaces around it
YEARS = "[0-9]{4}( ?[-–—]( ?[0-9]{4})?)?|[-–—] ?[0-9]{4}"
# A word, and whether a full stop says that it is the beginning of one: "Proc."
_VENUE_WORD = re.compile(r"(\w+)(\.?)")
_SHOWN = 80  # characters of a name in an error


class YearRange(NamedTuple):
    """Years from the first to the last, both included; None is open."""

    first: int | None
    last: int | None

    @classmethod
    def parse(cls, written: str) -> YearRange:
        """From "2014", "2010-2015", "2020-" or "-1999". Raises UsageError."""
        if not re.fullmatch(YEARS, written.strip()):
            raise UsageError(
                f"“{name_line(written, 40)}” is not a year or a range of years.",
                "Write 2014, 2010-2015, 2020- or -1999.",
            )
        first, sign, last = re.fullmatch(r"(\d*)([^\d]*)(\d*)", written.strip()).groups()  # type: ignore[union-attr]
        if not sign:
            last = first
        elif first and last and first > last:
            remedy = f"Write the earlier year first: {last}-{first}."
            raise UsageError(f"The years “{name_line(written, 40)}” end before they begin.", remedy)
        return cls(int(first) if first else None, int(last) if last else None)

    def holds(self, year: int | None) -> bool:
        """Whether a year lies in the range; one that is not known does not."""
        return year is not None and (self.first or year) <= year <= (self.last or year)


def _no_hint(papers: Sequence[Paper]) -> str:
    return ""


# Paper id -> the ids of those that it cites; None if its references are not known
CitedPapers = Callable[[str], set[str] | None]


def _no_citations(paper: str) -> None:
    return None


class _Condition(NamedTuple):
    """How a condition is called in an error, whether a paper meets it, and what the error adds."""

    name: str
    holds: Callable[[Paper], bool]
    hint: Callable[[Sequence[Paper]], str] = _no_hint


class _NamedField(NamedTuple):
    """A field whose values are names that papers have."""

    name: str
    wanted: tuple[str, ...]
    test: Callable[[str], Callable[[Paper], bool]]  # of a name: whether a paper has it
    names: Callable[[Paper], Iterable[str]]  # those that a paper has, for an error
    unknown: str  # what an error says of a name that no paper has
    remedy: str


@dataclass(frozen=True, slots=True)
class PaperFilter:
    """What someone asks for. Each field may have several values, of which one must fit; no value fits everything."""

    papers: tuple[str, ...] = ()  # names: see paper_names.papers_named
    years: tuple[YearRange, ...] = ()
    authors: tuple[str, ...] = ()  # family names, or full names with or without initials
    venues: tuple[str, ...] = ()  # words of the venue's name; "Proc." stands for what begins so
    sections: tuple[str, ...] = ()  # kinds, or words of titles
    collections: tuple[str, ...] = ()  # names or paths: see paper_groups.py
    tags: tuple[str, ...] = ()
    warnings: bool | None = None  # whether something was odd when it was read
    unsure: bool | None = None  # whether a field is not sure
    cited_by: tuple[str, ...] = ()  # names of papers that cite what is wanted
    ids: frozenset[str] = frozenset()  # of papers; none means any

    @classmethod
    def parse(
        cls,
        papers: Iterable[str] = (),
        years: Iterable[str] = (),
        authors: Iterable[str] = (),
        venues: Iterable[str] = (),
        sections: Iterable[str] = (),
        collections: Iterable[str] = (),
        tags: Iterable[str] = (),
        cited_by: Iterable[str] = (),
        *,
        warnings: bool | None = None,
        unsure: bool | None = None,
        ids: Iterable[str] = (),
    ) -> PaperFilter:
        """From what was written; "2014, 2016-" is two years. Raises UsageError, NotKnown."""
        return cls(
            papers=_values("paper", papers),
            years=tuple(YearRange.parse(year) for written in years for year in written.split(",")),
            authors=_values("author", authors),
            venues=_values("venue", venues),
            sections=_values("section", sections),
            collections=_values("collection", collections, need_word=False),  # a tag may be "★"
            tags=_values("tag", tags, need_word=False),
            cited_by=_values("paper", cited_by),
            warnings=warnings,
            unsure=unsure,
            ids=frozenset(ids),
        )

    def matching(
        self,
        papers: Sequence[Paper],
        files: Iterable[SourceFile],
        cited: CitedPapers = _no_citations,
        known_by: KnownBy = known_by_none,
    ) -> list[Paper]:
        """Those of all papers that fit, perhaps none. Raises NotKnown for a name nothing has.

        files: of the papers. cited: see citations.cited_papers. known_by: see aliases.py.
        """
        conditions = self._conditions(papers, files, cited, known_by)
        return [paper for paper in papers if all(condition.holds(paper) for condition in conditions)]

    def select(
        self,
        papers: Sequence[Paper],
        files: Iterable[SourceFile],
        cited: CitedPapers = _no_citations,
        known_by: KnownBy = known_by_none,
    ) -> Selection:
        """Those of all papers, and the sections, that fit. Raises NotKnown if none does. Arguments as of `matching`.

        An older version of a paper is chosen by its name alone, not by a year or an author that both have.
        """
        chosen = list(papers)
        for condition in self._conditions(papers, files, cited, known_by):
            before, chosen = chosen, [paper for paper in chosen if condition.holds(paper)]
            if not chosen:
                rest = "" if len(before) == len(papers) else ", of those that fit the rest"
                raise NotKnown(
                    f"No paper fits {condition.name}{rest}.{condition.hint(before)}", "Change it, or leave it out."
                )
        is_restricted = len(chosen) < len(papers) or self.papers or self.ids
        if not (self.papers or self.ids):
            chosen = newest(chosen)
        return Selection(chosen if is_restricted else None, SectionFilter(self.sections) if self.sections else None)

    def _conditions(
        self, papers: Sequence[Paper], files: Iterable[SourceFile], cited: CitedPapers, known_by: KnownBy
    ) -> list[_Condition]:
        """What a paper must meet. Raises NotKnown for a name that none of these papers has."""
        found = []
        named = partial(_named, papers=papers, files=file_names(files), known_by=known_by)
        if self.ids:
            found.append(_Condition("the choice of papers", lambda paper: paper.id in self.ids))
        if self.papers:
            found.append(_condition_of_names(self.papers, named))
        if self.years:
            found.append(_Condition("the year", lambda paper: any(y.holds(paper.year) for y in self.years), _years_of))
        if self.cited_by:
            found.append(_condition_of_citations(self.cited_by, named, cited))
        found += [_condition(field, papers) for field in self._named_fields() if field.wanted]
        if self.warnings is not None:
            found.append(_Condition("the warnings", lambda paper: bool(paper.problems) == self.warnings))
        if self.unsure is not None:
            found.append(_Condition("what is unsure", lambda paper: bool(unsure_fields(paper.metadata)) == self.unsure))
        return found

    def _named_fields(self) -> Iterable[_NamedField]:
        listed = f"`{command('papers list --by {}')}` lists them."
        yield _NamedField(
            "the author", self.authors, by_author, lambda paper: paper.authors,
            "No paper in the index is by “{}”.", f"Give a family name, or a full name: {listed.format('author')}",
        )  # fmt: skip
        yield _NamedField(
            "the venue", self.venues, _of_venue, lambda paper: [paper.metadata.venue.value],
            "No paper in the index is of a venue called “{}”.", f"Give words of its name: {listed.format('venue')}",
        )  # fmt: skip
        yield _NamedField(
            "the section", self.sections, _with_section, _section_names,
            "No section is called “{}”.",
            f"Give words of a section's title, or a kind: {', '.join(KINDS)}.",
        )  # fmt: skip
        yield _NamedField(
            "the collection", self.collections,
            lambda name: lambda paper: is_in_collection(paper.metadata, name),
            lambda paper: names_of(paper.metadata),
            "No paper in the index is in a collection called “{}”.",
            "Give its name, or its path: Systems/Consensus."
            f" `{command('ingest --zotero')}` takes collections from Zotero.",
        )  # fmt: skip
        yield _NamedField(
            "the tag", self.tags,
            lambda name: lambda paper: has_tag(paper.metadata, name),
            lambda paper: paper.metadata.tags.value,
            "No paper in the index has the tag “{}”.",
            f"Give a whole tag. They come from Zotero, a bibliography or `{command('papers edit')}`.",
        )  # fmt: skip


class Selection(NamedTuple):
    """What a filter lets through."""

    papers: Sequence[Paper] | None  # None for all
    sections: SectionFilter | None  # None for all


EVERYTHING = Selection(None, None)


def _values(field: str, given: Iterable[str], *, need_word: bool = True) -> tuple[str, ...]:
    """The values of a field, each once. Raises NotKnown for an empty one, or one without a letter or a digit."""
    values = tuple(dict.fromkeys(value.strip() for value in given))
    if empty := [value for value in values if not (plain_words(value) if need_word else value)]:
        raise NotKnown(f"“{name_line(empty[0], _SHOWN)}” is no {field}.", f"Give the {field}'s name, or leave it out.")
    return values


def _named(name: str, papers: Sequence[Paper], files: dict[str, list[str]], known_by: KnownBy) -> list[Paper]:
    """The papers of a name. Raises NotKnown if there is none."""
    found = papers_named(name, papers, files, known_by)
    if not found:
        raise unknown_paper(name, papers, files)
    return found


def _condition_of_names(names: Sequence[str], named: Callable[[str], list[Paper]]) -> _Condition:
    ids = {paper.id for name in names for paper in named(name)}
    return _Condition("the name", lambda paper: paper.id in ids)


def _condition_of_citations(
    names: Sequence[str], named: Callable[[str], list[Paper]], cited: CitedPapers
) -> _Condition:
    """That one of these papers cites it. Raises NotKnown for an unknown paper, or one with unknown references."""
    fitting: set[str] = set()
    for name in names:
        found = named(name)
        known = [each for paper in found if (each := cited(paper.id)) is not None]
        if not known:
            expand = command(f"fetch --expand cites {shlex.quote(found[0].file)}")
            raise NotKnown(
                f"What “{name_line(name, _SHOWN)}” cites is not known yet.",
                f"Run `{expand}`, which asks services on the internet.",
            )
        fitting = fitting.union(*known)
    return _Condition("what is cited by that", lambda paper: paper.id in fitting)


def _condition(field: _NamedField, papers: Sequence[Paper]) -> _Condition:
    """That a paper has one of the names. Raises NotKnown for one that no paper has, unless it is a kind of section."""
    fitting: set[str] = set()
    for name in field.wanted:
        test = field.test(name)
        ids = {paper.id for paper in papers if test(paper)}
        if not ids and not (field.name == "the section" and kind_named(name)):
            near = similar_names(name, {each for paper in papers for each in field.names(paper)})
            raise NotKnown(f"{field.unknown.format(name_line(name, _SHOWN))}{near}", field.remedy)
        fitting |= ids
    hint = _kinds_of if field.name == "the section" else _no_hint
    return _Condition(field.name, lambda paper: paper.id in fitting, hint)


def _years_of(papers: Sequence[Paper]) -> str:
    known = sorted({paper.year for paper in papers if paper.year is not None})
    return f" The papers are from {known[0]} to {known[-1]}." if known else " No paper's year is known."


def _kinds_of(papers: Sequence[Paper]) -> str:
    kinds = {section.kind for paper in papers for section in paper.sections.sections}
    if not kinds:
        return f" They have no sections yet: `{command('ingest --rebuild')}` finds them."
    return f" The kinds of their sections are {', '.join(kind for kind in KINDS if kind in kinds)}."


def by_author(name: str) -> Callable[[Paper], bool]:
    """Whether an author has this family name, or a name with all these words: "Ongaro", "D. Ongaro"."""
    wanted = plain_words(name)
    return lambda paper: any(is_called(each, wanted) for each in paper.metadata.authors.value)


def _of_venue(name: str) -> Callable[[Paper], bool]:
    """Whether the venue's name has all these words; one with a full stop may be the beginning of one."""
    wanted = [(word, bool(stop)) for word, stop in _VENUE_WORD.findall(one_line(name))]
    wanted = [(plain, stop) for word, stop in wanted for plain in plain_words(word)]

    def fits(paper: Paper) -> bool:
        words = plain_words(paper.metadata.venue.value)
        return all(
            any(each == word or (is_beginning and each.startswith(word)) for each in words)
            for word, is_beginning in wanted
        )

    return fits


def _with_section(name: str) -> Callable[[Paper], bool]:
    sections = SectionFilter((name,))
    return lambda paper: bool(paper.sections.spans(sections.chooses))


def _section_names(paper: Paper) -> Iterable[str]:
    for section in paper.sections.headed:
        yield from (section.title, section.kind)
