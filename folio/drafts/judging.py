"""A claim and the sentences of papers -> a judgement: quoted, supported, contradicted, number differs, not found. Pure.

A wrong claim must not come out as supported, so a claim is supported only if one place of a paper has all that it says,
and nothing there says it less strongly, of something else, or the other way round. Whatever is in doubt is not found.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

from folio.answer_types import Evidence
from folio.drafts.masking import masked
from folio.drafts.roles import in_place_of, is_scattered, other_owner, other_roles
from folio.drafts.strength import OWN, Told, is_subject, overstated
from folio.drafts.wording import Word, align, are_opposite, has_word, says_nothing, words_of_claim
from folio.grounding.conflicts import are_apart
from folio.grounding.grounder import Attribution, Fault, faults, is_verbatim
from folio.grounding.names import has_name, key
from folio.grounding.quantities import quantities
from folio.grounding.sentences import EvidenceSentence, is_row, neighbours, number_sentences
from folio.papers.model import Paper
from folio.papers.sections import overlap
from folio.text import plain_words, typed

Verdict = Literal["quoted", "supported", "contradicted", "number differs", "not found"]
MOST_PLACES = 40  # sentences that are looked at closely for a claim
LEAST_WORDS = 2  # that say something, in a claim that can be checked
LEAST_LIKE = 0.5  # the share of a claim's words in a place that is worth showing for it
MOST_SAID_OTHERWISE = 0.4  # the share of a claim's words that its source may lack, all of which say nothing
FIRST_WORDS = 4  # of a claim: its subject, which a place may have in the title of its paper alone
_CONTRADICTS = frozenset({"negation", "opposite", "comparison", "roles"})
_DIFFERS = frozenset({"number", "count", "bound", "cell", "owner"})
_LEANS = re.compile(
    r"\W*(?:it|its|they|their|this|that|these|those|such|he|his|she|her|both|here|there|thus|hence)\b", re.I
)
_PRONOUN = re.compile(r"\b(?:it|its|they|their|this|these)\b", re.I)
_OTHER_WORDS = frozenset({"wording", "scattered"})
_BREAK = re.compile(r"\n\s*\n")
_ET_AL = re.compile(r"\bet\.? al\b\.?", re.I)
_ACRONYM = re.compile(r"\b[A-Z]{2,}(?=s?\b)")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w-]+")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a place of a paper says of a claim."""

    verdict: Verdict
    sentences: tuple[EvidenceSentence, ...] = ()  # the place, of Judge.evidence; () if nothing is near
    fault: Fault | None = None  # why it is not supported
    coverage: float = 0.0  # the share of the claim's words that are there, 0 to 1
    says_otherwise: bool = False  # nothing speaks against it but that the place uses other words


@dataclass(frozen=True)
class _Place:
    """One sentence, or two that follow each other, compared with a claim."""

    sentences: tuple[EvidenceSentence, ...]  # with cited works hidden
    missing: tuple[Word, ...]
    coverage: float

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def paper(self) -> Paper:
        return self.sentences[0].evidence.paper


