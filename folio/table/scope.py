"""Which papers a table is about: chosen ones, those that fit a filter, or all; and rows for those that come later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from folio.errors import NotKnown, UsageError
from folio.papers.model import Paper
from folio.papers.versions import newest
from folio.search.filters import PaperFilter, fitting_papers
from folio.search.scope import in_words
from folio.shown_text import counted, name_line
from folio.store import projects, tables
from folio.store.library import Library
from folio.store.table_places import row_of
from folio.store.tables import TableColumn

# Field of a stored scope -> the argument of PaperFilter.parse
_FIELDS = {
    "year": "years",
    "author": "authors",
    "venue": "venues",
    "collection": "collections",
    "tag": "tags",
    "cited_by": "cited_by",
    "category": "categories",
    "project": "projects",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Papers must fit every field, and one value of each; without a field and without papers, all are meant."""

    papers: tuple[str, ...] = ()  # ids
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of _FIELDS, without empty ones

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Scope:
        """From a filter as the web API has it. Raises UsageError if it chooses sections."""
        if stored.get("section"):
            raise UsageError("A table asks whole papers, not sections.", "Leave the section out.")
        fields = {name: tuple(map(str, stored[name])) for name in _FIELDS if stored.get(name)}
        return cls(tuple(stored.get("papers") or ()), fields)

    def as_json(self) -> dict[str, list[str]]:
        """The same, without empty fields."""
        papers = {"papers": list(self.papers)} if self.papers else {}
        return {**papers, **{name: list(values) for name, values in self.fields.items()}}

    @property
    def can_grow(self) -> bool:
        """Whether papers that are added later may fit."""
        return not self.papers

    @property
    def _filter(self) -> PaperFilter:
        """Raises UsageError, NotKnown."""
        values: dict[str, Any] = {argument: self.fields.get(name, ()) for name, argument in _FIELDS.items()}
        return PaperFilter.parse(**values, ids=self.papers)

    def fitting(self, library: Library) -> list[Paper]:
        """The papers that fit now, without older versions unless they were chosen. Raises NotKnown, UsageError."""
        papers = fitting_papers(library, self._filter)
        return papers if self.papers or "project" in self.fields else newest(papers)

    def in_words(self, count: int, projects: Mapping[str, str] = MappingProxyType({})) -> str:
        """count: the number of papers. projects: names, of those that the scope names by their ids."""
        names = [name_line(projects.get(each, each), 60) for each in self.fields.get("project", ())]
        parts = [f"in {' or '.join(names)}" if names else "", in_words(self._filter)]
        if not self.fields and not self.papers:
            return f"all papers: {count:,}"
        return ", ".join([counted(count, "paper"), *filter(None, parts)])


def required(library: Library, scope: Scope) -> list[Paper]:
    """The papers of a new table. Raises NotKnown if none fit."""
    papers = scope.fitting(library)
    if not papers:
        raise NotKnown("No paper fits.", "Change the choice of papers.")
    return papers


def scope_of(library: Library, fields: Mapping[str, Sequence[str]], names: Sequence[str]) -> Scope:
    """The papers that fit a filter as `Scope.from_json` takes it; those that names choose, as they are now.

    Raises UsageError, NotKnown.
    """
    scope = Scope.from_json(fields)
    if not names:
        return scope
    named = {paper.id for paper in fitting_papers(library, PaperFilter.parse(names))}
    return Scope(tuple(paper.id for paper in scope.fitting(library) if paper.id in named))


def new_table(
    library: Library, scope: Scope, columns: Sequence[TableColumn], name: str = "", *, follows: bool = True
) -> str:
    """Add a table with a row for each paper that fits; returns its id. name: "" for its papers in words.

    Raises NotKnown if no paper fits, UsageError, StoreProtected.
    """
    papers = required(library, scope)
    title = name.strip() or scope.in_words(len(papers), projects.names(library.database))
    rows = list(map(row_of, papers))
    follows = follows and scope.can_grow
    return tables.add(library.database, title, scope.as_json(), columns, rows, follows=follows)


def add_later_papers(library: Library, ids: Sequence[str]) -> list[str]:
    """Give rows to papers that were added since, in those of these tables that follow their scope.

    Returns the tables that have changed. A filter that names what no paper has any more fits none.
    """
    changed = []
    for id in ids:
        table = tables.read(library.database, id, since=2**53)
        scope = Scope.from_json(table.scope)
        if not table.follows or not scope.can_grow:
            continue
        try:
            papers = scope.fitting(library)
        except (NotKnown, UsageError):
            continue
        if tables.add_rows(library.database, id, [row_of(paper) for paper in papers], by_person=False):
            changed.append(id)
    return changed
