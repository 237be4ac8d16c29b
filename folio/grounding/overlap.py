"""Measures how much of a sentence's wording a quote has: its content words and their order. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from folio.grounding.entities import entities
from folio.text import tokenize

# Weights: the share of the sentence's words, and the share in the sentence's order (who did what to whom). LOG.md has
# the experiments.
WORDS, ORDER = 0.5, 0.3
# With less than this share of the words in order, a sentence turns its source around.
LEAST_ORDER = 0.5
# Words that refer to the source itself; the source need not have them.
_FRAME = frozenset(
    tokenize(
        "according paper papers article study studies author authors evidence source sources passage document report"
        " reports reported state states stated describe describes described mention mentions mentioned note notes noted"
        " explain explains explained write say says said provided given context text section researchers also"
        " additionally furthermore moreover overall summary specifically respectively therefore however indicate"
        " indicates indicated discuss discusses discussed stands don doesn didn isn aren wasn weren can couldn"
    )
)
# Words that strengthen a sentence, each group with the words of which the source must have one.
_STRONG = tuple(
    (frozenset(strong.split()), frozenset(f"{strong} {alike}".split()))
    for strong, alike in (
        ("all every everyone everything everywhere always entire entirely wholly completely fully totally",
         "each any anyone anything both whole throughout everybody 100"),
        ("only solely exclusively", "merely just alone purely unique uniquely sole single"),
        ("must shall", "require requires required requirement need needs needed necessary mandatory"),
    )
)  # fmt: skip
_ORDINALS = dict(
    zip("first second third fourth fifth sixth seventh eighth ninth tenth".split(),
        "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th".split(), strict=True)
)  # fmt: skip
_COUNTING_OFF = re.compile(
    r"^\W*(?:\w+ly|first|second|third|last|finally)\W*,|\b(?:per|each|every|a|of a) second\b", re.I
)
_SUPERLATIVE = re.compile(
    r"\b(?!(?:inter|sugg|requ|for|prot|dig|harv|inv|cont|t|r|w|n|gu|qu|p|ch|v|l|arr|att|mod|hon|earn|ing|manif|lat|z"
    r"|unr|infest|conqu|beh)est\b)\w{2,}est\b"
)
# "each month", "per square metre"
_RATE = re.compile(
    r"\b(?:per|each|every)\s+((?:(?:square|cubic)\s+)?(?:second|minute|hour|day|night|week|month|quarter|year|decade"
    r"|century|(?:kilo|centi|milli|deci)?(?:metre|meter|gram|litre|liter)|kg|km|cm|mm|ml|person|patient|page|mile))s?\b",
    re.I,
)
_SAME_RATE = {
    "hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly", "year": "yearly annual annually annum"
}  # fmt: skip
_HAVE_TO = re.compile(r"\b(?:has|have|had|having) to\b", re.I)
_SET_PHRASES = re.compile(r"\bnot only\b|\b(?:not|above|after|at|first of) all\b|\ball in all\b", re.I)
# A number, in digits or a word, and the words after it that may be its unit: "23 km", "9.8 metres per second"
_MEASURE = re.compile(
    r"(?<![\w.-])(?P<measure>(?P<number>\d(?:[\d.,]*\d)?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
    r"(?:[\s-](?:hundred|thousand|million|billion))?(?:[\s-]?(?:(?:square|cubic|degrees?)\s)?(?:[^\W\d_]+|[%‰°]))?)"
    r"(?:(?:\s?/\s?|\sper\s)[^\W\d_]+)?",
    re.I,
)
# These units are also plain words, which entities.missing does not require: "three times", "3-dimensional".
_WORDS_TOO = frozenset({"fold", "D"})
# A number with this many characters, such as 155,000, hardly ever counts something else.
_LONG = 4
_NAME = re.compile(r"[^\W\d_]\w*(?:[-.]\w+)*")
# Two words with the same first letters, this many, are forms of one word: optimisation, optimizes.
_SAME_BEGINNING = 5


def wording(sentence: str, quote: str, known: str) -> float:
    """How much of a sentence's words the quote has, and in the same order: 0 to 1; 1 for a literal copy.

    known: title and file name of the quote's paper. Names that the quote lacks may come from there.
    """
    if _folded(sentence).strip(" .") in _folded(quote):
        return 1.0
    there = tokenize(quote)
    excused = _measures(sentence).difference(there)
    named = [name for name in _names_among(sentence, known) if name not in there]
    words = telling(sentence) - excused
    held = share(words.difference(named) or words, frozenset(there))
    said = [token for token in tokenize(sentence) if token not in _FRAME | excused]
    order = _in_order(said, [*named, *there])
    if order < LEAST_ORDER * held and _is_passive(sentence) == _is_passive(quote):
        return order
    return (WORDS * held + ORDER * order) / (WORDS + ORDER)


@lru_cache(maxsize=4096)
def tokens_of(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))


def telling(sentence: str) -> frozenset[str]:
    """The content words of a sentence."""
    words = tokens_of(sentence)
    return words - _FRAME or words


def share(words: frozenset[str], there: frozenset[str]) -> float:
    return len(held_of(words, there)) / len(words) if words else 0.0


def held_of(words: frozenset[str], there: frozenset[str]) -> frozenset[str]:
    """The words that are there, in this form or another."""
    exact = words & there
    beginnings = {word[:_SAME_BEGINNING] for word in there if len(word) >= _SAME_BEGINNING and word.isalpha()}
    return exact | {word for word in words - exact if word.isalpha() and word[:_SAME_BEGINNING] in beginnings}


def dice(wanted: frozenset[str], words: frozenset[str], there: frozenset[str]) -> float:
    """Dice coefficient of a sentence's words and those there; of the shared words, only the wanted ones count."""
    total = len(words) + len(there)
    return 2 * len(held_of(wanted, there)) / total if total else 0.0


