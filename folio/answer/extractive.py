"""Question + evidence -> the excerpts that answer best, word for word. No model writes anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, groupby, islice
from operator import itemgetter
from pathlib import PurePath
from statistics import mean

from folio.answer.excerpts import Span, blocks
from folio.answer.library_questions import title_span
from folio.answer.ranking import (
    DETAIL_SHARE,
    DETAIL_WORDS,
    MOST_DETAILS,
    MOST_OF_REPORT,
    MOST_READ,
    Excerpt,
    alone,
    brief,
    distinct_excerpts,
    most_sure,
    pointers,
    read_blocks,
    scored_excerpts,
)
from folio.answer.values import has_type, meets_conditions, short_answer
from folio.answer.whole_paper import ABOUT_QUESTION, SUMMARY_PARTS, kinds_of
from folio.answer_types import (
    ALSO,
    CLOSEST,
    FROM_PAPERS,
    SUMMARY,
    Answer,
    Citation,
    Evidence,
    Quote,
    Section,
    Sentence,
    Style,
)
from folio.errors import command
from folio.grounding.conflicts import MOST_AGAINST, against, are_apart, conflict, disagreeing, of_values
from folio.grounding.negation import affirms_denied
from folio.grounding.quantities import Quantity, quantities
from folio.grounding.sentences import EvidenceSentence, citation, citations, number_sentences
from folio.papers.model import Paper
from folio.protocols import PassageReader, TermWeights, TokenEmbedder
from folio.question import followup
from folio.question.kind import ASKING, gives_number
from folio.question.question import Question, Statement, asks_where
from folio.search.late_interaction import Matches, evidence_coverage, matches
from folio.text import STOP_WORDS, coverage, one_line, plain_words, sentence_spans, tokenize, without_accents

# Thresholds of the confidence. LOG.md has the experiments; `benchmarks/answerability.py` reproduces the figures.

# Below this a question is refused: 9 of dev's 100 answerable questions, and 16 of its 25 unanswerable ones (LOG.md).
LEAST_CONFIDENCE = 0.57
# From here on excerpts are an answer; below, they are the closest passages, which may not answer. At this threshold 2
# of dev's 25 unanswerable questions, and 3 of newcomers' 16, are answered without that warning (LOG.md).
SURE = 0.65
NUMBER_MARGIN = 0.04  # numeric questions need this much more coverage: papers are full of numbers
# Added to the mean confidence of a follow-up's senses; with it, 6 % of MTRAG's answerable follow-ups are refused.
FOLLOWUP_MARGIN = 0.027
# Weights of the question's names and length, relative to 1 for the coverage by the evidence
NAMES_WEIGHT, LENGTH_WEIGHT = 0.1, 0.1
NAMED_CONFIDENCE = 0.9  # of the algorithm that the question names, which is its answer
READ_WEIGHT, MOST_ODDS = 0.02, 5.0  # weight of the reader's log-odds, and their limit
LONG_QUESTION = 14  # terms; evidence repeats less of a question with more

# A word with a capital or a digit, except the first: "Raft", "GPT-2", "2019"
_NAME = re.compile(r"(?<!^)\b(?:[A-Z][\w-]*|\w*\d[\w-]*)")
# A paper is listed for a topic from this confidence on, and if confidence + PAPER_WEIGHT * score (near 1 for the best
# paper) reaches the last value (LOG.md).
LEAST_OF_PAPER, PAPER_WEIGHT, LEAST_WITH_SCORE = 0.5, 0.5, 0.86
# Share of the selected words, by IDF, in a sentence that says the same. Set by hand on 12 selections (LOG.md).
SAME_WORDS = 0.6
NEARLY_FIRST = 0.5  # share of an excerpt with all names of the question that goes first, relative to the first
MOST_OF_NAME = 4  # terms of a name that "and" joins to others
LEAST_OF_NAME = 0.5  # share of a name's words, by IDF, in a text about it
MOST_OF_ONE_PAPER = 2  # excerpts for each part of a question if one paper answers all of it
LONGEST_ABSTRACT = 200  # maximum words of the abstract at the start of a summary
MOST_CHOICES = 5  # excerpts that a model chooses from
WITHOUT_MODEL = (
    f"These passages are quoted from the papers. With a chat model on Ollama (`{command('doctor')}` shows"
    " how), Folio answers in sentences and cites these."
)


@dataclass(frozen=True, slots=True)
class Scored:
    """The excerpts of the evidence, best first, and how sure they are."""

    excerpts: list[Excerpt]
    confidence: float  # that the evidence answers, 0 to 1
    read: float = 0.0  # the reader's log-odds

    @property
    def is_enough(self) -> bool:
        """Whether the excerpts are shown; otherwise the question is refused."""
        return self.confidence >= LEAST_CONFIDENCE


Placed = tuple[Question, Excerpt, Section]  # an excerpt, the part of the question that it answers, and its heading
Found = tuple[Question, list[Excerpt], Section]  # a part of a question, the excerpts for it, best first, their heading


@dataclass(frozen=True, slots=True)
class PartsAnswered:
    """The best excerpts for each part of a question, the mean confidence of these, and the parts without an answer."""

    excerpts: list[Placed]  # [] if one excerpt answers several parts: they are one question
    confidence: float
    unanswered: tuple[str, ...]


class ExtractiveAnswerer:
    """Answers with the best excerpts of the evidence, quoted word for word."""

    name = "extractive (built in)"
    notice = WITHOUT_MODEL
    quotes_only = True
    failed = False
    raw = ""
    unanswered: tuple[str, ...] | None = None

    def __init__(
        self,
        embedder: TokenEmbedder,
        reader: PassageReader,
        term_weights: Callable[[Question], TermWeights],
        *,
        evidence_tokens: int,
    ) -> None:
        """evidence_tokens: limit for the evidence."""
        self._embedder = embedder
        self._reader = reader
        self._term_weights = term_weights
        self.evidence_tokens = evidence_tokens

    def sentences(
        self, question: Question | str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Generator[Sentence, None, float | None]:
        """See protocols.Answerer. A question is refused below LEAST_CONFIDENCE."""
        question, self.unanswered = Question.of(question), None
        if question.only_points and isinstance(question.worded, Statement):
            return (yield from self._nearest(question, evidence, style))
        question = question.worded
        if style == "plain" and question.topic:
            return (yield from self._list_papers(Question(question.topic), evidence))
        if style == "plain" and question.type.aspect == "summary" and (whole := self._summary(evidence)):
            yield from whole
            return 1.0
        of_parts = self._best_of_parts(question, evidence) if style == "plain" else None
        if of_parts is not None and question.questions:
            self.unanswered = of_parts.unanswered
        if of_parts is not None and of_parts.excerpts:
            if of_parts.confidence >= LEAST_CONFIDENCE:
                yield from _each(of_parts.excerpts, evidence)
            return of_parts.confidence
        scored = self._score_plain_first(question, evidence, style)
        if question.typed:  # the correction may be wrong: "quits" for "qubits"
            as_typed = self._score_plain_first(Question(question.typed), evidence, style)
            scored = max(scored, as_typed, key=lambda each: each.confidence)
        if len(question.senses) > 1:
            scored = replace(scored, confidence=self._confidence_of_followup(question, evidence, scored.read))
        if scored.is_enough:
            yield from _best(scored.excerpts, question, evidence, style, _heading(question, scored, evidence))
        elif style == "report" and question.questions:
            return (yield from self.sentences(question, evidence))  # one of the questions may have an answer
        return scored.confidence

    def confidence(self, question: Question, evidence: Sequence[Evidence]) -> float:
        """The confidence that the evidence answers, 0 to 1."""
        return self._score(question.worded, evidence).confidence

    def _nearest(
        self, question: Question, evidence: Sequence[Evidence], style: Style
    ) -> Generator[Sentence, None, float | None]:
        """For a question that only points at selected words: what contradicts them or says the same, if it asks for
        that; otherwise the closest passages. Nothing shows that these explain the words."""
        if question.asks_who_disagrees and (conflicting := _conflicting(question.about, evidence)):
            yield from conflicting
            return 1.0
        scored = self._score(question.worded, evidence, style)
        if scored.is_enough and scored.excerpts:
            same = coverage(self._term_weights(question.worded), tokenize(scored.excerpts[0].core_text))
            is_answer = asks_where(question.text) and same >= SAME_WORDS
            yield from _best(scored.excerpts, question.worded, evidence, style, FROM_PAPERS if is_answer else CLOSEST)
        return scored.confidence

    def closest(
        self, question: Question | str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Iterator[Sentence]:
        """The closest excerpts, without refusing: for an answer whose model failed."""
        question = Question.of(question).worded
        if style == "plain" and (of_parts := self._best_of_parts(question, evidence)) and of_parts.excerpts:
            yield from _each([(part, one, CLOSEST) for part, one, _ in of_parts.excerpts], evidence)
        else:
            yield from _best(self._score(question, evidence, style).excerpts, question, evidence, style, CLOSEST)

    def best_quote(self, question: Question, evidence: Sequence[Evidence]) -> Sentence | None:
        """The sentence that answers best, for an answer by a model; None if no sentence answers."""
        question = question.worded
        scored = self._score(question, evidence)
        if not scored.excerpts or not scored.is_enough:
            return None
        best = scored.excerpts[0]
        headless = replace(best, block=replace(best.block, head=None))
        return replace(excerpt_sentence(alone(headless), question, number_sentences(evidence), Section()), marks=())

    def candidates(self, question: Question, evidence: Sequence[Evidence]) -> Scored:
        """The excerpts that a model may choose from, likeliest first; of a comparison, those about each thing too."""
        question = question.worded
        scored = self._score_plain_first(question, evidence, "plain")
        best = scored.excerpts[:MOST_CHOICES]
        for side in question.parts if question.things else ():
            of_side = self._score(side, found_for(side, evidence)).excerpts[:MOST_OF_ONE_PAPER]
            best += distinct_excerpts(of_side, best)
        return replace(scored, excerpts=best)

    def sides(self, question: Question, ranked: Sequence[Excerpt]) -> list[Excerpt]:
        """For each compared thing that the first excerpt is not about, the first that is, in brief."""
        shown = list(ranked[:1])
        for side in question.worded.parts if question.worded.things else ():
            if not any(self._is_about(question.worded, side, one) for one in shown):
                about = [one for one in ranked if self._is_about(question.worded, side, one)]
                shown += distinct_excerpts(about, shown)[:1]
        return [brief(one) for one in shown[1:]]

    def _is_about(self, question: Question, part: Question, excerpt: Excerpt) -> bool:
        """Whether an excerpt is about a part of a question."""
        quote = (excerpt.block.evidence.paper, excerpt.text)
        return part.text not in without_quote(question, [quote], self._term_weights)

    def shown(
        self, question: Question, excerpts: Sequence[Excerpt], evidence: Sequence[Evidence]
    ) -> Iterator[Sentence]:
        """Excerpts that were chosen as the answer."""
        heading = CLOSEST if missing_names(question.worded, evidence) else FROM_PAPERS
        return _each([(question.worded, one, heading) for one in excerpts], evidence)

    def nearest(self, question: Question, evidence: Sequence[Evidence]) -> Quote | None:
        """The closest sentence to a question that the papers do not answer; None if its paper is about something else.
        """
        question = question.worded
        prose = (one for one in self._score(question, evidence).excerpts if one.block.kind == "prose")
        for best in islice(prose, 1):
            paper, text = best.block.evidence.paper, best.block.evidence.text
            if is_about(self._weights(question), f"{known_words(paper)}\n{text}"):
                core = best.block.parts[best.core]
                return next(iter(citations(best.block.evidence, core.start, core.end, 1.0)), None)
        return None

    def named_algorithm(self, question: Question, evidence: Sequence[Evidence]) -> Sentence | None:
        """The algorithm that a question names, if it is in the first piece of evidence; else None."""
        excerpts = self._score(question.worded, evidence).excerpts if question.worded.named.asks else []
        if not excerpts or not excerpts[0].is_named_by(question.worded) or excerpts[0].block.evidence.number > 1:
            return None
        return excerpt_sentence(excerpts[0], question.worded, number_sentences(evidence), FROM_PAPERS)

    def _best_of_parts(self, question: Question, evidence: Sequence[Evidence]) -> PartsAnswered | None:
        """The best excerpts for each part of a question; None if it has no parts, or none with an answer of its own.

        Of several questions in one, one without a sure answer gets the closest passages that have its own words, and
        none if they lack a name; one that was given words of the first needs words of its own. The
        sides of a comparison are no questions; a side that no excerpt is about is left out. The confidence is the mean
        of the parts', because no passage has the words of all parts.
        """
        found, scores, unanswered = list[Found](), list[Scored](), list[str]()
        for part in question.parts:
            own = found_for(part, evidence)
            scored = self._score(part, own)
            among = scored.excerpts
            is_enough = scored.is_enough or not question.questions
            stands = not question.questions or part.text in question.as_asked  # else it has words of the first one
            if not is_enough and missing_names(part, own):
                among = []
            elif question.thing_of(part) or not is_enough:
                among = [one for one in among if self._is_about(question, part, one)]
            is_own = stands or not is_enough or any(self._is_about(question, part, one) for one in among)
            if not (among and is_own):
                unanswered.append(part.text)
            if not among:
                continue
            if is_enough:
                scores.append(scored)
            found.append((part, among, _heading(part, scored, own)) if is_own else (part, among[:1], CLOSEST))
        if not scores:
            return None
        sure = mean(scored.confidence for scored in scores)
        if not question.questions:
            excerpts = _side_by_side(found, is_sure=sure >= SURE)
        elif _are_one(found) and not unanswered:
            excerpts = []
        else:
            excerpts = _one_by_one(found)
        return PartsAnswered(excerpts, sure, tuple(unanswered))

    def _list_papers(self, topic: Question, evidence: Sequence[Evidence]) -> Generator[Sentence, None, float]:
        """For each paper on a topic, its best excerpt, or its title if it has none."""
        matched, weights = self._matches(topic, evidence)
        most, sentences = 0.0, number_sentences(evidence)
        for paper in dict.fromkeys(piece.paper for piece in evidence):
            pairs = [(piece, match) for piece, match in zip(evidence, matched, strict=True) if piece.paper == paper]
            own, own_matches = [piece for piece, _ in pairs], [match for _, match in pairs]
            read = read_blocks(self._reader, topic, own, own_matches)
            sure = confidence(topic, own, own_matches, weights, read=most_sure(read))
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
        """The abstract of the paper and an excerpt of each section; [] without these or for several papers."""
        if len({piece.paper for piece in evidence}) != 1:
            return []
        sentences = number_sentences(evidence)
        first = _abstract(evidence) or next(iter(self._score(Question(ABOUT_QUESTION), evidence).excerpts), None)
        shown = [first] if first else []
        headings = ["Abstract" if first and first.block.section == "abstract" else "In short"] * len(shown)
        for heading, question, kind in SUMMARY_PARTS:
            own = [piece for piece in evidence if kind in kinds_of(piece.paper, piece.start, piece.end)]
            among = self._score(Question(question), own).excerpts if own else []
            scored = [one for one in among if one.block.section == kind and one.block.kind != "table"]
            if best := next(iter(distinct_excerpts(scored, shown)), None):
                shown.append(brief(best))
                headings.append(heading)
        sections = [replace(FROM_PAPERS, subheading=heading) for heading in headings]
        return [
            replace(excerpt_sentence(excerpt, Question(""), sentences, section), marks=())
            for excerpt, section in zip(shown, sections, strict=True)
        ]

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer."""
        return followup.standalone(question, history)

    def _score(self, question: Question, evidence: Sequence[Evidence], style: Style = "plain") -> Scored:
        most = MOST_OF_REPORT if style == "report" else MOST_READ
        matched, weights = self._matches(question, evidence)
        blocks = read_blocks(self._reader, question, evidence, matched)
        read = most_sure(blocks)
        sure = confidence(question, evidence, matched, weights, read=read)
        scored = scored_excerpts(self._embedder, question, blocks, most)
        if scored and scored[0].is_named_by(question):
            sure = max(sure, NAMED_CONFIDENCE)
        return Scored(_names_first(question, scored), sure, read)

    def _score_plain_first(self, question: Question, evidence: Sequence[Evidence], style: Style) -> Scored:
        """`_score` of the evidence from a plain search if that answers the question; else of all evidence.

        The additional evidence of a deep search made a plain answer worse more often than better (LOG.md).
        """
        own = [piece for piece in evidence if is_found_for(question, piece)] if style == "plain" else []
        scored = self._score(question, own) if own else Scored([], 0.0)
        is_answered = scored.excerpts and scored.is_enough
        return scored if is_answered or len(own) == len(evidence) else self._score(question, evidence, style)

    def _confidence_of_followup(self, question: Question, evidence: Sequence[Evidence], read: float) -> float:
        """The mean over its senses, because the follow-up may have been misunderstood."""
        senses = [question, *map(Question, question.senses[1:])]
        each = [confidence(sense, evidence, *self._matches(sense, evidence), read=read) for sense in senses]
        return min(1.0, mean(each) + FOLLOWUP_MARGIN)

    def _weights(self, question: Question) -> TermWeights:
        return {term: weight for term, weight in self._term_weights(question).items() if term not in ASKING}

    def _matches(self, question: Question, evidence: Sequence[Evidence]) -> tuple[list[Matches], TermWeights]:
        """The question's matches in the evidence, and the IDF of its terms.

        A paper's title counts as a part of its sentences: questions name the paper, and its sentences seldom do.
        """
        weights = self._weights(question)
        pieces = [(piece.paper.title, piece.text) for piece in evidence]
        return matches(self._embedder, question.text, pieces, weights), weights


