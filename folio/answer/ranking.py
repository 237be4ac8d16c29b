"""Ranks the excerpts of the evidence for a question, and chooses those to show.

An excerpt can be read by itself: a paragraph or a part of one, a whole list, or a table row below its caption. Each
sentence gets a share of the probability of answering; an excerpt has the shares of its sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter

import numpy as np

from folio.answer.excerpts import MOST_BEFORE, SHORTEST_SENTENCE, WHOLE_ALGORITHM, Block, Span, blocks
from folio.answer.values import has_type
from folio.answer.whole_paper import SECTIONS
from folio.answer_types import Evidence
from folio.grounding.conflicts import conflict
from folio.grounding.quantities import quantities
from folio.papers.model import Passage
from folio.papers.sections import NOT_EVIDENCE
from folio.protocols import PassageReader, TokenEmbedder
from folio.question.kind import QuestionType
from folio.question.question import Question
from folio.search.builtin_reranker import MOST_ODDS, above, odds, passage_of
from folio.search.definitions import LEAST_LIKE, Term
from folio.search.late_interaction import Matches, read_alone
from folio.text import tokenize

LEAST_WORDS, MOST_WORDS = 40, 120  # of an excerpt; shorter paragraphs are extended, longer ones cut
# Further places after the best excerpt: the maximum, and the minimum share relative to the best
MOST_POINTERS, POINTER_SHARE = 2, 0.08
# The analysis of a report: maximum excerpts, maximum words in all, minimum share of each
MOST_DETAILS, DETAIL_WORDS, DETAIL_SHARE = 8, 400, 0.003
SPREAD = 0.1  # score difference at which one sentence is e times as likely to answer as another


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

# Maximum sentences embedded one by one, for an answer and for a report. Each takes a third of the time of a passage.
MOST_READ, MOST_OF_REPORT = 8, 16
NEARLY = 0.5  # log-odds by which a part may answer worse than the best one and be shown with it (LOG.md)
LEAD_WEIGHT = 0.8  # of the match of the whole passage, in the choice of the first excerpt

_FIGURE = re.compile(r"\b(?:fig(?:ure|s|ures)?|tables?|captions?|diagrams?|plots?|charts?|graphs?|pictures?)\b", re.I)
_LABEL = re.compile(r"\b(algorithm|listing|procedure|table)\s+(\d+|[IVX]+)\b", re.I)


@dataclass(frozen=True)
class Excerpt:
    """Parts [first, last] of a block, and their share of the probability of answering."""

    block: Block
    first: int
    last: int
    core: int  # the part that answers best; all indices are into block.parts
    share: float
    passage: float  # match of the whole passage with the question (late interaction)
    covered: float = 1.0  # share of the question in the core and the text above it, 0 to 1

    @property
    def lead(self) -> float:
        """The score for the first place: prefers a passage about the subject among excerpts that may answer."""
        return SPREAD * math.log(max(self.share, 1e-300)) + LEAD_WEIGHT * self.passage

    @property
    def spans(self) -> tuple[Span, ...]:
        """Its spans in the evidence's text, in order; a table's caption may be separate from the rows."""
        start, end = self.block.parts[self.first].start, self.block.parts[self.last].end
        spans: list[Span] = []
        for span in filter(None, (self.block.head, (start, end), self.block.tail)):
            if spans and not self.block.evidence.text[spans[-1][1] : span[0]].strip():
                spans[-1] = (spans[-1][0], span[1])
            else:
                spans.append(span)
        return tuple(spans)

    @property
    def words(self) -> int:
        return sum(len(self.block.evidence.text[start:end].split()) for start, end in self.spans)

    @property
    def text(self) -> str:
        return "\n".join(self.block.evidence.text[start:end] for start, end in self.spans)

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its search tokens."""
        return frozenset(tokenize(self.text))

    def is_named_by(self, question: Question) -> bool:
        """Whether it is the algorithm that a question names."""
        return _is_named_by(question, self.block)

    @property
    def core_text(self) -> str:
        return self.block.text_of(self.core)

    def overlaps(self, other: Excerpt) -> bool:
        own, others = self.block.evidence, other.block.evidence
        return own.paper == others.paper and any(
            own.start + a < others.start + d and others.start + c < own.start + b
            for a, b in self.spans
            for c, d in other.spans
        )


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
        if paper and block.evidence.paper.id != paper and _is_named_by(question, block):
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
    named = [block for block in blocks if _is_named_by(question, block)]
    first = min(
        named, key=lambda block: (-question.named.likeness(block.name), block.evidence.number), default=None
    )
    return first.evidence.paper.id if first else ""


def _is_named_by(question: Question, block: Block) -> bool:
    """Whether a block is an algorithm that a question names."""
    return block.kind == "algorithm" and question.named.likeness(block.name) >= LEAST_LIKE


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
        first, last = _around(block, core)
        if score == max(scores[first : last + 1]):
            yield Excerpt(block, first, last, core, sum(shares[first : last + 1]), passage, covered[core])


