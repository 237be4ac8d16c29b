"""What each source says of a paper, in the library's table `metadata`: one row per paper and source.

What people wrote or imported stays when a paper goes, and comes back with it. When a file is replaced by a newer
version of the same paper, the new one inherits it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from folio.paper_metadata import NO_METADATA, Metadata, Source, to_json, without_version
from folio.store import paper_vectors, rows, works
from folio.store.database import Database
from folio.store.digests import row_digest
from folio.text import tokenize

# Words in a row that two texts are compared by, and the share of them that versions of one paper have in common
_SHINGLE, _SAME = 5, 0.5


def read(database: Database, paper: str) -> dict[Source, Metadata]:
    """Every layer of a paper. Raises StoreDamaged."""
    sql = f"SELECT paper, {rows.METADATA_COLUMNS} FROM metadata WHERE paper = :paper"
    return dict(database.read(rows.metadata_layer, sql, paper=paper))


def write(database: Database, paper: str, source: Source, metadata: Metadata) -> None:
    """Replace what a source says of a paper; delete it if that is nothing."""
    database.execute("DELETE FROM metadata WHERE paper = :paper AND source = :source", paper=paper, source=source)
    paper_vectors.count_change(database)
    if not metadata.known():
        return
    fields = json.dumps(to_json(metadata), ensure_ascii=False)
    insert_row(database, paper, source, fields, datetime.now(UTC).isoformat(timespec="seconds"))


def write_absent(database: Database, source: Source, said: Mapping[str, Metadata]) -> set[str]:
    """Replace what a source says of those papers that are not in the library, in one transaction; returns the others.

    No passage of theirs is indexed by its title.
    """
    here = set(database.read(rows.string, "SELECT id FROM papers INDEXED BY papers_about"))
    with database.transaction():
        for paper in said.keys() - here:
            write(database, paper, source, said[paper])
    return said.keys() & here


def insert_row(database: Database, paper: str, source: str, fields: str, updated: str) -> None:
    """Insert a row as it was written before."""
    digest = row_digest("metadata", paper, source, fields, updated)
    database.execute(
        "INSERT OR REPLACE INTO metadata VALUES (:paper, :source, :fields, :updated, :digest)",
        paper=paper,
        source=source,
        fields=fields,
        updated=updated,
        digest=digest,
    )


@dataclass(frozen=True, slots=True)
class Version:
    """A paper as one PDF has it."""

    id: str
    metadata: Metadata  # what is known of it
    text: str


def is_work(database: Database, paper: str) -> bool:
    """Whether it is known which work a paper is."""
    return bool(works.of_papers(database, [paper]))


def inherit(database: Database, old: Version, new: Version) -> None:
    """Give a paper what people wrote or imported about another, and its work, if both are versions of one paper.

    What they said of the new one already is kept.
    """
    if not same_paper(old, new):
        return
    works.inherit(database, old.id, new.id)
    known = read(database, new.id)
    for source, metadata in read(database, old.id).items():
        if source not in known:
            # The version is the old file's.
            arxiv = replace(metadata.arxiv, value=without_version(metadata.arxiv.value))
            write(database, new.id, source, replace(metadata, arxiv=arxiv))


def inherit_from_files(database: Database, other: str) -> None:
    """The same for every file that holds another paper in the attached database `other`."""
    sql = f"""SELECT f.paper, g.paper FROM main.files f JOIN {other}.files g ON g.path = f.path WHERE f.paper != g.paper
        AND (f.paper IN (SELECT paper FROM main.metadata WHERE source != 'pdf')
        OR f.paper IN (SELECT paper FROM main.paper_works))"""
    for old, new in database.read(rows.text_pair, sql):
        versions = [*_versions(database, "main", old), *_versions(database, other, new)]
        if len(versions) == 2:
            inherit(database, *versions)


def _versions(database: Database, schema: str, paper: str) -> list[Version]:
    sql = f"SELECT paper, {rows.METADATA_COLUMNS} FROM {schema}.metadata WHERE paper = :paper AND source = 'pdf'"
    layers = dict(database.read(rows.metadata_layer, sql, paper=paper))
    texts = database.read(rows.string, f"SELECT text FROM {schema}.papers WHERE id = :paper", paper=paper)
    return [Version(paper, layers.get("pdf", NO_METADATA), text) for text in texts]


def same_paper(old: Version, new: Version) -> bool:
    """Whether two PDFs are versions of one paper: by identifier, by title, or by what their texts have in common."""
    pairs = [
        [without_version(getattr(each.metadata, field).value.casefold()) for each in (old, new)]
        for field in ("arxiv", "doi")
    ]
    agree = [ours == theirs for ours, theirs in pairs if ours and theirs]
    if agree:
        return any(agree)
    titles = [tokenize(each.metadata.title.value) for each in (old, new)]
    if len(titles[0]) > 2 and titles[0] == titles[1]:
        return True
    before, after = _shingles(old.text), _shingles(new.text)
    return bool(before and after) and len(before & after) >= _SAME * min(len(before), len(after))


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = tokenize(text)
    return set(zip(*(words[place:] for place in range(_SHINGLE)), strict=False))
