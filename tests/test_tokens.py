"""Tokens that are searched, and how many a model will count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.tokens import STOP_WORDS, estimate_tokens, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("ML-KEM.KeyGen", ["ml-kem.keygen", "ml-kem", "ml", "kem", "keygen", "key", "gen"]),
        ("SHAKE128", ["shake128", "shake", "128"]),
        ("top-k", ["top-k", "top"]),
        ("SHA3_256", ["sha3_256", "sha", "3", "256"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("nomic-embed-text", ["nomic-embed-text", "nomic", "emb", "text"]),
        ("3.14", ["3.14", "3", "14"]),
        ("8", ["8"]),
    ],
)
def test_a_technical_name_is_kept_whole_and_in_parts(text: str, tokens: list[str]) -> None:
    found = tokenize(text)
    assert found[0] == tokens[0]
    assert sorted(found) == sorted(tokens)


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("keygen", "ML-KEM.KeyGen"),
        ("ml-kem", "ML-KEM.KeyGen"),
        ("shake", "SHAKE128"),
        ("128", "SHAKE128"),
        ("top", "top-k"),
    ],
)
def test_a_part_finds_the_whole(asked: str, written: str) -> None:
    assert set(tokenize(asked)) <= set(tokenize(written))


def test_a_single_letter_is_no_part() -> None:
    assert "k" not in tokenize("top-k")


@pytest.mark.parametrize(
    "words", [("index", "indexes", "indexed", "Indexing"), ("ranking", "ranks", "Ranked"), ("papers", "Paper")]
)
def test_the_forms_of_a_word_are_one_token(words: tuple[str, ...]) -> None:
    assert len({tuple(tokenize(word)) for word in words}) == 1


def test_stop_words_are_dropped_and_the_order_is_kept() -> None:
    assert tokenize("What is the decapsulation of a key?") == ["decapsul", "key"]
    assert tokenize(" ".join(sorted(STOP_WORDS))) == []
    assert tokenize("THE And oF") == []


def test_a_word_that_comes_twice_is_there_twice() -> None:
    assert tokenize("key after key") == ["key", "key"]


def test_text_without_spaces_is_found_by_pairs_of_characters() -> None:
    found = tokenize("向量检索")
    assert found[0] == "向量检索"
    assert set(found[1:]) == {"向量", "量检", "检索"}
    assert set(tokenize("检索")) <= set(found)


def test_words_of_other_scripts_and_accents() -> None:
    assert tokenize("Größe")[0] == tokenize("GRÖSSE")[0]
    assert tokenize("Ångström naïve") != []
    assert tokenize("αβγ-δε") == ["αβγ-δε", "αβγ", "δε"]


@pytest.mark.parametrize("text", ["", " \n\t", "!?;, --- ...", "§ ¶ †"])
def test_text_without_words_has_no_tokens(text: str) -> None:
    assert tokenize(text) == []


@given(st.text())
def test_tokens_are_never_empty_and_hold_no_white_space(text: str) -> None:
    # The BM25 index joins them with spaces and takes them apart again.
    assert all(token and token.split() == [token] for token in tokenize(text))


@given(st.text())
def test_an_estimate_is_nothing_only_for_text_without_signs(text: str) -> None:
    assert estimate_tokens(text) >= (1 if text.strip() else 0)


@given(st.text(), st.text())
def test_an_estimate_does_not_fall_as_text_grows(one: str, other: str) -> None:
    together = estimate_tokens(one + other)
    assert together >= max(estimate_tokens(one), estimate_tokens(other))
    assert estimate_tokens(f"{one}\n{other}") <= estimate_tokens(one) + estimate_tokens(other) + 1


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), (" ", 0), ("word", 1), ("words", 2), ("two words", 3), ("12345", 2), ("a+b=c", 5), ("\n", 1), ("的", 2)],
)
def test_estimates(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens
