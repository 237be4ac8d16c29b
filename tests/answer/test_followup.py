"""Follow-ups without a model: which lean on the question before, and what they then mean."""

from __future__ import annotations

import pytest

from folio.answer.followup import is_followup, standalone, subject
from folio.answer_types import Answer
from tests.helpers.factories import answer_of

LENGTH, LONG = "How long is the Aletsch glacier?", "The glacier is 23 kilometres long."
ALETSCH = answer_of(LENGTH, LONG)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # Points back
        ("How thick is it?", True),
        ("And its tongue?", True),
        ("What are they made of?", True),
        ("What about glaciers in Norway?", True),
        ("Why is that the case for glaciers?", True),
        ("Does the same hold for the Rhone glacier?", True),
        ("Which one is the largest in the Alps?", True),
        ("Who measured the ice there in winter?", True),
        ("But how thick was the ice in 1980?", True),
        ("Are such glaciers common in Norway?", True),
        ("Please explain the fifth one in detail", True),
        ("Explain number 3 in detail", True),
        # Names hardly anything
        ("Why?", True),
        ("How thick?", True),
        ("Tell me more", True),
        # Stands alone
        ("How thick is the Aletsch glacier?", False),
        ("Why do glaciers retreat faster each year?", False),
        ("Is there a gauge at the river Massa?", False),
        ("Which animals such as otters use stones as tools?", False),
        ("What is a one-time pad in cryptography?", False),
        ("Where was the gauge of the river Massa built?", False),
        ("Does butter melt faster than ice on a glacier?", False),  # no "but", no "it" inside a word
        ("What is the first step of key generation in a lattice scheme?", False),
        ("What does sentence 5 of the Antarctic treaty rule on mining?", False),
    ],
)
def test_is_followup(question: str, expected: bool) -> None:
    assert is_followup(question) is expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # Names: words with a capital or a digit, and what holds them together
        (LENGTH, "Aletsch"),
        ("How many students came to Reading University in 2021?", "Reading University in 2021"),
        ("In which format does the Journal of Open Source Education take papers on R?",
         "Journal of Open Source Education R"),
        ("What does NIST SP 800-207 call a policy engine?", "NIST SP 800-207"),
        ("Which loss does mLEARn use, and does mLEARn use Adam?", "mLEARn Adam"),
        ("Is the Rhone a glacier's river?", "Rhone"),
        # The first capital of a sentence makes no name; one inside a word does
        ("Do otters hold hands with other otters?", "otters hold hands, other otters"),
        ("StarBLAST runs on which servers?", "StarBLAST"),
        # A number or a letter alone names nothing
        ("How many modules are in the R course for botanists?", "R course, botanists"),
        ("How many otters lived in the bay in 1980?", "bay, 1980"),
        # No names: the last two phrases
        ("Which criterion is used for trees in the parsimony method?", "trees, parsimony method"),
        ("And by how much does the tongue of the glacier retreat?", "tongue, glacier retreat"),
        ("Why?", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_question_is_about(question: str, expected: str) -> None:
    assert subject(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How thick is it?", "About Aletsch: how thick is it?"),
        ("And how thick is it?", "About Aletsch: how thick is it?"),
        ("And in which canton is its tongue?", "About Aletsch: in which canton is its tongue?"),
        ("What about the ice there?", "About Aletsch: what about the ice there?"),
        ("Why?", "About Aletsch: why?"),
        ("And?", "About Aletsch: and?"),
        ("Does GPS see it?", "About Aletsch: does GPS see it?"),
        ("Konkordiaplatz too?", "About Aletsch: Konkordiaplatz too?"),  # a name keeps its capital
    ],
)
def test_a_follow_up_is_put_behind_the_subject(question: str, expected: str) -> None:
    assert standalone(question, [ALETSCH]) == expected


def test_the_subject_is_of_the_last_question_that_stood_alone() -> None:
    between = answer_of("And its tongue?", "It retreats.")
    assert standalone("How thick is it?", []) == "How thick is it?"
    assert standalone("How thick is it?", [ALETSCH, between]) == "About Aletsch: how thick is it?"
    assert standalone("Why?", [between]) == "About its tongue: why?"
    assert standalone("How come?", [answer_of("Why?")]) == "Why? How come?"
    alone = "What do sea otters eat each day?"
    assert standalone(alone, [ALETSCH]) == alone


REFUSED = answer_of("What do we know about glaciers of the Alps?")
LISTS = answer_of("What does it eat?", "The diet of the sea otter is made of urchins, clams and crabs.")
THREE = answer_of(
    "What do we know about glaciers of the Alps?",
    "The tongue retreats each year.",
    "The gauge of the river Massa stands at Blatten and was built there by the people of the valley.",
    "The ice is thick.",
)


@pytest.mark.parametrize(
    ("question", "last", "expected"),
    [
        # Items of a list in one sentence
        ("Explain the second one.", LISTS, "Explain clams."),
        ("How large is the third of them?", LISTS, "How large is crabs?"),
        ("What about number 1?", LISTS, "What about urchins?"),
        ("And the last one?", LISTS, "And crabs?"),
        # Sentences of an answer: a short one takes the place of its number, a long one is joined
        ("Explain the first one.", THREE, "Explain The tongue retreats each year."),
        ("Explain the 2nd one.", THREE, f"Explain the 2nd one. {THREE.sentences[1].text}"),
        ("How can the first one be measured?", THREE, f"How can the first one be measured? {THREE.sentences[0].text}"),
        ("Explain sentence 3", THREE, "Explain The ice is thick"),
        ("Tell me more about the last point", THREE, "Tell me more about The ice is thick"),
        # What is not there: behind the subject
        ("Explain the fifth one.", LISTS, "About Aletsch: Explain the fifth one."),
        ("Explain number 0", THREE, "About Alps: Explain number 0"),
        ("Explain item 12", THREE, "About Alps: Explain item 12"),
        ("Explain the second one.", REFUSED, "About Alps: Explain the second one."),
        # What counts something else
        ("What is the second step of key generation in a lattice scheme?", THREE,
         "What is the second step of key generation in a lattice scheme?"),
    ],
)  # fmt: skip
def test_what_is_counted_off_is_filled_in(question: str, last: Answer, expected: str) -> None:
    assert standalone(question, [ALETSCH, last]) == expected
