"""Write tests/page/types/api.d.ts again, the types of the API for the page's modules: `make schema`.

Each schema of the OpenAPI document becomes an interface of the namespace Api. The server sends every field of a reply;
of what the page sends, only the required fields must be there.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pydantic import BaseModel

from config import Settings
from folio.app import App
from folio.schema import web as schema
from folio.web.api import make_web
from folio.web.guard import AccessRules

TYPES = Path(__file__).resolve().parent.parent / "tests" / "page" / "types" / "api.d.ts"
_NAMES = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}
_SENT = re.compile(r"^New|(Request|Query|Edits|Edit|Changes)$")


def page_types(document: dict[str, Any]) -> str:
    """The interfaces of an OpenAPI document's schemas and of the events, in the order of their names."""
    schemas = _event_schemas() | document["components"]["schemas"]
    named = {re.sub(r"\W", "_", name): schema for name, schema in schemas.items() if "properties" in schema}
    interfaces = [_interface(name, named[name]) for name in sorted(named)]
    return "// Made by scripts/make_page_types.py.\ndeclare namespace Api {\n" + "\n".join(interfaces) + "}\n"


def _event_schemas() -> dict[str, Any]:
    """The schemas of what event streams send, which an OpenAPI document lacks."""
    schemas: dict[str, Any] = {}
    for name, event in vars(schema).items():
        if name.endswith("Event") and isinstance(event, type) and issubclass(event, BaseModel):
            described = event.model_json_schema(mode="serialization")
            schemas |= described.pop("$defs", {}) | {name: described}
    return schemas


def _interface(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", ()) if _SENT.search(name) else schema["properties"]
    lines = [
        f"    {field}{'' if field in required else '?'}: {_type(value)};\n"
        for field, value in schema["properties"].items()
    ]
    return f"  interface {name} {{\n{''.join(lines)}  }}\n"


def _type(schema: dict[str, Any]) -> str:
    """The TypeScript type of a JSON schema."""
    match schema:
        case {"$ref": reference}:
            return re.sub(r"\W", "_", str(reference).rsplit("/", 1)[-1])
        case {"anyOf": options} | {"oneOf": options} | {"allOf": options}:
            return " | ".join(dict.fromkeys(map(_type, options)))
        case {"const": value}:
            return _literal(value)
        case {"enum": values}:
            return " | ".join(map(_literal, values))
        case {"prefixItems": items}:
            return f"[{', '.join(map(_type, items))}]"
        case {"type": "array", "items": items}:
            return f"({_type(items)})[]"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"Record<string, {_type(values)}>"
        case {"type": str(name)} if name in _NAMES:
            return _NAMES[name]
    return "any"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def api_document() -> dict[str, Any]:
    """The OpenAPI document of the web API."""
    with TemporaryDirectory() as folder:
        app = App(Settings(VECTORSTORE_DIR=Path(folder)), notice=print)
        return make_web(app, AccessRules("127.0.0.1", 8420)).openapi()


if __name__ == "__main__":
    TYPES.parent.mkdir(exist_ok=True)
    TYPES.write_text(page_types(api_document()), encoding="utf-8")
