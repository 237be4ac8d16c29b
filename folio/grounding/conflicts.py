"""Detects disagreement between two papers: different numbers for the same thing, or a denial. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from folio.answer_types import Citation
from folio.grounding.names import identifiers, key, names
from folio.grounding.negation import DENIALS, denies, opposes
from folio.grounding.quantities import quantities
from folio.grounding.sentences import EvidenceSentence, citation, content_words, share, tokens_of
from folio.text import tokenize

MOST_AGAINST = 2  # most passages shown that disagree with a statement
LEAST_SHARED = 0.4  # a passage that disagrees with a statement has at least this share of its words
# Two sentences with this Dice coefficient are about the same thing; denials need the higher one.
SAME_TOPIC, SAME_CLAIM = 0.6, 0.7


def against(
    statement: str, citations: Sequence[Citation], sentences: Sequence[EvidenceSentence]
) -> tuple[Citation, ...]:
    """The sentences of papers that are not cited which contradict a statement, at most MOST_AGAINST."""
    cited = {quote.paper.id for quote in citations}
    words = content_words(statement)
    conflicting = []
    for sentence in (sentence for sentence in sentences if sentence.evidence.paper.id not in cited):
        shared = share(words, tokens_of(sentence.text))
        if shared >= LEAST_SHARED and conflict(statement, sentence.text):
            conflicting.append(citation(sentence.evidence, sentence.start, sentence.end, min(0.99, max(0.01, shared))))
    return tuple(sorted(conflicting, key=lambda quote: -quote.support)[:MOST_AGAINST])


def conflict(statement: str, other: str) -> bool:
    """Whether two sentences are about the same thing, but give different numbers or say the opposite.

    Two numbers are about the same thing if both sentences name it and no word distinguishes it.
    """
    named = _named(statement)
    if named != _named(other):
        return False
    # Most pairs end here, without Pint.
    if _dice(_topic(statement, units=False), _topic(other, units=False)) < SAME_TOPIC / 2:
        return False
    topic, other_topic = _topic(statement), _topic(other)
    similarity = _dice(topic, other_topic)
    if similarity < SAME_TOPIC:
        return False
    numbers, other_numbers = ([n for n in quantities(text) if not n.is_reference] for text in (statement, other))
    first = [number for number in numbers if not number.is_among(other_numbers)]
    second = [number for number in other_numbers if not number.is_among(numbers)]
    if not first and not second:
        return similarity >= SAME_CLAIM and (denies(statement, other) or opposes(statement, other))
    if not named or (topic - other_topic and other_topic - topic) or len(first) != 1 or len(second) != 1:
        return False
    number, other_number = first[0], second[0]
    # "in 2019", "in 2020": two occasions
    are_dates = len(numbers) > 1 and all(
        not n.unit and 1800 <= n.value <= 2100 and n.value.is_integer() for n in first + second
    )
    return number.unit == other_number.unit and not other_number.is_among([number]) and not are_dates


@lru_cache(maxsize=4096)
def _topic(text: str, *, units: bool = True) -> frozenset[str]:
    """The topic words of a text: all but numbers, negations and units."""
    numbers = " ".join(number.with_unit for number in quantities(text, units=units))
    left_out = frozenset(tokenize(numbers)) | DENIALS
    return frozenset(t for t in tokenize(text) if t not in left_out and not any(char.isdigit() for char in t))


def _dice(words: frozenset[str], other_words: frozenset[str]) -> float:
    """Dice coefficient, 0 to 1; 0 for texts too short to compare."""
    return (
        2 * len(words & other_words) / (len(words) + len(other_words)) if min(len(words), len(other_words)) > 2 else 0.0
    )


def _named(text: str) -> frozenset[str]:
    return frozenset(key(name) for name in names(text) | identifiers(text))
