"""Words of Type 3 and bitmap fonts whose sizes or widths say nothing are found by the gaps between their glyphs."""

from __future__ import annotations

import random
import string
import time
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from folio.errors import PaperLimit
from folio.pdf.reader import read_pdf
from folio.pdf.shredded import in_words
from tests.helpers.pdfs import save

WORDS = (
    "the survey of the harbour began in spring and was repeated by two crews of the station in each of four years"
    " while salinity fell from north to south after heavy rain upon the southern marsh"
).split()
STEP, LEADING = 5.0, 14.0


def lines(columns: int = 1, seed: int = 1) -> list[tuple[float, float, str]]:
    """Words in columns: x, y and text of each line."""
    chosen = random.Random(seed)
    placed = []
    for column in range(columns):
        for row in range(40):
            text = chosen.choice(WORDS)
            while len(text) < 80 // columns - 6:
                text += f" {chosen.choice(WORDS)}"
            placed.append((60 + 270.0 * column, 780 - LEADING * row, text))
    return placed


def bitmap_paper(
    path: Path, placed: list[tuple[float, float, str]], *, size: float = 0.1, unit: float = 1.0, wide: float = 1.0,
    jitter: float = 0.05, by_word: bool = False, turned_by: int = 0,
) -> Path:  # fmt: skip
    """A page of a Type 3 font, whose glyphs are boxes, drawn one by one or word by word as old programs do.

    size: of the font, as the file states it. unit: of its glyphs. wide: the width that it states, in true widths.
    turned_by: how many letters on the names of its glyphs are.
    """
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)

    def stream(content: str) -> int:
        number = int(document.get_new_xref())
        document.update_object(number, "<<>>")
        document.update_stream(number, content.encode())
        return number

    width = STEP / size / unit
    drawn = f"{width * wide:.3f} 0 0 0 {width:.3f} {1.4 * width:.3f} d1 0 0 {0.9 * width:.3f} {width:.3f} re f"
    letters = string.ascii_lowercase
    names = letters[turned_by:] + letters[:turned_by]
    glyphs = " ".join(f"/{name} {stream(drawn)} 0 R" for name in names)
    font = document.get_new_xref()
    document.update_object(
        font,
        f"<</Type/Font/Subtype/Type3/FontBBox[0 0 {width:.2f} {1.4 * width:.2f}]/FontMatrix[{unit} 0 0 {unit} 0 0]"
        f"/CharProcs<<{glyphs}>>/Encoding<</Type/Encoding/Differences[97 /{' /'.join(names)}]>>"
        f"/FirstChar 97/LastChar 122/Widths[{f'{width * wide:.3f} ' * 26}]>>",
    )
    noise = random.Random(3)
    content = ["BT", f"/F1 {size} Tf"]
    for left, y, text in placed:
        x = left
        for word in text.split():
            for piece in [word] if by_word else word:
                content.append(f"1 0 0 1 {x + noise.uniform(-jitter, jitter):.3f} {y:.3f} Tm ({piece}) Tj")
                x += STEP * len(piece)
            x += 0.6 * STEP
    document.xref_set_key(page.xref, "Resources", f"<</Font<</F1 {font} 0 R>>>>")
    document.xref_set_key(page.xref, "Contents", f"{stream(chr(10).join([*content, 'ET']))} 0 R")
    document.save(path)
    document.close()
    return path


def words_of(path: Path) -> list[str]:
    [page] = read_pdf(path).pages
    assert page.problem == ""
    return page.text.split()


@pytest.mark.parametrize(
    "font",
    [
        {"size": 0.1, "unit": 1.0}, {"size": 0.1, "unit": 1.0, "jitter": 0.3}, {"size": 0.01, "unit": 1.0},
        {"size": 1.0, "unit": 0.1, "jitter": 0.3}, {"size": 0.1, "unit": 1.0, "by_word": True},
        {"size": 10.0, "unit": 0.01, "wide": 0.2}, {"size": 10.0, "unit": 0.01, "wide": 3.0},
        {"size": 10.0, "unit": 0.01},  # as it should be
    ],
)  # fmt: skip
@pytest.mark.parametrize("columns", [1, 2])
def test_words_are_found_by_their_gaps(tmp_path: Path, font: dict[str, Any], columns: int) -> None:
    placed = lines(columns)
    expected = [word for _, _, text in placed for word in text.split()]
    assert words_of(bitmap_paper(tmp_path / "a.pdf", placed, **font)) == expected


def test_a_size_that_is_far_too_large_runs_no_words_together(tmp_path: Path) -> None:
    placed = lines()
    found = words_of(bitmap_paper(tmp_path / "a.pdf", placed, size=60.0, unit=1 / 600))
    expected = [word for _, _, text in placed for word in text.split()]
    # MuPDF drops a letter that is close to the same one before, in type sizes.
    assert len(found) == len(expected)
    assert sum(one == other for one, other in zip(found, expected, strict=True)) > 0.8 * len(expected)


def test_a_page_that_no_gaps_make_legible_is_refused(tmp_path: Path) -> None:
    path = bitmap_paper(tmp_path / "a.pdf", lines(), turned_by=13)
    with pytest.raises(PaperLimit, match="encoded so that no program can read it"):
        read_pdf(path)


def test_letters_that_are_spaced_on_purpose_stay(tmp_path: Path) -> None:
    places = [(column, row) for column in range(12) for row in range(40)]
    matrix = [(70.0 + 40 * column, 80.0 + 16 * row, "abcdxyz"[(row + column) % 7]) for column, row in places]
    text = read_pdf(save(tmp_path / "a.pdf", [matrix])).pages[0].text
    assert sorted(text.split()) == sorted(letter for _, _, letter in matrix)


def test_ordinary_pages_are_not_extracted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("folio.pdf.visible.raw_blocks", lambda _: pytest.fail("extracted again"))
    page = [(60.0, 80 + 14.0 * row, f"A line {row} of the report.") for row in range(40)]
    assert read_pdf(save(tmp_path / "a.pdf", [page])).pages[0].text.count("of the report") == 40


def test_thousands_of_glyphs_in_one_row_take_no_time(tmp_path: Path) -> None:
    placed = [(30.0 * n, 400.0, "a") for n in range(20_000)]
    path = bitmap_paper(tmp_path / "a.pdf", placed)
    begun = time.process_time()
    with pymupdf.open(path) as document:
        blocks = document[0].get_textpage(flags=0).extractRAWDICT()["blocks"]
        in_words([{**block, "lines": _with_text(block["lines"])} for block in blocks], lambda: blocks)
    assert time.process_time() - begun < 6


def _with_text(lines: list[Any]) -> list[Any]:
    return [
        {**line, "spans": [{**span, "text": "".join(c["c"] for c in span["chars"])} for span in line["spans"]]}
        for line in lines
    ]


def test_a_line_struck_twice_is_read_once_and_no_other_letter_is_lost(tmp_path: Path) -> None:
    placed = lines()
    title = 60.0, 800.0, "survey of the harbour"
    struck = [(title[0] + 0.4, *title[1:]), *placed]
    expected = [word for _, _, text in [title, *placed] for word in text.split()]
    assert words_of(bitmap_paper(tmp_path / "a.pdf", [title, *struck], jitter=0.0)) == expected
