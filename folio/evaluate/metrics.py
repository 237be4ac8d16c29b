"""What a question found -> figures: recall, MRR, nDCG, citations, refusals, each with its interval. Pure.

Every figure is a sum over questions divided by another, so that one bootstrap serves them all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CUTS = (1, 5, 10, 20)
NDCG_AT = 10
# What is looked for in a ranking; the first has no prefix in the names of figures: "mrr", "page.mrr", "paper.mrr".
UNITS = ("chunk", "page", "paper")
RANKING = (*(f"recall@{cut}" for cut in CUTS), "mrr", f"ndcg@{NDCG_AT}")
ANSWERING = (
    "citation_rate",
    "citation_accuracy",
    "first_citation",
    "any_citation",
    "quote_fidelity",
    "refusal_recall",
    "refusal_precision",
    "answerable_refused",
)
NAMES = (*RANKING, *(f"{unit}.{name}" for unit in UNITS[1:] for name in RANKING), *ANSWERING)

RESAMPLES, SEED, CONFIDENCE = 4_000, 20_260_101, 0.95
_BATCH = 500  # resamples at a time: for 1,000 questions 4 MB an array


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation of an answer, held against the file."""

    right: bool  # it names a gold page, and its quote stands there
    faithful: bool  # its quote stands word for word in the cited page's own text


@dataclass(frozen=True, slots=True)
class Answered:
    """What an answer was worth."""

    refused: bool
    sentences: int = 0
    with_citation: int = 0  # of these
    citations: tuple[Cited, ...] = ()  # in the order of the answer
    confidence: float | None = None  # of the answerer, where it tells one
    has_gold_page: bool = True  # it is known which pages are right


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what became of it.

    Each unit has one gain for each thing that the question needs: one thing where any gold entry will do, a thing for
    each paper, or part, where every one is needed, and for each relevant document with its grade in a set of that kind.
    Ranks are of the first hit that has the thing, from 1; None where no hit has it.
    """

    id: str
    type: str
    answerable: bool
    every: bool  # MRR takes the rank of the last thing found, and not of the first
    gains: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # by unit; a unit without gold is not here
    ranks: Mapping[str, Mapping[str, tuple[int | None, ...]]] = field(default_factory=dict)  # by stage, then unit
    timings_ms: Mapping[str, float] = field(default_factory=dict)  # by stage, in order
    answer: Answered | None = None


@dataclass(frozen=True)
class Figure:
    """A sum over questions divided by another: `over` and `of` have one number for each question, in order."""

    over: Floats
    of: Floats

    @property
    def value(self) -> float | None:
        """None where no question has a part in it."""
        whole = float(self.of.sum())
        return float(self.over.sum()) / whole if whole else None

    @property
    def questions(self) -> int:
        return int((self.of > 0).sum())


class Interval(NamedTuple):
    low: float
    high: float


class Difference(NamedTuple):
    """One run's figure less another's, on the questions that both were asked."""

    before: float
    after: float
    interval: Interval

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.interval.low > 0 or self.interval.high < 0


class CurvePoint(NamedTuple):
    """What is refused when everything below a confidence is."""

    threshold: float
    answerable: float  # share of the answerable questions that would be refused
    unanswerable: float


# Ranks to figures


def name_of(unit: str, figure: str) -> str:
    """The name of a ranking's figure by unit: "mrr", "page.mrr"."""
    return figure if unit == UNITS[0] else f"{unit}.{figure}"


def finest(found: Container[str]) -> str | None:
    """The finest unit that these figures are of; None where they are of no ranking."""
    return next((unit for unit in UNITS if name_of(unit, RANKING[0]) in found), None)


def recall(ranks: Sequence[int | None], cut: int) -> float:
    """The share of what a question needs that is among the first `cut`."""
    return sum(rank is not None and rank <= cut for rank in ranks) / len(ranks)


def reciprocal_rank(ranks: Sequence[int | None], *, every: bool) -> float:
    """1 / rank of the first thing found, or of the last where every one is needed; 0 where it is not found."""
    known = [rank for rank in ranks if rank is not None]
    if not known or (every and len(known) < len(ranks)):
        return 0.0
    return 1 / (max(known) if every else min(known))


def ndcg(ranks: Sequence[int | None], gains: Sequence[float], cut: int) -> float:
    """Normalised discounted cumulative gain, with gain / log2(rank + 1), the form that trec_eval and BEIR use.

    Järvelin and Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques". The best is one thing a rank: a
    passage that has two things gains both, and the figure is 1 at most.
    """
    found = sum(
        gain / np.log2(rank + 1) for rank, gain in zip(ranks, gains, strict=True) if rank is not None and rank <= cut
    )
    best = sum(gain / np.log2(rank + 1) for rank, gain in enumerate(sorted(gains, reverse=True)[:cut], 1))
    return min(1.0, float(found / best)) if best else 0.0


