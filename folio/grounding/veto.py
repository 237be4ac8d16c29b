"""Finds parts of a statement that its source does not support: numbers, names, quoted words, "not", cells. Pure."""

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
    """What is wrong with a statement: the name of the rule, and the reason in words that a model can act on."""

    rule: str
    reason: str


def faults(statement: str, source: Attribution, evidence_key: str) -> Iterator[Fault]:
    """The faults of a statement. evidence_key: all evidence and its titles, in the form of names.key.

    Numbers must be in the cited sentences. Names, identifiers and quoted words may be anywhere in the evidence, because
    a passage may name its subject only once.
    """
    source_numbers = quantities(f"{source.text}\n{source.titles}")
    for number in quantities(statement):
        # "two parts" is the writer's own count.
        if not (number.is_among(source_numbers) or (number.is_spelled and not number.unit)):
            yield Fault("number", f"the number {number.written} cannot be found in it")
        elif _counts_others(number, source_numbers):
            yield Fault("count", f"it gives {number.written} for something else")
    if moved := misplaced(statement, source):
        yield Fault("cell", f"its table gives {moved.written} in another row or column")
    for identifier in sorted(i for i in identifiers(statement) if not has_identifier(i, evidence_key)):
        yield Fault("identifier", f"the name {identifier} cannot be found in it")
    for name in sorted(name for name in names(statement) if not has_name(name, evidence_key)):
        yield Fault("name", f"the name {name} cannot be found in it")
    for words in (words for words in quoted(statement) if key(words) not in evidence_key):
        yield Fault("quoted words", f"the words “{words}” cannot be found in it")
    sentences = [sentence.text for sentence in source.sentences]
    if is_denied(statement, sentences):
        yield Fault("negation", "it says the opposite")
    elif is_opposed(statement, sentences, tokens_of(evidence_key)):
        yield Fault("opposite", "it says the opposite")


def _counts_others(number: Quantity, source_numbers: Sequence[Quantity]) -> bool:
    """Whether a number counts something for which its source has another number: 12 notebooks for 17 notebooks."""
    same = [other for other in source_numbers if number.is_among([other])]
    if not (number.counted and same) or any(not other.counted or other.counted & number.counted for other in same):
        return False
    others = [other.counted for other in source_numbers if other.counted and other not in same]
    return any(counted <= number.counted or number.counted <= counted for counted in others)
