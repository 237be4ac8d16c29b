"""The true lines of a page: copies dropped, and pieces in the line where they stand."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from itertools import count
from typing import Any

import pymupdf
import pytest

from folio.papers.model import ParsedPdf
from folio.pdf.lines import true_lines
from folio.pdf.reader import read_content, read_pdf
from folio.pdf.text_layer import text_layer
from tests.helpers.paths import CASES

PROSE = [
    "The larval cohort stored more heat than its neighbour in the years without fire, which",
    "the polished electrode carried before the second survey of the outer basin was made by",
    "two observers who walked along the shore and counted every nest that they could see.",
]
# Left, baseline, text, and the size if it is not 10
Drawn = tuple[float, float, str] | tuple[float, float, str, float]


def _width(text: str, size: float = 10) -> float:
    return float(pymupdf.get_text_length(text, "tiro", size))


def _draw(page: Any, pieces: Iterable[Drawn]) -> None:
    for x, y, text, *size in pieces:
        page.insert_text((x, y), text, fontsize=size[0] if size else 10, fontname="tiro")


def _parsed(*pieces: Drawn, below: float = 400) -> ParsedPdf:
    """A page with these pieces between a title and prose."""
    document = pymupdf.open()
    page = document.new_page()
    _draw(page, [(72, 50, "Nests of the Outer Basin", 16), *pieces])
    _draw(page, [(72, below + 12 * n, f"{text} Below.") for n, text in enumerate(PROSE)])
    return read_content(document.tobytes(), "a.pdf")


def _lines(*pieces: Drawn) -> list[str]:
    """The lines with text between the title and the prose, as they are read."""
    lines = [line for line in _parsed(*pieces).pages[0].text.split("\n") if line]
    return lines[1 : lines.index(f"{PROSE[0]} Below.")]


SHIFTS = [(0.0, 0.0), (0.3, 0.0), (0.3, 0.3), (1.0, 1.0)]


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("times", [2, 4])
@pytest.mark.parametrize("unit", ["letters", "words", "lines", "paragraph"])
def test_what_is_struck_several_times_is_read_once(unit: str, times: int, shift: tuple[float, float]) -> None:
    lines = ["Hello winter Threshold values", "in the second line of it"]
    corners = [(0.0, 0.0), shift, (shift[0], 0.0), (0.0, shift[1])][:times]
    pieces: list[Drawn] = []
    for n, line in enumerate(lines):
        y, x = 100.0 + 14 * n, 72.0
        units = {"letters": list(line), "words": line.split()}.get(unit, [line])
        for text in units:
            pieces += [(x + dx, y + dy, text, 12) for dx, dy in corners if text != " "]
            x += _width(text if unit == "letters" else f"{text} ", 12)
    if unit == "paragraph":
        pieces = [piece for n in range(times) for piece in pieces[n::times]]
    assert _lines(*pieces) == lines


def test_a_bold_word_drawn_over_its_line_is_read_once() -> None:
    x = 72 + _width("See the ")
    assert _lines((72, 100, "See the Threshold of the line"), (x + 0.3, 100, "Threshold")) == [
        "See the Threshold of the line"
    ]


def test_letters_that_are_doubled_in_the_word_stay() -> None:
    line = "The bookkeeper's committee assessed a successful Mississippi address"
    assert _lines((72, 100, line)) == [line]
    assert _lines((72, 100, "0.5 0.5 0.5"), (72, 112, "0.5 0.5 0.5")) == ["0.5 0.5 0.5"] * 2


STRUCK = ["struck/n2", "struck/same", "fakebold/char2", "fakebold/line2same", "fakebold/shadow"]


@pytest.mark.parametrize("name", STRUCK)
def test_struck_titles_and_headings_of_reports(name: str) -> None:
    parsed = read_pdf(CASES / f"{name}.pdf")
    text = "\n".join(page.text for page in parsed.pages)
    heading = "1 Introduction" if name.startswith("struck") else "Threshold values were exceeded in every plot."
    title = "Bold by Printing a Title Twice" if name.startswith("struck") else "Double Struck Headings in Field Reports"
    assert text.count(heading) == text.count(title) == 1
    assert parsed.metadata.title.value == title
    assert [str(author) for author in parsed.metadata.authors.value] == ["Ada Penrose", "Karl Brandt"]
    assert sum(line.text == heading for line in parsed.headings.lines) <= 1


@pytest.mark.parametrize("name", ["plain", "reversed", "shuffled", "wobbly"])
def test_words_drawn_out_of_order_are_read_from_left_to_right(name: str) -> None:
    expected = read_pdf(CASES / "words" / "plain.pdf").pages[0].text
    assert read_pdf(CASES / "words" / f"{name}.pdf").pages[0].text == expected


def _words(line: str, x: float, y: float) -> list[Drawn]:
    pieces: list[Drawn] = []
    for word in line.split():
        pieces.append((x, y, word))
        x += _width(f"{word} ")
    return pieces


@pytest.mark.parametrize("seed", range(4))
def test_words_of_every_other_kind_of_order(seed: int) -> None:
    pieces = _words(PROSE[0], 72, 100)
    orders = [pieces[::2] + pieces[1::2], pieces[1:] + pieces[:1], random.Random(seed).sample(pieces, len(pieces))]
    for order in orders:
        assert _lines(*order) == [PROSE[0]]


def test_raised_and_lowered_lines_of_their_own_are_of_the_line_beside_them() -> None:
    x = 72 + _width("The flux was 10")
    after = x + _width("-4", 7) + 2.5
    pieces: list[Drawn] = [(72, 100, "The flux was 10"), (after, 100, "moles in the first year"), (x, 93.5, "-4", 7)]
    assert _lines(*pieces) == ["The flux was 10⁻⁴ moles in the first year"]
    x = 72 + _width("The mass of x")
    pieces = [(72, 100, "The mass of x"), (x, 95.5, "2", 7), (x, 103, "i", 7), (x + 8, 100, "is given below")]
    assert _lines(*pieces) == ["The mass of x²_i is given below"]


def test_a_formula_drawn_after_its_paragraph_goes_back_into_its_gap() -> None:
    before = "The value can be obtained in only "
    x = 72 + _width(before)
    gap = _width("O(N)")
    late: list[Drawn] = [(x, 160, "O("), (x + _width("O("), 160, "N"), (x + _width("O(N"), 160, ")")]
    pieces: list[Drawn] = [
        (72, 148, PROSE[0]),
        (72, 160, before),
        (x + gap, 160, " steps of the search, as we"),
        (72, 172, PROSE[1]),
        *late,
    ]
    lines = [PROSE[0], f"{before}O(N) steps of the search, as we", PROSE[1]]
    assert _lines(*pieces) == lines
    # Spaces fill the gap, so that the line is one piece.
    filled = before + " " * round(gap / _width(" ")) + " steps of the search, as we"
    assert _lines((72, 148, PROSE[0]), (72, 160, filled), (72, 172, PROSE[1]), *late) == lines


def test_fractions_in_a_line() -> None:
    before = "the cost of the search is "
    x = 72 + _width(before) + 1.2
    wide = _width("32", 7)
    pieces: list[Drawn] = [
        (72, 100, before),
        (x + (wide - _width("1", 7)) / 2, 96, "1", 7),
        (x, 103.5, "32", 7),
        (x + wide + 1.2, 100, "lg N, or less"),
    ]
    assert _lines(*pieces) == [f"{before}1/32 lg N, or less"]
    wide = _width("c-d", 7)
    pieces[1:] = [
        (x, 96, "a+b", 7),
        (x + (_width("a+b", 7) - wide) / 2, 103.5, "c-d", 7),
        (x + 14, 100, "of it, or less"),
    ]
    assert _lines(*pieces) == [f"{before}(a+b)/(c-d) of it, or less"]


def test_the_number_of_a_displayed_formula_stays_on_its_line() -> None:
    x = 200 + _width("E = x")
    assert _lines((200, 100, "E = x"), (x, 94, "2", 7), (500, 100, "(3)")) == ["E = x²  (3)"]


def test_columns_and_cells_are_not_joined() -> None:
    left = [(72.0, 100.0 + 12 * n, text[:45]) for n, text in enumerate(PROSE)]
    right = [(72 + _width(PROSE[0][:45]) + 9, 100.0 + 12 * n, text[:45]) for n, text in enumerate(PROSE)]
    read = _lines(*left, *right)
    assert read == [text[:45].strip() for text in PROSE] * 2
    cells = [(72.0 + 60 * column, 100.0 + 12 * row, f"{row}.{column}") for column in range(4) for row in range(4)]
    assert all(len(cell) == 3 for line in _lines(*cells) for cell in line.split("  "))


@pytest.mark.parametrize("shift", [0.5, 3.0, 6.5])
@pytest.mark.parametrize("labels", [("Published", "26 May"), ("Edited by", "Jane Doe"), ("Editor", "Kim Lee", "Basel")])
def test_labels_in_a_margin_stay_apart_from_the_heading_beside_them(labels: tuple[str, ...], shift: float) -> None:
    left = [(106.3 - _width(label, 8), 200.0 + shift + 10 * n, label, 8.0) for n, label in enumerate(labels)]
    heading = (108.0, 200.0, "1.1 Historical Context", 12.0)
    text = [(108.0, 230.0 + 12 * n, line) for n, line in enumerate(PROSE)]
    assert sorted(_lines(*left, heading, *text)) == sorted([*labels, heading[2], *PROSE])
    end = heading[0] + _width(heading[2], 12) + 1.7
    right = [(end, 200.0 + shift + 10 * n, label, 8.0) for n, label in enumerate(labels)]
    assert sorted(_lines(heading, *text, *right)) == sorted([*labels, heading[2], *PROSE])


def test_text_from_right_to_left_stays_as_it_is() -> None:
    words = ["\u05e9\u05dc\u05d5\u05dd", "\u05e2\u05d5\u05dc\u05dd", "\u05d8\u05d5\u05d1"]
    spans = [_span(200 - 40 * n, 100, word, 30.0) for n, word in enumerate(words)]
    blocks = [{"bbox": (0, 0, 300, 200), "lines": [_line(span) for span in spans]}]
    assert [line["spans"][0]["text"] for line in true_lines(blocks, lambda: [])[0]["lines"]] == words


def _span(x: float, y: float, text: str, width: float, size: float = 10) -> dict[str, Any]:
    box = (x, y - 0.8 * size, x + width, y + 0.2 * size)
    return {"text": text, "bbox": box, "origin": (x, y), "size": size, "flags": 0, "font": "F"}


def _line(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"dir": (1.0, 0.0), "bbox": spans[0]["bbox"], "spans": list(spans)}


def test_a_line_keeps_the_sizes_and_origins_of_its_spans() -> None:
    base, small = _span(72, 100, "10", 10), _span(82, 95, "6", 4, 7)
    blocks = [{"bbox": (72, 90, 82, 102), "lines": [_line(base)]}, {"bbox": (82, 90, 86, 97), "lines": [_line(small)]}]
    ((line,),) = (block["lines"] for block in true_lines(blocks, lambda: []))
    assert [(span["text"], span["size"], span["origin"]) for span in line["spans"]] == [
        ("10", 10, (72, 100)),
        ("6", 7, (82, 95)),
    ]


def test_lines_that_move_into_the_next_block_leave_the_one_before_as_it_is() -> None:
    head = {"bbox": (72, 40, 300, 52), "lines": [_line(_span(72, 50, "The Harbour", 60))]}
    first = {"bbox": (72, 90, 120, 102), "lines": [_line(_span(72, 100, "where all of", 48))]}
    rest = {"bbox": (122, 90, 300, 102), "lines": [_line(_span(122, 100, "these fields are of one size", 120))]}
    read = true_lines([head, first, rest], lambda: [])
    texts = [["".join(span["text"] for span in line["spans"]) for line in block["lines"]] for block in read]
    assert texts == [["The Harbour"], ["where all of these fields are of one size"]]


@pytest.mark.parametrize("size", [6, 8])
def test_a_page_number_that_touches_the_foot_stays_apart(size: int) -> None:
    feet = ["Journal of Open Source", "Education, 5(49), 118"]
    drawn = [(72, 100 + 9 * n, text, size) for n, text in enumerate(feet)]
    lines = _lines(*drawn, (72.3 + _width(feet[0], size), 100, "10"))
    assert sorted(lines) == sorted([*feet, "10"])


def test_ordinary_pages_are_returned_as_they_are() -> None:
    lines = [_line(_span(72, 100.0 + 12 * n, text, 300)) for n, text in enumerate(PROSE)]
    blocks = [{"bbox": (72, 90, 400, 140), "lines": lines}]

    def fail() -> list[list[dict[str, Any]]]:
        raise AssertionError("single letters are not needed")

    assert true_lines(blocks, fail)[0] is blocks[0]


@pytest.mark.parametrize(
    "place",
    [
        lambda n, r: (100, 100, 10, "ab"),
        lambda n, r: (100, 100, 10, f"w{n}"),
        lambda n, r: (0.01 * n, 100, 10, "a b"),
        lambda n, r: (100 + 3 * r.random(), 96 + r.random(), 7 if n else 10, "2"),
        lambda n, r: (600 * r.random(), 100 + 30 * r.random(), r.choice([6, 10]), "k"),
    ],
)
def test_pages_of_many_pieces_take_time_in_proportion(place: Any) -> None:
    def seconds(number: int) -> float:
        places = random.Random(1)
        spans = []
        for n in range(number):
            x, y, size, text = place(n, places)
            spans.append(_span(x, y, text, 0.5 * size * len(text), size))
        blocks = [{"bbox": span["bbox"], "lines": [_line(span)]} for span in spans]
        letters = [
            [{"c": c, "bbox": (at, y - 8, at + 5, y + 2), "origin": (at, y)} for at, c in zip(count(x, 5), text)]
            for text, (x, y) in [(span["text"], span["origin"]) for span in spans]
        ]
        started = time.process_time()
        true_lines(blocks, lambda: letters)
        return time.process_time() - started

    assert seconds(16000) < 0.3 + 12 * seconds(4000)


@pytest.mark.parametrize("name", ["first2", "first3"])
def test_a_large_initial_belongs_to_its_word(name: str) -> None:
    text = read_pdf(CASES / "dropcap" / f"{name}.pdf").pages[0].text
    assert "THE first survey of the basin was made by two observers" in text
    assert "counted\nevery nest that they could see from the path in spring." in text


@pytest.mark.parametrize(
    ("initial", "first", "indent", "expected"),
    [
        ("W", "hen the larval cohort stored more heat than its", 0.0, "When the larval"),
        ("A", "LTHOUGH the larval cohort stored more heat than", 0.0, "ALTHOUGH the larval"),
        ("A", "first look at the larval cohort that stored heat", 2.5, "A first look"),
        ("A", "survey of the larval cohort that stored some heat", 0.0, "A survey of"),
    ],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_initials_of_every_kind(initial: str, first: str, indent: float, expected: str, is_last: bool) -> None:
    size = 10 * (0.7 + 1.2) / 0.7  # from the top of the first line to the foot of the second
    x = 73 + _width(initial, size)
    large: Drawn = (72, 112, initial, size)
    second = "neighbour, as a survey of the outer basin"
    lines: list[Drawn] = [(x + indent, 100, first), (x, 112, second), (72, 124, PROSE[2])]
    read = _lines(*([*lines, large] if is_last else [large, *lines]))
    assert read[0].startswith(expected)
    assert read[1:] == [second, PROSE[2]]


def test_large_letters_that_begin_no_word_stay_apart() -> None:
    index: list[Drawn] = [(72, 100, "B", 20), (72, 124, "Basin, outer 12"), (72, 136, "Curlew 17")]
    assert _lines(*index) == ["B", "Basin, outer 12", "Curlew 17"]


def _with_gap(draw: Any, text: str = " steps of the search, as we") -> list[str]:
    before = "The value can be obtained in only "
    document = pymupdf.open()
    page = document.new_page()
    x = 72 + _width(before)
    _draw(page, [(72, 50, "Nests of the Outer Basin", 16), (72, 148, PROSE[0]), (72, 160, before), (x + 24, 160, text)])
    _draw(page, [(72, 172 + 12 * n, line) for n, line in enumerate(PROSE)])
    draw(page, pymupdf.Rect(x + 1, 151, x + 23, 162))
    return [line for line in read_content(document.tobytes(), "a.pdf").pages[0].text.split("\n") if "value" in line]


def _image(page: Any, box: Any) -> None:
    picture = pymupdf.open()
    drawn = picture.new_page(width=box.width, height=box.height)
    drawn.insert_text((1, 9), "O(N)", fontsize=9)
    page.insert_image(box, pixmap=drawn.get_pixmap(dpi=200))


def _curves(page: Any, box: Any) -> None:
    for n in range(4):
        page.draw_circle((box.x0 + 4 + 5 * n, 157), 2 + n / 2)


@pytest.mark.parametrize("draw", [_image, _curves])
def test_a_formula_that_is_a_picture_is_marked(draw: Any) -> None:
    assert _with_gap(draw) == ["The value can be obtained in only [formula] steps of the search, as we"]


def _rule(page: Any, box: Any) -> None:
    page.draw_line((box.x0, 161), (box.x1, 161))


@pytest.mark.parametrize("draw", [lambda page, box: None, _rule])
def test_white_space_and_rules_are_no_formulas(draw: Any) -> None:
    assert "[formula]" not in "".join(_with_gap(draw))


@pytest.mark.parametrize("after", [", and more steps of it", " steps of the search, as we"])
def test_a_formula_that_touches_a_comma_is_marked(after: str) -> None:
    def draw(page: Any, box: Any) -> None:
        page.draw_rect((box.x0 + 2, 153, box.x1 + 0.5, 160), fill=(0, 0, 0))

    assert f"in only [formula]{after}" in "".join(_with_gap(draw, after))


@pytest.mark.parametrize("shift", [6, 10, 14, 16])
def test_letters_that_stick_out_of_their_boxes_are_no_formula(shift: float) -> None:
    """A scan shows the words wider, or further along, than the text over it says."""
    before, after = "The value can be obtained in only", " steps of the search, as we"

    def draw(page: Any, box: Any) -> None:
        page.draw_rect((0, 0, 600, 400), fill=(1, 1, 1), color=None)
        _draw(page, [(72 + shift, 160, before), (box.x1 + 1, 160, after)])

    def draw_left(page: Any, box: Any) -> None:
        page.draw_rect((0, 0, 600, 400), fill=(1, 1, 1), color=None)
        _draw(page, [(72, 160, before), (box.x1 + 1 - shift, 160, after.replace(" ", "", 1))])

    for drawn in (draw, draw_left):
        assert "[formula]" not in _over_picture(drawn)


def _over_picture(draw: Any) -> str:
    """The text of a page with a gap in a line, over a picture that shows something else."""
    before = "The value can be obtained in only "
    x = 72 + _width(before)
    shown = pymupdf.open()
    draw(shown.new_page(), pymupdf.Rect(x + 1, 151, x + 23, 162))
    document = pymupdf.open()
    page = document.new_page()
    page.insert_image(page.rect, pixmap=shown[0].get_pixmap(dpi=150))
    after = " steps of the search, as we"
    pieces = [(72, 148, PROSE[0]), (72, 160, before), (x + 24, 160, after)]
    for left, base, text in [*pieces, *((72, 172 + 12 * n, line) for n, line in enumerate(PROSE))]:
        page.insert_text((left, base), text, fontsize=10, fontname="tiro", render_mode=3)
    return read_content(document.tobytes(), "a.pdf", ocr=False).pages[0].text


def test_a_formula_of_a_scan_is_marked() -> None:
    def draw(page: Any, box: Any) -> None:
        _draw(page, [(72, 160, "The value can be obtained in only"), (box.x1 + 1, 160, " steps of the search, as we")])
        _draw(page, [(box.x0 + 1, 160, "O(N)")])

    assert "[formula]" in _over_picture(draw)


def test_a_formula_with_text_is_not_marked() -> None:
    lines = _with_gap(lambda page, box: page.insert_text((box.x0 + 1, 160), "O(N)", fontsize=10, fontname="tiro"))
    assert lines == ["The value can be obtained in only O(N) steps of the search, as we"]


def test_an_exponent_with_an_index_stays_together_above_an_index() -> None:
    spans = [_span(72, 100, "p", 5), _span(77, 96, "a", 3.5, 7), _span(80.5, 99, "j", 2, 5)]
    below, after = _span(77, 103, "i", 3, 7), _span(83, 100, " is a prime power of the order", 130)
    blocks = [{"bbox": (72, 90, 90, 104), "lines": [_line(*spans), _line(below, after)]}]
    ((line,),) = (block["lines"] for block in true_lines(blocks, lambda: []))
    assert [span["text"] for span in line["spans"]] == ["p", "a", "j", "i", after["text"]]


@pytest.mark.parametrize("name", ["plain", "reversed", "shuffled", "wobbly"])
def test_words_drawn_out_of_order_are_placed_on_their_page(name: str) -> None:
    path = CASES / "words" / f"{name}.pdf"
    text = read_pdf(path).pages[0].text
    layer = text_layer(path, 1, text, 0)
    assert layer.placed
    assert len(layer.words) >= len(text.split()) - 1
