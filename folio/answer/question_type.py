"""Recognises questions that ask for a number, by their words. Pure.

This is the numeric class of Li and Roth (2002, "Learning Question Classifiers", https://aclanthology.org/C02-1150/),
for English. Other classes are not distinguished.
"""

from __future__ import annotations

import re

from folio.grounding.quantities import quantities
from folio.text import tokenize

# Question words that no answer repeats, as search tokens.
ASKING = frozenset(tokenize("many much"))

_SIZES = "many|much|large|big|small|long|short|wide|high|low|tall|deep|thick|heavy|fast|slow|far|old|hot|cold"
# Nouns whose value is always a number. Nouns that often have none, such as "level" or "error", are left out.
_MEASURES = """
    accuracy age altitude amount amplitude angle area average bandwidth budget capacity coefficient concentration
    correlation cost count depth deviation diameter distance dosage dose duration f1 fee fraction frequency half-life
    height incidence latency length magnitude mass maximum median minimum mortality number p-value percent percentage
    perplexity population precision pressure prevalence price probability proportion quantile radius rate ratio
    recall salary score share size specificity speed speedup sum temperature thickness threshold throughput total
    value variance velocity voltage volume wavelength weight width year
""".split()
# The question asks for the measure only if it ends there or continues with one of these: a "learning rate schedule" is
# not a rate.
_AFTER_MEASURE = """
    a an and are at be between by can could did do does for from had has have in is it must of on or per should that the
    to under was were when will with would
""".split()


def _plural(noun: str) -> str:
    """A pattern for a noun and its plural."""
    return f"{noun[:-1]}(?:y|ies)" if noun.endswith("y") else f"{noun}s?"


_NUMBER = re.compile(
    rf"how (?:{_SIZES})\b"
    r"|(?:what|which)(?: (?:is|was|are|were))?(?: (?:the|a|an|its|their))?(?: [\w-]+){0,3}?"
    rf" (?:{'|'.join(_plural(measure) for measure in _MEASURES)})(?=[?.,;]|$| (?:{'|'.join(_AFTER_MEASURE)})\b)",
    re.I,
)
_ASKS = re.compile(r"\b(?:how|what|when|where|which|who|whom|whose|why)\b", re.I)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


def asks_for_number(question: str) -> bool:
    """Whether a question asks for a number, and for nothing else.

    >>> asks_for_number("What top-1 accuracy does it reach?"), asks_for_number("What learning rate schedule is used?")
    (True, False)
    """
    plain = " ".join(question.split())
    asks = list(_ASKS.finditer(plain))
    return len(asks) == 1 and _NUMBER.match(plain, asks[0].start()) is not None


def gives_number(text: str, question: str) -> bool:
    """Whether a text counts or measures something. A year counts only if the question mentions years."""
    years = re.search(r"\byears?\b", question, re.I)
    numbers = (number.written for number in quantities(text, units=False) if not number.is_reference)
    return any(bool(years) or not _YEAR.fullmatch(number) for number in numbers)
