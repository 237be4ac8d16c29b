"""Terms: noun phrases found without a parser, and which of them head a group of papers."""

from __future__ import annotations

import pytest

from folio.review.terms import Terms, heading, likely, terms_of, written


def ends(sentence: str) -> set[str]:
    """The terms that end a run of content words in a sentence, as they are written."""
    found = terms_of(f"Title\n{sentence}")
    return {written(term, [found]) for term, count in found.ends.items() if count} - {"title"}


def head(group: list[str], others: list[str]) -> list[str]:
    """The heading of some summaries, whose first lines are titles."""
    inside, outside = [terms_of(text) for text in group], [terms_of(text) for text in others]
    return [written(term, inside) for term in heading(likely(inside, outside), inside, frozenset())]


@pytest.mark.parametrize(
    ("sentence", "terms"),
    [
        ("An introduction to linear regression with R.", {"introduction", "linear regression", "regression"}),
        ("We present otters of the bay.", {"otters", "bay"}),  # a verb after its subject
        ("The paper describes the bay.", {"paper", "bay"}),  # a verb before an article
        ("Exploring sea otters by sound.", {"sea otters", "otters", "sound"}),
        ("Bayesian models and otters by Navier.", {"bayesian models", "models", "otters", "Navier"}),
        ("Maps of flow using Python.", {"maps", "flow", "Python"}),
    ],
)
def test_a_term_ends_where_a_run_of_content_words_ends(sentence: str, terms: set[str]) -> None:
    assert ends(sentence) == terms


SEA = [f"Sea otters {what}\nCounting in cold bays finds sea otters. Many sea otters {what}." for what in "ab"]
LAND = [f"Wolves {place}\nWolves of cold bays {what}. Wolves are many." for place, what in enumerate("cd")]


def test_a_heading_is_what_papers_share_and_others_have_less() -> None:
    assert head(SEA, LAND) == ["sea otters"]  # and not "cold bays", which all have
    assert head(LAND, SEA) == ["wolves"]


def test_papers_without_a_shared_term_are_headed_by_one_of_each() -> None:
    group = ["Galactic rotation\nStars turn.", "General relativity\nLight bends."]
    assert head(group, LAND) == ["general relativity", "galactic rotation"]


def test_words_of_papers_about_themselves_head_nothing() -> None:
    same = "Training material\nThe training material of the course has results. The training material is an example."
    assert head([same, same], LAND) == []


def test_a_term_heads_one_group_alone() -> None:
    inside = [terms_of(text) for text in SEA]
    scores = likely(inside, [Terms()])
    (first, *_) = heading(scores, inside, frozenset())
    assert first not in heading(scores, inside, {first})
