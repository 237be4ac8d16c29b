"""Question + evidence -> the excerpts of the papers that answer best, word for word. No model writes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import mean

from folio.answer import followup
from folio.answer.answerability import FOLLOWUP_MARGIN, LEAST_CONFIDENCE, SURE, confidence
from folio.answer.excerpt_ranking import (
    DETAIL_SHARE,
    DETAIL_WORDS,
    MOST_DETAILS,
    MOST_OF_REPORT,
    MOST_READ,
    Excerpt,
    alone,
    apart,
    brief,
    pointers,
    scored_excerpts,
)
from folio.answer.excerpts import Span
from folio.answer.question_type import ASKING, question_type
from folio.answer.short_answer import short_answer
from folio.answer_types import ALSO, CLOSEST, FROM_PAPERS, SUMMARY, Answer, Evidence, Section, Sentence, Style
from folio.errors import with_commands
from folio.grounding.conflicts import against
from folio.grounding.sentences import EvidenceSentence, citations, number_sentences
from folio.protocols import PassageReader, TermWeights, TokenEmbedder
from folio.search.late_interaction import Matches, matches
from folio.search.question_parts import parts_alone, questions_in

WITHOUT_MODEL = with_commands(
    "These are passages as they stand in the papers. With a chat model on Ollama (`python query.py --doctor` shows"
    " how), Folio answers in sentences and cites these."
)


class ExtractiveAnswerer:
    """Answers with the excerpts of the evidence that come closest, quoted word for word."""

    name = "extractive (built in)"
    quotes_only = True
    failed = False

    def __init__(
        self,
        embedder: TokenEmbedder,
        reader: PassageReader,
        term_weights: Callable[[str], TermWeights],
        *,
        evidence_tokens: int,
    ) -> None:
        """evidence_tokens: limit for the evidence that is searched."""
        self.confidence: float | None = None
        self.notice = WITHOUT_MODEL
        self._embedder = embedder
        self._reader = reader
        self._term_weights = term_weights
        self._senses: Sequence[str] = ()  # of a follow-up that is answered next; the first as it was understood
        self.evidence_tokens = evidence_tokens

    def sentences(self, question: str, evidence: Sequence[Evidence], style: Style = "plain") -> Iterator[Sentence]:
        """See protocols.Answerer."""
        senses, self._senses = self._senses, ()
        of_parts = self._best_of_parts(question, evidence) if style == "plain" else []
        scored = self._score(question, evidence, style)
        if self.confidence is not None and len(senses) > 1 and question == senses[0]:
            self.confidence = self._confidence_of_followup(senses, evidence)
        if scored and self.confidence is not None and self.confidence >= LEAST_CONFIDENCE:
            heading = FROM_PAPERS if self.confidence >= SURE else CLOSEST
            yield from _each(of_parts, evidence, heading) or _best(scored, question, evidence, style, heading)

    def closest(self, question: str, evidence: Sequence[Evidence], style: Style = "plain") -> Iterator[Sentence]:
        """The same without ever refusing: for an answer whose model failed."""
        if scored := self._score(question, evidence, style):
            of_parts = self._best_of_parts(question, evidence) if style == "plain" else []
            yield from _each(of_parts, evidence, CLOSEST) or _best(scored, question, evidence, style, CLOSEST)

    def best_quote(self, question: str, evidence: Sequence[Evidence]) -> Sentence | None:
        """The one sentence that answers best, for an answer that a model writes; None where nothing does."""
        scored = self._score(question, evidence)
        if not scored or self.confidence is None or self.confidence < LEAST_CONFIDENCE:
            return None
        headless = replace(scored[0], block=replace(scored[0].block, head=None))
        return replace(excerpt_sentence(alone(headless), question, number_sentences(evidence), Section()), marks=())

    def _best_of_parts(self, question: str, evidence: Sequence[Evidence]) -> list[tuple[str, Excerpt]]:
        """The best excerpt for each part of a question; [] if it has none, or not all have an answer apart.

        Questions that are asked one after the other are each refused or answered; of what is compared or joined, a
        part is no question, and the whole is.
        """
        questions = questions_in(question)
        found: list[tuple[str, Excerpt]] = []
        for part in parts_alone(question):
            scored = self._score(part, evidence)
            if questions and (self.confidence or 0.0) < LEAST_CONFIDENCE:
                return []
            best = next((one for one in scored if not any(one.overlaps(other) for _, other in found)), None)
            if best is None or (questions and best is not scored[0]):
                return []
            found.append((part, best))
        return found

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer."""
        meant = followup.standalone(question, history)
        self._senses = followup.senses(question, meant, [turn.question for turn in history])
        return meant

    def _score(self, question: str, evidence: Sequence[Evidence], style: Style = "plain") -> list[Excerpt]:
        """The excerpts of the evidence, best first. Sets `confidence`."""
        most = MOST_OF_REPORT if style == "report" else MOST_READ
        found, weights = self._matches(question, evidence)
        self.confidence = confidence(question, evidence, found, weights)
        return scored_excerpts(self._embedder, self._reader, question, evidence, found, weights, most)

    def _confidence_of_followup(self, senses: Sequence[str], evidence: Sequence[Evidence]) -> float:
        """That of all its senses on average: it may have been understood wrongly."""
        each = [confidence(sense, evidence, *self._matches(sense, evidence)) for sense in senses]
        return min(1.0, mean(each) + FOLLOWUP_MARGIN)

    def _matches(self, question: str, evidence: Sequence[Evidence]) -> tuple[list[Matches], TermWeights]:
        """The question's matches in the evidence, and the IDF of its terms.

        A paper's title counts for its sentences: a question may name the paper, and its sentences seldom do.
        """
        weights = {term: weight for term, weight in self._term_weights(question).items() if term not in ASKING}
        pieces = [(piece.paper.title, piece.text) for piece in evidence]
        return matches(self._embedder, question, pieces, weights), weights


