"""Excerpts as the sentences of an answer: quoted, with a citation for each page, and the words that answer marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter

from folio.answer.blocks import Span
from folio.answer.excerpts import Excerpt, brief, distinct_excerpts, pointers
from folio.answer.library_questions import title_span
from folio.answer.subjects import has_name, known_words
from folio.answer.values import meets_conditions, short_answer
from folio.answer_types import ALSO, SUMMARY, Citation, Evidence, Section, Sentence, Style
from folio.grounding.conflicts import MOST_AGAINST, against, are_apart, disagreeing, of_values
from folio.grounding.quantities import Quantity, quantities
from folio.grounding.sentences import EvidenceSentence, citation, citations, number_sentences
from folio.papers.model import Paper
from folio.question.question import Question
from folio.text import one_line, tokenize

# The analysis of a report: maximum excerpts, maximum words in all, minimum share of each
MOST_DETAILS, DETAIL_WORDS, DETAIL_SHARE = 8, 400, 0.003
MOST_OF_ONE_PAPER = 2  # excerpts for each part of a question if one paper answers all of it
Placed = tuple[Question, Excerpt, Section]  # an excerpt, the part of the question that it answers, and its heading


def best_sentences(
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
    named = (one for one in (first, *others) if has_names(question, one))
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


def has_names(question: Question, excerpt: Excerpt) -> bool:
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


def title_sentence(evidence: Evidence, heading: Section) -> Sentence | None:
    """A quote of a paper's title from a piece of evidence; None if it is not there."""
    start, end = title_span(evidence.paper, evidence.text)
    if start == end:
        return None
    quote = citation(evidence, start, end, 1.0)
    return Sentence(one_line(quote.quote), (quote,), section=heading)


def sentences_by_part(excerpts: Sequence[Placed], evidence: Sequence[Evidence]) -> Iterator[Sentence]:
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
