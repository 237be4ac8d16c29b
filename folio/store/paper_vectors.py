"""The vectors of whole papers, in the library's table `paper_vectors`: at most one for each paper.

Each is stored with the hash of its text (paper_text.py). When a paper's metadata changes, the hash shows that its
vector is outdated; it is used until an ingest replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from folio.store.database import Database
from folio.store.digests import pack_vector, vector_bytes
from folio.store.fine_passages import increase
from folio.store.rows import string, typed
from folio.types import Vectors


@dataclass(frozen=True, slots=True, eq=False)
class PaperVector:
    """The vector of a whole paper."""

    text_hash: str  # of the text that it was made from
    vector: Vectors  # (dimension,), of unit length


def read(database: Database) -> dict[str, PaperVector]:
    """Paper id -> its vector. Raises StoreDamaged."""
    return dict(database.read(row, "SELECT paper, text_hash, data FROM paper_vectors ORDER BY paper"))


def write(database: Database, vectors: Mapping[str, PaperVector]) -> None:
    """Insert or replace the vectors of papers that are in the library. The caller has a transaction."""
    packed = [
        {"paper": paper, "text_hash": each.text_hash, "data": pack_vector(each.vector)}
        for paper, each in vectors.items()
    ]
    database.insert("paper_vectors", packed, replace=True)
    count_change(database)


def row(paper: object, text_hash: object, data: object) -> tuple[str, PaperVector]:
    """A paper's id and vector. Raises ValueError if the vector has changed since it was written."""
    numbers = np.frombuffer(vector_bytes(typed(bytes, data, "the vector of a paper")), dtype="<f4")
    return string(paper), PaperVector(string(text_hash), numbers.astype(np.float32, copy=False))


def count_change(database: Database) -> None:
    """Record that the text by which whole papers are searched has changed."""
    increase(database, "described")
