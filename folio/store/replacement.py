"""Replaces what is in a library by what is in another file, in one transaction: its papers alone, or everything."""

from __future__ import annotations

import uuid
from pathlib import Path

from folio.store import lasting_tables, metadata_layers
from folio.store.database import Database
from folio.store.library import PAPER_TABLES

_MADE_OF_PAPERS = (*PAPER_TABLES, "paper_digests", "sections", "paper_vectors")


def replace_papers(database: Database, other: Path) -> None:
    """Replace all papers with another library's, under a new epoch.

    Questions stay, and what people wrote or imported about papers.

    The other library must have been opened by this version, so that its tables have the same columns.
    """
    with database.attached(other, "other"), database.transaction():
        metadata_layers.inherit_from_files(database, "other")
        _replace_tables(database, _MADE_OF_PAPERS)
        database.execute("DELETE FROM main.metadata WHERE source = 'pdf'")
        database.execute("INSERT INTO main.metadata SELECT * FROM other.metadata WHERE source = 'pdf'")
        _replace_meta(database)


def replace_everything(database: Database, other: Path) -> None:
    """The same with all that outlives papers too: nothing stays of what was here."""
    database.overwrite_deleted()
    with database.attached(other, "other"), database.transaction():
        _replace_tables(database, (*_MADE_OF_PAPERS, "metadata", *lasting_tables.TABLES))
        _replace_meta(database)


def _replace_tables(database: Database, tables: tuple[str, ...]) -> None:
    for table in reversed(tables):
        database.execute(f"DELETE FROM main.{table}")
    for table in tables:
        database.execute(f"INSERT INTO main.{table} SELECT * FROM other.{table}")
    database.execute("DELETE FROM main.pending")


def _replace_meta(database: Database) -> None:
    database.execute("DELETE FROM main.meta WHERE key NOT IN (SELECT key FROM other.meta)")
    database.execute("INSERT OR REPLACE INTO main.meta SELECT key, value FROM other.meta WHERE key != 'epoch'")
    database.execute("UPDATE main.meta SET value = :epoch WHERE key = 'epoch'", epoch=uuid.uuid4().hex)
