"""Searches for papers that may answer a question, in the question's own terms. Pure: nothing is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from folio.question.question import Question
from folio.text import STOP_WORDS, fold, one_line, tokenize

FEWEST, MOST = 2, 4
_LONGEST = 200  # characters of a search
_MOST_WORDS = 10
_TELLING = 3  # of the rarest words
_WORD = re.compile(r"[^\W_](?:[\w'’.+/-]*[^\W_+]|[\w+]*)")
# Words of questions that say nothing of their subject, besides those that every text has
_ASKING = frozenset(
    tokenize(
        "what which who whom whose when where why how does do did is are was were can could should would will may might"
        " tell explain describe define say says paper papers study studies author authors article work works know known"
        " find found show shows give given list compare compared difference between versus vs best good many much long"
        " often kind kinds type types main exactly actually please me about mean means meant use used using there"
    )
)


def propose(question: str, missing: Sequence[str] = (), weights: Mapping[str, float] | None = None) -> tuple[str, ...]:
    """Two to four searches, the most specific first; fewer for a question without words.

    missing: the parts of the question that are not answered, all if there are none. weights: of its tokens, the rarest
    the largest: then one search has the rarest words alone.
    """
    parts = [text for text in missing if _subject(text)] or [question]
    asked = [Question(text) for text in parts[:MOST]]
    candidates = [" ".join(_subject(part.text)) for part in asked]
    for part in asked:
        candidates += _narrower(part, weights or {})
    searches = tuple(islice(_distinct(candidates), MOST))
    if len(searches) >= FEWEST:
        return searches
    as_asked = (one_line(" ".join(_WORD.findall(text))) for text in (*parts, question))
    return tuple(islice(_distinct((*searches, *as_asked)), FEWEST))


def _subject(text: str) -> list[str]:
    """The words of a question that say what it is about, in its order, as they were typed."""
    words = dict.fromkeys(_WORD.findall(text))
    return [word for word in words if not _is_empty(word)][:_MOST_WORDS]


def _is_empty(word: str) -> bool:
    """Whether a word says nothing of a subject. An abbreviation does: "IT", "WHO"."""
    if word.isupper() and len(word) > 1:
        return False
    return word.casefold() in STOP_WORDS or set(tokenize(word)) <= _ASKING


def _narrower(part: Question, weights: Mapping[str, float]) -> Iterator[str]:
    """A search for the names in a question, one for its rarest words, and one for words that stand side by side."""
    words = _subject(part.text)
    if names := [name for name in part.names if not _is_empty(name)]:
        yield " ".join(names)
    if weights and len(words) > _TELLING:
        weight = {word: max((weights.get(token, 0.0) for token in tokenize(word)), default=0.0) for word in words}
        rarest = sorted(words, key=lambda word: -weight[word])
        yield " ".join(word for word in words if word in rarest[:_TELLING])
    runs = (words[start : start + _TELLING] for start in range(len(words)))
    phrase = next((" ".join(run) for run in runs if len(run) > 1 and " ".join(run) in part.text), "")
    if phrase and len(words) > len(phrase.split()):
        yield f'"{phrase}"'


def _distinct(searches: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for search in searches:
        key = fold(search)
        if key and (key not in seen):
            seen.add(key)
            yield search[:_LONGEST]
