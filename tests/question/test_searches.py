"""Searches for papers are made of the question's own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.question.searches import FEWEST, MOST, propose
from folio.text import fold

pytestmark = pytest.mark.fast

RAG = "How does retrieval augmented generation reduce hallucination in medical question answering?"


@pytest.mark.parametrize(
    ("question", "missing", "expected"),
    [
        (
            RAG,
            (),
            (
                "retrieval augmented generation reduce hallucination medical question answering",
                '"retrieval augmented generation"',
            ),
        ),
        ("What is BM25?", (), ("BM25", "What is BM25")),
        ("Raft or Paxos?", ("Raft on throughput", "Paxos on throughput"), ("Raft throughput", "Paxos throughput")),
        ("What is DPR, and what does ColBERT cost?", ("what does ColBERT cost?",), ("ColBERT cost", "ColBERT")),
        ("How many parameters does GPT-4 have?", (), ("parameters GPT-4", "GPT-4")),
        ("Why do C++ compilers use SSA?", (), ("C++ compilers SSA", "C++ SSA")),
        ("Does the WHO recommend IT?", (), ("WHO recommend IT", "Does the WHO recommend IT")),
        ("?", (), ()),
    ],
)
def test_searches_are_in_the_words_of_the_question(
    question: str, missing: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert propose(question, missing) == expected


def test_one_search_has_the_rarest_words_alone() -> None:
    weights = {"hallucin": 9.0, "medic": 8.0, "retriev": 7.0, "gener": 1.0, "answer": 1.0}
    assert "retrieval hallucination medical" in propose(RAG, (), weights)


@given(st.text(max_size=300), st.lists(st.text(max_size=60), max_size=6))
def test_two_to_four_different_searches_of_any_question(question: str, missing: list[str]) -> None:
    searches = propose(question, missing)
    assert len(searches) <= MOST
    assert len({fold(search) for search in searches}) == len(searches)
    said = " ".join([question, *missing])
    for search in searches:
        assert search.isprintable()
        assert all(word.strip('"') in said for word in search.split())
    assert len(propose(f"{question} What is dense retrieval?")) >= FEWEST
