"""Edits of what is known about a paper that have begun: one that was killed is finished by the next edit or ingest.

What a source says is written first, then the paper's rows, whose passages are searched by its title and year.
"""

from __future__ import annotations

from folio.cluster.collections import Names
from folio.cluster.milvus_client import Milvus
from folio.cluster.milvus_filters import is_key

_KEY = "edit."


def begin(milvus: Milvus, names: Names, paper: str) -> bool:
    """Note that an edit of a paper begins; returns whether another one has not ended."""
    key = f"{_KEY}{paper}"
    was_begun = bool(list(milvus.rows(names.store, f'key == "{key}"', ["key"], strong=True)))
    milvus.write(names.store, [{"key": key, "value": ""}])
    return was_begun


def end(milvus: Milvus, names: Names, paper: str) -> None:
    """Note that it has ended."""
    milvus.delete(names.store, f'key == "{_KEY}{paper}"')


def papers(milvus: Milvus, names: Names) -> list[str]:
    """The papers with an edit that has not ended."""
    found = milvus.rows(names.store, f'key like "{_KEY}%"', ["key"], strong=True)
    ids = (str(row["key"]).removeprefix(_KEY) for row in found)
    return sorted(id for id in ids if is_key(id))
