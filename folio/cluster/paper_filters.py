"""Finds papers by their fields in a library of many papers; see paper_store.PaperFilters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from folio.cluster.milvus_filters import all_of, any_year, passages_with
from folio.cluster.milvus_papers import CHUNK, VISIBLE
from folio.cluster.paper_rows import ANY_NAME
from folio.store.paper_store import Years
from folio.types import Paper, PassageFields

if TYPE_CHECKING:
    from folio.cluster.milvus_reader import MilvusReader

# Papers up to which all are read and compared with a filter, as on one computer. LOG.md has the figures.
LISTED = 1_000
# Passages that are looked at, to know whether there is any: some may be of papers that were removed
_TRIED = 200


@dataclass(frozen=True, slots=True)
class FieldFilters:
    """See PaperFilters."""

    library: MilvusReader

    @classmethod
    def of(cls, library: MilvusReader) -> FieldFilters | None:
        """Those of a library; None if it has few papers."""
        is_large = library.state().epoch and library.milvus.count(library.names.papers, VISIBLE) > LISTED
        return cls(library) if is_large else None

    def papers_with(self, years: Sequence[Years], names: Sequence[Sequence[str]]) -> list[Paper]:
        """See PaperFilters."""
        by_name = [f'names like "%|{word}|%"' for words in names for word in words]
        by_name += [f'names == "{ANY_NAME}"'] if names else []
        where = all_of([VISIBLE, any_year(years), f"({' or '.join(by_name)})" if by_name else ""])
        library = self.library
        with library.reading():
            rows = library.milvus.rows(library.names.papers, where, ("id",), strong=library.strong)
            found = library.papers_by_id([row["id"] for row in rows])
        return sorted(found, key=lambda paper: (paper.file, paper.id))

    def has_passage(self, fields: PassageFields) -> bool:
        """See PaperFilters."""
        library = self.library
        with library.reading():
            where = all_of([VISIBLE, any_year(fields.years)])
            if not library.milvus.some(library.names.papers, where, ("id",), 1):
                return False
            rows = library.milvus.some(library.names.chunks, passages_with(fields), CHUNK, _TRIED)
            return bool(library.admitted(rows))
