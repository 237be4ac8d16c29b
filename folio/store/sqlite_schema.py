"""Compares the schema of a SQLite file with the tables of a library.

A flipped bit in the name of a column leaves a file sound to SQLite, but every statement about that column fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from folio.store.database import Part
from folio.store.tables import TABLES, statements

TYPES = {"text": "TEXT", "integer": "INTEGER", "real": "REAL", "bytes": "BLOB", "keyed": " WITHOUT ROWID"}
# Reads the schema of a file; as bytes, because damaged names may no longer be text
SELECT = "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM {}.sqlite_master"
_NAME = re.compile(r"CREATE (TABLE|INDEX) (\w+)")


def is_of(part: Part, schema_rows: Iterable[tuple[bytes, bytes | None]]) -> bool:
    """Whether a file has exactly the tables and indexes of a part. schema_rows: the rows of SELECT."""
    expected = {statement.encode() for statement in statements(TABLES[part], TYPES)}
    return {statement for _, statement in schema_rows if statement is not None} == expected


def faults(part: Part, schema_rows: Iterable[tuple[bytes, bytes | None]]) -> list[str]:
    """The missing or changed tables and indexes, one sentence each. schema_rows: the rows of SELECT."""
    statement_of = dict(schema_rows)
    problems = []
    for statement in statements(TABLES[part], TYPES):
        kind, name = _NAME.findall(statement)[0]
        if name.encode() not in statement_of:
            problems.append(f"The {kind.lower()} {name} is missing.")
        elif statement_of[name.encode()] != statement.encode():
            problems.append(f"The {kind.lower()} {name} has changed since it was made.")
    return problems
