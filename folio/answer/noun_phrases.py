"""The noun phrases of a question, without a tagger: by its small words, and by how the evidence uses the others. Pure.

A phrase begins behind "the", "of" or "how many" in the question. It ends with the last word that the evidence has
behind such a word, too, and before no other content word, so that "interactive students followed" is cut behind
"students". What stands between "which" and "did" is a phrase as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from folio.text import STOP_WORDS, one_line

# Words of a phrase, at most
LONGEST = 6
# Characters of evidence that are looked through
MOST_TEXT = 60_000

_COUNTS = r"many|several|two|three|four|five|six|seven|eight|nine|ten|\d[\d,.]*"
_PREPOSITIONS = "of|in|for|with|on|by|from|into|between|through|at|about|using|called"
_BEFORE = (
    "(?:the|an?|this|these|those|our|your|their|its|his|her|each|every|any|all|some|no|both"
    rf"|{_PREPOSITIONS}|{_COUNTS})"
)
_PREPOSITION = re.compile(rf"(?:{_PREPOSITIONS})$", re.I)
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)"
_WORD = re.compile(r"\w[\w+/'’.-]*\w|\w")
_STARTS = re.compile(
    rf"(?<![\w-])(?P<asked>(?:which|what)(?!\s+{_AUXILIARY}\b))?(?(asked)|{_BEFORE})(?=\s+(?P<first>\w))", re.I
)
_ENDS = re.compile(rf"\s{_AUXILIARY}(?!\w)", re.I)
# What follows a phrase in the evidence where it is whole
_AFTER = rf"(?=\s?[^\w\s]|\s(?:{'|'.join(sorted(STOP_WORDS))})(?!\w)|$)"


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A noun phrase of a question. article: "the", or "" for one that stands without. is_asked_for: "Which ... did" """

    text: str
    article: str = ""
    is_asked_for: bool = False

    @property
    def is_plural(self) -> bool:
        """Whether its last word is a plural, by its ending."""
        return _is_plural(self.text.split()[-1])

    @property
    def as_subject(self) -> str:
        return f"{self.article} {self.text}".lstrip()


def noun_phrases(question: str, texts: Sequence[str]) -> list[NounPhrase]:
    """Those of a question that begin with a word such as "the", in order. texts: evidence on its subject."""
    text = one_line(" ".join(texts)[:MOST_TEXT])
    return list(_found(question, text)) if text else []


def _found(question: str, text: str) -> Iterator[NounPhrase]:
    at = 0
    while start := _STARTS.search(question, at):
        is_count = re.match(_COUNTS, start.group(), re.I) is not None
        words = list(_run(question, start.start("first"), is_count=is_count))
        at = start.end()
        if not words:
            continue
        asked = start["asked"] is not None
        if asked and _ENDS.match(question, words[-1].end()):
            last = len(words)
        else:
            last = max((place + 1 for place in range(len(words)) if _is_head(words[: place + 1], text)), default=0)
        if last:
            at = words[last - 1].end()
            article = "" if _PREPOSITION.match(start.group()) else "the"
            yield NounPhrase(question[words[0].start() : at], article, asked)


def _run(question: str, start: int, *, is_count: bool) -> Iterator[re.Match[str]]:
    """The content words from here on, up to the first other word or sign.

    is_count: what is counted ends with a plural, or before a name, which a verb divides from it: "many students took
    part", "many people followed Neuromatch".
    """
    end, ends_plural = start, False
    for count, word in enumerate(_WORD.finditer(question, start)):
        if count == LONGEST or word.group().casefold() in STOP_WORDS or question[end : word.start()].strip():
            return
        is_over = ends_plural and not _is_plural(word.group())
        if is_count and count and (is_over or word.group()[0].isupper()):
            return
        yield word
        end, ends_plural = word.end(), _is_plural(word.group())


def _is_plural(word: str) -> bool:
    """By its ending."""
    return word.endswith("s") and word[:1].islower() and not word.endswith(("ss", "us", "is", "ics"))


def answered(phrase: NounPhrase, said: str, question: str) -> str:
    """What the answer calls a thing that was asked for: of "small dataset", "epinion dataset"; "" if it does not say.

    said: the words that answer, verbatim.
    """
    head = phrase.text.split()[-1]
    asked = {word.group().casefold() for word in _WORD.finditer(question)} | STOP_WORDS
    for match in re.finditer(rf"(?:(?<![\w-])[\w-]+\s){{1,3}}{re.escape(head)}(?![\w-])", one_line(said), re.I):
        words = match.group().split()
        words = words[max((at + 1 for at, word in enumerate(words) if word.casefold() in STOP_WORDS), default=0) :]
        if len(words) > 1 and not asked & {word.casefold() for word in words[:-1]}:
            return " ".join(words)
    return ""


def _is_head(words: Sequence[re.Match[str]], text: str) -> bool:
    """Whether the last of these words ends a noun phrase in the text, by itself or with words before it."""
    for first in range(len(words)):
        phrase = r"\s".join(re.escape(word.group()) for word in words[first:])
        if re.search(rf"(?<![\w-]){_BEFORE}\s(?:[\w-]+\s)?{phrase}{_AFTER}", text, re.I):
            return True
    return False