def _around(block: Block, core: int) -> Span:
    """First and last part of the excerpt around a part: the whole list, nearby rows, or about a paragraph.

    In a long paragraph the excerpt begins with the nearest sentence that does not lean on the one before; a short
    paragraph is extended by the next one. The last sentence does not end in a colon or a question mark.
    """
    if block.kind in ("list", "algorithm"):
        return 0, len(block.parts) - 1
    if block.kind == "table":
        return _rows(block, core, MOST_WORDS)
    words = block.words
    paragraph = [place for place, number in enumerate(block.paragraphs) if number == block.paragraphs[core]]
    first, last = paragraph[0], paragraph[-1]
    if sum(words[first : last + 1]) > MOST_WORDS:
        if sum(words[first : core + 1]) > MOST_WORDS // 2:
            first = next((place for place in range(core, first, -1) if not block.parts[place].leans), first)
        last = core
        while last < paragraph[-1] and sum(words[first : last + 2]) <= MOST_WORDS:
            last += 1
    while (
        last + 1 < len(words)
        and sum(words[first : last + 1]) < LEAST_WORDS
        and sum(words[first : last + 2]) <= MOST_WORDS
    ):
        last += 1
    earliest = max(0, first - MOST_BEFORE)
    while block.parts[first].leans and first > earliest:
        first -= 1
    while first < core and block.parts[first].in_middle:
        first += 1
    while last > core and block.text_of(last).endswith((":", "?")):
        last -= 1
    return first, last


def _rows(block: Block, core: int, most: int) -> Span:
    """The rows around one, up to `most` words in all: similar rows may include the one asked for."""
    first = last = core
    for row in sorted(range(len(block.parts)), key=lambda row: abs(row - core)):
        wider = min(first, row), max(last, row)
        if sum(block.words[wider[0] : wider[1] + 1]) <= most:
            first, last = wider
    return first, last


def _section_score(block: Block, question_type: QuestionType) -> float:
    """1 for the section that best answers a question about a whole paper, less for the next ones."""
    wanted = SECTIONS.get(question_type.aspect, ())
    return 1.0 - wanted.index(block.section) / 4 if block.section in wanted else 0.0


def pointers(scored: Sequence[Excerpt]) -> list[Excerpt]:
    """Further places that may answer, likeliest first, without overlaps and repetitions.

    They are shown in brief, which an algorithm never is.
    """
    best, scored = scored[0], [one for one in scored if one.block.kind != "algorithm"]
    return distinct_excerpts([one for one in scored if one.share >= POINTER_SHARE * best.share], [best])[:MOST_POINTERS]


def brief(excerpt: Excerpt) -> Excerpt:
    """The core of an excerpt with the parts after or before it, up to LEAST_WORDS.

    Begins with a sentence that does not lean on the one before, if the excerpt has one.
    """
    first = last = excerpt.core
    block = excerpt.block
    if block.kind == "table":
        first, last = _rows(block, excerpt.core, LEAST_WORDS)
        return replace(excerpt, first=first, last=last)
    while block.kind == "prose" and block.parts[first].leans and first > excerpt.first:
        first -= 1
    while block.kind == "prose" and sum(block.words[first : last + 1]) < LEAST_WORDS:
        if last < excerpt.last:
            last += 1
        elif first > excerpt.first:
            first -= 1
        else:
            break
    while block.kind == "prose" and last > excerpt.core and block.text_of(last).endswith((":", "?")):
        last -= 1
    return replace(excerpt, first=first, last=last)


def narrowed(excerpt: Excerpt, odds: Sequence[float]) -> Excerpt:
    """The part of an excerpt that answers best, the parts around it that answer nearly as well, and what these lean on.

    odds: for each of its parts, the log-odds that it answers by itself.
    """
    first = last = max(range(len(odds)), key=lambda part: (odds[part], part == excerpt.core - excerpt.first))
    least = odds[first] - NEARLY
    core = excerpt.first + first
    while first > 0 and odds[first - 1] >= least:
        first -= 1
    while last + 1 < len(odds) and odds[last + 1] >= least:
        last += 1
    while first > 0 and excerpt.block.parts[excerpt.first + first].leans:
        first -= 1
    return replace(excerpt, first=excerpt.first + first, last=excerpt.first + last, core=core)


def alone(excerpt: Excerpt) -> Excerpt:
    """Only the core of an excerpt."""
    return replace(excerpt, first=excerpt.core, last=excerpt.core)


def distinct_excerpts(scored: Iterable[Excerpt], shown: Sequence[Excerpt]) -> list[Excerpt]:
    """The excerpts that neither overlap nor repeat one another or the shown ones, in order."""
    kept: list[Excerpt] = []
    for excerpt in scored:
        if not any(excerpt.overlaps(other) or _repeats(excerpt, other) for other in (*shown, *kept)):
            kept.append(excerpt)
    return kept


def _repeats(excerpt: Excerpt, before: Excerpt) -> bool:
    """Whether an excerpt repeats an earlier one.

    One with other numbers is no repetition, unless another paper gives them for the same thing: that is shown as a
    disagreement with the earlier one.
    """
    if excerpt.block.evidence.paper != before.block.evidence.paper and conflict(excerpt.core_text, before.core_text):
        return True
    words, others = excerpt.terms, before.terms
    if len(words & others) <= 0.8 * min(len(words), len(others)):
        return False
    return _numbers(excerpt.text) == _numbers(before.text)


def _numbers(text: str) -> frozenset[object]:
    return frozenset((number.value, number.unit) for number in quantities(text, units=False))
