"""Finds the cells of a table: one paper, several questions -> quotes of the paper, or nothing.

This is no deep search: that one looks in rounds through the whole library until one question has enough evidence, and
mixes papers. Here every paper is asked every question by itself, and often the right answer is that it does not say.
They share what is below both: the search in chosen papers (search/retriever.py), evidence and its excerpts (answer/),
and what makes a disagreement (grounding/).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, zip_longest

from folio.answer.about import OwnSentence, own_sentences
from folio.answer.evidence import gather
from folio.answer.excerpts import LEAST_WORDS, Excerpt, brief
from folio.answer.extractive import ExtractiveAnswerer
from folio.answer.whole_paper import whole_paper_hits
from folio.answer_types import Evidence, Quote
from folio.grounding.sentences import citation
from folio.papers.model import Hit, Paper
from folio.protocols import Embedder
from folio.question.question import Question
from folio.search.retriever import Retriever, SearchRequest
from folio.table.cell import Cell, Column, Finding
from folio.table.effects import Effect
from folio.table.headings import announced, asked, known_heading
from folio.table.paper_words import PaperWords
from folio.table.values import disagree, said_of, value_in
from folio.table.with_model import ModelCells
from folio.text import STOP_WORDS, sentence_spans, tokenize

PASSAGE_TOKENS = 450  # of a passage with its header, widened to whole sentences
PASSAGES = 6  # of the paper that are read for a cell
EVIDENCE_TOKENS = 4_000  # of these passages, widened to whole sentences
CLOSEST_IN = 3  # of these passages that the closest place of an empty cell is in
MOST_TRIED = 5  # places that are looked at for a value
# The probability that an excerpt answers, and the least that is shown: a logistic regression on the reader's log-odds,
# the excerpt's share of the probability, and the share of the question in its words, on 97 cells (LOG.md)
READ_WEIGHT, SHARE_WEIGHT, WORDS_WEIGHT, BIAS = 0.18, 3.6, 3.3, -3.5
MOST_ODDS = 5.0
LEAST_SURE = 0.8
NEARLY = 0.5  # share of another place that disagrees, relative to the best


@dataclass(frozen=True)
class _PaperRead:
    """A paper whose cells are being found, with what they share."""

    words: PaperWords

    @property
    def paper(self) -> Paper:
        return self.words.paper

    @property
    def is_whole(self) -> bool:
        """Whether there is text: not of a scan, nor of a paper that is gone meanwhile."""
        return len(self.words.text) == self.paper.length > 0

    @cached_property
    def sentences(self) -> list[OwnSentence]:
        """The sentences that can be read by themselves."""
        return own_sentences(self.words.paper, self.words.text)


@dataclass
class CellFinder:
    """Fills the cells of one paper after another. For one thread, as its retriever is."""

    retriever: Retriever
    extractive: ExtractiveAnswerer
    meaning: Embedder  # the built-in one
    by_model: ModelCells | None = None  # None without a chat model
    _check: Callable[[], None] = field(default_factory=lambda: _go_on, init=False)  # of the paper that is being filled

    def check_cancelled(self) -> None:
        """Raise to end the work on a paper, if whoever asked for it wants that."""
        self._check()

    def fill(
        self,
        paper: Paper,
        columns: Sequence[Column],
        check_cancelled: Callable[[], None] = lambda: None,
        *,
        least_said: float = 0.0,
    ) -> Iterator[tuple[int, Cell]]:
        """The cells of a paper, each as soon as it is found: the index of its column, and the cell.

        check_cancelled: called often; an exception that it raises ends the work. least_said: share of a question's
        words that three sentences in a row must have for the paper's passages to be read; with it, an empty cell has no
        closest place. Raises ModelError and StoreDamaged.
        """
        read = _PaperRead(PaperWords(paper, self.retriever.text(paper.id, 0, paper.length)))
        self._check = check_cancelled
        evidence = self._evidence_of(paper, columns) if self.by_model else ()
        for place, column in enumerate(columns):
            check_cancelled()
            cell = self.by_model.cell(column, evidence) if self.by_model else None
            with self.retriever.cancellable(check_cancelled):
                cell = cell or self._cell(read, column, least_said)
                if not cell.findings and cell.closest is None and not least_said:
                    cell = replace(cell, closest=self._closest(read, Question(asked(column))))
            yield place, cell

    def _evidence_of(self, paper: Paper, columns: Sequence[Column]) -> tuple[Evidence, ...]:
        """The passages of a paper for all its cells: each prompt begins with them, so that a server reads them once.

        In turns the best of each column, as far as a prompt has room; in reading order, which depends on no column.
        """
        ranked = list[Sequence[Hit]]()
        for column in columns:
            self.check_cancelled()
            question = Question(asked(column))
            hits = self._hits(paper, question)
            # "Limits" shares no word with what says them: the passages of the sections that do
            whole = question.type.aspect and whole_paper_hits(question, self.retriever.passages(paper), hits, PASSAGES)
            ranked.append(whole or hits)
        room = self.by_model.evidence_tokens if self.by_model else 0
        in_turns = [hit for hits in zip_longest(*ranked) for hit in hits if hit]
        hits = list({hit.chunk.id: hit for hit in in_turns}.values())[: max(1, room // PASSAGE_TOKENS)]
        gathered = gather(hits, self.retriever.text, room).evidence
        in_order = sorted(gathered, key=lambda piece: piece.start)
        return tuple(replace(piece, number=number) for number, piece in enumerate(in_order, 1))

    def _cell(self, read: _PaperRead, column: Column, least_said: float) -> Cell:
        """A cell in the paper's own words, by what its column asks for."""
        if not read.is_whole:
            return Cell()
        if (effect := Effect.asked(asked(column))) and column.kind == "text":
            places = islice(effect.places(read.words), 1)
            return Cell(tuple(Finding(read.words.brief(place, LEAST_WORDS)) for place in places))
        heading = known_heading(column)
        if column.kind == "choice" or (column.kind == "yes_no" and not (heading and heading.cues)):
            return Cell(tuple(said_of(column, Question(asked(column)), read.words, read.sentences)))
        if heading:
            quotes = announced(heading, read.words, read.sentences, self.meaning)
            return self._first(column, Question(heading.question), quotes)
        return self._searched(read, column, least_said)

    @staticmethod
    def _first(column: Column, question: Question, quotes: Iterator[Quote]) -> Cell:
        """The first of some quotes that has the value that the column asks for; without one, the first is closest."""
        closest: Quote | None = None
        for quote in quotes:
            if (found := value_in(column, question, quote.quote)) is not None:
                return Cell((Finding(quote, *found),))
            closest = closest or quote
        return Cell(closest=closest)

    def _searched(self, read: _PaperRead, column: Column, least_said: float) -> Cell:
        """A cell of a question that the paper is searched for."""
        question = Question(asked(column))
        evidence = self.evidence(read.paper, question)
        if least_said and _most_said(read.words, question, evidence) < least_said:
            return Cell()
        scored = self.extractive.candidates(question, evidence)
        found = list[Finding]()
        sure = 0.0
        quotes = [(excerpt, _quote(excerpt)) for excerpt in scored.excerpts[:MOST_TRIED]]
        for excerpt, quote in quotes:
            value = value_in(column, question, quote.quote)
            if value is None:
                continue
            finding = Finding(quote, *value)
            if not found:
                sure = _sure(read.words, question, excerpt, quote, scored.read)
                best = excerpt.share
                found.append(finding)
            elif excerpt.share >= NEARLY * best and disagree(found[0], finding):
                found.append(finding)
                break
        if sure >= LEAST_SURE:
            return Cell(tuple(found), sure)
        closest = found[0].quote if found else next((quote for _, quote in quotes), None)
        return Cell((), sure, closest)

    def _closest(self, read: _PaperRead, question: Question) -> Quote | None:
        """The sentence of the paper's best passages with most of the question's words: no passage is read for it."""
        words, wanted = read.words, _content(question)
        hits = self._hits(read.paper, question)[:CLOSEST_IN] if read.is_whole else ()
        shares = {
            place: words.coverage(wanted, words.tokens[place])
            for hit in hits
            for place, (start, _) in enumerate(words.spans)
            if hit.chunk.start <= start < hit.chunk.end
        }
        place = max(shares, key=shares.__getitem__, default=None)
        return words.brief(place, LEAST_WORDS) if place is not None and shares[place] else None

    def evidence(self, paper: Paper, question: Question) -> tuple[Evidence, ...]:
        """The passages of a paper that may answer, best first."""
        return gather(self._hits(paper, question), self.retriever.text, EVIDENCE_TOKENS).evidence

    def _hits(self, paper: Paper, question: Question) -> Sequence[Hit]:
        """The best passages of a paper for a question. Between passages of one paper the reranker earns nothing."""
        return self.retriever.find(SearchRequest(question, PASSAGES, [paper], rerank=False, written=False)).hits


