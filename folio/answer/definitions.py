"""Which sentence says what a thing is: "A CRDT is a data type whose ...", "Raft, an algorithm". Pure; for English."""

from __future__ import annotations

import re
from functools import lru_cache

_ASKED = re.compile(
    r"^\W*(?:what|who)(?:'s| is| are| was| were) (?:meant by )?(?P<is>[\w./+-]+(?: [\w./+-]+){0,5}?)\W*$"
    r"|\b(?:define|definition of|meaning of|explain what|meant by)\s+(?P<define>[\w./+-]+(?: [\w./+-]+){0,5}?)"
    r"(?: (?:is|are|means?))?\W*$"
    r"|\bwhat (?:does|do) (?P<means>[\w./+-]+(?: [\w./+-]+){0,5}?) (?:mean|stand for)\W*$",
    re.I,
)
_ARTICLE = re.compile(r"^(?:an?|the|your|this|that)\s+", re.I)
# What stands where a definition begins: the start of a sentence, a clause, an item of a list
_START = r"(?:^\W*|[.;:,]\s+|\b(?:that|where|and|here)\s+)"
_IS = (
    r"(?:(?:is|are|was|were)\s+(?:(?:also|essentially|basically|simply|usually|often|generally|typically)\s+)?"
    r"(?:an?|the|one|any|defined|known|those|collections?|sets?|types?|kinds?)\b"
    r"|(?:refers?\s+to|denotes?|means|stands?\s+for|describes?|can\s+be\s+(?:defined|described|seen|thought)"
    r"|consists?\s+of|comprises?|provides?|represents?)\b)"
)


def asked_term(question: str) -> str:
    """The thing that a question wants defined, without its article; "" where it asks for no definition.

    >>> asked_term("What is a CRDT?"), asked_term("define policy enforcement point"), asked_term("Who wrote it?")
    ('CRDT', 'policy enforcement point', '')
    """
    found = _ASKED.search(" ".join(question.split()))
    if found is None:
        return ""
    term = next(filter(None, found.groups()))
    return _ARTICLE.sub("", term)


def defines(sentence: str, term: str) -> bool:
    """Whether a sentence says what a thing is, in one of the forms in which papers do."""
    return any(form.search(" ".join(sentence.split())) for form in _forms(term))


@lru_cache(maxsize=64)
def _forms(term: str) -> tuple[re.Pattern[str], ...]:
    words = term.split()
    if not words:
        return ()
    name = r"[\s-]+".join(map(re.escape, words)) + "(?:e?s)?"
    bracket = r"(?:\s*\([^()]{1,60}\))?"
    aside = r"(?:,\s[^,.;]{1,80},)?"
    return tuple(
        re.compile(form, re.I)
        for form in (
            rf"{_START}(?:(?:an?|the|our|this)\s+)?{name}{bracket}{aside}\s+{_IS}",  # a CRDT is a data type
            rf"\({name}\)\s*(?:[:—–]|-\s|,\s+(?:an?|the|which|in\s+which|where)\b|{_IS})",  # data types (CRDTs), which
            rf"^\W*{name}{bracket}\s*[:—–]\s",  # Policy engine (PE): this component
            rf"\b(?:define[sd]?|call(?:ed)?|known\s+as|term(?:ed)?|named)\s+(?:(?:an?|the|as)\s+)?(?:\w+\s+){{0,2}}?"
            rf"[\"“‘']?{name}\b",  # this is called assortative matching
            rf"(?<!\w){name}{bracket},\s+(?:an?|the)\s+\w",  # Raft, a consensus algorithm
        )
    )
