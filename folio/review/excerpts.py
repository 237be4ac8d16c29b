"""The sentences of a paper that somebody who has not seen it can read by themselves.

A review shows sentences without what stood around them. One that points elsewhere ("these results", "as mentioned
above", "Fig. 3"), is cut, or is mostly a formula, is left out here, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from folio.answer.about import ELSEWHERE, OWN_WORK
from folio.answer.blocks import Block, Part, blocks, leans
from folio.answer_types import Evidence, Quote
from folio.papers.model import Chunk, Hit, Paper
from folio.papers.sections import NOT_EVIDENCE, Kind
from folio.text import UNREAD_FORMULA, one_line

LONGEST_TEXT = 400_000  # characters of a paper that are read
_SHORTEST, _LONGEST = 8, 55  # words of a sentence
_MOST_WORDS = 70  # of a sentence with those that continue it
_LEFT_OUT: frozenset[Kind] = NOT_EVIDENCE | {"caption", "footnote", "appendix", "algorithm"}
# What a paper may call itself: "This abstract presents" begins no less than "This paper presents"
OWN = rf"(?:{OWN_WORK}|abstract|reproduction|note|letter|lecture|package|tool|software|library|manual|collection)"
_BEGINS = re.compile(rf"(?:in )?this {OWN}\b", re.I)
# Words that point to something outside the sentence
_POINTS = re.compile(
    rf"\b(?:this|these|those)\s+(?!{OWN}\b)[a-z-]+|\b(?:above|below|aforementioned|aforesaid|respectively)\b"
    r"|\bthe (?:following|latter|former|previous|preceding|next|other two|first case|second case)\b|\bas follows\b"
    r"|\bsuch (?:an? )?(?!as\b)[a-z]+|\b(?:previous|earlier|later|next) (?:section|chapter|paragraph|example)s?\b"
    r"|\b(?:mentioned|discussed|described|shown|defined|seen|noted) (?:above|before|earlier|previously|later)\b"
    r"|\bof (?:this|that|these|those)\b(?! \w)|^(?:\w+,? )?(?:we|I) \w+ (?:it|them|that|this)\b"
    r"|\b(?:do|does|did|doing|done) so\b|\bthe same (?:way|reason|time)\b"
    r"|^(?:another|in (?:short|brief|other words|addition|particular)|similarly|moreover|further(?:more)?|hence|thus)\b"
    r"|^[^.,;:]{0,50}\balso\b"
    r"|\bboth\b(?!(?:\W+[\w’'-]+){1,8}?\W+and\b)|\beither (?:source|case|way|one|of)\b|\bneither\b(?!.*\bnor\b)",
    re.I,
)
# Sentences about the making of a paper, and formal ones that need what is before them
_NOT_CONTENT = re.compile(
    r"https?:|§|\bwww\.|\S@\S|\b(?:copyright|all rights reserved|creative commons|licen[cs]e[ds]?|permission"
    r"|corresponding author|correspondence|acknowledg\w*|isbn|doi|funded by|grant|supplementary|reviewers?)\b"
    r"|^(?:figure|fig|table|theorem|lemma|proof|corollary|proposition|definition|example|remark|algorithm|listing"
    r"|let|suppose|assume|consider|note|recall|observe|see|keywords?|categories|received|submitted|published|review"
    r"|edited|abstract|summary)\b"
    r"|\b(?:paper|article|chapter|thesis|rest) is (?:organi[sz]ed|structured)\b|\bremainder of\b",
    re.I,
)
_BROKEN = re.compile(
    r"[a-z]- (?!and\b|or\b|to\b)[a-z]|\ufffd|[\x00-\x08\x0b-\x1f\u2400-\u243f\ue000-\uf8ff]| {3,}|\.\.\."
)
# A heading that is joined to the sentence after it: "Locating the nearest nodes Some applications use"
_JOINED = re.compile(
    r"[a-z)] (?:The|An?|In|We|This|These|Some|For|To|As|It|Our|If|When|Each|On|By|At|One|With|From|There|Since) [a-z]"
    r"|^To \w[^,]*$"
)
_FORMULA = re.compile(r"[=_^\\{}|<>∈∼≤≥×∑∫√∀∃→←⇒⊆∪∩·]")
_MOST_SIGNS = 0  # of formulas
_ENUMERATED = re.compile(r"\((?:[a-z]|[ivx]{1,4}|\d{1,2})\)")  # "(c)" alone names an item elsewhere
# A heading on the line of its first sentence: "Abstract: We show", "Motivation — The otters"
_LABEL = re.compile(r"(?:(?i:abstract|summary)\W{1,4}|[A-Z][\w&]+(?: [\w&]+){0,4} [—–] )(?=[A-Z])")
# An abbreviation where a paper introduces it: "global predicate evaluation (GPE)"
_INTRODUCED = re.compile(r"\(([A-Z][A-Za-z0-9-]*[A-Z][A-Za-z0-9]*?)s?\)")
_ABBREVIATION = re.compile(r"\b[A-Z][A-Z0-9]{1,5}(?=s?\b)")  # not a name such as "ANNArchy"
_PAIRS = (("[", "]"), ("“", "”"))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A sentence that can be read by itself."""

    section: Kind
    quote: Quote
    longer: Quote | None  # the sentence with the next one, which leans on it; None if that cannot be shown

    @property
    def text(self) -> str:
        return one_line(self.quote.quote)


