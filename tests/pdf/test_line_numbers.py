"""The line numbers of manuscripts are no text; the numbers of tables, listings and poems are."""

from __future__ import annotations

import random
from pathlib import Path

import pymupdf
import pytest

from folio.ingest.cleaning import clean
from folio.pdf.reader import read_pdf
from tests.helpers.paths import CASES
from tests.helpers.pdfs import LEADING, Spot, row_by_row, save

WORDS = "the southern outer marsh heron carried nearly all early eggs before each wet season in a steady wind".split()


def prose(seed: int, x: float, top: float, lines: int, width: int = 70) -> list[Spot]:
    """Ragged lines of about so many characters."""
    chosen, text = random.Random(seed), ""
    spots = []
    for number in range(lines):
        while len(text) < width:
            text += chosen.choice(WORDS) + " "
        line, text = text[:width].rpartition(" ")[0], text[text.rindex(" ", 0, width) + 1 :]
        spots.append((x, top + LEADING * number, line))
    return spots


def numbers(lines: list[Spot], x: float, first: int, step: int = 1) -> list[Spot]:
    """The numbers of these lines, from `first`, one each `step` lines."""
    return [(x, y, str(n)) for n, (_, y, _) in enumerate(lines, first) if not n % step]


def cleaned(path: Path) -> str:
    return clean(read_pdf(path).pages)[0]


@pytest.mark.parametrize("name", ["left", "right", "both", "columns"])
def test_line_numbers_of_manuscripts_are_no_text(name: str) -> None:
    pages = read_pdf(CASES / "linenumbers" / f"{name}.pdf").pages
    lines = [line for page in pages for line in page.text.split("\n")]
    assert len(lines) > 80
    assert [line for line in lines if line.split(" ")[0].isdigit() or line.rpartition(" ")[2].isdigit()] == []


@pytest.mark.parametrize("place", [(60,), (545,), (60, 545)], ids=["left", "right", "both"])
@pytest.mark.parametrize("drawn", ["first", "last", "by row"])
@pytest.mark.parametrize("step", [1, 5])
@pytest.mark.parametrize("restart", [False, True], ids=["through", "each page"])
def test_line_numbers_go_wherever_they_are(
    tmp_path: Path, place: tuple[float, ...], drawn: str, step: int, restart: bool
) -> None:
    pages, plain = [], []
    for page, count in enumerate((46, 50, 12)):  # the last page is short
        lines = prose(page, 90, 80, count)
        marks = [numbers(lines, x, 1 if restart else 50 * page + 1, step) for x in place]
        if drawn == "by row" and step == 1:
            pages.append(row_by_row(*marks, lines) if page % 2 else row_by_row(lines, *marks))
        else:
            flat = [spot for column in marks for spot in column]
            pages.append([*flat, *lines] if drawn == "first" else [*lines, *flat])
        plain.append(lines)
    assert cleaned(save(tmp_path / "a.pdf", pages)) == cleaned(save(tmp_path / "b.pdf", plain))


def test_short_pages_of_a_manuscript_count(tmp_path: Path) -> None:
    """Of three pages only one shows by itself that its lines are numbered."""
    pages = [prose(page, 90, 80, count) for page, count in enumerate((9, 46, 7))]
    firsts = (1, 10, 56)
    marked = [[*lines, *numbers(lines, 545, first)] for lines, first in zip(pages, firsts, strict=True)]
    assert cleaned(save(tmp_path / "a.pdf", marked)) == cleaned(save(tmp_path / "b.pdf", pages))


def test_line_numbers_between_columns_go(tmp_path: Path) -> None:
    pages, plain = [], []
    for page in range(3):
        left, right = prose(page, 70, 80, 50, 42), prose(9 + page, 325, 80, 50, 42)
        pages.append([*left, *numbers(left, 50, 1), *right, *numbers(right, 305, 51)])
        plain.append([*left, *right])
    assert cleaned(save(tmp_path / "a.pdf", pages)) == cleaned(save(tmp_path / "b.pdf", plain))


