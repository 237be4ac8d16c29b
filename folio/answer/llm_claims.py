"""What a chat model is asked about what papers say the same and otherwise, and how its reply is read. Pure."""

from __future__ import annotations

from typing import Any

from folio.answer.markup import printable, simplified
from folio.deep_types import NamedClaim
from folio.text import one_line

MOST_CLAIMS = 6
MOST_SENTENCES = 6  # of one side
LONGEST_CLAIM = 400  # characters
REPLY_TOKENS = 768


def claims_schema(sentences: int) -> dict[str, Any]:
    """The JSON Schema of a reply over evidence of so many sentences."""
    numbers = {
        "type": "array",
        "items": {"type": "integer", "enum": list(range(1, sentences + 1))},
        "maxItems": MOST_SENTENCES,
    }
    claim = {
        "type": "object",
        "properties": {
            "claim": {"type": "string", "maxLength": LONGEST_CLAIM},
            "same": {**numbers, "minItems": 1},
            "other": numbers,
        },
        "required": ["claim", "same", "other"],
    }
    return {
        "type": "object",
        "properties": {"claims": {"type": "array", "items": claim, "maxItems": MOST_CLAIMS}},
        "required": ["claims"],
    }


def read_claims(found: Any, sentences: int) -> list[NamedClaim] | None:
    """The claims in a reply, with the numbers that exist; None for a reply that is no list of claims."""
    listed = found.get("claims") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        return None
    claims = []
    for one in listed[:MOST_CLAIMS]:
        said = one.get("claim") if isinstance(one, dict) else None
        if isinstance(said, str):
            text = one_line(simplified(printable(said[:LONGEST_CLAIM])))
            same, other = (_numbers(one.get(side), sentences) for side in ("same", "other"))
            claims += [NamedClaim(text, same, other)] if text and same else []
    return claims


def _numbers(found: Any, sentences: int) -> tuple[int, ...]:
    listed = found if isinstance(found, list) else []
    known = (number for number in listed if type(number) is int and 1 <= number <= sentences)
    return tuple(dict.fromkeys(known))[:MOST_SENTENCES]
