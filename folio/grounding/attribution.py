"""Finds the sentences of the evidence that a statement rests on, and how much of it they hold. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from folio.grounding.quantities import Quantity, quantities
from folio.grounding.sentences import EvidenceSentence, neighbours
from folio.grounding.words import held_of, share, telling, tokens_of

MOST_SENTENCES = 4  # that a statement is attributed to
LEAST_GAIN = 0.2  # the share of the statement's words that a further sentence must add, or else a missing number


@dataclass(frozen=True, slots=True)
class Attribution:
    """The sentences that a statement rests on, in order; with none, nothing in the evidence is near it."""

    sentences: tuple[EvidenceSentence, ...]
    context: str  # they and their neighbours
    titles: str  # titles and file names of their papers
    coverage: float  # the share of the statement's words that context and titles have, 0 to 1

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


def attribute(statement: str, among: Sequence[EvidenceSentence], everything: Sequence[EvidenceSentence]) -> Attribution:
    """What of these sentences a statement rests on. among: the candidates. everything: of the whole evidence.

    Greedy: next is the sentence with the highest Dice coefficient to the words that are still open.
    """
    return of_sentences(statement, _chosen(telling(statement), quantities(statement), among), everything)


def of_sentences(
    statement: str, chosen: Sequence[EvidenceSentence], everything: Sequence[EvidenceSentence]
) -> Attribution:
    """The attribution to these sentences."""
    ordered = tuple(sorted(chosen, key=lambda sentence: sentence.number))
    papers = dict.fromkeys(sentence.evidence.paper for sentence in ordered)
    titles = "\n".join(f"{paper.title}\n{paper.file}" for paper in papers)
    context = "\n".join(sentence.text for sentence in neighbours(ordered, everything))
    return Attribution(ordered, context, titles, share(telling(statement), tokens_of(context) | tokens_of(titles)))


def _chosen(
    words: frozenset[str], numbers: Sequence[Quantity], among: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    left = {sentence: tokens_of(sentence.text) for sentence in among}
    missing, chosen, still_open = list(numbers), list[EvidenceSentence](), words

    def closeness(sentence: EvidenceSentence) -> float:
        return 2 * len(held_of(still_open, left[sentence])) / (len(words) + len(left[sentence]) or 1)

    while left and len(chosen) < MOST_SENTENCES:
        best = max(left, key=closeness)
        if len(held_of(still_open, left[best])) < max(1.0, LEAST_GAIN * len(words)):
            holders = {s: held for s, there in left.items() if (held := held_of(words, there)) and _has_any(missing, s)}
            if not holders or not chosen:
                break
            best = max(holders, key=lambda sentence: len(holders[sentence]))
        still_open -= held_of(still_open, left.pop(best))
        missing = [number for number in missing if not number.is_among(quantities(best.text))]
        chosen.append(best)
    return chosen


def _has_any(numbers: Sequence[Quantity], sentence: EvidenceSentence) -> bool:
    return any(number.is_among(quantities(sentence.text)) for number in numbers)
