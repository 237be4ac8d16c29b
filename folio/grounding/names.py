"""Names, identifiers and quoted words of a text, and whether another text has them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from folio.text import STOP_WORDS

_ADDRESS = re.compile(r"(?:https?://|www\.|doi:\s?|arxiv:\s?)[^\s<>\"”»]+|\b10\.\d{4,9}/[^\s<>\"”»]+", re.I)
_WORD = re.compile(r"[^\W_](?:[\w'’]*\w)?(?:[-._/][^\W_]\w*)*")
# A number with letters behind it that is no identifier: 5km, 10-fold, 1990s, 3D, 20th
_MEASURE = re.compile(r"\d[\d.,]*(?:[-]?[^\W\d_]{1,12}[23]?)?", re.I)
_PREFIXED = re.compile(r"(?:mid|pre|post|sub|top|early|late|over|under|non|year|day|week|step|level|part)-\d+", re.I)
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_STARTS = re.compile(r"(?:^|[.!?:;•]\s|[“\"«‘(\[]|\n)[\s\W]*$")
_NOT = re.compile(r"(?<=\w)n['’]t\b")
_LEAD = re.compile(r"^\W*(?:[\w'’/()-]+\s+){0,5}[\w'’/()-]+:(?=\s)")  # "Tax benefits: ..."
_ORDINALS = dict(zip("123456789", "first second third fourth fifth sixth seventh eighth ninth".split(), strict=True))
_PIECE = re.compile(r"[^\W\d_]+|\d+")
_QUOTED = re.compile(r"“([^“”]+)”|„([^„“]+)“|«([^«»]+)»|\"([^\"]+)\"")
# Words that are capitalised and name nothing themselves.
_NO_NAMES = frozenset(
    "table tables tab figure figures fig figs section sections sec equation equations eq eqs chapter appendix theorem"
    " lemma algorithm listing definition ref refs page step steps phase stage level part no yes i however therefore"
    " moreover thus hence mr mrs ms dr prof january february march april may june july august september october"
    " november december monday tuesday wednesday thursday friday saturday sunday".split()
)


def key(text: str) -> str:
    """The pieces of a text's words in lower case, each between spaces: "ML-KEM-768" is " ml kem 768 "."""
    return f" {' '.join(_PIECE.findall(_NOT.sub(' not', text.casefold())))} "


@lru_cache(maxsize=4096)
def identifiers(text: str) -> frozenset[str]:
    """Words that mix letters with digits, dots, underscores or inner capitals, addresses too."""
    found = {match.group().rstrip(".,;:)]}'/") for match in _ADDRESS.finditer(text)}
    for match in _WORD.finditer(_ADDRESS.sub(" ", text)):
        if is_identifier(match.group()):
            found.add(match.group())
    return frozenset(found)


def is_identifier(word: str) -> bool:
    if not any(char.isalpha() for char in word):
        return word.count(".") > 1
    if not any(char.isdigit() for char in word):
        return bool("_" in word or _CAMEL.search(word) or re.search(r"[^\W\d_]{2}\.[^\W\d_]{2}", word))
    return not (_MEASURE.fullmatch(word) or _PREFIXED.fullmatch(word))


@lru_cache(maxsize=4096)
def names(text: str) -> frozenset[str]:
    """Words capitalised within a sentence, and acronyms anywhere. None of a text that capitalises most words."""
    words = [(match.group(), match.start()) for match in _WORD.finditer(_ADDRESS.sub(" ", text))]
    words = [(word, start) for word, start in words if not word[0].isdigit() and not is_identifier(word)]
    lead = match.end() if (match := _LEAD.match(text)) else 0
    inner = [(w, start) for w, start in words if start >= lead and not _STARTS.search(text, max(0, start - 4), start)]
    capitals = sum(word[0].isupper() for word, _ in inner if not word.isupper())
    mostly = capitals > 3 and capitals > 0.6 * len(inner)
    inside = {start for _, start in inner}
    found = set()
    for word, start in words:
        for place, part in enumerate(re.split(r"[-/]", re.sub(r"['’]s?$", "", word))):
            bare = part[:-1] if part.endswith("s") and part[:-1].isupper() else part
            if bare.isupper() and len(bare) > 1:
                found.add(bare)
            elif part[:1].isupper() and len(part) > 1 and not mostly and (start in inside or place):
                found.update({part} if part.lower() not in STOP_WORDS | _NO_NAMES else ())
    return frozenset(found)


def quoted(text: str) -> Iterator[str]:
    """What stands in quotation marks, in two words or more."""
    for match in _QUOTED.finditer(text):
        for part in re.split(r"…|\.\.\.|\[[^\]]*\]", match[match.lastindex or 0]):
            if len(part.split()) > 1:
                yield part.strip(" .,;:!?")


def has_identifier(identifier: str, words: str) -> bool:
    """Whether an identifier, or each of its pieces, is among the words, as `key` writes them.

    Its number may be missing where it goes without saying: COVID for COVID-19, unless another number follows there.
    """
    pieces = key(re.sub(r"(?<=[\dA-Z])s$", "", identifier)).split()
    compact = "".join(pieces)
    if all(f" {piece} " in words or f" {piece}s " in words for piece in pieces):
        return True
    if len(pieces) == 2 and len(compact) == 2 and (short := re.sub(r"(\d)(\w)", r"\2\1", compact))[1] in _ORDINALS:
        return bool(re.search(rf" (?:{_ORDINALS[short[1]]}|{short[1]}) {short[0]}| {short[0]}\w* {short[1]} ", words))
    letters = " ".join(piece for piece in pieces if piece.isalpha())
    if len(letters) > 4 and re.search(rf" {letters} (?!\d)", words) and not re.search(rf" {letters} \d", words):
        return True
    return bool(re.search(" " + " ?".join(map(re.escape, compact)) + "s? ", words))


def has_name(name: str, words: str) -> bool:
    """Whether a name, a form of it, or what an acronym stands for is among the words, as `key` writes them."""
    plain = "".join(key(name).split())
    if f" {plain} " in words or f" {plain}s " in words or (plain.endswith("s") and f" {plain[:-1]} " in words):
        return True
    if name.isupper():
        return _is_spelled_out(plain, words) or (len(plain) > 3 and has_identifier(name, words))
    return f" {plain[: max(4, len(plain) - 3)]}" in words


@lru_cache(maxsize=512)
def _initials(words: str) -> tuple[str, str]:
    every = words.split()
    return "".join(word[0] for word in every), "".join(word[0] for word in every if word not in STOP_WORDS)


def _is_spelled_out(acronym: str, words: str) -> bool:
    """Whether consecutive words begin with an acronym's letters: long short-term memory for LSTM."""
    every, telling = _initials(words)
    return len(acronym) > 1 and (acronym in telling or (len(acronym) > 2 and acronym in every))
