"""Filters: which papers and sections a user chose (`--paper raft --year 2010- --section methods`), and which chunks
a search may return.

A paper fits if every given field fits, and a field if one of its values does. A name that nothing in the index has is
a mistake, not an empty result: the error lists similar names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from folio.answer_types import Scope
from folio.errors import NotKnown, UsageError, command
from folio.papers.lists import has_category, has_tag, is_in_collection, names_of, unsure_fields
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
from folio.search.scope import scope_of
from folio.shown_text import name_line
from folio.store import projects as stored_projects
from folio.store.library import Library
from folio.store.note_places import NotesAmong
from folio.store.projects import Member, Project, Rule, same_name
from folio.store.works import cited_papers
from folio.text import STOP_WORDS, one_line, plain_words

if TYPE_CHECKING:
    from folio.question.question import Question

Scored = list[tuple[int, float]]  # (chunk id, score), best first


@dataclass(frozen=True)
class SectionFilter:
    """Sections by kind ("methods") or by words of their titles ("threats to validity"), with their subsections."""

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
    """The kind with this name, in the singular or the plural; None if there is none."""
    wanted = word.strip().casefold()
    return next((kind for kind in KINDS if wanted.rstrip("s") == kind.rstrip("s")), None)


@dataclass
class CandidateFilter:
    """Decides which chunks a search for one question may return: only of chosen sections, and no references or
    licences unless the question asks for them. Reads each chunk and each paper once.
    """

    library: Library
    sections: SectionFilter | None
    excluded: frozenset[Kind]  # kinds of sections that are no evidence for this question
    hidden: frozenset[str] = frozenset()  # ids of papers to leave out
    newest_only: bool = False  # whether to leave out papers that have a newer version in the library
    chunks: dict[int, Chunk] = field(default_factory=dict)  # all chunks read so far
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
        """sections: where to search, whether or not the question asks for their kinds."""
        excluded = frozenset[Kind]() if sections else NOT_EVIDENCE - question.kinds
        return cls(library, sections, excluded, hidden, newest_only)

    def allowed(self, ids: Iterable[int]) -> set[int]:
        """The chunks, out of these, that may be returned. Chunks that the library does not have are kept."""
        ids = list(ids)
        self.chunks |= self.library.chunks(chunk for chunk in ids if chunk not in self.chunks)
        self._read_papers({self.chunks[id].paper_id for id in ids if id in self.chunks} - self._spans.keys())
        return {id for id in ids if id not in self.chunks or self._allows(self.chunks[id])}

    def _read_papers(self, ids: set[str]) -> None:
        for paper in self.library.papers_by_id(ids):
            if self.newest_only and is_superseded(paper):
                self.hidden |= {paper.id}
            chosen = paper.sections.spans(self.sections.chooses) if self.sections else None
            self._spans[paper.id] = chosen, paper.sections.spans_of_kinds(self.excluded)

    def _allows(self, chunk: Chunk) -> bool:
        """Whether its paper is searched, and most of it lies in chosen sections and outside excluded ones."""
        if chunk.paper_id in self.hidden:
            return False
        chosen, excluded = self._spans.get(chunk.paper_id, (None, ()))
        half = (chunk.end - chunk.start) / 2
        is_chosen = chosen is None or overlap(chosen, chunk.start, chunk.end) > half
        return is_chosen and overlap(excluded, chunk.start, chunk.end) <= half


def deep_enough(search: Callable[[int], Scored], wanted: int, candidates: CandidateFilter, first: Scored) -> Scored:
    """The best `wanted` results that may be returned, or all of them if there are fewer.

    The indexes know papers but no sections, so they are searched deeper until enough results pass the filter.

    search: returns an index's best results, at most as many as it is given. first: its `first_depth` best results,
    which the caller reads together with those of other indexes.
    """
    depth, results = first_depth(wanted), first
    while True:
        allowed = candidates.allowed(chunk for chunk, _ in results)
        kept = [pair for pair in results if pair[0] in allowed]
        if len(kept) >= wanted or len(results) < depth:
            return kept[:wanted]
        depth *= 2
        results = search(depth)


def first_depth(wanted: int) -> int:
    """How many results to read first: the filter may drop some."""
    return 2 * wanted


# 2014, 2010-2015, 2020-, -1999; with any dash, and spaces around it
YEARS = "[0-9]{4}( ?[-–—]( ?[0-9]{4})?)?|[-–—] ?[0-9]{4}"
# A word, and the full stop of an abbreviation: "Proc."
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
        """Whether a year lies in the range. An unknown year does not."""
        return year is not None and (self.first or year) <= year <= (self.last or year)


# Paper id -> the ids of the papers that it cites; None if its references are not known
CitedPapers = Callable[[str], set[str] | None]


class _Condition(NamedTuple):
    """A condition on papers, with texts for an error."""

    name: str
    holds: Callable[[Paper], bool]
    hint: Callable[[Sequence[Paper]], str] = lambda papers: ""  # from the papers that meet the other conditions


class _NamedField(NamedTuple):
    """A field whose values are names that papers have."""

    name: str
    wanted: tuple[str, ...]
    test: Callable[[str], Callable[[Paper], bool]]  # name -> whether a paper has it
    names: Callable[[Paper], Iterable[str]]  # the names that a paper has, for an error
    unknown: str  # the error for a name that no paper has
    remedy: str


@dataclass(frozen=True, slots=True)
class PaperFilter:
    """Conditions on papers. One value of each field must fit; a field without values fits every paper."""

    papers: tuple[str, ...] = ()  # names: see names.papers_named
    years: tuple[YearRange, ...] = ()
    authors: tuple[str, ...] = ()  # family names, or full names with or without initials
    venues: tuple[str, ...] = ()  # words of the venue's name; "Proc." stands for what begins so
    sections: tuple[str, ...] = ()  # kinds, or words of titles
    collections: tuple[str, ...] = ()  # names or paths: see papers/lists.py
    tags: tuple[str, ...] = ()
    warnings: bool | None = None  # whether something was odd when it was read
    unsure: bool | None = None  # whether a field is not sure
    cited_by: tuple[str, ...] = ()  # names of papers that cite what is wanted
    categories: tuple[str, ...] = ()  # "cs.CL", or an archive: "cs"
    projects: tuple[str, ...] = ()  # names or ids: see `project_called`
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
        categories: Iterable[str] = (),
        projects: Iterable[str] = (),
        *,
        warnings: bool | None = None,
        unsure: bool | None = None,
        ids: Iterable[str] = (),
    ) -> PaperFilter:
        """From texts that a user typed; "2014, 2016-" is two years. Raises UsageError, NotKnown."""
        return cls(
            papers=_values("paper", papers),
            years=tuple(YearRange.parse(year) for written in years for year in written.split(",")),
            authors=_values("author", authors),
            venues=_values("venue", venues),
            sections=_values("section", sections),
            collections=_values("collection", collections, need_word=False),  # a tag may be "★"
            tags=_values("tag", tags, need_word=False),
            cited_by=_values("paper", cited_by),
            categories=_values("category", categories),
            projects=_values("project", projects, need_word=False),
            warnings=warnings,
            unsure=unsure,
            ids=frozenset(ids),
        )

    def matching(
        self,
        papers: Sequence[Paper],
        files: Iterable[SourceFile],
        cited: CitedPapers = lambda paper: None,
        known_by: KnownBy = known_by_none,
        in_projects: Sequence[ProjectPapers] = (),
    ) -> list[Paper]:
        """The papers that fit, perhaps none. Raises NotKnown for a name that nothing has.

        files: the files of the papers. cited: see works.cited_papers. known_by: see search/names.py. in_projects: what
        `projects` names.
        """
        conditions = self._conditions(papers, files, cited, known_by, in_projects)
        return [paper for paper in papers if all(condition.holds(paper) for condition in conditions)]

    def select(
        self,
        papers: Sequence[Paper],
        files: Iterable[SourceFile],
        cited: CitedPapers = lambda paper: None,
        known_by: KnownBy = known_by_none,
        in_projects: Sequence[ProjectPapers] = (),
    ) -> Selection:
        """The papers and sections that fit. Raises NotKnown if none do. Arguments: see `matching`.

        Only its name chooses an older version of a paper, or a project that it was put in; not a year or an author that
        both versions have.
        """
        chosen = list(papers)
        for condition in self._conditions(papers, files, cited, known_by, in_projects):
            before, chosen = chosen, [paper for paper in chosen if condition.holds(paper)]
            if not chosen:
                rest = "" if len(before) == len(papers) else ", of those that fit the rest"
                raise NotKnown(
                    f"No paper fits {condition.name}{rest}.{condition.hint(before)}", "Change it, or leave it out."
                )
        is_restricted = len(chosen) < len(papers) or self.papers or self.ids or self.projects
        if not (self.papers or self.ids):
            by_hand = {paper for project in in_projects for paper in project.by_hand}
            latest = {paper.id for paper in newest([paper for paper in chosen if paper.id not in by_hand])}
            chosen = [paper for paper in chosen if paper.id in latest | by_hand]
        among = chosen if is_restricted else None
        scope = scope_of(self, among, total=len(papers), projects=[project.name for project in in_projects])
        return Selection(among, SectionFilter(self.sections) if self.sections else None, scope)

    def _conditions(
        self,
        papers: Sequence[Paper],
        files: Iterable[SourceFile],
        cited: CitedPapers,
        known_by: KnownBy,
        in_projects: Sequence[ProjectPapers],
    ) -> list[_Condition]:
        """The conditions for a paper. Raises NotKnown for a name that none of these papers has."""
        conditions = []
        named = partial(_named, papers=papers, files=file_names(files), known_by=known_by)
        if self.ids:
            conditions.append(_Condition("the choice of papers", lambda paper: paper.id in self.ids))
        if self.projects:
            members = frozenset[str]().union(*(project.papers for project in in_projects))
            conditions.append(_Condition("the project", lambda paper: paper.id in members))
        if self.papers:
            ids = {paper.id for name in self.papers for paper in named(name)}
            conditions.append(_Condition("the name", lambda paper: paper.id in ids))
        if self.years:
            conditions.append(
                _Condition("the year", lambda paper: any(years.holds(paper.year) for years in self.years), _years_of)
            )
        if self.cited_by:
            conditions.append(_condition_of_citations(self.cited_by, named, cited))
        conditions += [_condition(field, papers) for field in self._named_fields() if field.wanted]
        if self.warnings is not None:
            conditions.append(_Condition("the warnings", lambda paper: bool(paper.problems) == self.warnings))
        if self.unsure is not None:
            conditions.append(
                _Condition("what is unsure", lambda paper: bool(unsure_fields(paper.metadata)) == self.unsure)
            )
        return conditions

    def _named_fields(self) -> Iterable[_NamedField]:
        listed = f"`{command('papers list --by {}')}` lists them."
        yield _NamedField(
            "the author", self.authors, by_author, lambda paper: paper.authors,
            "No paper in the index is by “{}”.", f"Give a family name, or a full name: {listed.format('author')}",
        )  # fmt: skip
        yield _NamedField(
            "the venue", self.venues, of_venue, lambda paper: [paper.metadata.venue.value],
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
        yield _NamedField(
            "the category", self.categories,
            lambda name: lambda paper: has_category(paper.metadata, name),
            lambda paper: paper.metadata.categories.value,
            "No paper in the index has the category “{}”.",
            f"{listed.format('category')} `{command('fetch --metadata')}` finds those of arXiv.",
        )  # fmt: skip


class Selection(NamedTuple):
    """The papers and sections to search; None for all."""

    papers: Sequence[Paper] | None
    sections: SectionFilter | None
    scope: Scope | None = None  # the same in words, where it is known


EVERYTHING = Selection(None, None)


def _values(field: str, given: Iterable[str], *, need_word: bool = True) -> tuple[str, ...]:
    """The values of a field, each once. Raises NotKnown for a value without a letter or a digit, or an empty one."""
    values = tuple(dict.fromkeys(value.strip() for value in given))
    if empty := [value for value in values if not (plain_words(value) if need_word else value)]:
        raise NotKnown(f"“{name_line(empty[0], _SHOWN)}” is no {field}.", f"Give the {field}'s name, or leave it out.")
    return values


def _named(name: str, papers: Sequence[Paper], files: dict[str, list[str]], known_by: KnownBy) -> list[Paper]:
    """The papers with a name. Raises NotKnown if there are none."""
    if matches := papers_named(name, papers, files, known_by):
        return matches
    raise unknown_paper(name, papers, files)


def _condition_of_citations(
    names: Sequence[str], named: Callable[[str], list[Paper]], cited: CitedPapers
) -> _Condition:
    """That one of the named papers cites a paper. Raises NotKnown if a name or a paper's references are not known."""
    fitting: set[str] = set()
    for name in names:
        citing = named(name)
        known = [ids for paper in citing if (ids := cited(paper.id)) is not None]
        if not known:
            expand = command(f"fetch --expand cites {shlex.quote(citing[0].file)}")
            raise NotKnown(
                f"What “{name_line(name, _SHOWN)}” cites is not known yet.",
                f"Run `{expand}`, which asks services on the internet.",
            )
        fitting = fitting.union(*known)
    return _Condition("what is cited by that", lambda paper: paper.id in fitting)


