"""The bars that a run must clear: "recall@5=0.8", "answerable_refused<=0.08"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from folio.errors import UsageError
from folio.evaluate.metrics import NAMES, Figure

_BAR = re.compile(r"\s*([^=<>\s]+)\s*(<=|>=|=)\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A figure, and what it must at least be, or at most."""

    name: str
    value: float
    at_most: bool


def read_bar(text: str) -> Threshold:
    """name=value, at least so much; name<=value, at most. Raises UsageError for what is neither, with every name."""
    parts = _BAR.fullmatch(text)
    if parts is None:
        raise UsageError(f"{text} is no bar.", "Write recall@5=0.8 for at least, answerable_refused<=0.08 for at most.")
    name, sign, number = parts.groups()
    if name not in NAMES:
        raise UsageError(f"There is no figure {name}.", f"Use one of these: {', '.join(NAMES)}.")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"{number} is no bar for {name}.", "Give a number from 0 to 1, such as 0.8.")
    return Threshold(name, value, sign == "<=")


def missed(bars: Sequence[Threshold], figures: Mapping[str, Figure]) -> list[str]:
    """A sentence for each bar that these figures do not clear; a figure that was not measured clears none."""
    found = []
    for bar in bars:
        value = figures[bar.name].value if bar.name in figures else None
        limit = f"at {'most' if bar.at_most else 'least'} {bar.value:g}"
        if value is None:
            found.append(f"{bar.name} was to be {limit}, and this set has no question to measure it with.")
        elif value > bar.value if bar.at_most else value < bar.value:
            found.append(f"{bar.name} is {value:.4f} and was to be {limit}: missed by {abs(value - bar.value):.4f}.")
    return found