def _conflicting(statements: str, evidence: Sequence[Evidence]) -> list[Sentence]:
    """The sentences of the evidence that contradict one of the statements, at most MOST_AGAINST."""
    spoken = [statements[start:end] for start, end in sentence_spans(statements)]
    conflicts = (
        (each, next(filter(None, (conflict(said, each.text) for said in spoken)), None))
        for each in number_sentences(evidence)
    )
    sentences = (
        Sentence(each.text, (citation(each.evidence, each.start, each.end, 1.0),), section=FROM_PAPERS, marks=how.marks)
        for each, how in conflicts
        if how
    )
    return list(islice(sentences, MOST_AGAINST))


def _abstract(evidence: Sequence[Evidence]) -> Excerpt | None:
    """The abstract, cut after a sentence if it is long; None if there is none."""
    among = (block for piece in evidence for block in blocks(piece))
    own = [block for block in among if block.section == "abstract" and block.kind == "prose"]
    if not own:
        return None
    block = min(own, key=lambda block: block.evidence.start + block.start)
    ends = list(accumulate(block.words))
    last = max((place for place, words in enumerate(ends) if words <= LONGEST_ABSTRACT), default=0)
    return Excerpt(block, 0, last, 0, 1.0, 1.0)


def is_found_for(question: Question, evidence: Evidence) -> bool:
    """Whether a piece of evidence was found for this part of a question."""
    return any(question.text in hit.found_for for hit in evidence.hits)


