"""A cross-encoder from files on this computer: question and passage read together, by a model trained for it.

A BERT-type model runs on onnxruntime, as a graph that is built once and cached (bert_onnx.py, onnx_cache.py). The new
graph is compared with what sentence-transformers computes from the same files. A model whose graph disagrees, or of
another type, is run by sentence-transformers.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from folio.errors import ModelMissing
from folio.models.bert_onnx import TABLES, VERSION, Sizes, graph
from folio.models.onnx_cache import OnnxCache
from folio.models.onnx_session import Ids, OnnxEncoder, read_tensors
from folio.protocols import TermWeights
from folio.types import Hit, Vectors

Pair = tuple[str, str]  # a question and a passage
Scorer = Callable[[Sequence[Pair]], Vectors]  # -> a logit for each

CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)
# One of these must be there: without them transformers makes up a tokenizer that knows no word, and says nothing.
TOKENIZERS = (TOKENIZER, "vocab.txt")

# What a new graph is tried on: passages that answer, that do not, that are empty and that are too long.
_QUESTIONS = ("What do sea otters eat?", "How thick is the ice of a glacier?")
_PASSAGES = (
    "Sea otters eat urchins, clams and crabs, which they open with stones.",
    "The glacier's ice is 120 metres thick at its tongue and melts by two metres a year.",
    "Kelp grows in cold water.",
    "We thank the reviewers for their comments.",
    "",
    "Sea otters float in kelp, and where they are hunted the urchins eat it. " * 60,
)
TRIED = tuple((question, passage) for question in _QUESTIONS for passage in _PASSAGES)
# How far the exact graph's logits may lie from those of sentence-transformers, of the largest; and the root of the mean
# square by which the rounded one's may, of their standard deviation. Otherwise the exact graph is kept.
AS_EXACT, AS_ROUNDED = 1e-3, 0.05


def local_files(name: str, models: Path) -> Path | None:
    """The folder that holds a cross-encoder: named outright, below `models`, or in Hugging Face's cache; else None.

    No network is asked, and not Hugging Face's package either, which takes a quarter of a second to import.
    """
    folders = [Path(name), models / name.rpartition("/")[2]]
    try:
        cached = _hub_cache() / f"models--{name.replace('/', '--')}"
        if (cached / "refs" / "main").is_file():
            folders.append(cached / "snapshots" / (cached / "refs" / "main").read_text(encoding="utf-8").strip())
        return next((folder for folder in folders if (folder / CONFIG).is_file()), None)
    except (OSError, ValueError):  # a name that can be none of a file
        return None


def _hub_cache() -> Path:
    """As in https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home, "hub").expanduser()


