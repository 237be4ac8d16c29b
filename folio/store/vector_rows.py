"""The vectors of a library's passages, and those of papers that are still being embedded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from folio.errors import IndexDamaged
from folio.store import rows
from folio.store.database import Database
from folio.store.digests import pack_vector
from folio.store.fine_passages import ONLY
from folio.types import Vectors


def read_passages(database: Database, batch: int) -> Iterator[tuple[list[int], Vectors]]:
    """Every passage's id and vector, shape (n, dimension), in batches. Raises StoreDamaged."""
    last = -1
    sql = (
        f"SELECT chunk, data FROM vectors JOIN chunks ON id = chunk WHERE chunk > :last AND {ONLY['passage']}"
        " ORDER BY chunk LIMIT :batch"
    )
    while found := database.read(rows.vector, sql, last=last, batch=batch):
        ids = [chunk for chunk, _ in found]
        if any(first >= second for first, second in pairwise([last, *ids])):
            raise database.damaged("the vectors are not in order")
        last = ids[-1]
        yield ids, matrix(database, [numbers for _, numbers in found])


def read_of(database: Database, ids: Sequence[int]) -> Vectors:
    """The vectors of one or more chunks, in this order. Raises IndexDamaged for an unknown id, and StoreDamaged."""
    sql = "SELECT chunk, data FROM vectors WHERE chunk IN (SELECT value FROM json_each(:ids))"
    try:
        with database.snapshot():
            found = dict(database.read(rows.vector, sql, ids=json.dumps(list(ids))))
            return matrix(database, [found[chunk] for chunk in ids])
    except KeyError as error:
        raise IndexDamaged(f"The index names a passage that is not in the library: {error.args[0]}.") from error


def recall(database: Database, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
    """The vectors already computed for texts with these hashes: of passages, of papers, and pending ones."""
    pending = "SELECT 0, data FROM pending WHERE text_hash = :digest"
    finished = "SELECT c.id, v.data FROM chunks c JOIN vectors v ON v.chunk = c.id WHERE c.text_hash = :digest"
    papers = "SELECT 0, data FROM paper_vectors WHERE text_hash = :digest"
    either = f"{pending} UNION ALL {finished} UNION ALL {papers} LIMIT 1"
    found: dict[bytes, Vectors] = {}
    for digest in set(hashes):
        for _, numbers in database.read(rows.vector, either, digest=digest):
            found[digest] = matrix(database, [numbers])[0]
    return found


def keep(database: Database, hashes: Sequence[bytes], vectors: Vectors) -> None:
    """Keep vectors until their paper is added."""
    database.execute_many(
        "INSERT OR REPLACE INTO pending VALUES (:hash, :data)",
        [{"hash": key, "data": pack_vector(vector)} for key, vector in zip(hashes, vectors, strict=True)],
    )


def matrix(database: Database, numbers: Sequence[bytes]) -> Vectors:
    """Vectors as rows. Raises StoreDamaged if their dimension is not the store's."""
    made_with = database.read(rows.fingerprint, "SELECT value FROM meta WHERE key = 'fingerprint'")
    dimension = made_with[0].get("dimension") if made_with else None
    size = 4 * int(dimension) if dimension else len(numbers[0])
    if any(len(own) != size for own in numbers):
        raise database.damaged("a vector has another dimension than the store")
    return np.frombuffer(b"".join(numbers), dtype="<f4").astype(np.float32, copy=False).reshape(len(numbers), -1)
