"""Bars that a run must clear."""

from __future__ import annotations

import numpy as np
import pytest

from folio.errors import UsageError
from folio.evaluate.metrics import NAMES, Figure
from folio.evaluate.thresholds import Threshold, missed, read_bar


def figure(value: float) -> Figure:
    return Figure(np.array([value]), np.array([1.0]))


@pytest.mark.parametrize(
    ("text", "bar"),
    [
        ("recall@5=0.8", Threshold("recall@5", 0.8, at_most=False)),
        ("page.mrr>=.5", Threshold("page.mrr", 0.5, at_most=False)),
        (" answerable_refused <= 0.08 ", Threshold("answerable_refused", 0.08, at_most=True)),
        ("paper.ndcg@10=1", Threshold("paper.ndcg@10", 1.0, at_most=False)),
    ],
)
def test_bar_is_read(text: str, bar: Threshold) -> None:
    assert read_bar(text) == bar


def test_wrong_name_is_told_with_every_right_one() -> None:
    with pytest.raises(UsageError) as raised:
        read_bar("recall@7=0.5")
    assert raised.value.happened == "There is no figure recall@7."
    assert all(name in raised.value.remedy for name in NAMES)


@pytest.mark.parametrize("text", ["recall@5", "recall@5<0.8", "", "=0.8", "mrr=", "mrr=good", "mrr=80", "mrr=nan"])
def test_what_is_no_bar_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_bar(text)


def test_missed_bars_are_told_by_how_much() -> None:
    figures = {"mrr": figure(0.65), "answerable_refused": figure(0.125), "recall@5": figure(0.8)}
    bars = [read_bar(text) for text in ("mrr=0.7", "answerable_refused<=0.08", "recall@5=0.8", "quote_fidelity=1")]
    assert missed(bars, figures) == [
        "mrr is 0.6500 and was to be at least 0.7: missed by 0.0500.",
        "answerable_refused is 0.1250 and was to be at most 0.08: missed by 0.0450.",
        "quote_fidelity was to be at least 1, and this set has no question to measure it with.",
    ]
    assert missed([read_bar("mrr=0.65"), read_bar("mrr<=0.65")], figures) == []
