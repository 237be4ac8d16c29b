"""Questions that the papers answer, to suggest to people: from what papers define, each checked by asking it.

A candidate comes from a sentence that defines a subject of its paper: something in its title, its headings or its
abstract. It is suggested if the built-in answerer answers it, without the warning that the passages may not answer,
and quotes a sentence about that subject. So a library may have no suggestions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from time import process_time

from folio.answer.blocks import blocks
from folio.answer_types import CLOSEST, Answer, Evidence
from folio.papers.metadata import headings
from folio.papers.model import Chunk, Hit, Paper
from folio.papers.sections import Kind
from folio.text import fold, one_line, tokenize

MOST_EXAMPLES, LEAST_EXAMPLES, MOST_FOLLOWUPS = 5, 3, 3
BUDGET_S = 2.0  # CPU time of the process
_MOST_PAPERS = 12  # papers that are read for candidates
_MOST_OF_PAPER = 4  # candidates of a paper
_FRONT = 30_000  # characters of a paper that are read
_LEAST_USES = 4  # of a subject in its paper
_TIMES_NAMES = 3  # a word is no name if it is this many times as often without a capital
_TELLING = 60  # folded characters that tell a sentence from others
_NAMED = re.compile(r"([A-Z][\w’-]*[a-z0-9A-Z](?: [A-Z][\w’-]+)?):\s")
# "A hash tree is a", "Proof-of-stake is an", "Macaroons are"
_DEFINES = re.compile(
    r"(?:(?P<article>An?|The) )?(?P<subject>[^\W\d_][\w’-]*(?: [^\W\d_][\w’-]*){0,3}?)(?: \([^()]{2,12}\))?"
    r" (?P<verb>is|are) (?:an?|the|any|one of the|defined as)\b"
)
_LONGEST_TITLE = 80  # characters of a title in a question
# Kind of section -> a question that such a section answers
_ABOUT_SECTIONS: dict[Kind, str] = {
    "limitations": "What are the limitations of {subject}?",
    "results": "What are the main results of {subject}?",
    "conclusion": "What does {work} conclude?",
}
_NOT_A_SUBJECT = frozenset(
    "this that these those there here it they he she we you i one each every both all some many most such another other"
    " which what who where when how if and or but as in on at of for to from by with not no our their its his her my"
    " first second third last next final main major key important goal aim purpose idea reason result paper section"
    " figure table example problem question following above below only also then thus hence so".split()
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that a paper may answer."""

    question: str
    subject: str
    paper: str
    definition: str  # folded words of the sentence that answers it; "" if any sentence of the section may
    section: Kind | None = None  # the kind of section that answers it


# Asks a question of the papers; returns the answer
Ask = Callable[[str], Answer]
# The characters [start, end) of a paper's text
TextOf = Callable[[Paper, int, int], str]


class Examples:
    """Questions from different papers of a library, looked for in steps with a budget of time."""

    def __init__(self, papers: Sequence[Paper], text_of: TextOf, known: Sequence[Candidate] = ()) -> None:
        """papers: in the order in which they are tried. known: those found before the library changed."""
        self._candidates = _in_turn(_named_first(papers)[:_MOST_PAPERS], text_of)
        here = {paper.id for paper in papers}
        self.answered = [candidate for candidate in known if candidate.paper in here]
        self.is_complete = False

    @property
    def questions(self) -> list[str]:
        """Those found so far; none if they are fewer than LEAST_EXAMPLES and there may be more."""
        questions = [candidate.question for candidate in self.answered]
        return questions if self.is_complete or len(questions) >= LEAST_EXAMPLES else []

    def look(self, ask: Ask) -> None:
        """Look for more, for about BUDGET_S. Raises ModelError."""
        until = process_time() + BUDGET_S
        for candidate in self._candidates:
            if candidate not in self.answered and _answers(ask(candidate.question), candidate):
                self.answered.append(candidate)
            self.is_complete = len(self.answered) >= MOST_EXAMPLES
            if self.is_complete or process_time() > until:
                return
        self.is_complete = True


def followups(
    papers: Sequence[Paper], text_of: TextOf, ask: Ask, asked: Iterable[str], cited: Iterable[str]
) -> list[str]:
    """At most MOST_FOLLOWUPS questions that the cited papers answer from other passages. Raises ModelError.

    papers: the cited papers. asked: the questions so far. cited: the quotes that were shown for them.
    """
    until = process_time() + BUDGET_S
    earlier, quotes = [set(tokenize(question)) for question in asked], [fold(quote) for quote in cited]
    questions: list[str] = []
    for candidate in _in_turn(papers[:_MOST_PAPERS], text_of, whole_paper=True):
        if len(questions) == MOST_FOLLOWUPS or process_time() > until:
            break
        about = set(tokenize(candidate.question if candidate.section else candidate.subject))
        if any(about <= words for words in earlier):
            continue
        answer = ask(candidate.question)
        if _answers(answer, candidate) and not _repeats(answer, quotes):
            questions.append(candidate.question)
            quotes += [fold(quote.quote) for quote in answer.sentences[0].citations]
    return questions


