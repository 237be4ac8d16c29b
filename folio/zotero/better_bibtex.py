"""The citation keys that Better BibTeX, an extension of Zotero, keeps in a database of its own next to Zotero's.

Keys that are not pinned stand only there. Newer versions have a table of them, older ones a collection of LokiJS, a
store in JSON. Nothing is ever written to the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from folio.zotero import database

DATABASE = "better-bibtex.sqlite"
_STORED = "better-bibtex.citekey"  # the name of the LokiJS collection with the keys


def read_keys(folder: Path) -> dict[tuple[int, str], str]:
    """Library and key of an item -> its citation key. folder: Zotero's data folder.

    Raises UsageError if the database cannot be read.
    """
    path = folder / DATABASE
    if not path.is_file():
        return {}
    with database.opened_copy(path) as tables:
        if "citationkey" in tables.names:
            rows = tables.rows("SELECT libraryID, itemKey, substr(citationKey, 1, 300) FROM citationkey")
        elif "better-bibtex" in tables.names:
            rows = _stored(tables.rows(f"SELECT data FROM \"better-bibtex\" WHERE name = '{_STORED}'"))
        else:
            rows = []
    return {
        (library, item): key
        for library, item, key in rows
        if type(library) is int and type(item) is str and type(key) is str and key.strip()
    }


def _stored(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Library, item and citation key of each entry of a LokiJS collection; none if it is not one."""
    try:
        entries = json.loads(rows[0][0])["data"]
        return [tuple(entry.get(name) for name in ("libraryID", "itemKey", "citekey")) for entry in entries]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return []
