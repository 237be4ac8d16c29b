"""Writes a paper into the tables of the library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from datetime import UTC, datetime

from folio.paper_metadata import to_json
from folio.store import rows
from folio.store.database import Database, storable
from folio.store.digests import pack_vector, row_digest, text_crc, text_hash
from folio.types import NewPaper, Vectors


def insert(database: Database, paper: NewPaper, generation: int, added: str) -> None:
    """Insert a paper with its text; the caller adds its file, chunks and vectors.

    added: when it was first added (ISO, UTC); "" for now. Raises ValueError for sections outside the text.
    """
    rows.require_tree(paper.sections, len(paper.text), "the list of sections")
    columns: dict[str, object] = {
        "id": paper.id,
        "length": len(paper.text),
        "starts": json.dumps(paper.pages.starts),
        "labels": json.dumps(paper.pages.labels),
        "problems": json.dumps(paper.problems),
        "sections": json.dumps([astuple(section) for section in paper.sections]),
        "metadata": json.dumps(to_json(paper.metadata), ensure_ascii=False),
        "added": added or datetime.now(UTC).isoformat(timespec="seconds"),
        "passages": len(paper.spans),
        "text_crc": text_crc(storable(paper.text)),
    }
    keys = {"generation": generation, **rows.search_keys(paper.metadata)}
    database.insert("papers", [{**columns, "digest": row_digest("papers", *columns.values()), **keys}])
    database.insert("texts", [{"paper": paper.id, "text": storable(paper.text)}])


def insert_chunks(
    database: Database, paper: NewPaper, ids: Sequence[int], vectors: Vectors, generation: int
) -> list[str]:
    """Insert a paper's chunks and their vectors, passages first; returns the hashes of their texts.

    ids, vectors: in the order of chunk_spans.
    """
    hashes = [text_hash(paper.text[start:end]) for start, end in paper.chunk_spans]
    database.insert(
        "chunks",
        [
            {
                "id": id,
                "paper": paper.id,
                "start": start,
                "end": end,
                "text_hash": digest,
                "generation": generation,
                "parent": None if parent is None else ids[parent],
            }
            for id, (start, end), digest, parent in zip(ids, paper.chunk_spans, hashes, paper.parents, strict=True)
        ],
    )
    packed = [{"chunk": id, "data": pack_vector(vector)} for id, vector in zip(ids, vectors, strict=True)]
    database.insert("vectors", packed)
    return hashes
