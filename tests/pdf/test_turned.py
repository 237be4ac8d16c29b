"""Pages, tables and columns of letters that are turned, read as if they were level."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from folio.ingest.cleaning import clean
from folio.pdf.reader import read_pdf
from folio.pdf.text_layer import text_layer
from tests.helpers.paths import CASES
from tests.helpers.pdfs import LEADING, Spot, column, row_by_row

WIDTH, HEIGHT = 612.0, 792.0
CELLS = (
    ("Station", "Depth m", "Salinity", "Temp C", "Taxa"),
    ("Arnholm", "12", "31.4", "8.2", "41"),
    ("Bexley", "27", "33.0", "7.9", "38"),
    ("Corwick", "55", "34.1", "6.4", "52"),
    ("Dunmere", "80", "34.8", "5.1", "29"),
)
ROWS = ["  ".join(row) for row in CELLS]


def table(x: float, top: float, by: str, leading: float = 18) -> list[Spot]:
    spots = [
        [(x + 80.0 * column, top + leading * row, cell) for column, cell in enumerate(cells)]
        for row, cells in enumerate(CELLS)
    ]
    return [spot for row in (spots if by == "row" else zip(*spots, strict=True)) for spot in row]


def draw(page: pymupdf.Page, spots: list[Spot], quarters: int = 0, size: float = 10) -> None:
    """Draw lines that are level once the page is turned clockwise by so many quarter turns."""
    for x, y, text in spots:
        point = ((x, y), (y, HEIGHT - x), (WIDTH - x, HEIGHT - y), (WIDTH - y, x))[quarters]
        page.insert_text(point, text, fontsize=size, rotate=(0, 90, 180, 270)[quarters])


def save(path: Path, *pages: list[tuple[list[Spot], int]], rotate: int = 0) -> Path:
    document = pymupdf.open()
    for parts in pages:
        page = document.new_page(width=WIDTH, height=HEIGHT)
        for spots, quarters in parts:
            draw(page, spots, quarters)
        page.set_rotation(rotate)
    document.save(path)
    document.close()
    return path


@pytest.mark.parametrize("name", ["rotated_row", "turn90_col", "turn90_row"])
def test_sideways_tables_keep_their_rows(name: str) -> None:
    text = read_pdf(CASES / "sideways" / f"{name}.pdf").pages[1].text
    assert "\nStation  Depth m  Salinity  Temp C  Taxa\nArnholm  12  31.4  8.2  41\n" in text
    assert "\nCorwick  55  34.1  6.4  52\n" in text
    # Prose below the table is a paragraph.
    assert "at every station of the survey.\nTaxa were counted in three cores" in text


def test_turned_columns_of_prose_are_read_one_by_one() -> None:
    text = read_pdf(CASES / "sideprose" / "rotated.pdf").pages[1].text
    assert "survey. Each lowland plot absorbed nearly all dissolved iron between the\ntwo storms. The southern" in text


@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize("by", ["row", "column"])
@pytest.mark.parametrize("rotate", [0, 90, 270])
def test_the_direction_of_the_text_decides(tmp_path: Path, quarters: int, by: str, rotate: int) -> None:
    spots = [(90.0, 90.0, "Table 3. Conditions at the stations of the survey."), *table(90, 130, by)]
    path = save(tmp_path / "a.pdf", [(spots, quarters)], rotate=rotate)
    assert read_pdf(path).pages[0].text.split("\n") == [spots[0][2], "", *ROWS]


@pytest.mark.parametrize("quarters", [1, 3])
@pytest.mark.parametrize("drawn", ["by row", "by column"])
def test_columns_of_turned_prose(tmp_path: Path, quarters: int, drawn: str) -> None:
    left, right = column(90, 100, "Left", 30), column(420, 100, "Right", 30)
    left[-1] = *left[-1][:2], "so the matter of it was told on the left."  # a sentence that ends with its column
    spots = row_by_row(left, right) if drawn == "by row" else [*left, *right]
    text = read_pdf(save(tmp_path / "a.pdf", [(spots, quarters)])).pages[0].text
    assert [line for line in text.split("\n") if line] == [line for *_, line in (*left, *right)]
    assert text.count("\n\n") == 1  # a paragraph each


def test_an_upright_head_and_foot_are_those_of_the_turned_page(tmp_path: Path) -> None:
    head = [(90.0, 40.0, "Shelf Survey of the Westmere Coast")]
    pages = [
        [(head, 0), (column(90, 90, f"Page {page}", 40), 0), ([(300.0, 760.0, str(page + 1))], 0)] for page in range(4)
    ]
    pages[2] = [(head, 0), (table(90, 130, "row") + column(90, 300, "Below", 8), 1), ([(300.0, 760.0, "3")], 0)]
    parsed = read_pdf(save(tmp_path / "a.pdf", *pages))
    lines = parsed.pages[2].text.split("\n")
    assert (lines[0], lines[-1]) == (head[0][2], "3")
    text, places = clean(parsed.pages)
    page = text[places.starts[2] : places.starts[3]].strip()
    assert page.startswith(ROWS[0])
    assert page.endswith("Below line 07 tells of the matter at some length")


@pytest.mark.parametrize("quarters", [1, 3])
@pytest.mark.parametrize("by", ["row", "column"])
def test_a_sideways_table_on_an_upright_page_is_one_block(tmp_path: Path, quarters: int, by: str) -> None:
    above, below = column(90, 60, "Above", 12), column(90, 600, "Below", 12)
    above[-1] = *above[-1][:2], "so the matter of it was told above the table."  # its sentence does not go on below
    spots = [(120.0, 120.0, "Table 3. Conditions at the stations of the survey."), *table(120, 150, by)]
    if quarters == 1:  # level at the same place of the page
        spots = [(HEIGHT - 580 + x - 120, y, text) for x, y, text in spots]
    else:
        spots = [(220 + x - 120, y, text) for x, y, text in spots]
    path = save(tmp_path / "a.pdf", [(above, 0), (spots, quarters), (below, 0)])
    text = read_pdf(path).pages[0].text
    assert text.split("\n\n") == [
        "\n".join(line for *_, line in above),
        spots[0][2],
        "\n".join(ROWS),
        "\n".join(line for *_, line in below),
    ]


def test_the_labels_of_figures_stay_where_they_were_drawn(tmp_path: Path) -> None:
    axes = [
        [(70.0, 300.0, "Accuracy in percent of all")],
        [(70.0, 500.0, "Loss in nats of a token each")],
        [(320.0, 300.0, "Speed in tokens of a second")],
        [(320.0, 500.0, "Memory in gigabytes of a card")],
    ]
    parts = [(column(90, 60, "Above", 6), 0)]
    for (x, y, text), in axes:
        parts.append(([(HEIGHT - y, x, text)], 1))
        parts.append(([(x + 30, y - 100 + 10 * tick, f"{tick}0") for tick in range(8)], 0))
    text = read_pdf(save(tmp_path / "a.pdf", parts)).pages[0].text
    assert [text.index(label) for ((_, _, label),) in axes] == sorted(text.index(label) for ((_, _, label),) in axes)
    assert all(f"\n{label}\n" in text for ((_, _, label),) in axes)


def test_words_of_turned_pages_are_placed(tmp_path: Path) -> None:
    for quarters, rotate in ((1, 0), (1, 90), (3, 270), (0, 0)):
        path = save(tmp_path / "a.pdf", [(table(90, 130, "column"), quarters)], rotate=rotate)
        page = read_pdf(path).pages[0]
        layer = text_layer(path, 1, page.text, 0)
        assert layer.placed
        words = {page.text[word.start : word.end]: word.box for word in layer.words}
        assert {"Corwick", "34.1", "Salinity"} <= words.keys()
        x0, y0, x1, y1 = words["Corwick"]
        assert 0 <= x0 < x1 <= layer.width
        assert 0 <= y0 < y1 <= layer.height


VERTICAL = ["春の干潟では渡り鳥の数が", "毎年すこしずつ減っている", "ことが知られている。"]


def test_vertical_writing_is_read_by_lines() -> None:
    path = CASES / "vertical" / "a.pdf"
    (page,) = read_pdf(path).pages
    lines = page.text.split("\n")
    assert len(lines) == 9
    assert lines[0].startswith("春の干潟では渡り鳥の数が毎年すこしずつ減って")
    assert all(len(line) == 30 for line in lines[:-1])
    assert text_layer(path, 1, page.text, 0).placed


VERTICAL_FONT = """<</Type /Font /Subtype /Type0 /BaseFont /HeiseiMin-W3-UniJIS-UCS2-V /Encoding /UniJIS-UCS2-V
/DescendantFonts [<</Type /Font /Subtype /CIDFontType0 /BaseFont /HeiseiMin-W3 /DW 1000
/CIDSystemInfo <</Registry (Adobe) /Ordering (Japan1) /Supplement 2>>
/FontDescriptor <</Type /FontDescriptor /FontName /HeiseiMin-W3 /Flags 6 /FontBBox [0 -200 1000 900] /ItalicAngle 0
/Ascent 800 /Descent -200 /CapHeight 700 /StemV 80>>>>]>>"""


def save_vertical(path: Path, columns: list[Spot], level: tuple[Spot, ...] = (), size: int = 12) -> Path:
    """A page with columns of vertical writing, from their upper ends, and level lines."""
    document = pymupdf.open()
    page = document.new_page(width=WIDTH, height=HEIGHT)
    fonts = [document.get_new_xref() for _ in range(2)]
    document.update_object(fonts[0], VERTICAL_FONT)
    document.update_object(fonts[1], "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>")
    document.xref_set_key(page.xref, "Resources", f"<</Font <</FV {fonts[0]} 0 R /FH {fonts[1]} 0 R>>>>")
    texts = [(f"<{text.encode('utf-16-be').hex()}>", "FV", x, y) for x, y, text in columns]
    texts += [(f"({text})", "FH", x, y) for x, y, text in level]
    stream = document.get_new_xref()
    document.update_object(stream, "<<>>")
    drawn = (f"BT /{font} {size} Tf 1 0 0 1 {x} {HEIGHT - y} Tm {text} Tj ET" for text, font, x, y in texts)
    document.update_stream(stream, "\n".join(drawn).encode())
    document.xref_set_key(page.xref, "Contents", f"{stream} 0 R")
    document.save(path)
    document.close()
    return path


def vertical(top: float, lines: list[str]) -> list[Spot]:
    return [(560.0 - 22 * number, top, line) for number, line in enumerate(lines)]


@pytest.mark.parametrize("drawn", ["right to left", "left to right"])
def test_columns_are_read_from_right_to_left(tmp_path: Path, drawn: str) -> None:
    columns = vertical(60, VERTICAL)
    path = save_vertical(tmp_path / "a.pdf", columns if drawn == "right to left" else columns[::-1])
    assert read_pdf(path).pages[0].text.split("\n") == VERTICAL


def test_no_letter_of_a_column_counts_as_hidden_and_words_are_placed_on_their_ink(tmp_path: Path) -> None:
    lines = ["この論文ではBERTモデルとLSTMを", "比べ、F1値で3.2点の差があった。"]
    path = save_vertical(tmp_path / "a.pdf", [(x, y, text) for x, y, text in vertical(60, lines)])
    (page,) = read_pdf(path).pages
    assert (page.text.split("\n"), page.problem) == (lines, "")
    layer = text_layer(path, 1, page.text, 0)
    (first,) = (word.box for word in layer.words if word.start == 0)
    assert first == pytest.approx((554, 60, 566, 72), abs=1)


def test_two_tiers_of_vertical_writing(tmp_path: Path) -> None:
    path = save_vertical(tmp_path / "a.pdf", [*vertical(60, VERTICAL), *vertical(420, VERTICAL[::-1])])
    assert read_pdf(path).pages[0].text.split("\n") == [*VERTICAL, "", *VERTICAL[::-1]]


def test_vertical_writing_on_a_page_of_level_text(tmp_path: Path) -> None:
    columns = [
        "春の干潟では渡り鳥の数が毎年すこしずつ減って",
        "いることが知られている。本研究では三つの湾で",
        "十年のあいだ観察を続け、その原因を調べた。水",
    ]
    abstract = column(60, 60, "Abstract", 9)
    text = read_pdf(save_vertical(tmp_path / "a.pdf", vertical(300, columns), tuple(abstract))).pages[0].text
    assert text.split("\n\n") == ["\n".join(columns), "\n".join(line for *_, line in abstract)]


def test_letters_set_one_below_the_other_are_vertical_writing(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    for number, line in enumerate(VERTICAL):
        for row, letter in enumerate(line):
            page.insert_text((480 - 22 * number, 100 + 12.5 * row), letter, fontname="japan", fontsize=12)
    document.save(tmp_path / "a.pdf")
    assert read_pdf(tmp_path / "a.pdf").pages[0].text.split("\n") == VERTICAL


def test_raised_digits_of_turned_text_are_raised(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=WIDTH, height=HEIGHT)
    for line in range(20):
        draw(page, [(90.0, 100 + LEADING * line, "The array of the survey shed 10")], 1)
        x = 90 + pymupdf.get_text_length("The array of the survey shed 10", fontsize=10)
        draw(page, [(x, 96 + LEADING * line, "9")], 1, size=6)
        draw(page, [(x + 6, 100 + LEADING * line, "grains of sand")], 1)
    document.save(tmp_path / "a.pdf")
    assert "shed 10⁹ grains" in read_pdf(tmp_path / "a.pdf").pages[0].text
