"""Disagreement between papers: another number for the same thing, or a denial."""

from __future__ import annotations

from dataclasses import replace

import pytest

from folio.grounding import conflicts
from folio.grounding.conflicts import conflict
from folio.grounding.grounder import Grounder, citations_of
from tests.helpers.factories import evidence_on

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("sentence", "other", "expected"),
    [
        ("The accuracy of LeNet on images is 78 %.", "On images the accuracy of LeNet is 81 %.", True),
        ("The Aletsch glacier has a length of 23 km.", "The Aletsch glacier has a length of 22 km.", True),
        ("The treatment reduces mortality in old adults.", "The treatment increases mortality in old adults.", True),
        ("The Folio project began in Bern in 1998.", "The Folio project began in Bern in 1999.", True),
        # Without a name, with a unit
        ("Perch live down to 25 metres.", "Perch live down to 12 metres.", True),
        ("Perch spawn at 25 metres in clear lakes.", "In small lakes perch spawn at 12 metres.", True),
        ("Mortality was 12 %.", "Mortality was 30 %.", True),
        ("The drug cures 12 percent of patients with asthma.", "The drug cures 30 percent of patients.", True),
        ("Perch live down to 25 metres.", "Trout live down to 12 metres.", False),
        ("Perch live at depths of 25 metres.", "Perch grow to 40 cm.", False),
        ("We found infections in 12 % of wounds.", "We found infections in 30 % of wounds.", False),
        ("The mean age of patients was 50 years.", "The mean age of nurses was 42 years.", False),
        ("A P-value of 0.01 was significant.", "A p-value of 0.05 was significant.", False),
        ("Chapter 2 Retrieval of the software", "1.4 Retrieval of the software", False),
        # Nothing says that it is the same thing
        ("The model was trained for 90 epochs on images.", "The model was trained for 80 epochs on the images.", False),
        ("The training set of MNIST has 500 images.", "The test set of MNIST has 300 images.", False),
        # Other conditions, other things, other words
        ("In 2019 the rate of deaths in Bern was 5 %.", "In 2020 the rate of deaths in Bern was 5 %.", False),
        ("The accuracy of LeNet on images is 78.4 %.", "The accuracy of LeNet on images is 78 %.", False),
        ("The accuracy of LeNet on images is 78 %.", "The accuracy of LeNet on images is 0.78.", False),
        ("The accuracy of LeNet on images is 78 %.", "The accuracy of LeNet on images is 78 km.", False),
        ("The accuracy of Adam on images is 78 %.", "The accuracy of Bob on images is 81 %.", False),
        ("The accuracy of LeNet is in Table 3.", "The accuracy of LeNet is in Table 4.", False),
        ("It is 5.", "It is 6.", False),
    ],
)
def test_conflict_goes_both_ways(sentence: str, other: str, expected: bool) -> None:
    assert (bool(conflict(sentence, other)), bool(conflict(other, sentence))) == (expected, expected)


@pytest.mark.parametrize(
    ("sentence", "other", "kind", "marked"),
    [
        ("Perch live down to 25 metres.", "Perch live down to 12 metres.", "number", ["12 metres"]),
        ("Perch spawn at 25 metres.", "Perch spawn at 12 metres in ponds.", "condition", ["12 metres", "ponds"]),
        (
            "Perch live at 25 metres.",
            "In small ponds perch live at 12 metres.",
            "condition",
            ["small ponds", "12 metres"],
        ),
        ("Flu lasts 5 days in adults.", "Flu lasts 14 days.", "condition", ["14 days"]),
        ("Hail falls in 12 % of storms.", "At night hail falls in 30 % of storms.", "condition", ["night", "30 %"]),
        (
            "The treatment reduces mortality in old adults.",
            "The treatment increases mortality in old adults.",
            "denial",
            [],
        ),
    ],
)
def test_a_conflict_has_a_kind_and_marks_what_differs(sentence: str, other: str, kind: str, marked: list[str]) -> None:
    found = conflict(sentence, other)
    assert found is not None
    assert (found.kind, [other[start:end] for start, end in found.marks]) == (kind, marked)


def against(statement: str, *texts: str) -> list[tuple[int, str]]:
    """What stands against a statement that the first text holds: the evidence's number, and the quote."""
    grounder = Grounder(evidence_on(*texts))
    citations = citations_of(grounder.find(statement, (), (1,)))
    assert [quote.evidence for quote in citations] == [1]
    found = conflicts.against(statement, citations, grounder.sentences)
    assert all(0 < quote.support < 1 for quote in found)
    return [(quote.evidence, quote.quote) for quote in found]


LONG, SHORT = "The Aletsch glacier is 23 kilometres long.", "The Aletsch glacier is 20 kilometres long."
SLEEP, AWAKE = "The otters sleep in rafts of kelp.", "The otters do not sleep in rafts of kelp."


def test_only_other_papers_disagree() -> None:
    assert against(LONG, LONG, f"Much is known. {SHORT}", SLEEP) == [(2, SHORT)]
    assert against(SHORT, SHORT, LONG) == [(2, LONG)]
    assert against(SLEEP, SLEEP, AWAKE) == [(2, AWAKE)]
    assert against(AWAKE, AWAKE, SLEEP) == [(2, SLEEP)]
    assert against(LONG, LONG, "The Aletsch glacier is about 23 km long.", "The river is 40 kilometres deep.") == []
    texts = [f"The great glacier Aletsch of the Alps is {n} kilometres long." for n in (23, 20, 19, 18)]
    assert [number for number, _ in against(texts[0], *texts)] == [2, 3]
    first, second = evidence_on(LONG, SHORT)
    grounder = Grounder([first, replace(second, paper=first.paper)])
    assert conflicts.against(LONG, citations_of(grounder.find(LONG, (), (1,))), grounder.sentences) == ()
