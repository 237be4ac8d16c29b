"""Finds the sentences of the evidence that support a statement, and how much of it they cover. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from folio.grounding.quantities import Quantity, quantities
from folio.grounding.sentences import EvidenceSentence, neighbours
from folio.grounding.words import content_words, matching_words, share, tokens_of

MOST_SENTENCES = 4  # most sentences that a statement is attributed to
LEAST_GAIN = 0.2  # the share of the statement's words that each sentence must add, unless it adds a missing number


@dataclass(frozen=True, slots=True)
class Attribution:
    """The sentences that support a statement, in order; empty if no sentence of the evidence resembles it."""

    sentences: tuple[EvidenceSentence, ...]
    context: str  # the text of these sentences and their neighbours
    titles: str  # titles and file names of their papers
    coverage: float  # the share of the statement's words in context and titles, 0 to 1

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


def attribute(
    statement: str, candidates: Sequence[EvidenceSentence], all_sentences: Sequence[EvidenceSentence]
) -> Attribution:
    """The attribution of a statement to some of the candidates. all_sentences: those of the whole evidence.

    Greedy: the next sentence is the one with the highest Dice coefficient to the words that are not covered yet.
    """
    chosen = _chosen(content_words(statement), quantities(statement), candidates)
    return of_sentences(statement, chosen, all_sentences)


def of_sentences(
    statement: str, chosen: Sequence[EvidenceSentence], all_sentences: Sequence[EvidenceSentence]
) -> Attribution:
    """The attribution to these sentences."""
    ordered = tuple(sorted(chosen, key=lambda sentence: sentence.number))
    papers = dict.fromkeys(sentence.evidence.paper for sentence in ordered)
    titles = "\n".join(f"{paper.title}\n{paper.file}" for paper in papers)
    context = "\n".join(sentence.text for sentence in neighbours(ordered, all_sentences))
    return Attribution(
        ordered, context, titles, share(content_words(statement), tokens_of(context) | tokens_of(titles))
    )


def _chosen(
    words: frozenset[str], numbers: Sequence[Quantity], candidates: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    remaining = {sentence: tokens_of(sentence.text) for sentence in candidates}
    missing, chosen, uncovered = list(numbers), list[EvidenceSentence](), words

    def closeness(sentence: EvidenceSentence) -> float:
        return 2 * len(matching_words(uncovered, remaining[sentence])) / (len(words) + len(remaining[sentence]) or 1)

    while remaining and len(chosen) < MOST_SENTENCES:
        best = max(remaining, key=closeness)
        if len(matching_words(uncovered, remaining[best])) < max(1.0, LEAST_GAIN * len(words)):
            with_number = [sentence for sentence in remaining if _has_any(missing, sentence)]
            shared = {sentence: len(matching_words(words, remaining[sentence])) for sentence in with_number}
            if not any(shared.values()) or not chosen:
                break
            best = max(shared, key=shared.__getitem__)
        uncovered -= matching_words(uncovered, remaining.pop(best))
        missing = [number for number in missing if not number.is_among(quantities(best.text))]
        chosen.append(best)
    return chosen


def _has_any(numbers: Sequence[Quantity], sentence: EvidenceSentence) -> bool:
    return any(number.is_among(quantities(sentence.text)) for number in numbers)
