"""Rewrites follow-up questions without a model. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from folio.answer_types import Answer
from folio.text import STOP_WORDS, tokenize


def standalone(question: str, history: Sequence[Answer]) -> str:
    """A follow-up with its references filled in; a question without any is returned as it is.

    "Explain the second one" means the second item, or else sentence, of the last answer. Any other follow-up gets the
    subject of the last independent question in front: "About Mikrokosmos: who wrote it?". Nothing more is carried over,
    because the rest of the earlier question would find its old answer again.
    """
    if not history:
        return question
    if resolved := _resolve_ordinal(question, history[-1]):
        return resolved
    if not is_followup(question):
        return question
    anchor = next((turn for turn in reversed(history) if not is_followup(turn.question)), history[-1])
    about = subject(anchor.question)
    return f"About {about}: {_continued(question)}" if about else f"{anchor.question} {question}"


# How a question begins: an "and", a preposition, a question word.
_LEAD = re.compile(
    r"^\W*(?:(?:and|but|or|so|then|also)\b\W*)?(?:(?:in|on|at|for|from|to|with|by|of|under|into|through|about)\s+)?"
    r"(?:how(?:\s+(?:many|much|long|often|far|well|large|big|old|fast))?|what|which|who|whom|whose|where|when|why)\b\s*",
    re.I,
)
_AND = re.compile(r"^\W*(?:and|but|or|so|then|also)\b\W*", re.I)
# A name: words with a capital or a digit ("CFD Python", "SP 800-207"), and the function words between them.
_NAME_WORD = r"[\w.+/-]*[A-Z\d][\w.+/-]*"
_NAME = re.compile(rf"(?<![\w.+/-]){_NAME_WORD}(?:\s+(?:(?:of|and|the|for|in)\s+)?{_NAME_WORD})*")
# What separates noun phrases.
_BETWEEN = re.compile(
    r"[,;:()]|\b(?:the|an?|of|in|on|at|for|from|to|with|by|under|into|through|about|between|and|or|as|that|which|than"
    r"|using|is|are|was|were|be|been|do|does|did|has|have|had|can|could|will|would|one|someone|there)\b",
    re.I,
)


def subject(question: str) -> str:
    """What a question is about, in its own words: its names, or else its last two noun phrases, or "".

    An English question begins with what it asks for; its subject comes after that.

    >>> subject("How many core lessons make up the CFD Python learning module?")
    'CFD Python'
    >>> subject("Which criterion is used for trees in the parsimony method?")
    'trees, parsimony method'
    """
    asked = _LEAD.sub("", question.strip().rstrip("?!. "))
    first, _, _ = asked.partition(" ")
    if asked == question.strip().rstrip("?!. ") and first[1:].islower():
        asked = asked[:1].lower() + asked[1:]  # the first word of a sentence is no name
    names = list(dict.fromkeys(_NAME.findall(asked)))
    if any(sum(map(str.isalpha, name)) > 1 for name in names):  # "R" alone or a year does not identify a subject
        return " ".join(names)
    phrases = [" ".join(phrase.split()) for phrase in _BETWEEN.split(asked)]
    return ", ".join([phrase for phrase in phrases if tokenize(phrase)][-2:])


def _continued(question: str) -> str:
    """A question as it reads after a colon: without a leading "and", in lower case unless it begins with a name."""
    rest = _AND.sub("", question) or question
    first, _, _ = rest.partition(" ")
    return rest[:1].lower() + rest[1:] if first.strip("?!.,").lower() in STOP_WORDS else rest


_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|this|that|these|those|he|she|him|his|her|hers|same|former|latter|both|else"
    r"|others?|such(?! as\b)|(?:the|which|another|first|second|last) ones?|(?<!is )(?<!are )(?<!was )(?<!were )there)\b"
    r"|^\W*(?:and|but|or|so|then|also|how so|what about|how about)\b",
    re.I,
)


def is_followup(question: str) -> bool:
    """Whether a question needs an earlier one to be understood: it refers back, or has hardly any content words."""
    return bool(_BACK.search(question)) or _ordinal_reference(question) is not None or len(set(tokenize(question))) < 3


_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_WHICH = re.compile(
    rf"\b(?:the\s+)?(?:(?P<word>{'|'.join(_ORDINALS)}|last)|(?P<digits>\d{{1,2}})(?:st|nd|rd|th))\s+"
    r"(?:(?P<one>one|of\s+(?:them|these|those))|point|item|sentence|answer|method|option|step|reason|source|quote)\b"
    r"|(?:\b(?:number|point|item|sentence|no\.)\s*|#)(?P<number>\d{1,2})\b",
    re.I,
)
# What introduces a list in a sentence, and what separates its items.
_LISTED = re.compile(
    r"(?::|\b(?:include[sd]?|including|such as|namely|are|were|(?:consists?|made(?: up)?|composed) of|comprises?))\s+"
    r"(?!.*:\s)",
    re.S,
)
_SEPARATOR = re.compile(
    r"[,;]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*[•▪‣]\s*|\s*\(?\b(?:[ivx]{1,4}|\d{1,2}|[a-h])\)\s+"
)
_LONGEST_ITEM = 12  # words


def _ordinal_reference(question: str) -> re.Match[str] | None:
    """The reference to an item of the last answer: "the second one", or "step 2" with hardly any other word.

    "The first step of key generation in ML-DSA" is no such reference: it can be understood by itself.
    """
    match = _WHICH.search(question)
    if match and (match["one"] or len(set(tokenize(question[: match.start()] + question[match.end() :]))) < 3):
        return match
    return None


def _resolve_ordinal(question: str, last: Answer) -> str:
    """The question with the item that it refers to filled in; "" if there is no such item."""
    match = _ordinal_reference(question)
    if match is None:
        return ""
    items, listed = _items(last)
    word = (match["word"] or "").lower()
    place = len(items) if word == "last" else int(match["digits"] or match["number"] or _ORDINALS.index(word) + 1)
    if not 1 <= place <= len(items):
        return ""
    item = items[place - 1]
    rest = question[match.end() :]
    # A whole sentence fits after a word such as "explain", but not in the middle of a question.
    if listed or (len(item.split()) <= _LONGEST_ITEM and not tokenize(rest)):
        return f"{question[: match.start()]}{item.rstrip(' .')}{rest}"
    return f"{question} {item}"


def _items(answer: Answer) -> tuple[list[str], bool]:
    """The items that a one-sentence answer lists, else the answer's sentences; and whether they are list items."""
    texts = [sentence.text for sentence in answer.sentences]
    if len(texts) == 1 and (listed := _LISTED.search(texts[0])):
        items = [item.strip(" .\n") for item in _SEPARATOR.split(texts[0][listed.end() :])]
        items = [item for item in items if item]
        if len(items) > 1 and all(len(item.split()) <= _LONGEST_ITEM for item in items):
            return items, True
    return texts, False
