"""Judges each statement of an answer: attribute it, check for a veto, compare the wording. A verifier comes later."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean
from typing import Literal

from folio.answer_types import Citation, Evidence
from folio.grounding.attribution import MOST_SENTENCES, Attribution, attribute, of_sentences
from folio.grounding.names import key
from folio.grounding.sentences import EvidenceSentence, citations, is_row, number_sentences
from folio.grounding.veto import Fault, faults
from folio.grounding.words import content_words, in_order, matching_words, share, tokens_of, words_of
from folio.text import one_line, tokenize

# The least coverage of a statement by its source: LEAST_NAMED if the writer named the source, LEAST_FOUND if search
# found it. The coverage of the earlier statements counts with weight BEFORE, so one weak statement in an answer that
# keeps to its evidence is accepted.
LEAST_NAMED, LEAST_FOUND, BEFORE = 0.6, 0.71, 0.5
ENOUGH = 0.95  # with this coverage a statement is shown, whatever that of the earlier statements
MUCH_BETTER = 0.1  # a named source is replaced only by one whose coverage is this much higher
# All content words of a quoted statement are in one sentence of the paper in the same order, and so is at least
# QUOTED_IN_ORDER of all its words. A statement with fewer than QUOTED_WORDS words is never a quote.
QUOTED_IN_ORDER, QUOTED_WORDS = 0.8, 4
LONGEST_QUOTED = 400  # tokens; a longer sentence is never quoted
# Words that widen, narrow or frame a claim: a quote has exactly those of its sentence.
_SCOPE = frozenset(
    "all any believed can claimed could each every false falsely few if many may might most must never only possibly"
    " should some sometimes suggest suggested unclear unknown unless whether would".split()
)
# What separates the clauses and the items of a sentence
_PARTING = re.compile(r"(?:[,;]\s+)?\b(and|or|but|nor|while|whereas|although|though)\b|([,;:])(?=\s|$)", re.I)


@dataclass(frozen=True, slots=True)
class Finding:
    """The judgement on a statement, before a verifier is called."""

    statement: str
    source: Attribution
    outcome: Literal["quoted", "reworded", "left out"]
    fault: Fault | None = None  # why it is left out
    quoted: EvidenceSentence | None = None  # the sentence that a quoted statement repeats


@dataclass
class Grounder:
    """Judges the statements of one answer, in order."""

    evidence: Sequence[Evidence]
    sentences: tuple[EvidenceSentence, ...] = field(init=False)
    _known: str = field(init=False)
    _coverages: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.sentences = number_sentences(self.evidence)
        self._known = key("\n".join(f"{e.text}\n{e.paper.title}\n{e.paper.file}" for e in self.evidence))

    def find(
        self, statement: str, support: Sequence[int] = (), pieces: Sequence[int] = (), *, leads_in: bool = False
    ) -> Finding:
        """Judge the next statement.

        support: the numbers of the sentences that its writer named. pieces: the numbers of the pieces of evidence that
        its writer named. If they are wrong, all evidence is searched. leads_in: it only introduces other statements, so
        its coverage does not count for them.
        """
        source, is_named = self._source(statement, support, pieces)
        before = fmean(self._coverages or [source.coverage])
        self._coverages += [] if leads_in else [source.coverage]
        if not source.sentences:
            return Finding(statement, source, "left out", Fault("not found", "no evidence says this"))
        if fault := next(faults(statement, source, self._known), None):
            return Finding(statement, source, "left out", fault)
        if quoted := next((s for s in source.sentences if _quotes(statement, s.text)), None):
            return Finding(statement, source, "quoted", quoted=quoted)
        coverage = (1 - BEFORE) * source.coverage + BEFORE * before
        if source.coverage < ENOUGH and coverage < (LEAST_NAMED if is_named else LEAST_FOUND):
            return Finding(statement, source, "left out", Fault("not found", "it does not say this"))
        return Finding(statement, source, "reworded")

    def mentions(self, heading: str) -> bool:
        """Whether the evidence has all words, numbers and names of a heading."""
        all_evidence = of_sentences(heading, self.sentences, self.sentences)
        there = tokens_of(self._known) | tokens_of(all_evidence.context)
        return share(content_words(heading), there) == 1 and not any(faults(heading, all_evidence, self._known))

    def _source(self, statement: str, support: Sequence[int], pieces: Sequence[int]) -> tuple[Attribution, bool]:
        """The source of a statement, and whether its writer named it."""
        words = content_words(statement)
        by_number = dict.fromkeys(number for number in support if 1 <= number <= len(self.sentences))
        cited = [self.sentences[number - 1] for number in by_number]
        match_count = {sentence: len(matching_words(words, tokens_of(sentence.text))) for sentence in cited}
        most = max(MOST_SENTENCES, statement.count("\n") + 1)  # each step of a procedure has its own
        cited = sorted(filter(match_count.__getitem__, cited), key=match_count.__getitem__, reverse=True)[:most]
        named = {*pieces, *(sentence.evidence.number for sentence in cited)}
        candidates = [of_sentences(statement, cited, self.sentences)] if cited else []
        if named:
            near = [sentence for sentence in self.sentences if sentence.evidence.number in named]
            candidates.append(attribute(statement, near, self.sentences))
        anywhere = attribute(statement, self.sentences, self.sentences)
        if not cited and len(named) == len(self.evidence):  # naming all evidence names nothing
            return anywhere, False
        for source in candidates:
            good = source.sentences and source.coverage >= anywhere.coverage - MUCH_BETTER
            if good and not any(faults(statement, source, self._known)):
                return source, True
        return anywhere, False


def citations_of(finding: Finding) -> tuple[Citation, ...]:
    """The quotes of a statement that is shown. Their support is 1 only if a quote has the statement word for word."""
    quoted = finding.quoted
    verbatim = quoted is not None and _folded(finding.statement) in _folded(quoted.text)
    support = 1.0 if verbatim else min(0.99, max(0.01, finding.source.coverage))
    sentences = [quoted] if quoted else finding.source.sentences
    return tuple(quote for s in sentences for quote in citations(s.evidence, s.start, s.end, support))


def _quotes(statement: str, sentence: str) -> bool:
    """Whether a statement quotes a sentence: the sentence has all its content words, in the same order.

    It must be all of a table's row, because a part means nothing without its column.
    """
    statement_words, sentence_words, words = words_of(statement), words_of(sentence), content_words(statement)
    content = [token for token in tokenize(statement) if token in words]
    return (
        len(statement_words) >= QUOTED_WORDS
        and share(words, tokens_of(sentence)) == 1
        and _SCOPE.intersection(statement_words) == _SCOPE.intersection(sentence_words)
        and in_order(content, tokenize(sentence)) == len(content)
        and in_order(statement_words, sentence_words) >= QUOTED_IN_ORDER * len(statement_words)
        and (not is_row(sentence) or tokens_of(sentence) <= words)
        and not _joins_clauses(statement, sentence)
    )


def _joins_clauses(statement: str, sentence: str) -> bool:
    """Whether a statement skips a clause separator of the sentence, so that it may mix the words of two clauses.

    "A has 2 m and B 1 m" is not quoted by "A has 1 m" or by "A and B 1 m".
    """
    sentence_tokens, marks = _clauses(sentence)
    if len(sentence_tokens) > LONGEST_QUOTED:
        return True
    statement_tokens, statement_marks = _clauses(statement)
    places: dict[str, list[int]] = {}
    for place, token in enumerate(sentence_tokens):
        places.setdefault(token, []).append(place)
    mark_places = [place for place, _ in marks]
    ends: list[int] = []  # places in the sentence where the statement's tokens so far can end
    last = 0  # the place in the statement after its last token that the sentence has

    def follows(place: int, allowed: Sequence[str]) -> bool:
        """Whether a token here can continue the tokens so far. The nearest end has the fewest separators in between."""
        before = bisect_left(ends, place)
        if not before:
            return False
        between = marks[bisect_right(mark_places, ends[before - 1]) : bisect_right(mark_places, place)]
        return len(between) <= len(allowed) and not Counter(mark for _, mark in between) - Counter(allowed)

    for number, token in enumerate(statement_tokens):
        if token in places:
            allowed = [mark for mark_place, mark in statement_marks if last <= mark_place <= number]
            ends = [place for place in places[token] if follows(place, allowed)] if last else places[token]
            last = number + 1
            if not ends:
                return True
    return False


@lru_cache(maxsize=256)
def _clauses(text: str) -> tuple[list[str], list[tuple[int, str]]]:
    """The tokens of a text, and its clause separators, each with the number of tokens before it."""
    tokens, marks, start = list[str](), list[tuple[int, str]](), 0
    for match in _PARTING.finditer(text):
        tokens += tokenize(text[start : match.start()])
        marks.append((len(tokens), (match[1] or match[2]).casefold()))
        start = match.end()
    return tokens + tokenize(text[start:]), marks


def _folded(text: str) -> str:
    return one_line(text).casefold().strip(" .")
