"""Statements in another language than the evidence."""

from __future__ import annotations

import tomllib

import pytest

from folio.grounding.sentences import number_sentences
from folio.grounding.translation import is_borne_out, is_in_another_language
from tests.helpers.factories import evidence_on
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

ENGLISH = (
    "The fur of sea otters has up to 150,000 hairs per square centimetre. No other mammal has a denser fur. The tongue"
    " of the glacier retreated by 12.5 m per year between 1990 and 2010, says BERT-2."
)
GERMAN = "Das Fell von Seeottern hat bis zu 150.000 Haare je Quadratzentimeter. Kein anderes Säugetier hat mehr davon."
SOURCE = number_sentences(evidence_on(ENGLISH))


@pytest.mark.parametrize(
    "statement",
    [
        GERMAN, "Le pelage des loutres de mer compte jusqu'à 150 000 poils.",
        "La piel de las nutrias tiene 150.000 pelos.",
        "La lingua del ghiacciaio si è ritirata di 12,5 m.", "A pele das lontras tem até 150.000 pelos.",
        "De vacht van zeeotters heeft 150.000 haren.", "Мех калана имеет до 150 000 волос.",
        "海獭的皮毛每平方厘米最多有150,000根毛。", "ラッコの毛は1平方センチに150,000本あります。",
    ],
)  # fmt: skip
def test_another_language_is_noticed(statement: str) -> None:
    assert is_in_another_language(statement, ENGLISH)


@pytest.mark.parametrize(
    "statement",
    [
        "The fur has 150,000 hairs.", "Otters float in rafts of kelp.", "BERT uses 12 layers, 768 units and 12 heads.",
        "Sea otters eat 25 urchins each day.", "Il, le, la.", "", "β is 0.25 and ∇L is 1.",
        "De Luca et al. measured the fur of sea otters.",
    ],
)  # fmt: skip
def test_english_is_no_other_language(statement: str) -> None:
    assert not is_in_another_language(statement, ENGLISH)


def test_english_about_german_is_another_language_and_german_is_none() -> None:
    assert is_in_another_language("The fur of sea otters has up to 150,000 hairs.", GERMAN)
    assert not is_in_another_language("Kein Säugetier hat ein Fell, das dichter ist als das der Otter.", GERMAN)
    prose = tomllib.loads((ROOT / "tests" / "data" / "languages.toml").read_text(encoding="utf-8"))
    found = {name for name, text in prose.items() if is_in_another_language(text, ENGLISH)}
    assert {"de", "ru", "el", "ar", "he", "hi", "zh", "ja", "ko"} <= found
    assert "en" not in found


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("Das Fell hat bis zu 150.000 Haare.", True), ("Das Fell hat bis zu 150 000 Haare.", True),
        ("Das Fell hat bis zu 155.000 Haare.", False), ("Das Fell hat bis zu 150 Haare.", False),
        ("每平方厘米最多有150,000根毛。", True), ("每平方厘米最多有15,000根毛。", False),
        ("Zwischen 1990 und 2010 um 12,5 m pro Jahr.", True), ("Um 125 m pro Jahr.", False),
        ("Das sagt BERT-2 mit 150.000.", True), ("Das sagt GPT-2 mit 150.000.", False),
        ("Das Fell ist sehr dicht.", False),  # nothing to compare
    ],
)  # fmt: skip
def test_numbers_and_codes_are_compared(statement: str, expected: bool) -> None:
    assert is_borne_out(statement, SOURCE) is expected
