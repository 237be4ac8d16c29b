"""Detects disagreement between two papers: another number for the same thing, or a denial. Pure."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from folio.grounding.entities import entities, measured
from folio.grounding.negation import DENIALS, opposes
from folio.grounding.quantities import UNITS, Quantity, key, plain_text
from folio.text import tokenize


def conflict(sentence: str, other: str) -> bool:
    """Whether two sentences are about the same thing, but give another number or say the opposite.

    Two numbers are of the same thing where both sentences name it and no word distinguishes it.
    """
    topic, other_topic = _topic(sentence), _topic(other)
    similarity = _dice(topic, other_topic)
    if similarity < 0.6 or _names(sentence) != _names(other):
        return False
    first, second = measured(sentence), measured(other)
    if first == second:
        return similarity >= 0.7 and (opposes(sentence, other) or opposes(other, sentence))
    if not _names(sentence) or (topic - other_topic and other_topic - topic):
        return False
    ones, others = first - second, second - first
    if len(ones) != 1 or len(others) != 1:
        return False
    one, another = next(iter(ones)), next(iter(others))
    if one.unit != another.unit or _rounded_alike(Decimal(one.value), Decimal(another.value)):
        return False
    return len(first) == 1 or not (_is_year(one) and _is_year(another))


@lru_cache(maxsize=4096)
def _topic(text: str) -> frozenset[str]:
    """The words that say what a text is about: no numbers, negations or units."""
    return frozenset(
        token
        for token in tokenize(plain_text(text))
        if token not in DENIALS and token not in UNITS and not any(char.isdigit() for char in token)
    )


def _dice(words: frozenset[str], others: frozenset[str]) -> float:
    """Dice coefficient, 0 to 1; 0 for texts too short to compare."""
    return 2 * len(words & others) / (len(words) + len(others)) if min(len(words), len(others)) > 2 else 0.0


def _names(text: str) -> frozenset[str]:
    found = entities(text)
    return frozenset(key(name) for name in found.names | found.identifiers)


def _rounded_alike(one: Decimal, other: Decimal) -> bool:
    """Whether one number is the other one rounded."""
    places = [int(number.as_tuple().exponent) for number in (one, other)]
    return places[0] != places[1] and abs(one - other) <= Decimal("0.5").scaleb(max(places))


def _is_year(quantity: Quantity) -> bool:
    return not quantity.unit and len(quantity.value) == 4 and "1800" <= quantity.value <= "2100"
