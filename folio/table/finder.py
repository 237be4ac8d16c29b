"""Finds the cells of a table: one paper, several questions -> quotes of the paper, or nothing.

This is no deep search: that one looks in rounds through the whole library until one question has enough evidence, and
mixes papers. Here every paper is asked every question by itself, and most often the right answer is that it does not
say. They share what is below both: the search in chosen papers (search/retriever.py), the evidence and its excerpts
(answer/), and what makes a disagreement (grounding/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache as cached
from itertools import islice

from folio.answer.about import OwnSentence, own_sentences
from folio.answer.evidence import gather
from folio.answer.extractive import ExtractiveAnswerer
from folio.answer.ranking import LEAST_WORDS, Excerpt
from folio.answer_types import Evidence, Quote
from folio.grounding.sentences import citation
from folio.papers.model import Paper
from folio.protocols import Embedder
from folio.question.question import Question
from folio.search.retriever import Retriever, SearchRequest
from folio.table.cell import Cell, Column, Finding
from folio.table.effects import Effect
from folio.table.headings import Heading, announced, asked, known_heading
from folio.table.paper_words import PaperWords
from folio.table.values import value_in

RERANK = True
PASSAGES = 6  # of the paper that are read for a cell
EVIDENCE_TOKENS = 4_000  # of these passages, widened to whole sentences
LEAST_CONFIDENCE = 0.57  # below this a cell stays empty
MOST_TRIED = 5  # excerpts that are looked at for a value


@dataclass
class CellFinder:
    """Fills the cells of one paper after another. For one thread, as its retriever is."""

    retriever: Retriever
    extractive: ExtractiveAnswerer
    meaning: Embedder  # the built-in one

    def fill(
        self, paper: Paper, columns: Sequence[Column], check_cancelled: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[int, Cell]]:
        """The cells of a paper, each as soon as it is found: the index of its column, and the cell.

        check_cancelled: called often; an exception that it raises ends the work. Raises ModelError and StoreDamaged.
        """
        words = PaperWords(paper, self.retriever.text(paper.id, 0, paper.length))
        sentences = cached(lambda: own_sentences(paper, words.text))
        for place, column in enumerate(columns):
            check_cancelled()
            if heading := known_heading(column):
                yield place, self._announced(paper, column, heading, sentences())
            elif effect := Effect.asked(asked(column)):
                yield place, _reported(column, effect, words)
            else:
                with self.retriever.cancellable(check_cancelled):
                    yield place, self._quoted(paper, column)

    def _announced(self, paper: Paper, column: Column, heading: Heading, sentences: Sequence[OwnSentence]) -> Cell:
        """A cell of a known heading: the sentence that announces what the heading asks for."""
        question = Question(heading.question)
        for quote in announced(heading, paper, sentences, self.meaning):
            if (found := value_in(column, question, quote.quote)) is not None:
                return Cell((Finding(quote, *found),))
        return Cell()

    def _quoted(self, paper: Paper, column: Column) -> Cell:
        """A cell in the paper's own words."""
        question = Question(asked(column))
        scored = self.extractive.candidates(question, self._evidence(paper, question))
        if scored.confidence < LEAST_CONFIDENCE:
            return Cell(confidence=scored.confidence)
        findings = (_finding(column, question, one) for one in scored.excerpts[:MOST_TRIED])
        best = next(filter(None, findings), None)
        return Cell((best,) if best else (), scored.confidence)

    def _evidence(self, paper: Paper, question: Question) -> tuple[Evidence, ...]:
        """The passages of a paper that may answer."""
        hits = self.retriever.find(SearchRequest(question, PASSAGES, [paper], rerank=RERANK, written=False)).hits
        return gather(hits, self.retriever.text, EVIDENCE_TOKENS).evidence


def _reported(column: Column, effect: Effect, words: PaperWords) -> Cell:
    """A cell of a question about an effect: the sentence that reports it."""
    question = Question(asked(column))
    for place in islice(effect.places(words), MOST_TRIED):
        quote = words.brief(place, LEAST_WORDS)
        if (found := value_in(column, question, quote.quote)) is not None:
            return Cell((Finding(quote, *found),))
    return Cell()


def _finding(column: Column, question: Question, excerpt: Excerpt) -> Finding | None:
    """What an excerpt says to a column; None if it does not have the value that the column asks for."""
    quote = _quote(excerpt)
    if (found := value_in(column, question, quote.quote)) is None:
        return None
    value, number = found
    return Finding(quote, value, number)


def _quote(excerpt: Excerpt) -> Quote:
    """The sentence of an excerpt that answers, with those that it leans on."""
    block, first = excerpt.block, excerpt.core
    while block.kind == "prose" and block.parts[first].leans and first > excerpt.first:
        first -= 1
    longest = citation(block.evidence, block.parts[first].start, block.parts[excerpt.core].end, 1.0)
    return Quote(longest.paper, longest.start, longest.end, longest.quote)
