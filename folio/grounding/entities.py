"""Extracts numbers, units, names and identifiers from a text, and checks that another text has them. Pure.

A model's sentence is rejected for a number, unit or name that its evidence does not have. Where the check cannot be
sure, the sentence passes: a wrong number must not pass, but an honest paraphrase must.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from folio.grounding.quantities_old import (
    REFERRING,
    SOFT_UNITS,
    UNIT_WORD,
    UNITS,
    Quantity,
    canonical,
    key,
    numbers,
    plain_text,
    unit_of,
    unit_of_power,
)
from folio.text import STOP_WORDS


@dataclass(frozen=True, slots=True)
class Entities:
    """The numbers, names and identifiers of a text.

    quoted: texts in quotation marks, of three words or more.
    readings: quantities, and other possible readings where formatting was lost: "10-3" may be a range or 0.001.
    labelled: numbers after a name, such as "GPT 4", each with the name and the number as `key` writes them.
    """

    quantities: frozenset[Quantity]
    identifiers: frozenset[str]
    names: frozenset[str]
    quoted: tuple[str, ...]
    readings: frozenset[Quantity]
    labelled: frozenset[tuple[Quantity, str]]


_ADDRESS = re.compile(r"(?:https?://|www\.|doi:\s?|arxiv:\s?)[^\s<>\"”»]+|\b10\.\d{4,9}/[^\s<>\"”»]+", re.I)
_WORD = re.compile(r"[^\W_]\w*(?:[-._]\w+)*")
_SCIENTIFIC = re.compile(r"\d+(?:\.\d+)?[eE][-+]?\d+")
_NUMBER_PART = re.compile(r"\d[\d.]*([A-Za-zµμ]*)")
_ORDINAL = re.compile(r"st|nd|rd|th|s|[kKMBTxD]", re.I)
_BEFORE_NUMBERS = frozenset("mid pre post sub top early late over under non year".split())
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_STARTS = re.compile(r"(?:^|[.!?:;•]\s|[“\"«‘(\[])[\s\W]*$")
# Words that are capitalised because they refer to something, and name nothing themselves.
_NO_NAMES = frozenset(
    "table tables tab figure figures fig figs section sections sec sect equation equations eq eqs chapter appendix"
    " theorem lemma algorithm listing definition ref refs page no however therefore moreover thus hence mr mrs"
    " dr".split()
)
_GERMAN = frozenset(
    "der die das und ist sind ein eine einen mit für von den dem nicht wird werden auf zu im zur zum".split()
)
_QUOTED = re.compile(r"“([^“”]+)”|„([^„“]+)“|«([^«»]+)»|»([^«»]+)«|\"([^\"]+)\"")


@lru_cache(maxsize=4096)
def entities(text: str) -> Entities:
    """The numbers, names and identifiers of a text."""
    identifiers: dict[str, None] = {}

    def take(match: re.Match[str]) -> str:
        word = match.group()
        if match.re is _ADDRESS:
            identifiers[word.rstrip(".,;:)]}'")] = None
        elif _is_identifier(word, match.string, match.start()):
            identifiers[_bare(word)] = None
        else:
            return word
        return "\x00" * len(word)

    plain = plain_text(_ADDRESS.sub(take, text))
    rest = _WORD.sub(take, plain)
    quantities, others, labelled = numbers(rest, plain)
    quoted = [match[match.lastindex or 0] for match in _QUOTED.finditer(text)]
    parts = (part.strip() for words in quoted for part in re.split(r"…|\.\.\.|\[[^\]]*\]", words))
    return Entities(
        frozenset(quantities),
        frozenset(identifiers),
        frozenset(_names(rest)),
        tuple(part for part in parts if len(key(part).split()) >= 3),
        frozenset(others.union(quantities)),
        frozenset(labelled),
    )


@lru_cache(maxsize=4096)
def values_of(text: str) -> frozenset[str]:
    """The numbers in a text, without their units."""
    return frozenset(quantity.value for quantity in entities(text).quantities)


def measured(text: str) -> frozenset[Quantity]:
    """The numbers in a text that count or measure something; not references such as "Table 3"."""
    return frozenset(quantity for quantity in entities(text).quantities if quantity.unit not in REFERRING)


def _is_identifier(word: str, text: str, start: int) -> bool:
    """Whether a word mixes letters with digits, dots, underscores or inner capitals, and is no number with a unit."""
    if word in UNITS:
        return False
    if not any(char.isalpha() for char in word):
        return word.count(".") > 1
    if not any(char.isdigit() for char in word):
        dotted = re.search(r"[^\W\d_]{2}\.[^\W\d_]{2}", word)
        return bool(dotted or "_" in word or _CAMEL.search(word))
    if _SCIENTIFIC.fullmatch(word):
        return False
    first, *more = word.split("-")
    if word[:-1] in UNITS and word[-1] in "23" and re.search(r"\d\s?$", text[max(0, start - 3) : start]):
        return False  # the km2 of 5 km2
    if first.isalpha():
        return not (first.lower() in _BEFORE_NUMBERS and more and all(_is_number(part) for part in more))
    return not (_is_number(first) and all(_is_number(part) or _is_plain(part) for part in more))


def _is_number(part: str) -> bool:
    match = _NUMBER_PART.fullmatch(part)
    return bool(match and (not match[1] or _ORDINAL.fullmatch(match[1]) or unit_of(match[1])))


def _bare(word: str) -> str:
    """An identifier without the plain words hyphenated to it: "GPT-4-based", "post-COVID-19"."""
    parts = re.sub(r"(?<=[\dA-Z])s$", "", word).split("-")
    while len(parts) > 1 and _is_plain(parts[-1]):
        parts.pop()
    while len(parts) > 1 and len(parts[0]) > 1 and _is_plain(parts[0]) and re.search(r"[^\W\d_]", "".join(parts[1:])):
        parts.pop(0)
    return "-".join(parts)


def _is_plain(part: str) -> bool:
    return part.isalpha() and part.islower()


def _names(text: str) -> Iterator[str]:
    """Words that are capitalised although they do not begin a sentence, and acronyms anywhere."""
    words = [(match.group(), match.start()) for match in _WORD.finditer(text) if not match.group()[0].isdigit()]
    inner = [word for word, start in words if not _STARTS.search(text, max(0, start - 4), start)]
    capitals = sum(word[0].isupper() and not word.isupper() for word in inner)
    german = sum(word.lower() in _GERMAN for word, _ in words)
    most = 0.6 if text.rstrip().endswith((".", "!", "?")) else 0.4
    if german > 1 or (german and capitals > 0.4 * len(inner)) or (capitals > most * len(inner) and capitals > 3):
        return  # German capitalises nouns, and titles capitalise nearly every word
    for word, start in words:
        begins = _STARTS.search(text, max(0, start - 4), start)
        for place, part in enumerate(word.split("-")):
            bare = re.sub(r"(?<=[^\W\d_])s$", "", part)
            if part in UNITS or text[start - 1 : start] == "°":
                continue
            if bare.isupper() and len(bare) > 1:
                yield bare
            elif part[:1].isupper() and not (begins and place == 0) and part.lower() not in STOP_WORDS | _NO_NAMES:
                yield part


# Endings that a name may have in the passages but not in the sentence, or the other way round.
_ENDINGS = ("s", "es", "n", "an", "ian", "ean", "ese", "y", "al", "ic", "ist", "ism")
_RUN = re.compile(r"[^\W\d_a-z]\w*(?:[- ](?:(?:of|and|the|for|in) )?[^\W\d_a-z]\w*)+")
_FALLS = re.compile(r"\b(?:decreas|drop|f[ae]ll|reduc|lower|declin|los[st]|below|negativ|less|down|shr[aiu]nk)", re.I)


def missing(sentence: str, passages: str, known: str = "") -> list[str]:
    """The numbers, units, names and quoted words of a sentence that the passages lack, each as a short phrase.

    known: titles and file names of the papers. Names and quoted words may come from there, but numbers may not.
    """
    if _verbatim(sentence, passages):
        return []
    found, there, words = entities(sentence), _by_value(passages), key(passages)
    everywhere = words + key(known)
    lacking = []
    for quantity in sorted(found.quantities, key=lambda quantity: (quantity.value, quantity.unit)):
        names = {label for number, label in found.labelled if number == quantity}
        if _holds(quantity, there, passages) or any(_has_identifier(label, everywhere) for label in names):
            continue
        fallen = Quantity(f"-{quantity.value}", quantity.unit)
        if _FALLS.search(sentence) and not quantity.value.startswith("-") and _holds(fallen, there, passages):
            continue  # it fell by 5: -5
        rates = (other for other in found.readings if other.unit.startswith(f"{quantity.unit}/"))
        if any(other.value == quantity.value and _holds(other, there, passages) for other in rates):
            continue  # 40 m each year: 40 m/yr
        if quantity.unit not in REFERRING | {""} and there.get(quantity.value, set()) - REFERRING:
            lacking.append(f"the unit of {quantity.value} {quantity.unit}")
        else:
            lacking.append(f"the number {quantity.value}")
    lost = [name for name in found.identifiers if not _has_identifier(name, everywhere)]
    lost += [name for name in found.names if not _has_name(name, everywhere)]
    spelled_out = everywhere + key(sentence)
    lost = sorted(name for name in lost if not _is_spelled_out(name, spelled_out))
    if lost:
        runs = [run for run in _RUN.findall(sentence) if _is_short_for(run, everywhere)]
        spelled = {word for run in runs for word in key(run).split()}
        lacking += [f"the name {name}" for name in lost if not set(key(name).split()) <= spelled]
    return lacking + [f"the words “{quote}”" for quote in found.quoted if key(quote) not in everywhere]


def _verbatim(sentence: str, passages: str) -> bool:
    """Whether the passages have the whole sentence word for word, between spaces."""
    plain = " ".join(sentence.split())
    text = f" {' '.join(passages.split())} "
    return not plain or f" {plain} " in text


@lru_cache(maxsize=256)
def _by_value(text: str) -> dict[str, set[str]]:
    """The units with which each number occurs in a text."""
    units: dict[str, set[str]] = {}
    for quantity in entities(text).readings:
        units.setdefault(quantity.value, set()).add(quantity.unit)
    return units


def _holds(quantity: Quantity, there: dict[str, set[str]], passages: str) -> bool:
    units = there.get(quantity.value, set())
    if quantity.unit in units or (not quantity.unit and units - REFERRING):
        return True
    value = Decimal(quantity.value)
    if quantity.unit == "%" and "" in there.get(canonical(value.scaleb(-2)), ()) and abs(value) < 100:
        return True  # 0.91 of 1
    if not quantity.unit and "%" in there.get(canonical(value.scaleb(2)), ()) and abs(value) < 1:
        return True
    if "" not in units:
        return False
    return quantity.unit in REFERRING | SOFT_UNITS or quantity.unit in _units_in(passages)


def _has_identifier(name: str, words: str) -> bool:
    """Whether an identifier is among the words, as `key` writes them."""
    pieces = key(name)
    if pieces in words:
        return True
    *before, last = pieces.split() or [""]
    if not any(char.isdigit() for char in pieces):
        return all(f" {piece} " in words for piece in pieces.split()) or _spaced(name, words)
    if before and last[0].isdigit() and not before[-1][0].isdigit():  # ML-KEM-512, -768 and -1024
        listed = rf" {re.escape(' '.join(before))}(?: \d[\d.]*| and| or)+ {re.escape(last)} "
        return bool(re.search(listed, words))
    return False


def _has_name(name: str, words: str) -> bool:
    """Whether a name is among the words, as `key` writes them, perhaps with another ending."""
    plain = key(name).strip()
    if f" {plain} " in words:
        return True
    if name.isupper():
        return f" {plain}s " in words
    forms = [plain + ending for ending in _ENDINGS]
    forms += [form for ending in _ENDINGS if (form := plain.removesuffix(ending)) != plain and len(form) > 3]
    return any(f" {form} " in words for form in forms) or _spaced(plain, words)


def _spaced(name: str, words: str) -> bool:
    """Whether a name occurs with spaces in it: OpenAI as Open AI."""
    letters = "".join(key(name).split())
    return len(letters) > 5 and bool(re.search(" " + " ?".join(map(re.escape, letters)) + " ", words))


def _is_spelled_out(name: str, words: str) -> bool:
    """Whether consecutive words begin with an acronym's letters: long short-term memory for LSTM."""
    if not name.isalpha() or sum(char.isupper() for char in name) < 2:
        return False
    acronym = name.casefold()
    every = [word for word in words.split() if word.isalpha()]
    telling = [word for word in every if word not in STOP_WORDS]
    return any(acronym in "".join(word[0] for word in among) for among in (every if len(acronym) > 2 else [], telling))


def _is_short_for(run: str, words: str) -> bool:
    """Whether the words contain the acronym, or the single word, that these capitalised words make."""
    parts = [word for word in re.split("[- ]", run) if word and word not in ("The", "A", "An")]
    initials = "".join(word[0] for word in parts if word[0].isupper()).casefold()
    joined = "".join(parts).casefold()
    forms = (initials, f"{initials}s", joined) if len(initials) > 2 else (joined,)
    return len(parts) > 1 and any(f" {form} " in words for form in forms)


@lru_cache(maxsize=256)
def _units_in(text: str) -> frozenset[str]:
    """The units that a text names anywhere, such as in a table header: "Length (km)"."""
    words = {match.group() for match in UNIT_WORD.finditer(plain_text(text))} - {"us"}
    found = {unit_of_power(word) for word in words}
    for word in words:
        over, _, under = word.partition("/")
        if unit_of_power(over) and unit_of(under):
            found.add(f"{unit_of_power(over)}/{unit_of(under)}")
        found.add(unit_of(under))
    return frozenset(found | {quantity.unit for quantity in entities(text).readings})
