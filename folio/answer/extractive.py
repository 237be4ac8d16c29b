"""Question + evidence -> the excerpts of the papers that answer best, word for word. No model writes anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter
from statistics import mean

from folio.answer.excerpts import Span
from folio.answer.library_questions import title_span
from folio.answer.ranking import (
    DETAIL_SHARE,
    DETAIL_WORDS,
    MOST_DETAILS,
    MOST_OF_REPORT,
    MOST_READ,
    OF_THE_WHOLE,
    SUMMARY_PARTS,
    Excerpt,
    abstract,
    alone,
    apart,
    brief,
    has_type,
    kinds_of,
    meets_conditions,
    most_sure,
    pointers,
    read_blocks,
    scored_excerpts,
    short_answer,
)
from folio.answer_types import ALSO, CLOSEST, FROM_PAPERS, SUMMARY, Answer, Evidence, Section, Sentence, Style
from folio.errors import command
from folio.grounding.conflicts import against
from folio.grounding.sentences import EvidenceSentence, citation, citations, number_sentences
from folio.protocols import PassageReader, TermWeights, TokenEmbedder
from folio.question import followup
from folio.question.kind import ASKING, gives_number
from folio.question.question import Question
from folio.search.builtin_reranker import Matches, evidence_coverage, matches
from folio.text import coverage, one_line, sentence_spans, tokenize

# How sure the built-in answerer is that the evidence answers a question; below a threshold it refuses. Pure.
#
# LOG.md has what was tried. `benchmarks/answerability.py` makes the figures and the threshold again.

# Below this a question is refused: 9 of dev's 100 answerable questions, and 16 of its 25 that are not (LOG.md).
LEAST_CONFIDENCE = 0.57
# From here on excerpts are given as an answer; below, as the closest passages, which may not answer. At this threshold
# 2 of dev's 25 unanswerable questions, and 3 of newcomers' 16, are answered without that warning (LOG.md).
SURE = 0.65
# Numeric questions need this much more coverage: papers are full of numbers.
NUMBER_MARGIN = 0.04
# How much less the senses of a follow-up cover, on average: with it, 6 % of MTRAG's answerable follow-ups are below.
FOLLOWUP_MARGIN = 0.027
# How much the names and the length of the question count, beside the 1 of what the evidence covers.
NAMES_WEIGHT, LENGTH_WEIGHT = 0.1, 0.1
# What the reader's log-odds, within MOST_ODDS, add to the confidence
READ_WEIGHT, MOST_ODDS = 0.02, 5.0
# Terms of a long question: it says more than any passage repeats, so that less of it is covered.
LONG_QUESTION = 14

# A word with a capital or a digit, except the first: "Raft", "GPT-2", "2019"
_NAME = re.compile(r"(?<!^)\b(?:[A-Z][\w-]*|\w*\d[\w-]*)")


def confidence(
    question: Question,
    evidence: Sequence[Evidence],
    found: Sequence[Matches],
    weights: TermWeights,
    *,
    read: float = 0.0,
    needs_number: bool = True,
) -> float:
    """How sure it is that this evidence answers the question, 0 to 1.

    found: the question's matches in each piece of evidence. weights: the IDF of the question's terms. read: the
    reader's log-odds that some of the evidence answers; 0 where nothing was read. needs_number: whether a numeric
    question is answered by sentences with a number alone.
    """
    covered = _covered(question, evidence, found) if needs_number else evidence_coverage(found)
    if not covered:
        return 0.0
    names = _names_share(question, evidence, weights)
    length = min(1.0, len(weights) / LONG_QUESTION)
    said = (covered + NAMES_WEIGHT * names + LENGTH_WEIGHT * length) / (1 + NAMES_WEIGHT + LENGTH_WEIGHT)
    return min(1.0, max(0.0, said + READ_WEIGHT * max(-MOST_ODDS, min(MOST_ODDS, read))))


def _covered(question: Question, evidence: Sequence[Evidence], found: Sequence[Matches]) -> float:
    """How much of a question the evidence covers, 0 to 1.

    A numeric question is measured by its best sentence with a number, less NUMBER_MARGIN: the evidence as a whole
    covers whatever the paper is about, whether or not it gives the value.
    """
    if not question.asks_for_number:
        return evidence_coverage(found)
    of_numbers = (
        match.coverage(start, end)
        for piece, match in zip(evidence, found, strict=True)
        for start, end in sentence_spans(piece.text)
        if gives_number(piece.text[start:end], question.text)
    )
    return max(0.0, max(of_numbers, default=0.0) - NUMBER_MARGIN)


def _names_share(question: Question, evidence: Sequence[Evidence], weights: TermWeights) -> float:
    """The share, by IDF, of the names in a question that stand literally in the evidence or a title; 1 without names.

    To the embedder one unusual name is much like another.
    """
    names = {term for name in _NAME.findall(question.text) for term in tokenize(name)}
    named = {term: weight for term, weight in weights.items() if term in names}
    if not any(named.values()):
        return 1.0
    return coverage(named, {term for piece in evidence for term in tokenize(f"{piece.paper.title}\n{piece.text}")})


# A paper is listed for a subject if its passage answers as surely as that, and if this and the paper's own score (the
# best paper's is near 1), with its weight, add up to so much (LOG.md).
LEAST_OF_PAPER, PAPER_WEIGHT, LEAST_WITH_SCORE = 0.5, 0.5, 0.86
# The share of the words of a thing, by IDF, that what is said of it has
MOST_OF_A_NAME = 0.5
# Excerpts for each part of a question that one paper answers whole
MOST_OF_ONE_PAPER = 2
WITHOUT_MODEL = (
    f"These are passages as they stand in the papers. With a chat model on Ollama (`{command('doctor')}` shows"
    " how), Folio answers in sentences and cites these."
)


@dataclass(frozen=True, slots=True)
class Scored:
    """The excerpts of the evidence, best first, and what the reader says of all of it."""

    excerpts: list[Excerpt]
    confidence: float  # that the evidence answers, 0 to 1
    read: float = 0.0  # the reader's log-odds that it does

    @property
    def is_enough(self) -> bool:
        """Whether these answer the question, rather than that it is refused."""
        return self.confidence >= LEAST_CONFIDENCE


@dataclass(frozen=True, slots=True)
class PartsAnswered:
    """The best excerpts for each part of a question, and how sure they are on average."""

    excerpts: list[tuple[Question, Excerpt]]
    confidence: float


class ExtractiveAnswerer:
    """Answers with the excerpts of the evidence that come closest, quoted word for word."""

    name = "extractive (built in)"
    notice = WITHOUT_MODEL
    quotes_only = True
    failed = False

    def __init__(
        self,
        embedder: TokenEmbedder,
        reader: PassageReader,
        term_weights: Callable[[Question], TermWeights],
        *,
        evidence_tokens: int,
    ) -> None:
        """evidence_tokens: limit for the evidence that is searched."""
        self._embedder = embedder
        self._reader = reader
        self._term_weights = term_weights
        self.evidence_tokens = evidence_tokens

    def sentences(
        self, question: Question | str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Generator[Sentence, None, float | None]:
        """See protocols.Answerer. A question is refused below LEAST_CONFIDENCE."""
        question = Question.of(question)
        if style == "plain" and question.topic:
            return (yield from self._of_papers(Question(question.topic), evidence))
        if style == "plain" and question.type.aspect == "summary" and (whole := self._summary(evidence)):
            yield from whole
            return 1.0
        of_parts = self._best_of_parts(question, evidence) if style == "plain" else None
        if of_parts is not None:
            if of_parts.confidence >= LEAST_CONFIDENCE:
                yield from _each(of_parts.excerpts, evidence, FROM_PAPERS if of_parts.confidence >= SURE else CLOSEST)
            return of_parts.confidence
        scored = self._score_plainly(question, evidence, style)
        if len(question.senses) > 1:
            scored = replace(scored, confidence=self._confidence_of_followup(question, evidence, scored.read))
        if scored.is_enough:
            is_sure = scored.confidence >= SURE and (not scored.excerpts or _gives_value(scored.excerpts[0], question))
            yield from _best(scored.excerpts, question, evidence, style, FROM_PAPERS if is_sure else CLOSEST)
        return scored.confidence

    def closest(
        self, question: Question | str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Iterator[Sentence]:
        """The same without ever refusing: for an answer whose model failed."""
        question = Question.of(question)
        if style == "plain" and (of_parts := self._best_of_parts(question, evidence)):
            yield from _each(of_parts.excerpts, evidence, CLOSEST)
        else:
            yield from _best(self._score(question, evidence, style).excerpts, question, evidence, style, CLOSEST)

    def best_quote(self, question: Question, evidence: Sequence[Evidence]) -> Sentence | None:
        """The one sentence that answers best, for an answer that a model writes; None where nothing does."""
        scored = self._score(question, evidence)
        if not scored.excerpts or not scored.is_enough:
            return None
        best = scored.excerpts[0]
        headless = replace(best, block=replace(best.block, head=None))
        return replace(excerpt_sentence(alone(headless), question, number_sentences(evidence), Section()), marks=())

    def _best_of_parts(self, question: Question, evidence: Sequence[Evidence]) -> PartsAnswered | None:
        """The best excerpts for each part of a question; None if it has none, or not all have an answer apart.

        Questions that are asked one after the other are each refused or answered; of what is compared or joined, a
        part is no question, and the whole is. A compared thing that nothing is about is left out. The confidence is
        the mean of the parts: no passage has the words of all.
        """
        excerpts: list[tuple[Question, Excerpt]] = []
        sure: list[float] = []
        for part in question.parts:
            own = [piece for piece in evidence if _is_found_for(part, piece)]
            scored = self._score(part, own or evidence)
            thing = "" if question.questions else question.thing_of(part)
            weights = self._term_weights(Question(thing)) if thing else {}
            texts = (f"{one.block.evidence.paper.title}\n{one.text}" for one in scored.excerpts)
            if thing and not any(is_about(weights, text) for text in texts):
                continue
            if question.questions and not scored.is_enough:
                return None
            new = [one for one in scored.excerpts if not any(one.overlaps(other) for _, other in excerpts)]
            if not new or (question.questions and new[0] is not scored.excerpts[0]):
                return None
            excerpts += [(part, new[0]), *((part, brief(other)) for other in pointers(new))]
            sure.append(scored.confidence)
        return PartsAnswered(excerpts, mean(sure)) if excerpts else None

    def _of_papers(self, topic: Question, evidence: Sequence[Evidence]) -> Generator[Sentence, None, float]:
        """Of each paper that has something on a subject, what it says of it."""
        found, weights = self._matches(topic, evidence)
        most, sentences = 0.0, number_sentences(evidence)
        for paper in dict.fromkeys(piece.paper for piece in evidence):
            both = [(piece, match) for piece, match in zip(evidence, found, strict=True) if piece.paper == paper]
            own, its = [piece for piece, _ in both], [match for _, match in both]
            read = read_blocks(self._reader, topic, own, its)
            sure = confidence(topic, own, its, weights, read=most_sure(read))
            most = max(most, sure)
            if sure >= LEAST_OF_PAPER and sure + PAPER_WEIGHT * own[0].score >= LEAST_WITH_SCORE:
                scored = scored_excerpts(self._embedder, topic, read)
                heading = replace(FROM_PAPERS, subheading=paper.title or paper.file)
                if scored:
                    yield excerpt_sentence(brief(scored[0]), topic, sentences, heading)
                elif title := _title(own[0], heading):
                    yield title
        return most

    def _summary(self, evidence: Sequence[Evidence]) -> list[Sentence]:
        """The abstract of the paper that the evidence is of, and what each of its sections says; [] without either."""
        if len({piece.paper for piece in evidence}) != 1:
            return []
        sentences = number_sentences(evidence)
        first = abstract(evidence) or next(iter(self._score(Question(OF_THE_WHOLE), evidence).excerpts), None)
        shown = [first] if first else []
        headings = ["Abstract" if first and first.block.section == "abstract" else "In short"] * len(shown)
        for heading, question, kind in SUMMARY_PARTS:
            own = [piece for piece in evidence if kind in kinds_of(piece.paper, piece.start, piece.end)]
            among = self._score(Question(question), own).excerpts if own else []
            scored = [one for one in among if one.block.section == kind and one.block.kind != "table"]
            if found := next(iter(apart(scored, shown)), None):
                shown.append(brief(found))
                headings.append(heading)
        parts = [replace(FROM_PAPERS, subheading=heading) for heading in headings]
        written = [excerpt_sentence(one, Question(""), sentences, part) for one, part in zip(shown, parts, strict=True)]
        return [replace(sentence, marks=()) for sentence in written]

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer."""
        return followup.standalone(question, history)

    def _score(self, question: Question, evidence: Sequence[Evidence], style: Style = "plain") -> Scored:
        """The excerpts of the evidence, best first, and how sure it is that they answer."""
        most = MOST_OF_REPORT if style == "report" else MOST_READ
        found, weights = self._matches(question, evidence)
        blocks = read_blocks(self._reader, question, evidence, found)
        read = most_sure(blocks)
        sure = confidence(question, evidence, found, weights, read=read)
        return Scored(scored_excerpts(self._embedder, question, blocks, most), sure, read)

    def _score_plainly(self, question: Question, evidence: Sequence[Evidence], style: Style) -> Scored:
        """The excerpts of what a plain search found for the question, if that answers it; else of all. See `_score`.

        What a deep search finds besides made a plain answer more often worse than better (LOG.md).
        """
        own = [piece for piece in evidence if _is_found_for(question, piece)] if style == "plain" else []
        scored = self._score(question, own) if own else Scored([], 0.0)
        is_answered = scored.excerpts and scored.is_enough
        return scored if is_answered or len(own) == len(evidence) else self._score(question, evidence, style)

    def _confidence_of_followup(self, question: Question, evidence: Sequence[Evidence], read: float) -> float:
        """That of all its senses on average: it may have been understood wrongly."""
        senses = [question, *map(Question, question.senses[1:])]
        each = [confidence(sense, evidence, *self._matches(sense, evidence), read=read) for sense in senses]
        return min(1.0, mean(each) + FOLLOWUP_MARGIN)

    def _matches(self, question: Question, evidence: Sequence[Evidence]) -> tuple[list[Matches], TermWeights]:
        """The question's matches in the evidence, and the IDF of its terms.

        A paper's title counts for its sentences: a question may name the paper, and its sentences seldom do.
        """
        weights = {term: weight for term, weight in self._term_weights(question).items() if term not in ASKING}
        pieces = [(piece.paper.title, piece.text) for piece in evidence]
        return matches(self._embedder, question.text, pieces, weights), weights


