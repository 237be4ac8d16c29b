"""Tokens that are searched, and how many a model will count."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.text import STOP_WORDS, estimate_tokens, find_words, sentence_spans, tokenize

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("ML-KEM.KeyGen", ["ml-kem.keygen", "ml-kem", "ml", "kem", "keygen", "key", "gen"]),
        ("SHAKE128", ["shake128", "shake", "128"]), ("top-k", ["top-k", "top"]),
        ("SHA3_256", ["sha3_256", "sha", "3", "256"]), ("HTTPServer", ["httpserver", "http", "server"]),
        ("nomic-embed-text", ["nomic-embed-text", "nomic", "emb", "text"]), ("3.14", ["3.14", "3", "14"]), ("8", ["8"]),
    ],
)  # fmt: skip
def test_a_technical_name_is_kept_whole_and_in_parts(text: str, tokens: list[str]) -> None:
    found = tokenize(text)
    assert found[0] == tokens[0]
    assert sorted(found) == sorted(tokens)


@given(st.lists(st.text(max_size=20) | st.sampled_from(["ML-KEM.KeyGen,", "e.g.", "a" * 70, "格子署名"]), max_size=8))
def test_the_tokens_of_a_text_are_those_of_its_words(words: list[str]) -> None:
    text = " ".join(words)
    assert tokenize(text) == [token for word in text.split() for token in tokenize(word)]
    assert tokenize("\u2003".join(words)) == tokenize(text)


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        # A part of a technical name
        ("keygen", "ML-KEM.KeyGen"), ("ml-kem", "ML-KEM.KeyGen"), ("shake", "SHAKE128"), ("128", "SHAKE128"),
        ("top", "top-k"),
        # Latin letters without their accents
        ("Mongke", "Möngke"), ("Erdos", "Erdős"), ("Lukasiewicz", "Łukasiewicz"), ("naive", "nai\u0308ve"),
        ("Soren", "Søren"), ("Angstrom", "\u212bngstr\u00f6m"), ("KEYGEN", "KéyGén"),
        ("检索", "向量检索"),
        # Words of two scripts
        ("BERT", "BERT模型在F1值上比LSTM高3.2个百分点"), ("F1", "BERT模型在F1值上"),
        ("3.2", "高3.2个百分点"), ("BERT", "BERT를"),
        ("百分", "BERT模型在F1值上比LSTM高3.2个百分点"), ("F1值上比LSTM", "模型在F1值上比LSTM高3.2个"),
        # Raised and lowered characters
        ("CO2", "CO₂"), ("CO_2", "CO₂"), ("CO₂", "CO2"), ("2^64", "2⁶⁴"), ("2⁶⁴", "2^64"), ("2**64", "2⁶⁴"),
        ("2^{64}", "2⁶⁴"),
        ("10^-4", "10⁻⁴"), ("10^{-4}", "10⁻⁴"), ("10^(−4)", "10⁻⁴"), ("m2", "m²"), ("m^2", "m²"), ("m²", "m2"),
        ("km2", "km²,"),
        ("s^-1", "s⁻¹"), ("s-1", "s⁻¹"), ("x_i", "x_i,"), ("xi", "x_i"), ("T_max", "T_max"), ("Tmax", "T_max"),
        ("T_{max}", "T_max"), ("x_i,j", "x_(i,j)"), ("2^n/2", "2^(n/2)"), ("2^{n/2}", "2^(n/2)"), ("87Sr", "⁸⁷Sr"),
        ("R2", "R²=0.9"), ("log2", "log₂(n)"), ("5 1/4", "5¼"), ("method", "method.³"),
        ("Schrodinger", "Schrödinger's"),
    ],
)  # fmt: skip
def test_a_part_or_a_plain_spelling_finds_the_word(typed: str, written: str) -> None:
    assert set(tokenize(typed)) <= set(tokenize(written))


@pytest.mark.parametrize(
    "words",
    [("index", "indexes", "indexed", "Indexing"), ("ranking", "ranks", "Ranked"), ("papers", "Paper"),
     ("Größe", "GRÖSSE")],
)  # fmt: skip
def test_the_forms_of_a_word_are_one_token(words: tuple[str, ...]) -> None:
    assert len({tuple(tokenize(word)) for word in words}) == 1


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("What is the decapsulation of a key?", ["decapsul", "key"]), ("THE And oF", []),
        (" ".join(sorted(STOP_WORDS)), []), ("key after key", ["key", "key"]),
        ("αβγ-δε", ["αβγ-δε", "αβγ", "δε"]), ("向量检索", ["向量检索", "向量", "量检", "检索"]),
        *((text, []) for text in ("", " \n\t", "!?;, --- ...", "§ ¶ †", "³", "¹²,", "[formula],", "¹⁻³")),
    ],
)  # fmt: skip
def test_a_text_has_these_tokens_in_its_order(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@pytest.mark.parametrize(("one", "other"), [("かく", "がく"), ("все", "всё"), ("мой", "мои"), ("ή", "η")])
def test_marks_of_other_scripts_tell_words_apart(one: str, other: str) -> None:
    assert tokenize(one) != tokenize(other)


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


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Full stops that end nothing
        ("See Fig. 3 for it. Then go.", ["See Fig. 3 for it.", "Then go."]),
        ("Eqs. 2 and 3 hold, cf. Sec. 4. Done.", ["Eqs. 2 and 3 hold, cf. Sec. 4.", "Done."]),
        ("By Alg. 2 it halts. Thm. 1 says so.", ["By Alg. 2 it halts.", "Thm. 1 says so."]),
        ("We use it, e.g. Adam, i.e. the default. Good.", ["We use it, e.g. Adam, i.e. the default.", "Good."]),
        ("Smith et al. Report it. Then", ["Smith et al. Report it.", "Then"]),
        ("As Smith et al. (2020) show. It holds.", ["As Smith et al. (2020) show.", "It holds."]),
        ("J. R. R. Tolkien wrote. He did.", ["J. R. R. Tolkien wrote.", "He did."]),
        ("It is 3.14. Version 1.2 came.", ["It is 3.14.", "Version 1.2 came."]),
        ("The U.S. Army came. It left.", ["The U.S. Army came.", "It left."]),
        ("No. 5 is good. We agree.", ["No. 5 is good.", "We agree."]),
        ("The answer is no. He left.", ["The answer is no.", "He left."]),
        ("Open the app. Then log in.", ["Open the app.", "Then log in."]),
        ("it waits... and goes on. Now.", ["it waits... and goes on.", "Now."]),
        ("Use numpy.linalg here. See it.", ["Use numpy.linalg here.", "See it."]),
        # Full stops that do
        ("Type I. Then more.", ["Type I.", "Then more."]),
        ("Is it? Yes! Fine… Next", ["Is it?", "Yes!", "Fine…", "Next"]),
        ("It costs $5. 10 people came.", ["It costs $5.", "10 people came."]),
        ("One.\nTwo goes on\nhere. Three.", ["One.", "Two goes on\nhere.", "Three."]),
        ("He ran.[1] She sat.[2, 3]", ["He ran.[1]", "She sat.[2, 3]"]),
        # Marks of notes belong to the sentence that they stand after
        ("We used this method. ³ Then it was. ¹² ¹³ And", ["We used this method. ³", "Then it was. ¹² ¹³", "And"]),
        ("Used the method ³. Then.³ So", ["Used the method ³.", "Then.³", "So"]),
        ("Is it? ¹,² Yes", ["Is it? ¹,²", "Yes"]),
        ("Smith et al. ³ report 5 m². It", ["Smith et al. ³ report 5 m².", "It"]), ("So.¹⁻³ It", ["So.¹⁻³", "It"]),
        ("It is 10⁵. And 2⁶⁴! So", ["It is 10⁵.", "And 2⁶⁴!", "So"]),
        # Quotes and brackets close behind the stop
        ('He said "yes." Then left.', ['He said "yes."', "Then left."]),
        ("He said “yes.” Then left.", ["He said “yes.”", "Then left."]),
        ("Elle a dit « oui. » Puis", ["Elle a dit « oui. »", "Puis"]), ("(It holds.) Next.", ["(It holds.)", "Next."]),
        ("It holds. “So it does.” End", ["It holds.", "“So it does.”", "End"]),
        # Lists, headings, paragraphs
        ("1. First item\n2. Second item", ["1. First item", "2. Second item"]),
        ("• one thing\n• two things", ["• one thing", "• two things"]), ("- one\n- two", ["- one", "- two"]),
        ("Introduction\n\nThe text goes on. End", ["Introduction", "The text goes on.", "End"]),
        ("1) alpha\n2) beta. Gamma", ["1) alpha", "2) beta.", "Gamma"]),
        # No final stop, no text, other scripts
        ("No final stop", ["No final stop"]), ("  \n ", []), ("", []),
        ("これは文です。次の文です。", ["これは文です。", "次の文です。"]),
        ("这是吗？是！好", ["这是吗？", "是！", "好"]), ("Это так. Да. Нет", ["Это так.", "Да.", "Нет"]),
    ],
)  # fmt: skip
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


WORDS = "The cat Fig. al. 3 2. 4.5 J. end. Why? No! ... “Then ” « » ** [1] [2,3] [ (1) (2019) 。 文".split()
WORDS += ["\n\n", "\n- ", "\n"]
PROSE = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.lists(
    st.sampled_from([*WORDS, *" .[]()-1\n"]), max_size=25
).map("".join)


@given(PROSE | st.text(max_size=80))
def test_sentences_are_disjoint_in_order_trimmed_and_cover_every_letter(text: str) -> None:
    spans = sentence_spans(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())


@pytest.mark.parametrize("text", ["." * 6000 + "!x", "。" * 6000 + "x"])
def test_a_run_of_stops_does_not_take_long(text: str) -> None:
    begun = time.process_time()
    sentence_spans(text)
    assert time.process_time() - begun < 0.4


@pytest.mark.parametrize(
    ("text", "words", "spans"),
    [
        ("The heart, the HEART.", "heart", [(4, 9), (15, 20)]),
        ("Eﬃ-\ncient Café", "efficient cafe", [(0, 14)]),
        ("a ﬀ b", "f", [(2, 3)]),  # once, though it has the letter twice
        ("aaaa", "aa", [(0, 2), (2, 4)]),
        ("x ∀ y ∀", " ∀ ", [(2, 3), (6, 7)]),
        ("p < 0.05", "p > 0.05", [(0, 8)]),
        ("anything", " ", []),
        ("", "x", []),
        ("각 나", "각나", [(0, 3)]),
        ("of 2⁶⁴ and", "2^64", [(3, 6)]),
        ("of 2⁶⁴ and", "264", [(3, 6)]),
        ("of 2^(n/2)", "2n/2", [(3, 9)]),
        ("an x_i of", "xi of", [(3, 9)]),
        ("only [formula] steps", "only steps", [(0, 20)]),
        ("only [formula] steps", "only [formula] steps", [(0, 20)]),
        ("only [formula] steps", "formula", []),
    ],
)
def test_words_are_found_as_they_are_folded(text: str, words: str, spans: list[tuple[int, int]]) -> None:
    assert find_words(text, words) == spans


def test_the_plural_of_an_acronym_has_the_acronym() -> None:
    assert tokenize("CRDTs, GPUs") == ["crdts", "crdt", "gpus", "gpu"]
    assert tokenize("HAMTs") == tokenize("HAMT") == ["hamt"]
