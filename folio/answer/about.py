"""What a paper is about in a few of its own sentences: its claim, method, result and limits.

A sentence is chosen by its section, by words with which authors announce a claim or a limit (argumentative zoning:
Teufel and Moens 2002, https://aclanthology.org/J02-4002), and by the similarity of its meaning to the title and the
abstract. A kind without such a sentence has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from folio.answer.blocks import blocks
from folio.answer_types import Evidence, Quote
from folio.papers.model import Chunk, Hit, Paper, Vectors
from folio.papers.sections import Kind
from folio.protocols import Embedder

AboutKind = Literal["claim", "method", "result", "limits"]
OWN_WORK = r"(?:paper|article|work|study|report|thesis|survey|course|module|tutorial|lesson|project|replication)"
_OURS = rf"(?:we|our|this {OWN_WORK}|the (?:present )?{OWN_WORK})"
_CAN = r"(?:\w+ly )?(?:(?:can|will|also|then|further|thus|have|has|was|were|are|first) )*(?:\w+ly )?"


@dataclass(frozen=True, slots=True)
class OwnSentence:
    """A sentence of a paper that stands on one page, and is no fragment."""

    section: Kind
    quote: Quote
    leans: bool = False  # whether it refers to what comes before


@dataclass(frozen=True, slots=True)
class Move:
    """How the sentences of a kind are recognised."""

    sections: tuple[Kind, ...]  # with such sentences, the best first
    says: re.Pattern[str]  # the words of such a sentence
    any_of_abstract: bool = False  # whether a sentence of the abstract needs no such words
    anywhere: bool = False  # whether it may be in other sections, too
    may_lean: bool = False  # whether it may refer to what comes before
    least: float = 0.35  # similarity to what it is compared with

    def weight(self, sentence: OwnSentence) -> float:
        """What the sentence's section and words add to its similarity."""
        is_whole = bool(_WHOLE_PAPER.search(sentence.quote.quote))
        return _WHOLE_WEIGHT * is_whole - _SECTION_WEIGHT * self._place(sentence)

    def _place(self, sentence: OwnSentence) -> int:
        """The place of its section among the best ones."""
        return self.sections.index(sentence.section) if sentence.section in self.sections else len(self.sections)

    def candidates(self, sentences: Sequence[OwnSentence]) -> list[OwnSentence]:
        """The sentences that may be of the kind, those in the best sections first."""
        candidates = [
            each
            for each in sentences
            if (each.section in self.sections or self.anywhere)
            and (self.may_lean or not each.leans)
            and (self.says.search(each.quote.quote) or (self.any_of_abstract and each.section == "abstract"))
            and (each.section != "other" or self.anywhere or _WHOLE_PAPER.search(each.quote.quote))
        ]
        return sorted(candidates, key=self._place)

    def ranked(self, sentences: Sequence[OwnSentence], like: Vectors, embedder: Embedder) -> list[OwnSentence]:
        """The sentences that are of the kind, best first. Raises ModelError.

        like: what they are compared with, the best counts; shape (n, dimension), rows of unit length.
        """
        candidates = self.candidates(sentences)[:_MOST_READ]
        if not candidates:
            return []
        cosines = (embedder.embed_passages([each.quote.quote for each in candidates]) @ like.T).max(axis=1)
        scored = [
            (bool(says), float(cosine) + self.weight(each), each)
            for each, cosine in zip(candidates, cosines, strict=True)
            if cosine >= (self.least if (says := self.says.search(each.quote.quote)) else _TELLING)
        ]
        return [each for _, _, each in sorted(scored, key=lambda one: one[:2], reverse=True)]