def _condition(field: _NamedField, papers: Sequence[Paper]) -> _Condition:
    """That a paper has one of the names. Raises NotKnown for an unknown name, unless it is a kind of section."""
    fitting: set[str] = set()
    for name in field.wanted:
        test = field.test(name)
        ids = {paper.id for paper in papers if test(paper)}
        if not ids and not (field.name == "the section" and kind_named(name)):
            near = similar_names(name, {known for paper in papers for known in field.names(paper)})
            raise NotKnown(f"{field.unknown.format(name_line(name, _SHOWN))}{near}", field.remedy)
        fitting |= ids
    condition = _Condition(field.name, lambda paper: paper.id in fitting)
    return condition._replace(hint=_kinds_of) if field.name == "the section" else condition


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
    return lambda paper: any(is_called(person, wanted) for person in paper.metadata.authors.value)


def of_venue(name: str) -> Callable[[Paper], bool]:
    """Whether the venue's name has all these words, or these initials. A word with a full stop is an abbreviation."""
    pairs = _VENUE_WORD.findall(one_line(name))
    wanted = [(prefix, bool(stop)) for typed, stop in pairs for prefix in plain_words(typed)]

    def fits(paper: Paper) -> bool:
        words = plain_words(paper.metadata.venue.value)
        initials = "".join(word[0] for word in words if word not in STOP_WORDS)
        return (len(initials) > 2 and [initials] == plain_words(name)) or all(
            any(word == prefix or (is_short and word.startswith(prefix)) for word in words)
            for prefix, is_short in wanted
        )

    return fits


