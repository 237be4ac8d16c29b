"""A question, and what is known of it from its words: made once where it enters, and passed down to all that asks.

What nobody asks of it is not worked out, and what somebody asks is worked out once.
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

# What a question says that asks for a kind of text which is no evidence otherwise
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
    typed: str = ""  # as it was typed, where a misspelt word was replaced; "" if it was typed like that
    readings: tuple[str, ...] = ()  # what a follow-up is searched with, the reranker's first; () if it is none
    senses: tuple[str, ...] = ()  # what a follow-up may mean, the first as it was understood; () if that is sure

    @classmethod
    def of(cls, question: Question | str) -> Question:
        """The question, or the one with this text."""
        return question if isinstance(question, Question) else cls(question)

    @cached_property
    def type(self) -> QuestionType:
        """The kind of its answer, with the aspect of a paper that it asks for."""
        return question_type(self.text)

    @cached_property
    def asks_for_number(self) -> bool:
        """Whether it asks for a number, and for nothing else."""
        return asks_for_number(self.text)

    @cached_property
    def measure(self) -> str:
        """What it asks the value of, "" if it asks for no value of a named measure."""
        return asked_measure(self.text)

    @cached_property
    def things(self) -> tuple[str, ...]:
        """The two things that it compares; () if it compares none."""
        return compared_things(self.text)

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """The questions in it, if each stands alone; () if it asks only one."""
        return questions_in(self.text)

    @cached_property
    def parts(self) -> tuple[Question, ...]:
        """The parts to search for one by one; () for a question that has none."""
        return tuple(map(Question, parts_alone(self.text)))

    def thing_of(self, part: Question) -> str:
        """Which of the things that it compares a part of it is about; "" for none."""
        return thing_in(part.text, self.things)

    @cached_property
    def about_library(self) -> LibraryQuestion | FactsQuestion | None:
        """What it wants to know of the library itself; None if it asks what the papers say."""
        return library_question(self.text)

    @cached_property
    def topic(self) -> str:
        """The subject, where it asks which papers say something on it; else ""."""
        return wanted_papers(self.text)

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of text that are searched for it although they are no evidence for other questions."""
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
        """Its search tokens that have a digit."""
        return frozenset(token for token in self.tokens if any(map(str.isdigit, token)))
