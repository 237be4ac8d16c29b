"""The parts of the OpenAPI document that are not JSON: event streams, files, and the errors that stand beside them."""

from __future__ import annotations

from typing import Any

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": "What happened and what to do.", "content": _ERROR} for status in ("4XX", "5XX")
}


def event_stream(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that streams events of these kinds, each with a JSON object as data."""
    schema = {
        "type": "object",
        "properties": {
            "event": {"type": "string", "enum": [*kinds, "error"]},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
        "required": ["event", "data"],
    }
    return {
        200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": schema}}},
        **_ERRORS,
    }


def content(media_type: str, description: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that returns this media type."""
    found = {media_type: {"schema": {"type": "string"}}}
    return {200: {"description": description, "content": found}, **_ERRORS}
