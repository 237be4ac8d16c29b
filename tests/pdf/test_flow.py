"""Sentences that a figure, a table, a note or the edge of a page interrupts are put together, and no others."""

from __future__ import annotations

import random
from pathlib import Path

import pymupdf
import pytest

from folio.ingest.cleaning import clean
from folio.papers.model import PageMap
from folio.pdf import flow
from folio.pdf.order import Box
from folio.pdf.reader import read_pdf
from folio.text import one_line
from tests.helpers.cpu_time import assert_linear
from tests.helpers.paths import CASES
from tests.helpers.pdfs import Set, front

LEFT, WIDE, NARROW, GUTTER = 72.0, 450.0, 215.0, 20.0
_WORDS = "buoy gauge keeper basin reading harbour ledger boat lamp tide season island report volume pencil".split()


def prose(name: str, sentences: int) -> str:
    """Sentences that no other page repeats."""
    draw = random.Random(name)
    return " ".join(
        f"The {' and the '.join(draw.sample(_WORDS, 2))} of {name} were noted by the {draw.choice(_WORDS)} with its "
        f"{' '.join(draw.sample(_WORDS, 3))} in the margin."
        for _ in range(sentences)
    )


BEFORE, AFTER = prose("the north", 4), f" They were bound in cloth. {prose('the south', 3)} The last was left out."
FIGURE = [("Depth", 8), ("Salinity", 8), ("noon", 8)]


