"""Files inside a PDF are named, and said not to be read."""

from __future__ import annotations

from typing import Any

import pymupdf
import pytest

from folio.errors import PaperError
from folio.pdf.reader import read_content
from tests.helpers.paths import CASES


def _with_files(names: list[str], *, portfolio: bool, words: int = 12, pages: int = 1) -> bytes:
    document: Any = pymupdf.open()
    for _ in range(pages):
        page = document.new_page()
        page.insert_textbox(pymupdf.Rect(72, 72, 540, 770), " ".join(f"word{n}" for n in range(words)), fontsize=8)
    for name in names:
        document.embfile_add(name, b"%PDF-1.4 something", filename=name, ufilename=name)
    if portfolio:
        document.xref_set_key(document.pdf_catalog(), "Collection", "<</Type/Collection/View/D>>")
    return bytes(document.tobytes())


def test_a_portfolio_is_refused_with_what_is_inside() -> None:
    for content in (
        (CASES / "portfolio" / "proceedings.pdf").read_bytes(),
        _with_files(["one.pdf", "two.pdf"], portfolio=True),
    ):
        with pytest.raises(PaperError) as caught:
            read_content(content, "a.pdf")
        assert caught.value.happened == (
            "The file is a portfolio, and the files inside it are not read: one.pdf, two.pdf."
        )
        assert "save them into the folder" in caught.value.remedy


@pytest.mark.parametrize(("words", "pages"), [(300, 1), (12, 4)])
def test_a_portfolio_with_pages_of_its_own_is_read(words: int, pages: int) -> None:
    parsed = read_content(_with_files(["a.docx", "b.PDF"], portfolio=True, words=words, pages=pages), "a.pdf")
    assert parsed.problems == ("to read the files inside it, save them into the folder: a.docx, b.PDF",)
    assert len(parsed.pages) == pages


def test_attached_papers_are_named_but_not_other_attachments() -> None:
    attached = read_content(_with_files(["data.csv", "supplement.pdf"], portfolio=False), "a.pdf")
    assert attached.problems == ("to read the files inside it, save them into the folder: supplement.pdf",)
    assert read_content(_with_files(["data.csv"], portfolio=False), "a.pdf").problems == ()


def test_many_files_and_long_names_are_shortened() -> None:
    names = [f"paper{number:03d}.pdf" for number in range(250)] + ["\u202eevil\n" + "x" * 300 + ".pdf"]
    (problem,) = read_content(_with_files(names, portfolio=False), "a.pdf").problems
    assert problem.endswith("paper009.pdf and 241 more")
    (problem,) = read_content(_with_files(names[-1:], portfolio=True, pages=2), "a.pdf").problems
    assert len(problem) < 150
    assert problem.isprintable()