def _gives_value(excerpt: Excerpt, question: Question) -> bool:
    """Whether what answers has a number or a date, if the question asks for one."""
    return question.type.kind not in ("number", "date") or has_type(question, excerpt.core_text)


def _is_found_for(question: Question, evidence: Evidence) -> bool:
    return any(question.text in hit.found_for for hit in evidence.hits)


def is_about(weights: TermWeights, said: str) -> bool:
    """Whether a text has most of a thing's words, by IDF. weights: of these words."""
    return coverage(weights, tokenize(said)) >= MOST_OF_A_NAME


def _best(
    scored: Sequence[Excerpt], question: Question, evidence: Sequence[Evidence], style: Style, heading: Section
) -> Iterator[Sentence]:
    """The excerpt that answers, and where else an answer may be; nothing without an excerpt.

    heading: of excerpts. A report sums up with these and adds more excerpts, paper by paper.
    """
    if not scored:
        return
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


def _title(evidence: Evidence, heading: Section) -> Sentence | None:
    """The title of a paper where it stands in a piece of evidence, if it does."""
    start, end = title_span(evidence.paper, evidence.text)
    if start == end:
        return None
    quote = citation(evidence, start, end, 1.0)
    return Sentence(one_line(quote.quote), (quote,), section=heading)


def _each(found: Sequence[tuple[Question, Excerpt]], evidence: Sequence[Evidence], heading: Section) -> list[Sentence]:
    """The excerpts of each part of a question, headed by their paper if they are of several; two of each if of one."""
    sentences = number_sentences(evidence)
    papers = {excerpt.block.evidence.paper for _, excerpt in found}
    if len(papers) == 1:
        found = [one for _, own in groupby(found, key=itemgetter(0)) for one in islice(own, MOST_OF_ONE_PAPER)]
    written = []
    for part, excerpt in found:
        paper = excerpt.block.evidence.paper
        own = replace(heading, subheading=paper.title or paper.file) if len(papers) > 1 else heading
        written.append(excerpt_sentence(excerpt, part, sentences, own))
    return written


def excerpt_sentence(
    excerpt: Excerpt,
    question: Question,
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
    above = f"{evidence.paper.title}\n{evidence.text[slice(*block.head)] if block.head else ''}"
    said = frozenset(tokenize(f"{above}\n{excerpt.core_text}"))
    if block.kind != "table" and (question.type.kind != "number" or meets_conditions(question, said, excerpt.covered)):
        found = short_answer(question, evidence.text[core.start : core.end])
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
            shown.append(("\n", start - 1))
        for offset in range(start, end):
            char = evidence[offset]
            if offset in breaks and shown and shown[-1][0] != "\n":
                shown = [*(shown[:-1] if shown[-1][0] == " " else shown), ("\n", offset - 1)]
            if kind == "table" or not char.isspace():
                shown.append((char, offset))
            elif shown and shown[-1][0] not in " \n":
                shown.append((" ", offset))
    return "".join(char for char, _ in shown), [offset for _, offset in shown]


def _place(offsets: Sequence[int], start: int, end: int) -> Span | None:
    """Where the characters [start, end) of the evidence stand in what is shown; None if they do not."""
    inside = [place for place, offset in enumerate(offsets) if start <= offset < end]
    return (inside[0], inside[-1] + 1) if inside else None
