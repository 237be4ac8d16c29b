"""Detects disagreement between two papers: different numbers for the same thing, or a denial. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from folio.answer_types import Citation, Disagreement
from folio.grounding.names import identifiers, key, names
from folio.grounding.negation import DENIALS, denies, opposes
from folio.grounding.quantities import Quantity, quantities
from folio.grounding.sentences import EvidenceSentence, citation, content_words, share, tokens_of
from folio.text import tokenize

MOST_AGAINST = 2  # most passages shown that disagree with a statement
LEAST_SHARED = 0.4  # a passage that disagrees with a statement has at least this share of its words
# Two sentences with this Dice coefficient are about the same thing; denials need the higher one.
SAME_TOPIC, SAME_CLAIM = 0.6, 0.7
SHORTEST_TOPIC = 3  # words; shorter topics must be equal

# A phrase that says where, when or for what a sentence holds; "of" says of what, which is another thing.
_LEADS = (
    r"\b(?:above|after|among|at|before|below|between|during|for|from|if|in|near|on|over|under|when|where|while|with"
    r"|within|without)\b"
)
_CONDITION = re.compile(rf"{_LEADS}(?:(?!{_LEADS})[^,;:()])*|\([^()]*\)", re.I)
# What a sentence says of its own study is no disagreement with another one; a confidence level is no finding.
_OWN = re.compile(r"\b(?:we|our|ours|us|this|these|those|both)\b|\b(?:CI|confidence|credible)\b", re.I)


@dataclass(frozen=True, slots=True)
class Conflict:
    """How a sentence differs from a statement about the same thing."""

    kind: Disagreement
    marks: tuple[tuple[int, int], ...] = ()  # [start, end) in the sentence: its number, the words of its condition


def against(
    statement: str, citations: Sequence[Citation], sentences: Sequence[EvidenceSentence]
) -> tuple[Citation, ...]:
    """The sentences of papers that are not cited which contradict a statement, at most MOST_AGAINST."""
    cited = {quote.paper.id for quote in citations}
    words = content_words(statement)
    conflicting = []
    for sentence in (sentence for sentence in sentences if sentence.evidence.paper.id not in cited):
        shared = share(words, tokens_of(sentence.text))
        if shared >= LEAST_SHARED and (found := conflict(statement, sentence.text)):
            cited_words = citation(sentence.evidence, sentence.start, sentence.end, min(0.99, max(0.01, shared)))
            conflicting.append(disagreeing(cited_words, found, sentence.text))
    return tuple(sorted(conflicting, key=lambda quote: -quote.support)[:MOST_AGAINST])


def disagreeing(cited: Citation, found: Conflict, text: str) -> Citation:
    """A citation of a sentence that disagrees. text: the sentence; the part of it on another page is not marked."""
    return replace(cited, differs=found.kind, marks=found.marks if cited.quote == text else ())


def are_apart(number: Quantity, other: Quantity) -> bool:
    """Whether two numbers have the same unit, or count the same, and are not the same number, rounded or not."""
    is_same = number.unit == other.unit if number.unit else not other.unit and bool(number.counted & other.counted)
    return is_same and not number.is_among([other]) and not other.is_among([number])


def conflict(statement: str, other: str) -> Conflict | None:
    """How two sentences about the same thing differ: in a number, or by a denial; None if they do not.

    Two numbers are about the same thing if both sentences name the same and no word but that of a condition
    distinguishes it. Without a name, the numbers have a unit, and neither sentence is about its own study.
    """
    named = _named(statement)
    if named != _named(other):
        return None
    # Most pairs end here, without Pint.
    if _dice(_topic(statement, units=False), _topic(other, units=False)) < SAME_TOPIC / 2:
        return None
    topic, other_topic = _topic(statement), _topic(other)
    numbers, other_numbers = ([n for n in quantities(text) if not n.is_reference] for text in (statement, other))
    first = [number for number in numbers if not number.is_among(other_numbers)]
    second = [number for number in other_numbers if not number.is_among(numbers)]
    if not first and not second:
        is_same = _are_alike(topic, other_topic, SAME_CLAIM)
        return Conflict("denial") if is_same and (denies(statement, other) or opposes(statement, other)) else None
    if len(first) != 1 or len(second) != 1:
        return None
    number, other_number = first[0], second[0]
    # "in 2019", "in 2020": two occasions
    are_dates = len(numbers) > 1 and all(
        not n.unit and 1800 <= n.value <= 2100 and n.value.is_integer() for n in first + second
    )
    if number.unit != other_number.unit or other_number.is_among([number]) or are_dates:
        return None
    is_short = min(len(topic), len(other_topic)) < SHORTEST_TOPIC
    if ((is_short or not named) and not number.unit) or (not named and _OWN.search(f"{statement} {other}")):
        return None
    return _of_numbers(statement, number, other, other_number)


def _of_numbers(statement: str, number: Quantity, other: str, other_number: Quantity) -> Conflict | None:
    """The conflict of two sentences that each have one number of their own; None if they are about two things."""
    conditions, other_conditions = _own_conditions(statement, number, other, other_number)
    left, other_left = _topic(statement) - conditions, _topic(other) - other_conditions
    if (left - other_left and other_left - left) or not _are_alike(left, other_left, SAME_TOPIC):
        return None
    return _under(conditions, other_conditions, other, other_number)


def of_values(statement: str, number: Quantity, other: str, other_number: Quantity, asked: frozenset[str]) -> Conflict:
    """The conflict of two values of the same thing. asked: words of a question, which are no condition."""
    return _under(*_own_conditions(statement, number, other, other_number, asked), other, other_number)


def _own_conditions(
    statement: str, number: Quantity, other: str, other_number: Quantity, asked: frozenset[str] = frozenset()
) -> tuple[frozenset[str], frozenset[str]]:
    """The words of conditions that only one of two sentences has, of each. asked: words that count as of both."""
    topic, other_topic = _topic(statement) | asked, _topic(other) | asked
    return (
        _words_of_conditions(statement, topic - other_topic, number),
        _words_of_conditions(other, other_topic - topic, other_number),
    )


def _under(
    conditions: frozenset[str], other_conditions: frozenset[str], other: str, other_number: Quantity
) -> Conflict:
    """The conflict of numbers under these conditions, with the marks in the other sentence."""
    begins = other_number.span[0]
    ends = begins + len(other_number.with_unit)
    if other[begins:ends] != other_number.with_unit:
        ends = other_number.span[1]
    marks = {(begins, ends), *_first_words(other, other_conditions, other_number)}
    return Conflict("condition" if conditions or other_conditions else "number", tuple(sorted(marks)))


def _conditions(text: str, number: Quantity) -> Iterator[re.Match[str]]:
    """The phrases on conditions, without that of the number."""
    phrases = _CONDITION.finditer(text)
    return (phrase for phrase in phrases if not phrase.start() <= number.span[0] < phrase.end())


def _words_of_conditions(text: str, words: frozenset[str], number: Quantity) -> frozenset[str]:
    """Those of the words that stand in a phrase on conditions."""
    return words & frozenset(token for phrase in _conditions(text, number) for token in tokenize(phrase[0]))


def _first_words(text: str, words: frozenset[str], number: Quantity) -> Iterator[tuple[int, int]]:
    """The span of the first of these words in each phrase on conditions, with those that follow it without others."""
    for phrase in _conditions(text, number):
        written = list(re.finditer(r"[^\W_]+", text[phrase.start() : phrase.end()]))
        runs = groupby(written, key=lambda word: not words.isdisjoint(tokenize(word[0])))
        first = next((list(run) for are_own, run in runs if are_own), None)
        if first:
            yield phrase.start() + first[0].start(), phrase.start() + first[-1].end()


@lru_cache(maxsize=4096)
def _topic(text: str, *, units: bool = True) -> frozenset[str]:
    """The topic words of a text: all but numbers, negations and units."""
    numbers = " ".join(number.with_unit for number in quantities(text, units=units))
    left_out = frozenset(tokenize(numbers)) | DENIALS
    return frozenset(t for t in tokenize(text) if t not in left_out and not any(char.isdigit() for char in t))


def _are_alike(words: frozenset[str], other_words: frozenset[str], least: float) -> bool:
    """Whether two topics have this Dice coefficient; short ones must be equal."""
    is_short = min(len(words), len(other_words)) < SHORTEST_TOPIC
    return bool(words) and (words == other_words if is_short else _dice(words, other_words) >= least)


def _dice(words: frozenset[str], other_words: frozenset[str]) -> float:
    """Dice coefficient, 0 to 1."""
    return 2 * len(words & other_words) / max(1, len(words) + len(other_words))


def _named(text: str) -> frozenset[str]:
    return frozenset(key(name) for name in names(text) | identifiers(text))
