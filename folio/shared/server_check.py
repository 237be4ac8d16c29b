"""Checks the indexes on the server (server_index.py) against the library; a rebuild corrects all faults."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from folio.errors import IndexDamaged
from folio.shared.postgres import PostgresDatabase
from folio.shared.postings import unpack
from folio.shared.server_index import State, ids_of, read_state
from folio.store.faiss_segment import ERROR
from folio.store.library import Library
from folio.types import Grain

_PAGE = 4000
# The smallest positive number in half precision; smaller ones are rounded to it or to 0.
_SMALLEST = 2.0**-24


def faults(database: PostgresDatabase, library: Library) -> list[str]:
    """The faults of the indexes on the server, one sentence each; reads all of them."""
    with library.reading() as stamp:
        state = read_state(database)
        if state is None or state.epoch != stamp.epoch:
            return ["The server has no indexes of this library."]
        if state.stamp != stamp:
            return ["The indexes on the server are not up to date with the library."]
        of_vectors = [fault for grain in state.grains for fault in _vector_faults(database, library, state, grain)]
        try:
            return [*of_vectors, *_posting_faults(database, library, state)]
        except IndexDamaged as error:
            return [*of_vectors, f"{error.happened[0].upper()}{error.happened[1:]}."]


def _vector_faults(database: PostgresDatabase, library: Library, state: State, grain: Grain) -> Iterator[str]:
    sql = (
        f"SELECT chunk, {state.extension}.halfvec_send(data) FROM {state.vectors(grain)} WHERE chunk > :last"
        f" ORDER BY chunk LIMIT {_PAGE}"
    )
    expected_ids, seen, wrong, last = library.chunk_ids(grain=grain), 0, 0, -1
    while rows := database.query_binary(sql, last=last):
        ids, last = [chunk for chunk, _ in rows], rows[-1][0]
        if not expected_ids.issuperset(ids):
            break
        stored = np.frombuffer(b"".join(data[4:] for _, data in rows), dtype=">f2").astype(np.float32)
        expected = library.vectors_of(ids)
        near = abs(stored.reshape(expected.shape) - expected) <= ERROR * abs(expected) + _SMALLEST
        wrong, seen = wrong + int((~near.all(axis=1)).sum()), seen + len(ids)
    name = "vector" if grain == "passage" else "fine vector"
    if seen != len(expected_ids):
        yield f"The {name} index on the server and the library hold different passages."
    if wrong:
        yield f"{wrong} vectors in the {name} index on the server differ from the library's."


def _posting_faults(database: PostgresDatabase, library: Library, state: State) -> Iterator[str]:
    """Raises IndexDamaged for a row that has changed since it was written."""
    papers = database.query_binary(f"SELECT first, passages, tokens, ids FROM {state.papers} ORDER BY first")
    ids = [chunk for first, passages, _, stored in papers for chunk in ids_of(first, passages, stored)]
    spans = [(first, first + passages) for first, passages, _, _ in papers]
    if len(ids) != len(set(ids)) or set(ids) != library.chunk_ids():
        yield "The BM25 index on the server and the library hold different passages."
    if any(end > start for (_, end), (start, _) in pairwise([*spans, (state.numbers, 0)])):
        yield "The BM25 index on the server gives a number to two passages."
    tokens = sum(int(unpack(*row).counts.sum()) for row in _posting_rows(database, state))
    if not tokens == state.tokens == sum(tokens for _, _, tokens, _ in papers):
        yield "The BM25 index on the server lacks words of the library, or has others."


def _posting_rows(database: PostgresDatabase, state: State) -> Iterator[tuple[Any, ...]]:
    sql = (
        f"SELECT term, block, count, data FROM {state.postings} WHERE (term, block) > (:term, :block)"
        f" ORDER BY term, block LIMIT {_PAGE}"
    )
    term, block = "", -1
    while rows := database.query_binary(sql, term=term, block=block):
        yield from rows
        term, block = rows[-1][:2]