def excerpts(paper: Paper, text: str) -> Iterator[Excerpt]:
    """The sentences of a paper that can be read by themselves, in order. text: the paper's."""
    text = text[:LONGEST_TEXT]
    if not text:
        return
    whole = Evidence(1, paper, 0, len(text), text, (Hit(Chunk(0, paper.id, 0, len(text)), paper, text, 0.0),))
    seen: set[str] = set()
    for block in blocks(whole):
        if block.kind != "prose" or block.section in _LEFT_OUT or block.is_sample:
            continue
        for place, part in enumerate(block.parts):
            label = _LABEL.match(text, part.start, part.end)
            start = label.end() if label else part.start
            words = one_line(text[start : part.end])
            if words not in seen and _stands_alone(paper, replace(part, start=start), words):
                seen.add(words)
                quote = Quote(paper, start, part.end, text[start : part.end])
                yield Excerpt(block.section, quote, _longer(block, place, quote))


def abbreviations(text: str) -> frozenset[str]:
    """The abbreviations that a text introduces in brackets."""
    return frozenset(_INTRODUCED.findall(text))


def unexplained(sentence: str, known: frozenset[str]) -> set[str]:
    """The abbreviations of a paper that a sentence uses without introducing them."""
    used = {word.removesuffix("s") if word not in known else word for word in re.findall(r"[A-Za-z0-9-]+", sentence)}
    return (used & known) - abbreviations(sentence)


def undefined(sentence: str, title: str) -> int:
    """How many abbreviations a sentence uses that neither it nor the title of its paper explains or has."""
    used = set(_ABBREVIATION.findall(sentence)) - set(_ABBREVIATION.findall(title))
    return len(used - abbreviations(sentence))


def is_plain(paper: Paper, start: int, end: int, sentence: str) -> bool:
    """Whether the sentence [start, end) of a paper's text can be read by itself."""
    line = one_line(sentence)
    return not _POINTS.search(line) and _is_readable(paper, Part(start, end), line)


def reads_alone(words: str) -> bool:
    """Whether words begin without leaning on what is before them, and point nowhere."""
    line = one_line(words)
    return not leans(line) and not _POINTS.search(line) and not re.match(r"To be (?:more )?\w+,|\W*[a-z]", line)


def _stands_alone(paper: Paper, part: Part, sentence: str) -> bool:
    leans_on = part.leans and not (_BEGINS.match(sentence) and not part.in_middle)
    return part.can_answer and not leans_on and not _POINTS.search(sentence) and _is_readable(paper, part, sentence)


def _is_readable(paper: Paper, part: Part, sentence: str) -> bool:
    """Whether a sentence is whole, on one page, and words rather than formulas."""
    first, last = paper.pages.pages_of(part.start, part.end)
    return (
        first == last
        and (sentence[0].isupper() or sentence.split()[0] == paper.title.split(":")[0].split(" ")[0])
        and sentence[-1] == "."
        and _SHORTEST <= len(sentence.split()) <= _LONGEST
        and UNREAD_FORMULA not in sentence
        and len(_ENUMERATED.findall(sentence)) != 1
        and len(_FORMULA.findall(sentence)) <= _MOST_SIGNS
        and all(sentence.count(opens) in (0, sentence.count(closes)) for opens, closes in _PAIRS)
        and sentence.count("(") == sentence.count(")")
        and not any(words.search(sentence) for words in (ELSEWHERE, _NOT_CONTENT, _BROKEN, _JOINED))
    )


def _longer(block: Block, place: int, quote: Quote) -> Quote | None:
    """A sentence with the next one of its paragraph if that leans on it and can be read after it."""
    if place + 1 == len(block.parts) or block.paragraphs[place] != block.paragraphs[place + 1]:
        return None
    part, paper = block.parts[place + 1], quote.paper
    words = one_line(block.text_of(place + 1))
    if not (part.leans and part.can_answer and _is_readable(paper, part, words)):
        return None
    if paper.pages.page_at(part.start) != quote.page or sum(block.words[place : place + 2]) > _MOST_WORDS:
        return None
    text = block.evidence.text[quote.start : part.end]
    return Quote(paper, quote.start, part.end, text) if one_line(text) == f"{one_line(quote.quote)} {words}" else None
