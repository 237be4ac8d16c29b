"""Writes a paper into the tables of the library, each row with its digest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple
from datetime import UTC, datetime

from folio.store import metadata_layers, rows
from folio.store.database import Database
from folio.store.digests import pack_vector, row_digest, text_crc, text_hash
from folio.types import NewPaper, Vectors

# Columns of papers that the table metadata has taken over
_IN_METADATA = {"title": "", "authors": "[]", "year": None}


def insert(database: Database, paper: NewPaper, generation: int, added: str) -> None:
    """Insert a paper with its text, sections and metadata; the caller adds its file, chunks and vectors.

    added: when it was first added; "" for now.
    """
    about = {
        "id": paper.id,
        **_IN_METADATA,
        "starts": json.dumps(paper.pages.starts),
        "labels": json.dumps(paper.pages.labels),
        "length": len(paper.text),
        "problems": json.dumps(paper.problems),
        "arxiv": "",
        "added": added or datetime.now(UTC).isoformat(timespec="seconds"),
    }
    database.execute(
        "INSERT INTO papers VALUES (:id, :title, :authors, :year, :text, :length, :starts, :labels, :problems,"
        " :added, :generation, :arxiv)",
        **about,
        text=paper.text,
        generation=generation,
    )
    crc = text_crc(paper.text)
    database.execute(
        "INSERT INTO paper_digests VALUES (:paper, :text, :about, :sections)",
        paper=paper.id,
        text=crc,
        about=row_digest("papers", *about.values(), len(paper.spans), crc),
        sections=rows.sections_digest(paper.id, crc, map(astuple, paper.sections)),
    )
    metadata_layers.write(database, paper.id, "pdf", paper.metadata)
    rows.require_tree(paper.sections, len(paper.text), "the list of sections")
    database.execute_many(
        "INSERT INTO sections VALUES (:paper, :start, :end, :level, :number, :title, :kind)",
        [{"paper": paper.id, **asdict(section)} for section in paper.sections],
    )


def insert_chunks(
    database: Database, paper: NewPaper, ids: Sequence[int], vectors: Vectors, generation: int
) -> list[bytes]:
    """Insert a paper's chunks and their vectors, passages first; returns the hashes of their texts.

    ids, vectors: in the order of chunk_spans.
    """
    hashes = [text_hash(paper.text[start:end]) for start, end in paper.chunk_spans]
    database.execute_many(
        "INSERT INTO chunks VALUES (:id, :paper, :start, :end, :text_hash, :generation, :parent,"
        " row_digest('chunks', :id, :paper, :start, :end, hex(:text_hash), :parent))",
        [
            {
                "id": id,
                "paper": paper.id,
                "start": start,
                "end": end,
                "text_hash": written,
                "generation": generation,
                "parent": None if parent is None else ids[parent],
            }
            for id, (start, end), written, parent in zip(ids, paper.chunk_spans, hashes, paper.parents, strict=True)
        ],
    )
    database.execute_many(
        "INSERT INTO vectors VALUES (:chunk, :data)",
        [{"chunk": id, "data": pack_vector(vector)} for id, vector in zip(ids, vectors, strict=True)],
    )
    return hashes
