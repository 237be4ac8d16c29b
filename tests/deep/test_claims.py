"""Agreements and differences: a model's supported claims, and the differences that rules find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from folio.answer_types import Evidence, Quote
from folio.deep.profile import MOST_GROUPS, Comparison, compared
from folio.deep.types import NamedClaim
from tests.helpers.factories import evidence_of, hits_on

LONG = "The Aletsch glacier has a length of 23 kilometres."
ALSO = "Its tongue is in the valley. According to maps, the length of the Aletsch glacier is 23 kilometres."
SHORT = "The Aletsch glacier has a length of 20 kilometres."
SLEEP = "The otters of the coast sleep in rafts of kelp at night."
AWAKE = "The otters of the coast do not sleep in rafts of kelp at night."
CLAIM = "The Aletsch glacier has a length of 23 kilometres."


def papers(*texts: str, titles: Sequence[str] = (), score: float = 0.8) -> list[Evidence]:
    """A piece of evidence for each text, of a paper with its own title."""
    named = titles or [f"Paper {n}" for n in range(len(texts))]
    hits = [hits_on(t, file=f"{n}.pdf", title=name)[0] for n, (t, name) in enumerate(zip(texts, named, strict=True))]
    return evidence_of([replace(hit, score=score) for hit in hits])


def words(quotes: Sequence[Quote]) -> list[tuple[str, str]]:
    for quote in quotes:
        assert quote.page == 1
    return [(quote.paper.file, quote.quote) for quote in quotes]


def test_supporting_sentences_agree_and_another_value_differs() -> None:
    found = compared(papers(LONG, ALSO), [NamedClaim(CLAIM, (1, 3), ())])
    (group,) = found.agreements
    assert words(group.quotes) == [("0.pdf", LONG), ("1.pdf", ALSO.partition(". ")[2])]
    assert found.differences == ()
    found = compared(papers(LONG, ALSO, SHORT), [NamedClaim(CLAIM, (1, 3), (4,))])
    (difference,) = found.differences
    assert [file for file, _ in words(difference.some)] == ["0.pdf", "1.pdf"]
    assert words(difference.others) == [("2.pdf", SHORT)]
    assert found.agreements == ()  # nothing stands twice


@pytest.mark.parametrize(
    "claim",
    [
        NamedClaim("The moon is made of cheese.", (1, 3), ()),  # no sentence says so
        NamedClaim("The Aletsch glacier has a length of 99 kilometres.", (1, 3), ()),
        NamedClaim("The Aletsch glacier does not have a length of 23 kilometres.", (1, 3), ()),
        NamedClaim(CLAIM, (1, 99, 0, -1), ()),  # sentences that do not exist
        NamedClaim(CLAIM, (1, 2), ()),  # one that is about something else
        NamedClaim(CLAIM, (1,), (3,)),  # one that says the same, as the other side
        NamedClaim(CLAIM, (1, 1, 1), ()),
        NamedClaim("", (1, 3), ()),
        NamedClaim(CLAIM, (), (1, 3)),
    ],
)
def test_unsupported_claims_are_dropped(claim: NamedClaim) -> None:
    assert compared(papers(LONG, ALSO), [claim]) == Comparison()


def test_versions_and_irrelevant_papers_are_not_compared() -> None:
    claim = NamedClaim(CLAIM, (1, 2), (3,))
    (piece,) = papers(f"{LONG} {ALSO}")
    assert compared([piece], [claim]) == Comparison()
    assert compared(papers(LONG, ALSO, titles=("On Ice", "On ice.")), [NamedClaim(CLAIM, (1, 3), ())]) == Comparison()
    assert compared(papers(LONG, LONG), [NamedClaim(CLAIM, (1, 2), ())]) == Comparison()  # the same words
    assert compared(papers(LONG, ALSO, score=0.45), [NamedClaim(CLAIM, (1, 3), ())]) == Comparison()
    assert compared(papers(LONG, SHORT, score=0.45), []) == Comparison()


def test_rules_find_a_few_differences_between_papers() -> None:
    found = compared(papers(LONG, SHORT, SLEEP, AWAKE, SHORT.replace("20", "19")), [])
    assert [(words(g.some), words(g.others)) for g in found.differences] == [
        ([("0.pdf", LONG)], [("1.pdf", SHORT)]),
        ([("2.pdf", SLEEP)], [("3.pdf", AWAKE)]),
    ]
    named = compared(papers(LONG, SHORT), [NamedClaim(CLAIM, (1,), (2,)), NamedClaim(CLAIM, (1,), (2,))])
    assert len(named.differences) == 1
    assert compared(papers(f"{LONG} {SHORT}", SLEEP), []) == Comparison()
    assert compared(papers(LONG, ALSO), []) == Comparison()
    texts = [f"The lake number {n} of the alps has a depth of {d} metres." for n in range(9) for d in (10 + n, 40 + n)]
    assert len(compared(papers(*texts), []).differences) <= MOST_GROUPS
