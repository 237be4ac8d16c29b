"""What a store's chunks and vectors depend on: how papers are read and cut, and by what they are embedded.

It knows the rooms that read papers by their versions alone, so that a question need not load them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from folio.protocols import Embedder

# A change in what reader.py, cleaning.py or layout_model.py makes of the same file raises its number.
PARSER, CLEANER, LAYOUT = 2, 2, 1

Parser = Literal["fast", "layout"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How papers are read, and cut into chunks."""

    chunk_size: int  # characters
    chunk_overlap: int  # characters
    parser: Parser = "fast"
    ocr: bool = False  # read pages that are pictures


def fingerprint(embedder: Embedder, reading: Reading) -> dict[str, str]:
    """Everything that a store's vectors depend on; two stores with the same may be asked in the same way."""
    return {**embedder.identity(), **made_here(reading)}


def made_here(reading: Reading) -> dict[str, str]:
    """The part of the fingerprint that can be told without asking a model."""
    return {
        "chunk_size": str(reading.chunk_size),
        "chunk_overlap": str(reading.chunk_overlap),
        "cleaner": str(CLEANER),
        "parser": f"{PARSER} with layout {LAYOUT}" if reading.parser == "layout" else str(PARSER),
    }
