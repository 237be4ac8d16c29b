"""Refusals: the fixed sentence, and other words."""

from __future__ import annotations

import time

import pytest

from folio.answer.refusals import is_refusal, is_weak_refusal, says_nothing
from folio.answer_types import REFUSAL

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (REFUSAL, True), (f'"{REFUSAL}"', True), (f"**{REFUSAL}**", True), (f"\n {REFUSAL}", True),
        ("not found in the provided papers", True), (f"{REFUSAL} But I know it.", True),
        ("It was not found in the provided papers.", False),
        ("The bones were not found in the provided papers but in a box.", False), ("", False),
    ],
)  # fmt: skip
def test_the_fixed_refusal(text: str, expected: bool) -> None:
    assert is_refusal(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "I could not find any information about the sample size in the provided evidence.",
        "I'm sorry, but the passages say something else.",
        "Unfortunately, the passages do not say when the study was carried out.",
        "The provided evidence does not mention which optimizer was used.",
        "The context doesn't specify the version of Python.", "None of the passages mention the price.",
        "The given papers do not discuss this.",
        "There is no information about the cost of the hardware in the given passages.",
        "It is not stated in the evidence.", "The price is not given.", "Not mentioned in the passages.",
        "Based on the evidence, it is not possible to determine how many took part in the study.",
        "This question cannot be answered from the sources.", "The excerpts are not sufficient to answer.",
        "There is insufficient information.",
        # Other languages
        "Ich konnte dazu in den Quellen nichts finden, es gibt keine Angabe.",
        "Die Quellen enthalten keine Angabe zum Preis.", "Je n'ai rien trouvé à ce sujet.",
        "Les passages ne mentionnent pas le prix.", "No encontré esa información.", "Não encontrei essa informação.",
        "Non ho trovato questa informazione.", "提供的段落中未提及价格。",
    ],
)  # fmt: skip
def test_refusals_in_other_words(text: str) -> None:
    assert is_weak_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "Sea otters sleep on their backs.",
        # Told of what was studied, and not of the evidence
        "The authors could not find a difference between the groups.", "The original authors did not provide the code.",
        "The glacier does not move in winter.", "Participants were not able to answer the second question.",
        "No difference was found between the two models.", "The model has no information about the test set.",
        "Encryption does not provide integrity.", "The key cannot be recovered from the ciphertext.",
    ],
)  # fmt: skip
def test_negative_facts_are_no_refusal(text: str) -> None:
    assert not is_refusal(text)
    assert not is_weak_refusal(text)


@pytest.mark.parametrize(
    ("text", "marked", "expected"),
    [
        ("The source code is not available.", False, True),
        ("The source code is not available.", True, False),
        ("The code is not given in the passages.", True, True),
    ],
)
def test_a_marked_sentence_may_state_that_something_is_unavailable(text: str, marked: bool, expected: bool) -> None:
    assert is_weak_refusal(text, marked=marked) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in (
            "I don't know.", "I'm sorry, I can't help with that.", "I’m sorry, but I cannot assist with that request.",
            "Sorry, I do not know.", "As an AI language model, I cannot answer that.", "I am unable to help with this.",
            "Unfortunately, I don't know.", "I have no idea.", "Sorry.", "Ich weiß es nicht.", "Je ne sais pas.",
            "我不知道。",
        )),
        *((text, False) for text in (
            "", "We do not know how old they get.", "The participants said: I don't know.", "Otters do not know fear.",
            "I don't know from the evidence how old they get.", "Sorry, the provided papers do not say.",
            "I'm sorry, but the passages say something else.", "As an AI model, BERT has 12 layers.", REFUSAL,
        )),
    ],
)  # fmt: skip
def test_a_model_that_speaks_of_itself_says_nothing_about_the_papers(text: str, expected: bool) -> None:
    assert says_nothing(text) is expected


@pytest.mark.parametrize("words", ["source ", "no information ", "sources ne "])
def test_no_text_takes_long(words: str) -> None:
    begun = time.process_time()
    is_weak_refusal(words * 2000)
    assert time.process_time() - begun < 0.4