def _with_section(name: str) -> Callable[[Paper], bool]:
    sections = SectionFilter((name,))
    return lambda paper: bool(paper.sections.spans(sections.chooses))


def _section_names(paper: Paper) -> Iterable[str]:
    for section in paper.sections.headed:
        yield from (section.title, section.kind)


def select(library: Library, wanted: PaperFilter) -> Selection:
    """The papers and sections of a library to search. Raises UsageError if nothing fits."""
    if wanted == PaperFilter():
        return EVERYTHING._replace(scope=Scope(library.counts()["papers"], is_all=True))
    with library.reading():
        shelf = Shelf(library)
        found = shelf.projects(wanted.projects)
        return wanted.select(shelf.papers, shelf.files, shelf.cited, shelf.known_by, found)


def fitting_papers(library: Library, wanted: PaperFilter) -> list[Paper]:
    """The papers that fit, in the order of the library. Raises NotKnown for a name that no paper has."""
    with library.reading():
        return Shelf(library).fitting(wanted)


# Projects, which are choices of papers, too


class ProjectPapers(NamedTuple):
    """A project with the papers that it has now."""

    id: str
    name: str
    papers: frozenset[str]  # their ids
    by_hand: frozenset[str] = frozenset()  # of those that a person put in one by one
    own: Project | None = None  # None: a collection of Zotero or a bibliography, which is changed there


