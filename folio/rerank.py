"""Question and candidates -> one score each, by reading them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from folio.errors import ModelMissing
from folio.protocols import TermWeights
from folio.sentences import sentence_spans
from folio.tokens import coverage, tokenize
from folio.types import Hit

# What the built-in reranker weighs. Chosen once, on a set of biomedical papers; see LOG.md.
NEARNESS, BM25, WORDS, PAIRS, SENTENCE = 0.3, 0.3, 0.2, 0.1, 0.1


class BuiltinReranker:
    """Reads question and passage together without a model: which of the question's words stand where.

    The score adds, each from 0 to 1: the cosine and the BM25 score, each divided by the largest among the candidates;
    the share of the question's words that the passage or its paper's title holds, each word counting for what it tells;
    the share of the question's neighbouring words that are neighbours there too; and the share of its words that the
    best single sentence holds.
    """

    name = "built in"
    reads: int | None = None  # every candidate: it costs next to nothing

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """See types.Reranker."""
        words = tokenize(question)
        nearest = max((hit.dense or 0.0 for hit in hits), default=0.0)
        strongest = max((hit.lexical or 0.0 for hit in hits), default=0.0)
        return [
            NEARNESS * _share(max(0.0, hit.dense or 0.0), nearest)
            + BM25 * _share(hit.lexical or 0.0, strongest)
            + _words_held(words, weights, hit)
            for hit in hits
        ]


def _words_held(words: list[str], weights: TermWeights, hit: Hit) -> float:
    passage = tokenize(f"{hit.paper.title}\n{hit.text}")
    pairs = set(pairwise(words))
    sentences = (tokenize(hit.text[start:end]) for start, end in sentence_spans(hit.text))
    return (
        WORDS * coverage(weights, passage)
        + PAIRS * _share(len(pairs.intersection(pairwise(passage))), len(pairs))
        + SENTENCE * max((coverage(weights, sentence) for sentence in sentences), default=0.0)
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


# One of these must be there: without them transformers makes up a tokenizer that knows no word, and says nothing.
TOKENIZERS = ("tokenizer.json", "vocab.txt")


def local_files(name: str, models: Path) -> Path | None:
    """The folder that holds a cross-encoder: named outright, below `models`, or in Hugging Face's cache; else None.

    No network is asked.
    """
    for folder in (Path(name), models / name.rpartition("/")[2]):
        if (folder / "config.json").is_file():
            return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError):
        return None
    return folder if (folder / "config.json").is_file() else None


class CrossEncoderReranker:
    """A cross-encoder by sentence-transformers, from files on this computer."""

    reads: int | None = 20  # each costs a run of the model

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._folder = folder
        self._model: Any = None

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """The model's logits through a sigmoid, so that a score reads as a degree of relevance. Raises ModelMissing."""
        model = self._loaded()
        logits = model.predict([(question, hit.text) for hit in hits], show_progress_bar=False)
        return [1 / (1 + math.exp(-float(logit))) for logit in logits]

    def _loaded(self) -> Any:
        if self._model is None:
            import torch
            from sentence_transformers import CrossEncoder
            from transformers.utils import logging

            logging.disable_progress_bar()
            logging.set_verbosity(logging.CRITICAL)  # what goes wrong is told below, in one sentence
            try:
                if not any((self._folder / name).is_file() for name in TOKENIZERS):
                    raise FileNotFoundError(f"it has none of {', '.join(TOKENIZERS)}")
                self._model = CrossEncoder(
                    str(self._folder), device="cpu", local_files_only=True, activation_fn=torch.nn.Identity()
                )
            except Exception as error:  # each of the packages below has errors of its own for files it cannot read
                reason = " ".join(str(error).split()).rstrip(".")
                raise ModelMissing(
                    f"The cross-encoder in {self._folder} cannot be loaded: {reason[:160]}.",
                    "Fetch it again with `make models`, or set RERANKER=builtin.",
                ) from error
        return self._model
