"""Thresholds that a run must meet: "recall@5=0.8", "answerable_refused<=0.08"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from folio.errors import UsageError
from folio.evaluate.metrics import NAMES, Figure

_THRESHOLD = re.compile(r"\s*([^=<>\s]+)\s*(<=|>=|=)\s*(\S+)\s*")
# The largest value of the metrics that are no shares
_LARGEST = {"grade": 3}


@dataclass(frozen=True, slots=True)
class Threshold:
    """A metric and its lower or upper limit."""

    name: str
    value: float
    at_most: bool


def parse_threshold(text: str, names: Sequence[str] = NAMES) -> Threshold:
    """Parse name=value or name>=value (at least), or name<=value (at most). names: the metrics that there are.

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
    """A sentence for each threshold that is not met. A metric that was not measured meets none."""
    found = []
    for wanted in thresholds:
        value = figures[wanted.name].value if wanted.name in figures else None
        limit = f"at {'most' if wanted.at_most else 'least'} {wanted.value:g}"
        if value is None:
            found.append(f"{wanted.name} should be {limit}, but this set does not measure it.")
        elif value > wanted.value if wanted.at_most else value < wanted.value:
            found.append(
                f"{wanted.name} is {value:.4f} and should be {limit} (off by {abs(value - wanted.value):.4f})."
            )
    return found
