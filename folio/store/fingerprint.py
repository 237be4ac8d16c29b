"""The fingerprint of a store: the parser, chunking and embedding model that its vectors depend on.

Parser modules are represented by version numbers, so that answering a question does not import them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import mul
from typing import Literal

from folio.errors import StoreMismatch, command
from folio.protocols import Embedder

# Increment when reader.py, ingest/sections.py, cleaning.py or layout_model.py gives different output for the same file.
PARSER, CLEANER, LAYOUT = 6, 4, 1
# Increment when chunking.py splits the same text differently, or ingest/sections.py finds other sections.
CHUNKER = 3
# Cosine of two beginnings of vectors from which they are of the same model: of MiniLM and its quantisations by
# llama.cpp to 4 bits and more, it is 0.982 and more
ALIKE = 0.98

# Of a library without papers that has replaced one of an earlier format: that format (old_library.py)
FORMAT = "format"

Parser = Literal["fast", "layout"]


def of_other_format(version: int | str) -> StoreMismatch:
    """The error for a library whose papers were read by a Folio with another format. version: its format."""
    return StoreMismatch(
        f"The papers were read by an earlier Folio (library format {version}), and must be read again.",
        f"Run `{command('ingest --rebuild')}`. Your questions, conversations and edits stay.",
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """How papers are read and split into chunks."""

    chunk_size: int  # characters in a passage
    chunk_overlap: int  # characters
    parser: Parser = "fast"
    ocr: bool = False  # read scanned pages
    fine_size: int = 0  # characters in a fine passage; 0 for no fine passages


def fingerprint(embedder: Embedder, reading: Reading) -> dict[str, str]:
    """Everything that a store's vectors depend on. A store can be searched only with the same fingerprint."""
    return {**embedder.identity(), **reading_fingerprint(reading)}


def differences(made_with: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """The fields, sorted, that affect vectors and differ between a store's fingerprint and the expected one.

    A model on Ollama has two digests. "weights" is the digest of its files, and decides if both sides have it: a
    changed parameter or template gives the same vectors. "digest" is that of the manifest, which lists the weights and
    everything else. Stores of earlier versions and some servers have only this one. The same manifest means the same
    weights. With another manifest the weights may have changed, so the store is refused. The prefixes and the parameter
    num_ctx (through part_bytes) also change the vectors, and have their own fields.

    Of a model on another server, "probe" has the beginning of a vector (openai_server.py), and nearly the same is the
    same.
    """
    decides = "weights" if "weights" in made_with and "weights" in expected else "digest"
    fields = (made_with.keys() | expected.keys()) - ({"digest", "weights", "query_prefix"} - {decides})
    return sorted(
        field
        for field in fields
        if made_with.get(field) != expected.get(field)
        and not (field == "probe" and _are_alike(made_with.get(field, ""), expected.get(field, "")))
    )


def _are_alike(one: str, other: str) -> bool:
    """Whether two beginnings of vectors are of the same model."""
    pair = [[float(number) for number in text.split()] for text in (one, other)]
    if len(pair[0]) != len(pair[1]) or not all(map(any, pair)):
        return False
    lengths = [math.hypot(*numbers) for numbers in pair]
    dot: float = sum(map(mul, *pair))
    return dot / (lengths[0] * lengths[1]) >= ALIKE


def reading_fingerprint(reading: Reading) -> dict[str, str]:
    """The part of the fingerprint that does not depend on the embedder."""
    return {
        "chunk_size": str(reading.chunk_size),
        "chunk_overlap": str(reading.chunk_overlap),
        "chunker": str(CHUNKER),
        "cleaner": str(CLEANER),
        "parser": f"{PARSER} with layout {LAYOUT}" if reading.parser == "layout" else str(PARSER),
        "index": "dual" if reading.fine_size else "single",
        **({"fine_size": str(reading.fine_size)} if reading.fine_size else {}),
    }
