"""What the stand-in for an Ollama server writes when a request has a `format`: JSON that follows the schema."""

from __future__ import annotations

import json
import re
from typing import Any

from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]

Json = dict[str, Any]

_MARKERS = re.compile(r"\s*\[\d[\d, ]*\]")
_FENCED = re.compile(r"^```json\n(.*?)\n```", re.MULTILINE | re.DOTALL)
_REFUSAL = "Not found in the provided papers."


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


def write_json(text: str, shape: Json | str, prompt: str = "") -> str:
    """A scripted reply as JSON: one that begins as JSON stays as it is, of one with JSON in a fence that is left, prose
    becomes the schema's strings.

    Where the schema is that of an answer, each sentence of the prose becomes a statement, and names the sentence of the
    prompt that is nearest to it, as a model that cites well does.
    """
    if text.lstrip()[:1] in ("{", "[", '"'):
        return text
    if fenced := _FENCED.search(text):
        return fenced[1]
    statements = shape.get("properties", {}).get("statements", {}) if isinstance(shape, dict) else {}
    if "support" in statements.get("items", {}).get("properties", {}):
        return json.dumps(_answer(text, statements["items"], prompt), ensure_ascii=False)
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


def _answer(text: str, shape: Json, prompt: str) -> Json:
    numbered = {int(number): words(line) for number, line in re.findall(r"^\[(\d+)\] (.*)$", prompt, re.MULTILINE)}
    properties: Json = shape["properties"]
    statements: list[Json] = []
    part, heading, answered = "summary", "", True
    for line in text.splitlines():
        if line.startswith("#"):
            name = line.strip("# ")
            part, heading = (name.lower(), "") if name in ("Summary", "Analysis") else ("analysis", name)
            continue
        plain = re.sub(r"^(?:[-*]|\d+\.)\s+", "", _MARKERS.sub("", line).strip())
        for sentence in filter(None, re.split(r"(?<=[.!?])\s+(?=[A-Z])", plain)):
            if sentence == _REFUSAL:
                answered = False
                continue
            nearest = max(numbered, key=lambda number: len(numbered[number] & words(sentence)), default=None)
            support = properties["support"]["items"]["enum"][0] if nearest is None else nearest
            statement = sentence[: properties["statement"].get("maxLength")]
            values = {"part": part, "heading": heading, "support": [support], "statement": statement}
            statements.append({name: values[name] for name in properties})
    return {"statements": statements, "answered": answered}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
