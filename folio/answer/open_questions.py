"""What papers leave open: their sentences that say that something is not known yet, or left to further work.

LOG.md has how often these rules are right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from folio.answer.excerpts import SHORTEST_SENTENCE, leans
from folio.answer.question_type import question_type
from folio.answer_types import Quote
from folio.evidence_profile import MOST_OPEN
from folio.protocols import Embedder
from folio.sections import NOT_EVIDENCE, Kind
from folio.text import one_line, sentence_spans
from folio.types import Paper

LONGEST_SENTENCE = 60  # words; a longer one is mostly several that were not told apart
LONGEST_TEXT = 300_000  # characters of a paper that are looked through
MOST_COMPARED = 60  # sentences that are compared with the question
# The least cosine to the question, of the built-in embedder.
LEAST_NEAR = 0.55
# What a paper says is open in its opening is mostly what it then answers.
_BEFORE: frozenset[Kind] = frozenset({"abstract", "introduction", *NOT_EVIDENCE})
OPENING = 0.15  # of a paper whose sections are not known

_STILL = r"(?:(?:an?|still|yet|largely|mostly|currently|as yet|so far|also|somewhat|at present|presently) )*"
_UNDERSTOOD = (
    r"(?:unresolved|unsolved|poorly (?:understood|known|studied|characteri[sz]ed)|under-?(?:explored|studied)"
    r"|not (?:yet )?(?:(?:been|well|fully|completely|entirely|clearly) )+(?:understood|known|clear)"
    r"|not (?:yet )?(?:(?:been|well|fully|completely|entirely|clearly) )*(?:understood|elucidated|established"
    r"|resolved))"
)
_UNKNOWN = r"(?:unclear|unknown|uncertain|not (?:yet )?(?:known|clear))"
# What a study looks for: without one of these, "is unknown" mostly says that a program or a person lacks something
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
# What only announces limitations, speaks of gaps as such, or names a gap that the paper then fills
_NOT_OPEN = re.compile(
    r"limitations? of [\w ]{4,20} (?:should|must) be \w+\W*$|\bknown any ?more\b|\bwhat is (?:not|un)\W?known\b"
    r"|\b(?:hence|therefore|thus|so),? (?:in )?(?:this (?:study|paper|work)|we)\b|, we (?:here|therefore)\b"
    r"|\bhere,? we\b",
    re.I,
)


# A question that a value, a name or a date answers has no answer that could be open in part: these may have one.
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
    """At most MOST_OPEN sentences of these papers that say that something near the question is open, nearest first.

    read: a paper's text. Raises ModelError.
    """
    if not may_be_open(question):
        return ()
    found: dict[str, Quote] = {}
    for paper in papers:
        for quote in _quotes(paper, read(paper)):
            found.setdefault(one_line(quote.quote).casefold(), quote)
    quotes = list(found.values())[:MOST_COMPARED]
    if not quotes:
        return ()
    near = embedder.embed_passages([quote.quote for quote in quotes]) @ embedder.embed_query(question)
    order = np.argsort(-near, kind="stable").tolist()
    return tuple(quotes[place] for place in order if near[place] >= LEAST_NEAR)[:MOST_OPEN]


def _quotes(paper: Paper, text: str) -> Iterator[Quote]:
    """Of the part of a paper that speaks of its own results, each on one page."""
    text = text[: min(paper.length, LONGEST_TEXT)]
    for start, end in open_sentences(text):
        kind = paper.sections.kind(start, end)
        opens = kind in _BEFORE or (kind is None and start < OPENING * paper.length)
        first, last = paper.pages.pages_of(start, end)
        if not opens and first == last:
            yield Quote(paper, start, end, text[start:end])


def open_sentences(text: str) -> Iterator[tuple[int, int]]:
    """The spans [start, end) of these sentences in a text, in order; those that lean on another one are left out."""
    for start, end in sentence_spans(text):
        sentence = one_line(text[start:end])
        words = len(sentence.split())
        if not SHORTEST_SENTENCE < words <= LONGEST_SENTENCE or sentence[-1] not in ".!":
            continue
        if _OPEN.search(sentence) and not _NOT_OPEN.search(sentence) and not _leans(sentence):
            yield start, end


def _leans(sentence: str) -> bool:
    """Whether a sentence cannot be understood without the one before it; "It is unclear why otters ..." can."""
    return leans(sentence) and not re.match(_IMPERSONAL, sentence, re.I)