def test_the_title_of_a_numbered_manuscript_has_no_number(tmp_path: Path) -> None:
    title = [(150.0, 70.0, "Curlews of the Lowland Marsh and their Eggs"), (230.0, 95.0, "Ada Penrose, Karl Brandt")]
    pages = []
    for page in range(3):
        lines = [*(title if not page else []), *prose(page, 90, 120, 45)]
        pages.append(row_by_row(numbers(lines, 60, 1), lines))
    metadata = read_pdf(save(tmp_path / "a.pdf", pages)).metadata
    assert metadata.title.value == "Curlews of the Lowland Marsh and their Eggs"


ROWS = [80 + LEADING * n for n in range(50)]
TABLE = [(90.0, y, str(n)) for n, y in enumerate(ROWS, 1)], [(120.0, y, "Corwick") for y in ROWS]
CODE = ["def count(eggs):", "  return sum(eggs)", "", "for nest in nests:", "  total += count(nest.eggs) + old", "end"]
LISTING = [(90.0, ROWS[n], CODE[n * n % 6] or "x = 1") for n in range(50)]
VERSE = ["When marsh birds wake and all the reeds are still", "I walk", "And count the eggs", "O curlew, call again"]
POEM = [(90.0, ROWS[n], VERSE[n % 4]) for n in range(50)]


@pytest.mark.parametrize(
    "page",
    [
        row_by_row(*TABLE, [(200, y, "34.1 6.4 52") for _, y, _ in TABLE[0]]),
        [*row_by_row(numbers(LISTING, 60, 1), LISTING)],
        [*POEM, *numbers(POEM, 400, 1, 5)],
    ],
    ids=["table", "listing", "poem"],
)
def test_numbers_of_the_text_stay(tmp_path: Path, page: list[Spot]) -> None:
    text = read_pdf(save(tmp_path / "a.pdf", [page] * 3)).pages[1].text
    assert all(number in text.split() for number in ("5", "10", "35", "50"))


def test_a_table_in_a_numbered_manuscript_keeps_its_numbers(tmp_path: Path) -> None:
    pages = []
    for page in range(3):
        lines = prose(page, 90, 80, 46)
        table = [(90.0, 80 + LEADING * (47 + n), f"{n + 1}  Corwick  {n + 30}") for n in range(3)]
        pages.append([*lines, *table, *numbers([*lines, *table], 60, 1)])
    lines_read = read_pdf(save(tmp_path / "a.pdf", pages)).pages[1].text.split("\n")
    assert "3  Corwick  32" in lines_read
    assert "49" not in lines_read


def test_the_numbers_of_one_listing_stay(tmp_path: Path) -> None:
    pages = [prose(n, 90, 80, 46) for n in range(4)]
    pages[1] = [*pages[1], *numbers(pages[1], 60, 1)]
    assert "17" in read_pdf(save(tmp_path / "a.pdf", pages)).pages[1].text.split()


def test_headings_of_a_manuscript_have_no_line_number(tmp_path: Path) -> None:
    """Nor is a line of prose a numbered heading."""
    titles = ["Introduction", "Materials and Methods", "Results", "Statistical Analysis", "Discussion", "Conclusions"]
    document = pymupdf.open()
    number = 0
    for page in (document.new_page() for _ in range(3)):
        for row, (x, y, line) in enumerate(prose(page.number, 90, 80, 40 if page.number < 2 else 9)):
            number += 1
            page.insert_text((60, y), str(number), fontsize=8)
            if row in (5, 20 if page.number < 2 else 7):
                page.insert_text((x, y), titles[2 * page.number + (row > 5)], fontsize=11, fontname="hebo")
            else:
                page.insert_text((x, y), line, fontsize=10)
    document.save(tmp_path / "a.pdf")
    assert [line.text for line in read_pdf(tmp_path / "a.pdf").headings.lines] == titles
