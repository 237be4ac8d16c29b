"""Where the quote of a note is found again in a changed text."""

from __future__ import annotations

import pytest

from folio.errors import UsageError
from folio.store.note_places import find_again, span_now


@pytest.mark.parametrize(
    ("before", "words", "after", "where"),
    [
        ("It has a\nrate of 1.5 units.", "a\nrate of 1.5 units", "It has a rate of 1.5 units.", "a rate of 1.5 units"),
        ("It has a\nrate of 1.5 units.", "a\nrate of 1.5 units", "It has a rate of 15 units.", None),
        ("The mean\nis -0.5 here.", "mean\nis -0.5", "The mean is 0.5 here.", None),
        ("Then p = 0.05 holds.", "p = 0.05", "Then p = 0.051 holds.", None),
        ("The rate is 5 here.", "rate is 5", "The rate is 5.2 here.", None),
        ("The rate is 5. Then", "rate is 5", "So the rate is 5. Then", "rate is 5"),
        ("It is not so.", "not", "It cannot be.", None),
        ("It cannot be.", "not", "So it cannot be.", "not"),  # it was a part of a word before
        ("它很好。", "很好", "它很好的。", "很好"),
        # Raised and lowered characters as earlier releases read them, as people type them, as they are read now
        ("It has 264 of CO2.", "has 264 of CO2", "It has 2⁶⁴ of CO₂.", "has 2⁶⁴ of CO₂"),
        ("It has 2^64 in x_i.", "has 2^64 in x_i", "It has 2⁶⁴ in xi.", "has 2⁶⁴ in xi"),
        ("The method3 gave 92.43 so.", "method3 gave 92.43", "The method ³ gave 92.4 ³ so.", "method ³ gave 92.4 ³"),
        ("It is 10-4 so.", "is 10-4 so", "It is 10⁻⁴ so.", "is 10⁻⁴ so"),
        ("is 104 so", "is 104 so", "is 10⁻⁴ so", None),
        ("at 5 m2 so", "at 5 m2 so", "at 5 m⁻² so", None),
        ("done in only  steps", "only  steps", "in only [formula] steps", "only [formula] steps"),
        ("a slope of -0.35 so", "of -0.35 so", "a slope of −0.35 so", "of −0.35 so"),
        ("of 0.35 so", "of 0.35 so", "of −0.35 so", None),
        ("of −0.35 so", "of −0.35 so", "of 0.35 so", None),
        ("the COVID19 so", "COVID19 so", "the COVID-19 so", "COVID-19 so"),
    ],
)
def test_a_quote_is_found_again_as_whole_words_with_its_numbers(
    before: str, words: str, after: str, where: str | None
) -> None:
    start = before.index(words)
    span = find_again(after, words, start, before[:start], before[start + len(words) :])
    assert (None if span is None else after[slice(*span)]) == where


def test_words_that_a_person_saw_are_where_they_are_now() -> None:
    text = "An otter dives. The otter sleeps. An otter eats."
    assert span_now(text, 3, 8, "otter") == (3, 8)
    assert span_now(text, 0, 5, "") == (0, 5)
    assert span_now(text, 22, 27, "otter") == (20, 25)  # the closest one
    assert span_now(text, 0, 5, "the\notter sleeps") == (16, 32)
    with pytest.raises(UsageError, match="no words “A seal” any more"):
        span_now(text, 3, 8, "A seal")
