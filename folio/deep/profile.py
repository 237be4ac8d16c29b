"""The evidence profile of a deep answer: confidence, agreements and differences, open questions, age."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from folio.answer.blocks import SHORTEST_SENTENCE, leans
from folio.answer_types import Answer, Evidence, Quote
from folio.deep.types import (
    MOST_OPEN,
    MOST_RELEVANCE,
    RELEVANT,
    Age,
    Agreement,
    Basis,
    Budget,
    Comparer,
    Confidence,
    DeepEvent,
    DeepLimits,
    DeepTrace,
    Difference,
    EvidenceProfile,
    EvidenceScored,
    Level,
    NamedClaim,
)
from folio.errors import ModelError
from folio.grounding.conflicts import LEAST_SHARED, conflict
from folio.grounding.grounder import LEAST_NAMED, faults, of_sentences
from folio.grounding.names import key
from folio.grounding.sentences import EvidenceSentence, content_words, number_sentences, quote, share, tokens_of
from folio.papers.label import sure_year
from folio.papers.model import Paper
from folio.papers.sections import NOT_EVIDENCE, Kind
from folio.protocols import Embedder
from folio.question.kind import question_type
from folio.search.retriever import Retriever
from folio.text import fold, one_line, sentence_spans


class EvidenceWeigher:
    """Makes the evidence profiles of answers from one library."""

    def __init__(
        self,
        retriever: Retriever,
        meaning: Embedder,
        limits: DeepLimits,
        comparer: Comparer | None = None,
        *,
        has_confidence: bool = False,
    ) -> None:
        """meaning: the built-in embedder. comparer: a model that compares papers; None for rules alone.

        has_confidence: no model took part in the answer.
        """
        self._retriever = retriever
        self._meaning = meaning
        self._limits = limits
        self._comparer = comparer
        self._has_confidence = has_confidence

    def profile(self, answer: Answer, trace: DeepTrace) -> EvidenceProfile | None:
        """The profile; None for a refusal or a remark.

        trace: of the search; the comparison may use the rest of its budget. After Ctrl-C, a failure of the model or
        without budget, rules compare. Raises ModelError for the built-in embedder, StoreDamaged.
        """
        if not answer.sentences:
            return None
        question = answer.standalone_question
        relevant = [piece for piece in answer.evidence if piece.score >= RELEVANT / MOST_RELEVANCE]
        named: list[NamedClaim] = []
        budget = Budget(max(0, self._limits.calls - trace.calls), max(0.0, self._limits.seconds - trace.seconds))
        if self._comparer and len({piece.paper.id for piece in relevant}) > 1:
            try:
                named = self._comparer.compare(question, relevant, budget)
            except (KeyboardInterrupt, ModelError):
                named = []
        comparison = compared(relevant, named)
        cited = list(dict.fromkeys(citation.paper for citation in answer.citations))
        papers = list(dict.fromkeys([*(piece.paper for piece in relevant), *cited]))
        return EvidenceProfile(
            basis_of(answer, trace),
            deep_confidence(trace.events) if self._has_confidence and answer.style == "plain" else None,
            comparison.agreements,
            comparison.differences,
            open_questions(question, papers, lambda p: self._retriever.text(p.id, 0, p.length), self._meaning),
            age_of(cited),
            self._comparer.name if self._comparer and named else "",
            budget.calls,
        )


def basis_of(answer: Answer, trace: DeepTrace) -> Basis:
    """The numbers behind an answer."""
    scores = [event.assessment.relevance or 0 for event in trace.events if isinstance(event, EvidenceScored)]
    cited = {quote.paper for sentence in answer.sentences for quote in sentence.citations}
    papers = [paper for paper in cited if not (paper.flag and paper.flag.is_grave)]
    relevant = sum(score >= RELEVANT for score in scores)
    return Basis(len(papers), relevant, len(scores), len(answer.sentences), answer.dropped)


def age_of(papers: list[Paper]) -> Age:
    """The sure years of these papers."""
    years = [sure_year(paper.metadata) for paper in papers]
    known = sorted(year for year in years if year is not None)
    return Age(tuple(known), len(years) - len(known))


# For answers without a model: minimum relevance of the best passage, level, and the share of such answers that were
# right, as the mean of two sets (`benchmarks/deep_confidence.py`, docs/trust.md). The number of papers does not count:
# it goes with right answers on one set and with wrong ones on the other.
LEVELS: tuple[tuple[int, Level, float], ...] = ((6, "medium", 0.6), (0, "low", 0.23))


def deep_confidence(events: Sequence[DeepEvent]) -> Confidence | None:
    """The confidence of an answer made of quotes; None for several parts, which were not measured, or if nothing was
    scored.

    events: of its search.
    """
    scored = [event for event in events if isinstance(event, EvidenceScored)]
    if len({event.part for event in scored}) != 1:
        return None
    best = max(event.assessment.relevance or 0 for event in scored)
    return next(Confidence(share, level) for least, level, share in LEVELS if best >= least)


# Agreements and differences: a model groups sentences (NamedClaim), and each is checked against the claim. Without a
# model, rules find papers that deny each other or give different numbers for the same thing. Only the papers' sentences
# are shown, never the model's claim.

MOST_GROUPS = 4  # agreements, and differences
MOST_QUOTES = 3  # on one side
LEAST_WORDS, MOST_WORDS = 6, 80  # of a sentence; a longer one is mostly a table or several sentences


@dataclass(frozen=True, slots=True)
class Comparison:
    """The agreements and differences of papers."""

    agreements: tuple[Agreement, ...] = ()
    differences: tuple[Difference, ...] = ()


def compared(evidence: Sequence[Evidence], named: Iterable[NamedClaim]) -> Comparison:
    """The claims of a model that hold, then the differences that rules find among the other sentences.

    Only relevant evidence counts. No sentence is in two groups.
    """
    every = number_sentences(evidence)
    sentences = {sentence.number: sentence for sentence in every if _may_be_shown(sentence)}
    if len({_work(sentence) for sentence in sentences.values()}) < 2:
        return Comparison()
    known = key("\n".join(f"{piece.text}\n{piece.paper.title}\n{piece.paper.file}" for piece in evidence))
    agreements: list[Agreement] = []
    differences: list[Difference] = []
    for claim in named:
        same = [sentences[n] for n in dict.fromkeys(claim.same) if n in sentences]
        other = [sentences[n] for n in dict.fromkeys(claim.other) if n in sentences and n not in claim.same]
        same = [one for one in same if _supports(claim.claim, one, every, known)]
        other = [one for one in other if _is_near(claim.claim, one) and not _supports(claim.claim, one, every, known)]
        same = _one_of_each_work(same)
        other = [one for one in _one_of_each_work(other) if _work(one) not in map(_work, same)]
        if same and other:
            differences.append(Difference(tuple(map(quote, same)), tuple(map(quote, other))))
        elif len(same) > 1 and not any(conflict(one.text, two.text) for one, two in combinations(same, 2)):
            agreements.append(Agreement(tuple(map(quote, same))))
        else:
            continue
        for used in (*same, *other):
            del sentences[used.number]
    differences += _by_rules(list(sentences.values()))
    return Comparison(tuple(agreements[:MOST_GROUPS]), tuple(differences[:MOST_GROUPS]))


def _may_be_shown(sentence: EvidenceSentence) -> bool:
    words = sentence.text.split()
    relevant = sentence.evidence.score >= RELEVANT / MOST_RELEVANCE
    return relevant and LEAST_WORDS <= len(words) <= MOST_WORDS and words[-1][-1] in '.!)”"’'


def _work(sentence: EvidenceSentence) -> str:
    """The key of a work: two files with the same title are versions of one work."""
    paper: Paper = sentence.evidence.paper
    return fold(paper.title) or paper.id


def _one_of_each_work(sentences: Iterable[EvidenceSentence]) -> list[EvidenceSentence]:
    """The first sentence of each work, without word-for-word repetitions."""
    works: dict[str, EvidenceSentence] = {}
    for sentence in sentences:
        if fold(sentence.text) not in {fold(other.text) for other in works.values()}:
            works.setdefault(_work(sentence), sentence)
    return list(works.values())[:MOST_QUOTES]


def _supports(claim: str, sentence: EvidenceSentence, every: Sequence[EvidenceSentence], known: str) -> bool:
    """Whether a sentence supports a claim by itself, by the rules for statements of an answer."""
    source = of_sentences(claim, [sentence], every)
    return _is_near(claim, sentence) and source.coverage >= LEAST_NAMED and not any(faults(claim, source, known))


def _is_near(claim: str, sentence: EvidenceSentence) -> bool:
    return share(content_words(claim), tokens_of(sentence.text)) >= LEAST_SHARED


def _by_rules(sentences: Sequence[EvidenceSentence]) -> Iterator[Difference]:
    used: set[int] = set()
    for one, two in combinations(sentences, 2):
        differ = _work(one) != _work(two) and one.evidence.paper.id != two.evidence.paper.id
        if differ and not used & {one.number, two.number} and conflict(one.text, two.text):
            used |= {one.number, two.number}
            yield Difference((quote(one),), (quote(two),))


# Open questions: sentences of papers on what is not known yet, or left to further work. LOG.md has the precision.

LONGEST_SENTENCE = 60  # words; a longer one is mostly several sentences
LONGEST_TEXT = 300_000  # characters of a paper to search
MOST_COMPARED = 60  # sentences to compare with the question
LEAST_NEAR = 0.55  # minimum cosine to the question, of the built-in embedder
# A question that a paper's opening calls open is mostly one that the paper answers.
_OPENING_KINDS: frozenset[Kind] = frozenset({"abstract", "introduction", *NOT_EVIDENCE})
OPENING = 0.15  # share of a paper whose sections are not known

_STILL = r"(?:(?:an?|still|yet|largely|mostly|currently|as yet|so far|also|somewhat|at present|presently) )*"
_UNDERSTOOD = (
    r"(?:unresolved|unsolved|poorly (?:understood|known|studied|characteri[sz]ed)|under-?(?:explored|studied)"
    r"|not (?:yet )?(?:(?:been|well|fully|completely|entirely|clearly) )+(?:understood|known|clear)"
    r"|not (?:yet )?(?:(?:been|well|fully|completely|entirely|clearly) )*(?:understood|elucidated|established"
    r"|resolved))"
)
_UNKNOWN = r"(?:unclear|unknown|uncertain|not (?:yet )?(?:known|clear))"
# Subjects of studies: without one of these, "is unknown" is mostly about what a program or a person lacks
_SOUGHT = (
    r"(?:aetiolog|cause|causal|contribution|effect|efficacy|etiolog|extent|function|impact|implication|importance"
    r"|incidence|influence|mechanism|nature|origin|pathogenes[ie]s|prevalence|reason|relationship|relevance|role"
    r"|safety|significance|whether)\w*"
)
_WORK = (
    r"(?:future|further|more|additional) (?:\w+ )?"
    r"(?:work|research|stud(?:y|ies)|investigations?|experiments?|analys[ei]s|evaluations?|trials?|evidence)"
)
_REPORTS = r"\b(?:that|which|confirm|demonstrat|found|indicat|reveal|report|show|suggest)"
_NEEDED = (
    r"(?:(?:is|are|was|were|will be|would be|still|also|therefore|thus|clearly) )*"
    r"(?:needed|required|necessary|warranted|recommended|should|needs? to|must|has to|have to)"
)
_OURS = r"(?:this|our|the (?:present|current)) (?:study|work|analysis|approach|review|method|model|paper)"
_IMPERSONAL = rf"it (?:is|remains) {_STILL}{_UNKNOWN} (?:whether|if|how|why|what|which|to what extent)\b"
_OPEN = re.compile(
    rf"\bremain(?:s|ed)? {_STILL}(?:{_UNDERSTOOD}|{_UNKNOWN}|elusive|controversial|open|to be (?:\w+ed|seen|shown))\b"
    r"(?! to)"
    rf"|\b(?:is|are) {_STILL}{_UNDERSTOOD}\b"
    rf"|\b(?:is|are) (?:still|currently|as yet|at present|presently) {_UNKNOWN}\b"
    rf"|\b{_SOUGHT}\b[^.;]{{0,120}}\b(?:is|are) {_UNKNOWN}\b(?! (?:to|by|at|in) )"
    rf"|(?<!where )(?<!if )(?<!when )\b{_IMPERSONAL}"
    r"|\b(?:an?|the|another|important|remaining|major|key|main|many|several|some) open (?:question|problem|issue)s?\b"
    r"|\blittle is (?:yet |still |currently |so far )?(?:known|understood)\b"
    r"|\bhas (?:not (?:yet )?|yet to )be(?:en)? (?:\w+ly )?(?:studied|investigated|explored|established|elucidated"
    r"|determined|tested|examined|evaluated|addressed|shown|demonstrated)\b"
    rf"|\b{_WORK}\b(?:(?!{_REPORTS})[^.;]){{0,60}}?\b{_NEEDED}\b"
    rf"|\b(?:needs?|requires?|warrants?|deserves?|merits?|calls? for) {_WORK}\b"
    r"|\b(?:left|leave) (?:[\w-]+ ){0,8}(?:for|to|as an) (?:future|further|later|open)\b"
    r"|\b(?:subject|topic|matter) of (?:future|further|ongoing) (?:work|research|stud(?:y|ies)|investigations?)\b"
    r"|\bin (?:our )?future work\b"
    rf"|\blimitations? of {_OURS}\b|\b{_OURS} (?:has|had|is limited)(?: \w+){{0,3}} (?:limitations?|by)\b",
    re.I,
)
# Sentences that announce limitations, are about gaps in general, or name a gap that the paper fills
_NOT_OPEN = re.compile(
    r"limitations? of [\w ]{4,20} (?:should|must) be \w+\W*$|\bknown any ?more\b|\bwhat is (?:not|un)\W?known\b"
    r"|\b(?:hence|therefore|thus|so),? (?:in )?(?:this (?:study|paper|work)|we)\b|, we (?:here|therefore)\b"
    r"|\bhere,? we\b",
    re.I,
)
# Questions whose answer may be open in part; a value, a name or a date is not.
_BROAD_KINDS = frozenset({"why", "how", "comparison"})
_BROAD = re.compile(
    r"\W*(?:do|does|did|can|could|is|are|was|were|has|have|should|will|would)\b"
    r"|.*\b(?:roles?|effects?|impacts?|influences?|relationships?|causes?|mechanisms?|benefits?|risks?|burden|limits?"
    r"|limitations?|known|unknown|open|unclear|evidence|future)\b",
    re.I | re.S,
)


def may_be_open(question: str) -> bool:
    """Whether a question asks for more than a value or a name: "How do ...?", "Does ...?", "What effect has ...?"."""
    kind = question_type(question).kind
    return kind in _BROAD_KINDS or (kind == "other" and bool(_BROAD.match(question)))


def open_questions(
    question: str, papers: Sequence[Paper], read: Callable[[Paper], str], embedder: Embedder
) -> tuple[Quote, ...]:
    """At most MOST_OPEN sentences of these papers on what is open near the question, nearest first.

    read: a paper's text. Raises ModelError.
    """
    if not may_be_open(question):
        return ()
    distinct: dict[str, Quote] = {}
    for paper in papers:
        for each in _open_quotes(paper, read(paper)):
            distinct.setdefault(one_line(each.quote).casefold(), each)
    quotes = list(distinct.values())[:MOST_COMPARED]
    if not quotes:
        return ()
    near = embedder.embed_passages([quote.quote for quote in quotes]) @ embedder.embed_query(question)
    order = np.argsort(-near, kind="stable").tolist()
    return tuple(quotes[place] for place in order if near[place] >= LEAST_NEAR)[:MOST_OPEN]


def _open_quotes(paper: Paper, text: str) -> Iterator[Quote]:
    """The open questions of a paper after its opening, each on one page."""
    text = text[: min(paper.length, LONGEST_TEXT)]
    for start, end in open_sentences(text):
        kind = paper.sections.kind(start, end)
        opens = kind in _OPENING_KINDS or (kind is None and start < OPENING * paper.length)
        first, last = paper.pages.pages_of(start, end)
        if not opens and first == last:
            yield Quote(paper, start, end, text[start:end])


def open_sentences(text: str) -> Iterator[tuple[int, int]]:
    """The spans [start, end) of sentences on open questions, without those that lean on another sentence."""
    for start, end in sentence_spans(text):
        sentence = one_line(text[start:end])
        words = len(sentence.split())
        if not SHORTEST_SENTENCE < words <= LONGEST_SENTENCE or sentence[-1] not in ".!":
            continue
        is_open = _OPEN.search(sentence) and not _NOT_OPEN.search(sentence)
        if is_open and (not leans(sentence) or re.match(_IMPERSONAL, sentence, re.I)):  # "It is unclear why otters ..."
            yield start, end