def _go_on() -> None:
    """Nobody asks for an end."""


def _content(question: Question) -> list[str]:
    """The search tokens of a question, but words such as "the"."""
    return [token for token in question.tokens if token not in STOP_WORDS]


def _most_said(words: PaperWords, question: Question, evidence: Sequence[Evidence]) -> float:
    """The largest share of a question's words that the title and three sentences in a row have, 0 to 1.

    All words count the same: in a paper on glaciers "glacier" is common, and still what the question is about.
    """
    wanted = set(_content(question))
    titled = tokenize(words.paper.title)
    most = 0
    for piece in evidence:
        tokens = [tokenize(piece.text[start:end]) for start, end in sentence_spans(piece.text)]
        for place in range(len(tokens)):
            most = max(most, len(wanted.intersection(titled, *tokens[max(0, place - 1) : place + 2])))
    return most / len(wanted) if wanted else 1.0


def _sure(words: PaperWords, question: Question, excerpt: Excerpt, quote: Quote, read: float) -> float:
    """The probability that a quote answers, 0 to 1."""
    said = words.coverage(_content(question), tokenize(f"{words.paper.title}\n{quote.quote}"))
    odds = max(-MOST_ODDS, min(MOST_ODDS, read))
    return 1 / (1 + math.exp(-(READ_WEIGHT * odds + SHARE_WEIGHT * excerpt.share + WORDS_WEIGHT * said + BIAS)))


def _quote(excerpt: Excerpt) -> Quote:
    """The sentence of an excerpt that answers, with those around it, about 40 words; the words of one page."""
    short, block = brief(excerpt), excerpt.block
    longest = citation(block.evidence, block.parts[short.first].start, block.parts[short.last].end, 1.0)
    return Quote(longest.paper, longest.start, longest.end, longest.quote)
