"""Names papers for citations. Those that would be named alike get letters, whatever an answer cites.

The letters follow from the papers in the library alone, by title: a fresh library gives the same. They are not stored,
so nothing can be out of date; the papers that could be named alike are found by an index over the metadata's first
author and title (migrations.py), in time that does not depend on the size of the library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from folio.citation_label import CitationStyle, citation_label, order, with_letter
from folio.paper_metadata import merged
from folio.store import metadata_layers, rows
from folio.store.database import Database
from folio.types import Paper

# As in the migration that made the indexes: SQLite uses an index only for the same expression.
_FAMILY = "CASE WHEN json_valid(fields) THEN json_extract(fields, '$.authors.value[0][0]') END"
_TITLE = "CASE WHEN json_valid(fields) THEN substr(json_extract(fields, '$.title.value'), 1, 20) END"
_YEAR = (
    "(:year IS NULL OR EXISTS (SELECT 1 FROM metadata y WHERE y.paper = m.paper"
    " AND CASE WHEN json_valid(y.fields) THEN json_extract(y.fields, '$.year.value') END = :year))"
)
_OTHER = "m.paper != :paper AND m.paper IN (SELECT id FROM papers)"


def name_all(papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """All papers of a library with what this style cites them by."""
    if style != "author-year":
        return [replace(paper, by_file=style == "file") for paper in papers]
    alike: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for paper in papers:
        alike[citation_label(paper.metadata)].append((paper.title, paper.id))
    places = {id: place for same in alike.values() for place, id in enumerate(order(same))}
    labels = ((paper, citation_label(paper.metadata)) for paper in papers)
    return [
        replace(paper, label=with_letter(label, places[paper.id]) if label and len(alike[label]) > 1 else label)
        for paper, label in labels
    ]


def name(database: Database, papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """Some papers of a library, named as `name_all` would. Raises StoreDamaged."""
    if style != "author-year":
        return name_all(papers, style)
    return [replace(paper, label=_label(database, paper)) for paper in papers]


def _label(database: Database, paper: Paper) -> str:
    label = citation_label(paper.metadata)
    if not label:
        return ""
    authors = paper.metadata.authors.value
    column, value = (_TITLE, paper.title[:20]) if label.startswith("“") else (_FAMILY, authors[0].family)
    sql = f"SELECT DISTINCT paper FROM metadata m WHERE {column} = :value AND {_YEAR} AND {_OTHER}"
    alike = [(paper.title, paper.id)]
    # A paper of another year is not read at all.
    year = paper.metadata.year.value if paper.metadata.year.sure else None
    for id in database.read(rows.string, sql, value=value, year=year, paper=paper.id):
        other = merged(metadata_layers.read(database, id))
        if citation_label(other) == label:
            alike.append((other.title.value, id))
    return with_letter(label, order(alike).index(paper.id)) if len(alike) > 1 else label
