"""The fingerprint of a store: the parser, chunking and embedding model that its vectors depend on.

Parser modules are represented by version numbers, so that answering a question does not import them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from folio.protocols import Embedder

# Increment when reader.py, section_tree.py, cleaning.py or layout_model.py gives different output for the same file.
PARSER, CLEANER, LAYOUT = 5, 3, 1
# Increment when chunking.py splits the same text otherwise, or headings.py and section_tree.py find other sections.
CHUNKER = 2

Parser = Literal["fast", "layout"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How papers are read and split into chunks."""

    chunk_size: int  # characters in a passage
    chunk_overlap: int  # characters
    parser: Parser = "fast"
    ocr: bool = False  # read scanned pages
    fine_size: int = 0  # characters in a fine passage; 0: there are none


def fingerprint(embedder: Embedder, reading: Reading) -> dict[str, str]:
    """Everything that a store's vectors depend on: a store can be searched only if its fingerprint is the same."""
    return {**embedder.identity(), **reading_fingerprint(reading)}


def differences(made_with: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """The fields, sorted, in which a store's fingerprint differs from the expected one so that its vectors would too.

    A model on Ollama has two digests. "weights" is of its files, and decides wherever both sides have it: a changed
    parameter or template gives the same vectors. "digest" is of the manifest, which names the weights and everything
    else. It is all that stores of earlier versions have, and all that some servers tell. The same manifest means the
    same weights. From another manifest nothing follows: neither side says which weights the old one named, and it is
    gone from the server. Then the weights may have changed, and the store is refused. What changes the vectors besides
    the weights (the prefixes, and the parameter num_ctx by way of part_bytes) has fields of its own.
    """
    decides = "weights" if "weights" in made_with and "weights" in expected else "digest"
    fields = (made_with.keys() | expected.keys()) - ({"digest", "weights", "query_prefix"} - {decides})
    return sorted(field for field in fields if made_with.get(field) != expected.get(field))


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
