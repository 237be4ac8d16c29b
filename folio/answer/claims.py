"""Where papers agree and where they differ: groups of their sentences, each checked against the claim they stand for.

A model names the sentences (NamedClaim); without one, rules find two papers that deny each other or give another number
for one thing. What is shown are the papers' sentences alone, never the model's claim. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from folio.answer_types import Evidence, Quote
from folio.deep_types import MOST_RELEVANCE, RELEVANT, NamedClaim
from folio.evidence_profile import Agreement, Difference
from folio.grounding.attribution import of_sentences
from folio.grounding.conflicts import LEAST_SHARED, conflict
from folio.grounding.grounder import LEAST_NAMED
from folio.grounding.names import key
from folio.grounding.sentences import EvidenceSentence, number_sentences, quote
from folio.grounding.veto import faults
from folio.grounding.words import content_words, share, tokens_of
from folio.text import fold
from folio.types import Paper

MOST_GROUPS = 4  # of agreements, and of differences
MOST_QUOTES = 3  # of papers that say the same
# A sentence with fewer words says too little, one with more is mostly a table or several sentences
LEAST_WORDS, MOST_WORDS = 6, 80


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found."""

    agreements: tuple[Agreement, ...] = ()
    differences: tuple[Difference, ...] = ()


def compared(evidence: Sequence[Evidence], named: Iterable[NamedClaim]) -> Comparison:
    """What of a model's claims holds, then the differences that rules find among the sentences that are left.

    Only evidence that is relevant counts. No sentence stands in two groups.
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
        same = [one for one in same if _holds(claim.claim, one, every, known)]
        other = [one for one in other if _says_otherwise(claim.claim, one, every, known)]
        same = _one_of_each_work(same)
        other = [one for one in _one_of_each_work(other) if _work(one) not in map(_work, same)]
        if same and other:
            differences.append(Difference(_quotes(same), _quotes(other)))
        elif len(same) > 1 and not any(conflict(one.text, two.text) for one, two in combinations(same, 2)):
            agreements.append(Agreement(_quotes(same)))
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
    """What counts as one paper: two files with the same title are versions of one work."""
    paper: Paper = sentence.evidence.paper
    return fold(paper.title) or paper.id


def _one_of_each_work(sentences: Iterable[EvidenceSentence]) -> list[EvidenceSentence]:
    """The first sentence of each work, without those that repeat another one word for word."""
    works: dict[str, EvidenceSentence] = {}
    for sentence in sentences:
        if fold(sentence.text) not in {fold(other.text) for other in works.values()}:
            works.setdefault(_work(sentence), sentence)
    return list(works.values())[:MOST_QUOTES]


def _quotes(sentences: Iterable[EvidenceSentence]) -> tuple[Quote, ...]:
    return tuple(map(quote, sentences))


def _holds(claim: str, sentence: EvidenceSentence, every: Sequence[EvidenceSentence], known: str) -> bool:
    """Whether a sentence holds a claim up by itself, as a sentence of an answer must be held up."""
    source = of_sentences(claim, [sentence], every)
    return _is_near(claim, sentence) and source.coverage >= LEAST_NAMED and not any(faults(claim, source, known))


def _says_otherwise(claim: str, sentence: EvidenceSentence, every: Sequence[EvidenceSentence], known: str) -> bool:
    """Whether a sentence is about what the claim is about, and does not hold it up."""
    return _is_near(claim, sentence) and not _holds(claim, sentence, every, known)


def _is_near(claim: str, sentence: EvidenceSentence) -> bool:
    return share(content_words(claim), tokens_of(sentence.text)) >= LEAST_SHARED


def _by_rules(sentences: Sequence[EvidenceSentence]) -> Iterator[Difference]:
    used: set[int] = set()
    for one, two in combinations(sentences, 2):
        apart = _work(one) != _work(two) and one.evidence.paper.id != two.evidence.paper.id
        if apart and not used & {one.number, two.number} and conflict(one.text, two.text):
            used |= {one.number, two.number}
            yield Difference((quote(one),), (quote(two),))