def found_for(question: Question, evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """The evidence that was found for this part of a question; all of it if none was."""
    return [piece for piece in evidence if is_found_for(question, piece)] or evidence


def without_quote(
    question: Question, quotes: Sequence[tuple[Paper, str]], term_weights: Callable[[Question], TermWeights]
) -> list[str]:
    """The parts of a question that no quote is about, by its text or its paper.

    A part is about its thing, or about the words that the other parts do not have.
    """
    missing = list[str]()
    for part in question.parts:
        others = [other.terms for other in question.parts if other is not part]
        thing = question.thing_of(part)
        weights = term_weights(Question(thing or part.text))
        if not thing:
            weights = {term: weights[term] for term in part.terms.difference(ASKING, *others)}
            if not question.questions and len(weights) > MOST_OF_NAME:  # no name, but another wording
                continue
        texts = [f"{known_words(paper)}\n{text}" for paper, text in quotes]
        # In a small library a common word that no passage has weighs more than all others.
        has_most = not thing and any(2 * len(weights.keys() & set(tokenize(text))) > len(weights) for text in texts)
        if weights and not has_most and not any(is_about(weights, text) for text in texts):
            missing.append(part.text)
    return missing


def known_words(paper: Paper) -> str:
    """What a question may call a paper by: its title and the initials of that, authors, year, venue, ids and file."""
    known = paper.metadata
    initials = "".join(word[0] for word in plain_words(paper.title) if word not in STOP_WORDS)
    authors = " ".join(map(str, known.authors.value))
    others = (known.year.value or "", known.venue.value, known.publisher.value, known.doi.value, known.arxiv.value)
    file = plain_words(PurePath(paper.file).stem.replace("_", " "))
    return " ".join(map(str, (paper.title, initials, authors, *others, *file)))


def is_about(weights: TermWeights, text: str) -> bool:
    """Whether a text has LEAST_OF_NAME of a name's words. weights: the IDF of these words."""
    return coverage(weights, tokenize(text)) >= LEAST_OF_NAME


def _best(
    scored: Sequence[Excerpt], question: Question, evidence: Sequence[Evidence], style: Style, heading: Section
) -> Iterator[Sentence]:
    """The best excerpt and further places that may answer; nothing without excerpts.

    heading: for a plain answer. A report has these as its summary, and more excerpts by paper as its analysis.
    """
    if not scored:
        return
    sentences = number_sentences(evidence)
    best, *others = answering = [scored[0], *pointers(scored)]
    if style == "plain":
        first = excerpt_sentence(best, question, sentences, heading, leads=True)
        against = first.against or _other_values(question, best, others)
        yield replace(first, against=against)
        for excerpt in others:
            also = excerpt_sentence(brief(excerpt), question, sentences, ALSO)
            if not any(quote.contains(other) for quote in also.citations for other in against):
                yield also
        return
    for excerpt in answering:
        yield excerpt_sentence(excerpt, question, sentences, SUMMARY, leads=excerpt is best)
    details, left = list[Excerpt](), DETAIL_WORDS
    for excerpt in distinct_excerpts([one for one in scored if one.share >= DETAIL_SHARE], answering):
        if excerpt.words <= left and len(details) < MOST_DETAILS:
            details.append(excerpt)
            left -= excerpt.words
    for paper in dict.fromkeys(excerpt.block.evidence.paper for excerpt in details):
        own = [excerpt for excerpt in details if excerpt.block.evidence.paper == paper]
        for excerpt in sorted(own, key=lambda one: one.block.evidence.start + one.spans[0][0]):
            yield excerpt_sentence(excerpt, question, sentences, Section("Analysis", paper.title or paper.file))


def _other_values(question: Question, first: Excerpt, others: Sequence[Excerpt]) -> tuple[Citation, ...]:
    """The sentences of other papers that give another number for what a question asks than the first excerpt does.

    others: further places that may answer.
    """
    if question.type.kind != "number":
        return ()
    named = (one for one in (first, *others) if _has_names(question, one))
    spans = [(one, span) for one in named if (span := _value_span(question, one))]
    found = dict[Paper, Citation]()
    for one, span in spans[1:] if spans and spans[0][0] is first else ():
        evidence, part = one.block.evidence, one.block.parts[one.core]
        if evidence.paper in (first.block.evidence.paper, *found):
            continue
        text, other_text = first.core_text, one.core_text
        value, other = _quantity(text, spans[0][1]), _quantity(other_text, span)
        if value and other and are_apart(value, other):
            conflicting = of_values(text, value, other_text, other, question.terms)
            cited = citation(evidence, part.start, part.end, 0.99)
            found[evidence.paper] = disagreeing(cited, conflicting, other_text)
    return tuple(islice(found.values(), MOST_AGAINST))


def _has_names(question: Question, excerpt: Excerpt) -> bool:
    """Whether an excerpt, or what is known of its paper, has all names of a question."""
    known = f"{known_words(excerpt.block.evidence.paper)}\n{excerpt.text}"
    return all(has_name(known, name) for name in question.names)


def _quantity(text: str, span: Span) -> Quantity | None:
    """The number in a span of a text, with its unit. Loads Pint, which takes half a second."""
    return next((number for number in quantities(text) if span[0] <= number.span[0] < span[1]), None)


def _value_span(question: Question, excerpt: Excerpt) -> Span | None:
    """The span of the short answer in the core of an excerpt; None if none is sure."""
    head, evidence, text = excerpt.block.head, excerpt.block.evidence, excerpt.core_text
    if excerpt.block.kind in ("table", "algorithm"):
        return None
    if question.type.kind == "number":
        above = f"{evidence.paper.title}\n{evidence.text[slice(*head)] if head else ''}"
        if not meets_conditions(question, frozenset(tokenize(f"{above}\n{text}")), excerpt.covered):
            return None
    return short_answer(question, text)


def _are_one(found: Sequence[Found]) -> bool:
    """Whether one sentence is the best for several questions: then they are asked as one."""
    bests = [among[0].core_text for _, among, _ in found]
    return len(set(bests)) < len(bests)


def _one_by_one(found: Sequence[Found]) -> list[Placed]:
    """The best excerpt for each of several questions, in brief if it is in that of another one; and further places."""
    best_of = {part.text: among[0] for part, among, _ in found}
    for text, best in list(best_of.items()):
        if any(best.overlaps(other) for of, other in best_of.items() if of != text):
            best_of[text] = brief(best)
    excerpts = list[Placed]()
    for part, among, heading in found:
        best = best_of[part.text]
        if all(best.core_text != one.core_text for _, one, _ in excerpts):
            excerpts.append((part, best, heading))
        shown = [*best_of.values(), *(one for _, one, _ in excerpts)]
        excerpts += [(part, brief(other), heading) for other in distinct_excerpts(pointers(among), shown)]
    return excerpts


def _side_by_side(found: Sequence[Found], *, is_sure: bool) -> list[Placed]:
    """The best excerpt for each side of a comparison, and further places."""
    excerpts = list[Placed]()
    for part, among, heading in found:
        new = [one for one in among if not any(one.overlaps(other) for _, other, _ in excerpts)]
        if new:
            of_side = [new[0], *(brief(other) for other in pointers(new))]
            excerpts += [(part, one, heading if is_sure else CLOSEST) for one in of_side]
    return excerpts


def _title(evidence: Evidence, heading: Section) -> Sentence | None:
    """A quote of a paper's title from a piece of evidence; None if it is not there."""
    start, end = title_span(evidence.paper, evidence.text)
    if start == end:
        return None
    quote = citation(evidence, start, end, 1.0)
    return Sentence(one_line(quote.quote), (quote,), section=heading)


def _each(excerpts: Sequence[Placed], evidence: Sequence[Evidence]) -> Iterator[Sentence]:
    """The excerpts of each part of a question: with the paper as subheading if several papers answer, else the best."""
    sentences = number_sentences(evidence)
    papers = {excerpt.block.evidence.paper for _, excerpt, _ in excerpts}
    if len(papers) == 1:
        excerpts = [one for _, own in groupby(excerpts, key=itemgetter(0)) for one in islice(own, MOST_OF_ONE_PAPER)]
    for part, excerpt, heading in excerpts:
        paper = excerpt.block.evidence.paper
        section = replace(heading, subheading=paper.title or paper.file) if len(papers) > 1 else heading
        yield excerpt_sentence(excerpt, part, sentences, section)


def excerpt_sentence(
    excerpt: Excerpt,
    question: Question,
    sentences: Sequence[EvidenceSentence],
    section: Section,
    *,
    leads: bool = False,
) -> Sentence:
    """An excerpt with its citations, one for each page, and the answering words marked.

    leads: show a short answer in it above the whole answer.
    """
    block, core = excerpt.block, excerpt.block.parts[excerpt.core]
    evidence = block.evidence
    core_text = excerpt.core_text
    text, offsets = _shown(excerpt)
    quotes = tuple(quote for span in excerpt.spans for quote in citations(evidence, *span, 1.0))
    span = _value_span(question, excerpt)
    short = _place(offsets, core.start + span[0], core.start + span[1]) if span else None
    mark = short or (None if block.kind == "algorithm" else _place(offsets, core.start, core.end))
    disagrees = () if block.kind == "algorithm" else against(core_text, quotes, sentences)
    return Sentence(text, quotes, disagrees, section, marks=(mark,) if mark else (), short=short if leads else None)


def _shown(excerpt: Excerpt) -> tuple[str, list[int]]:
    """An excerpt as shown, and the offset of each of its characters in the evidence's text.

    Prose is on one line, each list item on its own line; a table and an algorithm keep their lines.
    """
    evidence, kind = excerpt.block.evidence.text, excerpt.block.kind
    breaks = {part.start for part in excerpt.block.parts} if kind == "list" else set()
    shown: list[tuple[str, int]] = []
    for start, end in excerpt.spans:
        if shown:
            shown.append(("\n", start - 1))
        for offset in range(start, end):
            char = evidence[offset]
            is_break = offset in breaks or (kind == "algorithm" and char == "\n")
            if is_break and shown and shown[-1][0] != "\n":
                shown = [*(shown[:-1] if shown[-1][0] == " " else shown), ("\n", offset - 1)]
            if kind == "table" or not char.isspace():
                shown.append((char, offset))
            elif shown and shown[-1][0] not in " \n":
                shown.append((" ", offset))
    return "".join(char for char, _ in shown), [offset for _, offset in shown]


def _place(offsets: Sequence[int], start: int, end: int) -> Span | None:
    """The span of the characters [start, end) of the evidence in the shown text; None if they are not shown."""
    inside = [place for place, offset in enumerate(offsets) if start <= offset < end]
    return (inside[0], inside[-1] + 1) if inside else None


def confidence(
    question: Question,
    evidence: Sequence[Evidence],
    matched: Sequence[Matches],
    weights: TermWeights,
    *,
    read: float = 0.0,
    needs_number: bool = True,
) -> float:
    """The confidence that this evidence answers the question, 0 to 1.

    matched: the question's matches in each piece of evidence. weights: the IDF of the question's terms. read: the
    reader's log-odds that some of the evidence answers; 0 if it was not read. needs_number: only sentences with a
    number count for a numeric question.
    """
    covered = _covered(question, evidence, matched) if needs_number else evidence_coverage(matched)
    if not covered:
        return 0.0
    names = _names_share(question, evidence, weights)
    length = min(1.0, len(weights) / LONG_QUESTION)
    share = (covered + NAMES_WEIGHT * names + LENGTH_WEIGHT * length) / (1 + NAMES_WEIGHT + LENGTH_WEIGHT)
    return min(1.0, max(0.0, share + READ_WEIGHT * max(-MOST_ODDS, min(MOST_ODDS, read))))


def _covered(question: Question, evidence: Sequence[Evidence], matched: Sequence[Matches]) -> float:
    """The share of a question that the evidence covers, 0 to 1.

    For a numeric question, that of the best sentence with a number, less NUMBER_MARGIN: the whole evidence covers the
    paper's subject even if it does not give the value.
    """
    if not question.asks_for_number:
        return evidence_coverage(matched)
    of_numbers = (
        match.coverage(start, end)
        for piece, match in zip(evidence, matched, strict=True)
        for start, end in sentence_spans(piece.text)
        if gives_number(piece.text[start:end], question.text)
    )
    return max(0.0, max(of_numbers, default=0.0) - NUMBER_MARGIN)


def _heading(question: Question, scored: Scored, evidence: Sequence[Evidence]) -> Section:
    """The heading of an answer: passages are only the closest if they lack the value asked for, or a name of it, or say
    of something what the question says not to be so ("Which courses do not use R?").
    """
    best = scored.excerpts[0] if scored.excerpts else None
    has_value = not best or question.type.kind not in ("number", "date") or has_type(question, best.core_text)
    said = [best.text[start:end] for start, end in sentence_spans(best.text)] if best else []
    denied = any(affirms_denied(question.text, sentence) for sentence in said)
    is_sure = scored.confidence >= SURE and has_value and not denied
    return FROM_PAPERS if is_sure and not missing_names(question, evidence) else CLOSEST


def missing_names(question: Question, evidence: Sequence[Evidence]) -> list[str]:
    """The names and numbers of a question that no piece of evidence has, nor what is known of its paper."""
    texts = [f"{known_words(piece.paper)}\n{piece.text}" for piece in evidence] if question.names else []
    return [name for name in question.names if not any(has_name(text, name) for text in texts)]


def _names_first(question: Question, scored: list[Excerpt]) -> list[Excerpt]:
    """The excerpts with one first that has all names of the question, if there is one that may answer."""
    for place, one in enumerate(scored if question.names else ()):
        if one.share >= NEARLY_FIRST * scored[0].share and _has_names(question, one):
            return [one, *scored[:place], *scored[place + 1 :]]
    return scored


def has_name(text: str, name: str) -> bool:
    """Whether a text has a name in one of its spellings."""
    return _as_printed(name).search(without_accents(text)) is not None


@lru_cache(maxsize=256)
def _as_printed(name: str) -> re.Pattern[str]:
    """A pattern for a name in other spellings: "GPT-4", "GPT 4", "CRDTs"; up to two words between two of its own."""
    single = re.sub(r"(?<=\w{3})(?<![sui])s$", "", without_accents(name))
    words = (r"[\W_]*".join(re.findall(r"\d+|[^\W\d_]+", word)) for word in single.split())
    return re.compile(r"(?<![^\W_])" + r"\W+(?:[\w.]+\W+){0,2}".join(words) + r"(?:s|es)?(?![^\W_])", re.I)


def _names_share(question: Question, evidence: Sequence[Evidence], weights: TermWeights) -> float:
    """The share, by IDF, of a question's names that are literally in the evidence or a title; 1 without names.

    The embedder hardly distinguishes unusual names.
    """
    names = {term for name in _NAME.findall(question.text) for term in tokenize(name)}
    named = {term: weight for term, weight in weights.items() if term in names}
    if not any(named.values()):
        return 1.0
    return coverage(named, {term for piece in evidence for term in tokenize(f"{piece.paper.title}\n{piece.text}")})
