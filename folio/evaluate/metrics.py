"""Recall, MRR, nDCG, citation and refusal metrics with bootstrap confidence intervals. Pure.

Every metric is a ratio of two sums over the questions, so that one bootstrap serves them all.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from folio.errors import UsageError

Floats = npt.NDArray[np.float64]

CUTS = (1, 5, 10, 20)
NDCG_AT = 10
# The units that a ranking is judged by. The first has no prefix: "mrr", "page.mrr", "paper.mrr".
UNITS = ("chunk", "page", "paper")
RANKING = (*(f"recall@{cut}" for cut in CUTS), "mrr", f"ndcg@{NDCG_AT}")
ANSWERING = (
    "citation_rate",
    "citation_accuracy",
    "first_citation",
    "any_citation",
    "paper.citation_accuracy",
    "paper.first_citation",
    "paper.any_citation",
    "gold_shown",
    "topics",
    "answer_words",
    "quote_fidelity",
    "refusal_recall",
    "refusal_precision",
    "answerable_refused",
    "grade",
)
NAMES = (*RANKING, *(f"{unit}.{name}" for unit in UNITS[1:] for name in RANKING), *ANSWERING)

RESAMPLES, SEED, CONFIDENCE = 4_000, 20_260_101, 0.95
_BATCH = 500  # resamples at a time: 4 MB per array for 1,000 questions


@dataclass(frozen=True, slots=True)
class CitationResult:
    """A citation of an answer, checked against the paper's file."""

    right: bool  # it names a gold page, and the quote is on it
    faithful: bool  # the quote is verbatim in the cited page's own text
    in_paper: bool | None = None  # it names a gold paper; None if no gold paper is known


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """An answer, judged."""

    refused: bool
    sentences: int = 0
    with_citation: int = 0  # of the sentences
    citations: tuple[CitationResult, ...] = ()  # in the order of the answer
    confidence: float | None = None  # the answerer's confidence, if it gives one
    has_gold_page: bool = True  # whether the gold pages are known
    gold_shown: bool | None = None  # the gold quote or span is inside the quotes; None if neither is known
    words: int = 0  # of the sentences
    grade: int | None = None  # 0 to 3, from a model that judges answers; None if there is no grade
    topics: tuple[int, int] = (0, 0)  # expected topics that the answer names, of how many


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """A question with its ranks and its answer.

    For each unit there is one gain per target: one target if any gold entry is enough, one per paper or part if all are
    needed, and in a BEIR set one per relevant document with its grade as the gain. A rank, from 1, is that of the first
    hit with the target; None if no hit has it.
    """

    id: str
    type: str
    answerable: bool
    every: bool  # MRR takes the rank of the last target found instead of the first
    gains: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # by unit; a unit without gold is missing
    ranks: Mapping[str, Mapping[str, tuple[int | None, ...]]] = field(default_factory=dict)  # by stage, then unit
    timings_ms: Mapping[str, float] = field(default_factory=dict)  # by stage, in order
    answer: AnswerResult | None = None
    difficulty: str = ""


@dataclass(frozen=True)
class Figure:
    """A metric as a ratio of sums; both arrays have one number per question, in order."""

    numerator: Floats
    denominator: Floats

    @property
    def value(self) -> float | None:
        """None if no question contributes to the metric."""
        total = float(self.denominator.sum())
        return float(self.numerator.sum()) / total if total else None

    @property
    def questions(self) -> int:
        return int((self.denominator > 0).sum())


class Interval(NamedTuple):
    low: float
    high: float


class Difference(NamedTuple):
    """The difference between two runs, after - before, on their common questions."""

    before: float
    after: float
    interval: Interval

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.interval.low > 0 or self.interval.high < 0


class CurvePoint(NamedTuple):
    """The shares of questions refused at a confidence threshold."""

    threshold: float
    answerable: float  # share of the answerable questions refused
    unanswerable: float


def figure_name(unit: str, figure: str) -> str:
    """The name of a ranking metric by unit: "mrr", "page.mrr"."""
    return figure if unit == UNITS[0] else f"{unit}.{figure}"


def finest_unit(names: Container[str]) -> str | None:
    """The finest unit with ranking metrics; None if there are none."""
    return next((unit for unit in UNITS if figure_name(unit, RANKING[0]) in names), None)


def recall(ranks: Sequence[int | None], cut: int) -> float:
    """Recall@cut: the share of a question's targets among the first `cut` hits."""
    return sum(rank is not None and rank <= cut for rank in ranks) / len(ranks)


def reciprocal_rank(ranks: Sequence[int | None], *, every: bool) -> float:
    """1 / rank of the first target found, or of the last if every one is needed; 0 if it is not found."""
    ranks_found = [rank for rank in ranks if rank is not None]
    if not ranks_found or (every and len(ranks_found) < len(ranks)):
        return 0.0
    return 1 / (max(ranks_found) if every else min(ranks_found))


