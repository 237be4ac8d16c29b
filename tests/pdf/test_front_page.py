"""Titles and authors of made first pages, set like those of journals, conferences, reports and typescripts."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from folio.pdf.front_page import FrontPage, front_page
from folio.pdf.reader import read_pdf
from tests.helpers.paths import ROOT
from tests.helpers.pdfs import Set, body, front

LAYOUTS = tomllib.loads((ROOT / "tests" / "data" / "front_pages.toml").read_text(encoding="utf-8"))


def lines_of(row: list[Any]) -> list[Set]:
    """The lines of a row of the table: one, or prose down to the foot of the page."""
    if row[0] != "prose":
        return [Set(*row)]
    font = row[5] if len(row) > 5 else ""
    return [line._replace(font=font or line.font) for line in body(*row[1:5])]


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_title_and_authors_of_a_first_page(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS[name]
    pages = [[line for row in page for line in lines_of(row)] for page in layout["pages"]]
    parsed = read_pdf(front(tmp_path / "a.pdf", pages, layout.get("metadata")))
    assert (parsed.title, list(parsed.authors)) == (layout["title"], layout["authors"])


def test_a_page_without_a_size_has_one() -> None:
    assert front_page([], 0.0, 0.0) == FrontPage((), 1.0, 1.0)
