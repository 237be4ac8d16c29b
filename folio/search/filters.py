"""Which papers and sections are wanted, from what a person writes: `--paper raft --year 2010- --section methods`.

A paper fits if it fits every field that is given; a field fits if one of its values does. A name that nothing in the
index has is a mistake, not an empty result: the error names those that are close to it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from folio.errors import NotKnown, UsageError, command
from folio.papers.lists import has_tag, is_in_collection, names_of, unsure_fields
from folio.papers.model import Chunk, Paper, SourceFile
from folio.papers.people import is_called
from folio.papers.sections import KINDS, NOT_EVIDENCE, Kind, PaperSection, Spans, overlap
from folio.papers.versions import is_superseded, newest
from folio.search.names import (
    KnownBy,
    aliases_in,
    file_names,
    known_by_none,
    papers_named,
    similar_names,
    unknown_paper,
)
from folio.shown_text import name_line
from folio.store.library import Library
from folio.store.works import cited_papers
from folio.text import one_line, plain_words

if TYPE_CHECKING:
    from folio.question.question import Question


# Which passages a search may return: those of chosen sections, and references or licences only if they are asked for.
#
# The indexes know papers, but no sections. So what they find is looked at, and they are searched deeper until enough
# is left (`deep_enough`): a filter never leaves a search with less than the library has.

Scored = list[tuple[int, float]]  # (chunk id, score), best first


@dataclass(frozen=True)
class SectionFilter:
    """The sections that someone asks for: by kind ("methods") or by words of their titles ("threats to validity").

    A section fits if one of `wanted` does; one that lies in it fits too.
    """

    wanted: tuple[str, ...]

    def chooses(self, section: PaperSection) -> bool:
        return any(_fits(section, words) for words in self._words)

    @cached_property
    def _words(self) -> tuple[tuple[Kind | None, frozenset[str]], ...]:
        return tuple((kind_named(wanted), frozenset(plain_words(wanted))) for wanted in self.wanted)


def _fits(section: PaperSection, wanted: tuple[Kind | None, frozenset[str]]) -> bool:
    kind, words = wanted
    if kind is not None:
        return section.kind == kind
    return bool(words) and bool(section.level) and words <= set(plain_words(section.title))


def kind_named(word: str) -> Kind | None:
    """The kind of this name, in the singular or the plural; None if there is none."""
    wanted = word.strip().casefold()
    return next((kind for kind in KINDS if wanted.rstrip("s") == kind.rstrip("s")), None)


@dataclass
class CandidateFilter:
    """Says which chunks may be found for one question. Reads each chunk and each paper once."""

    library: Library
    sections: SectionFilter | None
    apart: frozenset[Kind]  # the kinds that are no evidence for this question
    hidden: frozenset[str] = frozenset()  # ids of papers that are not searched
    newest_only: bool = False  # whether papers are left out of which there is a newer version
    chunks: dict[int, Chunk] = field(default_factory=dict)  # all that were read
    _spans: dict[str, tuple[Spans | None, Spans]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        library: Library,
        question: Question,
        sections: SectionFilter | None,
        hidden: frozenset[str] = frozenset(),
        newest_only: bool = False,
    ) -> CandidateFilter:
        """sections: where to search; what they name is searched even if the question does not ask for it.

        hidden: ids of papers that are not searched. newest_only: leave out papers of which the library has a newer
        version.
        """
        apart = frozenset[Kind]() if sections else NOT_EVIDENCE - question.kinds
        return cls(library, sections, apart, hidden, newest_only)

    def allowed(self, ids: Iterable[int]) -> set[int]:
        """Those of these chunks that may be found. Chunks that the library does not have are kept."""
        ids = list(ids)
        self.chunks |= self.library.chunks(chunk for chunk in ids if chunk not in self.chunks)
        self._read_papers({self.chunks[id].paper_id for id in ids if id in self.chunks} - self._spans.keys())
        return {id for id in ids if id not in self.chunks or self._allows(self.chunks[id])}

    def _read_papers(self, ids: set[str]) -> None:
        for paper in self.library.papers_by_id(ids):
            if self.newest_only and is_superseded(paper):
                self.hidden |= {paper.id}
            chosen = paper.sections.spans(self.sections.chooses) if self.sections else None
            self._spans[paper.id] = chosen, paper.sections.spans_of_kinds(self.apart)

    def _allows(self, chunk: Chunk) -> bool:
        """Whether its paper is searched, and most of it lies in the chosen sections and not in what is apart."""
        if chunk.paper_id in self.hidden:
            return False
        chosen, apart = self._spans.get(chunk.paper_id, (None, ()))
        half = (chunk.end - chunk.start) / 2
        is_chosen = chosen is None or overlap(chosen, chunk.start, chunk.end) > half
        return is_chosen and overlap(apart, chunk.start, chunk.end) <= half


def deep_enough(search: Callable[[int], Scored], wanted: int, candidates: CandidateFilter, first: Scored) -> Scored:
    """The best `wanted` results that may be found, or all of them if there are fewer.

    search: the best results of an index, as many as it is asked for; fewer if it has no more. first: its best results,
    `first_depth` of them: they were looked at together with those of other indexes, to read the library once.
    """
    depth, found = first_depth(wanted), first
    while True:
        allowed = candidates.allowed(chunk for chunk, _ in found)
        kept = [pair for pair in found if pair[0] in allowed]
        if len(kept) >= wanted or len(found) < depth:
            return kept[:wanted]
        depth *= 2
        found = search(depth)


def first_depth(wanted: int) -> int:
    """How many results to look at first: some may not be found."""
    return 2 * wanted


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
    collections: tuple[str, ...] = ()  # names or paths: see papers/lists.py
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

        files: of the papers. cited: see citations.cited_papers. known_by: see search/names.py.
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


# The papers and sections that a filter chooses from a library (search/filters.py).


def select(library: Library, wanted: PaperFilter) -> Selection:
    """The papers and sections to search. Raises UsageError if none is as wanted."""
    if wanted == PaperFilter():
        return EVERYTHING
    cited = partial(cited_papers, library.database)
    return wanted.select(library.papers(), library.files(), cited, aliases_in(library))
