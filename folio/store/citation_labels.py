"""Names papers for citations. Those that would be named alike get letters, whatever an answer cites.

The letters follow from the papers in the library alone, by title: a fresh library gives the same. They are not stored,
so nothing can be out of date; the papers that could be named alike are found by columns with their first author, title
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

# What sources say of some papers, and the papers that may be cited like them, or be versions of them. One source may
# say the family and another the year. Each part uses an index.
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
# All that is said of them, and of the papers asked for all that their PDFs do not say
_SAID = f"""
    {_LIKE}
    SELECT id, 'pdf', metadata FROM papers WHERE id IN (SELECT id FROM alike)
    UNION ALL SELECT paper, source, fields FROM metadata
        WHERE paper IN (SELECT id FROM alike) OR paper IN (SELECT value FROM json_each(:ids))"""


def name_all(papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """All papers of a library with what this style cites them by, and with a notice where it has a version of one."""
    return _named(papers, {paper.id: paper.metadata for paper in papers}, style)


def name(database: Database, papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """Some papers of a library with what people and services say of them, named as `name_all` would.

    papers: with what their PDFs say. Raises StoreDamaged.
    """
    if not papers:
        return []
    ids = [paper.id for paper in papers]
    known = _known(database, ids)
    labels = {citation_label(known[id]) for id in ids if id in known}
    alike = [
        id for id, other in known.items() if id not in ids and other.arxiv.value and citation_label(other) in labels
    ]
    if alike:  # their own versions are in their labels
        known = {**_known(database, alike), **known}
    papers = [replace(paper, metadata=known.get(paper.id, paper.metadata)) for paper in papers]
    return _named(papers, {**known, **{paper.id: paper.metadata for paper in papers}}, style)


def _known(database: Database, ids: Sequence[str]) -> dict[str, Metadata]:
    """Paper -> what is known of it, for these and those that may be cited like them, or be versions of them."""
    layers: dict[str, dict[Source, Metadata]] = defaultdict(dict)
    for paper, source, metadata in database.read(rows.metadata_layer, _SAID, ids=list(ids)):
        layers[paper][source] = metadata
    return {paper: merged(said) for paper, said in layers.items() if "pdf" in said}


def _named(papers: Sequence[Paper], known: Mapping[str, Metadata], style: CitationStyle) -> list[Paper]:
    """known: what is known of these papers, and of those that may be cited like them or be versions of them."""
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


def _versioned(paper: Paper, others: Sequence[Metadata]) -> Paper:
    """The paper with what follows from others that have an identifier of it."""
    return with_versions(replace(paper, has_versions=_has_versions(paper.metadata, others)), others)


def _has_versions(metadata: Metadata, others: Sequence[Metadata]) -> bool:
    """Whether one of these papers has the same arXiv id in another version."""
    own = metadata.arxiv.value.casefold()
    others_own = (other.arxiv.value.casefold() for other in others)
    return bool(own) and any(bare_arxiv(other) == bare_arxiv(own) and other != own for other in others_own)
