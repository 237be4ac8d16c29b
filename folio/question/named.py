"""The algorithm that a question names, by its label or its name, and questions that are nothing but a name. Pure.

Names with dots, dashes, digits, underscores or inner capitals are identifiers: ML-KEM.KeyGen, SP 800-207, SHAKE128.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from folio.grounding.names import identifiers
from folio.text import STOP_WORDS, tokenize

_KINDS = (
    r"algorithms?|alg|listings?|procedures?|pseudo-?codes?|protocols?|programs?|code|snippets?|functions?|subroutines?"
    r"|fig(?:ure)?"
)
_NUMBER = r"[A-Z]?[.-]?\d{1,3}(?:[.-]\d{1,3})?[a-z]?|[IVX]+"
_LABEL = re.compile(rf"\b(?P<kind>{_KINDS})\.?\s*(?P<number>{_NUMBER})\b", re.I)
# What asks for an algorithm's steps
_ASKS = re.compile(
    rf"\b(?:steps?|{_KINDS}|how (?:do|does|did|is|are|was|to|can)|show|list|print|give|describe|explain|outline"
    r"|walk (?:me )?through|works?|computed?|defined?|definition|specif\w+)\b",
    re.I,
)
_ABOUT_PARTS = re.compile(
    r"\b(?:how (?:many|much|long|often|large|big|fast)|why|when|who|which|where|compare\w*)\b", re.I
)
# The first word of an algorithm's title: the name before its arguments
_LEAD = re.compile(r"[\W_]*(?P<name>[^\s(:]+)(?P<call>[ ]?\()?")
_TITLE_END = re.compile(r"\(.*|[.:;](?:\s.*|$)", re.S)  # arguments, and sentences after the first
_INDEX = re.compile(r"[_^]\(?\w{1,3}\)?$|[\u2080-\u209c]+$")
_KIND_WORDS = frozenset(
    tokenize(
        "algorithm listing procedure pseudocode pseudo code protocol program snippet function subroutine fig figure"
    )
)
_DASHED = re.compile(r"(?<![\w.-])\d+-\d[\w.-]*\b|\b\w+(?:-\w+)*-\d+\b")  # 800-207, GPT-2
_MOST_BARE = 3  # words of a question that is nothing but a name
# Words that ask for a thing and are none of its name
_ASKING = frozenset(
    tokenize("step steps show list print give describe explain outline work works defined definition define use used")
)


@dataclass(frozen=True, slots=True)
class NamedThing:
    """What a question names, as it may be the label or the name of an algorithm."""

    text: str  # the question without signs around it
    label: str  # "algorithm 19"; "" for none
    words: frozenset[str]  # its words as `_key` writes them
    identifiers: frozenset[str]  # those of them with the form of an identifier
    terms: frozenset[str]  # its search tokens, without those that only ask
    asks: bool  # it asks for the algorithm itself: its steps, how it works, or nothing but its name
    is_bare: bool  # it is nothing but identifiers

    @classmethod
    def of(cls, question: str) -> NamedThing:
        """What a question names."""
        found = _LABEL.search(question)
        typed = [word.strip(".,;:?!\"'“”‘’[]") for word in question.split()]
        words = [_key(word.strip("()")) for word in typed]
        named = identifiers_in(question)
        plain = [word for word in words if word and word not in STOP_WORDS]
        joined = [word for word in plain if re.search(r"[\w)][-._/]\w|\d", word) and not word.isdigit()]
        is_bare = 0 < len(plain) <= _MOST_BARE and bool(named or joined) and not question.rstrip().endswith("?")
        is_bare = is_bare and all(_key(word) in {*named, *joined} or word.isupper() for word in typed if word)
        asks = bool(_ASKS.search(question)) or len(plain) <= _MOST_BARE
        label = _label(found["kind"], found["number"]) if found else ""
        terms = frozenset(tokenize(question)) - _KIND_WORDS - _ASKING
        text = question.strip(" \t\n.,;:?!\"'“”‘’")
        return cls(text, label, frozenset(words), named, terms, asks and not _ABOUT_PARTS.search(question), is_bare)

    def likeness(self, title: str) -> float:
        """How surely it means the algorithm with this title, "Algorithm 19 ML-KEM.KeyGen()": 0 to 1."""
        found = _LABEL.match(title)
        rest = title[found.end() :] if found else re.sub(rf"^\s*(?:{_KINDS})\b", "", title, flags=re.I)
        has_label = bool(found) and self.label == _label(found["kind"], found["number"]) if found else False
        has_name = self._names(rest.lstrip(" .:|—–-"))
        if has_label and has_name:
            return 1.0
        if has_label:
            return 0.6 if self.identifiers else 0.9
        return (0.4 if self.label else 0.8) if has_name else 0.0

    def _names(self, title: str) -> bool:
        """Whether it has the name in a title: its identifier, or all of its words."""
        lead = _LEAD.match(title)
        if lead is None:
            return False
        name = _key(lead["name"])
        if identifiers_in(lead["name"]) or not name.isalpha():
            return self.asks and (name in self.words or _INDEX.sub("", name) in self.words)
        if lead["call"] and name in self.words:
            others = self.terms - frozenset(tokenize(lead["name"]))
            is_whole = all(term.isdigit() for term in others)
            return self.asks and (is_whole or lead["name"][0].isupper())
        terms = frozenset(tokenize(_TITLE_END.sub("", title))) - _KIND_WORDS
        return len(terms) > 1 and (terms == self.terms or (self.asks and terms <= self.terms))


def identifiers_in(text: str) -> frozenset[str]:
    """The identifiers of a text in lower case; numbers with dashes too, as in SP 800-207."""
    return frozenset(map(_key, [*identifiers(text), *_DASHED.findall(text)]))


def _label(kind: str, number: str) -> str:
    plain = kind.casefold().rstrip("s")
    plain = {"alg": "algorithm", "fig": "figure"}.get(plain, plain.replace("pseudo-", "pseudo"))
    return f"{plain} {number.casefold()}"


def _key(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().replace("−", "-").rstrip("()")
