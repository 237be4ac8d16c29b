"""The parts of a question: the questions in it, and the things that it compares or joins. For English. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from folio.text import one_line, plain_words, tokenize

MOST_PARTS = 4
_PREPOSITION = r"(?:about|at|by|during|for|from|in|into|of|on|through|to|under|with)"
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|must)"
_WH = r"(?:how|what|when|where|which|who|whom|whose|why)"

# "... and how ...", "...; in which ...": where a second question begins
_NEXT_QUESTION = re.compile(rf"(?:\s*[;?]\s*(?:and\s+)?|\s*,?\s+(?:and|but)\s+)(?=(?:{_PREPOSITION}\s+)?{_WH}\b)", re.I)
# ", in which language is ...": a question among others behind a mere comma, by its order of words; no relative clause
_LISTED_QUESTION = re.compile(
    rf",\s+(?=(?:{_PREPOSITION}\s+)?(?:(?:how|what|why)\b|(?:which|whose)\s+[\w-]+)(?:\s+[\w-]+){{0,3}}?\s+{_AUXILIARY}\b)",
    re.I,
)
_PRONOUN = re.compile(r"\b(?:which ones?|it|its|they|them|their|he|him|his|she|her|this|these|those)\b", re.I)
# "which simulator was", and "which one" for it in a later question
_ASKED_THING = re.compile(
    rf"\b(?:which|what)\s+(?P<thing>(?!one)[\w-]+(?:(?:\s+[\w-]+){{0,2}}?(?=\s+{_AUXILIARY}\b))?)", re.I
)
_WHICH_ONE = re.compile(r"\b(?P<which>which|what) ones?\b", re.I)

# "of otters and of seals", "with ThermoState, and how with ParFlow": a preposition that is said again
_SAID_AGAIN = re.compile(
    rf"^(?P<head>.*\S)\s+(?P<again>{_PREPOSITION})\s+(?!{_WH}\b)(?P<one>(?:(?!\b(?P=again)\b).)+?)"
    rf",?\s+and\s+(?:(?:how|when|where|why)\s+)?(?P=again)\s+(?!{_WH}\b)(?P<two>.+)$",
    re.I,
)

_COMPARISONS = (
    re.compile(
        # not "the table where they compare A with B"
        r"(?<!that )(?<!which )(?<!who )(?<!we )(?<!they )\bcompare\s+(?!(?:to|with)\b)(?P<one>[^?]{1,80}?)"
        r"\s+(?:and|with|to|versus|vs\.?)\s+(?P<two>[^?]{1,80})",
        re.I,
    ),
    re.compile(r"\bdifferen(?:ces?|t)\s+between\s+(?P<one>[^?]{1,80}?)\s+and\s+(?P<two>[^?]{1,80})", re.I),
    re.compile(
        r"\bhow\s+(?:do|does|did|is|are)\s+(?P<one>[^?]{1,80}?)\s+(?:differ(?:ent)?\s+from|compare[sd]?\s+(?:to|with))\s+"
        r"(?P<two>[^?]{1,80})",
        re.I,
    ),
    re.compile(
        r"\b(?:how|what)\s+(?:do|does|did|is|are)\s+(?P<one>[^?]{1,80}?)\s+and\s+(?P<two>[^?]{1,80}?)"
        r"\s+(?:differ(?:ent)?|compare|have in common)\b",
        re.I,
    ),
    re.compile(r"(?P<one>[\w .+/-]{1,60}?)\s+(?:versus|vs\.?)\s+(?P<two>[\w .+/-]{1,60})", re.I),
    re.compile(rf"^{_WH}\b[^,?]{{1,80}},\s+(?P<one>[^,?]{{1,60}}?)\s+or\s+(?P<two>[^,?]{{1,60}})\??$", re.I),
)
# What follows the second thing of a comparison, and is not part of it.
_AFTER_THING = re.compile(
    r"\s*(?:[,;:?!]|\.(?:\s|$)|\s[–—-]\s|\b(?:in|on|for|with respect to|regarding|when|at|by|as)\b).*$", re.I | re.S
)
_ARTICLE = re.compile(rf"^(?:{_PREPOSITION}\s+)?(?:what (?:is|are) )?(?:(?:the|an?)\s+)?", re.I)
# "How long does A take compared to B"
_COMPARED_TO = re.compile(r"^(?P<one>.+?),?\s+compared\s+(?:to|with)\s+(?P<two>.+)$", re.I)
_ASKED_FIRST = re.compile(rf"^(?:{_PREPOSITION}\s+)?{_WH}(?:\s+(?!{_AUXILIARY}\b)[\w-]+){{0,3}}", re.I)
# Words that say that things are compared, and nothing about them
_COMPARING = re.compile(
    r"\b(?:compare[sd]?|comparison|differences?|different(?:ly)?|differ|between|from|versus|vs\.?|both|similar(?:ities)?"
    r"|and|or|with|to|than|in common|how|what|which|do|does|did|is|are|the|of|their|each)\b",
    re.I,
)

# "which X do A, B and C use": names that are joined, with the nouns behind them
_NAME = r"(?:(?:the|an?)\s+)?[A-Z0-9][\w.+/-]*(?:\s+[A-Z0-9][\w.+/-]*){0,5}"
_ITEM = rf"{_NAME}(?:\s+(?!and\b)[a-z][\w-]*){{0,3}}?"
_JOINED = re.compile(rf"\b(?:both\s+)?(?P<first>{_ITEM}(?:,\s+{_ITEM}){{0,3}}),?\s+and\s+(?P<last>{_NAME})")


def question_parts(question: str) -> tuple[str, ...]:
    """The parts to search for one by one, at most MOST_PARTS; () for a question that has none.

    What is asked of all is in each. A part that refers to an earlier one, except by "which one", is left as it is.

    >>> question_parts("How is Raft tested, and which language is Paxos written in?")
    ('How is Raft tested', 'which language is Paxos written in')
    >>> question_parts("What is the difference between Raft and Paxos in leader election?")
    ('Raft in leader election', 'Paxos in leader election')
    """
    plain = one_line(question).strip(" ?")
    rules = (_said_again, _asked, _compared, _compared_to, _joined)
    return next((parts for rule in rules if (parts := _several(rule(plain)))), ())


def questions_in(question: str) -> tuple[str, ...]:
    """The questions that one asks one after the other, if each stands alone; () if it asks only one."""
    parts = _asked(one_line(question))
    return _several([] if any(_PRONOUN.search(part) for part in parts) else parts)


def parts_alone(question: str) -> tuple[str, ...]:
    """Those of question_parts, unless they are questions of which one refers to another."""
    return questions_in(question) if _asked(one_line(question)) else question_parts(question)


def compared_things(question: str) -> tuple[str, ...]:
    """The two things that a question compares; () if it compares none."""
    for pattern in _COMPARISONS:
        if match := pattern.search(question):
            pair = (_AFTER_THING.sub("", _ARTICLE.sub("", match[name].strip())) for name in ("one", "two"))
            things = tuple(thing for thing in pair if tokenize(thing))
            if len(things) == 2:
                return things
    return ()


def thing_in(part: str, things: Sequence[str]) -> str:
    """Which of the compared things a part of the question is about; "" for none."""
    return next((thing for thing in things if thing in part), "")


def _several(parts: list[str]) -> tuple[str, ...]:
    different = tuple(dict.fromkeys(parts))
    return different[:MOST_PARTS] if len(different) > 1 else ()


def _asked(question: str) -> list[str]:
    """The questions in it; [] where one has hardly any words of its own."""
    if not _NEXT_QUESTION.search(question):
        return []
    split = chain.from_iterable(_LISTED_QUESTION.split(part) for part in _NEXT_QUESTION.split(question))
    first, *others = (part.strip(" ,.;?!") for part in split)
    if thing := _ASKED_THING.search(first):
        others = [_WHICH_ONE.sub(lambda one: f"{one['which']} {thing['thing']}", part) for part in others]
    parts = [first, *others]
    return parts if all(len(tokenize(part)) > 1 for part in parts) else []


def _said_again(question: str) -> list[str]:
    """The question with each of two phrases that begin with the same preposition."""
    match = _SAID_AGAIN.match(question)
    if match and not _NEXT_QUESTION.search(match["two"]):
        return [f"{match['head'].rstrip(' ,')} {match['again']} {match[name]}" for name in ("one", "two")]
    return []


def _compared(question: str) -> list[str]:
    """What is compared, each with what stands behind it, and with what both are compared in."""
    things = compared_things(question)
    if not things:
        return []
    before, _, after_one = question.partition(things[0])
    between, _, after = after_one.partition(things[1])
    parts = _uncompared(f"{things[0]} {before} {between} {after}"), _uncompared(f"{things[1]} {before} {after}")
    return [f"What is {part}" if part == thing else part for part, thing in zip(parts, things, strict=True)]


def _uncompared(text: str) -> str:
    return one_line(_COMPARING.sub(" ", text)).strip(" ,.;:?!")


def _compared_to(question: str) -> list[str]:
    """A question that something is compared with, and what is asked in it of that."""
    match = _COMPARED_TO.match(question)
    asked = match and _ASKED_FIRST.match(match["one"])
    return [match["one"], f"{asked.group()} {match['two']}"] if match and asked else []


def _joined(question: str) -> list[str]:
    """The question with each of the names that "and" joins."""
    if match := _JOINED.search(question):
        before, after = question[: match.start()], question[match.end() :]
        names = [*re.split(r",\s+", match["first"]), match["last"]]
        return [f"{before}{name}{after}".strip(" ?") for name in names]
    return []


# Acronyms in a question spelled out as the papers do, and the other way.

MOST_ACRONYMS = 2  # of one question that are spelled out, and that are added to it
LONGEST_FORM = 200  # characters that an acronym stands for

# Begins and ends in a capital: "CRDTs", "SDS-WAS", and no name such as "PyMuPDF"
_ACRONYM = re.compile(r"\b[A-Z][A-Za-z-]*[A-Z]s?\b")
_DEFINED = re.compile(rf"\(\s*(?P<acronym>{_ACRONYM.pattern})\s*[),;]")


def spelled_out(question: str, long_form: Callable[[str], str]) -> str:
    """The question with its acronyms spelled out, and in brackets behind that; "" if it has none that is known.

    long_form: the words that an acronym stands for, "" if they are not known.
    """
    spelled = question
    for acronym in list(dict.fromkeys(_ACRONYM.findall(question)))[:MOST_ACRONYMS]:
        words = long_form(acronym.removesuffix("s"))
        if words and words.casefold() not in question.casefold():
            spelled = re.sub(rf"\b{re.escape(acronym)}\b", f"{words} ({acronym})".replace("\\", r"\\"), spelled)
    return spelled if spelled != question else ""


def shortened(question: str, texts: Iterable[str]) -> str:
    """The question and the acronyms that these texts define for words in it; "" if there is none."""
    own = f" {' '.join(plain_words(question))} "
    found = (acronym for acronym, words in _definitions(texts) if f" {' '.join(plain_words(words))} " in own)
    added = [acronym for acronym in dict.fromkeys(found) if f" {acronym.casefold()} " not in own][:MOST_ACRONYMS]
    return f"{question.rstrip(' ?')} {' '.join(added)}" if added else ""


def long_form(acronym: str, texts: Iterable[str]) -> str:
    """The words in front of "(ACRONYM)" that it stands for, in the first text that has them; "" if none does.

    Schwartz and Hearst 2003, "A simple algorithm for identifying abbreviation definitions in biomedical text": read
    backwards, each letter of the acronym is found in turn, and the first one begins a word. The words are at most
    twice as many as the letters, and as the letters and five more.
    """
    defined = re.compile(rf"\(\s*{re.escape(acronym)}s?\s*[),;]")
    for text in texts:
        for match in defined.finditer(text):
            if found := _words_before(acronym, text, match.start()):
                return found
    return ""


def _definitions(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each acronym that a text defines, and the words that it stands for."""
    for text in texts:
        for match in _DEFINED.finditer(text):
            acronym = match["acronym"].removesuffix("s")
            if words := _words_before(acronym, text, match.start()):
                yield acronym, words


def _words_before(acronym: str, text: str, end: int) -> str:
    """The words in front of a place in a text that an acronym stands for; "" if there are none."""
    letters = [char.casefold() for char in acronym if char.isalnum()]
    if len(letters) < 2:
        return ""
    most = min(len(letters) + 5, 2 * len(letters))
    before = text[max(0, end - LONGEST_FORM) : end]
    found = _matched(letters, " ".join(before.split()[-most:]))
    return "" if acronym.casefold() in found.casefold() else found


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
