"""A question about a paper as a whole -> the passages that answer it: of its abstract, introduction, conclusion. Pure.

Such a question shares hardly a word with its answer, so search alone brings other passages, or other papers.
"""

from __future__ import annotations

from collections.abc import Sequence

from folio.answer.question_type import Aspect
from folio.search.question import Question
from folio.sections import Kind
from folio.text import tokenize
from folio.types import Hit, Paper

# Where the answer stands, the best place first.
SECTIONS: dict[Aspect, tuple[Kind, ...]] = {
    "about": ("abstract", "introduction", "conclusion"),
    "contributions": ("introduction", "abstract", "conclusion"),
    "method": ("abstract", "methods", "introduction"),
    "results": ("abstract", "results", "conclusion"),
    "limitations": ("limitations", "discussion", "conclusion"),
    "conclusion": ("conclusion", "discussion", "abstract"),
}
# What an abstract answers
OF_THE_WHOLE = "What is this paper about?"
# What a summary has behind the abstract: the heading, the question that it answers, and the kind of section that does
SUMMARY_PARTS: tuple[tuple[str, str, Kind], ...] = (
    ("Contributions", "What are the main contributions of this paper?", "introduction"),
    ("Method", "What method does this paper use?", "methods"),
    ("Results", "What are the main results of this paper?", "results"),
    ("Limits", "What are the limitations of this paper?", "limitations"),
)
# Passages of each kind of section in a summary's evidence, at most
_OF_EACH = 3
# Passages of one kind of section, at most: an introduction has its contributions at its end.
_PER_SECTION = 2


def whole_paper_hits(question: Question, passages: Sequence[Hit], found: Sequence[Hit], most: int) -> list[Hit]:
    """At most this many passages of a paper for a question about it as a whole, those to be cited first at the front.

    passages: all of the paper, in its order. found: what a search in it has found. The first page is always there.
    """
    aspect = question.type.aspect or "about"
    if aspect == "summary":
        kinds: list[Kind] = ["abstract", *(kind for _, _, kind in SUMMARY_PARTS), "conclusion"]
        each = [[hit for hit in passages if kind in _kinds(hit)][:_OF_EACH] for kind in kinds]
        return list({hit.chunk.id: hit for hits in (passages[:1], *each) for hit in hits}.values())
    chosen: list[Hit] = []
    for kind in SECTIONS.get(aspect, ()):
        inside = [hit for hit in passages if kind in _kinds(hit)]
        if kind == "introduction" and aspect == "contributions":
            inside.sort(key=lambda hit: -len(question.terms & frozenset(tokenize(hit.text))))
        chosen += inside[:_PER_SECTION]
    kept = list({hit.chunk.id: hit for hit in (*chosen, *found)}.values())[:most]
    if passages and all(hit.chunk.id != passages[0].chunk.id for hit in kept):
        kept = [*kept[: most - 1], passages[0]]
    return kept


def _kinds(hit: Hit) -> set[Kind]:
    return kinds_of(hit.paper, hit.chunk.start, hit.chunk.end)


def kinds_of(paper: Paper, start: int, end: int) -> set[Kind]:
    """The kinds of the sections that the characters [start, end) of a paper are in, those around them included."""
    return {section.kind for section in paper.sections.sections if section.start < end and start < section.end}
