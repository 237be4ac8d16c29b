"""An NLI or groundedness cross-encoder as a verifier: it reads premise and statement and weighs the labels.

It reads what a reranker's files hold (cross_encoder.py). What its labels mean is read from their names in config.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from folio.models.cross_encoder import CrossEncoder, encodable
from folio.models.model_files import CONFIG, read_json
from folio.models.pair_models import Pair, PairModel
from folio.protocols import Claim, Entailment, PromptStart
from folio.text import one_line, sentence_spans
from folio.types import Vectors

# Tokens of a premise that a statement must leave room for. A longer statement is not judged.
MIN_PREMISE_TOKENS = 32
_PREMISES = (
    "Sea otters eat urchins, clams and crabs, which they open with stones.",
    "The glacier's ice is 120 metres thick at its tongue and melts by two metres a year.",
    "We thank the reviewers for their comments. Kelp grows in cold water, but not below 20 metres.",
    "",
    "Sea otters float in kelp, and where they are hunted the urchins eat it. " * 60,
)
_STATEMENTS = (
    "Otters eat clams.",
    "Sea otters do not eat urchins.",
    "The ice is 120 metres thick.",
    "Kelp is an alga.",
)
CHECK_PAIRS = tuple((premise, statement) for premise in _PREMISES for statement in _STATEMENTS)

_Meaning = Literal["entails", "contradicts", "neither"]
# What a label's name begins with -> what the label means; the first that fits
_MEANINGS: tuple[tuple[str, _Meaning], ...] = (
    (r"(not|non|un|in|no)[_\W]*(entail|support|consistent|grounded|faithful|factual)", "neither"),
    (r"entail|support|consistent|grounded|faithful|factual", "entails"),
    (r"contradict|refut", "contradicts"),
    (r"neutral|hallucinat", "neither"),
)
# The two labels of a groundedness model that nobody named, such as MiniCheck
_UNNAMED = (["0", "1"], ["LABEL_0", "LABEL_1"])
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Labels:
    """What the numbers that a model gives for a pair mean."""

    count: int
    entails: int
    contradicts: int | None = None  # None for a groundedness model, which cannot tell


def read_labels(names: Sequence[str]) -> Labels:
    """The labels of a model by their names, in any order and case. Raises ValueError if they are not those of NLI.

    With one label, or two without names, the model says whether the statement is supported, the last label being yes.
    """
    if len(names) == 1 or list(names) in _UNNAMED:
        return Labels(len(names), len(names) - 1)
    meanings = [_meaning(name) for name in names]
    if meanings.count("entails") != 1 or meanings.count("contradicts") > 1 or None in meanings:
        raise ValueError(f"its labels are {', '.join(names)}, not entailment, neutral and contradiction")
    contradicts = meanings.index("contradicts") if "contradicts" in meanings else None
    return Labels(len(names), meanings.index("entails"), contradicts)


def _meaning(name: str) -> _Meaning | None:
    return next((meaning for pattern, meaning in _MEANINGS if re.match(pattern, name.strip(), re.I)), None)


class NliVerifier:
    """A verifier that needs no server. The first claim loads the model.

    folder, cache, threads: see CrossEncoder.
    """

    def __init__(self, folder: Path, name: str, cache: Path | None = None, threads: int = 0) -> None:
        self.name = name
        self._encoder = CrossEncoder(
            folder, name, otherwise="VERIFIER=none", check_pairs=CHECK_PAIRS, cache=cache, threads=threads
        )

    def load(self) -> None:
        """Load the model; build and cache its graph if it is not cached. Raises ModelMissing."""
        self._labels()
        self._encoder.load()

    def for_answer(self, start: PromptStart) -> NliVerifier:
        """See protocols.Verifier. It has no prompt."""
        return self

    def entails(self, claims: Sequence[Claim]) -> Iterator[Entailment]:
        """See protocols.Verifier. A premise that is too long is read in parts, and the best part counts.

        A claim without words, or whose statement is too long, is not known. The title is not read: a statement that
        repeats it would seem to follow from any sentence of the paper. Raises ModelMissing.
        """
        labels = self._labels()
        model = self._encoder.load()
        parts = [_pairs(claim, model) for claim in claims]
        logits = model.logits([pair for pairs in parts for pair in pairs])
        for pairs in parts:
            yield _verdict(np.stack([next(logits) for _ in pairs]), labels) if pairs else Entailment(None)

    def _labels(self) -> Labels:
        try:
            names = read_json(self._encoder.folder / CONFIG).get("id2label") or dict(enumerate(_UNNAMED[1]))
            return read_labels([str(names[key]) for key in sorted(names, key=int)])
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise self._encoder.unusable(one_line(str(error))[:160]) from error


def _pairs(claim: Claim, model: PairModel) -> list[Pair]:
    """What a model reads of a claim: each part of the premise with the whole statement."""
    premise, statement = encodable(claim.premise).strip(), encodable(claim.statement).strip()
    room = model.max_tokens - model.special_tokens - model.count_tokens(statement)
    if not (premise and statement) or room < MIN_PREMISE_TOKENS:
        return []
    return [(part, statement) for part in _split(premise, room, model)]


def _split(premise: str, room: int, model: PairModel) -> list[str]:
    """The premise in parts of whole sentences, at most `room` tokens each. Neighbouring parts share a sentence."""
    if model.count_tokens(premise) <= room:
        return [premise]
    spans = [piece for span in sentence_spans(premise) for piece in _pieces(premise, *span, room, model)]
    starts, ends = [start for start, _ in spans], [end for _, end in spans]

    def fits(first: int, last: int) -> bool:
        return model.count_tokens(premise[starts[first] : ends[last]]) <= room

    parts, first, last = [], 0, 0
    while True:
        while last + 1 < len(spans) and fits(first, last + 1):
            last += 1
        parts.append(premise[starts[first] : ends[last]])
        if last + 1 == len(spans):
            return parts
        first, last = (last, last + 1) if fits(last, last + 1) else (last + 1, last + 1)


def _pieces(text: str, start: int, end: int, room: int, model: PairModel) -> list[tuple[int, int]]:
    """The span of a sentence, or those of its words if it is too long, or of parts of words."""
    if end - start < 2 or model.count_tokens(text[start:end]) <= room:
        return [(start, end)]
    spans = [word.span() for word in _WORD.finditer(text, start, end)]
    if len(spans) < 2:
        middle = (start + end) // 2
        spans = [(start, middle), (middle, end)]
    return [piece for span in spans for piece in _pieces(text, *span, room, model)]


def _verdict(logits: Vectors, labels: Labels) -> Entailment:
    """What the labels' logits of each part say, shape (parts, labels).

    A contradiction in one part counts as far as no other part entails the statement.
    """
    if labels.count == 1:
        return Entailment(float((1 / (1 + np.exp(-logits.astype(np.float64)))).max()))
    odds = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    shares = odds / odds.sum(axis=1, keepdims=True)
    entails = float(shares[:, labels.entails].max())
    contradicts = 0.0 if labels.contradicts is None else float(shares[:, labels.contradicts].max())
    return Entailment(entails, min(contradicts, 1 - entails))
