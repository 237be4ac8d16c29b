"""Questions in another language than English."""

from __future__ import annotations

import pytest

from folio.question.language import foreign_words

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    "question",
    [
        "Wer hat Zab geschrieben?", "Wie viele Knoten braucht Herbivore?", "Was ist Zab?", "Qu’est-ce que Zab ?",
        "Quelles sont les propriétés de Zab ?", "¿Quién escribió Zab?", "Chi ha scritto Zab?", "O que é Zab?",
        "Hoe werkt Pastry?", "Zabとは何ですか？", "什么是拜占庭链复制？", "Что такое Zab?",
    ],
)  # fmt: skip
def test_another_language_is_recognised(question: str) -> None:
    assert foreign_words(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who wrote Zab?", "zab leader election", "Summarize the agenda (Birman et al)", "What was die casting?",
        "EM algorithm convergence", "OS kernel bypass", "DES key size", "Die stacking", "en-de translation BLEU", "λ",
        "Comment classification accuracy", "de novo assembly", "La Niña vs El Niño",
        "What does Σ mean in the proof?", "How does a La Niña year differ?", "???", "",
    ],
)  # fmt: skip
def test_english_and_keywords_are_not(question: str) -> None:
    assert not foreign_words(question)
