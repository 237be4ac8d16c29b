"""Thresholds that a run must meet: "recall@5=0.8", "answerable_refused<=0.08"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from folio.errors import UsageError
from folio.evaluate.metrics import NAMES, Figure

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
