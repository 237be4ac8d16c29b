"""Other wordings of a question to search with, by rules: acronyms spelled out, parts one by one, its content words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from folio.text import STOP_WORDS

MOST_VARIANTS = 4
MOST_ACRONYMS = 2  # of one question that are spelled out
LONGEST_FORM = 200  # characters that an acronym stands for

_ACRONYM = re.compile(r"\b[A-Z][A-Za-z-]*[A-Z]s?\b")
# Two things after a word that says so; what is asked of each is searched by itself
_PAIR = re.compile(
    r"\b(?:between|both|compared?|comparing)\s+(?P<one>[^,;?]{1,80}?)\s+(?:and|with|to|versus|vs\.?)\s+"
    r"(?P<two>[^,;?]{1,80})",
    re.I,
)
# Between two questions in one
_AND_ASKS = re.compile(r"[,;?]?\s+and\s+(?=(?:how|what|which|who|whom|when|where|why)\b)|\?\s+(?=\w)", re.I)
_WORD = re.compile(r"[^\s\"“”„«»‘()\[\]{},;!?…]+")


def query_variants(question: str, spelled_out: Callable[[str], str]) -> list[str]:
    """At most MOST_VARIANTS other wordings of a question, without the question itself.

    spelled_out: the words that an acronym stands for in the library, "" if it does not say. English only: a question
    in another language has no variant but its acronyms.
    """
    acronyms = list(dict.fromkeys(_ACRONYM.findall(question)))[:MOST_ACRONYMS]
    spelled = question
    for acronym in acronyms:
        words = spelled_out(acronym.removesuffix("s"))
        if words:
            spelled = re.sub(rf"\b{re.escape(acronym)}\b", f"{words} ({acronym})".replace("\\", r"\\"), spelled)
    found = dict.fromkeys((spelled, *_parts(question), _content(question)))
    return [variant for variant in found if variant and variant != question][:MOST_VARIANTS]


def _parts(question: str) -> list[str]:
    """The question about each of two things that it names together, or each of two questions in one."""
    if pair := _PAIR.search(question):
        return [f"{question[: pair.start()]}{pair[name]}{question[pair.end() :]}" for name in ("one", "two")]
    parts = [part.strip() for part in _AND_ASKS.split(question)]
    return parts if len(parts) > 1 and all(len(_content(part).split()) > 1 for part in parts) else []


def _content(question: str) -> str:
    """The question without the words that say nothing; "" if no more than one word is left."""
    words = [word.strip(".:") for word in _WORD.findall(question)]
    kept = [word for word in words if word and word.casefold() not in STOP_WORDS]
    return " ".join(kept) if len(kept) > 1 else ""


def long_form(acronym: str, texts: Iterable[str]) -> str:
    """The words in front of "(ACRONYM)" that it stands for, in the first text that has them; "" if none does.

    Schwartz and Hearst 2003, "A simple algorithm for identifying abbreviation definitions in biomedical text": read
    backwards, each letter of the acronym is found in turn, and the first one begins a word. The words are at most
    twice as many as the letters, and as the letters and five more.
    """
    letters = [char.casefold() for char in acronym if char.isalnum()]
    if len(letters) < 2:
        return ""
    defined = re.compile(rf"\(\s*{re.escape(acronym)}s?\s*[),;]")
    most = min(len(letters) + 5, 2 * len(letters))
    for text in texts:
        for match in defined.finditer(text):
            before = text[max(0, match.start() - LONGEST_FORM) : match.start()]
            found = _matched(letters, " ".join(before.split()[-most:]))
            if found and acronym.casefold() not in found.casefold():
                return found
    return ""


def _matched(letters: list[str], words: str) -> str:
    """The end of these words that the letters stand for; "" if they do not."""
    at = len(words)
    for place in range(len(letters) - 1, -1, -1):
        at -= 1
        while at >= 0 and not (words[at].casefold() == letters[place] and (place or _begins_word(words, at))):
            at -= 1
        if at < 0:
            return ""
    return words[at:]


def _begins_word(words: str, at: int) -> bool:
    return at == 0 or not words[at - 1].isalnum()
