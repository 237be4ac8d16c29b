"""The sentences of one paper, and how much of some words each of them has. Pure.

The weight of a word is its inverse document frequency among the sentences of the paper: a word of the whole paper tells
little, and one that the paper lacks most. Between papers, the search weighs words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from folio.answer_types import Evidence, Quote
from folio.grounding.sentences import citation
from folio.papers.model import Chunk, Hit, Paper
from folio.papers.sections import overlap
from folio.text import sentence_spans, tokenize


@dataclass(frozen=True)
class PaperWords:
    """A paper's text as sentences; not those of references, acknowledgements and licences."""

    paper: Paper
    text: str

    @cached_property
    def whole(self) -> Evidence:
        """The whole paper as one piece of evidence."""
        hit = Hit(Chunk(0, self.paper.id, 0, len(self.text)), self.paper, self.text, 0.0)
        return Evidence(1, self.paper, 0, len(self.text), self.text, (hit,))

    @cached_property
    def _every_span(self) -> list[tuple[int, int]]:
        """[start, end) of each sentence but those of references."""
        excluded = self.paper.sections.spans_of_kinds(frozenset({"references"}))
        return [span for span in sentence_spans(self.text) if not overlap(excluded, *span)]

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """[start, end) of each sentence."""
        excluded = self.paper.sections.spans_of_kinds()
        return [span for span in self._every_span if not overlap(excluded, *span)]

    @cached_property
    def tokens(self) -> list[frozenset[str]]:
        """The search tokens of each sentence."""
        return [frozenset(tokenize(self.text[start:end])) for start, end in self.spans]

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(token for tokens in self.tokens for token in tokens)

    def rarity(self, token: str) -> float:
        """The inverse document frequency of a token among the sentences."""
        return math.log(1 + len(self.spans) / (0.5 + self._counts[token]))

    def coverage(self, words: Iterable[str], tokens: Iterable[str]) -> float:
        """The share of some words, by rarity, that are among the tokens; 0 to 1."""
        weights = {word: self.rarity(word) for word in words}
        total = sum(weights.values())
        return sum(weights[token] for token in weights.keys() & frozenset(tokens)) / total if total else 0.0

    def saying(self, cue: re.Pattern[str]) -> Iterator[Quote]:
        """The sentences with a match, in order; also those of acknowledgements and notes, but of no reference."""
        for start, end in self._every_span:
            if cue.search(self.text[start:end]):
                found = citation(self.whole, start, end, 1.0)
                yield Quote(found.paper, found.start, found.end, found.quote)

    def near(self, place: int) -> frozenset[str]:
        """The tokens of a sentence and its neighbours."""
        return frozenset().union(*self.tokens[max(0, place - 1) : place + 2])

    def quote(self, first: int, last: int) -> Quote:
        """The sentences [first, last]; of two pages, the words on the one with more of them."""
        longest = citation(self.whole, self.spans[first][0], self.spans[last][1], 1.0)
        return Quote(longest.paper, longest.start, longest.end, longest.quote)

    def brief(self, place: int, least: int) -> Quote:
        """A sentence, with the next one of its paragraph if it has fewer words than `least`."""
        start, end = self.spans[place]
        last = place
        if len(self.text[start:end].split()) < least and place + 1 < len(self.spans):
            gap = self.text[end : self.spans[place + 1][0]]
            last += not gap.strip() and "\n\n" not in gap
        return self.quote(place, last)


def text_of(words: PaperWords, place: int) -> str:
    """A sentence's text."""
    start, end = words.spans[place]
    return words.text[start:end]


def best(scores: Sequence[float]) -> list[int]:
    """The places of the scores, best first."""
    return sorted(range(len(scores)), key=lambda place: -scores[place])
