"""The fingerprint of a store: the parser, chunking and embedding model that its vectors depend on.

Parser modules are represented by version numbers, so that answering a question does not import them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from folio.protocols import Embedder

# Increment when reader.py, cleaning.py or layout_model.py gives different output for the same file.
PARSER, CLEANER, LAYOUT = 2, 2, 1

Parser = Literal["fast", "layout"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How papers are read and split into chunks."""

    chunk_size: int  # characters
    chunk_overlap: int  # characters
    parser: Parser = "fast"
    ocr: bool = False  # read scanned pages


def fingerprint(embedder: Embedder, reading: Reading) -> dict[str, str]:
    """Everything that a store's vectors depend on: a store can be searched only if its fingerprint is the same."""
    return {**embedder.identity(), **reading_fingerprint(reading)}


def reading_fingerprint(reading: Reading) -> dict[str, str]:
    """The part of the fingerprint that does not depend on the embedder."""
    return {
        "chunk_size": str(reading.chunk_size),
        "chunk_overlap": str(reading.chunk_overlap),
        "cleaner": str(CLEANER),
        "parser": f"{PARSER} with layout {LAYOUT}" if reading.parser == "layout" else str(PARSER),
    }
