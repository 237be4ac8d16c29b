"""Citation labels of papers. Papers with the same label get letters, whatever an answer cites.

The letters follow the order of the titles, so they depend only on the papers in the library. They are not stored, so
they are never out of date. Papers that may have the same label are looked up by columns with their first author, title
and identifiers (tables.py), in time that hardly depends on the size of the library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from folio.citation_label import CitationStyle, citation_label, order, with_letter, with_version
from folio.identifiers import bare_arxiv
from folio.paper_metadata import Metadata, Source, merged
from folio.paper_versions import version_keys, with_versions
from folio.store import rows
from folio.store.database import Database
from folio.types import Paper

# The search keys of some papers from all sources, and the papers that may have the same label or be versions of them.
# One source may give the family name and another the year. Each part uses an index.
_OWN = """
    own AS (
        SELECT family, title_start, arxiv, doi, year FROM papers WHERE id IN (SELECT value FROM json_each(:ids))
        UNION SELECT family, title_start, arxiv, doi, year FROM metadata
            WHERE paper IN (SELECT value FROM json_each(:ids))
    )"""
_SAME_YEAR = "(o.year IS NULL OR p.year IS NULL OR p.year = o.year OR EXISTS ({}))".format(
    "SELECT 1 FROM metadata m WHERE m.paper = p.id AND (m.year = o.year OR m.year IS NULL)"
)
_SAME = ("title_start", "arxiv", "doi")
_LIKE = "WITH {}, alike AS ({})".format(
    _OWN,
    " UNION ".join(
        (
            f"SELECT p.id FROM own o JOIN papers p ON p.family = o.family WHERE {_SAME_YEAR}",
            *(f"SELECT p.id FROM own o JOIN papers p ON p.{name} = o.{name}" for name in _SAME),
            *(f"SELECT m.paper FROM own o JOIN metadata m ON m.{name} = o.{name}" for name in ("family", *_SAME)),
        )
    ),
)
# The metadata of these papers from all sources; of the requested papers themselves also if they are not in the library
_LAYERS = f"""
    {_LIKE}
    SELECT id, 'pdf', metadata FROM papers WHERE id IN (SELECT id FROM alike)
    UNION ALL SELECT paper, source, fields FROM metadata
        WHERE paper IN (SELECT id FROM alike) OR paper IN (SELECT value FROM json_each(:ids))"""


def name_all(papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """All papers of a library with their labels in this style, and with a notice if the library has other versions."""
    return _named(papers, {paper.id: paper.metadata for paper in papers}, style)


def name(database: Database, papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """Some papers of a library with the metadata of all sources, and the labels that `name_all` would give them.

    papers: with the metadata of their PDFs. Raises StoreDamaged.
    """
    if not papers:
        return []
    ids = [paper.id for paper in papers]
    known = _known(database, ids)
    labels = {citation_label(known[id]) for id in ids if id in known}
    alike = [
        id for id, other in known.items() if id not in ids and other.arxiv.value and citation_label(other) in labels
    ]
    if alike:  # the labels of these papers depend on their versions in turn
        known = {**_known(database, alike), **known}
    papers = [replace(paper, metadata=known.get(paper.id, paper.metadata)) for paper in papers]
    return _named(papers, {**known, **{paper.id: paper.metadata for paper in papers}}, style)


def _known(database: Database, ids: Sequence[str]) -> dict[str, Metadata]:
    """Paper -> its metadata, for these papers and those that may have the same label or be versions of them."""
    layers: dict[str, dict[Source, Metadata]] = defaultdict(dict)
    for paper, source, metadata in database.read(rows.metadata_layer, _LAYERS, ids=list(ids)):
        layers[paper][source] = metadata
    return {paper: merged(by_source) for paper, by_source in layers.items() if "pdf" in by_source}


def _named(papers: Sequence[Paper], known: Mapping[str, Metadata], style: CitationStyle) -> list[Paper]:
    """The papers with labels. known: from `_known`."""
    same: dict[str, list[str]] = defaultdict(list)
    for id, metadata in known.items():
        for key in version_keys(metadata):
            same[key].append(id)

    def versions(id: str) -> list[Metadata]:
        return [known[other] for key in version_keys(known[id]) for other in same[key] if other != id]

    papers = [_versioned(paper, versions(paper.id)) for paper in papers]
    if style != "author-year":
        return [replace(paper, by_file=style == "file") for paper in papers]
    labels: dict[str, str] = {}
    alike: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for id, metadata in known.items():
        label = citation_label(metadata)
        labels[id] = with_version(label, metadata.arxiv.value) if _has_versions(metadata, versions(id)) else label
        alike[labels[id]].append((metadata.title.value, id))
    places = {id: place for each in alike.values() for place, id in enumerate(order(each))}

    def lettered(id: str) -> str:
        label = labels[id]
        return with_letter(label, places[id]) if label and len(alike[label]) > 1 else label

    return [replace(paper, label=lettered(paper.id)) for paper in papers]


def _versioned(paper: Paper, versions: Sequence[Metadata]) -> Paper:
    """The paper with what follows from other papers that share an identifier with it."""
    return with_versions(replace(paper, has_versions=_has_versions(paper.metadata, versions)), versions)


def _has_versions(metadata: Metadata, versions: Sequence[Metadata]) -> bool:
    """Whether one of these other versions has the same arXiv id with another version number."""
    arxiv = metadata.arxiv.value.casefold()
    other_ids = (other.arxiv.value.casefold() for other in versions)
    return bool(arxiv) and any(bare_arxiv(other) == bare_arxiv(arxiv) and other != arxiv for other in other_ids)