@dataclass
class Judge:
    """Judges claims by the same evidence. Sections that are no evidence, such as references, count for nothing."""

    evidence: Sequence[Evidence]
    sentences: tuple[EvidenceSentence, ...] = field(init=False)  # with cited works hidden
    _stems: list[frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        hidden = [replace(piece, text=masked(piece.text)) for piece in self.evidence]
        self.sentences = number_sentences(hidden)
        self._stems = [_stems(sentence.text) for sentence in self.sentences]

    def judge(self, claim: str) -> Judgement:
        """The best that the evidence says of a claim; "not found" where nothing is sure.

        claim: one sentence without the markers of what it cites.
        """
        claim = _ET_AL.sub(" ", claim).strip()
        words = _checked_words(claim)
        if sum(not says_nothing(word.stem) for word in words) < LEAST_WORDS:
            return Judgement("not found", fault=Fault("too short", "it says too little to be checked"))
        judged = [self._judged(claim, place) for place in self._places(claim, words)]
        best = max(judged, key=lambda each: (ORDER[each.verdict], each.coverage, -len(each.sentences)), default=None)
        if best is None or (best.verdict == "not found" and best.coverage < LEAST_LIKE):
            return Judgement("not found", fault=Fault("not found", "nothing there is near"))
        return replace(best, sentences=tuple(map(self.as_printed, best.sentences)))

    def judge_at(self, claim: str, sentence: EvidenceSentence) -> Judgement:
        """What one of the sentences says of a claim, however little they have in common."""
        words = _checked_words(claim)
        judged = self._judged(claim, self._place(claim, words, (self.sentences[sentence.number - 1],)))
        return replace(judged, sentences=(self.as_printed(sentence),))

    def as_printed(self, sentence: EvidenceSentence) -> EvidenceSentence:
        """A sentence with the cited works that it names."""
        return replace(sentence, evidence=self.evidence[sentence.evidence.number - 1])

    def printed(self) -> list[EvidenceSentence]:
        """All sentences, as they are printed."""
        return list(map(self.as_printed, self.sentences))

    def around(self, sentences: Sequence[EvidenceSentence]) -> str:
        """The text of these sentences and of their neighbours, as it is printed."""
        hidden = [self.sentences[sentence.number - 1] for sentence in sentences]
        return "\n".join(self.as_printed(sentence).text for sentence in neighbours(hidden, self.sentences))

    # Places

    def _places(self, claim: str, words: Sequence[Word]) -> Iterator[_Place]:
        """The places with most of a claim's words, each sentence alone and with a neighbour."""
        forms = {word.stem: self._forms(word.stem) for word in words}
        counts = {stem: sum(not has.isdisjoint(form) for has in self._stems) for stem, form in forms.items()}
        rarity = {stem: math.log(1 + len(self._stems) / (1 + count)) for stem, count in counts.items()}
        scores = [sum(rarity[stem] for stem, form in forms.items() if not has.isdisjoint(form)) for has in self._stems]
        usable = [n for n, score in enumerate(scores) if score and self._is_evidence(self.sentences[n])]
        best = sorted(usable, key=lambda n: (-scores[n], n))[:MOST_PLACES]
        spans = dict.fromkeys(span for n in best for span in ((n, n), (n - 1, n), (n, n + 1)))
        for first, last in spans:
            if first >= 0 and last < len(self.sentences) and (first == last or self._go_together(first, last)):
                yield self._place(claim, words, self.sentences[first : last + 1])

    def _forms(self, stem: str) -> frozenset[str]:
        return frozenset(other for other in self._vocabulary if has_word(stem, frozenset((other,))))

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset().union(*self._stems)

    def _is_evidence(self, sentence: EvidenceSentence) -> bool:
        piece = sentence.evidence
        spans = piece.paper.sections.spans_of_kinds()
        return not overlap(spans, piece.start + sentence.start, piece.start + sentence.end)

    def _go_together(self, first: int, last: int) -> bool:
        """Whether the second of two sentences goes on with what the first speaks of."""
        one, other = self.sentences[first], self.sentences[last]
        if one.evidence is not other.evidence or is_row(one.text) or is_row(other.text):
            return False
        between = one.evidence.text[one.end : other.start]
        return not _BREAK.search(between) and bool(_LEANS.match(other.text)) and self._is_evidence(one)

    def _place(self, claim: str, words: Sequence[Word], sentences: tuple[EvidenceSentence, ...]) -> _Place:
        text = " ".join(sentence.text for sentence in sentences)
        spelled = _spelled_out(claim, text)
        source = [word for each in sentences for word in words_of_claim(each.text)]
        aligned = align(words, source)
        subject = self._subject(claim, text, sentences[0].evidence.paper, words, aligned, source)
        missing = [
            word
            for place, word in enumerate(words)
            if aligned[place] is None
            and word.stem not in spelled
            and place not in subject
            and not (word.written.isupper() and has_name(word.written, key(text)))
        ]
        if len(sentences) > 1 and _is_mixed(aligned, len(words_of_claim(sentences[0].text))):
            missing = list(words)
        return _Place(sentences, tuple(missing), 1 - len(missing) / len(words) if words else 0.0)

    def _subject(
        self,
        claim: str,
        text: str,
        paper: Paper,
        words: Sequence[Word],
        aligned: Sequence[int | None],
        source: Sequence[Word],
    ) -> set[int]:
        """The places of the first words of a claim that its source need not repeat: its paper's title has them.

        Unless the source begins with a subject of its own, or names something that the claim does not. A name of the
        title may also come a little later.
        """
        about, titled = _about(paper), _stems(paper.title)
        known = frozenset(word.stem for word in about)
        first = min((place for place in aligned if place is not None), default=0)
        before = typed(text)[: source[first].start] if source else ""
        is_own = bool(OWN.search(text) or _PRONOUN.search(before))
        if not is_own and self._speaks_of_others(claim, text, paper):
            return set()
        if not is_own and not all(has_word(word.stem, titled) or says_nothing(word.stem) for word in source[:first]):
            return set()
        found, at_start = set[int](), True
        for place, word in enumerate(words[:FIRST_WORDS]):
            if aligned[place] is None and has_word(word.stem, known) and not is_subject(word.written):
                if at_start or (word.is_name and word.stem in titled):
                    found.add(place)
            elif aligned[place] is None or not has_word(word.stem, known):
                at_start = False
        return found

    def _speaks_of_others(self, claim: str, text: str, paper: Paper) -> bool:
        """Whether a place names things that neither the claim nor the title of its paper does."""
        named = {word for word in re.findall(r"\b[A-Z][\w-]+", text) if word in self._names_of(paper)}
        return bool(named - set(re.findall(r"[\w-]+", f"{claim} {paper.title}")))

    def _names_of(self, paper: Paper) -> frozenset[str]:
        """The words that are capitalised within sentences of a paper."""
        if paper.id not in self._names:
            texts = [piece.text for piece in self.evidence if piece.paper.id == paper.id]
            self._names[paper.id] = frozenset(_NAME.findall("\n".join(texts)))
        return self._names[paper.id]

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        return {}

    # Judging a place

    def _judged(self, claim: str, place: _Place) -> Judgement:
        found = list(self._faults(claim, place))
        rules = {fault.rule for fault in found}
        is_all = is_verbatim(claim, place.text)
        if len(place.sentences) == 1 and is_verbatim(place.text, claim) and (is_all or not found):
            return Judgement("quoted", place.sentences, coverage=1.0)
        if not found:
            return Judgement("supported", place.sentences, coverage=place.coverage)
        if rules <= _CONTRADICTS:
            return Judgement("contradicted", place.sentences, found[0], place.coverage)
        differing = next((fault for fault in found if fault.rule in _DIFFERS), None)
        is_same = rules <= {*_DIFFERS, "scattered"}
        if differing and (is_same or (rules <= {*_DIFFERS, *_OTHER_WORDS} and _is_one_number_off(claim, place))):
            return Judgement("number differs", place.sentences, differing, place.coverage)
        return Judgement("not found", place.sentences, found[0], place.coverage, rules <= _OTHER_WORDS)

    def _faults(self, claim: str, place: _Place) -> Iterator[Fault]:
        """What speaks against a place, the gravest first."""
        text, said = place.text, [word for word in place.missing if not says_nothing(word.stem)]
        opposed = [word for word in place.missing if any(are_opposite(word.stem, other) for other in _stems(text))]
        for word in said:
            if word not in opposed:
                yield Fault("wording", f"the place that is nearest does not say “{word.written}”")
        if place.coverage < 1 - MOST_SAID_OTHERWISE:
            yield Fault("wording", "no place says this in similar words")
        title = f"{place.paper.title}\n{' '.join(place.paper.authors)}"
        context = key(f"{text}\n{title}")
        for fault in faults(claim, Attribution(place.sentences, text, "", place.coverage), context):
            yield self._number_fault(claim, text, fault) if fault.rule == "number" else fault
        for word in opposed:
            yield Fault("opposite", f"the paper says the opposite of “{word.written}”")
        if owner := other_owner(claim, text):
            instead = f", and {owner[1].written} for this" if owner[1] else ""
            reason = f"the paper gives {owner[0].written} for something else{instead}"
            yield Fault("owner" if owner[1] else "no number", reason)
        yield from other_roles(claim, text)
        yield from overstated(Told(claim, text))
        if is_scattered(claim, text):
            yield Fault("scattered", "its words stand far apart in the paper")

    def _number_fault(self, claim: str, text: str, fault: Fault) -> Fault:
        """A number that its source does not have: what it has in its place, or that it has no such number."""
        given = quantities(text)
        absent = [n for n in quantities(claim) if not n.is_among(given)]
        for number in absent:
            if rival := in_place_of(number, claim, text):
                shown = [n.written if rival.unit == number.unit else n.with_unit for n in (rival, number)]
                return Fault("number", f"the paper has {shown[0]}, not {shown[1]}")
        return Fault("no number", fault.reason.replace("in it", "in the place that is nearest"))


def _is_one_number_off(claim: str, place: _Place) -> bool:
    """Whether a place in other words has all numbers of a claim but one, of which it has another of the same thing."""
    given, numbers = quantities(place.text), quantities(claim)
    absent = [number for number in numbers if not number.is_among(given)]
    is_like = place.coverage >= LEAST_LIKE and len(numbers) > 1 and len(absent) == 1
    return is_like and any(are_apart(absent[0], other) for other in given)


ORDER: dict[Verdict, int] = {"quoted": 4, "supported": 3, "number differs": 2, "contradicted": 2, "not found": 0}


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in words_of_claim(text))


