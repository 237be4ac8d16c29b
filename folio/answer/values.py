"""The value in a sentence that a question asks for: a number with its unit, a date, an acronym's words. Pure.

A short answer is shown above the answer, so it must be the only candidate in its sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from folio.answer.blocks import Span
from folio.grounding.quantities import Quantity, quantities
from folio.question.question import Question
from folio.text import STOP_WORDS, tokenize

LEAST_COVERED = 0.6  # share of the question that a sentence must cover to give its value (LOG.md)

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
# The unit after a number, or the noun that it counts: "64 MB", "5%", "12 lessons", "3 km/h", "9 kg m⁻³"
_POWERED = r"[^\W\d_]{1,5}(?:⁻|\^-)[¹²³⁴1-4]"
_UNIT = re.compile(
    r"[\s-]?(?P<unit>[%‰]|°\s?[CF]\b"
    rf"|(?:{_POWERED}|[^\W\d_]+(?:\^?[2-4])?)(?:/[^\W\d_]+(?:\^?[2-4])?|[\s·⋅]{_POWERED}){{0,3}})(?!\w)"
)
# A qualifier directly before a number
_QUALIFIER = re.compile(
    r"\b(?:(?:(?:(?:no )?(?:more|less|fewer)|greater|higher|lower|larger|smaller|better) than|at (?:least|most)|up to"
    r"|about|around|approximately|roughly|nearly|almost|over|under|above|below|only|exceeding|as (?:many|few) as)\s+"
    r"|[~≈<>≤≥±]\s?)$",
    re.I,
)
# An operator directly before or after a number that is part of a formula: "2t + 1 replicas", "3 × 4"
_OPERATOR = r"[+×*/^=−]"
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ"
_FORMULA_BEFORE = re.compile(rf"[\w)]\s?{_OPERATOR}\s?$")
_FORMULA_AFTER = re.compile(rf"\s?{_OPERATOR}\s?[\w(]|[{_RAISED}]")
_SHARE = re.compile(r"\b(?:per ?cent(?:age)?|share|fraction|proportion)s?\b", re.I)
_PERCENT = re.compile(r"\s?(?P<unit>[%‰]|per ?cent\b)", re.I)
# The number directly before "of 81 series": the share and the whole may both be meant
_PART_OF = re.compile(
    r"(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten))\s+(?:out\s+)?of\s+(?:[a-z]+\s+){0,2}$", re.I
)
# What a number counts: "254 Guix packages"
_COUNTED = re.compile(r"(?:[\s-][^\W\d_]+){0,2}")
_WORD = re.compile(r"[^\W\d_]+")
_ACRONYM = re.compile(r"\b[A-Z][A-Za-z-]*[A-Z]s?\b")
# References that look like places: "in Table 3", "in Section 2"
_PARTS = re.compile(r"(?:the\s+)?(?:table|fig|sec|eq|chapter|appendix|algorithm|step|phase|part|page)", re.I)


def has_type(question: Question, text: str) -> bool:
    """Whether a text has a value of the type that a question asks for; True if the question asks for none."""
    kind = question.type.kind
    if kind == "number":
        return bool(_quantities(text, question))
    if kind == "date":
        return bool(_DATE.search(text))
    if kind == "person":
        return any(_is_new(person[0], question) for person in _PERSON.finditer(text)) or "et al" in text
    if kind == "place":
        places = (match["place"] for match in _PLACE.finditer(text))
        return any(_is_new(place, question) and not _PARTS.match(place) for place in places)
    return True


def meets_conditions(question: Question, tokens: Set[str], covered: float) -> bool:
    """Whether a sentence may give the value that a question asks for: same subject, same conditions.

    tokens: of the sentence and the text above it. covered: the share of the question in these, 0 to 1. They must have
    the name of the measure, and all numbers of the question, which are conditions.
    """
    measure = () if _SHARE.search(question.measure) else tokenize(question.measure)  # "12 %" is a percentage
    return covered >= LEAST_COVERED and {*measure, *question.numbers} <= tokens


def short_answer(question: Question, text: str) -> Span | None:
    """The span of the short answer in a sentence; None if there is none or more than one candidate.

    A number includes its qualifier: "less than 1 ms". People and places give none: capitalised words are too often a
    course, a product, a title.
    """
    kind = question.type.kind
    spans: list[Span] = []
    if kind == "number":
        spans = _answering_numbers(text, question)
    elif kind == "date":
        without = _CITED.sub(lambda cited: " " * len(cited[0]), text)
        spans = [match.span() for match in _DATE.finditer(without) if text[slice(*match.span())] not in question.text]
    elif kind == "definition":
        spans = list(_long_forms(text, question))
    return spans[0] if len(spans) == 1 else None


def _is_new(text: str, question: Question) -> bool:
    """Whether a text has no word of the question."""
    return question.terms.isdisjoint(tokenize(text))


def _quantities(text: str, question: Question) -> list[Quantity]:
    """The numbers of a text that count or measure something and are not in the question."""
    in_question = {number.written for number in quantities(question.text, units=False)}
    years = re.search(r"\byears?\b", question.text, re.I)
    return [
        number
        for number in quantities(text, units=False)
        if not number.is_reference
        and number.written not in in_question
        and (years or not _YEAR.fullmatch(number.written))
        if not re.search(rf"{re.escape(number.written)}\s?%\s+(?:CI\b|credible|confidence)", text)
    ]


def _answering_numbers(text: str, question: Question) -> list[Span]:
    """The span of the one number that may answer; for "how many" it must count a word of the question."""
    numbers = _quantities(text, question)
    counts = bool(re.search(r"\bhow many\b", question.text, re.I))
    if counts:
        numbers = [number for number in numbers if number.counted & (question.terms - STOP_WORDS)]
    else:
        numbers = [number for number in numbers if not number.is_spelled]
        if _SHARE.search(question.text):
            shares = [number for number in numbers if number.unit == "%"]
            numbers = shares or [number for number in numbers if number.value < 1]
    if len({number.written for number in numbers}) != 1:
        return []
    start, end = numbers[0].span
    if any(form.search(text, 0, start) for form in (_FORMULA_BEFORE, _PART_OF)) or _FORMULA_AFTER.match(text, end):
        return []
    qualified = _QUALIFIER.search(text, 0, start)
    last = (_counted_end if counts else _unit_end)(text, end, question)
    return [(qualified.start() if qualified else start, last)]


def _unit_end(text: str, end: int, question: Question) -> int:
    """The end of the unit, or of the noun, after a number that ends there."""
    unit = (_PERCENT if _SHARE.search(question.text) else _UNIT).match(text, end)
    return unit.end() if unit and unit["unit"].casefold() not in STOP_WORDS else end


def _counted_end(text: str, end: int, question: Question) -> int:
    """The end of what a number counts, whose last word is of the question: "254 Guix packages"."""
    counted = _COUNTED.match(text, end)
    words = _WORD.finditer(text, end, counted.end() if counted else end)
    ends = [word.end() for word in words if not question.terms.isdisjoint(tokenize(word[0]))]
    return ends[-1] if ends else _unit_end(text, end, question)


def _long_forms(text: str, question: Question) -> Iterator[Span]:
    """The words of the question's acronyms, next to these: "conflict-free replicated data types (CRDTs)"."""
    for name in _ACRONYM.findall(question.text):
        letters = name.rstrip("s").replace("-", "")
        words = r"\b[\s-]+(?:(?:of|and|the|for|in)\s+)?".join(rf"{re.escape(letter)}[\w’'-]+?" for letter in letters)
        acronym = rf"\(?{re.escape(name.rstrip('s'))}s?\b"
        for match in re.finditer(
            rf"\b(?P<one>{words}\b)\s*\({acronym}|\b{acronym}\s*[(,:]\s*(?P<two>{words}\b)", text, re.I
        ):
            yield match.span("one" if match["one"] else "two")
