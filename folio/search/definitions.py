"""Puts passages that define what a question names first: the algorithm that it asks for, or a bare identifier's; and
knows how sentences define a term.

Rerankers compare meanings. "ML-KEM.KeyGen" alone has hardly any, and to a small model all identifiers look alike, so a
question that is nothing but an identifier keeps the order of the fused scores, after what defines it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

from folio.papers.model import Hit, Paper
from folio.papers.sections import PaperSection
from folio.question.named import NamedThing
from folio.text import sentence_spans, tokenize

LEAST_LIKE = 0.5  # likeness to an algorithm's name from which a question names it
MOST_NAMED = 4  # algorithms that are added to the candidates
DEFINES_WEIGHT = 0.1  # of the form of a definition, relative to 1 for a passage's score (LOG.md)
# How surely a passage defines an identifier: it has the algorithm of this name; begins a section with it in its title;
# begins a line with it and a sign or word that explains it
_ALGORITHM, _HEADING, _EXPLAINED = 2.0, 1.0, 0.5
_EXPLAINS = r"(?:[ ]{2,}|[ ]*[:=—–]|[ ]*\([^)\n]{3,80}\)?|[ ]+(?:is|are|denotes?|means|refers to|stands for|was)\b)"

# How surely a sentence defines a term: it says what the term is, what is called by it, introduces it, begins with it
_SAYS, _CALLS, _INTRODUCES, _BEGINS = 1.0, 0.9, 0.6, 0.3
SURELY_DEFINED = _CALLS
# What may stand before the term in a sentence that has it as its subject: "In this paper, the term", "Our"
_LEAD = (
    r"^\W{0,3}(?:(?:in (?:this|our) \w+|in short|(?:in)?formally|generally|briefly|here|recall that|note that)"
    r"[^,]{0,40},\s*)?(?:(?:the|an?|our|this)\s+)?(?:(?:term|notion|concept|idea|word|phrase|acronym)\s+(?:of\s+)?)?"
    r"[\"'“‘]?"
)
_ADVERBS = r"(?:(?:also|often|sometimes|usually|simply|essentially|basically|thus|then|typically|generally)\s+)*"
_IS = (
    r"(?:(?:is|are)\s+(?:(?:defined|simply|essentially|basically|just|also|thus)\s+(?:as\s+|to be\s+)?)?"
    r"(?:(?:like\s+)?(?:an?|the|any|one|some|called|when|where|that|those)\b"
    r"|(?!\w+(?:ed|ing|en)\b)(?:[\w-]+\s+){1,4}(?:that|which|who|whose|where)\b)"
    r"|(?:means?|denotes?|refers? to|stands? for|is defined|are defined|consists? of|describes?|represents?"
    r"|can be (?:defined|seen|thought|viewed|described)|(?:occurs?|happens?|arises?) (?:when|if))\b)"
)
_CALL = (
    r"\b(?:called|known as|termed|named|dubbed|referred to as|denoted(?: by)?|defines?|call|so-called|that is,)\s+"
    r"(?:(?:this|it|them|these|such|that)\s+)?(?:(?:the|an?|as)\s+)*[\"'“‘]?(?:[\w-]+\s+){0,2}?"
)
_INTRODUCE = (
    r"\b(?:introduces?|presents?|proposes?|describes?|developed|implements?|offers?)\s+"
    r"(?:(?:the|an?|our|new|novel|here)\s+)*[\"'“‘]?"
)


@dataclass(frozen=True, slots=True)
class Term:
    """A term whose definition is asked for."""

    name: str

    def defined_in(self, sentence: str) -> float:
        """How surely a sentence defines it, by its form: 0 (it is not named) to 1 ("A grace period is a time ...")."""
        return next((sure for sure, pattern in _definitions_of(self.name) if pattern.search(sentence)), 0.0)

    def defined_by(self, text: str) -> float:
        """How surely a sentence of a text defines it."""
        return max((self.defined_in(text[start:end]) for start, end in sentence_spans(text)), default=0.0)


@lru_cache(maxsize=64)
def _definitions_of(name: str) -> tuple[tuple[float, re.Pattern[str]], ...]:
    """The forms of sentences that define a term, the surest first. The term may have a plural's ending and dashes."""
    words = (word[:-1] if len(word) > 3 and re.search(r"[^s]s$", word) else word for word in re.findall(r"\w+", name))
    term = r"(?<!\w)" + r"[\s–-]*".join(rf"{re.escape(word)}(?:e?s)?" for word in words) + r"(?!\w)"
    subject = rf"{_LEAD}(?:{term}[\"'”’]?(?:\s*\([^)]{{1,60}}\))?|(?:[\w-]+\s+){{1,8}}\({term}\))"
    forms = (
        (_SAYS, rf"{subject}(?:,[^,]{{1,50}},|,)?\s*{_ADVERBS}{_IS}"),
        (_CALLS, rf"{_LEAD}{term}[\"'”’]?\s*(?:[:=—–]|,\s+(?:an?|the|which|i\.e\.)\s)"),
        (_CALLS, rf"{_CALL}{term}|{term}\s+(?:if and only if|iff)\b"),
        (_INTRODUCES, rf"{_INTRODUCE}{term}"),
        (_BEGINS, rf"{_LEAD}{term}|{term}\s*\([A-Z]|\(\s*{term}\s*\)"),
    )
    return tuple((sure, re.compile(form, re.I)) for sure, form in forms)


