"""Write docs/answer.schema.json again from the models in folio/schema/answers.py: `make schema`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.schema.answers import json_schema

SCHEMA = Path(__file__).resolve().parent.parent / "docs" / "answer.schema.json"

if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
