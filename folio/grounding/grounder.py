"""Decides about each statement of an answer: attribute, veto, compare. Whether a verifier agrees is settled later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from folio.grounding.attribution import Attribution, attribute, of_sentences
from folio.grounding.conflicts import against
from folio.grounding.names import key
from folio.grounding.sentences import EvidenceSentence, citation, number_sentences
from folio.grounding.veto import Fault, faults
from folio.grounding.words import held_of, in_order, share, telling, tokens_of, words_of
from folio.text import tokenize
from folio.types import Citation, Claim, Evidence

# The least share of a statement's words that its source must have, averaged with that of the statements before it: an
# answer that keeps to its evidence has earned it. A source that the writer named needs less than one that was found.
LEAST_NAMED, LEAST_FOUND, BEFORE = 0.6, 0.71, 0.5
MUCH_BETTER = 0.1  # a named source is kept unless another one has this much more of the statement's words
# A quoted statement has all its content words in one sentence of the paper in this order, and of all its words this
# share. With fewer words it may be a quote of anything.
QUOTED_IN_ORDER, QUOTED_WORDS = 0.8, 4
# Words that widen, narrow or frame a claim: a quote has those that its sentence has, and no other.
_SCOPE = frozenset(
    "all any believed can claimed could each every false falsely few if many may might most must never only possibly"
    " should some sometimes suggest suggested unclear unknown unless whether would".split()
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about a statement before any verifier is asked. fault: of one that is left out."""

    statement: str
    source: Attribution
    outcome: Literal["quoted", "reworded", "left out"]
    fault: Fault | None = None

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

    def find(self, statement: str, support: Sequence[int] = (), pieces: Sequence[int] = ()) -> Finding:
        """Judge the next statement.

        support: numbers of the sentences that its writer named; pieces: of the pieces of evidence. Both may be wrong:
        then the whole evidence is searched.
        """
        source, is_named = self._source(statement, support, pieces)
        before = fmean(self._coverages or [source.coverage])
        self._coverages.append(source.coverage)
        if not source.sentences:
            return Finding(statement, source, "left out", Fault("not found", "no evidence says this"))
        if fault := next(faults(statement, source, self._known), None):
            return Finding(statement, source, "left out", fault)
        if is_quoted(statement, source):
            return Finding(statement, source, "quoted")
        if (1 - BEFORE) * source.coverage + BEFORE * before < (LEAST_NAMED if is_named else LEAST_FOUND):
            return Finding(statement, source, "left out", Fault("not found", "it does not say this"))
        return Finding(statement, source, "reworded")

    def against(self, statement: str, citations: Sequence[Citation]) -> tuple[Citation, ...]:
        """What other papers say to the contrary."""
        return against(statement, citations, self.sentences)

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
        cited = [sentence for sentence in cited if held_of(words, tokens_of(sentence.text))]
        named = {*pieces, *(sentence.evidence.number for sentence in cited)}
        tried = [of_sentences(statement, cited, self.sentences)] if cited else []
        if named:
            near = [sentence for sentence in self.sentences if sentence.evidence.number in named]
            tried.append(attribute(statement, near, self.sentences))
        anywhere = attribute(statement, self.sentences, self.sentences)
        for source in tried:
            good = source.sentences and source.coverage >= anywhere.coverage - MUCH_BETTER
            if good and not any(faults(statement, source, self._known)):
                return source, True
        return anywhere, False


def citations_of(finding: Finding) -> tuple[Citation, ...]:
    """The quotes of a statement that is shown. Support is 1 only where the statement stands word for word in one."""
    plain = _folded(finding.statement)
    quotes = []
    for sentence in finding.source.sentences:
        verbatim = finding.outcome == "quoted" and plain in _folded(sentence.text)
        support = 1.0 if verbatim else min(0.99, max(0.01, finding.source.coverage))
        quotes.append(citation(sentence.evidence, sentence.start, sentence.end, support))
    return tuple(quotes[:1] if quotes[0].support == 1 else quotes)


def is_quoted(statement: str, source: Attribution) -> bool:
    """Whether a statement is in the paper's words: a cited sentence has all that it says, in its order."""
    written = words_of(statement)
    words = telling(statement)
    content = [token for token in tokenize(statement) if token in words]
    return len(written) >= QUOTED_WORDS and any(
        share(words, tokens_of(sentence.text)) == 1
        and _SCOPE.intersection(written) == _SCOPE.intersection(words_of(sentence.text))
        and in_order(content, tokenize(sentence.text)) == len(content)
        and in_order(written, words_of(sentence.text)) >= QUOTED_IN_ORDER * len(written)
        for sentence in source.sentences
    )


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold().strip(" .")
