"""Denials and opposites: what turns a source round, and what only looks like it."""

from __future__ import annotations

import pytest

from folio.grounding.negation import denies, opposes

DENIED = [
    ("X does not improve Y.", "X improves Y."),
    ("X doesn’t improve Y.", "X improves Y."),
    ("X can be used with Y.", "X cannot be used with Y."),
    ("X fails to converge.", "X converges."),
    ("There is evidence that X works.", "There is no evidence that X works."),
    ("It was trained with labels.", "It was trained without labels."),
    ("None of the models converged.", "The models converged."),
    ("Sea otters hibernate.", "Sea otters do not hibernate, e.g. in the winter."),
]
OPPOSED = [
    ("The rate of retreat decreased.", "The rate of retreat increased."),
    ("Adam is faster than SGD.", "Adam is slower than SGD."),
    ("The temperature was above 5 °C.", "The temperature was below 5 °C."),
    ("It enables caching.", "It disables caching."),
    ("The result was positive.", "The result was negative."),
    ("It is the first layer.", "It is the last layer."),
    ("The scheme is secure.", "The scheme is insecure."),
    ("The tongue advances each year.", "The tongue retreats each year."),
]
SAME = [
    ("X improves Y.", "X improves Y."),
    ("Y is not improved by X.", "X does not improve Y."),
    ("X improves both Y and Z.", "X improves not only Y but also Z."),
    ("X works.", "X does not always work."),
    ("There is no doubt that it works.", "It works."),
    ("The proof is given in No. 5.", "The proof is given there."),
    ("It takes no more than 5 steps.", "It takes at most 5 steps."),
    ("It lowers the error.", "The error is reduced."),
    ("Accuracy rises while cost falls.", "Cost falls while accuracy rises."),
    ("It uses Adam rather than SGD.", "It uses Adam and not SGD."),
]


@pytest.mark.parametrize(("statement", "source"), DENIED)
def test_a_denial_counts_on_either_side(statement: str, source: str) -> None:
    assert (denies(statement, source), denies(source, statement)) == (True, True)


@pytest.mark.parametrize(("statement", "source"), OPPOSED)
def test_an_opposite_counts_on_either_side(statement: str, source: str) -> None:
    assert (opposes(statement, source), opposes(source, statement)) == (True, True)


@pytest.mark.parametrize(("statement", "source"), SAME)
def test_the_same_in_other_words_is_neither(statement: str, source: str) -> None:
    assert (denies(statement, source), opposes(statement, source)) == (False, False)
