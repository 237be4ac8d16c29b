"""Replaces the papers of a library by those of another file, in one transaction."""

from __future__ import annotations

import uuid
from pathlib import Path

from folio.paper_metadata import merged
from folio.store import metadata_layers, rows
from folio.store.metadata_layers import Version
from folio.store.sqlite import SqliteDatabase
from folio.store.tables import NAMES


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
    described = metadata_layers.with_user_data(database, {old for old, _ in pairs}) if pairs else set()
    for old, new in pairs:
        versions = [*_versions(database, "main", old), *_versions(database, "other", new)] if old in described else []
        if len(versions) == 2:
            metadata_layers.inherit(database, *versions)


def _versions(database: SqliteDatabase, schema: str, paper: str) -> list[Version]:
    layers = metadata_layers.read(database, [paper]).get(paper, {})

    def version(id: str, text: object, crc: object, metadata: object) -> Version:
        _, _, pdf = rows.metadata_layer(id, "pdf", metadata)
        return Version(id, merged({**layers, "pdf": pdf}), rows.text(id, text, crc)[1])

    sql = f"""SELECT p.id, t.text, p.text_crc, p.metadata FROM {schema}.papers p JOIN {schema}.texts t ON t.paper = p.id
        WHERE p.id = :paper"""
    return database.read(version, sql, paper=paper)