def unsaid(sentence: str, quote: str) -> str:
    """A small word that changes what a sentence says and that its quote lacks; "" if there is none.

    It generalises ("all"), excludes ("only"), requires ("must"), counts ("second"), ranks ("largest") or gives a rate
    ("a month").
    """
    said = words_of(_SET_PHRASES.sub(" ", sentence)).split()
    there = frozenset(words_of(_HAVE_TO.sub("must", quote)).split())
    strong = next((word for word in said for strong, alike in _STRONG if word in strong and not there & alike), "")
    counted = words_of(_COUNTING_OFF.sub(" ", sentence)).split()
    ordinal = next((word for word in counted if word in _ORDINALS and not there & {word, _ORDINALS[word]}), "")
    best = next((word for word in _SUPERLATIVE.findall(" ".join(said)) if word not in there), "")
    rate = next((rate for rate in _RATE.findall(sentence) if not _is_rate(rate, quote)), "")
    return strong or ordinal or best or rate


def _is_rate(rate: str, quote: str) -> bool:
    """Whether a quote gives a rate per this unit, in any form: "a week", "weekly", "/week", "per kg"."""
    unit = rate.split()[-1].casefold()
    short = {quantity.unit for quantity in entities(f"1 {rate}").quantities} - {""}
    forms = "|".join(re.escape(form) for form in (" ".join(rate.casefold().split()), *sorted(short)))
    alike = "|".join(_SAME_RATE.get(unit, unit).split())
    flat = " ".join(quote.split())
    return bool(re.search(rf"(?:\b(?:per|each|every|an?)\s+|/\s?)(?:{forms})|\b(?:{alike})\b", flat, re.I))


def _is_passive(text: str) -> bool:
    return " by " in text.casefold()


def _in_order(words: Sequence[str], there: Sequence[str]) -> float:
    """Length of the longest common subsequence, as a share of the words."""
    longest = [0] * (1 + len(there))
    for word in words:
        diagonal = 0
        for place, other in enumerate(there, 1):
            above = longest[place]
            longest[place] = diagonal + 1 if word == other else max(above, longest[place - 1])
            diagonal = above
    return longest[-1] / len(words) if words else 0.0


@lru_cache(maxsize=4096)
def _measures(sentence: str) -> frozenset[str]:
    """The words of long numbers and of numbers with a unit, which entities.missing has already checked.

    A short number without a unit, such as "two", is left in: it too often counts something else.
    """
    found: set[str] = set()
    for match in _MEASURE.finditer(sentence):
        units = {quantity.unit for quantity in entities(match.group()).quantities} - {""} - _WORDS_TOO
        if units:
            found.update(tokenize(match.group() if any("/" in unit for unit in units) else match["measure"]))
        elif len(match["number"]) >= _LONG and match["number"][0].isdigit():
            found.update(tokenize(match["number"]))
    return frozenset(found)


def _names_among(sentence: str, known: str) -> list[str]:
    """The words of a sentence's names, in order, that are in a paper's title or file name."""
    titled = frozenset(tokenize(known))
    names = (word for word in _NAME.findall(sentence) if word != word.lower())
    return [token for name in names for token in tokenize(name) if token in titled]


def words_of(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
