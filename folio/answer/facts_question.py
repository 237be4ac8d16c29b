"""The papers that a question about facts or a whole paper means: it names them or describes them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from folio.search.library_question import OF_A_PAPER, FactsQuestion
from folio.search.paper_names import PaperNames
from folio.text import tokenize
from folio.types import Paper

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
_SEVERAL = re.compile(r"\b(?:papers|articles|studies|publications|books)\b", re.I)
_MOST_DESCRIBED = 3  # papers that a description may fit


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
    asked = FactsQuestion(question, (), OF_A_PAPER.search(question) is not None)
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
