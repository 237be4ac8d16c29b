"""Rendered pages with highlighted quotes: what is yellow and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pymupdf
import pytest

from folio.errors import PaperError
from folio.ingest.cleaning import clean
from folio.pdf.reader import read_pdf
from folio.pdf.render import page_png, quote_boxes
from tests.helpers.pdfs import column, row_by_row, save

DPI = 144  # two pixels per point
SCALE = 2
SENTENCE = "The fur of the otter is dense."

Pixels = npt.NDArray[np.uint8]
Yellow = npt.NDArray[np.bool_]  # height x width


def _pixels(png: bytes) -> Pixels:
    """Height x width x 3: red, green, blue."""
    picture = pymupdf.Pixmap(png)
    return np.frombuffer(picture.samples, np.uint8).reshape(picture.height, picture.width, 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A page that consists of the sentence."""
    return save(tmp_path / "a.pdf", [[(72.0, 130.0, SENTENCE)]])


def _yellow(path: Path, quotes: Sequence[str], page: int = 1) -> Yellow:
    """The yellow pixels of a page on which all quotes are found."""
    picture = page_png(path, page, quotes, dpi=DPI)
    assert picture.highlighted == (True,) * len(quotes)
    pixels = _pixels(picture.png).astype(int)
    return (pixels[..., 0] > 200) & (pixels[..., 1] > 180) & (pixels[..., 2] < 120)


def _share(yellow: Yellow, x0: float, y0: float, x1: float, y1: float) -> float:
    """The share of yellow pixels in a rectangle, in points of the page as shown."""
    return float(yellow[int(y0 * SCALE) : int(y1 * SCALE), int(x0 * SCALE) : int(x1 * SCALE)].mean())


def _refusal(path: Path, page: int = 1) -> PaperError:
    with pytest.raises(PaperError) as caught:
        page_png(path, page, [SENTENCE])
    assert caught.value.happened.endswith(".")
    assert caught.value.remedy.endswith(".")
    return caught.value


def test_only_the_words_are_highlighted(tmp_path: Path) -> None:
    lines = [(72.0, 100.0, "What comes before it."), (72.0, 130.0, SENTENCE), (72.0, 160.0, "What comes after it.")]
    path = save(tmp_path / "a.pdf", [[(72.0, 130.0, SENTENCE)], lines])
    yellow = _yellow(path, [SENTENCE], page=2)
    width = pymupdf.get_text_length(SENTENCE, fontsize=10)
    assert _share(yellow, 73, 121, 72 + width - 4, 131) > 0.6  # the rest is ink
    yellow[2 * 116 : 2 * 136, 2 * 71 : 2 * 210] = False
    assert not yellow.any()


def test_the_ink_stays_black_under_the_yellow(path: Path) -> None:
    plain, marked = (_pixels(page_png(path, 1, quotes, dpi=DPI).png) for quotes in ([], [SENTENCE]))
    ink = plain.max(axis=2) < 30
    assert ink.sum() > 200
    assert marked[ink].max() < 30
    assert _pixels(page_png(path, 1, []).png).shape == (1755, 1240, 3)  # 150 dots per inch


