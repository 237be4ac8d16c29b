"""Names papers for citations. Those that would be named alike get letters, whatever an answer cites.

The letters follow from the papers in the library alone, by title: a fresh library gives the same. They are not stored,
so nothing can be out of date; the papers that could be named alike are found by an index over the metadata's first
author and title (migrations.py), in time that does not depend on the size of the library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from folio.citation_label import CitationStyle, citation_label, order, with_letter, with_version
from folio.paper_metadata import Metadata, bare_arxiv, merged, without_version
from folio.paper_versions import version_keys, with_versions
from folio.store import metadata_layers, rows
from folio.store.database import Database
from folio.types import Paper

# As in the migration that made the indexes: SQLite uses an index only for the same expression.
_FAMILY = "CASE WHEN json_valid(fields) THEN json_extract(fields, '$.authors.value[0][0]') END"
_TITLE = "CASE WHEN json_valid(fields) THEN substr(json_extract(fields, '$.title.value'), 1, 20) END"
_DOI = "lower(CASE WHEN json_valid(fields) THEN json_extract(fields, '$.doi.value') END)"
_ARXIV = "CASE WHEN json_valid(fields) THEN json_extract(fields, '$.arxiv.value') END"
_YEAR = (
    "(:year IS NULL OR EXISTS (SELECT 1 FROM metadata y WHERE y.paper = m.paper"
    " AND CASE WHEN json_valid(y.fields) THEN json_extract(y.fields, '$.year.value') END = :year))"
)
_OTHER = "m.paper != :paper AND m.paper IN (SELECT id FROM papers)"


def name_all(papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """All papers of a library with what this style cites them by, and with a notice where it has a version of one."""
    same: dict[str, list[Paper]] = defaultdict(list)
    for paper in papers:
        for key in version_keys(paper.metadata):
            same[key].append(paper)
    others = [
        [other.metadata for key in version_keys(paper.metadata) for other in same[key] if other.id != paper.id]
        for paper in papers
    ]
    papers = [_versioned(paper, versions) for paper, versions in zip(papers, others, strict=True)]
    if style != "author-year":
        return [replace(paper, by_file=style == "file") for paper in papers]
    alike: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for paper in papers:
        alike[_bare_label(paper)].append((paper.title, paper.id))
    places = {id: place for same in alike.values() for place, id in enumerate(order(same))}
    labels = ((paper, _bare_label(paper)) for paper in papers)
    return [
        replace(paper, label=with_letter(label, places[paper.id]) if label and len(alike[label]) > 1 else label)
        for paper, label in labels
    ]


def name(database: Database, papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """Some papers of a library, named as `name_all` would. Raises StoreDamaged."""
    papers = [_versioned(paper, _others(database, paper.id, paper.metadata)) for paper in papers]
    if style != "author-year":
        return [replace(paper, by_file=style == "file") for paper in papers]
    return [replace(paper, label=_label(database, paper)) for paper in papers]


def _bare_label(paper: Paper) -> str:
    """Without a letter."""
    label = citation_label(paper.metadata)
    return with_version(label, paper.arxiv) if paper.has_versions else label


def _versioned(paper: Paper, others: Sequence[Metadata]) -> Paper:
    """The paper with what follows from others that have an identifier of it."""
    return with_versions(replace(paper, has_versions=_has_versions(paper.metadata, others)), others)


def _has_versions(metadata: Metadata, others: Sequence[Metadata]) -> bool:
    """Whether one of these papers has the same arXiv id in another version."""
    own = metadata.arxiv.value.casefold()
    others_own = (other.arxiv.value.casefold() for other in others)
    return bool(own) and any(bare_arxiv(other) == bare_arxiv(own) and other != own for other in others_own)


def _others(database: Database, paper: str, metadata: Metadata) -> list[Metadata]:
    """What is known of the other papers of the library that have an identifier of this one."""
    # The signs keep SQLite from looking at every paper instead.
    other = "+m.paper != :paper AND +m.paper IN (SELECT id FROM papers)"
    found: set[str] = set()
    if arxiv := without_version(metadata.arxiv.value):
        sql = f"SELECT DISTINCT paper FROM metadata m WHERE {_ARXIV} BETWEEN :bare AND :bare || 'w' AND {other}"
        found.update(database.read(rows.string, sql, bare=arxiv, paper=paper))
    if metadata.doi.value and metadata.doi.sure:
        sql = f"SELECT DISTINCT paper FROM metadata m WHERE {_DOI} = lower(:doi) AND {other}"
        found.update(database.read(rows.string, sql, doi=metadata.doi.value, paper=paper))
    keys = set(version_keys(metadata))
    read = [merged(metadata_layers.read(database, id)) for id in sorted(found)]
    return [other for other in read if keys.intersection(version_keys(other))]


def _label(database: Database, paper: Paper) -> str:
    label = citation_label(paper.metadata)
    if not label:
        return ""
    own = _bare_label(paper)
    authors = paper.metadata.authors.value
    column, value = (_TITLE, paper.title[:20]) if label.startswith("“") else (_FAMILY, authors[0].family)
    sql = f"SELECT DISTINCT paper FROM metadata m WHERE {column} = :value AND {_YEAR} AND {_OTHER}"
    alike = [(paper.title, paper.id)]
    # A paper of another year is not read at all.
    year = paper.metadata.year.value if paper.metadata.year.sure else None
    for id in database.read(rows.string, sql, value=value, year=year, paper=paper.id):
        other = merged(metadata_layers.read(database, id))
        if citation_label(other) != label:
            continue
        is_versioned = _has_versions(other, _others(database, id, other))
        if (with_version(label, other.arxiv.value) if is_versioned else label) == own:
            alike.append((other.title.value, id))
    return with_letter(own, order(alike).index(paper.id)) if len(alike) > 1 else own
