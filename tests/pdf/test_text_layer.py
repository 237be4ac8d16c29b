"""The text layer: each word of the library's text on the place where it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pymupdf
import pytest

from folio.errors import PaperError
from folio.ingest.cleaning import clean
from folio.pdf.letters import Letters, place
from folio.pdf.reader import read_pdf
from folio.pdf.text_layer import TextLayer, page_sizes, text_layer
from folio.text import fold
from tests.helpers.cpu_time import assert_linear
from tests.helpers.pdfs import column, encoded_page, row_by_row, save, scan


def _layer(path: Path) -> tuple[str, TextLayer]:
    """The text of a file of one page as in the library, and the layer of the page."""
    text, _ = clean(read_pdf(path).pages)
    return text, text_layer(path, 1, text, 0)


Letter = tuple[float, float, str]  # the centre of a letter on the page as shown, and the folded letter


def _letters(path: Path) -> list[Letter]:
    """The letters of the first page."""
    with pymupdf.open(path) as document:
        page = document[0]
        turned = page.rotation_matrix
        blocks = page.get_textpage(flags=pymupdf.TEXTFLAGS_TEXT).extractRAWDICT()["blocks"]
    lines = [line for block in blocks for line in block.get("lines", ())]
    letters = [char for line in lines for span in line["spans"] for char in span["chars"]]
    rects = [(pymupdf.Rect(char["bbox"]) * turned, char["c"]) for char in letters]
    return [((rect.x0 + rect.x1) / 2, (rect.y0 + rect.y1) / 2, fold(letter)) for rect, letter in rects]


def _in_box(letters: Sequence[Letter], box: Sequence[float]) -> str:
    """The letters whose centre is in a box of the page as shown."""
    return "".join(letter for x, y, letter in letters if box[0] <= x <= box[2] and box[1] <= y <= box[3])


def _check_words(path: Path) -> tuple[str, TextLayer]:
    """The layer of a file's only page. Every word with a letter is placed; its box has its letters and no others."""
    text, layer = _layer(path)
    assert layer.placed
    assert [word.start for word in layer.words] == sorted(word.start for word in layer.words)
    letters = _letters(path)
    for start, end, box in layer.words:
        assert _in_box(letters, box) == fold(text[start:end]), text[start:end]
    placed = "".join(text[word.start : word.end] for word in layer.words)
    assert fold(placed) == fold(text)
    return text, layer


def test_two_columns_drawn_row_by_row_come_in_the_order_of_the_text(tmp_path: Path) -> None:
    left, right = column(60, 100, "Left", 20), column(320, 100, "Right", 20)
    text, layer = _check_words(save(tmp_path / "a.pdf", [row_by_row(left, right)]))
    assert text.startswith("Left line 00")
    assert text.index("Left line 19") < text.index("Right line 00")
    assert {word.box[0] < 300 for word in layer.words[:100]} == {True}
    assert layer.words[-1].box[0] > 320


def test_a_broken_word_is_placed_on_both_lines(tmp_path: Path) -> None:
    lines = [
        (72.0, 100.0, "It is said that the otter is extraordi-"),
        (72.0, 112.0, "narily fond of urchins and crabs."),
    ]
    text, layer = _layer(save(tmp_path / "a.pdf", [lines]))
    at = text.index("extraordinarily")
    parts = [word for word in layer.words if at <= word.start < at + 15]
    assert [text[word.start : word.end] for word in parts] == ["extraordi", "narily"]
    first, second = (word.box for word in parts)
    assert first[1] < 95 < first[3] < 106 < second[3]
    assert second[0] == pytest.approx(72, abs=0.5)


def test_ligatures_and_accents(tmp_path: Path) -> None:
    document = pymupdf.open()
    words = (
        "An o\ufb03cial \ufb01nding of Poincare\u0301 on the \ufb02ow of wa\ufb04es, by \u00c5ngstr\u00f6m and others."
    )
    document.new_page().insert_htmlbox((72, 72, 500, 200), f"<p>{words}</p>")
    document.save(tmp_path / "a.pdf")
    text, _ = _check_words(tmp_path / "a.pdf")
    assert "official finding" in text


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_turned_page(tmp_path: Path, degrees: int) -> None:
    with pymupdf.open(save(tmp_path / "a.pdf", [column(60, 100, "Turned", 10)])) as document:
        document[0].set_rotation(degrees)
        document.save(tmp_path / "b.pdf")
    _, layer = _check_words(tmp_path / "b.pdf")
    assert layer.width == pytest.approx(595 if degrees == 180 else 842, abs=1)
    assert all(
        0 <= w.box[0] < w.box[2] <= layer.width and 0 <= w.box[1] < w.box[3] <= layer.height for w in layer.words
    )
    assert page_sizes(tmp_path / "b.pdf") == [(round(layer.width, 1), round(layer.height, 1))]


def test_a_cropped_page(tmp_path: Path) -> None:
    with pymupdf.open(save(tmp_path / "a.pdf", [column(160, 200, "Cropped", 10)])) as document:
        document[0].set_cropbox((100, 150, 500, 500))
        document.save(tmp_path / "b.pdf")
    _, layer = _check_words(tmp_path / "b.pdf")
    assert (layer.width, layer.height) == (400, 350)
    assert layer.words[0].box[0] == pytest.approx(60, abs=1)


