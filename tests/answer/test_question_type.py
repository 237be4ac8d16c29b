"""What sort of answer a question asks for."""

from __future__ import annotations

import pytest

from folio.answer.question_type import asks_for_number, gives_number


@pytest.mark.parametrize(
    "question",
    [
        "How many otters sleep in a raft?",
        "By how much did the glacier retreat?",
        "In which year was the gauge built?",
        "What percentage of the pups survive?",
        "What was the mean winter ice thickness at the Konkordiaplatz?",
        "What value of lambda\nwas chosen?",
        "At what temperature does sea water freeze?",
        "What top-5 accuracies are reported?",
        "Is the tongue retreating? How fast does it?",
        "what is the serum half-life of T20",
    ],
)
def test_a_number_is_asked_for(question: str) -> None:
    assert asks_for_number(question)


@pytest.mark.parametrize(
    "question",
    [
        "What learning rate schedule is used?",
        "What value chain does the report describe?",
        "How does the model count otters?",
        "How are costs kept low?",
        "How long is the glacier, and how dense is the fur?",  # two sentences may tell
        "Which lake has more otters, and how many are there?",
        "Why is the number of otters falling?",
        "Who measured the thickness of the ice?",
        "What do otters eat?",
        "The number of otters",
        "",
    ],
)
def test_no_number_is_asked_for(question: str) -> None:
    assert not asks_for_number(question)


@pytest.mark.parametrize(
    ("text", "question", "gives"),
    [
        ("The ice has a thickness of 800 metres.", "How thick is the ice?", True),
        ("Half of it, or twenty otters, float.", "How many otters float?", True),
        ("It fell by 12 % in 2019.", "How much did it fall?", True),
        ("The survey began in 1922.", "How many otters were seen?", False),
        ("The survey began in 1922.", "In which year did the survey begin?", True),
        ("As Table 3 and [12] show, otters float (Section 2).", "How many otters float?", False),
        ("The network is called R2D2.", "What accuracy does it reach?", False),
        ("Otters float in rafts.", "How many otters float?", False),
    ],
)
def test_a_text_gives_a_number_where_it_counts_or_measures(text: str, question: str, gives: bool) -> None:
    assert gives_number(text, question) is gives
