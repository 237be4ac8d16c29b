"""Whether evidence is about what a question names: its names, and the words of each of its parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import PurePath

from folio.answer_types import Evidence
from folio.papers.model import Paper
from folio.protocols import TermWeights
from folio.question.kind import ASKING
from folio.question.question import Question
from folio.text import STOP_WORDS, coverage, plain_words, tokenize, without_accents

MOST_OF_NAME = 4  # terms of a name that "and" joins to others
LEAST_OF_NAME = 0.5  # share of a name's words, by IDF, in a text about it


def without_quote(
    question: Question, quotes: Sequence[tuple[Paper, str]], term_weights: Callable[[Question], TermWeights]
) -> list[str]:
    """The parts of a question that no quote is about, by its text or its paper.

    A part is about its thing, or about the words that the other parts do not have.
    """
    missing = list[str]()
    for part in question.parts:
        others = [other.terms for other in question.parts if other is not part]
        thing = question.thing_of(part)
        weights = term_weights(Question(thing or part.text))
        if not thing:
            weights = {term: weights[term] for term in part.terms.difference(ASKING, *others)}
            if not question.questions and len(weights) > MOST_OF_NAME:  # no name, but another wording
                continue
        texts = [f"{known_words(paper)}\n{text}" for paper, text in quotes]
        # In a small library a common word that no passage has weighs more than all others.
        has_most = not thing and any(2 * len(weights.keys() & set(tokenize(text))) > len(weights) for text in texts)
        if weights and not has_most and not any(is_about(weights, text) for text in texts):
            missing.append(part.text)
    return missing


def known_words(paper: Paper) -> str:
    """What a question may call a paper by: its title and the initials of that, authors, year, venue, ids and file."""
    known = paper.metadata
    initials = "".join(word[0] for word in plain_words(paper.title) if word not in STOP_WORDS)
    authors = " ".join(map(str, known.authors.value))
    others = (known.year.value or "", known.venue.value, known.publisher.value, known.doi.value, known.arxiv.value)
    file = plain_words(PurePath(paper.file).stem.replace("_", " "))
    return " ".join(map(str, (paper.title, initials, authors, *others, *file)))


def is_about(weights: TermWeights, text: str) -> bool:
    """Whether a text has LEAST_OF_NAME of a name's words. weights: the IDF of these words."""
    return coverage(weights, tokenize(text)) >= LEAST_OF_NAME


def missing_names(question: Question, evidence: Sequence[Evidence]) -> list[str]:
    """The names and numbers of a question that no piece of evidence has, nor what is known of its paper."""
    texts = [f"{known_words(piece.paper)}\n{piece.text}" for piece in evidence] if question.names else []
    return [name for name in question.names if not any(has_name(text, name) for text in texts)]


def has_name(text: str, name: str) -> bool:
    """Whether a text has a name in one of its spellings."""
    return _as_printed(name).search(without_accents(text)) is not None


@lru_cache(maxsize=256)
def _as_printed(name: str) -> re.Pattern[str]:
    """A pattern for a name in other spellings: "GPT-4", "GPT 4", "CRDTs"; up to two words between two of its own."""
    single = re.sub(r"(?<=\w{3})(?<![sui])s$", "", without_accents(name))
    words = (r"[\W_]*".join(re.findall(r"\d+|[^\W\d_]+", word)) for word in single.split())
    return re.compile(r"(?<![^\W_])" + r"\W+(?:[\w.]+\W+){0,2}".join(words) + r"(?:s|es)?(?![^\W_])", re.I)
