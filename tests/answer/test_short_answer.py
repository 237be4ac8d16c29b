"""Short answers: only if a sentence has a single candidate."""

from __future__ import annotations

import pytest

from folio.answer.values import has_type, meets_conditions, short_answer
from folio.question.question import Question
from folio.text import tokenize


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("What is the chunk size of GFS?", "We have chosen 64 MB, which is much larger than usual.", "64 MB"),
        ("How many hairs has an otter?", "It has 155,000 hairs on 2 sides.", "155,000 hairs"),
        ("How many hairs has an otter?", "It has 2 sides and 4 feet.", None),
        ("How many hairs has an otter?", "It has more than 155,000 hairs.", "more than 155,000 hairs"),
        ("How many packages must be built?", "In all 254 Guix package must be built.", "254 Guix package"),
        ("How many helpers were there?", "It had six student helpers and two teachers.", "six student helpers"),
        ("In how many series was it first?", "It is first in 40 of our 81 replication series.", None),  # 40, or 81?
        ("In how many lakes do perch live?", "Perch live in three out of five lakes.", None),
        ("What share of pups dies?", "Of 40 pups 12 % die.", "12 %"),
        ("What fraction of pups dies?", "A fraction of 0.12 dies.", "0.12"),
        ("What percentage of pups dies?", "A percentage of the 40 pups dies.", None),
        ("How deep does it dive?", "It dives to about 40 m.", "about 40 m"),
        ("What percentage of them survives?", "Of 40 pups 12 % survive.", "12 %"),
        ("What percentage of them is rare?", "It is estimated (95% credible interval).", None),
        ("What is the size of a raft?", "Rafts of two kinds float.", None),  # a size is written in digits
        ("What is the size of a chunk?", "Chunks have 64 MB or 128 MB.", None),  # which of them?
        ("What is the size of the 64 MB chunk?", "It has 64 MB.", None),  # the question has it
        ("How many replicas are needed?", "It uses t + 1 replicas.", None),  # a part of a formula
        ("How many replicas are needed?", "It uses 2 * t replicas.", None),
        ("How many replicas are needed?", "It uses 3 replicas, one for each.", "3 replicas"),
        ("When was the gauge built?", "The gauge was built in 1922 (Otter, 2019).", "1922"),
        ("When was it built?", "It was built in March 1922.", "March 1922"),
        ("When was it built?", "Built in 1922, it was moved in 1950.", None),
        ("Who wrote the program?", "I wrote it for my course in Applied Thermodynamics.", None),
        ("What is a CRDT?", "Conflict-free Replicated Data Types (CRDTs) merge.",
         "Conflict-free Replicated Data Types"),
        ("What is RAID?", "We use RAID, and it works.", None),
        ("Why do otters float?", "They have 155,000 hairs.", None),
    ],
)  # fmt: skip
def test_a_short_answer_of_the_asked_type(question: str, sentence: str, expected: str | None) -> None:
    span = short_answer(Question(question), sentence)
    assert (span and sentence[span[0] : span[1]]) == expected


@pytest.mark.parametrize(
    ("question", "sentence", "covered", "meets"),
    [
        ("What rate do 5 servers reach?", "With 5 servers its rate is 327 a second.", 0.9, True),
        ("What rate do 7 servers reach?", "With 5 servers its rate is 327 a second.", 0.9, False),
        ("What standard deviation did it have?", "We chose folds with K = 10.", 0.9, False),
        ("What rate do 5 servers reach?", "With 5 servers its rate is 327 a second.", 0.3, False),
        ("What percentage of wounds do germs infect?", "Germs infect 12 % of all wounds.", 0.9, True),
    ],
)
def test_a_value_needs_its_subject_and_conditions(question: str, sentence: str, covered: float, meets: bool) -> None:
    assert meets_conditions(Question(question), frozenset(tokenize(sentence)), covered) is meets


@pytest.mark.parametrize(
    ("question", "text", "has"),
    [
        ("How many otters float?", "Twelve otters float.", True), ("How many otters float?", "Otters float.", False),
        ("When was it built?", "It was built in 1922.", True), ("When was it built?", "It was built by hand.", False),
        ("Who built it?", "It was built by Ada Lovelace.", True), ("Who built it?", "It was built by hand.", False),
        ("Where is it?", "It is in Blatten.", True), ("Where is it?", "It is there.", False),
        ("Why is it there?", "Nobody knows.", True),
    ],
)  # fmt: skip
def test_a_text_has_a_value_of_the_type(question: str, text: str, has: bool) -> None:
    assert has_type(Question(question), text) is has
