"""The labels of papers, by what the library has: papers that may have the same label, and versions of one paper.

Papers with the same citation label get letters, whatever an answer cites. Letters and citation keys are stored when a
paper is given them, and stay (citation_names.py); those that are not stored yet follow the order of the titles. Papers
that may have the same label are looked up by columns with their first author, title and identifiers (database.py), in
time that hardly depends on the size of the library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from folio.papers.citation_key import last_key
from folio.papers.identifiers import bare_arxiv
from folio.papers.label import CitationStyle, citation_label, label_places, with_letter, with_version
from folio.papers.metadata import Metadata, Source, merged
from folio.papers.model import Paper
from folio.papers.versions import Other, PaperText, version_keys, with_versions
from folio.store import citation_names, rows
from folio.store.citation_names import CitationName
from folio.store.database import Database

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
# Pairs of papers that may be copies, because they have the same passages: at least a quarter of those of one of them.
# {} limits the first one. Passages of many papers, such as a licence, say nothing.
_SHARED = """
    SELECT a.paper AS own, b.paper AS other FROM chunks a
    JOIN chunks b ON b.text_hash = a.text_hash AND b.paper != a.paper
    JOIN papers p ON p.id = a.paper JOIN papers q ON q.id = b.paper
    WHERE a.parent IS NULL AND b.parent IS NULL AND {}
    GROUP BY a.paper, b.paper, p.passages, q.passages
    HAVING 4 * count(DISTINCT a.text_hash) >= p.passages OR 4 * count(DISTINCT a.text_hash) >= q.passages"""
_MOST_SHARED = 50  # papers with the same passage
_OF_ALL = f"""a.text_hash IN (
    SELECT text_hash FROM chunks GROUP BY text_hash HAVING count(*) BETWEEN 2 AND {_MOST_SHARED})"""
_OF_SOME = f"""a.paper IN (SELECT value FROM json_each(:ids))
    AND (SELECT count(*) FROM chunks c WHERE c.text_hash = a.text_hash) BETWEEN 2 AND {_MOST_SHARED}"""
_LIKE = "WITH {}, shared AS ({}), alike AS ({})".format(
    _OWN,
    _SHARED.format(_OF_SOME),
    " UNION ".join(
        (
            f"SELECT p.id FROM own o JOIN papers p ON p.family = o.family WHERE {_SAME_YEAR}",
            *(f"SELECT p.id FROM own o JOIN papers p ON p.{name} = o.{name}" for name in _SAME),
            *(f"SELECT m.paper FROM own o JOIN metadata m ON m.{name} = o.{name}" for name in ("family", *_SAME)),
            "SELECT other FROM shared",
        )
    ),
)
# The metadata of these papers from all sources; of the requested papers themselves also if they are not in the library.
# And the pairs of papers that share passages.
_SHARES = "shares"
_LAYERS = f"""
    {_LIKE}
    SELECT id, 'pdf', metadata FROM papers WHERE id IN (SELECT id FROM alike)
    UNION ALL SELECT paper, source, fields FROM metadata
        WHERE paper IN (SELECT id FROM alike) OR paper IN (SELECT value FROM json_each(:ids))
    UNION ALL SELECT own, '{_SHARES}', other FROM shared"""


def all_with_labels(database: Database, papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """All papers of a library with their labels in this style, and with a notice if the library has other versions."""
    sharing: dict[str, list[str]] = defaultdict(list)
    for own, other in database.read(rows.text_pair, _SHARED.format(_OF_ALL)):
        sharing[own].append(other)
    return _named(database, papers, {paper.id: paper.metadata for paper in papers}, sharing, style)


def with_labels(database: Database, papers: Sequence[Paper], style: CitationStyle) -> list[Paper]:
    """Some papers of a library with the metadata of all sources, and the labels that `all_with_labels` would give them.

    papers: with the metadata of their PDFs. Raises StoreDamaged.
    """
    if not papers:
        return []
    ids = [paper.id for paper in papers]
    known, sharing = _known(database, ids)
    labels = {citation_label(known[id]) for id in ids if id in known}
    alike = [
        id for id, other in known.items() if id not in ids and other.arxiv.value and citation_label(other) in labels
    ]
    if alike:  # the labels of these papers depend on their versions in turn
        known = {**_known(database, alike)[0], **known}
    papers = [replace(paper, metadata=known.get(paper.id, paper.metadata)) for paper in papers]
    known = {**known, **{paper.id: paper.metadata for paper in papers}}
    return _named(database, papers, known, sharing, style)


def _known(database: Database, ids: Sequence[str]) -> tuple[dict[str, Metadata], dict[str, list[str]]]:
    """Paper -> its metadata, for these papers and those that may have the same label or be versions of them.

    Also: paper -> those that share passages with it, for these papers.
    """
    layers: dict[str, dict[Source, Metadata]] = defaultdict(dict)
    sharing: dict[str, list[str]] = defaultdict(list)

    def add(paper: object, source: object, value: object) -> None:
        if source == _SHARES:
            sharing[rows.string(paper)].append(rows.string(value))
        else:
            id, known_source, metadata = rows.metadata_layer(paper, source, value)
            layers[id][known_source] = metadata

    database.read(add, _LAYERS, ids=list(ids))
    known = {paper: merged(by_source) for paper, by_source in layers.items() if "pdf" in by_source}
    return known, sharing


def _texts_of(database: Database) -> Callable[[str, str], tuple[PaperText, PaperText] | None]:
    """A function that reads the texts of two papers; None if one of them has no text."""

    @cache
    def text(paper: str) -> PaperText:
        return PaperText(next(iter(database.read(rows.page_texts, rows.SELECT_PAGES, paper=paper)), []))

    def both(one: str, other: str) -> tuple[PaperText, PaperText] | None:
        own, another = text(one), text(other)
        return (own, another) if own.pages and another.pages else None

    return both


def _named(
    database: Database,
    papers: Sequence[Paper],
    known: Mapping[str, Metadata],
    sharing: Mapping[str, Sequence[str]],
    style: CitationStyle,
) -> list[Paper]:
    """The papers with labels. known: from `_known`. sharing: from `_known`."""
    texts = _texts_of(database)
    same: dict[str, list[str]] = defaultdict(list)
    for id, metadata in known.items():
        for key in version_keys(metadata):
            same[key].append(id)

    def versions(id: str) -> list[str]:
        alike = (other for key in version_keys(known[id]) for other in same[key])
        shared = (other for other in sharing.get(id, ()) if other in known)
        return [other for other in dict.fromkeys((*alike, *shared)) if other != id]

    def has_versions(id: str, metadata: Metadata) -> bool:
        return _has_versions(metadata, [known[other] for other in versions(id)])

    papers = [
        with_versions(
            replace(paper, has_versions=has_versions(paper.id, paper.metadata)),
            [Other(known[other], other, partial(texts, paper.id, other)) for other in versions(paper.id)],
        )
        for paper in papers
    ]
    if style != "author-year":
        return [replace(paper, by_file=style == "file") for paper in papers]
    labels: dict[str, str] = {}
    alike: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for id, metadata in known.items():
        labels[id] = _label(metadata, has_versions=has_versions(id, metadata))
        alike[labels[id]].append((metadata.title.value, id))
    shown = {labels[paper.id] for paper in papers} - {""}
    given = citation_names.labels(database, shown) if shown else {}
    places = {label: label_places(given.get(label, {}), each) for label, each in alike.items() if label}

    def lettered(id: str) -> str:
        label = labels[id]
        return with_letter(label, places[label][id]) if label and len(places[label]) > 1 else label

    return [replace(paper, label=lettered(paper.id)) for paper in papers]


def new_keys(keys: Mapping[str, str], given: Mapping[str, Mapping[str, int]]) -> list[CitationName]:
    """The keys that papers get now. given: paper id -> those that it had until now, with their places."""
    return [
        CitationName("key", key, id, 1 + max(given.get(id, {}).values(), default=-1))
        for id, key in keys.items()
        if last_key(given, id) != key
    ]


def new_places(papers: Iterable[Paper], given: Mapping[str, Mapping[str, int]]) -> list[CitationName]:
    """The places that papers get now among those with the same label. given: label -> paper -> its place."""
    alike: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for paper in papers:
        if label := _label(paper.metadata, has_versions=paper.has_versions):
            alike[label].append((paper.title, paper.id))
    return [
        CitationName("label", label, id, place)
        for label, those in alike.items()
        for id, place in label_places(given.get(label, {}), those).items()
        if id not in given.get(label, {})
    ]


def _label(metadata: Metadata, *, has_versions: bool) -> str:
    """The label of a paper without a letter."""
    label = citation_label(metadata)
    return with_version(label, metadata.arxiv.value) if has_versions else label


def _has_versions(metadata: Metadata, versions: Sequence[Metadata]) -> bool:
    """Whether one of these other versions has the same arXiv id with another version number."""
    arxiv = metadata.arxiv.value.casefold()
    other_ids = (other.arxiv.value.casefold() for other in versions)
    return bool(arxiv) and any(bare_arxiv(other) == bare_arxiv(arxiv) and other != arxiv for other in other_ids)
