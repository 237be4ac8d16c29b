"""Loose accents are put on their letters: "Schr¨odinger" and "Schro¨dinger" become "Schrödinger". Pure.

Old typesetting programs draw an accent and a letter as two characters, most of them the accent first. Where either
neighbour could carry it, the letter that often does wins (a vowel carries an acute, a consonant a caron), and then the
order that is certain elsewhere in the paper.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_VOWELS = "aeiouyıAEIOUY"
# Accent -> its combining character, and the letters that often carry it
_ACCENTS = {
    "¨": ("\u0308", _VOWELS), "´": ("\u0301", _VOWELS), "`": ("\u0300", _VOWELS), "ˆ": ("\u0302", _VOWELS),
    "˜": ("\u0303", "naoNAO"), "ˇ": ("\u030c", "cszrndtegCSZRNDTEG"), "˘": ("\u0306", "agiAGI"), "˙": ("\u0307", "zIZ"),
    "˚": ("\u030a", "auAU"), "¯": ("\u0304", "aeiouAEIOU"), "˝": ("\u030b", "ouOU"), "¸": ("\u0327", "cstCST"),
}  # fmt: skip
_ACCENT = re.compile(f"[{''.join(_ACCENTS)}]")
# A letter, perhaps a space, and the accent; or the accent, perhaps a space, and a letter
_BEFORE, _AFTER = re.compile(r"([^\W\d_])( ?)$"), re.compile(r"( ?)([^\W\d_])")
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_ANY_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_WORD = 40
# Places that are certain tell the order of a paper, if they are as many and agree in this share.
_MIN_CERTAIN, _AGREED = 3, 0.9
# Accents that mathematics puts on names of variables: a space in front of them is one.
_IN_FORMULAS = "ˆ˜¯˙"


class _Place(NamedTuple):
    """A loose accent, and the letters that it makes of its neighbours; "" if it cannot stand on one."""

    start: int  # of what is replaced if the letter before carries it
    at: int  # the accent
    end: int  # of what is replaced if the letter after carries it
    on_before: str
    on_after: str
    after_is_usual: bool
    space_before: bool

    @property
    def is_certain(self) -> bool:
        return bool(self.on_before) != bool(self.on_after)


def compose_accents(texts: Sequence[str]) -> list[str]:
    """The texts of a paper's pages with loose accents on their letters."""
    places = [list(_places(text)) if _ACCENT.search(text) else [] for text in texts]
    certain = [place for page in places for place in page if place.is_certain]
    follows = sum(bool(place.on_before) for place in certain) / max(1, len(certain))
    if len(certain) < _MIN_CERTAIN:
        follows = 0.4
    words: Counter[str] = Counter()
    if any(place.space_before for page in places for place in page):
        words.update(word for text in texts for word in _ANY_WORD.findall(text))
    return [
        _composed(text, found, follows, words) if found else text for text, found in zip(texts, places, strict=True)
    ]


def _places(text: str) -> list[_Place]:
    places: list[_Place] = []
    for match in _ACCENT.finditer(text):
        at, accent = match.start(), match.group()
        mark, usual = _ACCENTS[accent]
        before = _BEFORE.search(text, max(0, at - 2), at)
        after = _AFTER.match(text, at + 1)
        on_before = on_after = ""
        if before and not before[2] and before[1] in usual:
            on_before = _carried(before[1], mark)
        if after and not (accent == "`" and (not before or before[2] or after[1])):
            is_apostrophe = accent == "´" and before and not before[2] and not _continues(text, after.end())
            on_after = "" if is_apostrophe and after[2] not in usual else _carried(after[2], mark)
        if accent == "`" and not on_after:
            on_before = ""  # a quotation mark
        if on_before or on_after:
            places.append(
                _Place(
                    before.start() if before else at, at, after.end() if after else at + 1, on_before, on_after,
                    after is not None and after[2] in usual, before is not None and bool(before[2]),
                )
            )  # fmt: skip
    return places


def _continues(text: str, end: int) -> bool:
    """Whether a word goes on here."""
    return text[end : end + 1].isalpha()


def _carried(letter: str, mark: str) -> str:
    composed = unicodedata.normalize("NFC", {"ı": "i", "ȷ": "j"}.get(letter, letter) + mark)
    return composed if len(composed) == 1 else ""


def _composed(text: str, places: Sequence[_Place], follows: float, words: Counter[str]) -> str:
    """The text with these accents on their letters. follows: the share of accents that follow their letter."""
    parts: list[str] = []
    done = 0
    for place in places:
        if place.start < done and not (place.at >= done and place.on_after):
            continue  # its letter has an accent already
        is_on_before = bool(place.on_before) and place.start >= done
        if place.on_after and (follows <= 1 - _AGREED or (follows < 0.5 and place.after_is_usual)):
            is_on_before = False
        if is_on_before:
            parts += text[done : place.start], place.on_before
            done = place.at + 1
        elif place.on_after:
            start = place.at
            may_join = place.space_before and place.on_after.islower() and text[place.at] not in _IN_FORMULAS
            if may_join and not _is_word(text, place.at - 1, words):
                start -= 1
            parts += text[done:start], place.on_after
            done = place.end
    return "".join((*parts, text[done:]))


def _is_word(text: str, end: int, words: Counter[str]) -> bool:
    """Whether the letters that end here are a word of the paper, and not the beginning of one."""
    match = _LAST_WORD.search(text, max(0, end - _LONGEST_WORD), end)
    return match is not None and len(match.group()) > 1 and words[match.group()] > 1
