"""The tables of a library as SQLite keeps them, compared with what a file says that they are.

A flipped bit in the name of a column leaves a file sound to SQLite, and every statement about that column fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from folio.store.database import Part
from folio.store.tables import TABLES, statements

TYPES = {"text": "TEXT", "integer": "INTEGER", "real": "REAL", "bytes": "BLOB", "keyed": " WITHOUT ROWID"}
# What is asked of a file, in the schema that it is attached as: bytes, which may no longer be text
SELECT = "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM {}.sqlite_master"
_NAME = re.compile(r"CREATE (TABLE|INDEX) (\w+)")


def is_of(part: Part, found: Iterable[tuple[bytes, bytes | None]]) -> bool:
    """Whether these are the tables and indexes of a part, and no others. found: the rows of SELECT."""
    made = {statement.encode() for statement in statements(TABLES[part], TYPES)}
    return {statement for _, statement in found if statement is not None} == made


def faults(part: Part, found: Iterable[tuple[bytes, bytes | None]]) -> list[str]:
    """What is missing or has changed, one sentence each. found: the rows of SELECT."""
    here = dict(found)
    wrong = []
    for statement in statements(TABLES[part], TYPES):
        kind, name = _NAME.findall(statement)[0]
        if name.encode() not in here:
            wrong.append(f"The {kind.lower()} {name} is missing.")
        elif here[name.encode()] != statement.encode():
            wrong.append(f"The {kind.lower()} {name} is not as it was made.")
    return wrong
