"""Question + evidence -> the excerpts that answer best, word for word. No model writes anything."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from statistics import mean

from folio.answer.blocks import blocks
from folio.answer.confidence import LEAST_CONFIDENCE, SURE, confidence
from folio.answer.excerpt_sentences import (
    MOST_OF_ONE_PAPER,
    Placed,
    best_sentences,
    excerpt_sentence,
    has_names,
    sentences_by_part,
    title_sentence,
)
from folio.answer.excerpts import Excerpt, alone, brief, distinct_excerpts, pointers
from folio.answer.ranking import MOST_READ, most_sure, read_blocks, scored_excerpts
from folio.answer.subjects import is_about, known_words, missing_names, without_quote
from folio.answer.values import has_type
from folio.answer.whole_paper import ABOUT_QUESTION, SUMMARY_PARTS, kinds_of
from folio.answer_types import (
    CLOSEST,
    FROM_PAPERS,
    Answer,
    Evidence,
    Quote,
    Section,
    Sentence,
    Style,
)
from folio.errors import command
from folio.grounding.conflicts import MOST_AGAINST, conflict
from folio.grounding.negation import affirms_denied
from folio.grounding.sentences import citation, citations, number_sentences
from folio.protocols import PassageReader, TermWeights, TokenEmbedder
from folio.question import followup
from folio.question.kind import ASKING
from folio.question.question import Question, Statement, asks_where
from folio.search.late_interaction import Matches, matches
from folio.text import coverage, sentence_spans, tokenize

# Added to the mean confidence of a follow-up's senses; with it, 6 % of MTRAG's answerable follow-ups are refused.
FOLLOWUP_MARGIN = 0.027
NAMED_CONFIDENCE = 0.9  # of the algorithm that the question names, which is its answer
# A paper is listed for a topic from this confidence on, and if confidence + PAPER_WEIGHT * score (near 1 for the best
# paper) reaches the last value (LOG.md).
LEAST_OF_PAPER, PAPER_WEIGHT, LEAST_WITH_SCORE = 0.5, 0.5, 0.86
# Share of the selected words, by IDF, in a sentence that says the same. Set by hand on 12 selections (LOG.md).
SAME_WORDS = 0.6
NEARLY_FIRST = 0.5  # share of an excerpt with all names of the question that goes first, relative to the first
LONGEST_ABSTRACT = 200  # maximum words of the abstract at the start of a summary
MOST_OF_REPORT = 16  # sentences embedded one by one for a report; see MOST_READ
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
                yield from sentences_by_part(of_parts.excerpts, evidence)
            return of_parts.confidence
        scored = self._score_plain_first(question, evidence, style)
        if question.typed:  # the correction may be wrong: "quits" for "qubits"
            as_typed = self._score_plain_first(Question(question.typed), evidence, style)
            scored = max(scored, as_typed, key=lambda each: each.confidence)
        if len(question.senses) > 1:
            scored = replace(scored, confidence=self._confidence_of_followup(question, evidence, scored.read))
        if scored.is_enough:
            yield from best_sentences(scored.excerpts, question, evidence, style, _heading(question, scored, evidence))
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
            heading = FROM_PAPERS if is_answer else CLOSEST
            yield from best_sentences(scored.excerpts, question.worded, evidence, style, heading)
        return scored.confidence

    def closest(
        self, question: Question | str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Iterator[Sentence]:
        """The closest excerpts, without refusing: for an answer whose model failed."""
        question = Question.of(question).worded
        if style == "plain" and (of_parts := self._best_of_parts(question, evidence)) and of_parts.excerpts:
            yield from sentences_by_part([(part, one, CLOSEST) for part, one, _ in of_parts.excerpts], evidence)
        else:
            scored = self._score(question, evidence, style)
            yield from best_sentences(scored.excerpts, question, evidence, style, CLOSEST)

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
        return sentences_by_part([(question.worded, one, heading) for one in excerpts], evidence)

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
                elif title := title_sentence(own[0], heading):
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


def _names_first(question: Question, scored: list[Excerpt]) -> list[Excerpt]:
    """The excerpts with one first that has all names of the question, if there is one that may answer."""
    for place, one in enumerate(scored if question.names else ()):
        if one.share >= NEARLY_FIRST * scored[0].share and has_names(question, one):
            return [one, *scored[:place], *scored[place + 1 :]]
    return scored