def algorithms_named(named: NamedThing, hits: Sequence[Hit]) -> list[tuple[str, int]]:
    """The algorithms that a question names in the papers of these hits, and no hit has: their papers' ids and starts.

    At most MOST_NAMED, the likeliest first.
    """
    if not named.asks:
        return []
    known = {(hit.paper.id, section.start) for hit in hits for section in _algorithms_in(hit)}
    found = [
        ((likeness, _of_paper(named, paper)), paper.id, section.start)
        for paper in {hit.paper.id: hit.paper for hit in hits}.values()
        for section in paper.sections.sections
        if section.kind == "algorithm"
        and (paper.id, section.start) not in known
        and (likeness := named.likeness(section.title)) >= LEAST_LIKE
    ]
    likely = sorted(found, key=lambda one: one[0], reverse=True)
    return [(paper, start) for _, paper, start in likely[:MOST_NAMED]]


def _of_paper(named: NamedThing, paper: Paper) -> int:
    """How many of the words with which a question names something are in a paper's title or file name."""
    return len(named.terms.intersection(tokenize(f"{paper.title} {paper.file}")))


def _algorithms_in(hit: Hit) -> list[PaperSection]:
    """The algorithms that begin in a passage."""
    sections = hit.paper.sections.sections
    return [each for each in sections if each.kind == "algorithm" and hit.chunk.start <= each.start < hit.chunk.end]


def first_where_defined(named: NamedThing, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, best first, with those before the others that have the algorithm that a question names.

    Of several, the one in the paper that it names comes first: "Algorithm 6 of FIPS 203". Scores fall: a hit that moves
    up gets the score of the best.
    """
    likeness = [_of_algorithm(named, hit) for hit in hits]
    if not any(likeness):
        return list(hits)
    best = max(hit.score for hit in hits)
    of_paper = [_of_paper(named, hit.paper) if like else 0 for like, hit in zip(likeness, hits, strict=True)]
    order = sorted(range(len(hits)), key=lambda place: (-likeness[place], -of_paper[place]))
    return [replace(hits[place], score=best) if likeness[place] else hits[place] for place in order]


def raised_by_definition(term: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, best first, those raised that have a sentence in the form of a definition of the term; "" raises none.

    Scores from 0 to 1 stay so.
    """
    if not term:
        return list(hits)
    sure = [Term(term).defined_by(hit.text) for hit in hits]
    scores = [(hit.score + DEFINES_WEIGHT * own) / (1 + DEFINES_WEIGHT) for hit, own in zip(hits, sure, strict=True)]
    raised = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(raised, key=lambda hit: -hit.score)


def by_definition(named: NamedThing, hits: Sequence[Hit]) -> list[Hit]:
    """The hits for a bare identifier, best first, those that have it before the others.

    Their scores are fused ones, from 0 to 1. They fall: a hit has at least the score of those behind it.
    """
    sure = [_definition(named, hit) for hit in hits]
    scores = [(own + hit.score) / (1 + _ALGORITHM) for own, hit in zip(sure, hits, strict=True)]
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    written = re.compile(rf"(?<!\w){_words_of(named)}(?!\w)", re.I)
    ordered = sorted(scored, key=lambda hit: (written.search(hit.text) is None, -hit.score))
    least = [*accumulate((hit.score for hit in reversed(ordered)), max)]
    return [replace(hit, score=score) for hit, score in zip(ordered, reversed(least), strict=True)]


def _of_algorithm(named: NamedThing, hit: Hit) -> float:
    """The likeness to what is named of the algorithms that begin in a passage, at least LEAST_LIKE; else 0."""
    likeness = max((named.likeness(section.title) for section in _algorithms_in(hit)), default=0.0)
    return likeness if likeness >= LEAST_LIKE else 0.0


def _definition(named: NamedThing, hit: Hit) -> float:
    """How surely a passage defines an identifier."""
    if likeness := _of_algorithm(named, hit):
        return _ALGORITHM * likeness
    start, end = hit.chunk.start, hit.chunk.end
    headings = (s.title for s in hit.paper.sections.headed if start <= s.start < end)
    if any(named.terms <= frozenset(tokenize(heading)) for heading in headings):
        return _HEADING
    explained = re.compile(rf"(?:^|[.!?]\s+)\W{{0,3}}(?:(?:the|a|an)\s+)?{_words_of(named)}{_EXPLAINS}", re.I | re.M)
    return _EXPLAINED if explained.search(hit.text) else 0.0


def _words_of(named: NamedThing) -> str:
    """A pattern of the question's words."""
    return r"\s+".join(map(re.escape, named.text.split()))
