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

from folio.answer.excerpts import blocks
from folio.answer_types import CLOSEST, Answer, Evidence
from folio.papers.metadata import headings
from folio.papers.model import Chunk, Hit, Paper
from folio.text import fold, one_line, tokenize

MOST_EXAMPLES, LEAST_EXAMPLES, MOST_FOLLOWUPS = 5, 3, 3
BUDGET_S = 2.0  # CPU time of the process
_MOST_PAPERS = 12  # papers that are read for candidates
_MOST_OF_PAPER = 4  # candidates of a paper
_FRONT = 30_000  # characters of a paper that are read
_LEAST_USES = 4  # of a subject in its paper
_NAMED = re.compile(r"([A-Z][\w’-]*[a-z0-9A-Z](?: [A-Z][\w’-]+)?):\s")
# "A hash tree is a", "Proof-of-stake is an", "Macaroons are"
_DEFINES = re.compile(
    r"(?:(?P<article>An?|The) )?(?P<subject>[^\W\d_][\w’-]*(?: [^\W\d_][\w’-]*){0,3}?)(?: \([^()]{2,12}\))?"
    r" (?P<verb>is|are) (?:an?|the|any|one of the|defined as)\b"
)
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


# Asks a question of the papers; returns the answer
Ask = Callable[[str], Answer]


def examples(papers: Sequence[Paper], text_of: Callable[[Paper, int, int], str], ask: Ask) -> list[str]:
    """A few questions from different papers; none if fewer than LEAST_EXAMPLES are answered. Raises ModelError.

    papers: in the order in which they are tried.
    """
    until = process_time() + BUDGET_S
    each = [candidates(paper, text_of(paper, 0, _FRONT)) for paper in _named_first(papers)[:_MOST_PAPERS]]
    rounds = chain.from_iterable(zip_longest(*each))
    answered = _answered(filter(None, rounds), ask, until, MOST_EXAMPLES, lambda answer: True)
    return answered if len(answered) >= LEAST_EXAMPLES else []


def followups(
    papers: Sequence[Paper],
    text_of: Callable[[Paper, int, int], str],
    ask: Ask,
    asked: Iterable[str],
    cited: Iterable[str],
) -> list[str]:
    """At most MOST_FOLLOWUPS questions that the cited papers answer from other passages. Raises ModelError.

    papers: the cited papers. asked: the questions so far. cited: the quotes that were shown for them.
    """
    until = process_time() + BUDGET_S
    earlier, quotes = [set(tokenize(question)) for question in asked], [fold(quote) for quote in cited]

    def is_new(answer: Answer) -> bool:
        quoted = [fold(citation.quote) for citation in answer.sentences[0].citations]
        return not any(one in other or other in one for one in quoted for other in quotes)

    each = [candidates(paper, text_of(paper, 0, _FRONT)) for paper in papers[:_MOST_PAPERS]]
    rounds = filter(None, chain.from_iterable(zip_longest(*each)))
    fresh = (one for one in rounds if not any(set(tokenize(one.subject)) <= words for words in earlier))
    return _answered(fresh, ask, until, MOST_FOLLOWUPS, is_new)


def candidates(paper: Paper, text: str) -> list[Candidate]:
    """Questions about what a paper defines, the best first. text: the beginning of the paper's."""
    if not text.strip():
        return []
    found: dict[str, Candidate] = {}
    for article, subject, verb in _defined(paper, text):
        found.setdefault(fold(subject), Candidate(f"What {verb} {article}{subject}?", subject, paper.id))
    name = _NAMED.match(paper.title)
    if name and fold(name[1]) in found and " is " in found[fold(name[1])].question:
        subject = found[fold(name[1])].subject
        found["how"] = Candidate(f"How does {subject} work?", subject, paper.id)
        if any(section.kind == "limitations" for section in paper.sections.headed):
            found["limits"] = Candidate(f"What are the limitations of {subject}?", subject, paper.id)
    return list(found.values())[:_MOST_OF_PAPER]


def _defined(paper: Paper, text: str) -> Iterator[tuple[str, str, str]]:
    """Article ("a ", "the " or ""), subject and verb ("is", "are") of each definition, the title's name first."""
    name = _NAMED.match(paper.title)
    subjects = fold(" ".join([paper.title, paper.metadata.abstract.value, *headings(paper.sections)]))
    whole = Evidence(1, paper, 0, len(text), text, (Hit(Chunk(0, paper.id, 0, len(text)), paper, text, 0.0),))
    defined = []
    for block in blocks(whole):
        for place, part in enumerate(block.parts):
            match = (
                _DEFINES.match(one_line(block.text_of(place))) if part.can_answer and block.kind == "prose" else None
            )
            if match and _is_subject(match, text, subjects):
                defined.append(_as_asked(match, text))
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
    uses = len(re.findall(rf"(?<![\w-]){re.escape(subject)}(?![\w-])", text, re.I))
    return uses >= _LEAST_USES and len(fold(subject)) > 2


def _as_asked(match: re.Match[str], text: str) -> tuple[str, str, str]:
    """The parts of a definition as in the middle of a sentence."""
    subject, article = match["subject"], match["article"]
    if not article:  # the capital may be only that of the sentence
        first, space, rest = subject.partition(" ")
        counts = [len(re.findall(rf"(?<=[a-z,;] ){re.escape(form)}(?![\w-])", text)) for form in (first, first.lower())]
        subject = f"{first.lower()}{space}{rest}" if first == first.capitalize() and counts[1] >= counts[0] else subject
    return (f"{article.lower()} " if article else ""), subject, match["verb"]


def _named_first(papers: Sequence[Paper]) -> list[Paper]:
    """Papers whose title begins with the name of what they introduce come first."""
    return sorted(papers, key=lambda paper: _NAMED.match(paper.title) is None)


def _answered(
    among: Iterable[Candidate], ask: Ask, until: float, most: int, accepts: Callable[[Answer], bool]
) -> list[str]:
    """The first `most` questions that are answered, until this CPU time."""
    questions: list[str] = []
    for candidate in among:
        if len(questions) == most or process_time() > until:
            break
        answer = ask(candidate.question)
        if _answers(answer, candidate) and accepts(answer):
            questions.append(candidate.question)
    return questions


def _answers(answer: Answer, candidate: Candidate) -> bool:
    """Whether the answer is sure, and quotes a sentence about the subject from its paper."""
    if not answer.sentences or answer.sentences[0].section.heading == CLOSEST.heading:
        return False
    quotes = answer.sentences[0].citations
    return any(quote.paper.id == candidate.paper and fold(candidate.subject) in fold(quote.quote) for quote in quotes)
