"""Ranks the excerpts of the evidence for a question.

Each sentence gets a share of the probability of answering; an excerpt has the shares of its sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from folio.answer.blocks import SHORTEST_SENTENCE, WHOLE_ALGORITHM, Block, blocks
from folio.answer.excerpts import SPREAD, Excerpt, around, is_named_by
from folio.answer.values import has_type
from folio.answer.whole_paper import SECTIONS
from folio.answer_types import Evidence
from folio.papers.model import Passage
from folio.papers.sections import NOT_EVIDENCE
from folio.protocols import PassageReader, TokenEmbedder
from folio.question.kind import QuestionType
from folio.question.question import Question
from folio.search.builtin_reranker import MOST_ODDS, above, odds, passage_of
from folio.search.definitions import LEAST_LIKE, Term
from folio.search.late_interaction import Matches, read_alone
from folio.text import tokenize


@dataclass(frozen=True, slots=True)
class ExcerptWeights:
    """Weights in the score of a sentence, list item or table row. LOG.md has the effect of each."""

    read: float = 0.045  # the reader's log-odds that it answers
    match: float = 0.85  # its tokens match the question's (late interaction)
    meaning: float = 0.2  # cosine of the sentence and the question
    type: float = 0.15  # it has what the question asks for: a number, a date, a person, a place
    section: float = 0.2  # it is in a section that answers such questions
    rank: float = 0.06  # it is in the best piece of evidence
    defines: float = 0.6  # it defines the term that the question asks about, by its form
    first: float = 0.15  # it is the first sentence of its paper, of the evidence, that may define the term
    named: float = 1.0  # it is in the algorithm or table that the question names by its number or name


WEIGHTS = ExcerptWeights()

# Maximum sentences embedded one by one for an answer. Each takes a third of the time of a passage.
MOST_READ = 8

_FIGURE = re.compile(r"\b(?:fig(?:ure|s|ures)?|tables?|captions?|diagrams?|plots?|charts?|graphs?|pictures?)\b", re.I)
_LABEL = re.compile(r"\b(algorithm|listing|procedure|table)\s+(\d+|[IVX]+)\b", re.I)


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """A block of the evidence with the reader's judgement of it."""

    block: Block
    match: Matches  # of the question in the block's piece of evidence
    answers: float  # log-odds that the passages read for it answer
    parts: tuple[float, ...]  # log-odds that each of its parts answers


def read_blocks(
    reader: PassageReader, question: Question, evidence: Sequence[Evidence], matched: Sequence[Matches]
) -> list[ReadBlock]:
    """The blocks of the evidence that may answer a question, each judged by the reader. Raises ModelError.

    matched: the question's matches in each piece of evidence. A block is read in the passages that search found, whose
    readings are cached from the reranking; if these do not have half of each part, the block is read by itself.
    """
    excluded = NOT_EVIDENCE - question.kinds
    among = [(block, match) for piece, match in zip(evidence, matched, strict=True) for block in blocks(piece)]
    among = [(block, match) for block, match in among if block.section not in excluded]
    if not question.asks_for_samples:
        among = [(block, match) for block, match in among if not block.is_sample]
    passages = [_passages_around(block) for block, _ in among]
    texts = list(dict.fromkeys(passage for own in passages for passage, _ in own))
    readings = dict(zip(texts, reader.read(question.text, texts), strict=True))
    return [
        ReadBlock(
            block,
            match,
            max(readings[text].answers for text, _ in own),
            tuple(
                # of several readings of a part, the best
                max(readings[text].sentence(part.start - start, part.end - start) for text, start in own)
                for part in block.parts
            ),
        )
        for (block, match), own in zip(among, passages, strict=True)
    ]


