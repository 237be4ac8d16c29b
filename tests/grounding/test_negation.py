"""Denials and opposites: real contradictions, and what only looks like one."""

from __future__ import annotations

import pytest

from folio.grounding.negation import denies, is_denied, is_opposed, opposes
from folio.grounding.sentences import tokens_of

pytestmark = pytest.mark.fast

DENIED = [
    ("X does not improve Y.", "X improves Y."),
    ("X doesn’t improve Y.", "X improves Y."),
    ("X can be used with Y.", "X cannot be used with Y."),
    ("X fails to converge.", "X converges."),
    ("There is evidence that X works.", "There is no evidence that X works."),
    ("It was trained with labels.", "It was trained without labels."),
    ("None of the models converged.", "The models converged."),
    *(
        (f"The proof is {words} simple.", "The proof is simple.")
        for words in (
            "far from", "far from being", "anything but", "hardly", "scarcely", "by no means", "in no way",
            "nowhere near", "not at all", "not in the least", "not",
        )
    ),
    ("Sea otters hibernate.", "Sea otters do not hibernate, e.g. in the winter."),
]  # fmt: skip
OPPOSED = [
    ("The rate of retreat decreased.", "The rate of retreat increased."),
    ("Adam is faster than SGD.", "Adam is slower than SGD."),
    ("The temperature was above 5 °C.", "The temperature was below 5 °C."),
    ("It enables caching.", "It disables caching."),
    ("The result was positive.", "The result was negative."),
    ("It is the first layer.", "It is the last layer."),
    ("The scheme is secure.", "The scheme is insecure."),
    ("The tongue advances each year.", "The tongue retreats each year."),
    ("The proof is very simple.", "The proof is very difficult."),
    ("The proof is simple.", "The proof is complicated."),
]
SAME = [
    ("X improves Y.", "X improves Y."), ("Y is not improved by X.", "X does not improve Y."),
    ("X improves both Y and Z.", "X improves not only Y but also Z."), ("X works.", "X does not always work."),
    ("There is no doubt that it works.", "It works."),
    ("The proof is given in No. 5.", "The proof is given there."),
    ("It takes no more than 5 steps.", "It takes at most 5 steps."), ("It lowers the error.", "The error is reduced."),
    ("Accuracy rises while cost falls.", "Cost falls while accuracy rises."),
    ("It uses Adam rather than SGD.", "It uses Adam and not SGD."), ("The proof is simple.", "The proof is easy."),
    ("The proof is far from simple.", "The proof is not simple."),
    ("The proof is far from simple.", "The proof is hardly simple."),
    ("The gauge is far from the coast.", "The gauge is away from the coast."),
    ("The proof is nothing but simple.", "The proof is simple."),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "source"), DENIED)
def test_a_denial_counts_on_either_side(statement: str, source: str) -> None:
    assert (denies(statement, source), denies(source, statement)) == (True, True)


@pytest.mark.parametrize(("statement", "source"), OPPOSED)
def test_an_opposite_counts_on_either_side(statement: str, source: str) -> None:
    assert (opposes(statement, source), opposes(source, statement)) == (True, True)


@pytest.mark.parametrize(("statement", "source"), SAME)
def test_the_same_in_other_words_is_neither(statement: str, source: str) -> None:
    assert (denies(statement, source), opposes(statement, source)) == (False, False)


TALK = "The result was presented at a conference in Greece."
OTHERS = ("The members were not presented with awards.", "However, few people read it.", "It did not converge.")


@pytest.mark.parametrize("statement", ["The result was never presented.", "Never was it presented at a conference."])
def test_a_not_in_another_sentence_says_nothing(statement: str) -> None:
    for sentences in ([TALK], [TALK, *OTHERS], [*OTHERS, TALK]):
        assert is_denied(statement, sentences)
        assert not is_denied("The result was presented in Greece.", sentences)


def test_each_clause_is_compared_with_the_sentence_that_carries_it() -> None:
    sentences = ["Otters float in rafts of kelp.", "Sea otters do not hibernate."]
    assert not is_denied("Otters float in rafts, and they do not hibernate.", sentences)
    assert is_denied("Otters do not float in rafts, and they do not hibernate.", sentences)
    assert is_denied("Otters float in rafts, and they hibernate.", sentences)
    assert not is_denied("", sentences)
    assert not is_denied("Otters do not float.", [])


SIMPLE = "The Paxos algorithm, when presented in plain English, is very simple."


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("The Paxos algorithm, when presented in plain English, is very difficult.", True),
        ("The Paxos algorithm is very complicated when presented in plain English.", True),
        ("The Paxos algorithm, when presented in plain English, is very obscure.", True),  # no list has this word
        ("The Paxos algorithm, when presented in plain English, is extremely intricate.", True),  # graded otherwise
        ("The Paxos algorithm, when presented in plain English, is truly challenging.", True),
        ("The Paxos algorithm, when presented in plain English, is extremely simple.", False),
        ("The Paxos algorithm, when presented in plain English, is extremely easy.", False),
        ("The Paxos algorithm, when presented in plain English, is less demanding.", False),  # the same, negated
        ("The Paxos algorithm, when presented in plain English, is very simple.", False),
        ("The Paxos algorithm, when presented in plain English, is very easy.", False),  # on the same side
        ("The Paxos algorithm is very old, and simple in plain English.", False),  # another order of things
        ("The Paxos algorithm, presented in English, is very fault-tolerant.", False),  # other evidence says so
        ("Lamport calls his algorithm very robust.", False),  # too little of the sentence is repeated
    ],
)
def test_another_quality_in_the_same_sentence(statement: str, expected: bool) -> None:
    known = tokens_of(f"{SIMPLE} It is very fault-tolerant. It has been called old.")
    assert is_opposed(statement, [SIMPLE], known) is expected


def test_opposites_are_found_beside_other_sentences() -> None:
    sentences = ["The rate of retreat increased.", "The temperature decreased."]
    assert is_opposed("The rate of retreat decreased.", sentences, frozenset())
    assert not is_opposed("The rate of retreat increased.", sentences, frozenset())
