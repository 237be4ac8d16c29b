"""Values that are compared with a file of tests/data/golden, whole."""

from __future__ import annotations

import json
import os

from tests.helpers.paths import ROOT

GOLDEN = ROOT / "tests" / "data" / "golden"


def assert_golden(name: str, value: object) -> None:
    """The value is the one in NAME.json. UPDATE_GOLDEN=1 writes it there instead, to be read in a diff."""
    path = GOLDEN / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert value == json.loads(path.read_text(encoding="utf-8"))