def ndcg(ranks: Sequence[int | None], gains: Sequence[float], cut: int) -> float:
    """nDCG@cut (Järvelin and Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques").

        DCG = sum of gain / log2(rank + 1), as in trec_eval and BEIR;  nDCG = DCG / ideal DCG

    The ideal ranking has one target per rank. A passage that has two targets gains both, so the result is capped at 1.
    """
    gained = sum(
        gain / np.log2(rank + 1) for rank, gain in zip(ranks, gains, strict=True) if rank is not None and rank <= cut
    )
    best = sum(gain / np.log2(rank + 1) for rank, gain in enumerate(sorted(gains, reverse=True)[:cut], 1))
    return min(1.0, float(gained / best)) if best else 0.0


def figures(results: Sequence[QuestionResult], stage: str) -> dict[str, Figure]:
    """All metrics by name, those of the ranking for this stage. Metrics without any question are left out.

    The arrays have one number per question, in the order given.
    """
    by_name: dict[str, Figure] = {}
    for unit in UNITS:
        scored = [_ranking(question, stage, unit) for question in results]
        for name in RANKING:
            by_name[figure_name(unit, name)] = _figure([(row[name], 1.0) if row else (0.0, 0.0) for row in scored])
    parts = [_answering(question) for question in results]
    for name in ANSWERING:
        by_name[name] = _figure([part.get(name, (0.0, 0.0)) for part in parts])
    return {name: figure for name, figure in by_name.items() if figure.questions}


def _ranking(question: QuestionResult, stage: str, unit: str) -> dict[str, float]:
    ranks = question.ranks.get(stage, {}).get(unit)
    if not ranks:
        return {}
    gains = question.gains[unit]
    return {
        **{f"recall@{cut}": recall(ranks, cut) for cut in CUTS},
        "mrr": reciprocal_rank(ranks, every=question.every),
        f"ndcg@{NDCG_AT}": ndcg(ranks, gains, NDCG_AT),
    }


def _answering(question: QuestionResult) -> dict[str, tuple[float, float]]:
    """For each answer metric, what this question adds to the numerator and to the denominator."""
    answer = question.answer
    if answer is None:
        return {}
    refused, good = float(answer.refused), float(answer.refused and not question.answerable)
    parts = {"refusal_precision": (good, refused)}
    if question.answerable:
        parts["answerable_refused"] = (refused, 1.0)
        if answer.gold_shown is not None:
            parts["gold_shown"] = (float(answer.gold_shown), 1.0)
        if answer.grade is not None:
            parts["grade"] = (float(answer.grade), 1.0)
        if answer.topics[1]:
            parts["topics"] = (float(answer.topics[0]), float(answer.topics[1]))
    else:
        parts["refusal_recall"] = (good, 1.0)
    if not answer.refused:
        cited = answer.citations
        if answer.words:  # runs of older versions did not count words
            parts["answer_words"] = (float(answer.words), 1.0)
        parts["citation_rate"] = (float(answer.with_citation), float(answer.sentences))
        parts["quote_fidelity"] = (float(sum(c.faithful for c in cited)), float(len(cited)))
        # By page; a question that names papers alone, by paper
        unit, right = ("", [c.right for c in cited]) if answer.has_gold_page else ("paper.", _in_papers(cited))
        if question.answerable and right:
            parts[f"{unit}citation_accuracy"] = (float(sum(right)), float(len(right)))
            parts[f"{unit}first_citation"] = (float(right[0]), 1.0)
            parts[f"{unit}any_citation"] = (float(any(right)), 1.0)
    return parts


def _in_papers(cited: Sequence[CitationResult]) -> list[bool]:
    return [citation.in_paper for citation in cited if citation.in_paper is not None]


def _figure(parts: Sequence[tuple[float, float]]) -> Figure:
    table = np.array(parts, dtype=np.float64).reshape(-1, 2)
    return Figure(table[:, 0], table[:, 1])


def refusal_curve(results: Iterable[QuestionResult]) -> list[CurvePoint]:
    """The shares that rising thresholds on the answerer's confidence would refuse; empty if it gives no confidence.

    A question refused without a confidence counts as refused at every threshold.
    """
    answered = [(question.answerable, question.answer) for question in results if question.answer]
    if all(answer.confidence is None for _, answer in answered):
        return []
    confidences = [
        (answerable, answer.confidence if answer.confidence is not None else -np.inf if answer.refused else np.inf)
        for answerable, answer in answered
    ]
    good = np.array([confidence for answerable, confidence in confidences if answerable])
    bad = np.array([confidence for answerable, confidence in confidences if not answerable])
    if not len(good) or not len(bad):
        return []
    steps = np.unique(np.concatenate([good, bad]))
    thresholds = [*steps[np.isfinite(steps)], float(np.nextafter(steps[np.isfinite(steps)][-1], np.inf))]
    return [CurvePoint(float(t), float((good < t).mean()), float((bad < t).mean())) for t in thresholds]


