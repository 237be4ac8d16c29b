"""Names, identifiers and quoted words of a text, and whether another text has them."""

from __future__ import annotations

import pytest

from folio.grounding.names import has_identifier, has_name, has_only_longer, identifiers, key, names, quoted

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("text", "expected_identifiers", "expected_names"),
    [
        ("It is ML-KEM-768 with SHA3-256.", {"ML-KEM-768", "SHA3-256"}, set()),
        ("See CVE-2021-44228, x_1, v1.2, numpy.linalg.", {"CVE-2021-44228", "x_1", "v1.2", "numpy.linalg"}, set()),
        ("At https://a.org/b-1. Trees grow, says Bob. Birds too.", {"https://a.org/b-1"}, {"Bob"}),
        ("It took 5km, 5 km² or km2, 10-fold, in the 1990s, mid-2019, a 3D step-5 thing.", set(), set()),
        ("They used Adam on GPUs.", set(), {"Adam", "GPU"}),
        ("SGD is Folio's choice.", set(), {"SGD", "Folio"}),
        ("A Large Study Of Many Things", set(), set()),
        ("As Table 3 says, however, the Diffie-Hellman exchange", set(), {"Diffie", "Hellman"}),
        ("Tax Benefits: the state pays.", set(), set()),
        ("It has CO₂ at 5 s⁻¹ by the method ³ of Boeing ¹.", {"CO2"}, {"Boeing"}),
        ("It has x_i and 2^(n/2) of 10⁻⁴.", {"x_i", "n/2"}, set()),
    ],
)
def test_identifiers_and_names(text: str, expected_identifiers: set[str], expected_names: set[str]) -> None:
    assert (set(identifiers(text)), set(names(text))) == (expected_identifiers, expected_names)


@pytest.mark.parametrize(
    ("identifier", "text", "expected"),
    [
        ("GPT4", "We use GPT-4.", True), ("ResNet50", "A ResNet 50.", True), ("COVID-19", "The COVID pandemic", True),
        ("Q3", "in the third quarter", True), ("ML-KEM-1023", "ML-KEM-512 and -1024", False),
        ("GPT-4", "We use GPT-3.", False), ("Q3", "in the second quarter", False),
        ("https://example.org/x", "at https://a.org", False),
        ("CO2", "some CO₂ here", True), ("CO2", "some CO₃ here", False), ("x_i", "the xi of", True),
        ("x_{i}", "an x_i", True),
    ],
)  # fmt: skip
def test_has_identifier(identifier: str, text: str, expected: bool) -> None:
    assert has_identifier(identifier, key(text)) is expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("LSTM", "a long short-term memory", True), ("NLP", "by natural language processing", True),
        ("CNN", "convolutional neural networks", True), ("RNN", "a convolutional neural network", False),
        ("German", "in Germany", True), ("Bayesian", "By Bayes it is.", True), ("Norway", "near Alaska", False),
        ("TPU", "on GPUs", False),
        ("Аletsch", "the Aletsch glacier", False),  # a Cyrillic А
    ],
)  # fmt: skip
def test_has_name(name: str, text: str, expected: bool) -> None:
    assert has_name(name, key(text)) is expected


def test_quoted_words_and_keys() -> None:
    text = 'He said “never trust it” and “go”, «mais je crois», "as it … was [then] in May".'
    assert list(quoted(text)) == ["never trust it", "mais je crois", "as it", "in May"]
    assert key("the ML-KEM.KeyGen isn't Gauß, v1.2 (é)") == " the ml kem keygen is not gauss v 1 2 é "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ML-KEM.KeyGen_internal takes two seeds.", True),
        ("ML-KEM.KeyGen runs ML-KEM.KeyGen_internal.", False),
        ("ML-KEM.KeyGen takes no input.", False),
        ("K-ML-KEM.KeyGen_internal takes two seeds; KeyGen_x too.", True),
        ("Nothing takes two seeds.", False),
    ],
)
def test_only_a_longer_name(text: str, expected: bool) -> None:
    assert has_only_longer("ML-KEM.KeyGen", text) is expected