def _passages_around(block: Block) -> list[tuple[Passage, int]]:
    """The passages to read for a block, each with its start in the evidence's text."""
    evidence = block.evidence
    spans = [(hit, hit.chunk.start - evidence.start, hit.chunk.end - evidence.start) for hit in evidence.hits]
    parts_in = [
        [min(end, part.end) - max(start, part.start) > (part.end - part.start) / 2 for part in block.parts]
        for _, start, end in spans
    ]
    if parts_in and all(map(any, zip(*parts_in, strict=True))):
        return [(passage_of(hit), start) for (hit, start, _), has in zip(spans, parts_in, strict=True) if any(has)]
    start, end = block.start, block.end
    return [
        (Passage(above(evidence.paper, evidence.start + start, evidence.start + end), evidence.text[start:end]), start)
    ]


def most_sure(read: Sequence[ReadBlock]) -> float:
    """The reader's log-odds for the best of these blocks; -MOST_ODDS without blocks."""
    return max((one.answers for one in read), default=-MOST_ODDS)


def scored_excerpts(
    embedder: TokenEmbedder,
    question: Question,
    read: Sequence[ReadBlock],
    most: int = MOST_READ,
) -> list[Excerpt]:
    """The excerpts of these blocks, best first. Raises ModelError.

    Only the best `most` sentences are candidates. They are embedded one by one: within their passage, the states of
    their tokens also reflect their neighbours. The other sentences can only be part of an excerpt around these.
    """
    named = _LABEL.search(question.text)
    scores = _Scores.of(question, f"{named[1]} {named[2]}".casefold() if named else "", [one.block for one in read])
    # The matches of the question's tokens in the text above each part: the title, the block's head
    heads = [one.match.inside(*one.block.head) if one.block.head else one.match.titles for one in read]
    candidates: list[_Candidate] = []
    paper = _paper_named(question, [one.block for one in read])
    for at, (one, head) in enumerate(zip(read, heads, strict=True)):
        block, match = one.block, one.match
        if paper and block.evidence.paper.id != paper and is_named_by(question, block):
            continue  # another paper's Algorithm 6
        of_block: list[_Candidate] = []
        for place, base in scores.of_parts(block):
            part = block.parts[place]
            matched = match.score(np.maximum(match.inside(part.start, part.end), head))
            base += WEIGHTS.read * odds(one.parts[place], question.numbers, block.text_of(place))
            of_block.append(_Candidate(at, place, base, WEIGHTS.match * matched + base))
        # An algorithm is shown whole, so one of its steps is enough.
        candidates += sorted(of_block, key=lambda each: -each.score)[:1] if block.kind == "algorithm" else of_block
    candidates = sorted(candidates, key=lambda each: -each.score)[:most]
    if not candidates:
        return []
    texts, query = [read[each.at].block.text_of(each.place) for each in candidates], read[0].match.query
    known = [[-math.inf] * len(one.block.parts) for one in read]
    covered = [[0.0] * len(one.block.parts) for one in read]
    for candidate, text in zip(candidates, read_alone(embedder, query, texts), strict=True):
        best = np.maximum(text.best, heads[candidate.at])
        matched = float(query.shares @ best)
        covered[candidate.at][candidate.place] = float(np.clip(query.squared_shares @ best, 0.0, 1.0))
        known[candidate.at][candidate.place] = WEIGHTS.match * matched + WEIGHTS.meaning * text.cosine + candidate.base
    excerpts = [
        excerpt
        for one, shares, own, cover in zip(read, _shares(known), known, covered, strict=True)
        for excerpt in _excerpts_of(one.block, shares, own, cover, one.match.whole)
    ]
    return sorted(excerpts, key=lambda one: (-one.lead, one.block.evidence.number, one.spans[0]))


