"""Acronyms: spelled out, and added to a question."""

from __future__ import annotations

import pytest

from folio.question.parts import long_form, shortened, spelled_out

pytestmark = pytest.mark.fast

KNOWN = {"MAC": "Message Authentication Code", "CRDT": "conflict-free replicated data type"}


def known(acronym: str) -> str:
    return KNOWN.get(acronym, "")


@pytest.mark.parametrize(
    ("question", "spelled"),
    [
        ("How is the MAC made?", "How is the Message Authentication Code (MAC) made?"),
        ("When do CRDTs converge?", "When do conflict-free replicated data type (CRDTs) converge?"),
        ("How fast is the GPU?", ""),
        ("How is a message authentication code (MAC) made?", ""),  # it is spelled out already
        ("How is a machine made?", ""),
    ],
)
def test_acronyms_are_spelled_out_as_the_papers_do(question: str, spelled: str) -> None:
    assert spelled_out(question, known) == spelled


def test_words_that_the_papers_shorten_get_their_acronym() -> None:
    texts = ["We use a Message Authentication Code (MAC) here.", "The (GPU) is fast. A thing (THG) is none."]
    asked = "How is a message authentication code made?"
    assert shortened(asked, texts) == "How is a message authentication code made MAC"
    assert shortened("How is the MAC made?", texts) == ""
    assert shortened("How is a message made?", texts) == ""
    assert shortened(asked, []) == ""


@pytest.mark.parametrize(
    ("acronym", "text", "words"),
    [
        ("CRDT", "We use conflict-free replicated data types (CRDTs) here.", "conflict-free replicated data types"),
        ("GFS", "It runs on the Google\nFile System (GFS), which", "Google File System"),
        ("HMM", "We train a hidden Markov model (HMM).", "hidden Markov model"),
        ("GFS", "Nothing explains it (GFS).", ""), ("GFS", "GFS is used. The Google File System.", ""),
        ("A", "an apple (A)", ""), ("ZZ", "pizza (ZZ) (ZZ)", ""), ("GFS", "(GFS) at the start", ""),
    ],
)  # fmt: skip
def test_the_long_form_precedes_the_acronym(acronym: str, text: str, words: str) -> None:
    assert long_form(acronym, ["Something else.", text]) == words


def test_a_long_text_of_brackets_is_read_in_time() -> None:
    assert long_form("ZZ", ["a (ZZ) " * 20_000]) == ""
