"""Questions about the effect of one thing on another, as evidence tables of trials ask them. Pure.

The sentence that reports an effect names the outcome and says how groups differ. How much each sign of that counts was
fitted on 485 labelled prompts of 190 trial reports (LOG.md); it needs no model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from folio.table.paper_words import PaperWords, best, text_of
from folio.text import one_line, tokenize

# A sentence that has, with its neighbours, less of the outcome does not report it; nor one that has little of the whole
# question, unless it has much of the outcome
LEAST_OUTCOME, MUCH_OUTCOME, LEAST_ASKED = 0.3, 0.5, 0.15
MOST_TRIED = 10  # sentences that are looked at
_VERBS = (
    r"(?:increase|decrease|reduce|improve|lower|raise|affect|change|influence|worsen|prevent|shorten|prolong|alter)"
)
_FORMS = tuple(
    re.compile(form, re.I)
    for form in (
        r"(?:what (?:is|was|were|are) )?(?:the )?(?:effects?|impact|influence) of (?P<of>.+?)"
        r"(?: compared (?:with|to) (?P<against>.+?))? on (?P<on>.+?)[?.]*",
        rf"(?:does|do|did) (?P<of>.+?) {_VERBS} (?P<on>.+?)(?: compared (?:with|to) (?P<against>.+?))?[?.]*",
        r"(?:what (?:is|was|were|are) )?(?:the )?(?P<of>)(?:effects?|impact|influence) on (?P<on>.+?)"
        r"(?P<against>)[?.]*",
    )
)
_SIGNIFICANT = re.compile(
    r"\b(?:[Ss]ignifican\w*|[pP]\s?[<=>≤≥]|95\s?% ?CI|confidence interval|(?:odds|hazard) ratio|relative risk|OR|HR|RR"
    r"|mean difference)"
)
_COMPARES = re.compile(
    r"\b(?:differ\w*|higher|lower|greater|less|more|fewer|increas\w*|decreas\w*|reduc\w*|improv\w*|similar\w*|compar\w+"
    r"|than|versus|vs|no effect|between)\b",
    re.I,
)
_GROUPS = re.compile(
    r"\b(?:groups?|arms?|patients|subjects|participants|treatment|placebo|control|intervention)\b", re.I
)
_AIMS = re.compile(
    r"\b(?:aim\w*|objective|hypothes\w*|to (?:determine|evaluate|assess|investigate|compare|examine)|outcome measures?"
    r"|end ?points? (?:was|were|included)|primary outcome (?:was|is)|measured (?:by|with|using)|calculated|defined"
    r"|will be|(?:was|were) assessed)\b",
    re.I,
)
_OTHERS = re.compile(r"\[\d|\(\d{1,2}[,)\-–]|et al|previous|other (?:studies|trials)|studies", re.I)
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one thing, against another, on an outcome, each in the words of a question."""

    of: str
    against: str
    on: str

    @classmethod
    def asked(cls, question: str) -> Effect | None:
        """The effect that a question asks for; None for other questions.

        >>> Effect.asked("What was the effect of aspirin compared with placebo on pain?")
        Effect(of='aspirin', against='placebo', on='pain')
        """
        plain = one_line(question)
        match = next(filter(None, (form.fullmatch(plain) for form in _FORMS)), None)
        return cls(match["of"], match["against"] or "", match["on"]) if match else None

    def places(self, words: PaperWords) -> Iterator[int]:
        """The sentences of a paper that may report it, the likeliest first; none if it does not report it."""
        outcome = tokenize(self.on)
        everything = [*tokenize(self.of), *tokenize(self.against), *outcome]
        ranked = best([self._score(words, place, outcome, everything) for place in range(len(words.spans))])
        for place in ranked[:MOST_TRIED]:
            near = words.coverage(outcome, words.near(place))
            asked = words.coverage(everything, words.tokens[place])
            if near >= LEAST_OUTCOME and (asked >= LEAST_ASKED or near >= MUCH_OUTCOME):
                yield place

    @staticmethod
    def _score(words: PaperWords, place: int, outcome: list[str], everything: list[str]) -> float:
        text, tokens = text_of(words, place), words.tokens[place]
        ordered = tokenize(text)
        pairs = set(pairwise(outcome))
        phrase = (
            len(pairs.intersection(pairwise(ordered))) / len(pairs)
            if pairs
            else float(bool(tokens.intersection(outcome)))
        )
        return (
            1.1 * words.coverage(outcome, tokens)
            + 1.8 * words.coverage(outcome, words.near(place))
            + 3.4 * words.coverage(everything, tokens)
            + 2.7 * phrase
            + 2.9 * bool(_SIGNIFICANT.search(text))
            + 1.1 * bool(_COMPARES.search(text))
            + 1.3 * (len(_DIGIT.findall(text)) > 3)
            + 0.75 * bool(_GROUPS.search(text))
            - 0.6 * bool(_AIMS.search(text))
            - 1.3 * bool(_OTHERS.search(text))
            - 0.7 * math.log(1 + len(ordered))
        )
