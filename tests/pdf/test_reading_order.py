"""Reading order from geometry alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folio.pdf.order import Box, gutters, join_paragraphs, page_text

pytestmark = pytest.mark.fast

_PROSE = "words enough to fill a line of {}{:02d}"


def _column(name: str, x0: float, x1: float, count: int = 30, top: float = 100) -> list[Box]:
    return [Box(x0, top + 12 * n, x1, top + 10 + 12 * n, _PROSE.format(name, n)) for n in range(count)]


LEFT, RIGHT = _column("a", 50, 290), _column("b", 310, 550)
ROWS = [box for row in zip(LEFT, RIGHT, strict=True) for box in row]


def _texts(boxes: list[Box]) -> list[str]:
    return [box.text for box in boxes]


def _read(lines: list[Box]) -> list[str]:
    return page_text([lines]).split("\n")


@pytest.mark.parametrize("edges", [((50, 290), (310, 550)), ((50, 200), (220, 370), (390, 540))])
def test_columns_are_read_in_order_however_they_were_drawn(edges: tuple[tuple[float, float], ...]) -> None:
    columns = [_column(name, *edge) for name, edge in zip("abc", edges, strict=False)]
    expected = [text for column in columns for text in _texts(column)]
    lines = [box for row in zip(*columns, strict=True) for box in row]
    assert [line for line in _read(lines) if line] == expected
    random.Random(0).shuffle(lines)
    assert [line for line in _read(lines) if line] == expected


def test_gutters_lie_between_the_columns() -> None:
    assert gutters(LEFT + RIGHT) == pytest.approx((300,), abs=1)
    three = _column("a", 50, 200) + _column("b", 220, 370) + _column("c", 390, 540)
    assert gutters(three) == pytest.approx((210, 380), abs=1)


@pytest.mark.parametrize(
    "boxes",
    [
        _column("a", 50, 550),
        _column("a", 50, 290),
        _column("margin", 28, 157, count=12) + _column("text", 167, 553, count=50),
        _column("a", 50, 290, count=4) + _column("b", 310, 550, count=4),
        _column("a", 50, 290, top=100) + _column("b", 310, 550, top=500),
        [Box(x, y, x + 30, y + 10, "12.5") for y in range(100, 500, 12) for x in (50, 150, 320, 450)],
        [],
    ],
    ids=["one column", "one narrow column", "margin note", "too short", "not side by side", "table", "nothing"],
)
def test_only_columns_of_prose_have_gutters(boxes: list[Box]) -> None:
    assert gutters(boxes) == ()


def test_columns_drawn_in_order_keep_it() -> None:
    columns = "\n".join(_texts(LEFT)) + "\n\n" + "\n".join(_texts(RIGHT))
    assert page_text([LEFT, RIGHT]) == columns
    assert page_text([LEFT, RIGHT, [Box(50, 600, 290, 610, "1 A note")]]) == f"{columns}\n\n1 A note"


def test_an_overlong_line_stays_in_its_column() -> None:
    lines = [box._replace(x1=312) if box is LEFT[10] else box for box in ROWS]
    assert [line for line in _read(lines) if line] == _texts(LEFT) + _texts(RIGHT)


def test_head_and_foot_in_two_pieces_stay_above_and_below() -> None:
    head = [Box(50, 40, 120, 50, "Author"), Box(480, 40, 550, 50, "Journal")]
    found = [line for line in _read([*head, *ROWS, Box(520, 700, 550, 710, "17")]) if line]
    assert found == ["Author  Journal", *_texts(LEFT), *_texts(RIGHT), "17"]


def test_pieces_of_a_line_are_joined() -> None:
    lines = []
    for a, b in zip(LEFT, RIGHT, strict=True):
        lines += [a._replace(x1=130, text="first part,"), a._replace(x0=133, text=f"rest of {a.text}"), b]
    found = [line for line in _read(lines) if line]
    assert found == [f"first part, rest of {text}" for text in _texts(LEFT)] + _texts(RIGHT)


def _row(y: float, *pieces: tuple[float, float, str]) -> list[Box]:
    """Pieces on one row, each from x0 to x1."""
    return [Box(x0, y, x1, y + 10, text) for x0, x1, text in pieces]


LEARNING = "the learning rate, how far each of the steps goes"


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([[(60, 90, "Model"), (150, 170, "Acc "), (200, 210, "F1")], [(60, 65, "A"), (150, 170, "93.1"),
          (200, 220, "0.88")], [(60, 130, "B (our own) "), (200, 220, "0.91")]],
         ["Model  Acc  F1", "A  93.1  0.88", "B (our own)  0.91"]),
        ([[(60, 80, "lr"), (100, 400, LEARNING), (450, 470, "0.1")], [(60, 80, "wd"), (100, 380, LEARNING[4:]),
          (450, 470, "0.01")]], [f"lr  {LEARNING}  0.1", f"wd  {LEARNING[4:]}  0.01"]),
        ([[(60, 95, "Aktay,"), (104, 117, "A.,"), (125, 173, "Bavadekar,")], [(60, 90, "S.")]],
         ["Aktay, A., Bavadekar,", "S."]),  # the words of a justified line
        ([[(60, 90, "a "), (100, 103, " "), (200, 230, "b")], [(60, 63, " ")], [(60, 90, "c")]],
         ["a  b", " ", "c"]),  # a blank piece of a row, and a blank line
    ],
    ids=["short cells", "a long cell", "justified", "blanks"],
)  # fmt: skip
def test_the_pieces_of_a_row_are_joined(rows: list[list[tuple[float, float, str]]], text: list[str]) -> None:
    assert _read([box for n, pieces in enumerate(rows) for box in _row(100 + 12 * n, *pieces)]) == text


@pytest.mark.parametrize("label", ["1.", "3:", "12)", "(a)", "iv.", "•", "–"])
def test_a_step_follows_its_number_after_one_space(label: str) -> None:
    step = _row(100, (60, 70, label), (100, 400, "Open the valve and wait until the needle rests"))
    step += _row(112, (100, 200, "at the red mark."))
    assert _read(step) == [f"{label} Open the valve and wait until the needle rests", "at the red mark."]


def test_columns_of_prose_in_one_block_are_not_joined() -> None:
    rows = [_row(100 + 12 * n, (50, 290, _PROSE.format("a", n)), (310, 550, _PROSE.format("b", n))) for n in range(3)]
    lines = [piece for row in rows for piece in row] + _row(
        136, (50, 90, "the end."), (310, 550, _PROSE.format("b", 3))
    )
    assert _read(lines) == _texts(lines)


def test_nothing_is_joined_across_a_gutter_of_the_page() -> None:
    ends = _row(460, (50, 80, "left."), (310, 340, "right."))
    found = page_text([LEFT, RIGHT, ends, _row(500, (50, 60, "7"))])
    assert found.split("\n")[-5:] == ["", "left.", "right.", "", "7"]


def test_lines_that_are_not_level_are_not_joined() -> None:
    lines = [Box(60, 100, 90, 110, "one"), Box(100, 106, 130, 116, "two"), Box(60, 107, 90, 117, "three")]
    assert _read(lines) == ["one", "two", "three"]


def test_vertical_lines_are_not_joined_into_rows() -> None:
    lines = [Box(100 + 12 * n, 100, 110 + 12 * n, 400, f"turned {n}", level=False) for n in range(3)]
    assert _read(lines) == ["turned 0", "turned 1", "turned 2"]


def test_the_page_number_of_a_footer_has_its_own_line() -> None:
    table = _row(100, (60, 90, "A"), (150, 170, "1")) + _row(112, (60, 90, "B"), (150, 170, "2"))
    foot = _row(700, (60, 200, "Journal of Valves 5.3"), (500, 510, "17"))
    assert page_text([foot, table]) == "Journal of Valves 5.3\n17\n\nA  1\nB  2"


@pytest.mark.parametrize(
    ("paragraphs", "joined"),
    [
        (["One.", "Two."], "One.\n\nTwo."),
        (["it goes", "on here"], "it goes\non here"),
        (["re-", "trieval"], "re-\ntrieval"),
        (["It ends.", "and yet"], "It ends.\n\nand yet"),
        (["Heading", "Text"], "Heading\n\nText"),
        ([" padded \n", "", "  \n"], "padded"),
        ([], ""),
    ],
)
def test_paragraphs_are_joined(paragraphs: list[str], joined: str) -> None:
    assert join_paragraphs(paragraphs) == joined


_numbers = st.floats(0, 800, allow_nan=False)


@settings(deadline=None)
@given(
    st.lists(st.tuples(_numbers, _numbers, _numbers, _numbers, st.text("ab ", min_size=1, max_size=30)), max_size=40)
)
def test_no_text_is_lost_or_invented(raw: list[tuple[float, float, float, float, str]]) -> None:
    lines = [Box(min(a, c), min(b, d), max(a, c), max(b, d), text) for a, b, c, d, text in raw]
    found = page_text([[line] for line in lines[::2]] + [lines[1::2]])
    assert sorted(found.replace("\n", " ").split()) == sorted(" ".join(_texts(lines)).split())
