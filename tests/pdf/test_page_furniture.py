"""Margin stamps, running heads and watermarks are no text; what only resembles them stays."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from folio.ingest.cleaning import clean
from folio.pdf.order import Box
from folio.pdf.reader import read_pdf
from tests.helpers.exhaustive import sample
from tests.helpers.paths import SHARED
from tests.helpers.pdfs import Spot, column, save

STAMP = "arXiv:1207.1925v1  [math.AG]  8 Jul 2012"


def draw(path: Path, pages: list[list[Spot]], upwards: dict[int, Spot] | None = None, turn: int = 90) -> Path:
    """A PDF of pages with these lines, and on some of them a line that runs up the page."""
    save(path, pages)
    document = pymupdf.open(path)
    for number, (x, y, text) in (upwards or {}).items():
        document[number].insert_text((x, y), text, fontsize=16, rotate=turn)
    document.saveIncr()
    document.close()
    return path


def body(number: int, lines: int = 30) -> list[Spot]:
    return column(90, 120, f"Page {'abcdefghijklmnopqrstuvwxyz'[number]}", lines)


def cleaned(path: Path) -> str:
    return clean(read_pdf(path).pages)[0]


def test_the_stamp_of_arxiv_names_the_paper_and_is_removed(tmp_path: Path) -> None:
    path = draw(tmp_path / "a.pdf", [body(0)], {0: (40, 600, STAMP)})
    parsed = read_pdf(path)
    assert parsed.arxiv == "1207.1925v1"
    assert "arXiv" not in parsed.pages[0].text
    assert parsed.pages[0].text == read_pdf(save(tmp_path / "b.pdf", [body(0)])).pages[0].text


@pytest.mark.parametrize(
    ("pages", "upwards", "kept"),
    [
        ([[*body(0), (90.0, 600.0, STAMP)]], {}, STAMP),  # a reference that reads like the stamp
        ([body(n) for n in range(4)], {1: (70, 600, "Mops / second")}, "Mops / second"),  # the label of a figure
    ],
)
def test_what_resembles_furniture_stays(
    tmp_path: Path, pages: list[list[Spot]], upwards: dict[int, Spot], kept: str
) -> None:
    assert kept in cleaned(draw(tmp_path / "a.pdf", pages, upwards))


@pytest.mark.parametrize("turn", [90, 270])
def test_a_vertical_margin_notice_on_many_pages_is_removed(tmp_path: Path, turn: int) -> None:
    notice = (560.0, 400.0, "Downloaded from journals.example.org by a library")
    path = draw(tmp_path / "a.pdf", [body(n) for n in range(9)], dict.fromkeys((0, 4, 8), notice), turn)
    assert cleaned(path) == cleaned(save(tmp_path / "b.pdf", [body(n) for n in range(9)]))


def test_the_heads_of_chapters_are_no_text(tmp_path: Path) -> None:
    chapters = ["CURLEWS"] * 4 + ["SNIPE"] * 4 + ["GODWITS"] * 4
    pages = [[(90.0, 60.0, f"{90 + n}  {head}"), *body(n)] for n, head in enumerate(chapters)]
    text = cleaned(save(tmp_path / "a.pdf", pages))
    assert "SNIPE" not in text
    assert "GODWITS" not in text
    assert text.count("CURLEWS") == 1  # the first page's may be the title
    assert all(f"Page {letter} line 00 tells" in text for letter in "abcdefghijkl")


def test_the_first_row_of_tables_is_no_running_head(tmp_path: Path) -> None:
    pages = [body(n) for n in range(12)]
    for n in (3, 4, 5):
        pages[n] = [(90.0, 108.0, "Species  Plots  Pairs"), *pages[n]]
    assert cleaned(save(tmp_path / "a.pdf", pages)).count("Species  Plots  Pairs") == 3


def test_pages_without_any_of_it_stay_as_they_are() -> None:
    from folio.pdf.order import edge_lines, repeated, without_lines, without_stamp

    blocks = [[Box(90, 120 + 12 * n, 300, 130 + 12 * n, f"Line {n} of a page of text")] for n in range(30)]
    assert without_stamp(blocks) == blocks
    assert repeated([edge_lines(blocks)] * 5) == [()] * 5
    assert without_lines("a\n\n b ", ("c",)) == "a\n\n b "


def test_the_stamp_is_removed_from_all_real_papers() -> None:
    names = ("General-self", "sparse-johnson", "unified-theory", "tropical", "shors", "copyA", "copyB")
    folders = (SHARED / "mixed", SHARED / "nasty" / "near_duplicate")
    stamped = [path for folder in folders for path in folder.glob("*.pdf") if any(name in path.name for name in names)]
    if not stamped:
        pytest.skip("the papers ../shared/mixed are not here")
    for path in sample(stamped):
        first = read_pdf(path).pages[0].text
        assert not any(line.startswith("arXiv:") and "[" in line for line in first.split("\n")), path.name
