"""The value of a cell in its quote: a number with its unit, yes or no, one of a list. Pure.

A value is given only where the quote says it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from folio.answer.about import OwnSentence
from folio.answer.values import short_answer
from folio.grounding.conflicts import are_apart
from folio.grounding.negation import DENIALS, normalised
from folio.grounding.quantities import Quantity, converted, quantities
from folio.grounding.sentences import content_words, matching_words, tokens_of
from folio.papers.sections import Kind
from folio.question.question import Question
from folio.table.cell import Column, Finding
from folio.table.headings import SAMPLE, SAMPLE_SIZE, known_heading
from folio.table.paper_words import PaperWords
from folio.text import STOP_WORDS, find_words, one_line, tokenize

# Share of a question's content words that a sentence must have to say yes or no to it
LEAST_SAID = 0.75
# Words of a yes-or-no question that a sentence need not have
_SAYS_OF_ITSELF: tuple[Kind, ...] = ("abstract", "methods", "conclusion")  # sections in which a paper does
_OWN = re.compile(r"\b(?:we|our|ours|this|the present|the (?:trial|study|paper|code|software|source))\b", re.I)
_ASKS = frozenset(
    tokenize("is are was were do does did has have had can could will would there any this these paper study authors")
)


def value_in(column: Column, question: Question, quote: str) -> tuple[str, float | None] | None:
    """The value of a column in a quote, and of a number the number in the column's unit; None if it does not say.

    A text column has no value: its quote is shown.
    """
    if column.kind == "number":
        return _number(column, question, quote)
    if column.kind == "yes_no" and (heading := known_heading(column)) and heading.cues:
        return ("no" if any(_denied(normalised(quote))) else "yes"), None
    if column.kind == "yes_no":
        said = yes_or_no(question.text, quote)
        return (said, None) if said else None
    if column.kind == "choice":
        chosen = [choice for choice in column.choices if find_words(quote, choice)]
        chosen = [one for one in chosen if not any(one != other and find_words(other, one) for other in chosen)]
        return (chosen[0], None) if len(chosen) == 1 else None
    return "", None


def yes_or_no(question: str, sentence: str) -> str:
    """ "yes" if a sentence states what a question asks, "no" if it denies that, "" if it does neither."""
    asked = content_words(question) - _ASKS
    said = matching_words(asked, tokens_of(sentence))
    if not asked or len(said) < LEAST_SAID * len(asked):
        return ""
    denied = [near for near in _denied(normalised(sentence)) if matching_words(asked, near)]
    return "no" if denied else "yes"


def said_of(
    column: Column, question: Question, words: PaperWords, sentences: Sequence[OwnSentence]
) -> Iterator[Finding]:
    """The first sentence of a paper that says yes or no of its own work, or names one of the choices; and the first
    that says another thing in such a place."""
    order: dict[Kind, int] = {kind: place for place, kind in enumerate(_SAYS_OF_ITSELF)}
    among = sorted(
        (each for each in sentences if each.section in order or _OWN.search(each.quote.quote)),
        key=lambda each: order.get(each.section, len(order)),
    )
    title = frozenset(tokenize(words.paper.title)) - STOP_WORDS
    first = ""
    for each in among:
        text = each.quote.quote
        if not (_OWN.search(text) or title & tokens_of(text)):
            continue
        said = value_in(column, question, text)
        if said and said[0] != first:
            yield Finding(each.quote, *said)
            if first:
                return
            first = said[0]


def disagree(finding: Finding, other: Finding) -> bool:
    """Whether two findings give different numbers of the same thing."""
    if finding.number is None or other.number is None or finding.number == other.number:
        return False
    number, second = (
        next((one for one in quantities(each.quote.quote) if one.written in each.value), None)
        for each in (finding, other)
    )
    return bool(number and second and are_apart(number, second))


def _denied(text: str) -> Iterator[frozenset[str]]:
    """The words of each clause with a denial."""
    for clause in re.split(r"[,;:.!?()]+(?=\s|$)|\b(?:but|whereas|while|although|though|however)\b", text):
        if DENIALS.intersection(re.findall(r"[^\W_]+", clause)):
            yield frozenset(tokenize(clause))


def _number(column: Column, question: Question, quote: str) -> tuple[str, float | None] | None:
    """The one number of a quote that the column may ask for, as printed, and in the column's unit."""
    if not column.unit:
        sample = SAMPLE.search(quote) if known_heading(column) is SAMPLE_SIZE else None
        span = sample.span(sample.lastgroup or 0) if sample else short_answer(question, quote)
        found = [number for number in quantities(quote) if span and span[0] <= number.span[0] < span[1]]
        return (one_line(quote[slice(*span)]), found[0].number * found[0].scale) if span and found else None
    among = ((number, converted(number, column.unit)) for number in quantities(quote))
    measured = [(number, value) for number, value in among if value is not None]
    if not measured or len({value for _, value in measured}) > 1:
        return None
    number, value = measured[0]
    return one_line(_printed(quote, number)), value


def _printed(quote: str, number: Quantity) -> str:
    """A number with its unit as the quote has it."""
    start, end = number.span
    unit = number.with_unit.removeprefix(number.written)
    return quote[start:end] + (unit if quote[end:].replace("\n", " ").startswith(unit) else "")




def number_in(column: Column, text: str) -> float | None:
    """The one number of a text that a person wrote into a cell, in the column's unit; None for none or several.

    A number without a unit is one in the unit of the column.
    """
    found = quantities(text)
    if len(found) != 1 or not math.isfinite(found[0].number * found[0].scale):
        return None
    (number,) = found
    if column.unit and number.unit:
        return converted(number, column.unit)
    return number.number * number.scale
