"""The built-in reader: a question and a passage read together -> does the passage answer, and which sentences do.

A cross-encoder of MiniLM's size with two heads (after Devlin et al. 2019, https://arxiv.org/abs/1810.04805): one on the
state of [CLS] says whether the passage answers, one on the mean state of a sentence whether that sentence does.
scripts/train_reader.py made the files in FOLDER from the weights of all-MiniLM-L6-v2, whose word embeddings it shares,
and says with which questions. It runs as minilm.py does: quantised to eight bits, one text on one thread.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from folio.background import run_in_background
from folio.models import minilm
from folio.models.minilm import CLS, SEP
from folio.models.onnx_session import Ids, OnnxEncoder
from folio.types import Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FOLDER = Path(__file__).with_name("reader")
# positions.npy: float32 (WINDOW, 384). types.npy: float32 (2, 384). heads.npy: float32 (2, 385): weights and bias of
# the passage's head, then of the sentences'.
GRAPH, POSITIONS, TYPES, HEADS = "encoder.onnx", "positions.npy", "types.npy", "heads.npy"
SHA256: dict[str, str] = {}

# Tokens of a question, of what stands above a passage, and of all that is read together; as in training.
MOST_QUESTION, MOST_HEAD, WINDOW = 48, 28, 320
REMEMBERED = 64  # readings that are kept: a reranked passage is evidence soon after

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Passage:
    """What is read for a question: a text, what stands above it, and the spans of its sentences in the text."""

    head: str  # the paper's title and the section
    text: str
    sentences: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """Log-odds that a passage answers the question, and that each of its sentences does."""

    answers: float
    sentences: tuple[float, ...]

    @property
    def chance(self) -> float:
        """That the passage answers, 0 to 1."""
        return 1 / (1 + math.exp(-self.answers))


@dataclass(frozen=True, slots=True)
class _Window:
    """A part of a passage that is read at once: its tokens and their types, and the tokens of each sentence."""

    passage: int
    ids: Ids
    types: Ids
    sentences: dict[int, Span]  # by their place in the passage


class Reader:
    """Loaded with the first question; threads may share it. folder: its files. threads: see OnnxEncoder."""

    name = "reader (built in)"

    def __init__(self, folder: Path = FOLDER, threads: int = 0) -> None:
        self._folder = folder
        self._threads = threads
        self._loaded: _Model | None = None
        self._loading = threading.Lock()
        self._recent: OrderedDict[tuple[str, Passage], Reading] = OrderedDict()  # the most recently used last
        self._lock = threading.Lock()

    def load_in_background(self) -> None:
        """Start loading in a thread; the first call waits for it and raises its errors."""
        run_in_background(self._model)

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """A reading of each passage. One that is too long is read in parts, and answers if one of them does.

        Raises ModelMissing or ModelError if the model cannot be loaded.
        """
        with self._lock:
            known = {passage: self._recent.get((question, passage)) for passage in passages}
        new = [passage for passage, reading in known.items() if reading is None]
        if new:
            known |= zip(new, self._read(question, new), strict=True)
        with self._lock:
            for passage, reading in known.items():
                assert reading is not None
                self._recent[question, passage] = reading
                self._recent.move_to_end((question, passage))
            while len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)
        return [reading for passage in passages if (reading := known[passage]) is not None]

    def _read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        model = self._model()
        encoder, heads = model.encoder, model.heads
        windows = [
            window for place, passage in enumerate(passages) for window in model.windows(question, passage, place)
        ]
        states = encoder.map(lambda window: encoder.run(window.ids, window.types), windows)
        answers = [-math.inf] * len(passages)
        sentences = [[-math.inf] * len(passage.sentences) for passage in passages]
        for window, state in zip(windows, states, strict=True):
            answers[window.passage] = max(answers[window.passage], float(state[0] @ heads[0, :-1] + heads[0, -1]))
            for place, (first, last) in window.sentences.items():
                mean = state[first:last].mean(axis=0)
                sentences[window.passage][place] = float(mean @ heads[1, :-1] + heads[1, -1])
        return [Reading(answer, tuple(own)) for answer, own in zip(answers, sentences, strict=True)]

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
    def load(cls, folder: Path, threads: int) -> _Model:
        """Raises ModelMissing, ModelError."""
        files = {name: minilm.read_file(folder, name, digest) for name, digest in SHA256.items()}
        positions, types, heads = (np.load(BytesIO(files[name])) for name in (POSITIONS, TYPES, HEADS))
        words = np.load(minilm.FOLDER / minilm.WORDS, mmap_mode="r")
        return cls(minilm.load_tokenizer(), OnnxEncoder(files[GRAPH], words, positions, types, threads), heads)

    def windows(self, question: str, passage: Passage, place: int) -> Iterator[_Window]:
        """A passage in as many parts as it needs, of whole sentences; a sentence that is too long for one is cut."""
        asked = minilm.token_ids(self.tokenizer, question)[0][:MOST_QUESTION]
        above = minilm.token_ids(self.tokenizer, passage.head)[0][:MOST_HEAD]
        ids, spans = minilm.token_ids(self.tokenizer, passage.text)
        room = WINDOW - 4 - len(asked) - len(above)
        starts = np.array([start for start, _ in spans], dtype=np.int64)
        tokens = [tuple(np.searchsorted(starts, sentence).tolist()) for sentence in passage.sentences]
        begin, inside = 0, dict[int, Span]()
        for at, (first, last) in enumerate(tokens):
            if inside and last - begin > room:
                yield _window(asked, above, ids[begin:first][:room], begin, inside, place)
                begin, inside = first, {}
            inside[at] = (first, min(last, begin + room))
        yield _window(asked, above, ids[begin:][:room], begin, inside, place)


def _window(asked: Ids, above: Ids, ids: Ids, begin: int, inside: dict[int, Span], place: int) -> _Window:
    whole = np.concatenate(([CLS], asked, [SEP], above, [SEP], ids, [SEP])).astype(np.int32)
    types = (np.arange(len(whole)) >= len(asked) + 2).astype(np.int32)
    shift = len(asked) + len(above) + 3 - begin
    moved = {at: (first + shift, last + shift) for at, (first, last) in inside.items() if first < last}
    return _Window(place, whole, types, moved)