def figures(asked: Sequence[Asked], stage: str) -> dict[str, Figure]:
    """Every figure by name, those of a ranking as this stage ordered it; those that nothing was asked for are left out.

    The arrays of all have one number for each question, in the order given.
    """
    found: dict[str, Figure] = {}
    for unit in UNITS:
        scored = [_ranking(question, stage, unit) for question in asked]
        for name in RANKING:
            found[name_of(unit, name)] = _figure([(row[name], 1.0) if row else (0.0, 0.0) for row in scored])
    parts = [_answering(question) for question in asked]
    for name in ANSWERING:
        found[name] = _figure([part.get(name, (0.0, 0.0)) for part in parts])
    return {name: figure for name, figure in found.items() if figure.questions}


def _ranking(question: Asked, stage: str, unit: str) -> dict[str, float]:
    ranks = question.ranks.get(stage, {}).get(unit)
    if not ranks:
        return {}
    gains = question.gains[unit]
    return {
        **{f"recall@{cut}": recall(ranks, cut) for cut in CUTS},
        "mrr": reciprocal_rank(ranks, every=question.every),
        f"ndcg@{NDCG_AT}": ndcg(ranks, gains, NDCG_AT),
    }


def _answering(question: Asked) -> dict[str, tuple[float, float]]:
    """Of each figure of an answer: what this question adds to the sum above the line, and to the one below it."""
    answer = question.answer
    if answer is None:
        return {}
    refused, good = float(answer.refused), float(answer.refused and not question.answerable)
    parts = {"refusal_precision": (good, refused)}
    if question.answerable:
        parts["answerable_refused"] = (refused, 1.0)
    else:
        parts["refusal_recall"] = (good, 1.0)
    if not answer.refused:
        cited = answer.citations
        parts["citation_rate"] = (float(answer.with_citation), float(answer.sentences))
        parts["quote_fidelity"] = (float(sum(c.faithful for c in cited)), float(len(cited)))
        if question.answerable and answer.has_gold_page and cited:
            right = [c.right for c in cited]
            parts["citation_accuracy"] = (float(sum(right)), float(len(right)))
            parts["first_citation"] = (float(right[0]), 1.0)
            parts["any_citation"] = (float(any(right)), 1.0)
    return parts


def _figure(parts: Sequence[tuple[float, float]]) -> Figure:
    table = np.array(parts, dtype=np.float64).reshape(-1, 2)
    return Figure(table[:, 0], table[:, 1])


def refusal_curve(asked: Iterable[Asked]) -> list[CurvePoint]:
    """What a higher and higher threshold on the answerer's confidence would refuse; empty where it tells none.

    A question that it refused without a confidence counts as refused at every threshold.
    """
    answered = [(question.answerable, question.answer) for question in asked if question.answer]
    if all(answer.confidence is None for _, answer in answered):
        return []
    told = [
        (answerable, answer.confidence if answer.confidence is not None else -np.inf if answer.refused else np.inf)
        for answerable, answer in answered
    ]
    good = np.array([confidence for answerable, confidence in told if answerable])
    bad = np.array([confidence for answerable, confidence in told if not answerable])
    if not len(good) or not len(bad):
        return []
    steps = np.unique(np.concatenate([good, bad]))
    thresholds = [*steps[np.isfinite(steps)], float(np.nextafter(steps[np.isfinite(steps)][-1], np.inf))]
    return [CurvePoint(float(t), float((good < t).mean()), float((bad < t).mean())) for t in thresholds]


def latencies(timings: Iterable[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Median and 95th percentile of each stage, in milliseconds, in the order in which stages first appear."""
    stages: dict[str, list[float]] = {}
    for laps in timings:
        for name, took in laps.items():
            stages.setdefault(name, []).append(took)
    return {name: (float(np.percentile(t, 50)), float(np.percentile(t, 95))) for name, t in stages.items()}


# How sure a figure is


def interval(figure: Figure) -> Interval:
    """The 95 % bootstrap interval of a figure over its questions. Raises ValueError for a figure of no question."""
    kept = figure.of > 0
    return _bootstrap((figure.over[kept], figure.of[kept]), _ratio)


def difference(before: Figure, after: Figure) -> Difference:
    """after - before with its 95 % bootstrap interval, paired: both are of the same questions in the same order.

    Raises ValueError where either has no question.
    """
    kept = (before.of > 0) | (after.of > 0)
    arrays = tuple(array[kept] for array in (before.over, before.of, after.over, after.of))
    if before.value is None or after.value is None:
        raise ValueError("a figure of no question")
    return Difference(before.value, after.value, _bootstrap(arrays, _gap))


def _bootstrap(arrays: tuple[Floats, ...], statistic: object) -> Interval:
    """The percentile interval (Efron 1979) of a statistic of paired arrays, resampled together; the same every time."""
    if not len(arrays[0]):
        raise ValueError("a figure of no question")
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


def _ratio(over: Floats, of: Floats, axis: int = -1) -> Floats:
    whole = of.sum(axis)
    # A sample may hold none of the questions below the line: its share counts as 0.
    return np.asarray(over.sum(axis) / np.where(whole > 0, whole, 1.0))


def _gap(before_over: Floats, before_of: Floats, after_over: Floats, after_of: Floats, axis: int = -1) -> Floats:
    return _ratio(after_over, after_of, axis) - _ratio(before_over, before_of, axis)
