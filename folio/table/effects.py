"""Questions about the effect of one thing on another, as evidence tables of trials ask them. Pure.

The sentence that reports an effect names the outcome, by its name or an abbreviation of it, and says how groups differ.
How much each sign of that counts is in effect_weights.json, fitted on labelled prompts by scripts/train_effects.py.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

from folio.table.abbreviations import abbreviations, with_abbreviations
from folio.table.paper_words import PaperWords, best, text_of
from folio.text import one_line, tokenize

# A paper does not report an outcome if no sentence has so much of it, with its neighbours, and so much of the whole
# question, unless it has much of the outcome
LEAST_OUTCOME, MUCH_OUTCOME, LEAST_ASKED = 0.3, 0.5, 0.15
MOST_READ, MOST_TRIED = 40, 10  # sentences whose signs are read, and that are offered
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
WEIGHTS = Path(__file__).with_name("effect_weights.json")
_SAYS = {
    name: re.compile(pattern)
    for name, pattern in (
        (
            "significant",
            r"\b(?:[Ss]ignifican\w*|[pP]\s?[<=>≤≥]|95\s?% ?CI|confidence interval|(?:odds|hazard) ratio|relative risk"
            r"|OR|HR|RR|mean difference)",
        ),
        ("p value", r"[pP](?:[- ]?values?)?\s?[<=>≤≥]"),
        ("interval", r"\bCI\b|confidence interval"),
        (
            "compares",
            r"(?i)\b(?:differ\w*|higher|lower|greater|less|more|fewer|increas\w*|decreas\w*|reduc\w*|improv\w*|similar\w*"
            r"|compar\w+|than|versus|vs|no effect|between)\b",
        ),
        ("denies", r"(?i)\b(?:no|not|nor|without|neither)\b"),
        ("groups", r"(?i)\b(?:groups?|arms?|patients|subjects|participants|treatment|placebo|control|intervention)\b"),
        (
            "aims",
            r"(?i)\b(?:aim\w*|objective|hypothes\w*|to (?:determine|evaluate|assess|investigate|compare|examine)"
            r"|outcome measures?|end ?points? (?:was|were|included)|primary outcome (?:was|is)"
            r"|measured (?:by|with|using)|calculated|defined|will be|(?:was|were) assessed)\b",
        ),
        ("others", r"(?i)\[\d|\(\d{1,2}[,)\-–]|et al|previous|other (?:studies|trials)|studies"),
        ("percent", r"%|±"),
        ("past", r"\b(?:was|were|had|showed|did)\b"),
        ("may", r"\b(?:may|might|could|should|can|will|would|suggest\w*)\b"),
        ("baseline", r"(?i)\bbaseline\b"),
        ("many digits", r"(?s)(?:\d.*?){4}"),
    )
}


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
        weights, signs = _weights(), Signs(self, words)
        places = signs.candidates()
        scores = [sum(weights[name] * value for name, value in signs.of(place).items()) for place in places]
        yield from (places[at] for at in best(scores)[:MOST_TRIED])


@cache
def _weights() -> dict[str, float]:
    weights: dict[str, float] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return weights


class Signs:
    """What tells whether a sentence of a paper reports an effect."""

    def __init__(self, effect: Effect, words: PaperWords) -> None:
        self._words = words
        self._of, self._against, self._on = map(tokenize, (effect.of, effect.against, effect.on))
        self._everything = [*self._of, *self._against, *self._on]
        self._rarest = max(self._on, key=words.rarity, default="")
        self._pairs = frozenset(pairwise(self._on))
        known = abbreviations(words.text)
        self._tokens = [with_abbreviations(tokens, known) for tokens in words.tokens]

    def candidates(self) -> list[int]:
        """The sentences that have most of the question; [] if none of the paper reports on the outcome."""
        near = [self._share(self._on, self._near(place)) for place in range(len(self._tokens))]
        asked = [self._share(self._everything, tokens) for tokens in self._tokens]
        if not any(
            outcome >= LEAST_OUTCOME and (outcome >= MUCH_OUTCOME or whole >= LEAST_ASKED)
            for outcome, whole in zip(near, asked, strict=True)
        ):
            return []
        told = [bool(_SAYS["significant"].search(text_of(self._words, place))) for place in range(len(near))]
        scores = [2 * whole + outcome + says / 2 for outcome, whole, says in zip(near, asked, told, strict=True)]
        return best(scores)[:MOST_READ]

    def of(self, place: int) -> dict[str, float]:
        """The value of each sign of a sentence."""
        words, tokens = self._words, self._tokens[place]
        text, near = text_of(words, place), self._near(place)
        ordered = tokenize(text)
        where = min(10, 1 + 10 * words.spans[place][0] // len(words.text))
        phrase = (
            len(self._pairs.intersection(pairwise(ordered))) / len(self._pairs)
            if self._pairs
            else float(bool(tokens.intersection(self._on)))
        )
        return {
            "outcome": self._share(self._on, tokens),
            "outcome near": self._share(self._on, near),
            "outcome before": self._share(self._on, self._tokens[place - 1]) if place else 0.0,
            "outcome after": self._share(self._on, self._tokens[place + 1]) if place + 1 < len(self._tokens) else 0.0,
            "rarest word": float(self._rarest in tokens),
            "outcome in paragraph": self._share(self._on, self._paragraphs[place]),
            "whole outcome": float(tokens.issuperset(self._on)),
            "phrase": phrase,
            "asked": self._share(self._everything, tokens),
            "of": self._share(self._of, tokens),
            "of near": self._share(self._of, near),
            "against": self._share(self._against, tokens),
            "share": len(tokens.intersection(self._everything)) / max(1, len(tokens)),
            "length": math.log(1 + len(ordered)),
            # Sections differ in what they report, and their headings are not always known: tenths of the text
            **{f"tenth {tenth}": float(tenth == where) for tenth in range(2, 11)},
            **{name: float(bool(says.search(text))) for name, says in _SAYS.items()},
        }

    @property
    def _share(self) -> Callable[..., float]:
        return self._words.coverage

    def _near(self, place: int) -> frozenset[str]:
        return frozenset().union(*self._tokens[max(0, place - 1) : place + 2])

    @cached_property
    def _paragraphs(self) -> list[frozenset[str]]:
        """The tokens of each sentence's paragraph."""
        words = self._words
        starts = [0]
        for place, ((_, end), (start, _)) in enumerate(pairwise(words.spans), 1):
            if "\n\n" in words.text[end:start]:
                starts.append(place)
        bounds = [*starts, len(words.spans)]
        each = [frozenset().union(*self._tokens[first:end]) for first, end in pairwise(bounds)]
        return [each[bisect_right(starts, place) - 1] for place in range(len(words.spans))]
