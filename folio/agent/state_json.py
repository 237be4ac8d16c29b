"""The state of a deep search as JSON and back: passages and papers as their ids, everything else by its declared type.

What is read back may be anything: only the types that the dataclasses declare are made from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from folio.deep_types import HitReference
from folio.paper_metadata import stored_form
from folio.types import Chunk, Hit, Paper


@dataclass
class References:
    """The papers and passages that JSON has the ids of: those that were written, or that an id is looked up in."""

    papers: dict[str, Paper] = field(default_factory=dict)
    passages: dict[int, tuple[Chunk, Paper, str]] = field(default_factory=dict)

    def refer(self, value: Paper | Hit) -> str | HitReference:
        if isinstance(value, Paper):
            self.papers[value.id] = value
            return value.id
        self.passages[value.chunk.id] = value.chunk, value.paper, value.text
        dense, lexical = (None if score is None else float(score) for score in (value.dense, value.lexical))
        return HitReference(value.chunk.id, float(value.score), dense, lexical, value.highlights, value.summary)

    def resolve(self, reference: str | HitReference) -> Paper | Hit:
        """Raises KeyError for an id that is not there, ValueError for a highlight outside its passage."""
        if isinstance(reference, str):
            return self.papers[reference]
        id, score, dense, lexical, highlights, summary = reference
        chunk, paper, text = self.passages[id]
        if any(not chunk.start <= start < end <= chunk.end for start, end in highlights):
            raise ValueError("a highlight outside its passage")
        return Hit(chunk, paper, text, score, dense, lexical, highlights, summary)


def to_json(value: object, references: References) -> Any:
    """A value of dataclasses, tuples, frozensets, texts and numbers as JSON's types."""
    kind: Any = type(value)
    return stored_form(kind).dump_python(value, mode="json", context=references)


def from_json(kind: Any, written: object, references: References | None = None) -> Any:
    """The value of this type that `to_json` wrote. Raises ValueError for anything else, KeyError for an unknown id."""
    text = json.dumps(written, allow_nan=False)
    return stored_form(kind).validate_json(text, strict=True, extra="forbid", context=references)
