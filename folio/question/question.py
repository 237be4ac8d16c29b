"""A question and its properties. Made once where a question enters, and passed down; each property is computed at most
once, when it is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from folio.papers.sections import Kind
from folio.question.kind import QuestionType, asked_measure, asks_for_number, question_type
from folio.question.library import FactsQuestion, LibraryQuestion, library_question, wanted_papers
from folio.question.parts import compared_things, parts_alone, questions_in, thing_in
from folio.text import tokenize

# Words that ask for a kind of text which is excluded from the evidence otherwise
_KIND_WORDS: tuple[tuple[Kind, str], ...] = (
    ("references", r"references?|bibliograph\w*|cit(?:e|es|ed|ing|ations?)|works? cited|literature"),
    (
        "acknowledgements",
        r"acknowledg\w*|fund(?:s|ed|er|ers|ing)?|grants?|sponsor\w*|financ\w+|awards?|thank(?:s|ed|ing)?"
        r"|supported by|host(?:s|ed|ing)?|organi[sz]ations?|institutions?|agenc(?:y|ies)|foundations?|events?|helped",
    ),
    (
        "boilerplate",
        r"licen[cs]\w*|copyright\w*|permissions?|affiliat\w*|correspond(?:ing|ence)|e-?mails?|address(?:es)?"
        r"|authors?|wrote|written by|contribut\w+|universit\w+|institut\w*|departments?|fund(?:ed|er|ers|ing)?"
        r"|competing|conflicts? of interests?|declar\w+|received|accepted|submitted|published|publication|keywords?"
        r"|index terms|table of contents|list of (?:figures|tables)",
    ),
)
_ASKS_FOR_KIND = tuple((kind, re.compile(rf"\b(?:{words})\b", re.I)) for kind, words in _KIND_WORDS)


@dataclass(frozen=True)
class Question:
    """A question that stands alone."""

    text: str
    typed: str = ""  # the original of a corrected spelling; "" if it is the text
    readings: tuple[str, ...] = ()  # a follow-up's search queries, the reranker's first; () for others
    senses: tuple[str, ...] = ()  # a follow-up's possible meanings, the likeliest first; () if it is clear

    @classmethod
    def of(cls, question: Question | str) -> Question:
        """The question itself, or a new one with this text."""
        return question if isinstance(question, Question) else cls(question)

    @cached_property
    def type(self) -> QuestionType:
        """The kind of its answer, and its aspect of a paper."""
        return question_type(self.text)

    @cached_property
    def asks_for_number(self) -> bool:
        """Whether it asks for a number and nothing else."""
        return asks_for_number(self.text)

    @cached_property
    def measure(self) -> str:
        """The measure that it asks for; "" for none."""
        return asked_measure(self.text)

    @cached_property
    def things(self) -> tuple[str, ...]:
        """The two things that it compares; () for none."""
        return compared_things(self.text)

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """The several questions in it, if each stands alone; () for a single question."""
        return questions_in(self.text)

    @cached_property
    def parts(self) -> tuple[Question, ...]:
        """The parts to search one by one; () for a question without parts."""
        return tuple(map(Question, parts_alone(self.text)))

    def thing_of(self, part: Question) -> str:
        """The compared thing that a part is about; "" for none."""
        return thing_in(part.text, self.things)

    @cached_property
    def about_library(self) -> LibraryQuestion | FactsQuestion | None:
        """The question about the library; None for a question about the content of the papers."""
        return library_question(self.text)

    @cached_property
    def topic(self) -> str:
        """The topic of a question for papers; "" for others."""
        return wanted_papers(self.text)

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of text that are evidence for it but not for other questions."""
        return frozenset(kind for kind, words in _ASKS_FOR_KIND if words.search(self.text))

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Its search tokens, in order."""
        return tuple(tokenize(self.text))

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its search tokens."""
        return frozenset(self.tokens)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Its search tokens with a digit."""
        return frozenset(token for token in self.tokens if any(map(str.isdigit, token)))
