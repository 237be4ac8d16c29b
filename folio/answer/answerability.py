"""How sure the built-in answerer is that the evidence answers a question; below a threshold it refuses. Pure.

LOG.md has what was tried. `benchmarks/answerability.py` makes the figures and the threshold again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from folio.answer.question_type import gives_number
from folio.answer_types import Evidence
from folio.protocols import TermWeights
from folio.search.late_interaction import Matches, evidence_coverage
from folio.search.question import Question
from folio.text import coverage, sentence_spans, tokenize

# Below this a question is refused: 9 of dev's 100 answerable questions, and 16 of its 25 that are not (LOG.md).
LEAST_CONFIDENCE = 0.57
# From here on excerpts are given as an answer; below, as the closest passages, which may not answer. At this threshold
# 2 of dev's 25 unanswerable questions, and 3 of newcomers' 16, are answered without that warning (LOG.md).
SURE = 0.65
# Numeric questions need this much more coverage: papers are full of numbers.
NUMBER_MARGIN = 0.04
# How much less the senses of a follow-up cover, on average: with it, 6 % of MTRAG's answerable follow-ups are below.
FOLLOWUP_MARGIN = 0.027
# How much the names and the length of the question count, beside the 1 of what the evidence covers.
NAMES_WEIGHT, LENGTH_WEIGHT = 0.1, 0.1
# What the reader's log-odds, within MOST_ODDS, add to the confidence
READ_WEIGHT, MOST_ODDS = 0.02, 5.0
# Terms of a long question: it says more than any passage repeats, so that less of it is covered.
LONG_QUESTION = 14

# A word with a capital or a digit, except the first: "Raft", "GPT-2", "2019"
_NAME = re.compile(r"(?<!^)\b(?:[A-Z][\w-]*|\w*\d[\w-]*)")


def confidence(
    question: Question,
    evidence: Sequence[Evidence],
    found: Sequence[Matches],
    weights: TermWeights,
    *,
    read: float = 0.0,
    needs_number: bool = True,
) -> float:
    """How sure it is that this evidence answers the question, 0 to 1.

    found: the question's matches in each piece of evidence. weights: the IDF of the question's terms. read: the
    reader's log-odds that some of the evidence answers; 0 where nothing was read. needs_number: whether a numeric
    question is answered by sentences with a number alone.
    """
    covered = _covered(question, evidence, found) if needs_number else evidence_coverage(found)
    if not covered:
        return 0.0
    names = _names_share(question, evidence, weights)
    length = min(1.0, len(weights) / LONG_QUESTION)
    said = (covered + NAMES_WEIGHT * names + LENGTH_WEIGHT * length) / (1 + NAMES_WEIGHT + LENGTH_WEIGHT)
    return min(1.0, max(0.0, said + READ_WEIGHT * max(-MOST_ODDS, min(MOST_ODDS, read))))


def _covered(question: Question, evidence: Sequence[Evidence], found: Sequence[Matches]) -> float:
    """How much of a question the evidence covers, 0 to 1.

    A numeric question is measured by its best sentence with a number, less NUMBER_MARGIN: the evidence as a whole
    covers whatever the paper is about, whether or not it gives the value.
    """
    if not question.asks_for_number:
        return evidence_coverage(found)
    of_numbers = (
        match.coverage(start, end)
        for piece, match in zip(evidence, found, strict=True)
        for start, end in sentence_spans(piece.text)
        if gives_number(piece.text[start:end], question.text)
    )
    return max(0.0, max(of_numbers, default=0.0) - NUMBER_MARGIN)


def _names_share(question: Question, evidence: Sequence[Evidence], weights: TermWeights) -> float:
    """The share, by IDF, of the names in a question that stand literally in the evidence or a title; 1 without names.

    To the embedder one unusual name is much like another.
    """
    names = {term for name in _NAME.findall(question.text) for term in tokenize(name)}
    named = {term: weight for term, weight in weights.items() if term in names}
    if not any(named.values()):
        return 1.0
    return coverage(named, {term for piece in evidence for term in tokenize(f"{piece.paper.title}\n{piece.text}")})
