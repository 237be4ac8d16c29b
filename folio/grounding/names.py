"""Names, identifiers and quoted words of a text, and whether another text has them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from folio.papers.identifiers import DOI_START
from folio.text import STOP_WORDS, typed

_ADDRESS = re.compile(rf"(?:https?://|www\.|doi:\s?|arxiv:\s?|\b{DOI_START})[^\s<>\"”»]+", re.I)
_WORD = re.compile(r"[^\W_](?:[\w'’]*\w)?(?:[-._/][^\W_]\w*)*")
# Words with a digit that are not identifiers: 5km, 10-fold, 1990s, 3D, 20th, km2; mid-2019, step-5
_MEASURE = re.compile(r"\d[\d.,]*(?:-?[^\W\d_]{1,12}[23]?)?|[cdkm]?m[23]")
_PREFIXED = re.compile(r"(?:mid|pre|post|sub|top|early|late|over|under|non|year|day|week|step|level|part)-\d+", re.I)
# Identifiers without a digit: KeyGen, DNAse, x_i, numpy.linalg
_TECHNICAL = re.compile(r"_|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|[^\W\d_]{2}\.[^\W\d_]{2}")
# The text before the first word of a sentence, a quotation or brackets, where a capital need not mean a name
_BEGINS = re.compile(r"(?:^|[.!?:;•]\s|[“\"«‘(\[]|\n)[\s\W]*$")
_LABEL = re.compile(r"\W*+(?:[\w'’/()-]+\s+){0,5}[\w'’/()-]+:(?=\s)")  # "Tax Benefits: ..."
_POSSESSIVE = re.compile(r"(?<=\w)['’]s(?!\w)")
_NOT = re.compile(r"(?<=\w)n['’]t\b")
_WRITTEN_OUT = {f"q{n}": f" {nth} quarter " for n, nth in enumerate("first second third fourth".split(), 1)}
_PIECE = re.compile(r"[^\W\d_]+|\d+")
_QUOTED = re.compile(r"“([^“”]+)”|„([^„“]+)“|«([^«»]+)»|\"([^\"]+)\"")
_LEFT_OUT = re.compile(r"…|\.\.\.|\[[^\[\]]*\]")
# Capitalised words that are not names
_NO_NAMES = STOP_WORDS | frozenset(
    "table tables tab figure figures fig figs section sections sec equation equations eq eqs chapter appendix theorem"
    " lemma algorithm listing definition ref refs page step steps phase stage level part no yes however therefore"
    " moreover thus hence mr mrs ms dr prof january february march april may june july august september october"
    " november december monday tuesday wednesday thursday friday saturday sunday".split()
)


def key(text: str) -> str:
    """The pieces of a text's words in lower case, each between spaces: "ML-KEM-768" is " ml kem 768 "."""
    return f" {' '.join(_PIECE.findall(_NOT.sub(' not', typed(text).casefold())))} "


@lru_cache(maxsize=4096)
def identifiers(text: str) -> frozenset[str]:
    """Words that mix letters with digits, dots, underscores or inner capitals; also addresses."""
    text = _POSSESSIVE.sub("", typed(text))
    addresses = {match.group().rstrip(".,;:)]}'/") for match in _ADDRESS.finditer(text)}
    return frozenset(addresses | {word for word in _WORD.findall(_ADDRESS.sub(" ", text)) if _is_identifier(word)})


def _is_identifier(word: str) -> bool:
    if not any(char.isalpha() for char in word):
        return word.count(".") > 1  # a version: 1.2.3
    if any(char.isdecimal() for char in word):
        return not (_MEASURE.fullmatch(word) or _PREFIXED.fullmatch(word))
    return bool(_TECHNICAL.search(word))


@lru_cache(maxsize=4096)
def names(text: str) -> frozenset[str]:
    """Words capitalised within a sentence, and acronyms anywhere; only acronyms if most words are capitalised."""
    text = typed(text)
    label = match.end() if (match := _LABEL.match(text)) else 0
    without = _ADDRESS.sub(lambda address: " " * len(address[0]), text)  # spaces keep the offsets
    starts = [(match.group(), match.start()) for match in _WORD.finditer(without)]
    words = [
        (word, start >= label and not _BEGINS.search(text, max(0, start - 4), start))
        for word, start in starts
        if not word[0].isdigit() and not _is_identifier(word)
    ]
    inner = [word for word, is_inner in words if is_inner]
    capitals = sum(word[0].isupper() and not word.isupper() for word in inner)
    is_title = capitals > 3 and capitals > 0.6 * len(inner)
    return frozenset(name for word, is_inner in words for name in _names_in(word, is_inner, is_title))


def _names_in(word: str, is_inner: bool, is_title: bool) -> Iterator[str]:
    """The names in a word: Diffie and Hellman in Diffie-Hellman. is_inner: the word does not begin its sentence."""
    for place, part in enumerate(re.split(r"[-/]", re.sub(r"['’]s?$", "", word))):
        singular = part[:-1] if part.endswith("s") else part
        if len(singular) > 1 and singular.isupper():
            yield singular
        elif len(part) > 1 and part[0].isupper() and (is_inner or place) and not is_title | (part.lower() in _NO_NAMES):
            yield part


def quoted(text: str) -> Iterator[str]:
    """The quotations of two or more words in a text, split at ellipses and brackets."""
    for match in _QUOTED.finditer(text):
        for part in _LEFT_OUT.split(match[match.lastindex or 0]):
            if len(part.split()) > 1:
                yield part.strip(" .,;:!?")


def has_identifier(identifier: str, words: str) -> bool:
    """Whether an identifier, or each of its pieces, is in `words`, a text in the form of `key`.

    Its number may be missing, as in COVID for COVID-19, unless another number follows the letters.
    """
    pieces = key(re.sub(r"(?<=[\dA-Z])s$", "", identifier)).split()
    if all(f" {piece} " in words or f" {piece}s " in words for piece in pieces):
        return True
    compact = "".join(pieces)
    if len(compact) > 100:  # a pattern of its letters would be too long
        return False
    letters = " ".join(piece for piece in pieces if piece.isalpha())
    if len(letters) > 4 and f" {letters} " in words and not re.search(rf" {letters} \d", words):
        return True
    return _WRITTEN_OUT.get(compact, "?") in words or bool(re.search(" " + " ?".join(compact) + "s? ", words))


def has_only_longer(identifier: str, text: str) -> bool:
    """Whether a text has a name that goes on after this one with an underscore, and not this one: KeyGen_internal."""
    if f"{identifier}_" not in text:
        return False
    return not re.search(rf"(?<![\w.-]){re.escape(identifier)}(?!\w)", text)


def has_name(name: str, words: str) -> bool:
    """Whether a name, a form of it, or the long form of an acronym is in `words`, a text in the form of `key`."""
    plain = "".join(key(name).split())
    if f" {plain} " in words or f" {plain}s " in words or (plain.endswith("s") and f" {plain[:-1]} " in words):
        return True
    if name.isupper():
        initials, of_content = _initials(words)  # consecutive words may spell it out: long short-term memory for LSTM
        is_spelled_out = len(plain) > 1 and (plain in of_content or (len(plain) > 2 and plain in initials))
        return is_spelled_out or (len(plain) > 3 and has_identifier(name, words))
    return f" {plain[: max(4, len(plain) - 3)]}" in words


@lru_cache(maxsize=512)
def _initials(words: str) -> tuple[str, str]:
    """The first letters of all words, and of all words but stop words."""
    every = words.split()
    return "".join(word[0] for word in every), "".join(word[0] for word in every if word not in STOP_WORDS)
