"""Finds labelled sentences in the answer that they were taken from, and the evidence numbers beside them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from folio.answer.citation_markers import MARKER, TRAILING_MARKERS, in_square_brackets, take_markers
from folio.answer.markup import simplified, unadorned

# Signs do not matter: white space, bold, bullets and table rules differ between an answer and a labelled sentence.
_WORD = re.compile(r"[^\W_]+")
_CLOSING = re.compile(rf"(?:(?!{MARKER.pattern})[^\w\n])*", re.I)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str  # folded
    start: int
    end: int
    in_marker: bool  # inside brackets that look like a marker


def markers_of(sentences: Sequence[str], answer: str, count: int) -> list[tuple[int, ...] | None]:
    """The evidence numbers from 1 to count that each sentence of an answer names; None where it is not in the answer.

    The sentences are without markers and in the order of the answer. A sentence that stands in the answer twice is the
    first one after the sentence before it.
    """
    text = in_square_brackets(simplified(answer))
    words = _words(text)
    found: list[tuple[int, ...] | None] = []
    at = 0
    for sentence in sentences:
        wanted = [word.text for word in _words(in_square_brackets(simplified(sentence)))]
        place = _find(wanted, words, at) or _find(wanted, words, 0)
        if place is None:
            found.append(None)
            continue
        first, at = place
        found.append(_markers(text, words[first].start, words[at - 1].end, count))
    return found


def _words(text: str) -> list[_Word]:
    marked = [match.span() for match in MARKER.finditer(text)]
    return [
        _Word(match.group().casefold(), *match.span(), any(start <= match.start() < end for start, end in marked))
        for match in _WORD.finditer(text)
    ]


def _find(wanted: Sequence[str], words: Sequence[_Word], at: int) -> tuple[int, int] | None:
    """The span [first, end) of the words that are wanted, from `at` on; words in markers may stand between them."""
    for first in range(at, len(words)) if wanted else ():
        if words[first].text == wanted[0] and (end := _matched(wanted, words, first)):
            return first, end
    return None


def _matched(wanted: Sequence[str], words: Sequence[_Word], at: int) -> int:
    """Where the words that are wanted end if they begin here; 0 if they do not stand here."""
    for place, word in enumerate(wanted):
        while at < len(words) and words[at].in_marker and (words[at].text != word or _after(words, at) == word):
            if place == 0:
                return 0
            at += 1
        if at == len(words) or words[at].text != word:
            return 0
        at += 1
    return at


def _after(words: Sequence[_Word], at: int) -> str:
    """The first word after a marker."""
    return next((word.text for word in words[at:] if not word.in_marker), "")


def _markers(text: str, start: int, end: int, count: int) -> tuple[int, ...]:
    """The numbers in the sentence [start, end), in a marker that begins its line, and in those after its end."""
    line = text.rfind("\n", 0, start) + 1
    if not _WORD.search(MARKER.sub("", unadorned(text[line:start]))):
        start = line
    if closed := _CLOSING.match(text, end):
        end = closed.end()
    if trail := TRAILING_MARKERS.match(text, end):
        end = trail.end()
    return take_markers(unadorned(text[start:end]), count)[1]
