"""Questions about selected words: what they are searched with, and whether they ask for other places."""

from __future__ import annotations

import pytest

from folio.question.question import Question, Statement, asks_elsewhere, asks_where

pytestmark = pytest.mark.fast

SAID = "How many summaries of the whole list are there? Otters and seals are compared to each other."


def test_words_that_only_point_give_way_to_the_selection() -> None:
    question = Question("What does this mean?", about=SAID)
    assert question.only_points
    assert question.worded == Statement(SAID)


def test_the_selection_asks_nothing_whatever_it_says() -> None:
    assert Question(SAID).asks_for_number
    worded = Question("Explain this", about=SAID).worded
    assert (worded.type.kind, worded.parts, worded.things, worded.asks_for_number) == ("other", (), (), False)


def test_words_of_its_own_are_searched_with_the_selection() -> None:
    question = Question("How was this measured by the gauge?", about=SAID)
    assert not question.only_points
    assert question.worded.text == f"How was this measured by the gauge? {SAID}"


def test_a_selected_name_takes_the_place_of_this() -> None:
    assert Question("What does this mean?", about="DC-Nets").worded == Question("What does DC-Nets mean?")
    assert Question("Explain", about=r"\1 nets").worded.text == r"Explain \1 nets"
    assert Question("Explain this", about=r"\1 nets").worded.text == r"Explain \1 nets"
    assert Question("Where else is this said?", about="DC-Nets").worded == Statement("DC-Nets")


def test_a_question_without_a_selection_is_itself() -> None:
    question = Question("What does this mean?")
    assert question.worded is question
    assert question.standing == question.text
    assert not question.only_points


def test_a_later_question_sees_the_beginning_of_the_selection() -> None:
    assert Question("Why?", about="They float.").standing == "Why? “They float.”"
    assert len(Question("Why?", about="word " * 300).standing) < 220


@pytest.mark.parametrize(
    ("text", "where", "elsewhere"),
    [
        ("Where else is this said?", True, True),
        ("Which papers say the same?", True, True),
        ("Who disagrees?", False, True),
        ("Does anyone else contradict this?", False, True),
        ("What does this mean?", False, False),
        ("Who wrote this?", False, False),
    ],
)
def test_questions_for_other_places(text: str, where: bool, elsewhere: bool) -> None:
    assert (asks_where(text), asks_elsewhere(text)) == (where, elsewhere)