def _paper_named(question: Question, blocks: Sequence[Block]) -> str:
    """The id of the paper with the algorithm that a question names, the likeliest and first of several; "" for none."""
    named = [block for block in blocks if is_named_by(question, block)]
    first = min(
        named, key=lambda block: (-question.named.likeness(block.name), block.evidence.number), default=None
    )
    return first.evidence.paper.id if first else ""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A part that may answer."""

    at: int  # index of its block
    place: int  # its index in the block
    base: float  # its score without the match of the tokens
    score: float  # its score within its passage


@dataclass(frozen=True, slots=True)
class _Scores:
    """Scores the parts of the evidence for one question."""

    question: Question
    label: str  # "algorithm 1" or "table 2" if the question names one; else ""
    defined: Mapping[tuple[str, int], float]  # paper and place of what may define the question's term -> its score

    @classmethod
    def of(cls, question: Question, label: str, blocks: Sequence[Block]) -> _Scores:
        """blocks: all that are scored."""
        term = Term(question.term)
        sure = {
            (block.evidence.paper.id, block.evidence.start + part.start): term.defined_in(block.text_of(place))
            for block in blocks
            for place, part in enumerate(block.parts)
            if question.term
        }
        sure = {place: own for place, own in sure.items() if own}
        first = {min(places) for _, places in groupby(sorted(sure), key=itemgetter(0))}
        scores = {place: WEIGHTS.defines * own + WEIGHTS.first * (place in first) for place, own in sure.items()}
        return cls(question, label, scores)

    def of_parts(self, block: Block) -> Iterator[tuple[int, float]]:
        """The index of each part that can answer, and its score without the match of its tokens."""
        of_block = WEIGHTS.section * _section_score(block, self.question.type) + WEIGHTS.rank / block.evidence.number
        likeness = self.question.named.likeness(block.name) if block.kind == "algorithm" else 0.0
        # Its own span is surer than a list below the same words, such as a table of contents.
        of_block += WEIGHTS.named * (0.5 + likeness if likeness >= LEAST_LIKE else self._is_named(block))
        if block.kind == "algorithm" and likeness < LEAST_LIKE and sum(block.words) > WHOLE_ALGORITHM:
            return
        begins = self._begins(block)
        for place, part in enumerate(block.parts):
            if (
                place >= begins
                and part.can_answer
                and (block.kind != "table" or _says_more(block.text_of(place), self.question.terms))
            ):
                has = has_type(self.question, block.text_of(place))
                defines = self.defined.get((block.evidence.paper.id, block.evidence.start + part.start), 0.0)
                yield place, of_block + WEIGHTS.type * has + defines

    def _begins(self, block: Block) -> int:
        """The index of the first part that may answer: after a caption's title, except for questions about figures."""
        if block.section != "caption" or block.kind != "prose" or _FIGURE.search(self.question.text):
            return 0
        return next((place + 1 for place, words in enumerate(block.words) if words >= SHORTEST_SENTENCE), 0)

    def _is_named(self, block: Block) -> bool:
        """Whether a caption of a list or table, above or below, begins with the question's label."""
        if not self.label or block.kind == "prose":
            return False
        return re.search(rf"^\s*{self.label}\b", block.evidence.text[block.start : block.end], re.I | re.M) is not None


def _says_more(text: str, known: frozenset[str]) -> bool:
    """Whether a row says more than the question; "PEP Policy Enforcement Point" does not explain the term."""
    new = set(tokenize(text)) - known
    return len(new) > 1 or any(char.isdigit() for term in new for char in term)


def _shares(scores: Sequence[Sequence[float]]) -> list[list[float]]:
    """Scores -> shares that add up to 1 (softmax); all 0 if no part can answer."""
    best = max((score for own in scores for score in own), default=-math.inf)
    if best == -math.inf:
        return [[0.0] * len(own) for own in scores]
    raised = [[math.exp((score - best) / SPREAD) for score in own] for own in scores]
    total = sum(map(sum, raised))
    return [[value / total for value in own] for own in raised]


def _excerpts_of(
    block: Block, shares: Sequence[float], scores: Sequence[float], covered: Sequence[float], passage: float
) -> Iterator[Excerpt]:
    """An excerpt around each candidate that is the best part of its excerpt."""
    for core, score in enumerate(scores):
        if score == -math.inf:
            continue
        first, last = around(block, core)
        if score == max(scores[first : last + 1]):
            yield Excerpt(block, first, last, core, sum(shares[first : last + 1]), passage, covered[core])


def _section_score(block: Block, question_type: QuestionType) -> float:
    """1 for the section that best answers a question about a whole paper, less for the next ones."""
    wanted = SECTIONS.get(question_type.aspect, ())
    return 1.0 - wanted.index(block.section) / 4 if block.section in wanted else 0.0
