"""A question and its properties. Made once where a question enters, and passed down; each property is computed at most
once, when it is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from folio.papers.sections import Kind
from folio.question.kind import QuestionType, asked_measure, asked_term, asks_for_number, question_type
from folio.question.library import FactsQuestion, LibraryQuestion, WantedPapers, library_question, wanted_papers
from folio.question.named import NamedThing
from folio.question.parts import compared_things, question_parts, questions_in, resolved, thing_in
from folio.text import STOP_WORDS, shorten, tokenize

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


# Words of questions about a selection that say nothing about its content
_ABOUT_SELECTION = frozenset(
    tokenize(
        "mean means meaning meant explain explained explanation define definition tell say says said state stated claim"
        " claimed true correct right else elsewhere paper papers author authors anyone anybody someone passage sentence"
        " text word words part selection selected quote agree agrees disagree disagrees contradict contradicts dispute"
        " disputes deny denies refute refutes oppose opposes support supports evidence find found come comes context"
        " more detail details please simple simply terms understand clarify summarise summarize short"
    )
)
_ELSEWHERE = re.compile(r"\b(?:else|elsewhere|(?:other|which|any) (?:papers?|works?|authors?|studies))\b", re.I)
_DISAGREES = re.compile(
    r"\b(?:disagree\w*|contradict\w*|disput\w+|den(?:y|ies|ied)|refut\w+|oppos\w+|argues? against|challeng\w+)\b", re.I
)
_THIS = re.compile(r"\b(?:this|that|these|it)\b", re.I)
_SAMPLES = re.compile(
    r"\b(?:samples?|examples?|prompt\w*|generat\w+|outputs?|completions?|transcripts?|dialogues?|conversations?|templates?"
    r"|instructions?|questionnaires?|items?|appendi(?:x|ces)|phras\w+)\b",
    re.I,
)
# Names: words with a capital, but not the first of a sentence, and with a digit
_NAME = r"(?:[A-Z][\w+-]*|\w*\d[\w-]*(?:[.,]\d+)*)"
_NAMES = re.compile(rf"(?<!^)(?<![?.!] )(?<![\w.-]){_NAME}(?: {_NAME})*")
_PERSON_WORD = re.compile(r"[A-Z][a-z]{2,}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_PLACE_WORD = re.compile(
    r"(?:algorithm|appendix|chapter|equation|eq|fig|figure|listing|page|part|section|step|table|theorem)s?", re.I
)
_MOST_WORDS_OF_A_NAME = 5  # so many selected words or fewer name a thing; more say something
_SHOWN_SELECTION = 200  # characters


def asks_elsewhere(text: str) -> bool:
    """Whether a question about a selection asks for other places: "Where else is this said?", "Who disagrees?"."""
    return asks_where(text) or bool(_DISAGREES.search(text))


def asks_where(text: str) -> bool:
    """Whether a question about a selection asks where else the same is said."""
    return bool(_ELSEWHERE.search(text)) and not _DISAGREES.search(text)


@dataclass(frozen=True)
class Question:
    """A question that stands alone."""

    text: str
    typed: str = ""  # the original of a corrected spelling; "" if it is the text
    readings: tuple[str, ...] = ()  # a follow-up's search queries, the reranker's first; () for others
    senses: tuple[str, ...] = ()  # a follow-up's possible meanings, the likeliest first; () if it is clear
    about: str = ""  # the selected words of a paper that "this" means; "" for a question without a selection

    @classmethod
    def of(cls, question: Question | str) -> Question:
        """The question itself, or a new one with this text."""
        return question if isinstance(question, Question) else cls(question)

    @cached_property
    def worded(self) -> Question:
        """The question in words that a passage with its answer has: with a selection, the selected words.

        A few selected words take the place of "this". Many follow the question's own words, which are left out if they
        only point at the selection.
        """
        if not self.about:
            return self
        if len(self.about.split()) <= _MOST_WORDS_OF_A_NAME and not asks_elsewhere(self.text):
            named, count = _THIS.subn(lambda _: self.about, self.text, count=1)
            return Question(named if count else f"{self.text} {self.about}")
        return Statement(self.about if self.only_points else f"{self.text} {self.about}")

    @cached_property
    def only_points(self) -> bool:
        """Whether its words only point at the selected ones: "What does this mean?", "Where else is this said?"."""
        return bool(self.about) and self.terms <= _ABOUT_SELECTION

    @cached_property
    def standing(self) -> str:
        """The text, with the beginning of the selected words."""
        return f"{self.text} “{shorten(self.about, _SHOWN_SELECTION)}”" if self.about else self.text

    @cached_property
    def asks_who_disagrees(self) -> bool:
        """Whether it asks who disagrees with the selected words."""
        return bool(self.about and _DISAGREES.search(self.text))

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
    def term(self) -> str:
        """The term whose definition it asks for; "" for none."""
        return asked_term(self.text) if self.type.kind == "definition" else ""

    @cached_property
    def things(self) -> tuple[str, ...]:
        """The things that it compares; () for none, and for several questions."""
        return () if self.questions else compared_things(self.text)

    @cached_property
    def as_asked(self) -> tuple[str, ...]:
        """The several questions in it, in their own words; () for a single one."""
        return questions_in(self.text)

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """The several questions in it, with the thing of the first in place of a pronoun; () for a single one."""
        first, *others = self.as_asked or ("",)
        return (first, *(resolved(first, part) for part in others)) if first else ()

    @property
    def own_words(self) -> dict[str, str]:
        """Each of its `questions` in its own words."""
        return dict(zip(self.questions, self.as_asked, strict=True))

    @cached_property
    def parts(self) -> tuple[Question, ...]:
        """The parts to search one by one; () for a question without parts."""
        return tuple(map(Question, self.questions or question_parts(self.text)))

    def thing_of(self, part: Question) -> str:
        """The thing that a part is about, of those that are compared; "" for none."""
        return thing_in(part.text, self.things)

    @cached_property
    def about_library(self) -> LibraryQuestion | FactsQuestion | None:
        """The question about the library; None for a question about the content of the papers."""
        return library_question(self.text)

    @cached_property
    def papers(self) -> WantedPapers:
        """The papers that it asks for; nothing for other questions."""
        return wanted_papers(self.text)

    @property
    def topic(self) -> str:
        """The topic of a question for papers; "" for others."""
        return self.papers.topic

    @cached_property
    def named(self) -> NamedThing:
        """What it names, as it may be the label or the name of an algorithm."""
        return NamedThing.of(self.text)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Its names, numbers and identifiers: "Stephen Curry", "GPT-4", "SP 800-218"; not "Table 2"."""
        found = list[str]()
        words = re.findall(r"[^\W\d_]{2,}", self.text)[1:]
        if self.text.isupper() or any(word.istitle() and word.lower() in STOP_WORDS for word in words):
            return ()  # all words are capitalised: "What Is the Batch Size"
        for match in _NAMES.finditer(self.text):
            words = [re.sub(r"(?:-[a-z]+)+$", "", word) for word in match.group().split()]  # "Paxos-based"
            is_person = len(words) == 2 and all(map(_PERSON_WORD.fullmatch, words))
            is_version = len(words) == 2 and words[1][0].isdigit() and not _YEAR.fullmatch(words[1])
            if is_version and _PLACE_WORD.fullmatch(words[0]):
                continue
            found += [" ".join(words)] if is_person or is_version else words
        return tuple(dict.fromkeys(name for name in found if tokenize(name)))

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of text that are evidence for it but not for other questions."""
        return frozenset(kind for kind, words in _ASKS_FOR_KIND if words.search(self.text))

    @cached_property
    def asks_for_samples(self) -> bool:
        """Whether it may be answered by sample text in an appendix: a prompt, generated text, an item of data."""
        return _SAMPLES.search(self.text) is not None

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


@dataclass(frozen=True)
class Statement(Question):
    """Words of a paper to search for. Whatever they say, they ask nothing."""

    type = QuestionType("other")
    asks_for_number = False
    measure = ""
    term = ""
    things = ()
    questions = ()
    parts = ()
    about_library = None
    papers = WantedPapers()
    kinds = frozenset()
