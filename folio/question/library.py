"""Recognises questions about the library: who wrote a paper, when and where, which papers are by a person or of a year.

Three kinds of questions, one after another below, each with its patterns above the functions that use them:

    facts of a paper     "Who wrote the Raft paper, and when?"                  facts_question
    counts and lists     "How many papers are by Lamport?"                      library_question
    papers on a topic    "Which papers deal with hazard pointers?"              wanted_papers

Only the third needs a search. A question for facts is a first guess: answer/library_questions.py compares its other
words with the papers, so that "who wrote the code of Raft" is none. Pure; for English.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from folio.text import one_line

Fact = Literal["who", "when", "where"]


@dataclass(frozen=True, slots=True)
class FactsQuestion:
    """A question for facts about a paper."""

    question: str
    facts: tuple[Fact, ...]
    of_a_paper: bool  # it mentions a paper or writing, so its words may describe a paper


@dataclass(frozen=True, slots=True)
class LibraryQuestion:
    """A question about the papers of the library."""

    kind: Literal["all", "by", "years", "about"]  # "about" only where it asks how many there are
    words: str = ""  # the person or the topic
    years: tuple[int, int] = (0, 9999)  # first and last
    is_count: bool = False  # it asks how many there are


# Facts of a paper

# What may stand before the word that asks: "please tell me the names of the"
_POLITE = (
    r"(?:(?:please|tell me|give me|show me|list|name|do you know|can you tell me|what (?:is|are|was|were)|what's"
    r"|who (?:is|are|was|were)|the|all|full|names? of)\s+)*"
)
_ASKING_WORDS: dict[Fact, str] = {
    "who": r"who(?:['’]?s|se|m)?|(?:by|from) whom|(?:what|which) (?:people|person|authors?)|authors?|writers?",
    "when": r"when|(?:(?:in|from|of) )?(?:what|which) (?:year|date)|how (?:old|recent|new)"
    r"|(?:publication )?(?:year|date)(?= (?:of|for)\b)|(?:publication (?:year|date))",
    "where": r"where|(?:(?:in|at|by) )?(?:what|which) (?:journal|conference|venue|workshop|proceedings|magazine)|venue",
}
# "Who wrote the Raft paper", its second fact "and when", "The Raft paper is by whom"
_BEGINS = {fact: re.compile(rf"\W*{_POLITE}(?:{words})\b", re.I) for fact, words in _ASKING_WORDS.items()}
_JOINED = {fact: re.compile(rf"\b(?:and|or)\s+{_POLITE}(?:{words})\b", re.I) for fact, words in _ASKING_WORDS.items()}
_ENDS_WITH_WHO = re.compile(r"\b(?:by whom?|authors?|writers?)\W*$", re.I)
# Words of a question about a paper
OF_A_PAPER = re.compile(
    r"\b(?:papers?|articles?|study|report|document|publication|manuscript|preprint|thesis|book|notes|essay|memo|replication"
    r"|reproduction|(?:co-?)?authors?|authored|writers?|write|wrote|written|publish(?:ed)?)\b",
    re.I,
)
# Words of the same question about the thing that a paper presents: who came up with it, where it appeared
_OF_A_THING: dict[Fact, re.Pattern[str]] = {
    "who": re.compile(
        r"\b(?:by|behind|ma[dk]e|did|create[ds]?|invent(?:s|ed)?|propose[ds]?|introduce[ds]?|develop(?:s|ed)?"
        r"|design(?:s|ed)?|c[ao]me up with)\b",
        re.I,
    ),
    "when": re.compile(""),  # any words
    "where": re.compile(
        r"\b(?:publish(?:ed)?|appear(?:ed)?|c[ao]me out|presented|released"
        r"|journal|conference|venue|workshop|proceedings|magazine)\b",
        re.I,
    ),
}
_AND_SIGN = re.compile(r"\s*[/&]\s*")  # "when/where", "who & when"
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b\s*(?=\s)")  # the ending of "Lamport's"


def facts_question(question: str) -> FactsQuestion | None:
    """The facts that a question asks for; None if it asks for none.

    It may ask for a fact if it begins or ends with words that do.

    >>> facts_question("who wrote the Raft paper, and when?").facts
    ('who', 'when')
    """
    question = _POSSESSIVE.sub(" ", _AND_SIGN.sub(" and ", question))
    facts = tuple(
        fact
        for fact in _ASKING_WORDS
        if _BEGINS[fact].match(question)
        or _JOINED[fact].search(question)
        or (fact == "who" and _ENDS_WITH_WHO.search(question))
    )
    of_a_paper = OF_A_PAPER.search(question) is not None
    # Other things of a paper have a place, too, such as its code.
    if not facts or not all((of_a_paper and fact != "where") or _OF_A_THING[fact].search(question) for fact in facts):
        return None
    return FactsQuestion(question, facts, of_a_paper)


# Counts and lists of papers

# "How many papers ..."
_COUNT = re.compile(
    r"\W*(?:how many|what number of) (?:papers?|pdfs?|documents?|articles?|files?)\b(?P<rest>.*)", re.I | re.S
)
_COUNT_VERB = re.compile(r"\s*(?:are|were|do (?:we|you|i) have|are there)\s+")
# "... are there in my library?", "... do you have in all?"
_IN_ALL = re.compile(
    r"\s*(?:(?:are|is|do|have|can)\s+)?(?:there|you|we|i|here)?\s*(?:have|know|see|search|read)?\s*"
    r"(?:in all|in total|altogether|here|(?:in|are in) (?:the|my|your|this) (?:library|index|collection|folder))?\W*",
    re.I,
)
# "Which of my papers are ...", "List the articles ..."
_WHICH = re.compile(
    r"\W*(?:(?:(?:which|what)(?: of (?:my|our|the|these|those|your))?"
    r"|list(?: all| the)?|show(?: me)?(?: all| the)?|are there(?: any)?) )?"
    r"(?:papers?|articles?|studies|publications?)\s+(?:(?:are|were|is|do you have|that are|there are)\s+)?"
    r"(?P<rest>.+?)\W*",
    re.I | re.S,
)
# The rest of such a question: "by Lamport", "did Lamport write", "have Lamport as an author"
_BY = re.compile(
    r"(?:(?:written|authored|published|made)\s+)?by\s+(?P<name>.+)|did\s+(?P<did>.+?)\s+(?:write|publish|author)"
    r"|(?:have|has|with|list|name)\s+(?P<having>.+?)\s+(?:as (?:an? |the )?(?:co-?)?|among (?:the |their )?)authors?",
    re.I | re.S,
)
# "since 2014", "published between 2010 and 2014", "from 2014 on"
_YEARS = re.compile(
    r"(?:(?:written|published|appeared|came out|from|made)\s+)*"
    r"(?:(?P<since>since)|(?P<after>after)|(?P<before>before)|between|(?P<until>until|up to)|in|from|of)\s+"
    r"(?P<one>(?:1[5-9]|20)\d\d)(?:\s*(?:and|to|-|–)\s*(?P<two>(?:1[5-9]|20)\d\d)|(?P<on>\s+on(?:wards?)?))?",
    re.I,
)
# "about hazard pointers"
_ABOUT = re.compile(r"(?:(?:is|are|that)\s+)?(?:about|on|dealing with|concerning)\s+(?P<topic>.+)", re.I | re.S)


def library_question(question: str) -> LibraryQuestion | FactsQuestion | None:
    """A question about the library; None for a question about the content of the papers."""
    plain = one_line(question)
    if match := _COUNT.fullmatch(plain):
        if _IN_ALL.fullmatch(match["rest"]):
            return LibraryQuestion("all", is_count=True)
        restriction = _restriction(_COUNT_VERB.sub("", match["rest"], count=1))
        return replace(restriction, is_count=True) if restriction else None
    match = _WHICH.fullmatch(plain)
    if match and (restriction := _restriction(match["rest"])) and restriction.kind != "about":
        return restriction
    return facts_question(plain)


def _restriction(rest: str) -> LibraryQuestion | None:
    """The restriction after the word "papers"; None if it is about their content."""
    rest = rest.strip(" ?.!")
    if by := _BY.fullmatch(rest):
        return LibraryQuestion("by", by["name"] or by["did"] or by["having"])
    if years := _YEARS.fullmatch(rest):
        return LibraryQuestion("years", years=_year_range(years))
    if about := _ABOUT.fullmatch(rest):
        return LibraryQuestion("about", about["topic"])
    return None


def _year_range(match: re.Match[str]) -> tuple[int, int]:
    one, two = int(match["one"]), int(match["two"] or match["one"])
    if match["after"]:
        return one + 1, 9999
    if match["before"]:
        return 0, one - 1
    if match["until"]:
        return 0, one
    if (match["since"] or match["on"]) and not match["two"]:
        return one, 9999
    return one, two


# Papers on a topic

_FOR_PAPERS = re.compile(
    # "Which of my recent papers ...", "Are there any studies ...", "Is there a paper ..."
    r"\W*(?:(?:please )?(?:which|what|list|name|show|find|give|are there|do (?:i|we|you) have)?"
    r"\s*(?:(?:me|any|all|some|other|of|the|my|these|those)\s+)*(?P<kind>(?:[\w-]+ ){0,2}?)"
    r"(?:papers|articles|publications|studies)"
    r"|(?:is there|do (?:i|we|you) have) (?:an?|any|one) (?:paper|article|publication|study))\b(?P<rest>.*)"
    # "What do I have on ...", "Is there anything here about ..."
    r"|\W*(?:(?:what(?:['’]s)?|is there|are there|do (?:i|we|you) have|have (?:i|we)|got) )*"
    r"(?:(?:else|do (?:i|we|you) have|is there|have (?:i|we)|got|anything|something|here|in)\s)+"
    r"(?P<have>(?:on|about)\b.*)",
    re.I | re.S,
)
# Words between these and the topic: "that deal with", "do I have here about", "which use or evaluate"
_FILLER = frozenset(
    """
    a about address addresses all also an and any anything are articles be been by can collection compare compares
    concern concerning concerns contain contains could cover covering covers deal dealing deals describe describes
    describing did discuss discusses discussing do does evaluate evaluates explain explains folder for from give
    gives got had has have here i in introduce introduces is it library looks look mention mentions mentioning my of
    on or papers present presenting presents propose proposes regarding relate related relates report reports say
    says show shows something studies study studying talk talking talks tell tells that the their there these they
    this to treat treats use uses using was we were what which who with work works you
    """.split()
)


def wanted_papers(question: str) -> str:
    """The topic of a question for papers; "" if it asks for no papers, or for those by a person or of some years.

    >>> wanted_papers("which papers deal with hazard pointers?"), wanted_papers("What does the paper say?")
    ('hazard pointers', '')
    """
    plain = one_line(question).strip(" ?.!")
    match = _FOR_PAPERS.fullmatch(plain)
    if match is None or library_question(plain) is not None:
        return ""
    words = (match["rest"] or match["have"] or "").split()
    while words and words[0].strip(",;:").casefold() in _FILLER:
        del words[0]
    return " ".join([(match["kind"] or "").strip(), *words]).strip() if words else ""