def latencies(timings: Iterable[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Median and 95th percentile per stage, in the unit given, in the order in which stages first appear."""
    stages: dict[str, list[float]] = {}
    for laps in timings:
        for name, took in laps.items():
            stages.setdefault(name, []).append(took)
    return {name: (float(np.percentile(t, 50)), float(np.percentile(t, 95))) for name, t in stages.items()}


def interval(figure: Figure) -> Interval:
    """The 95 % bootstrap interval over the questions. Raises ValueError if there are none."""
    counted = figure.denominator > 0
    return _bootstrap((figure.numerator[counted], figure.denominator[counted]), _ratio)


def difference(before: Figure, after: Figure) -> Difference:
    """after - before with its paired 95 % bootstrap interval; both must have the same questions in the same order.

    Raises ValueError if either has no question.
    """
    counted = (before.denominator > 0) | (after.denominator > 0)
    arrays = tuple(
        array[counted] for array in (before.numerator, before.denominator, after.numerator, after.denominator)
    )
    if before.value is None or after.value is None:
        raise ValueError("a metric without questions")
    return Difference(before.value, after.value, _bootstrap(arrays, _gap))


def _bootstrap(arrays: tuple[Floats, ...], statistic: object) -> Interval:
    """The percentile bootstrap interval (Efron 1979) of a statistic of paired arrays; the seed is fixed."""
    if not len(arrays[0]):
        raise ValueError("a metric without questions")
    if len(arrays[0]) == 1:  # nothing to resample
        value = float(statistic(*arrays, axis=-1))  # type: ignore[operator]
        return Interval(value, value)
    from scipy.stats import bootstrap

    result = bootstrap(
        arrays,
        statistic,
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        batch=_BATCH,
        rng=np.random.default_rng(SEED),
    )
    low, high = result.confidence_interval
    return Interval(float(low), float(high))


def _ratio(numerator: Floats, denominator: Floats, axis: int = -1) -> Floats:
    total = denominator.sum(axis)
    # A resample may have a denominator of 0; its ratio counts as 0.
    return np.asarray(numerator.sum(axis) / np.where(total > 0, total, 1.0))


def _gap(before_sum: Floats, before_whole: Floats, after_sum: Floats, after_whole: Floats, axis: int = -1) -> Floats:
    return _ratio(after_sum, after_whole, axis) - _ratio(before_sum, before_whole, axis)


_THRESHOLD = re.compile(r"\s*([^=<>\s]+)\s*(<=|>=|=)\s*(\S+)\s*")
# The largest values of the metrics that are not shares
_LARGEST = {"grade": 3}


@dataclass(frozen=True, slots=True)
class Threshold:
    """A metric and its lower or upper limit."""

    name: str
    value: float
    at_most: bool


def parse_threshold(text: str, names: Sequence[str] = NAMES) -> Threshold:
    """Parse name=value or name>=value (at least), or name<=value (at most). names: the existing metrics.

    Raises UsageError for anything else; for an unknown name it lists all names.
    """
    parts = _THRESHOLD.fullmatch(text)
    if parts is None:
        raise UsageError(
            f"{text} is not a threshold.",
            "Write recall@5=0.8 (at least 0.8) or answerable_refused<=0.08 (at most 0.08).",
        )
    name, sign, number = parts.groups()
    if name not in names:
        raise UsageError(f"There is no metric {name}.", f"Use one of these: {', '.join(names)}.")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    largest = _LARGEST.get(name, 1)
    if not 0 <= value <= largest:
        example = 0.8 * largest
        raise UsageError(
            f"{number} is not a valid threshold for {name}.", f"Give a number from 0 to {largest}, such as {example:g}."
        )
    return Threshold(name, value, sign == "<=")


def violations(thresholds: Sequence[Threshold], figures: Mapping[str, Figure]) -> list[str]:
    """A sentence for each threshold that is not met. A metric that was not measured meets no threshold."""
    sentences = []
    for threshold in thresholds:
        value = figures[threshold.name].value if threshold.name in figures else None
        limit = f"at {'most' if threshold.at_most else 'least'} {threshold.value:g}"
        if value is None:
            sentences.append(f"{threshold.name} should be {limit}, but this set does not measure it.")
        elif value > threshold.value if threshold.at_most else value < threshold.value:
            sentences.append(
                f"{threshold.name} is {value:.4f} and should be {limit} (off by {abs(value - threshold.value):.4f})."
            )
    return sentences
