"""What a place of a paper says of a claim: every way in which a sentence of a draft may be wrong, and right ones."""

from __future__ import annotations

import pytest

from folio.drafts.judging import Judge, Judgement
from tests.helpers.factories import evidence_on

pytestmark = pytest.mark.fast

OTTERS = (
    "Sea otters eat 25 urchins a day. In captive mice, the diet was associated with a lower weight. Some otters"
    " may sleep in rafts of kelp. Otters dive deeper than seals. The survey of 2014 counted 1,260 otters at"
    " Amchitka and 310 seals at Adak. The authors of an earlier study found that pups learn from their mothers."
    " Otters do not hibernate. The tool converts maps from vector to raster. Wilson et al. [4] showed that urchins"
    " destroy kelp forests. Most otters use tools to open shells. The tagged otters gained 2.5 kg on average. We"
    " trained a convolutional neural network (CNN) on 3,000 photographs. Kelp grows only if the water is cold."
    " Urchins were introduced in the bay (Kenyon, 1969)."
)


def judged(claim: str, *texts: str) -> Judgement:
    return Judge(evidence_on(*(texts or (OTTERS,)))).judge(claim)


@pytest.mark.parametrize(
    ("claim", "verdict", "rule"),
    [
        # Another number, unit, year, owner of a number
        ("Sea otters eat 35 urchins a day.", "number differs", "number"),
        ("The tagged otters gained 2.5 g on average.", "number differs", "number"),
        ("The survey of 2015 counted otters at Amchitka.", "number differs", "number"),
        ("The survey of 2014 counted 310 otters at Amchitka.", "number differs", "count"),
        ("Urchins were introduced in the bay in 1969.", "not found", "no number"),
        # The opposite
        ("Otters hibernate in winter.", "not found", "wording"),
        ("Otters hibernate.", "contradicted", "negation"),
        ("Sea otters do not eat 25 urchins a day.", "contradicted", "negation"),
        ("The tagged otters lost 2.5 kg on average.", "contradicted", "opposite"),
        ("The tool converts maps from raster to vector.", "contradicted", "roles"),
        ("Seals dive deeper than otters.", "contradicted", "comparison"),
        ("Otters dive less deep than seals.", "not found", "wording"),
        # Something else in one place
        ("Sea lions eat 25 urchins a day.", "not found", "wording"),
        ("We trained a recurrent neural network on 3,000 photographs.", "not found", "wording"),
        # More than the paper says
        ("Otters sleep in rafts of kelp.", "not found", "hedge"),
        ("All otters use tools to open shells.", "not found", "quantifier"),
        ("Otters use tools to open shells.", "not found", "quantifier"),
        ("Kelp grows if the water is cold.", "not found", "condition"),
        ("In captive mice, the diet lowers the weight.", "not found", "causality"),
        ("The diet was associated with a lower weight.", "not found", "scope"),
        ("In captive women, the diet was associated with a lower weight.", "not found", "wording"),
        # Another's finding
        ("Urchins destroy kelp forests.", "not found", "attribution"),
        ("Pups learn from their mothers.", "not found", "attribution"),
        ("Urchins were introduced in the bay.", "not found", "attribution"),
        # Nothing of the kind
        ("The moon is made of green cheese.", "not found", "not found"),
    ],
)
def test_a_wrong_claim_is_never_supported(claim: str, verdict: str, rule: str) -> None:
    found = judged(claim)
    assert found.fault is not None
    assert (found.verdict, found.fault.rule) == (verdict, rule)


