"""Finds what a statement says and its source does not: numbers, units, names, quoted words, "not", cells. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from folio.grounding.attribution import Attribution
from folio.grounding.names import has_identifier, has_name, identifiers, key, names, quoted
from folio.grounding.negation import is_denied, is_opposed
from folio.grounding.quantities import Quantity, quantities
from folio.grounding.table_cells import misplaced
from folio.grounding.words import tokens_of


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a statement: the rule's name, and the reason in words that the model can act on."""

    rule: str
    reason: str


def faults(statement: str, source: Attribution, known: str) -> Iterator[Fault]:
    """What the statement has and its source lacks. known: the key of all evidence and its titles (names.key).

    Numbers must stand in the sentences that are cited. Names, identifiers and quoted words may stand anywhere in the
    evidence: a passage names its subject once.
    """
    there = quantities(f"{source.text}\n{source.titles}")
    for number in quantities(statement):
        if not (number.is_among(there) or (number.is_spelled and not number.unit)):  # "two parts": a writer's own count
            yield Fault("number", f"the number {number.written} cannot be found in it")
        elif _counts_others(number, there):
            yield Fault("count", f"it gives {number.written} for something else")
    if moved := misplaced(statement, source):
        yield Fault("cell", f"its table gives {moved.written} in another row or column")
    for identifier in sorted(i for i in identifiers(statement) if not has_identifier(i, known)):
        yield Fault("identifier", f"the name {identifier} cannot be found in it")
    for name in sorted(name for name in names(statement) if not has_name(name, known)):
        yield Fault("name", f"the name {name} cannot be found in it")
    for words in (words for words in quoted(statement) if key(words) not in known):
        yield Fault("quoted words", f"the words “{words}” cannot be found in it")
    sentences = [sentence.text for sentence in source.sentences]
    if is_denied(statement, sentences):
        yield Fault("negation", "it says the opposite")
    elif is_opposed(statement, sentences, tokens_of(known)):
        yield Fault("opposite", "it says the opposite")


def _counts_others(number: Quantity, there: Sequence[Quantity]) -> bool:
    """Whether a number counts something that its source gives another number for: 12 notebooks for 17 notebooks."""
    same = [other for other in there if number.is_among([other])]
    if not (number.counted and same) or any(not other.counted or other.counted & number.counted for other in same):
        return False
    others = [other.counted for other in there if other.counted and other not in same]
    return any(counted <= number.counted or number.counted <= counted for counted in others)
