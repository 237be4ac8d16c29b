"""Thresholds that a run must meet."""

from __future__ import annotations

import numpy as np
import pytest

from folio.errors import UsageError
from folio.evaluate.metrics import NAMES, Figure
from folio.evaluate.thresholds import Threshold, parse_threshold, violations

pytestmark = pytest.mark.fast


def figure(value: float) -> Figure:
    return Figure(np.array([value]), np.array([1.0]))


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("recall@5=0.8", Threshold("recall@5", 0.8, at_most=False)),
        ("page.mrr>=.5", Threshold("page.mrr", 0.5, at_most=False)),
        (" answerable_refused <= 0.08 ", Threshold("answerable_refused", 0.08, at_most=True)),
        ("paper.ndcg@10=1", Threshold("paper.ndcg@10", 1.0, at_most=False)),
    ],
)
def test_thresholds_are_parsed(text: str, threshold: Threshold) -> None:
    assert parse_threshold(text) == threshold


def test_an_unknown_name_is_answered_with_all_names() -> None:
    with pytest.raises(UsageError) as raised:
        parse_threshold("recall@7=0.5")
    assert raised.value.happened == "There is no metric recall@7."
    assert all(name in raised.value.remedy for name in NAMES)


@pytest.mark.parametrize("text", ["recall@5", "recall@5<0.8", "", "=0.8", "mrr=", "mrr=good", "mrr=80", "mrr=nan"])
def test_malformed_thresholds_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_threshold(text)


def test_violations_say_by_how_much() -> None:
    figures = {"mrr": figure(0.65), "answerable_refused": figure(0.125), "recall@5": figure(0.8)}
    texts = ("mrr=0.7", "answerable_refused<=0.08", "recall@5=0.8", "quote_fidelity=1")
    thresholds = [parse_threshold(text) for text in texts]
    assert violations(thresholds, figures) == [
        "mrr is 0.6500 and should be at least 0.7 (off by 0.0500).",
        "answerable_refused is 0.1250 and should be at most 0.08 (off by 0.0450).",
        "quote_fidelity should be at least 1, but this set does not measure it.",
    ]
    assert violations([parse_threshold("mrr=0.65"), parse_threshold("mrr<=0.65")], figures) == []
