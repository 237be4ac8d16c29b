from __future__ import annotations

import pytest

from folio.answer.definitions import asked_term, defines


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("What is a CRDT?", "CRDT"),
        ("what is zero trust", "zero trust"),
        ("What is meant by late interaction?", "late interaction"),
        ("define policy enforcement point", "policy enforcement point"),
        ("What does PEP stand for?", "PEP"),
        ("Explain what a rainbow table is", "rainbow table"),
        ("Who wrote the report?", ""),
        ("How fast is it?", ""),
        ("What is the main result of the paper on glaciers in the Alps?", ""),
        ("???", ""),
    ],
)
def test_the_term_that_a_question_asks_for(question: str, term: str) -> None:
    assert asked_term(question) == term


@pytest.mark.parametrize(
    ("sentence", "term", "does"),
    [
        ("A CRDT is a data type whose replicas converge.", "CRDT", True),
        ("Conflict-free replicated data types (CRDTs), which merge without a leader, are old.", "CRDT", True),
        ("Therefore, this is indeed a CRDT.", "CRDT", False),
        ("ThermoState is a Python package that manages states.", "ThermoState", True),
        ("ThermoState relies on CoolProp and Pint.", "ThermoState", False),
        ("I have used ThermoState in two courses.", "ThermoState", False),
        ("This situation is also called a Positive Assortative\nMatching (PAM).", "assortative matching", True),
        ("We study retrieval-augmented generation (RAG) — models which combine two memories.", "RAG", True),
        ("Policy engine (PE): This component decides on access.", "policy engine", True),
        ("Raft, a consensus algorithm, is easy to teach.", "Raft", True),
        ("treesiftr was used in the last week of the course.", "treesiftr", False),
        ("A policy is a rule.", "policy engine", False),
        ("Anything at all.", "", False),
        ("C++ is a language.", "C++", True),
    ],
)
def test_sentences_that_define(sentence: str, term: str, does: bool) -> None:
    assert defines(sentence, term) is does
