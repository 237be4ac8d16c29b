"""Whether two papers disagree: the same said of the same thing with another number, or denied. Pure."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from folio.grounding.entities import facts, measured
from folio.grounding.negation import DENIALS, opposes
from folio.grounding.quantities import UNITS, Quantity, key, plain_text
from folio.text import tokenize


def conflict(sentence: str, other: str) -> bool:
    """Whether two sentences say the same of the same thing, but with another number or the opposite of it.

    Numbers are of the same thing where both name it, and no word tells it from the other.
    """
    topic, other_topic = _topic(sentence), _topic(other)
    alike = _alikeness(topic, other_topic)
    if alike < 0.6 or _called(sentence) != _called(other):
        return False
    first, second = measured(sentence), measured(other)
    if first == second:
        return alike >= 0.7 and (opposes(sentence, other) or opposes(other, sentence))
    if not _called(sentence) or (topic - other_topic and other_topic - topic):
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
    """The words that tell what a text is about: no numbers, denials or units."""
    return frozenset(
        token
        for token in tokenize(plain_text(text))
        if token not in DENIALS and token not in UNITS and not any(char.isdigit() for char in token)
    )


def _alikeness(words: frozenset[str], others: frozenset[str]) -> float:
    """Dice's coefficient, 0 to 1; 0 where there is too little to tell."""
    return 2 * len(words & others) / (len(words) + len(others)) if min(len(words), len(others)) > 2 else 0.0


def _called(text: str) -> frozenset[str]:
    found = facts(text)
    return frozenset(key(name) for name in found.names | found.identifiers)


def _rounded_alike(one: Decimal, other: Decimal) -> bool:
    """Whether one of two numbers is the other with fewer digits."""
    places = [int(number.as_tuple().exponent) for number in (one, other)]
    return places[0] != places[1] and abs(one - other) <= Decimal("0.5").scaleb(max(places))


def _is_year(quantity: Quantity) -> bool:
    return not quantity.unit and len(quantity.value) == 4 and "1800" <= quantity.value <= "2100"