MOVES: dict[AboutKind, Move] = {
    "claim": Move(
        ("abstract", "introduction", "conclusion", "other"),
        re.compile(
            rf"\b{_OURS}\b[^.;]{{0,40}}?\b{_CAN}"
            r"(?:show|prov|demonstrat|argu|establish|conclud|propos|present|introduc|describ|develop|report|reproduc"
            r"|replicat|consider|stud|investigat|giv|aim|offer|provid)\w*\b",
            re.I,
        ),
        any_of_abstract=True,
    ),
    "method": Move(
        ("methods", "abstract"),
        re.compile(
            rf"\bwe\b[^.;]{{0,25}}?\b{_CAN}"
            r"(?:us|appl|implement|train|measur|compar|evaluat|simulat|fit|collect|estimat|analy[sz]|sampl|comput|model"
            r"|extend|combin|design|build|built|adapt|follow|re-?implement)(?:e|ed|es|ing|y|ied|ies|s)?\b"
            r"|\b(?:our|the proposed|this) (?:method|approach|algorithm|model|protocol|system|technique|design)\b"
            r"[^.;]{0,40}\b(?:us|appl|combin|work|maintain|consist|rel|build)\w+\b|\bis (?:based|built) on\b",
            re.I,
        ),
    ),
    "result": Move(
        ("results", "abstract", "conclusion", "discussion"),
        re.compile(
            r"\b(?:results?|experiments?|findings?|evaluation|measurements?|simulations?|analysis)\b[^.;]{0,50}?"
            r"\b(?:show|suggest|indicat|demonstrat|confirm|reveal|support|agree|are (?:consistent|similar))\w*\b"
            r"|\bwe\b[^.;]{0,25}?\b(?:f(?:i|ou)nd|observed?|obtained|achieved|confirm(?:ed)?|were able to"
            r"|have (?:\w+ )?(?:shown|proved|demonstrated))\b"
            r"|\b(?:outperform|improv|reduc|increas|decreas|exceed|achiev)\w*\b[^.;]{0,60}\d",
            re.I,
        ),
    ),
    "limits": Move(
        ("limitations", "discussion", "conclusion"),
        re.compile(
            r"^(?=.*\b(?:we|our|this|here|future)\b).*(?:\blimit(?:ations?|ed (?:to|by|in))\b"
            r"|\b(?:short|draw)(?:coming|back)s?\b|\bfuture (?:work|research)\b"
            r"|\bremains? (?:an )?(?:open|unclear|to be)\b"
            rf"|\b(?:{_OURS}|our \w+|this \w+)\b[^.;]{{0,30}}\b(?:do|does|did|could|can|were|are)(?: ?not|n['’]t)\b)",
            re.I | re.S,
        ),
    ),
}
# A sentence about a figure or another place of the paper says little by itself
ELSEWHERE = re.compile(
    r"\b(?:fig(?:ure|s|ures|\.)?|tables?|sections?|appendix|chapters?|eqs?\.?|listings?) ?\(?\d", re.I
)
_SHORTEST, _LONGEST = 8, 60  # words of a sentence
_MOST_READ = 40  # sentences of a kind whose meaning is compared
_SECTION_WEIGHT = 0.12  # of a section before the next one
_WHOLE_WEIGHT = 0.15  # of words about the paper as a whole
_TELLING = 0.7  # similarity at which a sentence of the abstract says what the paper is about, whatever its words
_LONGEST_ABSTRACT = 3000  # characters
_ABSTRACT = 1500  # characters of the title and the abstract that are compared
# Words of remarks on the way: "We hope that", "We begin by", "We will then show"
_BY_THE_WAY = re.compile(
    r"\b(?:hope|begin|start|remark|note|recall|decided|will (?:then|now|next|also)|in general)\b", re.I
)
_WHOLE_PAPER = re.compile(rf"\b(?:this|the present) {OWN_WORK}\b|^Here\b", re.I)
_OTHERS_WORK = re.compile(r"\[\d[\d,;\s–-]*\]|\([^()]*\b(?:19|20)\d\d[a-z]?\)|\bet al\b")


def about_quotes(paper: Paper, text: str, embedder: Embedder) -> list[tuple[AboutKind, Quote]]:
    """The sentences of a paper that say what it is about, at most one of each kind. text: the paper's.

    Raises ModelError.
    """
    sentences = own_sentences(paper, text)
    about = vector_of(paper, embedder)
    chosen: dict[AboutKind, Quote] = {}
    for kind, move in MOVES.items():
        left = [each for each in sentences if each.quote not in chosen.values()]
        if ranked := move.ranked(left, about, embedder):
            chosen[kind] = ranked[0].quote
    return list(chosen.items())


def vector_of(paper: Paper, embedder: Embedder) -> Vectors:
    """The vector of a paper's title and abstract, shape (1, dimension). Raises ModelError."""
    return embedder.embed_query(f"{paper.title}. {paper.metadata.abstract.value}"[:_ABSTRACT])[None, :]


def own_sentences(paper: Paper, text: str) -> list[OwnSentence]:
    """The sentences of a paper that may say what it is about, each on one page. text: the paper's."""
    hit = Hit(Chunk(0, paper.id, 0, len(text)), paper, text, 0.0)
    front = _front(paper)
    return [
        replace(each, section="abstract") if each.section == "other" and each.quote.end <= front else each
        for each in _sentences(Evidence(1, paper, 0, len(text), text, (hit,)))
    ]


def _front(paper: Paper) -> int:
    """The end of what stands before the first heading, which is the abstract of a paper without such a section."""
    sections = [section for section in paper.sections.sections if section.level]
    if any(section.kind == "abstract" for section in sections):
        return 0
    return min(_LONGEST_ABSTRACT, *(section.start for section in sections), paper.length)


def _sentences(whole: Evidence) -> Iterator[OwnSentence]:
    """The whole sentences that are about no other place or work."""
    paper, text = whole.paper, whole.text
    for block in blocks(whole):
        if block.kind != "prose":
            continue
        for part, words in zip(block.parts, block.words, strict=True):
            sentence = text[part.start : part.end]
            first, last = paper.pages.pages_of(part.start, part.end)
            is_whole = part.can_answer and sentence[0].isupper() and sentence[-1] == "."
            is_bad = first != last or any(words.search(sentence) for words in (ELSEWHERE, _OTHERS_WORK, _BY_THE_WAY))
            if is_whole and not is_bad and _SHORTEST <= words <= _LONGEST:
                yield OwnSentence(block.section, Quote(paper, part.start, part.end, sentence), part.leans)
