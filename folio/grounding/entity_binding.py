"""Whether a sentence's numbers and names belong, in its quotes, to what the sentence says them of. Pure.

Every fact of "The ice is 40 metres thick" can stand in the evidence, and yet be another's: the ice is 800 metres thick,
and the glacier retreats by 40.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from folio.grounding.entities import facts, measured, values_of
from folio.grounding.overlap import held_of, share, telling, tokens_of
from folio.text import tokenize

# A quote with this share of a sentence's words, its facts left out, speaks of the same thing.
SAME_THING = 0.6
# A name's words, one behind the other
_CAPITALS = re.compile(r"(?:[^\W\d_a-z][\w.'’-]*\s+)*[^\W\d_a-z][\w.'’-]*")


def unbound(sentence: str, quotes: Sequence[str], known: str, *, several: bool) -> str:
    """A number or name of the sentence that its quotes say of something else; "" where there is none.

    In more than one quote, a fact stands by itself, without a word or another fact of the sentence: "The Gorner glacier
    retreats by 50 metres" does not follow from "The Aletsch glacier retreats by 50 metres" and a row of a table in
    which Gorner stands. Or the name stands in none of the quotes, and another name does. Within one piece of evidence a
    name may stand alone where no other one is told of: "Argo is a network. It consists of 4,000 floats." known: the
    title and file name of the quotes' papers, whose names need not stand there. several: pieces of evidence.
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
    """Whether a quote says the same of the same thing with another number, of the same unit."""
    said, there = measured(sentence), measured(quote)
    facts_of = {token for quantity in said for token in tokenize(quantity.value)}
    words = telling(sentence) - facts_of
    if not said or share(words, tokens_of(quote)) < SAME_THING:
        return False
    units = {quantity.unit for quantity in there - said}
    return any(quantity.unit in units for quantity in said - there)


@lru_cache(maxsize=1024)
def _names(sentence: str) -> dict[str, frozenset[str]]:
    """The names of a sentence, each with its tokens; words with capitals that stand together are one name."""
    told = facts(sentence)
    left = told.names | told.identifiers
    found: dict[str, frozenset[str]] = {}
    for run in _CAPITALS.findall(sentence):
        own = {name for name in left if name in run}
        if own:
            left -= own
            found[run] = tokens_of(run)
    return found | {name: tokens_of(name) for name in sorted(left)}


def _opens_with_a_name(sentence: str, quotes: Sequence[str]) -> str:
    """The first word of a sentence, where a quote has it with its capital in the middle of a sentence."""
    first = re.match(r"[^\W\d_a-z][^\W\d_]+", sentence)
    if not first or not any(re.search(rf"[a-z,;]\s+{first.group()}\b", quote) for quote in quotes):
        return ""
    return first.group()


def _names_others(quotes: Sequence[str], known: frozenset[str]) -> bool:
    return any(not tokens & known for quote in quotes for tokens in _names(quote).values())
