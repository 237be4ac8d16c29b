"""Cursors: where a list goes on. Opaque to clients; one that was made for another request is refused."""

from __future__ import annotations

import re
from hashlib import sha256

from folio.errors import UsageError
from folio.schema.mcp import Listing

_CURSOR = re.compile(r"([0-9]{1,9})\.([0-9a-f]{12})")
_NOT_OF_THE_REQUEST = {"cursor", "limit", "max_characters"}  # these may change from one part to the next


def start_of(wanted: Listing) -> int:
    """Where this part of the list begins; 0 without a cursor. Raises UsageError for a cursor of another request."""
    if not wanted.cursor:
        return 0
    found = _CURSOR.fullmatch(wanted.cursor)
    if found is None or found[2] != _request(wanted):
        raise UsageError(
            "The cursor does not belong to this request.",
            "Send `next_cursor` as it came, with the arguments that it came for; or begin again without a cursor.",
        )
    return int(found[1])


def next_cursor(wanted: Listing, start: int) -> str:
    """The cursor of the part that begins there."""
    return f"{start}.{_request(wanted)}"


def _request(wanted: Listing) -> str:
    """What tells a request from others."""
    asked = wanted.model_dump_json(exclude=_NOT_OF_THE_REQUEST)
    return sha256(f"{type(wanted).__name__} {asked}".encode()).hexdigest()[:12]