class CrossEncoderReranker:
    """A cross-encoder with one label. Making one is free; the first question loads the model.

    folder: where its files are. cache: where its graph is kept; None for nowhere. threads: as in OnnxEncoder.
    """

    reads: int | None = 20  # each costs a run of the model

    def __init__(self, folder: Path, name: str, cache: Path | None = None, threads: int = 0) -> None:
        self.name = name
        self._folder = folder
        self._cache = cache
        self._threads = threads
        self._scorer: Scorer | None = None

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """The model's logits through a sigmoid, so that a score reads as a degree of relevance. Raises ModelMissing."""
        self.load()
        assert self._scorer is not None
        # PDFs hold halves of surrogate pairs, which tokenizers refuse; each gives way to one other character.
        pairs = [(question, hit.text.encode("utf-8", "replace").decode("utf-8")) for hit in hits]
        return [1 / (1 + math.exp(-float(logit))) for logit in self._scorer(pairs)] if pairs else []

    def load(self) -> None:
        """Load the model, and make and keep its graph where that was not done before. Raises ModelMissing."""
        if self._scorer is None:
            self._scorer = self._kept_or_made()

    def _kept_or_made(self) -> Scorer:
        where = os.path.abspath(self._folder)
        kept = OnnxCache.read(self._cache, f"{self._folder.name}-{hashlib.sha256(where.encode()).hexdigest()[:8]}")
        names = (CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG)
        try:
            sources = kept.examined([self._folder / name for name in names])
        except OSError:  # sentence-transformers may know other names, and says what is wrong where it does not
            return self._by_torch()
        same = kept.is_of(VERSION, sources)
        content = kept.content() if same else None
        if content is None and not (same and not kept.graph):
            reference = self._by_torch()
            content = self._agreeing(reference(TRIED))
            kept.keep(VERSION, sources, content)
            return _scorer(self._folder, content, self._threads) if content else reference
        return _scorer(self._folder, content, self._threads) if content else self._by_torch()

    def _agreeing(self, expected: Vectors) -> bytes:
        """A graph whose logits for TRIED are the expected ones, rounded where that does; empty where none is."""
        try:
            sizes, tensors = _read(self._folder)
            exact = graph(tensors, sizes, 0, classifier=True)
            apart = _scorer(self._folder, exact, self._threads)(TRIED) - expected
            if not np.abs(apart).max() <= AS_EXACT * max(1.0, float(np.abs(expected).max())):
                return b""
            rounded = graph(tensors, sizes, 2, classifier=True)
            apart = _scorer(self._folder, rounded, self._threads)(TRIED) - expected
            return rounded if np.sqrt((apart**2).mean()) <= AS_ROUNDED * expected.std() else exact
        except Exception:  # it is not of BERT's kind, in whatever way: the packages have errors of their own for it
            return b""

    def _by_torch(self) -> Scorer:
        import torch
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity(logging.CRITICAL)  # what goes wrong is told below, in one sentence
        try:
            if not any((self._folder / name).is_file() for name in TOKENIZERS):
                raise FileNotFoundError(f"it has none of {', '.join(TOKENIZERS)}")
            model = CrossEncoder(
                str(self._folder), device="cpu", local_files_only=True, activation_fn=torch.nn.Identity()
            )
        except Exception as error:  # each of the packages below has errors of its own for files it cannot read
            reason = " ".join(str(error).split()).rstrip(".")
            raise ModelMissing(
                f"The cross-encoder in {self._folder} cannot be loaded: {reason[:160]}.",
                "Fetch it again with `make models`, or set RERANKER=builtin.",
            ) from error
        return lambda pairs: np.asarray(model.predict(list(pairs), show_progress_bar=False), dtype=np.float32)


def _read(folder: Path) -> tuple[Sizes, dict[str, Vectors]]:
    """A model's sizes and weights. Raises ValueError, KeyError, OSError for one that is not of BERT's kind."""
    config = _json(folder / CONFIG)
    known = {"model_type": "bert", "hidden_act": "gelu", "architectures": ["BertForSequenceClassification"]}
    if any(config[key] != value for key, value in known.items()):
        raise ValueError("another kind of network")
    sizes = Sizes(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["hidden_size"],
        config["layer_norm_eps"],
    )
    tensors = {name.removeprefix("bert."): value for name, value in read_tensors(folder / WEIGHTS).items()}
    if len(tensors["classifier.bias"]) != 1:
        raise ValueError("more than one label")
    return sizes, tensors


def _scorer(folder: Path, content: bytes, threads: int) -> Scorer:
    from tokenizers import Tokenizer

    tensors = read_tensors(folder / WEIGHTS)
    words, positions, types = (tensors[f"bert.embeddings.{table}_embeddings.weight"] for table in TABLES)
    network = OnnxEncoder(content, words, positions, types, threads)
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    longest = min(
        _json(folder / CONFIG)["max_position_embeddings"], _json(folder / TOKENIZER_CONFIG)["model_max_length"]
    )
    tokenizer.enable_truncation(longest, strategy="longest_first")
    tokenizer.no_padding()

    def run(row: tuple[Ids, Ids]) -> float:
        return float(network.run(*row)[0, 0])

    def score(pairs: Sequence[Pair]) -> Vectors:
        read = tokenizer.encode_batch(list(pairs))
        rows = [(np.array(one.ids, dtype=np.int32), np.array(one.type_ids, dtype=np.int32)) for one in read]
        return np.fromiter(network.each(run, rows), dtype=np.float32, count=len(rows))

    return score


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
