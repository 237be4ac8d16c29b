"""The built-in answerer's confidence that evidence answers a question."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from folio.answer.confidence import (
    LENGTH_WEIGHT,
    LONG_QUESTION,
    MOST_ODDS,
    NAMES_WEIGHT,
    NUMBER_MARGIN,
    READ_WEIGHT,
    confidence,
)
from folio.answer_types import Evidence
from folio.protocols import TermWeights
from folio.question.kind import ASKING
from folio.question.question import Question
from folio.search.late_interaction import Matches, evidence_coverage, matches
from folio.text import sentence_spans
from tests.helpers.factories import even_weights, evidence_on
from tests.helpers.fakes import HashingEmbedder

OTTERS = "Sea otters float in rafts of kelp."
SLEEP = "All the animals sleep on their backs."


def matched(question: str, evidence: Sequence[Evidence], weights: TermWeights) -> list[Matches]:
    """Over so many dimensions that words which are not alike have nothing in common."""
    return matches(HashingEmbedder(4096), question, [(piece.paper.title, piece.text) for piece in evidence], weights)


def sure(question: str, *texts: str, weights: TermWeights | None = None) -> float:
    """The confidence for this question and evidence."""
    weights = even_weights(question) if weights is None else weights
    weights = {term: weight for term, weight in weights.items() if term not in ASKING}
    evidence = evidence_on(*texts)
    return confidence(Question(question), evidence, matched(question, evidence, weights), weights)


@pytest.mark.parametrize(("read", "adds"), [(2.0, 2.0), (-3.0, -3.0), (50.0, MOST_ODDS), (-50.0, -MOST_ODDS)])
def test_the_reader_adds_to_the_confidence_within_limits(read: float, adds: float) -> None:
    question, evidence = "Where do otters sleep?", evidence_on("Otters of the bay eat.")
    weights = even_weights(question)
    found = matched(question, evidence, weights)
    without = confidence(Question(question), evidence, found, weights)
    with_reader = confidence(Question(question), evidence, found, weights, read=read)
    assert with_reader == pytest.approx(without + READ_WEIGHT * adds)


def expected(covered: float, names: float, terms: int) -> float:
    """The confidence by its formula."""
    length = min(1, terms / LONG_QUESTION)
    return (covered + NAMES_WEIGHT * names + LENGTH_WEIGHT * length) / (1 + NAMES_WEIGHT + LENGTH_WEIGHT)


def test_all_pieces_of_evidence_count_together() -> None:
    weights = {"otter": 1.0, "sleep": 1.0}
    for texts, covered in (((OTTERS,), 0.5), ((SLEEP,), 0.5), ((OTTERS, SLEEP), 1.0)):
        found = sure("Where do otters sleep?", *texts, weights=weights)
        assert found == pytest.approx(expected(covered, 1, 2), abs=1e-6)


def test_a_missing_name_lowers_the_confidence() -> None:
    weights = {"otter": 1.0, "sleep": 1.0, "monterey": 1.0}
    question = "Where do otters of Monterey sleep?"
    evidence = evidence_on(OTTERS, SLEEP)
    covered = evidence_coverage(matched(question, evidence, weights))
    assert sure(question, OTTERS, SLEEP, weights=weights) == pytest.approx(expected(covered, 0, 3), abs=1e-6)
    # In small letters, or as the first word, nobody can tell that it is a name.
    for unnamed in ("Where do otters of monterey sleep?", "Monterey otters sleep?"):
        covered = evidence_coverage(matched(unnamed, evidence, weights))
        assert sure(unnamed, OTTERS, SLEEP, weights=weights) == pytest.approx(expected(covered, 1, 3), abs=1e-6)


def test_rare_names_count_more() -> None:
    weights = {"otter": 1.0, "monterey": 3.0, "bay": 1.0}
    question, text = "Do otters of Monterey Bay float?", "Otters of the bay float."
    covered = evidence_coverage(matched(question, evidence_on(text), weights))
    assert sure(question, text, weights=weights) == pytest.approx(expected(covered, 1 / 4, 3), abs=1e-6)


@pytest.mark.parametrize(("name", "text"), [("GPT-2", "It was trained as GPT-2 was."), ("2019", "It was so in 2019.")])
def test_a_word_with_a_digit_is_a_name(name: str, text: str) -> None:
    with_name, without = (sure(f"how was it with {name}", t, weights={name.lower(): 1.0}) for t in (text, OTTERS))
    assert with_name > without


def test_a_long_question_needs_less_coverage() -> None:
    few = {"otter": 1.0, "sleep": 1.0}
    many = {**few, **{f"w{number}": 0.0 for number in range(20)}}
    question = "where do otters sleep"
    assert sure(question, OTTERS, weights=many) - sure(question, OTTERS, weights=few) == pytest.approx(
        expected(0, 0, 22) - expected(0, 0, 2), abs=1e-6
    )


def test_only_sentences_with_numbers_answer_numeric_questions() -> None:
    question, text = "How many otters float?", "The paper counts 40 otters. Otters of the bay float in rafts at night."
    weights = even_weights("otters float")
    evidence = evidence_on(text)
    (match,) = matched(question, evidence, weights)
    counts, floats = sentence_spans(text)
    assert match.coverage(*floats) > match.coverage(*counts)  # and yet it gives no number
    found = confidence(Question(question), evidence, [match], weights)
    assert found == pytest.approx(expected(match.coverage(*counts) - NUMBER_MARGIN, 1, len(weights)))


def test_confidence_needs_evidence_with_a_number() -> None:
    assert sure("Where do otters sleep?") == 0
    assert sure("How many otters float in rafts of kelp?", OTTERS) == 0
    few, many = (sure(question, "The paper counts 40 otters.") for question in ("Otters?", "Are there many otters?"))
    assert few == pytest.approx(expected(1, 1, 1), abs=1e-6)
    assert many == pytest.approx(expected(1, 1, 1), abs=0.01)
