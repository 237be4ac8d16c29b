"""The rows of tables, however they were drawn; what only looks like columns of a table stays apart."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from folio.pdf.order import Box, page_text
from folio.pdf.reader import read_pdf
from folio.pdf.tables import in_rows
from tests.helpers.paths import CASES
from tests.helpers.pdfs import LEADING, Spot, column, row_by_row, save

pytestmark = pytest.mark.fast


def boxes(x: float, top: float, texts: list[str], leading: float = 14, right: bool = False) -> list[Box]:
    """A column of cells whose left edge, or right one, is at x."""
    lefts = [x - 5.0 * len(text) if right else x for text in texts]
    places = enumerate(zip(lefts, texts, strict=True))
    return [Box(x0, top + leading * n, x0 + 5.0 * len(text), top + leading * n + 12, text) for n, (x0, text) in places]


STATIONS = ["Station", "Arnholm", "Bexley", "Corwick"]
DEPTHS = ["Depth m", "12", "27", "55"]
SALINITY = ["Salinity", "31.4", "33.0", "34.1"]
ROWS = "Station  Depth m  Salinity\nArnholm  12  31.4\nBexley  27  33.0\nCorwick  55  34.1"


def read(*blocks: list[Box]) -> str:
    return page_text(in_rows(blocks))


@pytest.mark.parametrize("name", ["row", "col"])
def test_upright_tables(name: str) -> None:
    text = read_pdf(CASES / "upright" / f"{name}.pdf").pages[1].text
    assert "\n\nStation  Depth m  Salinity  Temp C  Taxa\nArnholm  12  31.4  8.2  41\n" in text
    assert "\nEskdale  96  35.2  4.7  33\n\n" in text


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("leading", [13, 18, 27])
@pytest.mark.parametrize("in_one_block", [False, True])
def test_tables_drawn_by_column(right: bool, leading: float, in_one_block: bool) -> None:
    columns = [
        boxes(90, 100, STATIONS, leading),
        boxes(230 if right else 190, 100, DEPTHS, leading, right),
        boxes(340 if right else 300, 100, SALINITY, leading, right),
    ]
    caption = boxes(90, 70, ["Table 3. Conditions at the stations of the survey."])
    note = boxes(90, 120 + 4 * leading, ["Salinity was measured with a bottle sampler at every station."])
    blocks = columns if in_one_block else [[box] for cells in columns for box in cells]
    assert read(caption, *blocks, note) == f"{caption[0].text}\n\n{ROWS}\n\n{note[0].text}"


def test_text_in_the_block_of_a_column_stays_outside() -> None:
    above = boxes(90, 60, ["Conditions at the stations, which are", "given from the north to the south"])
    below = boxes(90, 160, ["Salinity was measured with a bottle sampler at every one of these stations."])
    cells = [boxes(x, 100, texts) for x, texts in ((90, STATIONS), (190, DEPTHS), (300, SALINITY))]
    text = read(above + cells[0], cells[1], cells[2] + below)
    assert text == "\n\n".join(["\n".join(box.text for box in above), ROWS, below[0].text])


def test_empty_cells_and_a_missing_head() -> None:
    stations = boxes(90, 114, STATIONS[1:])
    depths = [box for box in boxes(190, 100, DEPTHS) if box.text != "27"]
    assert read(stations, depths, boxes(300, 100, SALINITY)) == (
        "Depth m  Salinity\nArnholm  12  31.4\nBexley  33.0\nCorwick  55  34.1"
    )


def test_columns_of_prose_are_no_table(tmp_path: Path) -> None:
    left, right = column(72, 100, "Left", 40), column(320, 100, "Right", 40)
    lines = read_pdf(save(tmp_path / "a.pdf", [[*left, *right]])).pages[0].text.split("\n")
    assert [line for line in lines if line] == [text for *_, text in (*left, *right)]


@pytest.mark.parametrize("columns", [2, 3])
def test_the_columns_of_an_index_are_no_table(tmp_path: Path, columns: int) -> None:
    chosen = random.Random(3)
    words = ["bottle", "curlew", "depth", "eggs", "marsh heron", "salinity", "taxa"]
    page: list[Spot] = [
        (72 + 160.0 * n, 100 + LEADING * row, f"{chosen.choice(words)}, {chosen.randint(2, 300)}")
        for n in range(columns)
        for row in range(45)
    ]
    lines = read_pdf(save(tmp_path / "a.pdf", [page])).pages[0].text.split("\n")
    assert [line for line in lines if line] == [text for *_, text in page]


def test_pieces_of_formulas_are_no_table() -> None:
    """As drawn: numerators, then denominators, close together."""
    upper = [Box(100 + 40 * n, 100, 110 + 40 * n, 112, text) for n, text in enumerate(("d", "2", "3"))]
    lower = [Box(100 + 40 * n, 107, 110 + 40 * n, 119, text) for n, text in enumerate(("4", "5", "6"))]
    blocks = [[first, second] for first, second in zip(upper, lower, strict=True)]
    assert in_rows(blocks) is blocks


def test_rows_far_apart_are_one_table() -> None:
    cells = [boxes(x, 100, texts, 24) for x, texts in ((90, STATIONS), (190, DEPTHS), (300, SALINITY))]
    assert read(*[list(row) for row in zip(*cells, strict=True)]) == ROWS


@pytest.mark.parametrize(
    ("above", "below"),
    [
        (["4.3", "Error analysis"], ["Corwick.", "We show the confusion matrices of the models"]),
        (["[KT95]", "Kaplan and Tarjan. Persistent lists with catenation."], ["[KT96]", "Kaplan and Tarjan. Lists."]),
        (["m > k log n", "(8.10)"], ["s > log n", "(8.11)"]),
    ],
    ids=["heading", "references", "equations"],
)
def test_pieces_with_numbers_are_no_rows(above: list[str], below: list[str]) -> None:
    blocks = [
        [Box(x, y, x + 4 * len(text), y + 12, text) for x, text in zip((90, 220), texts, strict=True)]
        for y, texts in ((100, above), (120, below))
    ]
    assert in_rows(blocks) is blocks


def test_names_between_two_rows_of_a_head_are_those_of_columns() -> None:
    def name(x: float, y: float, text: str) -> Box:
        return Box(x, y, x + 5 * len(text), y + 10, text)

    head = [name(80, 106, "Model"), name(170, 100, "Seal"), name(300, 106, "Otter")]
    below = [name(140, 112, "1 year"), name(185, 112, "2 years"), name(235, 112, "3 years")]
    row = [name(x, 130, text) for x, text in ((80, "Tanh"), (140, "1.5"), (185, "2.5"), (235, "3.5"), (300, "4.5"))]
    assert read([*head, *below, *row]) == "Seal\nModel  1 year  2 years  3 years  Otter\nTanh  1.5  2.5  3.5  4.5"
    fraction = [name(80, 106, "x ="), name(110, 100, "a + b"), name(110, 112, "c"), name(140, 106, "+ 3")]
    assert in_rows([fraction]) == [fraction]


@pytest.mark.parametrize("by", ["row", "column"])
def test_a_table_over_two_columns_of_prose_keeps_its_rows(tmp_path: Path, by: str) -> None:
    """The prose is drawn line by line, so the page is put in order by its columns."""
    cells = [(STATIONS, 72.0), (DEPTHS, 200.0), (SALINITY, 360.0), (DEPTHS, 500.0)]
    table = [[(x, 80 + 18.0 * row, texts[row]) for texts, x in cells] for row in range(4)]
    spots = [spot for row in (table if by == "row" else zip(*table, strict=True)) for spot in row]
    left, right = column(72, 180, "Left", 40), column(330, 180, "Right", 40)
    path = save(tmp_path / "a.pdf", [[*row_by_row(left, right), *spots]])
    lines = [line for line in read_pdf(path).pages[0].text.split("\n") if line]
    assert lines[:4] == [f"{row}  {row.split('  ')[1]}" for row in ROWS.split("\n")]
    assert lines[4:] == [text for *_, text in (*left, *right)]


def test_steps_follow_their_numbers_after_one_space() -> None:
    steps = [("5:", "c <- XOF(3)", "3 bytes"), ("6:", "d <- 16 c[0]", "d < 16"), ("7:", "e <- c[1]", "12")]
    rows = [
        [Box(x, y, x + 5 * len(text), y + 10, text) for x, text in zip((72, 100, 220), texts, strict=True)]
        for y, texts in zip((100, 112, 124), steps, strict=True)
    ]
    assert read([box for row in rows for box in row]) == (
        "5: c <- XOF(3)  3 bytes\n6: d <- 16 c[0]  d < 16\n7: e <- c[1]  12"
    )
