"""Fit the weights of folio/table/effects.py: which sentence of a trial report says what an effect was.

    python scripts/train_effects.py evidence/train.json               writes folio/table/effect_weights.json
    python scripts/train_effects.py evidence/train.json --folds 4     only measures, by reports that are left out

The set has the layout of SQuAD: reports with prompts, and the spans that annotators marked (Evidence Inference 2.0,
MIT: https://evidence-inference.ebm-nlp.com). Loss: softmax over the sentences that may answer a prompt, cross-entropy
of those that overlap a marked span. Two minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.answer.excerpts import LEAST_WORDS
from folio.papers.metadata import simple_metadata
from folio.papers.model import PageMap, Paper
from folio.table.effects import WEIGHTS, Effect, Signs
from folio.table.paper_words import PaperWords

STEPS, RATE, DECAY = 300, 0.05, 1e-3
LEAST_SHARED = 20  # characters that a quote and a marked span share, as in benchmarks/tables.py
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The sentences that may answer a prompt: their signs, which of them do, and of which the quote does."""

    report: int
    names: tuple[str, ...]
    signs: Vector  # (sentences, signs)
    answers: npt.NDArray[np.bool_]
    quoted: npt.NDArray[np.bool_]


def prompts(path: Path) -> Iterator[Prompt]:
    """Those of a set that ask for an effect."""
    for report, article in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"]):
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            paper = Paper(str(report), "", simple_metadata(""), PageMap((0,), ("",)), len(text), 1)
            words = PaperWords(paper, text)
            for asked in paragraph["qas"]:
                golds = [(each["answer_start"], each["answer_start"] + len(each["text"])) for each in asked["answers"]]
                if (effect := Effect.asked(asked["question"])) and golds:
                    yield _prompt(report, Signs(effect, words), words, golds)


def _prompt(report: int, signs: Signs, words: PaperWords, golds: Sequence[tuple[int, int]]) -> Prompt:
    places = signs.candidates()
    values = [signs.of(place) for place in places]
    return Prompt(
        report,
        tuple(values[0]) if values else (),
        np.array([list(each.values()) for each in values]),
        np.array([_overlaps(words.spans[place], golds) for place in places], bool),
        np.array([_overlaps(words.brief(place, LEAST_WORDS).span, golds) for place in places], bool),
    )


def _overlaps(span: tuple[int, int], golds: Sequence[tuple[int, int]]) -> bool:
    start, end = span
    return any(min(end, b) - max(start, a) >= min(LEAST_SHARED, b - a, end - start) for a, b in golds)


def fitted(among: Sequence[Prompt]) -> Vector:
    """The weights of the signs."""
    usable = [prompt for prompt in among if prompt.answers.any()]
    signs = np.concatenate([prompt.signs for prompt in usable])
    answers = np.concatenate([prompt.answers for prompt in usable])
    starts = np.cumsum([0, *(len(prompt.answers) for prompt in usable[:-1])])
    group = np.repeat(np.arange(len(usable)), [len(prompt.answers) for prompt in usable])
    mean, spread = signs.mean(0), signs.std(0) + 1e-9
    values = (signs - mean) / spread
    weights, first, second = np.zeros(values.shape[1]), np.zeros(values.shape[1]), np.zeros(values.shape[1])
    for step in range(1, STEPS + 1):  # Adam
        scores = values @ weights
        raised = np.exp(scores - np.maximum.reduceat(scores, starts)[group])
        share = raised / np.add.reduceat(raised, starts)[group]
        right = raised * answers
        right /= np.add.reduceat(right, starts)[group]
        gradient = values.T @ (share - right) / len(usable) + 2 * DECAY * weights
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        weights -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    found: Vector = weights / spread
    return found


def share_right(among: Sequence[Prompt], weights: Vector, most: int = 1) -> float:
    """The share of prompts with an answer among the first quotes."""
    right = [
        prompt.quoted[np.argsort(-(prompt.signs @ weights), kind="stable")[:most]].any()
        for prompt in among
        if len(prompt.signs)
    ]
    return sum(map(bool, right)) / len(among)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fit the weights of the signs of an effect.")
    parser.add_argument("set", type=Path)
    parser.add_argument("--folds", type=int, default=0, help="measure by reports that are left out, and write nothing")
    arguments = parser.parse_args(argv)
    known = list(prompts(arguments.set))
    for fold in range(arguments.folds):
        held = [prompt for prompt in known if prompt.report % arguments.folds == fold]
        weights = fitted([prompt for prompt in known if prompt.report % arguments.folds != fold])
        print(f"fold {fold}: {share_right(held, weights):.3f} first, {share_right(held, weights, 5):.3f} in five")
    if not arguments.folds:
        names = next(prompt.names for prompt in known if prompt.names)
        rounded = {name: round(float(weight), 3) for name, weight in zip(names, fitted(known), strict=True)}
        WEIGHTS.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