def _checked_words(claim: str) -> tuple[Word, ...]:
    """The words of a claim without those of its numbers and their units, which are compared as numbers."""
    units = {word for number in quantities(claim) for word in plain_words(number.with_unit)}
    return tuple(word for word in words_of_claim(claim) if word.written not in units)


def _is_mixed(aligned: Sequence[int | None], border: int) -> bool:
    """Whether a claim takes words of two sentences otherwise than first of the first, then of the second.

    aligned: see `align`. border: the number of words of the first sentence.
    """
    in_second = [place >= border for place in aligned if place is not None]
    return any(one and not other for one, other in pairwise(in_second))


def _about(paper: Paper) -> tuple[Word, ...]:
    """What a paper is about: the words of its title, and its authors."""
    return words_of_claim(f"{paper.title}; {' '.join(paper.authors)}")


def _spelled_out(claim: str, text: str) -> frozenset[str]:
    """The words of a claim that spell out an acronym of the text."""
    words, spelled, there = words_of_claim(claim), set[str](), _stems(text)
    for acronym in {match.casefold() for match in _ACRONYM.findall(text)}:
        for place in range(len(words) - len(acronym) + 1):
            run = words[place : place + len(acronym)]
            initials = "".join(word.written[0] for word in run)
            if initials == acronym and there.isdisjoint(word.stem for word in run):
                spelled.update(word.stem for word in run)
    return frozenset(spelled)
