"""The confidence that evidence answers a question: coverage of its words, its names, and the reader's judgement."""

from __future__ import annotations

import re
from collections.abc import Sequence

from folio.answer_types import Evidence
from folio.protocols import TermWeights
from folio.question.kind import gives_number
from folio.question.question import Question
from folio.search.late_interaction import Matches, evidence_coverage
from folio.text import coverage, sentence_spans, tokenize

# LOG.md has the experiments; `benchmarks/answerability.py` reproduces the figures.

# Below this a question is refused: 9 of dev's 100 answerable questions, and 16 of its 25 unanswerable ones (LOG.md).
LEAST_CONFIDENCE = 0.57
# From here on excerpts are an answer; below, they are the closest passages, which may not answer. At this threshold 2
# of dev's 25 unanswerable questions, and 3 of newcomers' 16, are answered without that warning (LOG.md).
SURE = 0.65
NUMBER_MARGIN = 0.04  # numeric questions need this much more coverage: papers are full of numbers
# Weights of the question's names and length, relative to 1 for the coverage by the evidence
NAMES_WEIGHT, LENGTH_WEIGHT = 0.1, 0.1
READ_WEIGHT, MOST_ODDS = 0.02, 5.0  # weight of the reader's log-odds, and their limit
LONG_QUESTION = 14  # terms; evidence repeats less of a question with more

# A word with a capital or a digit, except the first: "Raft", "GPT-2", "2019"
_NAME = re.compile(r"(?<!^)\b(?:[A-Z][\w-]*|\w*\d[\w-]*)")


def confidence(
    question: Question,
    evidence: Sequence[Evidence],
    matched: Sequence[Matches],
    weights: TermWeights,
    *,
    read: float = 0.0,
    needs_number: bool = True,
) -> float:
    """The confidence that this evidence answers the question, 0 to 1.

    matched: the question's matches in each piece of evidence. weights: the IDF of the question's terms. read: the
    reader's log-odds that some of the evidence answers; 0 if it was not read. needs_number: only sentences with a
    number count for a numeric question.
    """
    covered = _covered(question, evidence, matched) if needs_number else evidence_coverage(matched)
    if not covered:
        return 0.0
    names = _names_share(question, evidence, weights)
    length = min(1.0, len(weights) / LONG_QUESTION)
    share = (covered + NAMES_WEIGHT * names + LENGTH_WEIGHT * length) / (1 + NAMES_WEIGHT + LENGTH_WEIGHT)
    return min(1.0, max(0.0, share + READ_WEIGHT * max(-MOST_ODDS, min(MOST_ODDS, read))))


def _covered(question: Question, evidence: Sequence[Evidence], matched: Sequence[Matches]) -> float:
    """The share of a question that the evidence covers, 0 to 1.

    For a numeric question, that of the best sentence with a number, less NUMBER_MARGIN: the whole evidence covers the
    paper's subject even if it does not give the value.
    """
    if not question.asks_for_number:
        return evidence_coverage(matched)
    of_numbers = (
        match.coverage(start, end)
        for piece, match in zip(evidence, matched, strict=True)
        for start, end in sentence_spans(piece.text)
        if gives_number(piece.text[start:end], question.text)
    )
    return max(0.0, max(of_numbers, default=0.0) - NUMBER_MARGIN)


def _names_share(question: Question, evidence: Sequence[Evidence], weights: TermWeights) -> float:
    """The share, by IDF, of a question's names that are literally in the evidence or a title; 1 without names.

    The embedder hardly distinguishes unusual names.
    """
    names = {term for name in _NAME.findall(question.text) for term in tokenize(name)}
    named = {term: weight for term, weight in weights.items() if term in names}
    if not any(named.values()):
        return 1.0
    return coverage(named, {term for piece in evidence for term in tokenize(f"{piece.paper.title}\n{piece.text}")})
