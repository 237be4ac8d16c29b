"""The pages in docs/ say what the code says."""

from __future__ import annotations

from scripts.make_docs import pages


def test_generated_parts_are_up_to_date() -> None:
    stale = [path.name for path, text in pages().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make docs`"