def _best(
    scored: Sequence[Excerpt], question: str, evidence: Sequence[Evidence], style: Style, heading: Section
) -> Iterator[Sentence]:
    """The excerpt that answers, and where else an answer may be.

    heading: of excerpts. A report sums up with these and adds more excerpts, paper by paper.
    """
    sentences = number_sentences(evidence)
    best, *others = answering = [scored[0], *pointers(scored)]
    if style == "plain":
        yield excerpt_sentence(best, question, sentences, heading, leads=True)
        for excerpt in others:
            yield excerpt_sentence(brief(excerpt), question, sentences, ALSO)
        return
    for excerpt in answering:
        yield excerpt_sentence(excerpt, question, sentences, SUMMARY, leads=excerpt is best)
    details, left = list[Excerpt](), DETAIL_WORDS
    for excerpt in apart([one for one in scored if one.share >= DETAIL_SHARE], answering):
        if excerpt.words <= left and len(details) < MOST_DETAILS:
            details.append(excerpt)
            left -= excerpt.words
    for paper in dict.fromkeys(excerpt.block.evidence.paper for excerpt in details):
        own = [excerpt for excerpt in details if excerpt.block.evidence.paper == paper]
        for excerpt in sorted(own, key=lambda one: one.block.evidence.start + one.spans[0][0]):
            yield excerpt_sentence(excerpt, question, sentences, Section("Analysis", paper.title or paper.file))


def _each(found: Sequence[tuple[str, Excerpt]], evidence: Sequence[Evidence], heading: Section) -> list[Sentence]:
    """An excerpt for each part of a question, headed by its paper if they are of several."""
    sentences = number_sentences(evidence)
    papers = [excerpt.block.evidence.paper for _, excerpt in found]
    headings = [replace(heading, subheading=paper.title or paper.file) for paper in papers]
    if len(set(papers)) == 1:
        headings = [heading] * len(papers)
    parts = zip(found, headings, strict=True)
    return [excerpt_sentence(excerpt, part, sentences, own) for (part, excerpt), own in parts]


def excerpt_sentence(
    excerpt: Excerpt,
    question: str,
    sentences: Sequence[EvidenceSentence],
    section: Section,
    *,
    leads: bool = False,
) -> Sentence:
    """An excerpt with its citations, one for each page, and its words that answer marked.

    leads: whether a short answer in it is to stand above the whole answer.
    """
    block, core = excerpt.block, excerpt.block.parts[excerpt.core]
    evidence = block.evidence
    text, offsets = _shown(excerpt)
    quotes = tuple(quote for span in excerpt.spans for quote in citations(evidence, *span, 1.0))
    short = None
    if block.kind != "table":
        found = short_answer(question_type(question).kind, evidence.text[core.start : core.end], question)
        short = _place(offsets, core.start + found[0], core.start + found[1]) if found else None
    mark = short or _place(offsets, core.start, core.end)
    disagrees = against(evidence.text[core.start : core.end], quotes, sentences)
    return Sentence(text, quotes, disagrees, section, marks=(mark,) if mark else (), short=short if leads else None)


def _shown(excerpt: Excerpt) -> tuple[str, list[int]]:
    """An excerpt as it is shown, and where each of its characters stands in the evidence's text.

    Prose is on one line, each item of a list on its own; a table keeps its lines.
    """
    evidence, kind = excerpt.block.evidence.text, excerpt.block.kind
    breaks = {part.start for part in excerpt.block.parts} if kind == "list" else set()
    shown: list[tuple[str, int]] = []
    for start, end in excerpt.spans:
        if shown:
            shown.append(("\n", start))
        for offset in range(start, end):
            char = evidence[offset]
            if offset in breaks and shown and shown[-1][0] != "\n":
                shown = [*shown[:-1], ("\n", offset)] if shown[-1][0] == " " else [*shown, ("\n", offset)]
            if kind == "table" or not char.isspace():
                shown.append((char, offset))
            elif shown and shown[-1][0] not in " \n":
                shown.append((" ", offset))
    return "".join(char for char, _ in shown), [offset for _, offset in shown]


def _place(offsets: Sequence[int], start: int, end: int) -> Span | None:
    """Where the characters [start, end) of the evidence stand in what is shown; None if they do not."""
    inside = [place for place, offset in enumerate(offsets) if start <= offset < end]
    return (inside[0], inside[-1] + 1) if inside else None