def _repeats(answer: Answer, quotes: Iterable[str]) -> bool:
    """Whether the beginning of an answer quotes what was quoted before. quotes: folded."""
    quoted = [fold(quote.quote) for quote in answer.sentences[0].citations]
    return any(one in other or other in one for one in quoted for other in quotes)


def _in_turn(papers: Sequence[Paper], text_of: TextOf, *, whole_paper: bool = False) -> Iterator[Candidate]:
    """The best candidate of each paper, then the second one of each, and so on. A paper is read when it is needed."""
    left: list[list[Candidate]] = []
    for paper in papers:
        own = candidates(paper, text_of(paper, 0, _FRONT), whole_paper=whole_paper)
        yield from own[:1]
        left.append(own[1:])
    yield from filter(None, chain.from_iterable(zip_longest(*left)))


def candidates(paper: Paper, text: str, *, whole_paper: bool = False) -> list[Candidate]:
    """Questions about what a paper defines, the best first. text: the beginning of the paper's.

    whole_paper: also questions about its results, limits and conclusion.
    """
    if not text.strip():
        return []
    found: dict[str, Candidate] = {}
    for article, subject, verb, definition in _defined(paper, text):
        question = f"What {verb} {article}{subject}?"
        found.setdefault(fold(subject), Candidate(question, subject, paper.id, fold(definition)[:_TELLING]))
    result = list(found.values())[:_MOST_OF_PAPER]
    return result + (list(_about_sections(paper, text)) if whole_paper else [])


def _about_sections(paper: Paper, text: str) -> Iterator[Candidate]:
    """Questions that sections of a paper answer, such as its limitations."""
    name = _NAMED.match(paper.title)
    if name and _uses(name[1], text) >= _LEAST_USES:
        subject, work = name[1], f"the paper on {name[1]}"
    elif paper.metadata.title.sure and len(paper.title) <= _LONGEST_TITLE:
        subject = work = f"“{paper.title}”"
    else:
        return
    kinds = {section.kind for section in paper.sections.headed}
    for kind, question in _ABOUT_SECTIONS.items():
        if kind in kinds:
            yield Candidate(question.format(subject=subject, work=work), subject, paper.id, "", kind)


def _defined(paper: Paper, text: str) -> Iterator[tuple[str, str, str, str]]:
    """Article ("a ", "the " or ""), subject, verb ("is", "are") and sentence of each definition.

    Those of the name in the title come first.
    """
    name = _NAMED.match(paper.title)
    subjects = fold(" ".join([paper.title, paper.metadata.abstract.value, *headings(paper.sections)]))
    whole = Evidence(1, paper, 0, len(text), text, (Hit(Chunk(0, paper.id, 0, len(text)), paper, text, 0.0),))
    defined = []
    for block in blocks(whole):
        for place, part in enumerate(block.parts):
            sentence = one_line(block.text_of(place))
            match = _DEFINES.match(sentence) if part.can_answer and block.kind == "prose" else None
            if match and _is_subject(match, text, subjects):
                defined.append((*_as_asked(match, text), sentence))
    own = fold(name[1]) if name else ""
    yield from (each for each in defined if fold(each[1]) == own)
    yield from (each for each in defined if fold(each[1]) != own)


def _is_subject(match: re.Match[str], text: str, subjects: str) -> bool:
    """Whether a paper defines one of its subjects. subjects: its folded title, abstract and headings."""
    subject = match["subject"]
    words = subject.casefold().split()
    if match["article"] and len(words) == 1 and subject.islower():  # "the package", "a cover"
        return False
    if _NOT_A_SUBJECT & set(words) or fold(subject) not in subjects:
        return False
    return _uses(subject, text) >= _LEAST_USES and len(fold(subject)) > 2


def _uses(phrase: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])", text, re.I))


def _as_asked(match: re.Match[str], text: str) -> tuple[str, str, str]:
    """The parts of a definition as in the middle of a sentence."""
    subject, article = match["subject"], match["article"]
    if not article:  # the capital may be only that of the sentence
        first, space, rest = subject.partition(" ")
        forms = (first, first.lower())
        names, words = (len(re.findall(rf"(?<=[a-z,;] ){re.escape(form)}(?![\w-])", text)) for form in forms)
        if first == first.capitalize() and words >= _TIMES_NAMES * names:
            subject = f"{first.lower()}{space}{rest}"
    return (f"{article.lower()} " if article else ""), subject, match["verb"]


def _named_first(papers: Sequence[Paper]) -> list[Paper]:
    """Papers whose title begins with the name of what they introduce come first."""
    return sorted(papers, key=lambda paper: _NAMED.match(paper.title) is None)


def _answers(answer: Answer, candidate: Candidate) -> bool:
    """Whether the answer is sure, and begins with a quote of its paper that has the definition."""
    if not answer.sentences or answer.sentences[0].section.heading == CLOSEST.heading:
        return False
    own = [quote for quote in answer.sentences[0].citations if quote.paper.id == candidate.paper]
    if candidate.section is not None:
        own = [quote for quote in own if quote.paper.sections.kind(quote.start, quote.end) == candidate.section]
    return any(candidate.definition in fold(quote.quote) for quote in own)
