"""Follow-ups without a model: which questions need an earlier one, and what they mean."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from folio.answer_types import Answer
from folio.question.followup import (
    NotUnderstoodError,
    is_followup,
    papers_of,
    readings,
    short_name,
    standalone,
    stays,
    subject,
    with_other_name,
)
from tests.helpers.factories import answer_of

pytestmark = pytest.mark.fast

LENGTH, LONG = "How long is the Aletsch glacier?", "The glacier is 23 kilometres long."
ALETSCH = answer_of(LENGTH, LONG, title="Aletsch: a glacier of the Alps")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # Points back
        ("How thick is it?", True), ("And its tongue?", True), ("What are they made of?", True),
        ("Why is that the case for glaciers?", True), ("Please explain the fifth one in detail", True),
        ("Explain number 3 in detail", True),
        # Names hardly anything
        ("Why?", True), ("How thick?", True), ("Tell me more", True),
        # Names its own subject
        ("What about glaciers in Norway?", False), ("Does the same hold for the Rhone glacier?", False),
        ("Which one is the largest in the Alps?", False), ("BERT?", False),
        # "It" and "that" that refer to nothing, or to something in the question
        ("Is it safer to walk on snow in the morning?", False), ("Does a glacier grow if snow falls on it?", False),
        ("Which model measures the ice that melts in summer?", False),
        ("What is Zab and which properties does it guarantee?", False), ("How big and how heavy is it?", True),
        ("When was the gauge built, and how exact is it?", False), ("What is it and how does it work?", True),
        # Stands alone
        ("How thick is the Aletsch glacier?", False), ("Why do glaciers retreat faster each year?", False),
        ("Is there a gauge at the river Massa?", False),
        ("Which animals such as otters use stones as tools?", False),
        ("What is a one-time pad in cryptography?", False), ("Where was the gauge of the river Massa built?", False),
        ("Does butter melt faster than ice on a glacier?", False),  # no "but", no "it" inside a word
        ("What is the first step of key generation in a lattice scheme?", False),
        ("What does sentence 5 of the Antarctic treaty rule on mining?", False),
    ],
)  # fmt: skip
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
def test_the_subject_of_a_question(question: str, expected: str) -> None:
    assert subject(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # In place of a reference
        ("How thick is it?", "How thick is Aletsch?"),
        ("And how thick is it?", "How thick is Aletsch?"),
        ("And in which canton is its tongue?", "In which canton is Aletsch’s tongue?"),
        ("Explain that further.", "Explain Aletsch further."),
        # People and documents are the paper's, too
        ("what do the authors conclude?", "What do the authors of Aletsch conclude?"),
        ("What are the authors' names?", "What are Aletsch’s authors' names?"),
        ("What do they propose?", "What do the authors of Aletsch propose?"),
        ("Who are they?", "Who are the authors of Aletsch?"),
        ("When did he publish it?", "When did the authors of Aletsch publish it?"),
        ("How are they measured?", "How are Aletsch measured?"),
        ("Which data did this study use?", "Which data did Aletsch use?"),
        ("what is the paper about?", "What is Aletsch about?"),
        ("Who funded this work?", "Who funded Aletsch?"),
        # Behind a question that hardly says anything
        ("What about the ice there?", "What about the ice there, for Aletsch?"),
        ("Why?", "Why, for Aletsch?"),
        ("and?", "And, for Aletsch?"),
        ("Tell me more", "Tell me more about Aletsch"),
        # The question before, about something else
        ("And on Rhone ice?", "On Rhone ice, for Aletsch?"),
        ("How many samples were drawn for it?", "How many samples were drawn for Aletsch?"),
        ("And for Rhone?", "How long is the Rhone glacier?"),
        ("What about the Rhone?", "How long is the Rhone glacier?"),
        ("how about Gorner", "How long is the Gorner glacier?"),
        # A name of its own
        ("Does GPS see glaciers?", "Does GPS see glaciers?"),
        ("How thick is the Rhone glacier?", "How thick is the Rhone glacier?"),
    ],
)
def test_a_follow_up_is_completed_to_a_sentence(question: str, expected: str) -> None:
    assert standalone(question, [ALETSCH]) == expected


def test_it_is_the_paper_of_the_last_shown_answer() -> None:
    refused = answer_of("And its colour?", standalone="And Aletsch’s colour?")
    assert standalone("Who wrote it?", [ALETSCH, refused]) == "Who wrote Aletsch?"
    assert papers_of("Who wrote it?", [refused]) == []


def test_of_several_papers_they_are_those_that_the_question_named() -> None:
    parts = [answer_of("", text, title=text[:-1]) for text in ("Ice.", "Rhone.", "Gorner.")]
    evidence = tuple(replace(part.evidence[0], number=place) for place, part in enumerate(parts, 1))
    sentences = tuple(
        replace(part.sentences[0], citations=(replace(part.citations[0], evidence=place),))
        for place, part in enumerate(parts, 1)
    )
    both = Answer("How do they differ?", "How do Rhone and Gorner differ?", sentences, evidence)
    assert standalone("Who wrote them?", [both]) == "Who wrote Rhone and Gorner?"
    assert standalone("Who wrote it?", [both]) == "Who wrote Rhone?"
    assert standalone("Who wrote it?", [replace(both, standalone_question="What differs?")]) == "Who wrote Ice?"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Zab: High-performance broadcast", "Zab"),
        ("Out of the Tar Pit", "Out of the Tar Pit"),
        ("A course of very many words: on ice", "A course of very many words: on ice"),
        ("", "paper"),
    ],
)
def test_the_short_name_of_a_paper(title: str, expected: str) -> None:
    (paper,) = papers_of("Who wrote it?", [answer_of(LENGTH, LONG, title=title)])
    assert short_name(paper) == expected


@pytest.mark.parametrize(
    ("question", "names_a_paper", "has_new_topic", "expected"),
    [
        # References, but not to an earlier question where it names what they are about itself
        ("Who wrote it?", False, False, True), ("what did the authors measure", False, True, True),
        ("how does it differ from pastry", True, False, True),
        ("when did they write the little manual of api design", True, False, False),
        ("why did they run only one process on each node in the ocamlp3l test", False, True, False),
        ("what botnet does nist name as an example of attacks in its discussion of threats", True, True, False),
        # Fragments, and what any paper has
        ("why?", False, False, True), ("and the limitations?", False, True, True), ("ablations?", False, True, True),
        ("what are the main results?", False, False, True), ("what's new?", False, False, True),
        # What is in one paper only
        ("how many students took part?", False, False, True),
        ("what happens when the leader fails?", False, False, True),
        ("is there an installation-free way to try it?", False, False, True),
        # What says itself what it is about
        ("what is a dangling pointer?", False, True, False), ("what is coin age", False, False, False),
        ("how does pastry route messages", True, False, False), ("do neural networks forget", False, True, False),
        ("what keeps a website from putting a duplicate of everything in every building", False, False, False),
    ],
)  # fmt: skip
def test_a_question_stays_on_the_last_paper_or_stands_alone(
    question: str, names_a_paper: bool, has_new_topic: bool, expected: bool
) -> None:
    assert stays(question, names_a_paper=names_a_paper, has_new_topic=has_new_topic) is expected


def test_the_name_of_a_paper_is_swapped_whatever_its_case() -> None:
    last = answer_of("how long is aletsch?", LONG, title="Aletsch: a glacier of the Alps")
    assert with_other_name("what about gorner?", [last], lambda words: words == "gorner") == "how long is gorner?"
    assert with_other_name("what about ice?", [last], lambda words: words == "gorner") == ""


def test_the_subject_comes_from_the_last_standalone_question() -> None:
    between = answer_of("And its tongue?", "It retreats.")
    assert standalone("How thick is it?", []) == "How thick is it?"
    assert standalone("How thick is it?", [answer_of(LENGTH), between]) == "How thick is A Paper?"
    assert standalone("How thick is it?", [answer_of(LENGTH), answer_of("And its tongue?")]) == "How thick is Aletsch?"
    assert standalone("Why?", [answer_of("And its tongue?")]) == "Why, for its tongue?"
    assert standalone("How come?", [answer_of("Why?")]) == "How come?"
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
        ("Explain the first one.", THREE, "Explain “The tongue retreats each year.”"),
        ("Explain the 2nd one.", THREE, f"Explain the 2nd one. That is: “{THREE.sentences[1].text}”"),
        ("How can the first one be measured?", THREE,
         f"How can the first one be measured? That is: “{THREE.sentences[0].text}”"),
        ("Explain sentence 3", THREE, "Explain “The ice is thick.”"),
        ("Tell me more about the last point", THREE, "Tell me more about “The ice is thick.”"),
        # What is not there: behind the subject
        ("Explain the fifth one.", LISTS, "Explain the fifth one, for A Paper."),
        ("Explain number 0", THREE, "Explain number 0, for A Paper"),
        ("Explain item 12", THREE, "Explain item 12, for A Paper"),
        ("Explain the second one.", REFUSED, "Explain the second one, for Aletsch."),
        # What counts something else
        ("What is the second step of key generation in a lattice scheme?", THREE,
         "What is the second step of key generation in a lattice scheme?"),
    ],
)  # fmt: skip
def test_numbered_items_are_filled_in(question: str, last: Answer, expected: str) -> None:
    assert standalone(question, [ALETSCH, last]) == expected


@pytest.mark.parametrize("question", ["???", " … "])
def test_an_unclear_question_is_asked_back(question: str) -> None:
    with pytest.raises(NotUnderstoodError, match=f"It is not clear what “{re.escape(question.strip())}” asks"):
        standalone(question, [ALETSCH])


@pytest.mark.parametrize(
    ("question", "meant", "expected"),
    [
        # It leans on what was asked before: every reading
        ("Why?", "Why, for Aletsch?",
         ["Why, for Aletsch?", "Aletsch Why?", "Why?", "Who measured it? Why?", f"{LENGTH} Who measured it? Why?"]),
        # Nothing was filled in: the one with the subject is what a reranker reads
        ("Which instruments measure ice from space?", "Which instruments measure ice from space?",
         ["Aletsch Which instruments measure ice from space?", "Which instruments measure ice from space?",
          "Who measured it? Which instruments measure ice from space?",
          f"{LENGTH} Who measured it? Which instruments measure ice from space?"]),
        # It names its own subject, and may have left the one before
        ("How thick is the Rhone glacier?", "How thick is the Rhone glacier?",
         ["How thick is the Rhone glacier?", "Who measured it? How thick is the Rhone glacier?"]),
    ],
)  # fmt: skip
def test_readings(question: str, meant: str, expected: list[str]) -> None:
    assert readings(question, meant, [LENGTH, "Who measured it?"]) == expected
    assert readings(question, meant, []) == [meant]


def test_in_one_paper_its_name_is_no_first_reading() -> None:
    in_paper = readings("Why?", "Why, for Ice of the Alps?", [LENGTH], in_paper=True)
    assert in_paper[:2] == ["Aletsch Why?", "Why, for Ice of the Alps?"]
