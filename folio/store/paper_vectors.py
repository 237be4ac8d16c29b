"""The vectors of papers as a whole, in the library's table `paper_vectors`: at most one for each paper.

Each is kept with the hash of the text that it was made from (paper_text.py). When what is known about a paper changes,
the hash tells that its vector is outdated; it is used until an ingest replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from folio.store.database import Database
from folio.store.digests import pack_vector, row_digest, vector_bytes
from folio.types import Vectors

COLUMNS = "paper, text_hash, data, digest"


@dataclass(frozen=True, slots=True, eq=False)
class PaperVector:
    """The vector of a paper as a whole."""

    text_hash: bytes  # of the text that it was made from
    vector: Vectors  # (dimension,), of unit length


def read(database: Database) -> dict[str, PaperVector]:
    """Paper id -> its vector. Raises StoreDamaged."""
    return dict(database.read(row, f"SELECT {COLUMNS} FROM paper_vectors"))


def write(database: Database, vectors: Mapping[str, PaperVector]) -> None:
    """Insert or replace the vectors of papers that are in the library. The caller has a transaction."""
    packed = [(paper, each.text_hash, pack_vector(each.vector)) for paper, each in vectors.items()]
    database.execute_many(
        "INSERT OR REPLACE INTO paper_vectors VALUES (:paper, :text_hash, :data, :digest)",
        [
            {"paper": paper, "text_hash": text_hash, "data": data, "digest": _digest(paper, text_hash, data)}
            for paper, text_hash, data in packed
        ],
    )
    count_change(database)


def row(paper: str, text_hash: bytes, data: bytes, digest: bytes) -> tuple[str, PaperVector]:
    """From COLUMNS. Raises ValueError if the row is not as it was written."""
    if any(type(value) is not bytes for value in (text_hash, data)) or digest != _digest(paper, text_hash, data):
        raise ValueError("the vector of a paper has changed since it was written")
    return paper, PaperVector(text_hash, np.frombuffer(vector_bytes(data), dtype="<f4").astype(np.float32, copy=False))


def _digest(paper: str, text_hash: bytes, data: bytes) -> bytes:
    return row_digest("paper_vectors", paper, text_hash.hex(), data.hex())


def count_change(database: Database) -> None:
    """Note that papers as a whole are searched by something else now."""
    database.execute("UPDATE meta SET value = value + 1 WHERE key = 'described'")


def changes(database: Database) -> int:
    """How many changes were noted. Raises StoreDamaged."""
    (count,) = database.read(int, "SELECT value FROM meta WHERE key = 'described'") or [-1]
    return count
