"""Numbers of steps that a PDF draws apart from their steps stand in front of them."""

from __future__ import annotations

import random
from pathlib import Path

import pymupdf
import pytest

from folio.pdf.order import Box, page_text
from folio.pdf.reader import read_pdf
from folio.pdf.steps import with_step_rows

STEPS = ("n := 0", "for each raft r do", "n := n + size(r)", "end for", "return n")
INDENTS = (0, 0, 12, 0, 0)
READ = [f"{number}: {step}" for number, step in enumerate(STEPS, 1)]


def box(x: float, row: int, text: str, *, drop: float = 0.0) -> Box:
    return Box(x, 100 + 14 * row - drop, x + 5 * len(text), 112 + 14 * row - drop, text)


def numbers(x: float = 72) -> list[Box]:
    return [box(x, row, f"{row + 1}:") for row in range(len(STEPS))]


def steps(x: float = 72) -> list[Box]:
    return [box(x + 20 + INDENTS[row], row, step, drop=2) for row, step in enumerate(STEPS)]


def lines(*blocks: list[Box]) -> list[str]:
    return page_text(with_step_rows(list(blocks))).split("\n")


def test_all_numbers_drawn_first() -> None:
    assert lines(numbers(), steps()) == READ
    assert lines([*numbers(), *steps()]) == READ
    assert lines(numbers(), *([step] for step in steps())) == READ


def test_some_numbers_after_their_steps_and_comments_last() -> None:
    (one, two, three, four, five), (a, b, c, d, e) = numbers(), steps()
    comment = box(300, 2, "▷ adds the raft")
    assert lines([one, a, two, b], [c, three, four, d], [five, e], [comment]) == [
        *READ[:2], f"{READ[2]}  ▷ adds the raft", *READ[3:],
    ]  # fmt: skip


def test_what_stands_around_the_steps_stays_there() -> None:
    above, below = box(72, -2, "Algorithm 1 Count"), box(72, 7, "Rafts of otters drift.")
    assert lines([*numbers(), above], [*steps(), below]) == ["Algorithm 1 Count", "", *READ, "", below.text]


def test_two_algorithms_and_the_other_column() -> None:
    prose = [box(330, row, "and the pups of otters sleep there") for row in range(6)]
    lower = [each._replace(y0=each.y0 + 200, y1=each.y1 + 200) for each in numbers()]
    below = [each._replace(y0=each.y0 + 200, y1=each.y1 + 200) for each in steps()]
    read = lines(numbers(), steps(), lower, below, prose)
    assert [line for line in read if line] == [*READ, *READ, *[each.text for each in prose]]


@pytest.mark.parametrize(
    "blocks",
    [
        [[each for pair in zip(numbers(), steps(), strict=True) for each in pair]],  # in order already
        [[box(72, 0, "1:"), box(72, 4, "2:")], [box(200, 8, "n := 0")]],  # nothing beside them
        [[box(72, 0, "4.2"), box(72, 1, "5.1")], [box(100, 0, "0.3"), box(100, 1, "0.4")]],  # cells of a table
        [[box(72, 0, "3:"), box(72, 1, "3:")], [box(100, 0, "a"), box(100, 1, "b")]],  # does not count up
    ],
)
def test_other_pages_stay_as_they_are(blocks: list[list[Box]]) -> None:
    assert with_step_rows(blocks) is blocks


def test_a_page_full_of_numbers_takes_no_longer_than_its_length() -> None:
    shuffled = [[box(72 + 60 * (n % 7), n % 50, f"{n % 900}:")] for n in range(3000)]
    random.Random(1).shuffle(shuffled)
    assert sum(map(len, with_step_rows(shuffled))) == 3000


def test_a_pdf_that_draws_the_numbers_first(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 72), "Rafts of otters drift along the shore of the bay when the tide is out.")
    for number in range(1, 6):
        page.insert_text((72, 100 + 14 * number), f"{number}:")
    for number, (step, indent) in enumerate(zip(STEPS, INDENTS, strict=True), 1):
        page.insert_text((92 + indent, 100 + 14 * number), step)
    document.save(tmp_path / "steps.pdf")
    (read,) = read_pdf(tmp_path / "steps.pdf").pages
    assert read.text.split("\n")[-5:] == READ
