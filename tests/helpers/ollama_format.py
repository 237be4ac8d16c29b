"""What the stand-in for an Ollama server writes when a request has a `format`: JSON that follows the schema."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]

Json = dict[str, Any]


def format_error(shape: object) -> str:
    """The server's words about a `format` that it cannot use; "" if it can."""
    if shape in (None, "", "json"):
        return ""
    if not isinstance(shape, dict):
        return f'invalid format: {json.dumps(json.dumps(shape))}; expected "json" or a valid JSON Schema object'
    try:
        Draft202012Validator.check_schema(shape)
    except SchemaError:
        return "invalid JSON schema in format"
    return ""


def write_json(text: str, shape: Json | str) -> str:
    """A scripted reply as JSON: one that begins as JSON stays as it is, prose becomes the schema's strings."""
    if text.lstrip()[:1] in ("{", "[", '"'):
        return text
    return json.dumps({"text": text} if isinstance(shape, str) else _fill(shape, text, shape), ensure_ascii=False)


def _fill(schema: Json, text: str, root: Json) -> object:
    """The smallest value that follows a schema, with the text in its strings. Lists get at least one item."""
    if "$ref" in schema:
        return _fill(root["$defs"][schema["$ref"].rpartition("/")[2]], text, root)
    if "enum" in schema:
        return text if text in schema["enum"] else schema["enum"][0]
    if "anyOf" in schema:
        return _fill(schema["anyOf"][0], text, root)
    match schema.get("type"):
        case "object":
            return {name: _fill(part, text, root) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_fill(schema["items"], text, root)] * max(1, schema.get("minItems", 1))
        case "string":
            return text[: schema.get("maxLength")]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return None
