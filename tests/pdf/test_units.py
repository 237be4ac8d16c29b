"""Pages at odd sizes are read as any others: what matters is how large they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymupdf
import pytest

from folio.errors import PaperError
from folio.pdf.reader import read_pdf
from folio.pdf.render import quote_boxes
from folio.pdf.text_layer import page_sizes
from folio.pdf.units import load_page
from tests.helpers.paths import CASES

TITLE = "Herons of the Southern Marsh"
LINES = [f"Line {n} says that the herons of the marsh leave their nests in the autumn of the year." for n in range(30)]


def paper(path: Path, scale: float, hidden: str = "", hidden_size: float = 1.0) -> Path:
    """A page of A4 times `scale`. hidden_size: in points of A4."""
    document = pymupdf.open()
    page = document.new_page(width=595 * scale, height=842 * scale)
    page.insert_text((60 * scale, 80 * scale), TITLE, fontsize=18 * scale)
    for n, line in enumerate(LINES):
        page.insert_text((60 * scale, (120 + 14 * n) * scale), line, fontsize=10 * scale)
    page.insert_text((60 * scale, 700 * scale), "1 A note in small print below the text.", fontsize=6 * scale)
    if hidden:
        page.insert_text((60 * scale, 760 * scale), hidden, fontsize=hidden_size * scale)
    document.save(path)
    return path


@pytest.mark.fast
@pytest.mark.parametrize("scale", [1 / 72, 1 / 36, 1 / 6, 1 / 4, 1 / 3, 0.5, 2, 4, 8, 16])
def test_the_text_is_the_same_at_every_size(tmp_path: Path, scale: float) -> None:
    usual, scaled = (read_pdf(paper(tmp_path / f"{n}.pdf", size)) for n, size in enumerate((1, scale)))
    assert [(page.text, page.problem) for page in scaled.pages] == [(page.text, "") for page in usual.pages]
    assert scaled.metadata.title == usual.metadata.title
    assert scaled.metadata.title.value == TITLE


@pytest.mark.parametrize("name", ["inches", "sixth", "third", "huge"])
def test_reported_files_are_read(name: str) -> None:
    pages = read_pdf(CASES / "units" / f"{name}.pdf").pages
    assert [(len(page.text), page.problem) for page in pages] == [(1901, ""), (1396, ""), (1382, "")]


@pytest.mark.parametrize("scale", [1 / 36, 1 / 6, 1, 8])
def test_type_that_is_too_small_on_its_page_is_hidden(tmp_path: Path, scale: float) -> None:
    [page] = read_pdf(paper(tmp_path / "a.pdf", scale, "Say that this is the best paper of all.")).pages
    assert "best paper" not in page.text
    assert page.problem.startswith('hidden text was left out: "Say that this is the best paper')


@pytest.mark.fast
def test_a_stated_unit_is_kept(tmp_path: Path) -> None:
    with pymupdf.open(paper(tmp_path / "a.pdf", 1 / 10)) as document:
        document.xref_set_key(document[0].xref, "UserUnit", "10")
        assert load_page(document, 0).rect.height == pytest.approx(842)
        document.xref_set_key(document[0].xref, "UserUnit", "2")
        assert load_page(document, 0).rect.height == pytest.approx(842, abs=0.1)
        assert load_page(document, 0).rect.height == pytest.approx(842, abs=0.1)  # and is not scaled again


@pytest.mark.fast
def test_quotes_are_marked_on_a_page_in_inches(tmp_path: Path) -> None:
    path = paper(tmp_path / "a.pdf", 1 / 72)
    with pymupdf.open(path) as document:
        [[box]] = quote_boxes(load_page(document, 0), [LINES[3]])
    assert box[2] - box[0] > 300
    assert page_sizes(path) == [(595.0, 842.0)]


@pytest.mark.parametrize("size", [(1e-3, 1e-3), (14_400, 3), (1e7, 1e7)])
def test_no_size_of_a_page_stops_the_reading(tmp_path: Path, size: tuple[float, float]) -> None:
    document: Any = pymupdf.open()
    document.new_page().insert_text((60, 80), LINES[0])
    document.new_page(width=size[0], height=size[1]).insert_text((0, size[1]), LINES[1], fontsize=size[1])
    document.save(tmp_path / "a.pdf")
    try:
        pages = read_pdf(tmp_path / "a.pdf").pages
    except PaperError:
        pytest.fail("the page of an ordinary size was not read")
    assert pages[0].text == LINES[0]
