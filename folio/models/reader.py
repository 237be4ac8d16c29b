"""The built-in reader of questions and passages: does the passage answer, and which of its sentences do?

A cross-encoder of MiniLM's size (after Nogueira and Cho 2019, https://arxiv.org/abs/1901.04085) with two linear heads:
one on the state of [CLS] scores the passage, one on the mean state of a sentence scores the sentence.
scripts/train_reader.py makes the files in FOLDER from all-MiniLM-L6-v2, whose word embeddings the reader shares, and
documents the training questions. It runs like minilm.py: in eight bits, each text on one thread.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from folio.models import minilm
from folio.models.minilm import CLS, SEP, Ids, OnnxEncoder, Recent, token_ids
from folio.papers.model import Passage, Reading, Vectors
from folio.system.threads import run_in_background

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FOLDER = Path(__file__).with_name("minilm-reader")
# positions.npy: float32 (WINDOW, 384). types.npy: float32 (2, 384). heads.npy: float32 (2, 385): weights and bias of
# the passage's head, then of the sentences'.
GRAPH, POSITIONS, TYPES, HEADS = "encoder.onnx", "positions.npy", "types.npy", "heads.npy"
SHA256 = {
    GRAPH: "b282e405e2b5aca5a4f1a0eaf0e8f2efdf5d4a30376a9ba0832fe7c9b0820b71",
    POSITIONS: "8eb380d9e1fd52becf7bb870954835a283cb750127de190e3ed0cb507610ad63",
    TYPES: "4325cef35d25818c2a8b5e47c570363ea527148cb4df5f41ca3c2ac42376b574",
    HEADS: "8bd95e7bc4e7b73257a6281f8f00a701343264bff623a28b5df9aa5550450a22",
}

# Tokens of a question, of the heading above a passage, and of the whole input, as in training
MOST_QUESTION, MOST_ABOVE, WINDOW = 48, 28, 320

# Readings to remember: the passages that are reranked are then searched for an answer
REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class _Window:
    """The model's input for the tokens [first, end) of a passage's text, which are its last before [SEP]."""

    passage: int
    ids: Ids
    types: Ids
    first: int
    end: int


class Reader:
    """See protocols.PassageReader. The first question loads the model. Thread-safe. threads: see OnnxEncoder."""

    def __init__(self, folder: Path = FOLDER, threads: int = 0) -> None:
        self._folder = folder
        self._threads = threads
        self._loaded: _Model | None = None
        self._loading = threading.Lock()
        self._recent = Recent[tuple[str, Passage], Reading](REMEMBERED)

    def load_in_background(self) -> None:
        """See protocols.PassageReader."""
        run_in_background(self._model)

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """See protocols.PassageReader. A long passage is read in parts, and answers if one of them does.

        Raises ModelMissing or ModelError if the model cannot be loaded.
        """
        keys = [(question, passage) for passage in passages]
        return self._recent.get(keys, lambda new: self._model().read(question, [passage for _, passage in new]))

    def _model(self) -> _Model:
        with self._loading:
            if self._loaded is None:
                self._loaded = _Model.load(self._folder, self._threads)
            return self._loaded


@dataclass(frozen=True, slots=True)
class _Model:
    """The loaded model. Thread-safe: it never changes."""

    tokenizer: Tokenizer
    encoder: OnnxEncoder
    heads: Vectors

    @classmethod
    def load(cls, folder: Path = FOLDER, threads: int = 0) -> _Model:
        """Raises ModelMissing, ModelError."""
        files = {name: minilm.read_file(folder, name, digest) for name, digest in SHA256.items()}
        positions, types, heads = (np.load(BytesIO(files[name])) for name in (POSITIONS, TYPES, HEADS))
        words = np.load(minilm.FOLDER / minilm.WORDS, mmap_mode="r")
        return cls(minilm.load_tokenizer(), OnnxEncoder(files[GRAPH], words, positions, types, threads), heads)

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        question_ids = token_ids(self.tokenizer, question)[0][:MOST_QUESTION]
        texts = [token_ids(self.tokenizer, passage.text) for passage in passages]
        answers = [-math.inf] * len(passages)
        tokens = [np.zeros(len(ids), dtype=np.float32) for ids, _ in texts]
        windows = [
            window
            for place, (passage, (ids, _)) in enumerate(zip(passages, texts, strict=True))
            for window in self._windows(question_ids, passage.above, ids, place)
        ]
        (of_passage, of_tokens), bias = self.heads[:, :-1], self.heads[:, -1]
        states = self.encoder.map(lambda window: self.encoder.run(window.ids, window.types), windows)
        for window, state in zip(windows, states, strict=True):
            answers[window.passage] = max(answers[window.passage], float(state[0] @ of_passage + bias[0]))
            own = state[len(state) - 1 - (window.end - window.first) : -1]
            tokens[window.passage][window.first : window.end] = own @ of_tokens + bias[1]
        return [
            Reading(answer, tuple(odds.tolist()), tuple(start for start, _ in spans))
            for answer, odds, (_, spans) in zip(answers, tokens, texts, strict=True)
        ]

    def _windows(self, question: Ids, heading: str, ids: Ids, place: int) -> Iterator[_Window]:
        """[CLS] question [SEP] heading [SEP] text [SEP], for each part of the text. The last window is full, too."""
        above = token_ids(self.tokenizer, heading)[0][:MOST_ABOVE]
        room = WINDOW - 4 - len(question) - len(above)
        for begin in range(0, max(1, len(ids)), room):
            first = max(0, min(begin, len(ids) - room))
            text = ids[first : first + room]
            whole = np.concatenate(([CLS], question, [SEP], above, [SEP], text, [SEP])).astype(np.int32)
            types = (np.arange(len(whole)) >= len(question) + 2).astype(np.int32)
            yield _Window(place, whole, types, first, first + len(text))