def notes_of(project: ProjectPapers) -> NotesAmong:
    """The notes of a project: on its papers, of its conversations, and those put in."""
    own = project.own
    named = (own.items("conversation"), own.items("note")) if own else ((), ())
    return NotesAmong(project.papers, *map(frozenset, named))


def notes_in(library: Library, project: str) -> NotesAmong:
    """The notes of the project with this name or id. Raises NotKnown."""
    with library.reading():
        return notes_of(*Shelf(library).projects([project]))


def collection_id(path: str) -> str:
    """The id of the project that a collection is."""
    return sha256(f"collection {path}".encode()).hexdigest()[:16]


def require_own(project: ProjectPapers) -> None:
    """Raises UsageError for a collection."""
    if project.own is None:
        raise UsageError(
            f"“{name_line(project.name, _SHOWN)}” is a collection of Zotero or a bibliography.",
            "Change it there, or copy it to a project.",
        )


def copied_members(project: ProjectPapers) -> list[Member]:
    """The parts of a copy of a project; of a collection, a rule that follows it."""
    if project.own is None:
        return [Member("rule", stored_projects.rule_item({"collection": [project.name]}))]
    return [replace(each, added="") for each in project.own.members]


class Shelf:
    """The papers of a library, to work out which of them filters and projects have. Within `library.reading()`."""

    def __init__(self, library: Library) -> None:
        self._database = library.database
        self.papers = library.papers()
        self.files = library.files()
        self.cited: CitedPapers = partial(cited_papers, library.database)
        self.known_by = aliases_in(library)

    def fitting(self, wanted: PaperFilter) -> list[Paper]:
        """The papers that fit. Raises NotKnown for a name that no paper and no project has."""
        found = self.projects(wanted.projects)
        return wanted.matching(self.papers, self.files, self.cited, self.known_by, found)

    def projects(self, names: Sequence[str]) -> list[ProjectPapers]:
        """The projects with these names or ids. Raises NotKnown."""
        if not names:
            return []
        own = stored_projects.read(self._database)
        return [self._called(name, own) for name in names]

    def every_project(self) -> list[ProjectPapers]:
        """A person's projects, then the collections, each by name."""
        own = [self.of_project(project) for project in stored_projects.read(self._database)]
        return [*own, *(self._of_collection(path) for path in self._collections)]

    def of_project(self, project: Project) -> ProjectPapers:
        """A person's project with the papers that it has now: those put in, and those of its rules, but for those that
        a person took out."""
        by_hand = self._present.intersection(project.items("paper"))
        papers = by_hand | self.of_rules(project) - set(project.items("excluded"))
        return ProjectPapers(project.id, project.name, frozenset(papers), frozenset(by_hand), project)

    def of_rules(self, project: Project) -> set[str]:
        """The ids of the papers that the rules of a project find, also of those that a person took out."""
        return {paper.id for rule in project.rules for paper in newest(self._of_rule(rule))}

    def kept_out(self, project: ProjectPapers, removed: Iterable[Member]) -> list[Member]:
        """Members that keep out the papers, of those that are removed, that a rule finds."""
        by_rule = self.of_rules(project.own) if project.own else set()
        return [replace(each, kind="excluded") for each in removed if each.kind == "paper" and each.item in by_rule]

    @cached_property
    def _present(self) -> set[str]:
        return {paper.id for paper in self.papers}

    def _of_rule(self, rule: Rule) -> list[Paper]:
        """The papers that fit a rule; none while no paper has a name in it."""
        try:
            return rule_filter(rule).matching(self.papers, self.files, self.cited, self.known_by)
        except UsageError:
            return []

    def _called(self, name: str, own: Sequence[Project]) -> ProjectPapers:
        for project in own:
            if name == project.id or same_name(name, project.name):
                return self.of_project(project)
        for path in self._collections:
            if name == collection_id(path) or same_name(name, path):
                return self._of_collection(path)
        known = {*(project.name for project in own), *self._collections}
        raise NotKnown(
            f"No project is called “{name_line(name, _SHOWN)}”.{similar_names(name, known)}",
            f"`{command('projects list')}` lists them.",
        )

    def _of_collection(self, path: str) -> ProjectPapers:
        return ProjectPapers(collection_id(path), path, frozenset(self._collections[path]))

    @cached_property
    def _collections(self) -> dict[str, set[str]]:
        """Path of a collection -> the ids of its papers, with those of the collections below it; by name."""
        found: dict[str, set[str]] = {}
        for paper in self.papers:
            for path in names_of(paper.metadata):
                found.setdefault(path, set()).add(paper.id)
        return dict(sorted(found.items(), key=lambda pair: pair[0].casefold()))


# Field of a rule, as in requests -> the argument of PaperFilter.parse
RULE_FIELDS = {
    "year": "years", "author": "authors", "venue": "venues", "section": "sections", "collection": "collections",
    "tag": "tags", "cited_by": "cited_by", "category": "categories",
}  # fmt: skip


def rule_filter(rule: Rule) -> PaperFilter:
    """The filter of a project's rule. Raises UsageError."""
    if unknown := rule.keys() - RULE_FIELDS.keys():
        raise UsageError(f"“{name_line(min(unknown), _SHOWN)}” is no filter.", f"Use {', '.join(RULE_FIELDS)}.")
    given: dict[str, Any] = {RULE_FIELDS[name]: values for name, values in rule.items()}
    return PaperFilter.parse(**given)
