"""Embedders for the workers of Ray, which import them by name."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from folio.errors import ModelServerError
from folio.papers.model import Vectors
from tests.helpers.fakes import HashingEmbedder


class DeadlyEmbedder(HashingEmbedder):
    """Kills its worker for a text with the word `once`, the first time, and for one with `always`."""

    def __init__(self, mark: Path) -> None:
        super().__init__()
        self._mark = mark

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        text = " ".join(texts)
        if "always" in text or ("once" in text and not self._mark.exists()):
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed_passages(texts)


class DownEmbedder(HashingEmbedder):
    """Its server is down."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise ModelServerError("Nobody is there.", "Come later.")


def other_model() -> HashingEmbedder:
    return HashingEmbedder(dimension=32)
