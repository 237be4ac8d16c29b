"""Question and candidates -> one score each, by reading them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from folio.errors import ModelMissing
from folio.types import Hit, TermWeights


class BuiltinReranker:
    """Reranks without a model."""

    name = "built in"

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        return [hit.score for hit in hits]


class CrossEncoderReranker:
    """A cross-encoder by sentence-transformers, from files on this computer."""

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

            try:
                self._model = CrossEncoder(
                    str(self._folder), device="cpu", local_files_only=True, activation_fn=torch.nn.Identity()
                )
            except (OSError, ValueError, KeyError) as error:
                raise ModelMissing(
                    f"The cross-encoder in {self._folder} cannot be loaded: {str(error).splitlines()[0]}.",
                    "Fetch it again with `make models`, or set RERANKER=builtin.",
                ) from error
        return self._model
