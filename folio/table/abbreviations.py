"""The abbreviations that a paper introduces: "quality of life (QoL)". Pure.

After Schwartz and Hearst 2003 (https://psb.stanford.edu/psb-online/proceedings/psb03/schwartz.pdf): the letters of the
short form are found in order in the words before the parenthesis, whose first one has the first letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from folio.text import STOP_WORDS, tokenize

_MORE_WORDS = 2  # of a long form than its short form has letters
_INTRODUCED = re.compile(r"(?P<long>(?:[\w'’/-]+\s+){1,7})\((?P<short>[A-Za-z][\w-]{1,9})(?:[;,][^()]*)?\)")


def abbreviations(text: str) -> dict[str, frozenset[str]]:
    """The search token of each abbreviation, with those of what it stands for."""
    found: dict[str, frozenset[str]] = {}
    for match in _INTRODUCED.finditer(text):
        short = tokenize(match["short"])
        long = frozenset(tokenize(_long_form(match["short"], match["long"]))) - STOP_WORDS
        if short and long and short[0] not in long:  # the first token is the whole of it: "qol", "qo"
            found.setdefault(short[0], long)
    return found


def _long_form(short: str, before: str) -> str:
    """The last words before an abbreviation that it may stand for; "" for none."""
    if sum(map(str.isupper, short)) < 2:
        return ""
    letters = [char.casefold() for char in re.sub(r"s$", "", short) if char.isalpha()]
    words = re.findall(r"[\w'’]+", before)
    for count in range(1, min(len(words), len(letters) + _MORE_WORDS) + 1):
        long = words[-count:]
        if long[0][0].casefold() == letters[0] and _has_in_order(iter("".join(long).casefold()), letters):
            return " ".join(long)
    return ""


def _has_in_order(chars: Iterator[str], letters: list[str]) -> bool:
    return all(letter in chars for letter in letters)


def with_abbreviations(tokens: frozenset[str], known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Some tokens with the long form of each abbreviation among them, and the abbreviation of each long form."""
    more = {token for short, long in known.items() if short in tokens for token in long}
    more |= {short for short, long in known.items() if long <= tokens}
    return tokens | more if more else tokens