def test_white_words_on_a_dark_background_stay_lighter(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.draw_rect(page.rect, fill=(0.1, 0.1, 0.2))
    page.insert_text((72, 130), SENTENCE, color=(1, 1, 1))
    document.save(tmp_path / "a.pdf")
    pixels = _pixels(page_png(tmp_path / "a.pdf", 1, [SENTENCE], dpi=DPI).png).astype(int)
    marked = pixels[2 * 121 : 2 * 131, 2 * 75 : 2 * 200]
    assert np.median(marked[..., 0]) - np.median(marked[..., 2]) > 50  # a dark yellow
    assert marked.sum(axis=2).max() - np.median(marked.sum(axis=2)) > 200


def test_each_quote_is_reported_and_a_missing_one_highlights_nothing(path: Path) -> None:
    missing = "The fur of the badger is not as dense at all."
    assert page_png(path, 1, [missing, SENTENCE, "", "!"], dpi=DPI).highlighted == (False, True, False, False)
    assert page_png(path, 1, [missing], dpi=DPI).png == page_png(path, 1, [], dpi=DPI).png


def test_part_of_a_word_is_not_a_quote(tmp_path: Path) -> None:
    with pymupdf.open(save(tmp_path / "a.pdf", [[(72, 100, "The start of art.")]])) as document:
        (box,), nothing = quote_boxes(document[0], ["Art", "tar"])
    assert box[0] > 72 + pymupdf.get_text_length("The start of", fontsize=10)
    assert nothing == ()


def test_a_quote_over_two_lines_and_a_broken_word(tmp_path: Path) -> None:
    lines = [(72.0, 100.0, "It is said. The otter is extraordi-"), (72.0, 112.0, "narily fond of urchins. It is so.")]
    path = save(tmp_path / "a.pdf", [lines])
    text, _ = clean(read_pdf(path).pages)
    quote = "The otter is extraordinarily fond of urchins."
    assert quote in text
    with pymupdf.open(path) as document:
        ((first, second),) = quote_boxes(document[0], [quote])
    assert first[0] == pytest.approx(72 + pymupdf.get_text_length("It is said. ", fontsize=10), abs=0.5)
    assert first[1] < 95 < 101 < first[3] < 106
    assert second[0] == pytest.approx(72, abs=0.5)
    assert second[2] == pytest.approx(72 + pymupdf.get_text_length("narily fond of urchins.", fontsize=10), abs=0.5)


def test_ligatures_accents_and_capitals(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_htmlbox((72, 72, 500, 200), "<p>An o\ufb03cial \ufb01nding of Poincare\u0301, 10\u00b2 STRASSE.</p>")
    document.save(tmp_path / "a.pdf")
    assert _yellow(tmp_path / "a.pdf", ["An official finding of Poincaré", "10² Straße."]).any()


def test_a_quote_that_runs_from_column_to_column(tmp_path: Path) -> None:
    left, right = column(60, 100, "left", 40), column(320, 100, "right", 40)
    path = save(tmp_path / "a.pdf", [row_by_row(left, right)])
    text = read_pdf(path).pages[0].text
    quote = text[text.index("left line 38") : text.index("right line 02")].strip()
    with pymupdf.open(path) as document:
        (boxes,) = quote_boxes(document[0], [quote])
    assert [round(box[0]) for box in boxes] == [60, 60, 320, 320]
    assert [round(box[1]) for box in boxes] == [round(boxes[2][1]) + 12 * row for row in (38, 39, 0, 1)]


def test_a_quote_with_a_note_in_between(tmp_path: Path) -> None:
    spots = ["The otter eats urchins and clams", "RUNNING HEAD OF THE PAPER 7", "and crabs that it opens with a stone."]
    path = save(tmp_path / "a.pdf", [[(72.0, 100.0 + 20 * n, text) for n, text in enumerate(spots)]])
    yellow = _yellow(path, [f"{spots[0]} {spots[2]}"])
    assert [_share(yellow, 75, 92 + 20 * n, 180, 101 + 20 * n) > 0.5 for n in range(3)] == [True, False, True]


@pytest.mark.parametrize("angle", [0, 90, 180, 270])
@pytest.mark.parametrize("cropped", [False, True])
def test_rotated_and_cropped_pages(tmp_path: Path, angle: int, cropped: bool) -> None:
    document = pymupdf.open()
    page = document.new_page(width=400, height=300)
    for at, text in ((130, SENTENCE), (200, "Another sentence of the page."), (30, "Words above the crop box.")):
        page.insert_text((100, at), text)
    if cropped:
        page.set_cropbox(pymupdf.Rect(50, 60, 400, 280))
    page.set_rotation(angle)
    document.save(tmp_path / "a.pdf")
    plain = page_png(tmp_path / "a.pdf", 1, ["Words above the crop box."], dpi=DPI)
    assert plain.highlighted == (not cropped,)
    yellow = _yellow(tmp_path / "a.pdf", [SENTENCE])
    if angle in (90, 270):
        assert yellow.shape == ((700, 440) if cropped else (800, 600))
    upright = np.rot90(yellow, angle // 90)
    ink = np.rot90(_pixels(plain.png).max(axis=2) < 128, angle // 90)
    left, top = (50, 60) if cropped else (0, 0)
    x0, y0, x1, y1 = (SCALE * n for n in (99 - left, 115 - top, 260 - left, 136 - top))
    ys, xs = np.nonzero(upright)
    assert x0 <= xs.min() < xs.max() <= x1
    assert y0 <= ys.min() < ys.max() <= y1
    words = ink[y0:y1, x0:x1]
    assert words.any()
    assert np.nonzero(words)[1].min() >= xs.min() - x0 - 1


def test_a_huge_page_is_drawn_smaller(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page(width=14_000, height=14_000).insert_text((7000, 7000), SENTENCE, fontsize=400)
    document.save(tmp_path / "a.pdf")
    picture = page_png(tmp_path / "a.pdf", 1, [SENTENCE])
    pixels = _pixels(picture.png)
    assert picture.highlighted == (True,)
    assert 11_000_000 < pixels.shape[0] * pixels.shape[1] < 12_100_000
    assert (pixels[pixels.shape[0] // 2 - 60, pixels.shape[1] // 2 + 5] == (255, 232, 64)).all()


@pytest.mark.parametrize("page", [0, -1, 2])
def test_a_page_that_the_file_does_not_have(path: Path, page: int) -> None:
    assert f"has no page {page}" in _refusal(path, page).happened


@pytest.mark.parametrize(
    ("content", "happened"),
    [
        (None, "a.pdf cannot be opened: no such file or directory."),
        (b"", "damaged"),
        (b"Only words, and no PDF.", "damaged"),
        (b"<html><body>Not found</body></html>", "not a PDF"),
        (b"%PDF-1.7\nand nothing else", "damaged"),
        ("cut short", "a.pdf is damaged or cut short."),
        ("locked", "encrypted"),
    ],
)
def test_a_file_that_cannot_be_drawn_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes | str | None, happened: str
) -> None:
    path = tmp_path / "a.pdf"
    if content == "cut short":
        path.write_bytes(save(path, [column(72, 100, "body", 40)] * 20).read_bytes()[:400])
    elif content == "locked":
        document = pymupdf.open()
        document.new_page().insert_text((72, 72), SENTENCE)
        document.save(path, encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="owner", user_pw="secret")
    elif isinstance(content, bytes):
        path.write_bytes(content)
    assert happened in _refusal(path).happened
    assert capfd.readouterr() == ("", "")


def test_a_page_that_cannot_be_drawn(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_text((72, 72), SENTENCE)
    pages = int(document.xref_get_key(document.pdf_catalog(), "Pages")[1].split()[0])
    document.xref_set_key(pages, "Count", "5")
    document.save(tmp_path / "a.pdf")
    assert "Page 5 of a.pdf cannot be drawn: " in _refusal(tmp_path / "a.pdf", 5).happened
    assert page_png(tmp_path / "a.pdf", 1, [SENTENCE]).highlighted == (True,)
