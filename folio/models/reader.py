"""The built-in reader: a question and a passage read together -> does the passage answer, and which sentences do?

A cross-encoder of MiniLM's size (after Nogueira and Cho 2019, https://arxiv.org/abs/1901.04085) with two linear heads:
one on the state of [CLS] says whether the passage answers, one on the mean state of a sentence whether that sentence
does. scripts/train_reader.py makes the files in FOLDER from the weights of all-MiniLM-L6-v2, whose word embeddings it
shares, and says with which questions. It runs as minilm.py does: in eight bits, a text on one thread.
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

# Tokens of a question, of what stands above a passage, and of all that is read together; as in training.
MOST_QUESTION, MOST_ABOVE, WINDOW = 48, 28, 320

# Readings that are remembered: the passages that are read for their order are those that an answer is looked for in.
REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class _Window:
    """Tokens that are read at once, and which tokens of which passage's text are its last ones but [SEP]."""

    passage: int
    ids: Ids
    types: Ids
    first: int
    end: int


class Reader:
    """Loaded with the first question; threads may share it. folder: its files. threads: see OnnxEncoder."""

    def __init__(self, folder: Path = FOLDER, threads: int = 0) -> None:
        self._folder = folder
        self._threads = threads
        self._loaded: _Model | None = None
        self._loading = threading.Lock()
        self._recent = Recent[tuple[str, Passage], Reading](REMEMBERED)

    def load_in_background(self) -> None:
        """Start loading in a thread; the first call waits for it and raises its errors."""
        run_in_background(self._model)

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """See protocols.PassageReader. A passage that is too long is read in parts, and answers if one of them does.

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
    """The loaded model. It never changes, so any number of threads may share it."""

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
        """What it makes of each passage."""
        asked = token_ids(self.tokenizer, question)[0][:MOST_QUESTION]
        texts = [token_ids(self.tokenizer, passage.text) for passage in passages]
        answers = [-math.inf] * len(passages)
        tokens = [np.zeros(len(ids), dtype=np.float32) for ids, _ in texts]
        windows = [
            window
            for place, (passage, (ids, _)) in enumerate(zip(passages, texts, strict=True))
            for window in self._windows(asked, passage.above, ids, place)
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

    def _windows(self, asked: Ids, title: str, ids: Ids, place: int) -> Iterator[_Window]:
        """[CLS] question [SEP] title [SEP] text [SEP], as often as the text needs; the last is full, too."""
        above = token_ids(self.tokenizer, title)[0][:MOST_ABOVE]
        room = WINDOW - 4 - len(asked) - len(above)
        for begin in range(0, max(1, len(ids)), room):
            first = max(0, min(begin, len(ids) - room))
            text = ids[first : first + room]
            whole = np.concatenate(([CLS], asked, [SEP], above, [SEP], text, [SEP])).astype(np.int32)
            types = (np.arange(len(whole)) >= len(asked) + 2).astype(np.int32)
            yield _Window(place, whole, types, first, first + len(text))
