"""The sub-questions of a question with several parts: of a comparison, and of what "and" joins. For English. Pure."""

from __future__ import annotations

import re

from folio.answer.question_type import question_type
from folio.text import tokenize

MOST_PARTS = 4
# Words that say that things are compared, and nothing about them
_COMPARING = re.compile(
    r"\b(?:compare[sd]?|comparison|differences?|different(?:ly)?|differ|between|from|versus|vs\.?|both|similar(?:ities)?"
    r"|and|or|with|to|than|in common|how|what|which|do|does|did|is|are|the|of|their|each)\b",
    re.I,
)
# "... and how ...", "...; which ...": where a second question begins
_NEXT_QUESTION = re.compile(
    r"(?:\s*[;?]\s*(?:and\s+)?|\s*,?\s+(?:and|but)\s+)"
    r"(?=(?:(?:in|on|for|with|by|at|to)\s+)?(?:how|what|when|where|which|who|whom|whose|why)\b)",
    re.I,
)
# "which X do A and B use": two names that are joined
_NAME = r"(?:(?:the|an?)\s+)?[A-Z0-9][\w.+/-]*(?:\s+[A-Z0-9][\w.+/-]*){0,5}"
_JOINED = re.compile(rf"\b(?:both\s+)?(?P<one>{_NAME})\s+and\s+(?P<two>{_NAME})")
_PRONOUN = re.compile(r"\b(?:which ones?|it|its|they|them|their|he|him|his|she|her|this|these|those)\b", re.I)
_QUESTION_WORD = re.compile(r"(?:how|what|when|where|which|who|whom|whose|why)\b", re.I)


def question_parts(question: str) -> tuple[str, ...]:
    """The sub-questions, at most MOST_PARTS; () for a question that has no parts.

    >>> question_parts("How is Raft tested, and which language is Paxos written in?")
    ('How is Raft tested', 'which language is Paxos written in')
    >>> question_parts("What is the difference between Raft and Paxos in leader election?")
    ('Raft in leader election', 'Paxos in leader election')
    """
    plain = " ".join(question.split())
    return questions_in(plain) or _several(_compared(plain)) or _several(_joined(plain))


def questions_in(question: str) -> tuple[str, ...]:
    """The questions that one asks one after the other, if each stands alone; () if it asks only one."""
    parts = [part.strip(" ,.;?!") for part in _NEXT_QUESTION.split(" ".join(question.split()))]
    alone = all(len(tokenize(part)) > 1 and not _PRONOUN.search(part) for part in parts)
    return _several(parts) if alone else ()


def _several(parts: list[str]) -> tuple[str, ...]:
    different = tuple(dict.fromkeys(parts))
    return different[:MOST_PARTS] if len(different) > 1 else ()


def _compared(question: str) -> list[str]:
    """What is compared, each with what it is compared in."""
    things = question_type(question).things
    rest = question
    for thing in things:
        rest = rest.replace(thing, " ", 1)
    rest = " ".join(_COMPARING.sub(" ", rest).split()).strip(" ,.;:?!")
    return [f"{thing} {rest}".strip() for thing in things]


def _joined(question: str) -> list[str]:
    """The question with each of two names that "and" joins."""
    for match in _JOINED.finditer(question):
        if not _QUESTION_WORD.match(match["one"]):
            before, after = question[: match.start()], question[match.end() :]
            return [f"{before}{match[name]}{after}".strip(" ?") for name in ("one", "two")]
    return []
