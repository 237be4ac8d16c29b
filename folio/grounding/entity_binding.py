"""Checks that the quotes use a sentence's numbers and names for the same things as the sentence does. Pure.

The evidence may have every word and number of "The ice is 40 metres thick" and still not say it: the ice is 800 metres
thick, and the glacier retreats by 40.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from folio.grounding.entities import entities, measured, values_of
from folio.grounding.overlap import held_of, share, telling, tokens_of
from folio.text import tokenize

# A quote with this share of a sentence's words, numbers left out, is about the same thing.
SAME_THING = 0.6
# Consecutive capitalised words
_CAPITALS = re.compile(r"(?:[^\W\d_a-z][\w.'’-]*\s+)*[^\W\d_a-z][\w.'’-]*")


def unbound(sentence: str, quotes: Sequence[str], known: str, *, several: bool) -> str:
    """A number or name of the sentence that the quotes use for something else; "" if there is none.

    With several quotes, that is a number or name whose quote has no other word, number or name of the sentence: "The
    Gorner glacier retreats by 50 metres" does not follow from "The Aletsch glacier retreats by 50 metres" and a table
    row that contains Gorner. It is also a name that no quote has although the quotes have other names. Within one piece
    of evidence a name may occur alone if there is no other: "Argo is a network. It consists of 4,000 floats."

    known: titles and file names of the quotes' papers, whose names the quotes need not have. several: whether the
    quotes come from more than one piece of evidence.
    """
    names = dict(_names(sentence))
    opening = _opens_with_a_name(sentence, quotes)
    if opening and not any(name.startswith(opening) for name in names):
        names[opening] = tokens_of(opening)
    titled = tokens_of(known)
    named = frozenset().union(*names.values())
    values = values_of(sentence)
    words = telling(sentence) - named - {token for value in values for token in tokenize(value)}
    there = [(tokens_of(quote), values_of(quote)) for quote in quotes]
    for value in sorted(values) if len(quotes) > 1 else ():
        holders = [(own, numbers) for own, numbers in there if value in numbers]
        more = values - {value}
        if holders and not any(held_of(words, own) or named & own or more & numbers for own, numbers in holders):
            return value
    for name, tokens in names.items():
        holders = [(own, numbers) for own, numbers in there if tokens <= own]
        others = [other for other in names.values() if other != tokens]
        if tokens <= titled:
            continue
        if not holders and _names_others(quotes, named | titled):
            return name
        loose = holders and not any(
            held_of(words, own) or values & numbers or any(other <= own for other in others) for own, numbers in holders
        )
        if len(quotes) > 1 and loose and (several or _names_others(quotes, named | titled)):
            return name
    return ""


def gives_another(sentence: str, quote: str) -> bool:
    """Whether a quote gives another number, in the same unit, for the same thing."""
    said, there = measured(sentence), measured(quote)
    numbers = {token for quantity in said for token in tokenize(quantity.value)}
    words = telling(sentence) - numbers
    if not said or share(words, tokens_of(quote)) < SAME_THING:
        return False
    units = {quantity.unit for quantity in there - said}
    return any(quantity.unit in units for quantity in said - there)


@lru_cache(maxsize=1024)
def _names(sentence: str) -> dict[str, frozenset[str]]:
    """The names in a sentence, each with its tokens; consecutive capitalised words are one name."""
    extracted = entities(sentence)
    left = extracted.names | extracted.identifiers
    found: dict[str, frozenset[str]] = {}
    for run in _CAPITALS.findall(sentence):
        own = {name for name in left if name in run}
        if own:
            left -= own
            found[run] = tokens_of(run)
    return found | {name: tokens_of(name) for name in sorted(left)}


def _opens_with_a_name(sentence: str, quotes: Sequence[str]) -> str:
    """The first word of a sentence, if a quote capitalises it in mid-sentence; else ""."""
    first = re.match(r"[^\W\d_a-z][^\W\d_]+", sentence)
    if not first or not any(re.search(rf"[a-z,;]\s+{first.group()}\b", quote) for quote in quotes):
        return ""
    return first.group()


def _names_others(quotes: Sequence[str], known: frozenset[str]) -> bool:
    return any(not tokens & known for quote in quotes for tokens in _names(quote).values())
