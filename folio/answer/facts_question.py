"""Questions about who wrote a paper, when it was published and where it appeared: which facts, of which paper. Pure.

A question is about these facts if it begins or ends with what asks for one, and if every other word in it belongs to
such a question or to the paper: "who wrote the code of Raft" asks for something else. For English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from folio.search.paper_names import PaperNames
from folio.text import tokenize
from folio.types import Paper

Fact = Literal["who", "when", "where"]

_POLITE = (
    r"(?:(?:please|tell me|give me|show me|list|name|do you know|can you tell me|what (?:is|are|was|were)|what's"
    r"|who (?:is|are|was|were)|the|all|full|names? of)\s+)*"
)
_ASKED: dict[Fact, str] = {
    "who": r"who(?:['’]?s|se|m)?|(?:by|from) whom|(?:what|which) (?:people|person|authors?)|authors?|writers?",
    "when": r"when|(?:(?:in|from|of) )?(?:what|which) (?:year|date)|how (?:old|recent|new)"
    r"|(?:publication )?(?:year|date)(?= (?:of|for)\b)|(?:publication (?:year|date))",
    "where": r"where|(?:(?:in|at|by) )?(?:what|which) (?:journal|conference|venue|workshop|proceedings|magazine)|venue",
}
_BEGINS = {fact: re.compile(rf"\W*{_POLITE}(?:{asked})\b", re.I) for fact, asked in _ASKED.items()}
_JOINED = {fact: re.compile(rf"\b(?:and|or)\s+{_POLITE}(?:{asked})\b", re.I) for fact, asked in _ASKED.items()}
_ENDS_WITH_WHO = re.compile(r"\b(?:by whom?|authors?|writers?)\W*$", re.I)
# Words of a question about a paper as such
_OF_A_PAPER = re.compile(
    r"\b(?:papers?|articles?|study|report|document|publication|manuscript|preprint|thesis|book|notes|essay|memo|replication"
    r"|reproduction"
    r"|(?:co-?)?authors?|authored|writers?|write|wrote|written|publish(?:ed)?)\b",
    re.I,
)
# Words that ask the same of a thing which a paper presents: who came up with it, where it appeared
_OF_A_THING: dict[Fact, re.Pattern[str]] = {
    "who": re.compile(
        r"\b(?:by|behind|ma[dk]e|did|create[ds]?|invent(?:s|ed)?|propose[ds]?|introduce[ds]?|develop(?:s|ed)?"
        r"|design(?:s|ed)?|c[ao]me up with)\b",
        re.I,
    ),
    "when": re.compile(""),
    "where": re.compile(
        r"\b(?:publish(?:ed)?|appear(?:ed)?|c[ao]me out|presented|released"
        r"|journal|conference|venue|workshop|proceedings|magazine)\b",
        re.I,
    ),
}
_FRAME = frozenset(
    tokenize(
        "please tell give show list name know whose whos who's write wrote written author authored writer publish"
        " published publication paper article study report document manuscript preprint thesis book notes essay memo"
        " replication reproduction do submit appear come came release released year date old recent new person people"
        " team behind make made create invent propose introduce develop design first original call title full"
    )
)
# Words of a question about a paper as a whole
_OF_THE_WHOLE = frozenset(
    tokenize(
        "summary summarize summarise summarizing overview gist synopsis nutshell sum short brief quick main key point"
        " idea message topic goal purpose say said tell explain describe about what"
    )
)
_PLACES = frozenset(tokenize("present journal conference venue workshop proceedings magazine"))
# "when/where", "who & when"; the ending of "Lamport's"
_AND, _WRITTEN_OTHERWISE = re.compile(r"\s*[/&]\s*"), re.compile(r"(?<=\w)['’]s\b\s*(?=\s)")
_SEVERAL = re.compile(r"\b(?:papers|articles|studies|publications|books)\b", re.I)
_MOST_DESCRIBED = 3  # papers that a description may fit


@dataclass(frozen=True, slots=True)
class FactsQuestion:
    """The facts that a question wants to know of a paper."""

    question: str
    facts: tuple[Fact, ...]
    of_a_paper: bool  # whether it speaks of a paper, or of writing: then its words may describe one


def facts_question(question: str) -> FactsQuestion | None:
    """The facts that a question asks for; None if it asks for none. Of which paper, `papers_asked_about` says.

    >>> facts_question("who wrote the Raft paper, and when?").facts
    ('who', 'when')
    """
    question = _WRITTEN_OTHERWISE.sub(" ", _AND.sub(" and ", question))
    facts = tuple(
        fact
        for fact in _ASKED
        if _BEGINS[fact].match(question)
        or _JOINED[fact].search(question)
        or (fact == "who" and _ENDS_WITH_WHO.search(question))
    )
    of_a_paper = _OF_A_PAPER.search(question) is not None
    # Much of a paper is somewhere, such as its code.
    if not facts or not all((of_a_paper and fact != "where") or _OF_A_THING[fact].search(question) for fact in facts):
        return None
    return FactsQuestion(question, facts, of_a_paper)


def papers_asked_about(asked: FactsQuestion, papers: Sequence[Paper], names: PaperNames) -> list[Paper]:
    """The papers whose facts are asked for; none if the question has words that belong to none of them.

    A paper is named, or described by words of its title, file and authors. What a paper merely is known by
    (aliases.py) may be another's invention: it does for "who wrote", and not for "who invented".
    """
    frame = _FRAME | _PLACES if "where" in asked.facts else _FRAME
    words = [word for word in asked.question.split() if not frame.issuperset(tokenize(word))]
    among = {paper.id for paper in papers}
    by_use = asked.of_a_paper or "who" not in asked.facts
    named = [paper for paper in names.meant(asked.question, by_use=by_use) if paper.id in among]

    def explains(paper: Paper, word: str) -> bool:
        known = _words_of(paper) | _abstract(paper)
        return known.issuperset(tokenize(word)) or paper in names.called(word.strip("?.,;:!()\"'“”"))

    if whole := [paper for paper in named if all(explains(paper, word) for word in words)]:
        return whole
    if named and all(any(explains(paper, word) for paper in named) for word in words):
        return named
    tokens = frozenset(tokenize(" ".join(words)))
    if not tokens:
        return list(papers) if asked.of_a_paper and len(papers) == 1 else []
    return _described(asked, tokens, papers)


def papers_described(question: str, papers: Sequence[Paper]) -> list[Paper]:
    """The papers that a question about one as a whole describes, without their names: "a summary of the X paper"."""
    tokens = frozenset(tokenize(question)) - _FRAME - _OF_THE_WHOLE
    asked = FactsQuestion(question, (), _OF_A_PAPER.search(question) is not None)
    return _described(asked, tokens, papers) if tokens else []


def _described(asked: FactsQuestion, tokens: frozenset[str], papers: Sequence[Paper]) -> list[Paper]:
    """The papers that these tokens describe, if they are few: with all words of a title, or with no other words.

    Up to half of the words may be of an abstract, if they are of only one.
    """
    if whole := [paper for paper in papers if _title(paper) - _FRAME == tokens]:
        return whole
    if not asked.of_a_paper or _SEVERAL.search(asked.question):
        return []
    if found := [paper for paper in papers if tokens <= _words_of(paper)]:
        return found if len(found) <= _MOST_DESCRIBED else []
    half = [paper for paper in papers if 2 * len(tokens & _title(paper)) >= len(tokens)]
    found = [paper for paper in half if tokens <= _words_of(paper) | _abstract(paper)]
    return found if len(found) == 1 else []


def _title(paper: Paper) -> frozenset[str]:
    return frozenset(tokenize(paper.title))


def _abstract(paper: Paper) -> frozenset[str]:
    return frozenset(tokenize(paper.metadata.abstract.value))


def _words_of(paper: Paper) -> frozenset[str]:
    """The words of its title, its file and its authors, as search tokens."""
    stem = re.sub(r"[_-]", " ", PurePath(paper.file).stem)
    return frozenset(tokenize(" ".join((paper.title, paper.file, stem, *paper.authors))))
