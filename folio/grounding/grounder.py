"""Decides about each statement of an answer: attribute, veto, compare. Whether a verifier agrees is settled later."""

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
from folio.grounding.words import held_of, in_order, share, telling, tokens_of, words_of
from folio.text import one_line, tokenize

# The least share of a statement's words that its source must have, averaged with that of the statements before it: an
# answer that keeps to its evidence has earned it. A source that the writer named needs less than one that was found.
LEAST_NAMED, LEAST_FOUND, BEFORE = 0.6, 0.71, 0.5
ENOUGH = 0.95  # with this share a statement is shown whatever stood before it
MUCH_BETTER = 0.1  # a named source is kept unless another one has this much more of the statement's words
# A quoted statement has all its content words in one sentence of the paper in this order, and of all its words this
# share. With fewer words it may be a quote of anything.
QUOTED_IN_ORDER, QUOTED_WORDS = 0.8, 4
LONGEST_QUOTED = 400  # tokens of a sentence; a longer one is none
# Words that widen, narrow or frame a claim: a quote has those that its sentence has, and no other.
_SCOPE = frozenset(
    "all any believed can claimed could each every false falsely few if many may might most must never only possibly"
    " should some sometimes suggest suggested unclear unknown unless whether would".split()
)
# What parts the clauses and the items of a sentence
_PARTING = re.compile(r"(?:[,;]\s+)?\b(and|or|but|nor|while|whereas|although|though)\b|([,;:])(?=\s|$)", re.I)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about a statement before any verifier is asked. fault: of one that is left out."""

    statement: str
    source: Attribution
    outcome: Literal["quoted", "reworded", "left out"]
    fault: Fault | None = None
    quoted: EvidenceSentence | None = None  # the sentence whose words a quoted one has


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

        support: numbers of the sentences that its writer named; pieces: of the pieces of evidence. Both may be wrong:
        then the whole evidence is searched. leads_in: it only introduces others, and says nothing about the answer.
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
        everything = of_sentences(heading, self.sentences, self.sentences)
        there = tokens_of(self._known) | tokens_of(everything.context)
        return share(telling(heading), there) == 1 and not any(faults(heading, everything, self._known))

    def _source(self, statement: str, support: Sequence[int], pieces: Sequence[int]) -> tuple[Attribution, bool]:
        """What a statement rests on, and whether its writer named that."""
        words = telling(statement)
        by_number = dict.fromkeys(number for number in support if 1 <= number <= len(self.sentences))
        cited = [self.sentences[number - 1] for number in by_number]
        held = {sentence: len(held_of(words, tokens_of(sentence.text))) for sentence in cited}
        most = max(MOST_SENTENCES, statement.count("\n") + 1)  # each step of a procedure has its own
        cited = sorted(filter(held.__getitem__, cited), key=held.__getitem__, reverse=True)[:most]
        named = {*pieces, *(sentence.evidence.number for sentence in cited)}
        tried = [of_sentences(statement, cited, self.sentences)] if cited else []
        if named:
            near = [sentence for sentence in self.sentences if sentence.evidence.number in named]
            tried.append(attribute(statement, near, self.sentences))
        anywhere = attribute(statement, self.sentences, self.sentences)
        if not cited and len(named) == len(self.evidence):  # to name everything is to name nothing
            return anywhere, False
        for source in tried:
            good = source.sentences and source.coverage >= anywhere.coverage - MUCH_BETTER
            if good and not any(faults(statement, source, self._known)):
                return source, True
        return anywhere, False


def citations_of(finding: Finding) -> tuple[Citation, ...]:
    """The quotes of a statement that is shown. Support is 1 only where the statement stands word for word in one."""
    quoted = finding.quoted
    verbatim = quoted is not None and _folded(finding.statement) in _folded(quoted.text)
    support = 1.0 if verbatim else min(0.99, max(0.01, finding.source.coverage))
    sentences = [quoted] if quoted else finding.source.sentences
    return tuple(quote for s in sentences for quote in citations(s.evidence, s.start, s.end, support))


def _quotes(statement: str, sentence: str) -> bool:
    """Whether a statement is in a sentence's words: the sentence has all that it says, in its order.

    Of a table's row it must be the whole: a part says nothing without its column.
    """
    written, there, words = words_of(statement), words_of(sentence), telling(statement)
    content = [token for token in tokenize(statement) if token in words]
    return (
        len(written) >= QUOTED_WORDS
        and share(words, tokens_of(sentence)) == 1
        and _SCOPE.intersection(written) == _SCOPE.intersection(there)
        and in_order(content, tokenize(sentence)) == len(content)
        and in_order(written, there) >= QUOTED_IN_ORDER * len(written)
        and (not is_row(sentence) or tokens_of(sentence) <= words)
        and not _joins_clauses(statement, sentence)
    )


def _joins_clauses(statement: str, sentence: str) -> bool:
    """Whether a statement passes over what parts two clauses, so that it may give to one what is said of the other.

    "A has 2 m and B 1 m" is quoted neither as "A has 1 m" nor as "A and B 1 m".
    """
    there, marks = _clauses(sentence)
    if len(there) > LONGEST_QUOTED:
        return True
    said, said_marks = _clauses(statement)
    places: dict[str, list[int]] = {}
    for place, token in enumerate(there):
        places.setdefault(token, []).append(place)
    at = [place for place, _ in marks]
    ends: list[int] = []  # where the words of the statement so far can end in the sentence
    last = 0  # what comes next in the statement, behind the last word that the sentence has

    def follows(place: int, allowed: Sequence[str]) -> bool:
        """Whether a word can stand here, after the words so far: the nearest end has the least between."""
        before = bisect_left(ends, place)
        if not before:
            return False
        between = marks[bisect_right(at, ends[before - 1]) : bisect_right(at, place)]
        return len(between) <= len(allowed) and not Counter(mark for _, mark in between) - Counter(allowed)

    for number, token in enumerate(said):
        if token in places:
            allowed = [mark for where, mark in said_marks if last <= where <= number]
            ends = [place for place in places[token] if follows(place, allowed)] if last else places[token]
            last = number + 1
            if not ends:
                return True
    return False


@lru_cache(maxsize=256)
def _clauses(text: str) -> tuple[list[str], list[tuple[int, str]]]:
    """The tokens of a text, and what parts its clauses, conjunctions and commas, each before which token it stands."""
    tokens, marks, done = list[str](), list[tuple[int, str]](), 0
    for match in _PARTING.finditer(text):
        tokens += tokenize(text[done : match.start()])
        marks.append((len(tokens), (match[1] or match[2]).casefold()))
        done = match.end()
    return tokens + tokenize(text[done:]), marks


def _folded(text: str) -> str:
    return one_line(text).casefold().strip(" .")
