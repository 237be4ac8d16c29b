"""Noun phrases of a question, found by function words and the evidence."""

from __future__ import annotations

import pytest

from folio.question.followup import answered, noun_phrases

EVIDENCE = (
    "The trust algorithm (TA) is the process of the policy engine (PE). A zero trust\narchitecture has no perimeter."
    " In each session, the learners write code. There are several habitat models, and a state estimator.",
    "The package is in Python. We taught 1873 interactive students. The growth of trees is slow.",
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # Between an article and the last word that ends a phrase in the evidence
        ("What does the policy engine use in a zero trust architecture?", ["policy engine", "zero trust architecture"]),
        ("How is the pendsim inverted pendulum package installed?", ["pendsim inverted pendulum package"]),
        # Between "which" and "did", whatever the evidence has
        ("Which resampling method was the best for wildlife habitat models?", ["resampling method",
         "wildlife habitat models"]),
        # Counted: up to a name, which a verb divides from it
        ("How many interactive students followed Neuromatch?", ["interactive students"]),
        # Words that end no phrase there
        ("Where do the students sleep at night?", ["students"]),
        ("Why?", []),
        ("", []),
    ],
)  # fmt: skip
def test_phrases(question: str, expected: list[str]) -> None:
    assert [phrase.text for phrase in noun_phrases(question, EVIDENCE)] == expected


def test_a_counted_noun_ends_with_its_plural() -> None:
    texts = ["In 2020, 1,757 students took part in Neuromatch Academy, and several systems engineers and students."]
    found = [phrase.text for phrase in noun_phrases("how many students took part in neuromatch academy?", texts)]
    assert found == ["neuromatch academy"]
    asked = "How many systems engineers worked on it?"
    assert [phrase.text for phrase in noun_phrases(asked, texts)] == ["systems engineers"]


def test_a_phrase_needs_evidence_and_knows_its_number() -> None:
    assert noun_phrases("How does the policy engine work?", []) == []
    asked, of = noun_phrases("What state estimator is used for trees?", EVIDENCE)
    assert (asked.is_asked_for, asked.is_plural, asked.as_subject) == (True, False, "the state estimator")
    assert (of.is_asked_for, of.is_plural, of.as_subject) == (False, True, "trees")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Here we add the epinion\ndataset, which is small.", "epinion dataset"),
        ("The dataset is added.", ""),
        ("A small dataset is added.", ""),  # what the question says is no answer
        ("", ""),
    ],
)
def test_the_answers_name_for_the_thing_asked_for(said: str, expected: str) -> None:
    question = "Which small dataset did they add?"
    (phrase,) = noun_phrases(question, EVIDENCE)
    assert answered(phrase, said, question) == expected


def test_hostile_text_is_no_pattern_and_takes_no_time() -> None:
    question = "Which (a+)+ thing is in the ((x* y*)* " + "of " * 5000 + "[?"
    assert noun_phrases(question, ["the " * 20_000 + "((x* y*)*"]) is not None
