"""Questions about a paper as a whole, such as what it contributes: the sections that answer them.

They share hardly a word with their answer, so search alone finds other passages.
"""

from __future__ import annotations

from collections.abc import Sequence

from folio.papers.model import Hit, Paper
from folio.papers.sections import Kind
from folio.question.kind import Aspect
from folio.question.question import Question
from folio.text import tokenize

# The sections with the answer, best first
SECTIONS: dict[Aspect, tuple[Kind, ...]] = {
    "about": ("abstract", "introduction", "conclusion"),
    "contributions": ("introduction", "abstract", "conclusion"),
    "method": ("abstract", "methods", "introduction"),
    "results": ("abstract", "results", "conclusion"),
    "limitations": ("limitations", "discussion", "conclusion"),
    "conclusion": ("conclusion", "discussion", "abstract"),
}
ABOUT_QUESTION = "What is this paper about?"  # which an abstract answers
# The parts of a summary after the abstract: heading, question, and the kind of section that answers it
SUMMARY_PARTS: tuple[tuple[str, str, Kind], ...] = (
    ("Contributions", "What are the main contributions of this paper?", "introduction"),
    ("Method", "What method does this paper use?", "methods"),
    ("Results", "What are the main results of this paper?", "results"),
    ("Limits", "What are the limitations of this paper?", "limitations"),
)
_OF_SUMMARY = 3  # maximum passages of each kind of section in a summary's evidence
_PER_SECTION = 2  # maximum passages of each kind of section in other evidence


def whole_paper_hits(question: Question, passages: Sequence[Hit], hits: Sequence[Hit], most: int) -> list[Hit]:
    """At most `most` passages for a question about a paper as a whole, best first; always has the first passage.

    passages: all of the paper, in order. hits: the result of a search in the paper.
    """
    aspect = question.type.aspect or "about"
    if aspect == "summary":
        kinds: list[Kind] = ["abstract", *(kind for _, _, kind in SUMMARY_PARTS), "conclusion"]
        each = [[hit for hit in passages if kind in _kinds(hit)][:_OF_SUMMARY] for kind in kinds]
        return list({hit.chunk.id: hit for own in (passages[:1], *each) for hit in own}.values())
    chosen: list[Hit] = []
    for kind in SECTIONS.get(aspect, ()):
        inside = [hit for hit in passages if kind in _kinds(hit)]
        if kind == "introduction" and aspect == "contributions":  # which are at its end
            inside.sort(key=lambda hit: -len(question.terms & frozenset(tokenize(hit.text))))
        chosen += inside[:_PER_SECTION]
    kept = list({hit.chunk.id: hit for hit in (*chosen, *hits)}.values())[:most]
    if passages and all(hit.chunk.id != passages[0].chunk.id for hit in kept):
        kept = [*kept[: most - 1], passages[0]]
    return kept


def _kinds(hit: Hit) -> set[Kind]:
    return kinds_of(hit.paper, hit.chunk.start, hit.chunk.end)


def kinds_of(paper: Paper, start: int, end: int) -> set[Kind]:
    """The kinds of all sections, outer ones too, that the characters [start, end) of a paper are in."""
    return {section.kind for section in paper.sections.sections if section.start < end and start < section.end}
