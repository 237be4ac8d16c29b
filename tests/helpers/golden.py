"""Whole screens, reports and values, held against files in tests/data/golden/.

WRITE_GOLDEN=1 in the environment writes what the tests see in their place; read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re

from tests.helpers.paths import ROOT

GOLDEN = ROOT / "tests" / "data" / "golden"


def check_golden(file: str, name: str, text: str) -> None:
    """Assert that a text is the one below `=== NAME ===` in a file, without the spaces at the ends of lines."""
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    path = GOLDEN / file
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = re.split(r"^=== (.+) ===\n", known, flags=re.MULTILINE)
    screens = dict(zip(parts[1::2], parts[2::2], strict=True))
    if os.environ.get("WRITE_GOLDEN"):
        screens[name] = text
        path.write_text("".join(f"=== {key} ===\n{screens[key]}" for key in sorted(screens)), encoding="utf-8")
    assert text == screens[name]


def assert_golden(name: str, value: object) -> None:
    """Assert that a value is the one in NAME.json."""
    path = GOLDEN / f"{name}.json"
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert value == json.loads(path.read_text(encoding="utf-8"))