@pytest.mark.parametrize(
    ("claim", "place"),
    [
        ("Sea otters eat 25 urchins per day.", "Sea otters eat 25 urchins a day."),
        ("Otters dive more deeply than seals do.", "Otters dive deeper than seals."),
        ("Seals are outdived: otters dive deeper than seals.", ""),
        ("The 2014 survey counted 1260 otters at Amchitka.", "The survey of 2014 counted"),
        ("On average, tagged otters gained 2500 g.", "The tagged otters gained"),
        ("Some otters may sleep in rafts made of kelp.", "Some otters may sleep"),
        ("Most otters employ tools to open shells.", "Most otters use tools"),
        ("A CNN was trained with 3000 photographs.", "We trained a convolutional"),
        ("Maps are converted from vector to raster.", "The tool converts maps"),
        ("Wilson et al. showed that urchins destroy kelp forests.", "Wilson et al. [4] showed"),
        ("In mice the diet was correlated with a lower weight.", ""),
    ],
)
def test_a_claim_in_other_words_is_supported(claim: str, place: str) -> None:
    found = judged(claim)
    if not place:  # in doubt, it is not found
        assert found.verdict == "not found"
        return
    assert found.verdict == "supported", found.fault
    assert found.sentences[0].text.startswith(place)


def test_the_papers_own_words_are_quoted() -> None:
    found = judged("the tool converts maps from vector to raster")
    assert (found.verdict, [sentence.text for sentence in found.sentences]) == (
        "quoted",
        ["The tool converts maps from vector to raster."],
    )


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("All students passed the final exam.", "Not all students passed the final exam."),
        ("The students always passed the exam.", "The students did not always pass the exam."),
        ("The students no longer pass the exam.", "The students pass the exam for longer."),
        ("The test was not later repeated.", "The test was later repeated."),
        ("The students passed the exam.", "Hardly any of the students passed the exam."),
        ("The students passed the exam.", "The students failed to pass the exam."),
        ("The method needs labels.", "The method works without needing labels."),
        ("The method uses labels.", "The method uses images instead of labels."),
        ("The method uses labels rather than images.", "The method uses images rather than labels."),
    ],
)
def test_a_denial_in_any_form_counts(claim: str, text: str) -> None:
    assert judged(claim, text).verdict in ("contradicted", "not found")


def test_the_words_of_two_sentences_are_not_mixed() -> None:
    text = "The command is not needed on Windows. The demonstrations of the course were made on a Linux computer."
    assert judged("The demonstrations of the course were made on Windows.", text).verdict == "not found"
    text = "The Aletsch glacier is the largest of the Alps. It has a length of 23 kilometres, and many visitors."
    found = judged("The Aletsch glacier has a length of 23 km.", text)
    assert (found.verdict, len(found.sentences)) == ("supported", 2)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Accuracy is 91 % on the test set.", "Accuracy is 91 % on the validation set and 87 % on the test set."),
        ("The glacier lost mass in winter.", "The glacier gained mass in winter and lost mass in summer."),
        ("Users were satisfied with the speed.", "Users were satisfied with the look but dissatisfied with the speed."),
        ("The authors collected data from 40 schools.", "Miller et al. [3] collected data from 40 schools."),
        ("The library supports Python and Java.", "The library supports Python but Java is planned."),
        ("The drug cures the infection.", "It is possible that the drug cures the infection."),
        ("The rate was 5 % in 2010 and 10 % in 2020.", "The rate was 10 % in 2010 and 5 % in 2020."),
        ("Training used 80 % of the data.", "Training used 20 % of the data and testing 80 %."),
        ("The encoder feeds the decoder with tokens.", "The decoder feeds the encoder with tokens."),
        ("Bees find flowers by smell alone.", "Bees find flowers by smell and by sight."),
        ("Neural networks are outperformed by random forests.", "Neural networks outperform random forests."),
        ("The effect was significant for women.", "The effect was significant for men and not for women."),
    ],
)
def test_the_same_words_said_of_something_else_do_not_support(claim: str, text: str) -> None:
    assert judged(claim, text).verdict not in ("quoted", "supported")


def test_a_part_of_a_sentence_that_says_something_else_is_no_quote() -> None:
    text = "It is not true that the glacier reaches the valley of the Rhone."
    assert judged("The glacier reaches the valley of the Rhone.", text).verdict != "quoted"
    assert judged("The glacier reaches the valley of the Rhone.", text).verdict != "supported"
