"""A table as it is shown and exported: with the papers of today, its numbers, and the citation keys of its papers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from folio.papers.citation_key import last_key
from folio.store import citation_names, projects, tables
from folio.store.library import Library
from folio.store.table_places import PlacedTable, placed
from folio.store.tables import Counts, EvidenceTable, TableCell, TableColumn, TableRow
from folio.table.scope import Scope, add_later_papers


@dataclass(frozen=True, slots=True)
class ShownTable:
    placed: PlacedTable
    counts: Counts
    keys: Mapping[str, str]  # paper -> citation key
    projects: Mapping[str, str] = field(default_factory=dict)  # id -> name

    @property
    def table(self) -> EvidenceTable:
        return self.placed.table

    @property
    def scope(self) -> str:
        """Its papers in words: "12 papers, tagged consensus"."""
        return Scope.from_json(self.table.scope).in_words(len(self.table.rows), self.projects)

    def cell(self, row: TableRow, column: TableColumn) -> TableCell:
        return self.table.cells.get((column.id, row.paper), TableCell())


def shown_table(library: Library, id: str) -> ShownTable:
    """A table, with rows for the papers that were added since. Raises NotKnown."""
    if not library.is_read_only:
        add_later_papers(library, [id])
    keys = library.citation_keys()
    now = placed(library, id)  # which may store new places, so not while reading
    with library.reading():
        counts = tables.counts(library.database, [id])[id]
        given = citation_names.keys(library.database)
        names = projects.names(library.database)
    removed = {row.paper: last_key(given, row.paper) for row in now.table.rows if row.paper not in keys}
    return ShownTable(now, counts, {**keys, **removed}, names)
