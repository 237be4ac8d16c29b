"""Excerpts: parts of a block of the evidence that can be read by themselves; how they are cut, narrowed, kept apart.

An excerpt is a paragraph or a part of one, a whole list, or a table row below its caption.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from folio.answer.blocks import MOST_BEFORE, Block, Span
from folio.answer_types import Sentence
from folio.grounding.conflicts import conflict
from folio.grounding.quantities import quantities
from folio.question.question import Question
from folio.search.definitions import LEAST_LIKE
from folio.text import one_line, sentence_spans, stripped, tokenize

LEAST_WORDS, MOST_WORDS = 40, 120  # of an excerpt; shorter paragraphs are extended, longer ones cut
# Further places after the best excerpt: the maximum, and the minimum share relative to the best
MOST_POINTERS, POINTER_SHARE = 2, 0.08
SPREAD = 0.1  # score difference at which one sentence is e times as likely to answer as another
NEARLY = 0.5  # log-odds by which a part may answer worse than the best one and be shown with it (LOG.md)
LEAD_WEIGHT = 0.8  # of the match of the whole passage, in the choice of the first excerpt


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
        return is_named_by(question, self.block)

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


def is_named_by(question: Question, block: Block) -> bool:
    """Whether a block is an algorithm that a question names."""
    return block.kind == "algorithm" and question.named.likeness(block.name) >= LEAST_LIKE


def around(block: Block, core: int) -> Span:
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


def shortest(sentence: Sentence) -> Sentence:
    """The one sentence of an excerpt that has most of its marked words; the excerpt itself if it is one sentence."""
    if sentence.outcome != "quoted" or not sentence.citations:
        return sentence
    marked = {token for start, end in sentence.marks for token in tokenize(sentence.text[start:end])}
    spans = [(quote, *span) for quote in sentence.citations for span in sentence_spans(quote.quote)]
    if len(spans) < 2:
        return sentence
    quote, start, end = max(spans, key=lambda each: len(marked.intersection(tokenize(each[0].quote[slice(*each[1:])]))))
    start, end = stripped(quote.quote, start, end)
    part = replace(
        quote, start=quote.start + start, end=quote.start + end, quote=quote.quote[start:end], number=1, marks=()
    )
    return Sentence(one_line(part.quote), (part,), section=sentence.section)