def test_the_short_cells_of_a_table_drawn_by_columns(tmp_path: Path) -> None:
    rows = [("mass", "12", "7.5"), ("size", "3", "14"), ("age", "99", "0.2"), ("cost", "41", "8")]
    cells = [(72 + 90.0 * x, 300 + 14.0 * y, row[x]) for x in range(3) for y, row in enumerate(rows)]
    prose = column(72, 100, "Prose", 8)
    path = save(tmp_path / "a.pdf", [[*cells, *prose]])
    text, layer = _layer(path)
    placed = {text[word.start : word.end]: word.box for word in layer.words if word.box[1] > 250}
    assert set(placed) >= {"mass", "size", "age", "cost"}
    for word, box in placed.items():
        assert _in_box(_letters(path), box) == fold(word)


def test_signs_of_formulas_do_not_disturb_their_neighbours(tmp_path: Path) -> None:
    lines = [
        (72.0, 100.0, "The energy of the whole system is written as"),
        (72.0, 114.0, "E = m c 2 + ( p q ) / 2 - x"),
        (72.0, 128.0, "where the mass of the body is constant."),
    ]
    _check_words(save(tmp_path / "a.pdf", [lines]))


def test_text_from_the_right(tmp_path: Path) -> None:
    document = pymupdf.open()
    words = "לוטרת הים חיה בים ואוכלת קיפודי ים וסרטנים בכל יום ויום"
    document.new_page().insert_htmlbox((72, 72, 500, 200), f'<p dir="rtl">{words}</p>')
    document.save(tmp_path / "a.pdf")
    layer = text_layer(tmp_path / "a.pdf", 1, words, 0)
    assert len(layer.words) == len(words.split())
    assert layer.words[0].box[0] > layer.words[3].box[0]
    for start, end, box in layer.words:
        assert sorted(_in_box(_letters(tmp_path / "a.pdf"), box)) == sorted(fold(words[start:end]))


def test_text_without_spaces_is_placed_letter_by_letter(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_text((72, 100), "水獭生活在海里吃海胆和螃蟹", fontname="china-s", fontsize=12)
    document.save(tmp_path / "a.pdf")
    text, layer = _layer(tmp_path / "a.pdf")
    assert [text[word.start : word.end] for word in layer.words] == list(text.strip())
    assert layer.words[2].box[0] == pytest.approx(72 + 24, abs=2)


def test_a_page_read_by_ocr_has_no_places(tmp_path: Path) -> None:
    document = pymupdf.open()
    scan(document, ["Otters sleep on their backs."])
    encoded_page(document, ["Otters sleep on their backs."], 5)
    document.new_page()
    document.save(tmp_path / "a.pdf")
    for page in (1, 2):
        layer = text_layer(tmp_path / "a.pdf", page, "Otters sleep on their backs.", 40)
        assert (layer.placed, layer.words) == (False, ())
    assert not text_layer(tmp_path / "a.pdf", 3, "", 0).placed


def test_words_that_the_page_lacks_have_no_place(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pdf", [column(72, 100, "Prose", 4)])
    text, _ = _layer(path)
    layer = text_layer(path, 1, f"zebra {text} quagga", 0)
    assert layer.placed
    assert layer.words[0].start == 6
    assert layer.words[-1].end <= 6 + len(text)


def test_a_repeated_sentence_is_placed_once_each(tmp_path: Path) -> None:
    lines = [(72.0, 100 + 14.0 * n, "The same sentence stands here twice.") for n in range(2)]
    _, layer = _layer(save(tmp_path / "a.pdf", [lines]))
    first, second = layer.words[:6], layer.words[6:]
    assert {round(word.box[1]) for word in first}.isdisjoint(round(word.box[1]) for word in second)


def test_links_lead_to_pages_and_to_addresses_of_the_web(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page()
    document.new_page()
    page = document[0]
    places = [pymupdf.Rect(72, 100 + 20 * n, 200, 110 + 20 * n) for n in range(5)]
    page.insert_link({"kind": pymupdf.LINK_GOTO, "from": places[0], "page": 1})
    for box, uri in zip(
        places[1:],
        ["https://example.org/a?b=c", "javascript:alert(1)", "file:///etc/passwd", "mailto:a@b.org"],
        strict=True,
    ):
        page.insert_link({"kind": pymupdf.LINK_URI, "from": box, "uri": uri})
    page.set_rotation(90)
    document.save(tmp_path / "a.pdf")
    links = text_layer(tmp_path / "a.pdf", 1, "", 0).links
    assert [(link.page, link.uri) for link in links] == [
        (2, ""),
        (0, "https://example.org/a?b=c"),
        (0, "mailto:a@b.org"),
    ]
    with pymupdf.open(tmp_path / "a.pdf") as reopened:
        shown = places[0] * reopened[0].rotation_matrix
    assert links[0].box == pytest.approx(tuple(shown), abs=0.5)


def test_a_missing_file_and_a_missing_page(tmp_path: Path) -> None:
    with pytest.raises(PaperError, match="cannot be opened"):
        text_layer(tmp_path / "a.pdf", 1, "", 0)
    with pytest.raises(PaperError, match="has no page 2"):
        text_layer(save(tmp_path / "a.pdf", [column(72, 100, "Prose", 4)]), 2, "", 0)


@pytest.mark.parametrize(("text", "drawn"), [("ab", "aab"), ("ab", "b"), ("a", "a"), ("abcdefgh", "abcdefgi")])
def test_repeated_letters_take_linear_time(text: str, drawn: str) -> None:
    def work(size: int) -> object:
        word = drawn * size
        return place(text * size, Letters(word, [0, len(word)], [(0, 0, 1, 1)], [0], [0, len(word)]))

    assert_linear(work, 16_000)
