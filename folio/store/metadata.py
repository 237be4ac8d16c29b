"""Metadata that people and services gave for papers, in the table `metadata`: one row per paper and source.

It stays when a paper is removed, and applies again when the paper comes back. When a newer version of the same paper
replaces a file, the new paper inherits it, and gets the notes. The metadata from the PDF itself is in the paper's own
row.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from folio.papers.identifiers import without_version
from folio.papers.metadata import Metadata, Source, merged, to_json
from folio.store import citation_names, notes, projects, readings, rows, tables, works
from folio.store.database import NAMES, Database
from folio.store.sqlite import SqliteDatabase
from folio.text import tokenize

# The number of words in a shingle, and the least share of shingles that versions of one paper have in common
_SHINGLE, _SAME = 5, 0.5


def read(database: Database, papers: Iterable[str] | None = None) -> dict[str, dict[Source, Metadata]]:
    """Paper -> source -> metadata, for all sources but the PDFs; of these papers or of all. Raises StoreDamaged."""
    sql, values = f"SELECT {rows.METADATA_COLUMNS} FROM metadata", {}
    if papers is not None:
        sql, values = f"{sql} WHERE paper IN (SELECT value FROM json_each(:papers))", {"papers": list(papers)}
    layers: dict[str, dict[Source, Metadata]] = defaultdict(dict)
    for paper, source, metadata in database.read(rows.metadata_layer, sql, **values):
        layers[paper][source] = metadata
    return dict(layers)


def write(database: Database, paper: str, source: Source, metadata: Metadata) -> None:
    """Replace a source's metadata of a paper; delete it if the new metadata has no field."""
    database.execute("DELETE FROM metadata WHERE paper = :paper AND source = :source", paper=paper, source=source)
    rows.count_description_change(database)
    if metadata.known():
        row = {"paper": paper, "source": source, "fields": json.dumps(to_json(metadata), ensure_ascii=False)}
        updated = datetime.now(UTC).isoformat(timespec="seconds")
        database.insert("metadata", [{**row, "updated": updated, **rows.search_keys(metadata)}])


@dataclass(frozen=True, slots=True)
class Version:
    """A paper with its text and the metadata of all sources."""

    id: str
    metadata: Metadata
    text: str


def inherit(database: Database, old: Version, new: Version, *, is_replaced: bool) -> None:
    """Give a paper the user data of another one, and its work, if both are versions of one paper.

    Sources that already describe the new paper are kept. is_replaced: whether the old paper leaves the library, so that
    its notes, its names in citations and its places in projects become those of the new one.
    """
    if not same_paper(old, new):
        return
    works.inherit(database, old.id, new.id)
    readings.inherit(database, old.id, new.id)
    if is_replaced:
        notes.follow(database, old.id, new.id)
        tables.follow(database, old.id, new.id)
        citation_names.inherit(database, old.id, new.id)
        projects.follow(database, old.id, new.id)
    layers = read(database, [old.id, new.id])
    for source, metadata in layers.get(old.id, {}).items():
        if source not in layers.get(new.id, {}):
            # The version belongs to the old file.
            arxiv = replace(metadata.arxiv, value=without_version(metadata.arxiv.value))
            write(database, new.id, source, replace(metadata, arxiv=arxiv))


def with_user_data(database: Database, papers: Iterable[str]) -> set[str]:
    """Those of these papers about which there is user data."""
    among = "paper IN (SELECT value FROM json_each(:papers))"
    tables = ("metadata", "paper_works", "readings", "note_quotes", "citation_names", "table_rows")
    parts = [f"SELECT paper FROM {table} WHERE {among}" for table in tables]
    named = "SELECT item AS paper FROM project_members WHERE kind IN ('paper', 'excluded')"
    sql = " UNION ".join([*parts, f"SELECT paper FROM ({named}) AS members WHERE {among}"])
    return set(database.read(rows.string, sql, papers=list(papers)))


def same_paper(old: Version, new: Version) -> bool:
    """Whether two PDFs are versions of one paper: by identifier, by title, or by the overlap of their texts."""
    pairs = [
        [without_version(getattr(each.metadata, field).value.casefold()) for each in (old, new)]
        for field in ("arxiv", "doi")
    ]
    agree = [old_id == new_id for old_id, new_id in pairs if old_id and new_id]
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


def replace_papers(database: SqliteDatabase, other: Path) -> None:
    """Replace all papers with another library's, under a new epoch. The user data stays: it is in another file.

    The other library must have been opened by this version, so that its tables have the same columns.
    """
    with database.attached(other, "other"), database.transaction():
        _inherit(database)
        tables = [table for table in NAMES["library"] if table not in ("meta", "pending")]
        for table in reversed(tables):
            database.execute(f"DELETE FROM main.{table}")
        for table in tables:
            database.execute(f"INSERT INTO main.{table} SELECT * FROM other.{table}")
        database.execute("DELETE FROM main.pending")
        database.execute("DELETE FROM main.meta")
        database.execute("INSERT INTO main.meta SELECT key, value FROM other.meta")
        database.execute("UPDATE main.meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)


def _inherit(database: SqliteDatabase) -> None:
    """Give papers the user data of the papers that they replace, if both are versions of one paper."""
    sql = "SELECT f.paper, g.paper FROM main.files f JOIN other.files g ON g.path = f.path WHERE f.paper != g.paper"
    pairs = database.read(rows.text_pair, sql)
    described = with_user_data(database, {old for old, _ in pairs}) if pairs else set()
    kept = set(database.read(rows.string, "SELECT paper FROM other.files")) if described else set()
    for old, new in pairs:
        versions = [*_versions(database, "main", old), *_versions(database, "other", new)] if old in described else []
        if len(versions) == 2:
            inherit(database, *versions, is_replaced=old not in kept)


def _versions(database: SqliteDatabase, schema: str, paper: str) -> list[Version]:
    layers = read(database, [paper]).get(paper, {})

    def version(id: str, text: object, crc: object, metadata: object) -> Version:
        _, _, pdf = rows.metadata_layer(id, "pdf", metadata)
        return Version(id, merged({**layers, "pdf": pdf}), rows.paper_text(id, text, crc)[1])

    sql = f"""SELECT p.id, t.text, p.text_crc, p.metadata FROM {schema}.papers p JOIN {schema}.texts t ON t.paper = p.id
        WHERE p.id = :paper"""
    return database.read(version, sql, paper=paper)
