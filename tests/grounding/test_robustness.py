"""For any text of a paper or a model, nothing raises, and time grows linearly."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.grounding.conflicts import against, conflict
from folio.grounding.grounder import Grounder
from folio.grounding.names import has_identifier, has_name, identifiers, key, names, quoted
from folio.grounding.negation import denies, opposes
from folio.grounding.quantities import quantities
from folio.grounding.sentences import content_words, in_order, words_of
from tests.helpers.cpu_time import assert_linear
from tests.helpers.factories import evidence_on

READERS: dict[str, Callable[[str], object]] = {
    "quantities": quantities,
    "identifiers": identifiers,
    "names": names,
    "quoted": lambda text: list(quoted(text)),
    "has_identifier": lambda text: has_identifier(text, key(f"{text} b c")),
    "has_name": lambda text: has_name(text, key(f"{text} b c")),
    "content_words": content_words,
    "denies": lambda text: denies(text, f"{text} b"),
    "opposes": lambda text: opposes(text, f"{text} b"),
    "conflict": lambda text: conflict(text, f"{text} b"),
    "in_order": lambda text: in_order(words_of(text), words_of(f"b {text}")),
}
PIECES = [
    *("9", "a", "A", " ", "-", "(", "[", "((a", "9 ", "9,", "9.", "1 000 ", "1,000,", "a-", "A.b_", "2^", "-9", "9e9"),
    *(
        "5 × 10", "5 km/", "5 per ", "$5", "n't", "“a ", "“[ ", '"', "A ", "not a ", "can not ", "a higher ", "two ",
        "AB",
    ),
    *("https://", "10.1234/", "word: ", "⁻³", "٢", "的", "\ud800", "\x00", "\u202e", "a  b\n", "- x", "; "),
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_long_texts_take_no_time(piece: str) -> None:
    for read in READERS.values():
        assert_linear(lambda size, read=read: read((piece * (size // len(piece) + 1))[:size]), 8_000)  # type: ignore[misc]


_SIGNS = (
    '5 -3 2.5 1,000 km % °C $ ( ) [ ] “ ” " « » . , ; : - – − × ^ ⁻³ e-5 10^999 5e999999 GPT-4 x_1 Adam LSTM not no'
)
_OTHERS = (
    " never than more less two hundred million Table to and dozen delta_degC degF ٢ ½ ß İ \ud800 \x00 \u202e שלום مرحبا"
)
TEXTS = st.one_of(
    st.text(st.characters(), max_size=60),
    st.lists(st.sampled_from((_SIGNS + _OTHERS).split(" ")), max_size=14).map(" ".join),
)


@given(TEXTS, TEXTS)
def test_nothing_raises(statement: str, text: str) -> None:
    for read in READERS.values():
        read(statement)
    if text.strip():
        grounder = Grounder(evidence_on(text))
        grounder.find(statement, (1, 2), (1,))
        grounder.mentions(statement)
        against(statement, (), grounder.sentences)


@given(TEXTS, TEXTS)
def test_conflict_goes_both_ways_and_nothing_contradicts_itself(statement: str, other: str) -> None:
    one, two = conflict(statement, other), conflict(other, statement)
    assert (one and one.kind) == (two and two.kind)
    found = (denies(statement, statement), opposes(statement, statement), conflict(statement, statement))
    assert found == (False, False, None)
