"""The vectors of a library's passages, and those of papers that are still being embedded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from folio.store import rows
from folio.store.database import Database
from folio.store.digests import pack_vector
from folio.store.fine_passages import ONLY
from folio.types import Vectors


def read_passages(database: Database, size: int | None, batch: int) -> Iterator[tuple[list[int], Vectors]]:
    """Every passage's id and vector, shape (n, dimension), in batches. size: see matrix. Raises StoreDamaged."""
    last = -1
    sql = (
        f"SELECT chunk, data FROM vectors JOIN chunks ON id = chunk WHERE chunk > :last AND {ONLY['passage']}"
        " ORDER BY chunk LIMIT :batch"
    )
    while pairs := database.read(rows.vector, sql, last=last, batch=batch):
        ids = [chunk for chunk, _ in pairs]
        if any(first >= second for first, second in pairwise([last, *ids])):
            raise database.damaged("the vectors are not in order")
        last = ids[-1]
        yield ids, matrix(database, [numbers for _, numbers in pairs], size)


def read_of(database: Database, ids: Iterable[int], size: int | None) -> dict[int, Vectors]:
    """The vectors of these chunks; unknown ids are skipped. size: see matrix."""
    sql = "SELECT chunk, data FROM vectors WHERE chunk IN (SELECT value FROM json_each(:ids))"
    pairs = database.read(rows.vector, sql, ids=list(ids))
    vectors = matrix(database, [numbers for _, numbers in pairs], size) if pairs else ()
    return dict(zip((id for id, _ in pairs), vectors, strict=True))


def recall(database: Database, hashes: Sequence[str], size: int | None) -> dict[str, Vectors]:
    """The vectors already computed for texts with these hashes: of passages, of papers, and pending ones."""
    among = "text_hash IN (SELECT value FROM json_each(:hashes))"
    sql = (
        f"SELECT text_hash, data FROM pending WHERE {among}"
        f" UNION ALL SELECT c.text_hash, v.data FROM vectors v JOIN"
        f" (SELECT text_hash, min(id) AS id FROM chunks WHERE {among} GROUP BY text_hash) c ON v.chunk = c.id"
        f" UNION ALL SELECT text_hash, data FROM paper_vectors WHERE {among}"
    )
    pairs = database.read(_hashed, sql, hashes=list(dict.fromkeys(hashes)))
    return {key: matrix(database, [numbers], size)[0] for key, numbers in pairs}


def _hashed(text_hash: object, blob: object) -> tuple[str, bytes]:
    return rows.string(text_hash), rows.vector(0, blob)[1]


def keep(database: Database, hashes: Sequence[str], vectors: Vectors) -> None:
    """Keep vectors until their paper is added."""
    packed = {key: pack_vector(vector) for key, vector in zip(hashes, vectors, strict=True)}
    database.insert("pending", [{"text_hash": key, "data": data} for key, data in packed.items()], replace=True)


def matrix(database: Database, numbers: Sequence[bytes], size: int | None) -> Vectors:
    """Vectors as the rows of a matrix, shape (len(numbers), dimension).

    numbers: the bytes of each vector. size: the dimension of the store; None if unknown. Raises StoreDamaged if a
    vector has another dimension.
    """
    expected = 4 * size if size else len(numbers[0])
    if any(len(vector) != expected for vector in numbers):
        raise database.damaged("a vector has another dimension than the store")
    return np.frombuffer(b"".join(numbers), dtype="<f4").astype(np.float32, copy=False).reshape(len(numbers), -1)