def wrapped(text: str, width: float, size: float = 10) -> list[str]:
    """The lines of a text, each as long as the width allows."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if pymupdf.get_text_length(longer, "tiro", size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def placed(lines: list[str], top: float, x: float = LEFT, size: float = 10, font: str = "tiro") -> list[Set]:
    return [Set(top + 1.2 * size * number, line, size, font, x) for number, line in enumerate(lines)]


def halves(end: str, start: str, width: float = WIDE, after: str = AFTER) -> tuple[list[str], list[str]]:
    """The lines of a paragraph before and after a break between these words. The word after it has no room before."""
    last = f"n {end}"
    while pymupdf.get_text_length(last, "tiro", 10) < width - 5.1:
        last = f"n{last}"
    lines = [*wrapped(f"{BEFORE} A line that is called", width), last]
    return lines, wrapped(start + after, width)


def head(number: int) -> list[Set]:
    return [Set(40, "Penrose and Brandt", 8, "tiit", LEFT), Set(40, str(number), 8, "tiit", 510)]


def figure(top: float, x: float = LEFT) -> list[Set]:
    labels = [Set(top + 14 * n, text, size, "helv", x + 40 * n) for n, (text, size) in enumerate(FIGURE)]
    return [*labels, Set(top + 60, "Figure 3: The buoys of the array, from the shore on", 9, "tiro", x)]


def notes(text: str = "4 The keepers wrote in pencil, and in two colours of ink", x: float = LEFT) -> list[Set]:
    return [Set(750, text, 8, "tiro", x)]


def other(number: int) -> list[Set]:
    """A page of other text, which ends with its last sentence."""
    return [*head(number), *placed(wrapped(prose(f"page {number}", 20), WIDE), 80)]


def read(path: Path, *pages: list[Set]) -> tuple[str, PageMap]:
    return clean(read_pdf(front(path, pages)).pages)


def pages_of(text: str, pages: PageMap) -> list[str]:
    return [text[slice(*pages.bounds(page + 1, len(text)))] for page in range(len(pages.starts))]


@pytest.mark.parametrize(
    ("end", "start", "joined"),
    [
        ("ensures that there is at", "most one leader in a given term.", "there is at\nmost one leader"),
        ("was first described by", "Lamport and his students in a report.", "described by\nLamport and his students"),
        ("the survey measured the con-", "ductivity of the outer basin.", "measured the conductivity of the outer"),
        ("in the years of the drought,", "1911 to 1914, nobody was on the island.", "drought,\n1911 to 1914"),
    ],
)
def test_a_sentence_goes_on_below_what_floats(tmp_path: Path, end: str, start: str, joined: str) -> None:
    first, second = halves(end, start)
    one = [*head(1), *placed(first, 600), *notes()]
    two = [*head(2), *figure(80), *placed(second, 170), *placed(wrapped(prose("the east", 4), WIDE), 300)]
    text, pages = read(tmp_path / "a.pdf", one, two, other(3))
    assert joined in text
    assert "\n\n4 The keepers wrote" in f"\n\n{text}"
    page_one, page_two, _ = pages_of(text, pages)
    assert page_one.rstrip().endswith(end.removesuffix("con-").rstrip()) or page_one.endswith("con")
    # What floats follows the paragraph on its own page, the note stands before it.
    assert page_one.index("keepers wrote in pencil") < page_one.index("of the north were noted")
    assert page_two.index("bound in cloth") < page_two.index("Figure 3") < page_two.index("from the shore on")
    assert "Penrose" not in page_two.split("Figure 3")[0]


@pytest.mark.parametrize("size", [9, 10], ids=["small caption", "caption in the size of the text"])
def test_a_sentence_goes_on_in_the_next_column_below_a_table(tmp_path: Path, size: float) -> None:
    first, second = halves("ensures that there is at", "most one leader in a given term.", NARROW)
    right = LEFT + NARROW + GUTTER
    table = placed(["Table 2: Readings of the buoys"], 80, right, size)
    table += placed(["noon   4.5", "night   3.1"], 100, right, 8)
    page = [
        *head(1), *placed(first, 744 - 12 * len(first)), *notes(x=LEFT),
        *table, *placed(second, 150, right), *placed(wrapped(prose("the east", 5), NARROW), 420, right),
    ]  # fmt: skip
    page[2:2] = placed(wrapped(prose("the west", 8), NARROW), 80)
    text, _ = read(tmp_path / "a.pdf", page, other(2), other(3))
    assert "there is at\nmost one leader in a given term." in text
    assert text.index("most one leader") < min(text.index("Table 2"), text.index("4 The keepers"))


def test_a_paragraph_over_a_whole_page_is_divided_after_a_sentence(tmp_path: Path) -> None:
    first, second = halves("ensures that there is at", "most one leader in a given term.")
    rest, third = halves("was first described by", "the keepers themselves.")
    one = [*head(1), *placed(first, 600)]
    full, _ = halves("and then it was read again.", "")  # its line reaches the edge: no paragraph ends there
    lines = [line for line in (*second, full[-1], *rest) if not line.endswith(".") or line == full[-1]]
    two = [*head(2), *figure(80), *placed(lines, 170), *notes()]
    text, pages = read(tmp_path / "a.pdf", one, two, [*head(3), *placed(third, 80)])
    assert "there is at\nmost one leader" in text
    assert "described by\nthe keepers themselves" in text
    page = pages_of(text, pages)[1]
    assert page.index("read again.\n\n") < page.index("Figure 3") < page.index("was first described by")


def test_a_figure_within_a_column_follows_the_paragraph_that_it_interrupts(tmp_path: Path) -> None:
    first, second = halves("ensures that there is at", "most one leader in a given term.")
    top = 100 + 12 * len(first)
    page = [*head(1), *placed(first, 100), *figure(top + 20), *placed(second, top + 110)]
    text, _ = read(tmp_path / "a.pdf", page, other(2), other(3))
    assert "there is at\nmost one leader in a given term." in text
    assert "was left out.\n\n" in text
    assert text.index("was left out.") < text.index("Figure 3")


def test_notes_do_not_come_between_the_columns_of_a_page(tmp_path: Path) -> None:
    first, second = halves("was first described by", "Lamport and his students in a report.", NARROW)
    right = LEFT + NARROW + GUTTER
    left_column = [*placed(wrapped(prose("the west", 8), NARROW), 80), *placed(first, 720 - 12 * len(first))]
    right_column = [*placed(second, 80, right), *placed(wrapped(prose("the east", 9), NARROW), 300, right)]
    page = [*head(1), *left_column, *notes("* An ounce of it"), *right_column]
    text, _ = read(tmp_path / "a.pdf", page, other(2), other(3))
    assert "described by\nLamport and his students" in text


@pytest.mark.parametrize(
    ("end", "start", "indent"),
    [
        ("so the gauge was read again.", "The keepers had no part in it.", 0),
        ("so the gauge was read by the", "The keepers had no part in it.", 0),  # the end of that sentence is lost
        ("so the gauge was read again. ¹", "The keepers had no part in it.", 0),
        ("so the gauge was read again [4].", "The keepers had no part in it.", 0),
        ("so the gauge was read again.  2", "Remark: the keepers had no part in it.", 0),  # the end of a proof
        ("the sum of all readings is", "The keepers had no part in it.", 14),  # a new paragraph, after a lost formula
        ("the readings of the array are", "1. those that were taken at noon;", 0),
        ("and it may be had from www.array.example/readings", "Brandt, K. (1904). Gauges of the coast.", 0),
    ],
)
def test_what_begins_anew_is_not_joined(tmp_path: Path, end: str, start: str, indent: float) -> None:
    first, second = halves(end, start)
    begins = [*placed(second[:1], 170, LEFT + indent), *placed(second[1:], 182)]
    one, two = [*head(1), *placed(first, 600), *notes()], [*head(2), *figure(80), *begins]
    text, _ = read(tmp_path / "a.pdf", one, two, other(3))
    assert f"{end}\n{start[:12]}" not in text
    page_two = pages_of(text, PageMap((0,), ("",)))[0]
    assert page_two.index("Figure 3") < page_two.index(start)


def test_a_sentence_that_ends_before_the_edge_is_not_joined(tmp_path: Path) -> None:
    first = [*wrapped(BEFORE, WIDE), "and the readings are"]  # a formula follows, which is a picture
    second = wrapped("where the depth is that of the outer buoy. " + AFTER, WIDE)
    one, two = [*head(1), *placed(first, 600), *notes()], [*head(2), *figure(80), *placed(second, 170)]
    text, _ = read(tmp_path / "a.pdf", one, two, other(3))
    assert "readings are\nwhere" not in text
    assert text.index("Figure 3") < text.index("where the depth")


def test_a_formula_stays_where_it_is(tmp_path: Path) -> None:
    first, second = halves("hence the depth at that hour is", "where the second term is that of the outer buoy.")
    formula = [Set(100, "d = a + 2b (4)", 10, "tiit", 250)]
    one, two = [*head(1), *placed(first, 600)], [*head(2), *formula, *placed(second, 125)]
    text, _ = read(tmp_path / "a.pdf", one, two, other(3))
    assert text.index("d = a + 2b") < text.index("where the second term")


def test_a_page_without_a_break_keeps_its_text(tmp_path: Path) -> None:
    page = [*head(1), *placed(wrapped(BEFORE, WIDE), 80), *figure(200), *placed(wrapped(AFTER, WIDE), 300), *notes()]
    text, _ = read(tmp_path / "a.pdf", page)
    order = [text.index(words) for words in (BEFORE[:20], "Depth", "Figure 3", "bound in cloth", "4 The keepers")]
    assert order == sorted(order)


def test_words_broken_over_notes_columns_and_pages_are_joined() -> None:
    text, pages = clean(read_pdf(CASES / "broken" / "a.pdf").pages)
    assert one_line(text).count("the survey measured the conductivity of the outer basin in spring.") == 3
    assert "con-\n" not in text
    for number, page in enumerate(pages_of(text, pages), start=1):
        assert page.count(f"{number} The gauge of this column was read at noon.") == 1


def test_every_character_stays_on_its_page(tmp_path: Path) -> None:
    first, second = halves("ensures that there is at", "most one leader in a given term.")
    path = front(tmp_path / "a.pdf", [[*placed(first, 600), *notes()], [*figure(80), *placed(second, 170)]])
    parsed = read_pdf(path)
    with pymupdf.open(path) as document:
        for page, shown in zip(parsed.pages, document, strict=True):
            assert sorted("".join(page.text.split())) == sorted("".join(shown.get_text().split()))


@pytest.mark.parametrize("step", [12, 40], ids=["one paragraph", "apart"])
def test_the_work_grows_with_the_paragraphs(step: int) -> None:
    text = "an endless line of words that never comes to an"

    def work(size: int) -> None:
        lines = [Box(50, step * n, 300, step * n + 10, text, size=10, font="Times") for n in range(size)]
        flow.arrange({0: [[line] for line in lines], 1: [[lines[0]._replace(text="Figure 1: A", size=8)]]})

    assert_linear(work, 8000)
