"""Finds the short answer of an asked type in a sentence: a number with its unit, a date, an acronym's words. Pure.

A short answer is shown before everything else, so it is given only where the sentence leaves no choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from folio.grounding.quantities import Quantity, quantities
from folio.search.question import Question
from folio.text import STOP_WORDS, tokenize

Span = tuple[int, int]

# How much of a question a sentence covers, at least, whose value is shown above an answer (LOG.md)
LEAST_COVERED = 0.6

_MONTH = "(?:jan|febr)uary|march|april|may|june|july|august|(?:sept|nov|dec)ember|october"
_YEAR = re.compile(r"(?<![\w.])(?:1[5-9]|20)\d\d(?![\w%]|\.\d)")
_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?:{_MONTH})\s+(?:\d{{1,2}}(?:st|nd|rd|th)?,?\s+)?(?:1[5-9]|20)\d\d\b"
    rf"|{_YEAR.pattern}",
    re.I,
)
# A year in brackets is a cited work's: "(Otter, 2019)", "Otter (2019)".
_CITED = re.compile(r"\([^()]*\)")
_CAPITAL = r"[^\W\d_a-z][\w’'-]*[a-z][\w’'-]*"
_PERSON = re.compile(rf"\b{_CAPITAL}(?:\s+[^\W\d_a-z]\.)*(?:\s+(?:van|von|de|der|del|la|den)\b)*\s+{_CAPITAL}")
_PLACE = re.compile(
    rf"\b(?:in|at|from|near|off|on)\s+(?P<place>(?:the\s+)?{_CAPITAL}(?:[,\s]+(?:(?:of|the|and)\s+)?{_CAPITAL})*)"
)
# What may stand behind a number as its unit, or as what it counts: "64 MB", "5%", "12 lessons", "3 km/h"
_UNIT = re.compile(r"[\s-]?(?P<unit>[%‰]|°\s?[CF]\b|[^\W\d_]+(?:/[^\W\d_]+)?)(?!\w)")
# What says how a number is meant, right before it
_QUALIFIER = re.compile(
    r"\b(?:(?:(?:(?:no )?(?:more|less|fewer)|greater|higher|lower|larger|smaller|better) than|at (?:least|most)|up to"
    r"|about|around|approximately|roughly|nearly|almost|over|under|above|below|only|exceeding|as (?:many|few) as)\s+"
    r"|[~≈<>≤≥±]\s?)$",
    re.I,
)
# What makes a number a part of a formula, right before and right behind it: "2t + 1 replicas", "3 × 4"
_OPERATOR = r"[+×*/^=−]"
_FORMULA_BEFORE = re.compile(rf"[\w)]\s?{_OPERATOR}\s?$")
_FORMULA_BEHIND = re.compile(rf"\s?{_OPERATOR}\s?[\w(]")
_ACRONYM = re.compile(r"\b[A-Z][A-Za-z-]*[A-Z]s?\b")
# A place that is none: "in Table 3", "in Section 2"
_PARTS = re.compile(r"(?:the\s+)?(?:table|fig|sec|eq|chapter|appendix|algorithm|step|phase|part|page)", re.I)


def has_type(question: Question, text: str) -> bool:
    """Whether a text has something of the type that a question asks for; True for a kind of question without one."""
    kind = question.type.kind
    if kind == "number":
        return bool(_numbers(text, question))
    if kind == "date":
        return bool(_DATE.search(text))
    if kind == "person":
        return any(_new(text[slice(*span)], question) for span in _spans(_PERSON, text)) or "et al" in text
    if kind == "place":
        return any(True for _ in _places(text, question))
    return True


def meets_conditions(question: Question, tokens: Set[str], covered: float) -> bool:
    """Whether a sentence may give the value that a question asks for: it is about that, and under the same conditions.

    tokens: of the sentence and of what stands above it. covered: how much of the question these cover, 0 to 1. All
    numbers of the question are conditions, and the name of a measure is what the value is of.
    """
    named = {*tokenize(question.measure), *question.numbers}
    return covered >= LEAST_COVERED and named <= tokens


def short_answer(question: Question, text: str) -> Span | None:
    """The span of the short answer in a sentence; None where it has none, or more than one that could be meant.

    A number begins with what qualifies it: "less than 1 ms". People and places have none: words with capitals are too
    often a course, a product, a title.
    """
    kind = question.type.kind
    found: list[Span] = []
    if kind == "number":
        found = _asked_numbers(text, question)
    elif kind == "date":
        without = _CITED.sub(lambda cited: " " * len(cited[0]), text)
        found = [span for span in _spans(_DATE, without) if text[slice(*span)] not in question.text]
    elif kind == "definition":
        found = list(_written_out(text, question))
    return found[0] if len(found) == 1 else None


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    return (match.span() for match in pattern.finditer(text))


def _new(text: str, question: Question) -> bool:
    """Whether a text says something that the question does not."""
    return question.terms.isdisjoint(tokenize(text))


def _places(text: str, question: Question) -> Iterator[Span]:
    for match in _PLACE.finditer(text):
        place = match["place"]
        if _new(place, question) and not _PARTS.match(place):
            yield match.span("place")


def _numbers(text: str, question: Question) -> list[Quantity]:
    """The numbers that count or measure something and that the question does not have."""
    asked = {number.written for number in quantities(question.text, units=False)}
    years = re.search(r"\byears?\b", question.text, re.I)
    return [
        number
        for number in quantities(text, units=False)
        if not number.is_reference and number.written not in asked and (years or not _YEAR.fullmatch(number.written))
        if not re.search(rf"{re.escape(number.written)}\s?%\s+(?:CI\b|credible|confidence)", text)
    ]


def _asked_numbers(text: str, question: Question) -> list[Span]:
    """Where the numbers stand that a question asks for: those that count its words, or else all."""
    numbers = _numbers(text, question)
    words = question.terms - STOP_WORDS
    if not re.search(r"\bhow many\b", question.text, re.I):
        numbers = [number for number in numbers if not number.is_spelled]
    if re.search(r"\bhow many\b", question.text, re.I):
        numbers = [number for number in numbers if number.counted & words]
    elif re.search(r"\bper ?cent(?:age)?\b|\bshare\b|\bfraction\b|\bproportion\b", question.text, re.I):
        numbers = [number for number in numbers if number.unit == "%"] or numbers
    written = dict.fromkeys(number.written for number in numbers)
    if len(written) != 1:
        return []
    pattern = r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", next(iter(written)))))
    found = re.search(rf"(?<![\w.,]){pattern}", text)
    if found is None:
        return []
    if _FORMULA_BEFORE.search(text, 0, found.start()) or _FORMULA_BEHIND.match(text, found.end()):
        return []
    qualified = _QUALIFIER.search(text, 0, found.start())
    return [(qualified.start() if qualified else found.start(), _unit_end(text, found.end()))]


def _unit_end(text: str, end: int) -> int:
    """Where the unit or the counted noun behind a number ends; the number's end if there is none."""
    unit = _UNIT.match(text, end)
    return unit.end() if unit and unit["unit"].casefold() not in STOP_WORDS else end


def _written_out(text: str, question: Question) -> Iterator[Span]:
    """An acronym's words where they stand beside it: "conflict-free replicated data types (CRDTs)"."""
    for name in _ACRONYM.findall(question.text):
        letters = name.rstrip("s").replace("-", "")
        words = r"\b[\s-]+(?:(?:of|and|the|for|in)\s+)?".join(rf"{re.escape(letter)}[\w’'-]+?" for letter in letters)
        acronym = rf"\(?{re.escape(name.rstrip('s'))}s?\b"
        for match in re.finditer(
            rf"\b(?P<one>{words}\b)\s*\({acronym}|\b{acronym}\s*[(,:]\s*(?P<two>{words}\b)", text, re.I
        ):
            yield match.span("one" if match["one"] else "two")
