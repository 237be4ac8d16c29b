"""Decides about each statement of an answer: attribute, veto, compare. Whether a verifier agrees is settled later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from folio.grounding.attribution import Attribution, attribute, of_sentences
from folio.grounding.conflicts import against
from folio.grounding.names import key
from folio.grounding.sentences import EvidenceSentence, citation, number_sentences
from folio.grounding.veto import Fault, faults
from folio.grounding.words import held_of, in_order, share, telling, tokens_of, words_of
from folio.protocols import Claim
from folio.text import tokenize
from folio.types import Citation, Evidence

# The least share of a statement's words that its source must have, averaged with that of the statements before it: a
# source that the writer named needs less than one that the program found. LOG.md has the measurements.
LEAST_NAMED, LEAST_FOUND = 0.6, 0.71
# Weight of the mean of the statements before in that average. An answer that keeps to its evidence has earned it.
BEFORE = 0.5
# A named source is kept unless another one has this much more of the statement's words.
MUCH_BETTER = 0.1
# A quoted statement has all its content words in one sentence of the paper in this order, and of all its words this
# share. With fewer words it may be a quote of anything.
QUOTED_IN_ORDER, QUOTED_WORDS = 0.8, 4

NOT_FOUND = Fault("not found", "it does not say this")
NOTHING = Fault("not found", "no evidence says this")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about a statement before any verifier is asked. rule and reason: of one that is left out."""

    statement: str
    source: Attribution
    outcome: Literal["quoted", "reworded", "left out"]
    fault: Fault | None = None
    quoted: tuple[EvidenceSentence, ...] = ()  # the sentence whose words it has, in two parts if a page ends within it

    @classmethod
    def unread(cls, statement: str, fault: Fault) -> Finding:
        """Of a statement that is not looked up at all."""
        return cls(statement, Attribution((), "", "", 0.0), "left out", fault)

    @property
    def claim(self) -> Claim:
        """What a verifier is asked."""
        return Claim(self.statement, self.source.context, self.source.titles.partition("\n")[0])


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
        source, named = self._source(statement, support, pieces)
        before = sum(self._coverages) / len(self._coverages) if self._coverages else source.coverage
        self._coverages += [] if leads_in else [source.coverage]
        if not source.sentences:
            return Finding(statement, source, "left out", NOTHING)
        if fault := next(iter(faults(statement, source, self._known)), None):
            return Finding(statement, source, "left out", fault)
        if quoted := _quoted_from(statement, source, self.sentences):
            return Finding(statement, source, "quoted", quoted=quoted)
        coverage = (1 - BEFORE) * source.coverage + BEFORE * before
        if coverage < (LEAST_NAMED if named else LEAST_FOUND):
            return Finding(statement, source, "left out", NOT_FOUND)
        return Finding(statement, source, "reworded")

    def against(self, statement: str, citations: Sequence[Citation]) -> tuple[Citation, ...]:
        """What other papers say to the contrary."""
        return against(statement, citations, self.sentences)

    def mentions(self, heading: str) -> bool:
        """Whether the evidence has all words, numbers and names of a heading."""
        there = frozenset(tokenize(self._known)) | frozenset().union(*(tokens_of(s.text) for s in self.sentences))
        everything = of_sentences(heading, self.sentences, self.sentences)
        words = telling(heading)
        return held_of(words, there) == words and not any(faults(heading, everything, self._known))

    def _source(self, statement: str, support: Sequence[int], pieces: Sequence[int]) -> tuple[Attribution, bool]:
        """What a statement rests on, and whether its writer named that."""
        words = telling(statement)
        by_number = dict.fromkeys(number for number in support if 1 <= number <= len(self.sentences))
        cited = [self.sentences[number - 1] for number in by_number]
        cited = [sentence for sentence in cited if held_of(words, tokens_of(sentence.text))]
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
    """The quotes of a statement that is shown. Support is 1 only where the statement stands word for word in them."""
    sentences = finding.quoted or finding.source.sentences
    verbatim = _folded(finding.statement) in _folded(" ".join(sentence.text for sentence in finding.quoted))
    support = 1.0 if verbatim else min(0.99, max(0.01, finding.source.coverage))
    return tuple(citation(s.evidence, s.start, s.end, support) for s in sentences)


def _quoted_from(
    statement: str, source: Attribution, everything: Sequence[EvidenceSentence]
) -> tuple[EvidenceSentence, ...]:
    """The cited sentence that has all that a statement says, in its order; () if there is none."""
    written, words = words_of(statement), telling(statement)
    content = [token for token in tokenize(statement) if token in words]
    if len(written) < QUOTED_WORDS:
        return ()
    for sentences in dict.fromkeys(_whole(sentence, everything) for sentence in source.sentences):
        text = " ".join(sentence.text for sentence in sentences)
        if (
            share(words, tokens_of(text)) == 1
            and in_order(content, tokenize(text)) == len(content)
            and in_order(written, words_of(text)) >= QUOTED_IN_ORDER * len(written)
        ):
            return sentences
    return ()


def _whole(sentence: EvidenceSentence, everything: Sequence[EvidenceSentence]) -> tuple[EvidenceSentence, ...]:
    """A sentence with its other part if a page ends within it."""
    before, after = sentence.number - 2, sentence.number  # their places: numbers begin at 1
    if after < len(everything) and _goes_on(sentence, everything[after]):
        return sentence, everything[after]
    return (everything[before], sentence) if before >= 0 and _goes_on(everything[before], sentence) else (sentence,)


def _goes_on(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Whether a sentence goes on with the other one, on the next page."""
    evidence = one.evidence
    pages = [evidence.paper.pages.page_at(evidence.start + each.start) for each in (one, other)]
    return evidence is other.evidence and pages[0] < pages[1] and not one.text.endswith((".", "!", "?", "…"))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold().strip(" .")
