"""Reading order from geometry alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folio.layout import Box, gutters, join_paragraphs, page_text

_PROSE = "words enough to fill a line of {}{:02d}"


def _column(name: str, x0: float, x1: float, count: int = 30, top: float = 100) -> list[Box]:
    return [Box(x0, top + 12 * n, x1, top + 10 + 12 * n, _PROSE.format(name, n)) for n in range(count)]


def _texts(boxes: list[Box]) -> list[str]:
    return [box.text for box in boxes]


def _block(lines: list[Box]) -> Box:
    x0, y0, x1, y1, _ = map(list, zip(*lines, strict=True))
    return Box(min(x0), min(y0), max(x1), max(y1), "".join(f"{line.text}\n" for line in lines))


def _read(lines: list[Box]) -> list[str]:
    return page_text([_block(lines)], lambda: lines).split("\n")


@pytest.mark.parametrize("edges", [((50, 290), (310, 550)), ((50, 200), (220, 370), (390, 540))])
def test_columns_are_read_in_order_however_they_were_drawn(edges: tuple[tuple[float, float], ...]) -> None:
    columns = [_column(name, *edge) for name, edge in zip("abc", edges, strict=False)]
    expected = [text for column in columns for text in _texts(column)]
    lines = [box for row in zip(*columns, strict=True) for box in row]
    assert [line for line in _read(lines) if line] == expected
    random.Random(0).shuffle(lines)
    assert [line for line in _read(lines) if line] == expected


def test_gutters_lie_between_the_columns() -> None:
    assert gutters(_column("a", 50, 290) + _column("b", 310, 550)) == pytest.approx((300,), abs=1)
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
def test_what_is_not_columns_of_prose_has_no_gutter(boxes: list[Box]) -> None:
    assert gutters(boxes) == ()


def test_columns_drawn_in_order_are_not_looked_at_closely() -> None:
    def never() -> list[Box]:
        raise AssertionError

    left, right = _column("a", 50, 290), _column("b", 310, 550)
    assert page_text([_block(left), _block(right)], never) == "\n".join(_texts(left)) + "\n\n" + "\n".join(
        _texts(right)
    )


def test_a_footnote_drawn_last_does_not_upset_the_order() -> None:
    left, right = _column("a", 50, 290), _column("b", 310, 550)
    note = [Box(50, 600, 290, 610, "1 A note")]
    lines = left + right + note
    assert page_text([_block(left), _block(right), _block(note)], lambda: lines).endswith("\n\n1 A note")


def test_an_overlong_line_stays_in_its_column() -> None:
    left, right = _column("a", 50, 290), _column("b", 310, 550)
    left[10] = left[10]._replace(x1=312)
    lines = [box for row in zip(left, right, strict=True) for box in row]
    assert [line for line in _read(lines) if line] == _texts(left) + _texts(right)


def test_head_and_foot_in_two_pieces_stay_above_and_below() -> None:
    left, right = _column("a", 50, 290), _column("b", 310, 550)
    head = [Box(50, 40, 120, 50, "Author"), Box(480, 40, 550, 50, "Journal")]
    foot = [Box(520, 700, 550, 710, "17")]
    lines = head + [box for row in zip(left, right, strict=True) for box in row] + foot
    found = [line for line in _read(lines) if line]
    assert found == ["Author Journal", *_texts(left), *_texts(right), "17"]


def test_pieces_of_a_line_are_put_together() -> None:
    left, right = _column("a", 50, 290), _column("b", 310, 550)
    lines = []
    for a, b in zip(left, right, strict=True):
        lines += [a._replace(x1=130, text="first part,"), a._replace(x0=133, text=f"rest of {a.text}"), b]
    found = [line for line in _read(lines) if line]
    assert found == [f"first part, rest of {text}" for text in _texts(left)] + _texts(right)


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
def test_no_text_is_lost_or_made_up(raw: list[tuple[float, float, float, float, str]]) -> None:
    lines = [Box(min(a, c), min(b, d), max(a, c), max(b, d), text) for a, b, c, d, text in raw]
    found = page_text([line._replace(text=line.text + "\n") for line in lines], lambda: lines)
    assert sorted(found.replace("\n", " ").split()) == sorted(" ".join(_texts(lines)).split())
