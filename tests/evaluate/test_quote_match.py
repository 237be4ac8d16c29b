"""Quotes in texts and texts on pages, as they are judged."""

from __future__ import annotations

import pytest

from folio.evaluate.quote_match import MIN_QUOTE_LENGTH, fold, holds, is_verbatim, pages_with, stands_on, weight

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Sea Otters, 155,000 hairs!", "seaotters155000hairs"),
        ("a permu-\n  tation", "apermutation"),
        ("well-known", "wellknown"),
        ("ﬁne ﬂow ½", "fineflow12"),  # ligatures and fractions by NFKC
        ("Zürich", "zurich"),
        ("Z¨urich", "zurich"),  # an accent as a sign of its own, as old fonts have it
        ("STRASSE Straße", "strassestrasse"),
        ("ΚΛΕΙΔΊ, κλειδί", "κλειδικλειδι"),
        ("Ключ_2: «открытый»", "ключ2открытыи"),
        ("密钥长度为 256 位。", "密钥长度为256位"),
        ("열쇠의 길이", "열쇠의길이"),
        ("", ""),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("text", "enough"),
    [
        ("a quote of twenty letters", True),
        ("nineteen letters as it", False),
        ("длина ключа двести", False),
        ("длина открытого ключа 256", True),
        ("密钥长度为位", False),
        ("密钥的长度为位", True),  # seven signs that stand for words
        ("鍵の長さは二百", True),
        ("열쇠의 길이는", False),
    ],
)
def test_quote_is_long_enough_by_what_its_letters_tell(text: str, enough: bool) -> None:
    assert (weight(fold(text)) >= MIN_QUOTE_LENGTH) is enough


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("xxabcdefghijxx", True),
        ("xxabcdef", True),  # the first six of ten
        ("efghijxx", True),  # the last six
        ("xxabcdexx", False),
        ("bcdefghi", False),  # eight of ten, neither end
        ("", False),
    ],
)
def test_a_text_has_most_of_a_quote(text: str, held: bool) -> None:
    assert holds(text, "abcdefghij") is held


def test_no_text_holds_an_empty_quote() -> None:
    assert not holds("abc", "")


def test_a_run_of_sixty_characters_is_on_a_page() -> None:
    run = "".join(f"{number:03d}" for number in range(20))
    assert len(run) == 60
    assert stands_on(f"before{run}after", f"other{run}words")
    assert not stands_on(f"before{run[:59]}after", f"other{run[:59]}words")


def test_a_short_text_is_on_a_page_whole() -> None:
    assert stands_on("short", "ashorttext")
    assert not stands_on("shorter", "ashorttext")
    assert not stands_on("", "ashorttext")


def test_pages_with_a_quote() -> None:
    pages = ["abcdef", "ghi", "abcxyz"]
    assert pages_with("abc", pages) == {1, 3}
    assert pages_with("efgh", pages) == {1, 2}  # it crosses
    assert pages_with("fghia", pages) == frozenset()  # over three pages


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("The permutation is public.", True),
        ("the permutation is public.", False),  # another letter
        ("The permutation is public", True),
        ("The permutation was public.", False),
        ("efficient", True),
        ("pulse driven", True),
        ("  ", False),
    ],
)
def test_quote_stands_word_for_word(quote: str, found: bool) -> None:
    assert is_verbatim(quote, "The per-\nmutation is\n   public. It is eﬃcient, pulse\uffffdriven.") is found
